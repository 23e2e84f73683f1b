//! The loop against the brute-force oracle, feature by feature, and with mistakes that the comparisons catch.

mod absent;
mod loop_mutants;
pub(crate) mod reads;
mod results;

use super::Found;
use super::reads::Reads;
use super::results::Counted;
use crate::agreement::Exhaustive;
use crate::budget::Budget;
use crate::decide::{Backend, Decision};
use crate::phases::Check;
use crate::progress::Silent;
use crate::prune::PruneStats;
use crate::report::Decider;
use crate::resolve::Resolved;
use crate::sight;

/// A part of what `KINGSNAKE_LONG=1` runs.
fn n_histories(share: u64) -> u64 {
    match std::env::var_os("KINGSNAKE_LONG") {
        Some(_) => 100_000,
        None => share,
    }
}

/// What is asked of an order of the certain reads.
fn with_first_order<T>(
    check: &Check<'_>,
    base: &Resolved,
    ask: impl FnOnce(Found<'_>) -> Option<T>,
) -> Option<T> {
    let (counted, budget) = (&Counted::default(), &Budget::unlimited());
    let (asked, stats) = ((&[] as &[usize], counted), &mut PruneStats::default());
    let Ok(Ok(left)) = sight::narrowed(check, (base, None), asked, stats, budget) else {
        return None;
    };
    let pruned = left.pruned;
    let backend = &mut Exhaustive::default();
    let decided = backend.decide(pruned.question(), budget, &mut Silent);
    let Decision::Choices(sides) = decided.ok()?.0 else {
        return None;
    };
    let decider = Decider::Backend;
    let (order, shown) = if base.unreturned().is_empty() {
        (pruned.order(&sides).ok()?, Vec::new())
    } else {
        let decided = (decider, &pruned, sides.as_slice());
        let tried = super::schedule::schedule(check.history, base, decided, 4, budget).ok()?;
        (tried.order, tried.missed)
    };
    ask(Found {
        check,
        base,
        pruned: &pruned,
        reads: &Reads::new(base),
        counted,
        decider,
        order,
        shown,
        without_effect: Vec::new(),
        sides: &sides,
    })
}

/// The points of an order.
fn points(found: &Found<'_>) -> Vec<crate::verdict::Point> {
    let nodes = found.order.iter();
    nodes
        .filter_map(|&node| found.pruned.problem.point(node))
        .collect()
}
