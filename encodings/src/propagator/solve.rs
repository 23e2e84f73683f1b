//! One run of `CaDiCaL` with the acyclicity propagator over some of the constraints.

use std::cell::RefCell;
use std::rc::Rc;

use cadical_sys::{CaDiCal, ExternalPropagator, Status};
use kingsnake_context::budget::StopReason;
use kingsnake_graph::decide::DecideStats;
use rustsat::types::Lit;

use super::graph::{Known, Sides, acyclic};
use super::order::Order;
use super::phase::{FirstPhase, Guesses, by_position};
use super::ranked::Ranked;
use super::repair::Repair;
use super::theory::{Choose, Limits, Theory};
use super::unmet::Unmet;
use super::watch::{Stop, Watch};
use super::{Decide, PropagatorOptions};
use crate::faults::Faults;
use crate::grown::Clauses;

/// The result of a run.
pub(crate) enum SolveOutcome {
    /// A literal for each constraint; their edges have no cycle with the known ones.
    Met(Vec<Lit>),
    /// They cannot all be met: the cycles leave no choice.
    Refuted,
    /// It gave up after the requested number of cycles.
    GaveUp,
    /// The budget ended.
    Stopped(StopReason),
}

/// Further results of runs.
#[derive(Default)]
pub(crate) struct RunMemory {
    /// All cycles, as clauses, each closed by 0.
    pub lemmas: Vec<i32>,
    /// The last order.
    pub places: Vec<u32>,
}

/// The parameters of a run besides the graph.
pub(crate) struct SolvePlan {
    pub options: PropagatorOptions,
    pub seed: u32,
    pub faults: Faults,
}

/// Where a run starts.
pub(crate) struct Start<'a> {
    /// A linear extension of the known graph.
    pub places: Vec<u32>,
    pub guesses: Guesses,
    /// Clauses that earlier runs over the same constraints found, each closed by 0.
    pub lemmas: &'a [i32],
    /// Clauses that the solver has, and that the order alone does not show to be met.
    pub clauses: Rc<Clauses>,
    /// Give up after this many cycles.
    pub max_cycles: u64,
    /// Sides to try first, all at once.
    pub assumed: &'a [Lit],
}

/// After this many rejections nothing is assumed any more.
const MOST_REJECTS: u64 = 32;

/// Runs a new solver; also returns the cycles, as clauses, each closed by 0.
pub(crate) fn solve(
    known: &Rc<Known>,
    sides: &Rc<Sides>,
    start: Start<'_>,
    plan: &SolvePlan,
    watch: &Rc<Watch>,
    stats: &mut DecideStats,
) -> Result<(SolveOutcome, Vec<i32>), String> {
    let (mut solver, mut memory) = (configured(plan), RunMemory::default());
    let outcome = run(
        &mut solver,
        &mut memory,
        known,
        sides,
        start,
        plan,
        watch,
        stats,
    )?;
    Ok((outcome, memory.lemmas))
}

