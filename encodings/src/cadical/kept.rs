//! A question that grows, for `cadical/lazy`: its solver keeps the cycles and its learned clauses from answer to answer.

use std::sync::mpsc::Sender;
use std::time::Instant;

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::ProgressEvent;
use kingsnake_graph::decide::{Constraints, DecideStats, Decision};
use kingsnake_graph::reach::Dag;
use kingsnake_graph::session::Growth;
use rustsat::solvers::{PhaseLit, Solve};
use rustsat::types::{Lit, TernaryVal, Var};

use super::lazy::{Chosen, Cycles, NAME, cycles};
use super::solver::Cadical;
use super::watched::{Said, solve, watch};
use crate::apart::{Keep, SessionAnswer};
use crate::grown::Grown;
use crate::propagator::core::{select, share};
use crate::propagator::graph::Sides;
use crate::propagator::phase::{FirstPhase, guess};

/// The state.
pub(super) struct KeptLazy {
    seed: u32,
    grown: Grown,
    solver: Cadical,
    /// How many of the clauses the solver has.
    n_told: usize,
    forbidden: Cycles,
    /// The places of the last answer, or empty.
    places: Vec<f64>,
}

impl KeptLazy {
    pub fn new(seed: u32, grown: Grown) -> KeptLazy {
        KeptLazy {
            seed,
            grown,
            solver: Cadical::new(seed),
            n_told: 0,
            forbidden: Cycles::new(),
            places: Vec::new(),
        }
    }

    fn forbid(&mut self, clause: &[Lit]) -> Result<(), String> {
        let clause = clause.iter().copied().collect();
        self.solver
            .add_clause(clause)
            .map_err(|error| error.to_string())
    }

    /// Passes new clauses to the solver, and sets the phases by the last order.
    fn tell(&mut self, constraints: &Constraints) -> Result<(), String> {
        for at in self.n_told..self.grown.clauses.len() {
            let clause = self.grown.clauses.get(at).to_vec();
            self.forbid(&clause)?;
        }
        self.n_told = self.grown.clauses.len();
        let n_variables = self.grown.n_variables();
        if n_variables > 0 {
            let last = Var::new(n_variables as u32 - 1);
            let reserved = self.solver.reserve(last);
            reserved.map_err(|error| error.to_string())?;
        }
        let sides = Sides::of(constraints, 0..constraints.len());
        let place = |node: u32| self.places.get(node as usize).copied().unwrap_or(0.0);
        for lit in guess(&sides, place, FirstPhase::Topological, self.seed).first {
            let set = self.solver.phase_lit(lit);
            set.map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn chosen(&self) -> Result<Vec<Lit>, String> {
        let all = (0..self.grown.n_variables() as u32).map(Lit::positive);
        all.map(|lit| match self.solver.lit_val(lit) {
            Ok(TernaryVal::False) => Ok(!lit),
            Ok(_) => Ok(lit),
            Err(error) => Err(error.to_string()),
        })
        .collect()
    }

    /// Forbids cycles until none is left, or no choice.
    fn rounds(&mut self, budget: &Budget, stats: &mut DecideStats) -> Result<Decision, String> {
        loop {
            match solve(&mut self.solver, &[], budget, stats)? {
                Said::Sat => {}
                Said::Unsat => return Ok(Decision::Core(self.core(budget))),
                Said::Stopped(reason) => return Ok(Decision::Unknown(reason)),
                Said::GaveUp => return Err("the solver stopped unexpectedly".to_owned()),
            }
            let chosen = self.chosen()?;
            let edges = self.grown.chosen(&chosen);
            let arcs = edges.iter().map(|&(edge, lit)| ((edge.from, edge.to), lit));
            let graph = Chosen::of(self.grown.n_nodes, arcs.collect());
            let mut found = match cycles(&graph, budget) {
                Ok(found) => found,
                Err(reason) => return Ok(Decision::Unknown(reason)),
            };
            let loops = edges.iter().filter(|(edge, _)| edge.from == edge.to);
            found.extend(loops.map(|&(_, lit)| lit.into_iter().collect()));
            if found.is_empty() {
                let Ok(dag) = Dag::new(self.grown.n_nodes, edges.iter().map(|(edge, _)| edge))
                else {
                    return Err("the chosen sides close a cycle".to_owned());
                };
                self.places = dag.places().into_iter().map(f64::from).collect();
                return Ok(Decision::Choices(self.grown.choices(&chosen)));
            }
            for cycle in found {
                let clause: Vec<Lit> = cycle.iter().map(|&lit| !lit).collect();
                self.forbid(&clause)?;
                stats.cycles += 1;
                if !self.forbidden.insert(cycle) {
                    return Err("it met a cycle that it had forbidden".to_owned());
                }
            }
        }
    }

    /// Constraints that the cycles and clauses leave no choice for.
    fn core(&self, budget: &Budget) -> Vec<u32> {
        let mut lemmas = Vec::new();
        for cycle in &self.forbidden {
            lemmas.extend(cycle.iter().map(|&lit| (!lit).to_ipasir()));
            lemmas.push(0);
        }
        for at in 0..self.grown.clauses.len() {
            lemmas.extend(self.grown.clauses.get(at).iter().map(|lit| lit.to_ipasir()));
            lemmas.push(0);
        }
        let all: Vec<u32> = (0..self.grown.n_variables() as u32).collect();
        let is_constraint = |at: u32| self.grown.is_constraint(at);
        self.grown
            .named(&select(&all, &lemmas, is_constraint, &share(budget)))
    }

    /// Refuses what would not fit.
    fn reserve(&self, constraints: &Constraints, budget: &Budget) -> Result<(), StopReason> {
        let n_edges = (self.grown.known.len() + constraints.n_edges()) as u64;
        let needed = 40 * n_edges + 24 * self.grown.n_nodes as u64 + 500 * constraints.len() as u64;
        budget.reserve("the question as it has grown", needed)?;
        budget.check()
    }
}

impl Keep for KeptLazy {
    fn add(&mut self, growth: &Growth) {
        self.grown.add(growth);
    }

    fn decide(&mut self, budget: &Budget, events: Sender<ProgressEvent>) -> SessionAnswer {
        let started = Instant::now();
        let mut stats = DecideStats {
            backend: NAME.to_owned(),
            ..DecideStats::default()
        };
        let constraints = self.grown.sides();
        if let Err(reason) = self.reserve(&constraints, budget) {
            return Ok((Decision::Unknown(reason), stats));
        }
        let dag = match Dag::new(self.grown.n_nodes, self.grown.known.iter()) {
            Ok(dag) if !self.grown.is_refuted => dag,
            _ => return Ok((Decision::Core(Vec::new()), stats)),
        };
        if self.places.is_empty() {
            self.places = if self.grown.estimate.is_empty() {
                dag.places().into_iter().map(f64::from).collect()
            } else {
                self.grown.estimate.iter().copied().map(f64::from).collect()
            };
        }
        self.tell(&constraints)?;
        watch(
            &mut self.solver,
            budget,
            Some(&events),
            self.grown.n_variables(),
        );
        stats.variables = self.grown.n_variables() as u64;
        stats.clauses = (self.grown.clauses.len() + self.forbidden.len()) as u64;
        stats.edges = (self.grown.known.len() + constraints.n_edges()) as u64;
        stats.encode = started.elapsed();
        let started = Instant::now();
        let decision = self.rounds(budget, &mut stats);
        // The callback holds a sender of events, and the caller waits until there is none.
        watch(&mut self.solver, budget, None, 0);
        stats.solve = started.elapsed();
        Ok((decision?, stats))
    }
}
