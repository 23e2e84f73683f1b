//! The paths that deciding choices needs, listed before the first round, so that a device can compute them at once.

use super::judge::Reaches;
use crate::problem::Problem;
use rustc_hash::FxHashSet;

/// If there are more, the CPU computes each on demand.
const MOST_ASKED: usize = 1 << 24;

/// Every pair of nodes that may be asked about: the ends of guarded edges both ways round; and for each order that a
/// guard or a clause names what makes it impossible, and the edges that it brings. `None` where there are too many.
pub(super) fn asked(problem: &Problem) -> Option<Vec<(u32, u32)>> {
    let mut pairs = Vec::new();
    for guarded in problem.logic.guarded() {
        let (from, to) = (guarded.edge.from, guarded.edge.to);
        pairs.extend([(from, to), (to, from)]);
    }
    let mut named: Vec<(u32, u32)> = problem.logic.orders().collect();
    named.extend(problem.logic.orders().map(|(a, b)| (b, a)));
    named.sort_unstable();
    named.dedup();
    let orders = &problem.orders;
    for (a, b) in named {
        let (first, next) = (orders.run(a), orders.run(b));
        pairs.push((next.install, first.last_commit));
        pairs.extend(orders.readers(a).iter().map(|&it| (next.commit, it)));
        pairs.extend(orders.edges(a, b).map(|edge| (edge.from, edge.to)));
        if pairs.len() > MOST_ASKED {
            return None;
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    Some(pairs)
}

/// Those pairs with a path.
#[derive(Default)]
pub(super) struct Answered(FxHashSet<(u32, u32)>);

impl Answered {
    /// The answers to the questions, in their order.
    pub(super) fn new(asked: &[(u32, u32)], answers: &[bool]) -> Self {
        let both = asked.iter().zip(answers);
        Answered(both.filter(|it| *it.1).map(|it| *it.0).collect())
    }

    /// These have paths as well.
    pub(super) fn add(&mut self, pairs: impl IntoIterator<Item = (u32, u32)>) {
        self.0.extend(pairs);
    }
}

impl Reaches for Answered {
    fn reaches(&self, from: u32, to: u32) -> bool {
        self.0.contains(&(from, to))
    }
}
