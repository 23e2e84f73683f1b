//! `CaDiCaL` behind rustsat's solver traits, over cadical-sys: rustsat-cadical brings a `CaDiCaL` of its own, and two of them
//! cannot be linked into one program.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use cadical_sys::{CaDiCal, Learner, Status, Terminator};
use rustsat::solvers::{
    ControlSignal, GetInternalStats, LimitConflicts, PhaseLit, Solve, SolveIncremental, SolveStats,
    SolverResult, SolverState, SolverStats, StateError, Terminate,
};
use rustsat::types::{Cl, Clause, Lit, TernaryVal, Var};

/// `CaDiCaL`.
pub(crate) struct Cadical {
    /// Reading a value changes the solver's state, although rustsat's traits take a shared reference.
    solver: RefCell<CaDiCal>,
    state: SolverState,
    assumed: Vec<Lit>,
    stats: SolverStats,
    n_literals: usize,
    ends: Rc<RefCell<Ends>>,
    n_learned: Rc<Cell<u64>>,
}

/// The reasons for ending a search.
struct Ends(Option<Box<dyn FnMut() -> ControlSignal>>);

impl Terminator for Ends {
    fn terminated(&mut self) -> bool {
        let callback = self.0.as_mut();
        callback.is_some_and(|callback| callback() == ControlSignal::Terminate)
    }
}

/// Counts learned clauses, for progress reports.
struct Count(Rc<Cell<u64>>);

impl Learner for Count {
    fn learning(&mut self, _: i32) -> bool {
        self.0.set(self.0.get() + 1);
        false
    }

    fn learn(&mut self, _: i32) {}
}

impl Cadical {
    /// With this seed.
    pub fn new(seed: u32) -> Cadical {
        let mut solver = CaDiCal::new();
        solver.set("seed", (seed % 2_000_000_000) as i32);
        // Lucky phases try whole assignments and rarely check whether to stop: half a minute on a million variables.
        solver.set("lucky", 0);
        solver.set("terminateint", 1);
        let ends = Rc::new(RefCell::new(Ends(None)));
        solver.connect_terminator(Rc::clone(&ends));
        let n_learned = Rc::new(Cell::new(0));
        solver.connect_learner(Count(Rc::clone(&n_learned)));
        Cadical {
            solver: RefCell::new(solver),
            state: SolverState::Configuring,
            assumed: Vec::new(),
            stats: SolverStats::default(),
            n_literals: 0,
            ends,
            n_learned,
        }
    }

    /// A counter of the clauses learned so far, which the callback that may end the search can read.
    pub fn n_learned(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.n_learned)
    }

    /// Writes an LRAT proof in text while solving; to be called before any clause is added.
    pub fn trace_lrat(&mut self, path: &str) -> anyhow::Result<()> {
        let solver = self.solver.get_mut();
        solver.set("binary", 0);
        solver.set("lrat", 1);
        anyhow::ensure!(solver.trace_proof2(path), "cannot write {path}");
        Ok(())
    }

    /// Adds a file's clauses. Unlike clauses that are added one by one, these have the first numbers in a proof, whatever
    /// follows from them.
    pub fn read_dimacs(&mut self, path: &str) -> anyhow::Result<()> {
        let mut n_variables = 0;
        let read = self
            .solver
            .get_mut()
            .read_dimacs2(path, &mut n_variables, 1);
        self.state = SolverState::Input;
        read.map_err(anyhow::Error::msg)
    }

    /// Ends the proof's file.
    pub fn close_proof(&mut self) {
        self.solver.get_mut().close_proof_trace(false);
    }

    fn expect(&self, required: SolverState) -> Result<(), StateError> {
        if self.state == required {
            Ok(())
        } else {
            Err(StateError {
                required_state: required,
                actual_state: self.state,
            })
        }
    }

    fn count(&self, name: &str) -> usize {
        usize::try_from(self.solver.borrow().get_statistic_value(name)).unwrap_or(0)
    }
}

