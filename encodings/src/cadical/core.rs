//! A small set of constraints that cannot all be met, by assumptions (Eén and Sörensson, 2003).
//!
//! Every constraint has a selector, which requires one of its sides. The selectors that fail together are a core; asked
//! again alone, fewer may fail; and in a small core each member is left out once. Everything is limited by counted
//! conflicts, never by time, so that runs are reproducible.

use kingsnake_context::budget::Budget;
use kingsnake_graph::decide::DecideStats;
use rustsat::solvers::{LimitConflicts, SolveIncremental};
use rustsat::types::Lit;

use super::solver::Cadical;
use super::watched::{Said, solve};

/// How often a core is asked again.
const ROUNDS: usize = 8;
/// In a core of at most this many constraints, each is left out once.
const SMALL: usize = 64;
/// How many conflicts leaving one out may take.
const TRY: u32 = 2_000;
/// How many conflicts finding a core may take at least.
const SEARCH: u64 = 20_000;

/// The places of the selectors that fail together, or all of them if that takes too long.
pub(super) fn shrink(
    solver: &mut Cadical,
    selectors: &[Lit],
    budget: &Budget,
    stats: &mut DecideStats,
) -> Result<Vec<u32>, String> {
    // As hard as finding out that there is no answer; the selectors make it somewhat harder.
    let search = u32::try_from((4 * stats.conflicts).max(SEARCH)).unwrap_or(u32::MAX);
    let mut core: Vec<u32> = (0..selectors.len() as u32).collect();
    for _ in 0..ROUNDS {
        match failing(solver, selectors, &core, search, budget, stats)? {
            Some(failed) if failed.len() < core.len() => core = failed,
            _ => break,
        }
    }
    let mut at = core.len();
    while at > 0 && core.len() <= SMALL && budget.check().is_ok() {
        at -= 1;
        let mut without = core.clone();
        let left_out = without.remove(at);
        if let Some(failed) = failing(solver, selectors, &without, TRY, budget, stats)? {
            // What was necessary in a larger set is necessary in its subsets.
            at = failed.iter().filter(|&&member| member < left_out).count();
            core = failed;
        }
    }
    Ok(core)
}

/// Which of these fail, if they do and it can be found out soon enough.
fn failing(
    solver: &mut Cadical,
    selectors: &[Lit],
    chosen: &[u32],
    n_conflicts: u32,
    budget: &Budget,
    stats: &mut DecideStats,
) -> Result<Option<Vec<u32>>, String> {
    let assumed: Vec<Lit> = chosen.iter().map(|&at| selectors[at as usize]).collect();
    solver
        .limit_conflicts(Some(n_conflicts))
        .map_err(|error| error.to_string())?;
    if !matches!(solve(solver, &assumed, budget, stats)?, Said::Unsat) {
        return Ok(None);
    }
    let core = solver.core().map_err(|error| error.to_string())?;
    // They come in the order in which they were assumed.
    let mut core = core.into_iter().map(|lit| !lit).peekable();
    let failed = chosen
        .iter()
        .zip(assumed)
        .filter(|&(_, lit)| core.next_if_eq(&lit).is_some())
        .map(|(&at, _)| at);
    Ok(Some(failed.collect()))
}