/// Runs a solver, which may have clauses of earlier runs over fewer constraints. An answer that fails a topological
/// sort is an error.
#[allow(clippy::too_many_arguments)]
pub(crate) fn run(
    solver: &mut CaDiCal,
    memory: &mut RunMemory,
    known: &Rc<Known>,
    sides: &Rc<Sides>,
    start: Start<'_>,
    plan: &SolvePlan,
    watch: &Rc<Watch>,
    stats: &mut DecideStats,
) -> Result<SolveOutcome, String> {
    let n_constraints = sides.n_constraints();
    let guesses = start.guesses;
    let order = Order::new(
        Rc::clone(known),
        Rc::clone(sides),
        start.places,
        plan.faults.frozen_order(),
    );
    let options = plan.options;
    if options.decide == Decide::Vsids && options.phase != FirstPhase::None {
        for &lit in &guesses.first {
            solver.phase(lit.to_ipasir());
        }
    }
    let choose = match options.decide {
        Decide::Repair => Choose::Repair(Repair::new(
            Rc::clone(sides),
            &guesses.by_rank,
            known.n_nodes(),
        )),
        Decide::SurestFirst => listed(guesses.by_rank),
        Decide::Position => listed(by_position(sides, order.places())),
        Decide::Vsids => Choose::Solver,
    };
    let theory = Rc::new(RefCell::new(Theory::new(
        Rc::clone(sides),
        order,
        choose,
        guesses.first,
        Limits {
            max_cycles: start.max_cycles,
            propagate: options.propagate,
            minimise: options.minimise,
        },
        if plan.faults.ignore_clauses() {
            Unmet::default()
        } else {
            Unmet::new(start.clauses)
        },
        Rc::clone(watch),
        plan.faults,
    )));
    solver.connect_external_propagator(Rc::clone(&theory));
    solver.connect_terminator(Stop(Rc::clone(watch)));
    for constraint in 0..n_constraints as u32 {
        let lit = Lit::positive(constraint).to_ipasir();
        solver.add_observed_var(lit);
        // What earlier runs fixed at the root is not reported again by every callback.
        match solver.fixed(lit) {
            0 => {}
            value => theory
                .borrow_mut()
                .notify_assignment(&[value.signum() * lit]),
        }
    }
    for &lit in start.lemmas {
        solver.add(lit);
    }
    let count = |solver: &CaDiCal| {
        ["conflicts", "decisions", "propagations"]
            .map(|name| u64::try_from(solver.get_statistic_value(name)).unwrap_or(0))
    };
    let before = count(solver);
    let mut assumed = start.assumed.to_vec();
    let status = loop {
        for lit in &assumed {
            solver.assume(lit.to_ipasir());
        }
        let status = solver.solve();
        // UNSAT counts only if no assumption was used; otherwise those used are dropped, and all learned clauses stay.
        let is_free = !assumed
            .iter()
            .any(|lit| status == Status::UNSATISFIABLE && solver.failed(lit.to_ipasir()));
        if is_free || plan.faults.trust_assumed() {
            break status;
        }
        stats.rejects += 1;
        assumed.retain(|lit| !solver.failed(lit.to_ipasir()));
        if stats.rejects >= MOST_REJECTS {
            assumed.clear();
        }
    };
    let after = count(solver);
    stats.conflicts += after[0] - before[0];
    stats.decisions += after[1] - before[1];
    stats.propagations += after[2] - before[2];
    let mut theory = theory.borrow_mut();
    stats.cycles += theory.n_cycles();
    memory.lemmas.extend(theory.take_lemmas());
    memory.places.clear();
    memory.places.extend_from_slice(theory.places());
    if let Some(failure) = theory.failure() {
        return Err(failure.to_owned());
    }
    let chosen = match (theory.take_witness(), status) {
        (Some(witness), _) => witness,
        (None, Status::UNSATISFIABLE) => return Ok(SolveOutcome::Refuted),
        // Once the search is over, assignments are no longer checked, and a full one is no model.
        (None, Status::SATISFIABLE) if !watch.finished() => (0..n_constraints as u32)
            .map(|constraint| {
                let lit = Lit::positive(constraint);
                if solver.val(lit.to_ipasir()) > 0 {
                    lit
                } else {
                    !lit
                }
            })
            .collect(),
        (None, _) => {
            return match watch.reason() {
                Some(reason) => Ok(SolveOutcome::Stopped(reason)),
                None if theory.gave_up() => Ok(SolveOutcome::GaveUp),
                None => Err("the solver stopped unexpectedly".to_owned()),
            };
        }
    };
    if acyclic(known, sides, &chosen, &memory.places) {
        Ok(SolveOutcome::Met(chosen))
    } else {
        Err("the chosen sides close a cycle".to_owned())
    }
}

/// A new solver.
pub(crate) fn configured(plan: &SolvePlan) -> CaDiCal {
    let mut solver = CaDiCal::new();
    solver.set("quiet", 1);
    solver.set("seed", (plan.seed % 2_000_000_000) as i32);
    // Every variable is observed and therefore frozen, so eliminating variables is useless; local search and lucky phases
    // know nothing of cycles.
    for option in ["elim", "lucky", "walk"] {
        solver.set(option, 0);
    }
    solver
}

fn listed(by_rank: Vec<u32>) -> Choose {
    let mut open = Ranked::new(by_rank.len());
    let mut rank_of = vec![0u32; by_rank.len()];
    for (rank, &constraint) in by_rank.iter().enumerate() {
        open.insert(rank);
        rank_of[constraint as usize] = rank as u32;
    }
    Choose::Listed {
        open,
        by_rank,
        rank_of,
    }
}