impl Solve for Cadical {
    fn signature(&self) -> &'static str {
        "CaDiCaL"
    }

    fn reserve(&mut self, max_var: Var) -> anyhow::Result<()> {
        self.solver.get_mut().resize(max_var.to_ipasir());
        Ok(())
    }

    fn solve(&mut self) -> anyhow::Result<SolverResult> {
        self.solve_assumps(&[])
    }

    fn lit_val(&self, lit: Lit) -> anyhow::Result<TernaryVal> {
        self.expect(SolverState::Sat)?;
        Ok(match self.solver.borrow_mut().val(lit.to_ipasir()) {
            0 => TernaryVal::DontCare,
            value if (value > 0) == lit.is_pos() => TernaryVal::True,
            _ => TernaryVal::False,
        })
    }

    fn add_clause_ref<C>(&mut self, clause: &C) -> anyhow::Result<()>
    where
        C: AsRef<Cl> + ?Sized,
    {
        let clause = clause.as_ref();
        let solver = self.solver.get_mut();
        for lit in clause {
            self.stats.max_var = self.stats.max_var.max(Some(lit.var()));
        }
        // One call for a clause costs less than one for each literal, and most clauses are short.
        let lit = |at: usize| clause[at].to_ipasir();
        match clause.len() {
            1 => solver.clause1(lit(0)),
            2 => solver.clause2(lit(0), lit(1)),
            3 => solver.clause3(lit(0), lit(1), lit(2)),
            _ => {
                for lit in clause {
                    solver.add(lit.to_ipasir());
                }
                solver.add(0);
            }
        }
        self.n_literals += clause.len();
        self.stats.n_clauses += 1;
        self.state = SolverState::Input;
        Ok(())
    }
}

impl SolveIncremental for Cadical {
    fn solve_assumps(&mut self, assumps: &[Lit]) -> anyhow::Result<SolverResult> {
        let started = Instant::now();
        let solver = self.solver.get_mut();
        for lit in assumps {
            solver.assume(lit.to_ipasir());
        }
        self.assumed.clear();
        self.assumed.extend_from_slice(assumps);
        let status = solver.solve();
        self.stats.cpu_solve_time += started.elapsed();
        let (state, result) = match status {
            Status::SATISFIABLE => {
                self.stats.n_sat += 1;
                (SolverState::Sat, SolverResult::Sat)
            }
            Status::UNSATISFIABLE => {
                self.stats.n_unsat += 1;
                (SolverState::Unsat, SolverResult::Unsat)
            }
            Status::UNKNOWN => {
                self.stats.n_terminated += 1;
                (SolverState::Unknown, SolverResult::Interrupted)
            }
        };
        self.state = state;
        Ok(result)
    }

    fn core(&mut self) -> anyhow::Result<Vec<Lit>> {
        self.expect(SolverState::Unsat)?;
        let solver = self.solver.get_mut();
        let failed = |lit: &&Lit| solver.failed(lit.to_ipasir());
        Ok(self
            .assumed
            .iter()
            .filter(failed)
            .map(|&lit| !lit)
            .collect())
    }
}

impl SolveStats for Cadical {
    fn stats(&self) -> SolverStats {
        SolverStats {
            avg_clause_len: if self.stats.n_clauses == 0 {
                0.0
            } else {
                self.n_literals as f32 / self.stats.n_clauses as f32
            },
            ..self.stats.clone()
        }
    }
}

impl GetInternalStats for Cadical {
    fn propagations(&self) -> usize {
        self.count("propagations")
    }

    fn decisions(&self) -> usize {
        self.count("decisions")
    }

    fn conflicts(&self) -> usize {
        self.count("conflicts")
    }
}

impl Terminate<'static> for Cadical {
    fn attach_terminator<CB>(&mut self, callback: CB)
    where
        CB: FnMut() -> ControlSignal + 'static,
    {
        self.ends.borrow_mut().0 = Some(Box::new(callback));
    }

    fn detach_terminator(&mut self) {
        self.ends.borrow_mut().0 = None;
    }
}

impl PhaseLit for Cadical {
    fn phase_lit(&mut self, lit: Lit) -> anyhow::Result<()> {
        self.solver.get_mut().phase(lit.to_ipasir());
        Ok(())
    }

    fn unphase_var(&mut self, var: Var) -> anyhow::Result<()> {
        self.solver.get_mut().unphase(var.to_ipasir());
        Ok(())
    }
}

impl LimitConflicts for Cadical {
    fn limit_conflicts(&mut self, limit: Option<u32>) -> anyhow::Result<()> {
        let limit = limit.map_or(-1, |it| i32::try_from(it).unwrap_or(i32::MAX));
        let is_known = self.solver.get_mut().limit("conflicts", limit);
        anyhow::ensure!(is_known, "there is no limit of conflicts");
        Ok(())
    }
}

impl Extend<Clause> for Cadical {
    fn extend<T: IntoIterator<Item = Clause>>(&mut self, clauses: T) {
        for clause in clauses {
            self.extend([&clause]);
        }
    }
}

impl<'a> Extend<&'a Clause> for Cadical {
    fn extend<T: IntoIterator<Item = &'a Clause>>(&mut self, clauses: T) {
        for clause in clauses {
            // rustsat says that this panics if adding fails, which never happens here.
            self.add_clause_ref(clause).expect("clauses can be added");
        }
    }
}
