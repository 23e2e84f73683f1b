//! Solving within a budget, with progress reports to the caller's thread.

use std::rc::Rc;
use std::sync::mpsc::{self, Sender};
use std::time::{Duration, Instant};

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::{Progress, ProgressEvent};
use kingsnake_graph::decide::{DecideError, DecideStats, Decision, Question};
use rustsat::solvers::{
    ControlSignal, GetInternalStats, SolveIncremental, SolverResult, Terminate,
};
use rustsat::types::Lit;

use super::solver::Cadical;
use crate::reduce::{Arena, Failed, reduce};

/// Interval between two progress reports.
const EVERY: Duration = Duration::from_millis(100);

/// The solver's answer, or why there is none.
pub(super) enum Said {
    Sat,
    Unsat,
    Stopped(StopReason),
    /// A limit of conflicts passed.
    GaveUp,
}

/// Lets the budget end every search of this solver, and reports progress to the listener.
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
            // The receiver may be gone, which is no reason to stop.
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

/// Runs a search in a thread of its own, so that the caller's thread can report its progress. Earlier counts are included in the
/// statistics.
pub(crate) fn search_apart(
    mut stats: DecideStats,
    progress: &mut dyn Progress,
    search: impl FnOnce(&Sender<ProgressEvent>, &mut DecideStats) -> Result<Decision, String> + Send,
) -> Result<(Decision, DecideStats), DecideError> {
    let decided = std::thread::scope(|scope| {
        let (sender, events) = mpsc::channel();
        let counted = &mut stats;
        let search = scope.spawn(move || search(&sender, counted));
        for event in events {
            progress.event(event);
        }
        search
            .join()
            .unwrap_or_else(|_| Err("the search panicked".to_owned()))
    });
    match decided {
        Ok(decision) => Ok((decision, stats)),
        Err(what) => Err(DecideError {
            backend: stats.backend,
            what,
        }),
    }
}

/// Searches in the part of a question that a plain solver gets. The search gets the start time, for its statistics.
pub(super) fn search_reduced(
    name: &str,
    question: &Question<'_>,
    budget: &Budget,
    progress: &mut dyn Progress,
    search: impl FnOnce(
        &Arena,
        Instant,
        &Sender<ProgressEvent>,
        &mut DecideStats,
    ) -> Result<Decision, String>
    + Send,
) -> Result<(Decision, DecideStats), DecideError> {
    let stats = DecideStats {
        backend: name.to_owned(),
        ..DecideStats::default()
    };
    search_apart(stats, progress, |events, stats| {
        let started = Instant::now();
        let arena = match reduce(question, budget) {
            Ok(arena) => arena,
            Err(Failed::Stopped(reason)) => return Ok(Decision::Unknown(reason)),
            Err(Failed::Cyclic) => return Err("the known graph has a cycle".to_owned()),
        };
        stats.edges = (arena.known.len() + arena.demands.len()) as u64;
        search(&arena, started, events, stats)
    })
}
