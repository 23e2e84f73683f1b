//! The pairs that pruning left open, as constraints for a back end.
//!
//! `merge`: one constraint for each unordered pair of transactions, however many keys they share: conflicting orders on two
//! keys are a cycle anyway. `coalesce` (Cobra): one constraint for each pair of runs. Without it there is one for each reader, as
//! in Papadimitriou's polygraph: either the other run comes before the one that it read, or after the reader.
//! Edges that paths imply already are left out.

use super::PruneOptions;
use super::judge::{Pair, Reaches};
use rustc_hash::FxHashMap;

use crate::decide::{Constraints, Side};
use crate::edge::{Edge, Reason};
use crate::orders::{Orders, Run};
use crate::problem::Problem;

/// Lists the pairs of every key, without judging any.
pub(super) fn list_pairs(runs: &Orders) -> Vec<Pair> {
    let mut pairs = Vec::with_capacity(runs.n_pairs() as usize);
    for key in 0..runs.n_keys() {
        let range = runs.range(key);
        for a in range.clone() {
            for b in a + 1..range.end {
                let (a, b) = (a as u32, b as u32);
                if !runs.is_trivial(a, b) {
                    pairs.push((a, b));
                }
            }
        }
    }
    pairs
}

/// What becomes one constraint.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) coalesce: bool,
    pub(super) merge: bool,
}

impl Form {
    /// As the options say; but literals speak of pairs, so where there are some, or will be, there is a constraint for each.
    pub(super) fn of(options: PruneOptions, problem: &Problem) -> Self {
        Form {
            coalesce: options.coalesce || options.grows || problem.logic.orders().next().is_some(),
            merge: options.merge,
        }
    }
}

/// An open pair, turned so that pairs of the same transactions look the same.
struct Turned {
    ends: [u32; 4],
    first: u32,
    second: u32,
}

/// For each open pair, the constraint and the side that puts its first run first.
pub(super) type Placed = FxHashMap<Pair, (u32, Side)>;

/// Makes the constraints. `reach` leaves out implied edges; without it all are kept. `placed` takes note of every pair.
pub(super) fn constraints<R: Reaches>(
    orders: &Orders,
    open: &[Pair],
    reach: Option<&R>,
    form: Form,
    mut placed: Option<&mut Placed>,
) -> Constraints {
    if !form.coalesce {
        return by_reader(orders, open, reach, form.merge);
    }
    let mut turned: Vec<Turned> = open.iter().map(|&pair| turn(orders, pair)).collect();
    turned.sort_unstable_by_key(|pair| pair.ends);
    let mut constraints = Constraints::default();
    for group in turned.chunk_by(|a, b| form.merge && a.ends == b.ends) {
        let side = |first_before: bool| -> Vec<Edge> {
            let edges = group.iter().flat_map(|pair| {
                let (a, b) = if first_before {
                    (pair.first, pair.second)
                } else {
                    (pair.second, pair.first)
                };
                orders.edges(a, b)
            });
            let next = if first_before {
                group[0].second
            } else {
                group[0].first
            };
            needed(orders, next, edges, reach)
        };
        if let Some(placed) = &mut placed {
            for pair in group {
                let side = if pair.first < pair.second {
                    Side::Either
                } else {
                    Side::Or
                };
                let ends = (pair.first.min(pair.second), pair.first.max(pair.second));
                placed.insert(ends, (constraints.len() as u32, side));
            }
        }
        constraints.push(side(true), side(false));
    }
    constraints
}

/// A constraint for each reader of either run. Where both runs are single versions, no more is needed: whichever order
/// the readers' choices leave, they agree on it. Longer runs, and writers that must not overlap, need one for the pair too.
fn by_reader<R: Reaches>(
    orders: &Orders,
    open: &[Pair],
    reach: Option<&R>,
    merge: bool,
) -> Constraints {
    let mut sides: Vec<[Edge; 2]> = Vec::new();
    for &(a, b) in open {
        let (one, other) = (orders.run(a), orders.run(b));
        let is_plain = |run: &Run| run.head == run.last && run.install == run.commit;
        let mut pair = !is_plain(one) || !is_plain(other);
        for (a, b) in [(a, b), (b, a)] {
            let is_ww = |edge: &Edge| matches!(edge.reason, Reason::Ww { .. });
            let edges = orders.edges(a, b);
            let needed = edges.filter(|edge| pair || !is_ww(edge));
            if let Some(other_first) = orders.edges(b, a).find(is_ww) {
                sides.extend(needed.map(|edge| [edge, other_first]));
            }
            // Once is enough.
            pair = false;
        }
    }
    let implied = |edge: &Edge| reach.is_some_and(|reach| reach.reaches(edge.from, edge.to));
    sides.retain(|sides| !sides.iter().any(implied));
    if merge {
        let ends = |[a, b]: &[Edge; 2]| (a.from, a.to, b.from, b.to);
        sides.sort_by_key(ends);
        sides.dedup_by_key(|sides| ends(sides));
    }
    let mut constraints = Constraints::default();
    for [either, or] in sides {
        constraints.push([either], [or]);
    }
    constraints
}

fn turn(orders: &Orders, (first, second): Pair) -> Turned {
    let ends = |a: u32, b: u32| [orders.run(a).last_commit, orders.run(b).commit];
    let (there, back) = (ends(first, second), ends(second, first));
    if there <= back {
        Turned {
            ends: [there[0], there[1], back[0], back[1]],
            first,
            second,
        }
    } else {
        Turned {
            ends: [back[0], back[1], there[0], there[1]],
            first: second,
            second: first,
        }
    }
}

/// The edges of a side that say something: each once, none that a path implies, and no ww edge beside an rw edge to the
/// same node, since the writer comes before its readers. `next` is the run that the side puts second.
fn needed<R: Reaches>(
    orders: &Orders,
    next: u32,
    edges: impl Iterator<Item = Edge>,
    reach: Option<&R>,
) -> Vec<Edge> {
    let implied = |edge: &Edge| reach.is_some_and(|reach| reach.reaches(edge.from, edge.to));
    let mut kept: Vec<Edge> = edges.filter(|edge| !implied(edge)).collect();
    kept.sort_by_key(|edge| (edge.from, edge.to));
    kept.dedup_by_key(|edge| (edge.from, edge.to));
    let is_rw = |edge: &Edge| matches!(edge.reason, Reason::Rw { .. });
    let next = orders.run(next);
    if next.install == next.commit && kept.iter().any(is_rw) {
        kept.retain(is_rw);
    }
    kept
}
