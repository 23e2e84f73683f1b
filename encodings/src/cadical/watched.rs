//! Solving within a budget, while the caller's thread hears how far it is.

use std::rc::Rc;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::{Progress, ProgressEvent};
use kingsnake_graph::decide::{DecideStats, Question};
use rustsat::solvers::{
    ControlSignal, GetInternalStats, SolveIncremental, SolverResult, Terminate,
};
use rustsat::types::Lit;

use super::solver::Cadical;
use crate::reduce::{Arena, Failed, reduce};

/// How often somebody is told about progress.
const EVERY: Duration = Duration::from_millis(100);

/// What a solver said, or why it said nothing.
pub(super) enum Said {
    Sat,
    Unsat,
    Stopped(StopReason),
    /// A limit of conflicts passed.
    GaveUp,
}

/// Lets the budget end every search of this solver, and the listener hear of it.
pub(super) fn watch(
    solver: &mut Cadical,
    budget: &Budget,
    events: Option<&Sender<ProgressEvent>>,
    n_variables: usize,
) {
    let (budget, events) = (budget.clone(), events.cloned());
    let n_learned = Rc::clone(&solver.n_learned());
    let mut told = Instant::now();
    solver.attach_terminator(move || {
        if let Some(events) = &events
            && told.elapsed() >= EVERY
        {
            told = Instant::now();
            // Nobody listens any more when the receiver is gone, which is no reason to stop.
            let _ = events.send(ProgressEvent::Deciding {
                conflicts: n_learned.get(),
                settled: 0,
                variables: n_variables,
            });
        }
        match budget.check() {
            Ok(()) => ControlSignal::Continue,
            Err(_) => ControlSignal::Terminate,
        }
    });
}

/// Solves, and adds to the statistics.
pub(super) fn solve(
    solver: &mut Cadical,
    assumed: &[Lit],
    budget: &Budget,
    stats: &mut DecideStats,
) -> Result<Said, String> {
    let counts = |solver: &Cadical| {
        [
            solver.conflicts(),
            solver.decisions(),
            solver.propagations(),
        ]
    };
    let before = counts(solver);
    let result = solver
        .solve_assumps(assumed)
        .map_err(|error| error.to_string())?;
    let after = counts(solver);
    let [conflicts, decisions, propagations] = [0, 1, 2].map(|at| (after[at] - before[at]) as u64);
    stats.conflicts += conflicts;
    stats.decisions += decisions;
    stats.propagations += propagations;
    Ok(match result {
        SolverResult::Sat => Said::Sat,
        SolverResult::Unsat => Said::Unsat,
        SolverResult::Interrupted => match budget.check() {
            Err(reason) => Said::Stopped(reason),
            Ok(()) => Said::GaveUp,
        },
    })
}

/// Runs the work in a thread of its own, so that the caller's thread can tell of its progress.
pub(super) fn telling<T: Send>(
    progress: &mut dyn Progress,
    work: impl FnOnce(Sender<ProgressEvent>) -> Result<T, String> + Send,
) -> Result<T, String> {
    std::thread::scope(|scope| {
        let (sender, events) = mpsc::channel();
        let search = scope.spawn(move || work(sender));
        for event in events {
            progress.event(event);
        }
        search
            .join()
            .unwrap_or_else(|_| Err("the search panicked".to_owned()))
    })
}

/// The part of a question that a plain solver is asked, and its size in the statistics; or why the budget ended.
pub(super) fn reduced(
    question: &Question<'_>,
    budget: &Budget,
    stats: &mut DecideStats,
) -> Result<Result<Arena, StopReason>, String> {
    match reduce(question, budget) {
        Ok(arena) => {
            stats.edges = (arena.known.len() + arena.demands.len()) as u64;
            Ok(Ok(arena))
        }
        Err(Failed::Stopped(reason)) => Ok(Err(reason)),
        Err(Failed::Cyclic) => Err("the known graph has a cycle".to_owned()),
    }
}
