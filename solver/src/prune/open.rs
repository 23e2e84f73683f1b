//! The pairs that pruning left open, as constraints for a back end.
//!
//! `merge`: one constraint for each unordered pair of transactions, however many keys they share: conflicting orders on two
//! keys are a cycle anyway. `coalesce` (Cobra): one constraint for each pair of runs. Without it there is one for each reader, as
//! in Papadimitriou's polygraph: either the other run comes before the one that it read, or after the reader.
//! Edges that paths imply already are left out.

use super::PruneOptions;
use super::judge::{Pair, Reaches};
use crate::decide::Constraints;
use crate::level::Model;
use crate::polygraph::{Edge, Polygraph, Reason, Run};

/// Lists the pairs of every key, without judging any.
pub(super) fn list_pairs(polygraph: &Polygraph) -> Vec<Pair> {
    let runs = &polygraph.runs;
    let mut pairs = Vec::with_capacity(runs.n_pairs() as usize);
    for key in 0..runs.n_keys() {
        let range = runs.range(key);
        for a in range.clone() {
            for b in a + 1..range.end {
                let (a, b) = (a as u32, b as u32);
                if !polygraph.is_trivial(runs.run(a), runs.run(b)) {
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
    pub(super) fn of(options: PruneOptions) -> Self {
        Form {
            coalesce: options.coalesce,
            merge: options.merge,
        }
    }
}

/// An open pair, turned so that pairs of the same transactions look the same.
struct Turned {
    ends: [u32; 4],
    first: Run,
    second: Run,
}

/// Makes the constraints. `reach` leaves out implied edges; without it all are kept.
pub(super) fn constraints<R: Reaches>(
    polygraph: &Polygraph,
    open: &[Pair],
    reach: Option<&R>,
    form: Form,
) -> Constraints {
    if !form.coalesce {
        return by_reader(polygraph, open, reach, form.merge);
    }
    let mut turned: Vec<Turned> = open.iter().map(|&pair| turn(polygraph, pair)).collect();
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
                polygraph.order_edges(a, b)
            });
            needed(polygraph, edges, reach)
        };
        constraints.push(side(true), side(false));
    }
    constraints
}

/// A constraint for each reader of either run. Where both runs are single versions, SER needs no more: whichever order the
/// readers' choices leave, they agree on it. Longer runs, and writers that must not overlap, need one for the pair too.
fn by_reader<R: Reaches>(
    polygraph: &Polygraph,
    open: &[Pair],
    reach: Option<&R>,
    merge: bool,
) -> Constraints {
    let mut sides: Vec<[Edge; 2]> = Vec::new();
    for &(a, b) in open {
        let (a, b) = (polygraph.runs.run(a), polygraph.runs.run(b));
        let is_long = a.head != a.last || b.head != b.last;
        let mut pair = is_long || polygraph.spec.model == Model::Si;
        #[cfg(test)]
        {
            pair &= !crate::fault::is(crate::fault::Fault::ReadersOnly);
        }
        for (a, b) in [(a, b), (b, a)] {
            let is_ww = |edge: &Edge| matches!(edge.reason, Reason::Ww { .. });
            let edges = polygraph.order_edges(a, b);
            let needed = edges.filter(|edge| pair || !is_ww(edge));
            if let Some(other_first) = polygraph.order_edges(b, a).find(is_ww) {
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

fn turn(polygraph: &Polygraph, (a, b): Pair) -> Turned {
    let versions = polygraph.resolved.versions();
    let (first, second) = (polygraph.runs.run(a), polygraph.runs.run(b));
    let ends = |a: Run, b: Run| [versions.writer(a.last), versions.writer(b.head)];
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

/// The edges of a side that say something: each once, none that a path implies, and for SER no ww edge beside an rw edge
/// to the same transaction, since the writer comes before its readers.
fn needed<R: Reaches>(
    polygraph: &Polygraph,
    edges: impl Iterator<Item = Edge>,
    reach: Option<&R>,
) -> Vec<Edge> {
    let implied = |edge: &Edge| reach.is_some_and(|reach| reach.reaches(edge.from, edge.to));
    let mut kept: Vec<Edge> = edges.filter(|edge| !implied(edge)).collect();
    kept.sort_by_key(|edge| (edge.from, edge.to));
    kept.dedup_by_key(|edge| (edge.from, edge.to));
    let is_rw = |edge: &Edge| matches!(edge.reason, Reason::Rw { .. });
    if polygraph.spec.model == Model::Ser && kept.iter().any(is_rw) {
        kept.retain(is_rw);
    }
    kept
}
