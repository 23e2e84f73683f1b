//! Gaps of range queries in the graph: helper nodes over the sorted keys, so that a reader whose gap holds thousands of keys has a
//! few edges.
//!
//! The helpers form a segment tree: one stands for an interval of keys and leads to those of its two halves, that of a single key
//! to the writers that overwrite the key's initial version. A gap is the union of O(log n) such intervals. So a reader reaches exactly the
//! writers that an rw edge for each key of its gaps would lead to. Helpers stand for no transaction, and no order is about them.

use std::ops::Range;

use super::{Edge, Places, reasons};
use crate::model::KeyId;
use crate::resolve::Gaps;

/// No helper.
const NONE: u32 = u32::MAX;

/// The helpers, by their positions in the tree: that of a place among n is n + place, and the halves of x are 2x and 2x + 1.
#[derive(Debug)]
pub(super) struct Helpers {
    node: Vec<u32>,
}

impl Helpers {
    /// Makes the helpers that some gap needs, numbered from `n_nodes` on, and their edges.
    pub(super) fn new(
        gaps: &Gaps,
        places: &Places,
        n_nodes: &mut usize,
        edges: &mut Vec<Edge>,
    ) -> Self {
        let n_places = gaps.keys().len();
        if gaps.is_empty() {
            return Helpers { node: Vec::new() };
        }
        let mut node = vec![NONE; 2 * n_places];
        let newest = || {
            gaps.all()
                .iter()
                .filter(|gap| places.reads_newest(gap.reader))
        };
        for gap in newest() {
            cover(n_places, &gap.places, |at| node[at] = 0);
        }
        for at in 1..2 * n_places {
            if node[at] == NONE {
                continue;
            }
            node[at] = *n_nodes as u32;
            *n_nodes += 1;
            if at < n_places {
                node[2 * at] = 0;
                node[2 * at + 1] = 0;
            }
        }
        let reason = reasons::GAP;
        for gap in newest() {
            let from = places.snap(gap.reader);
            cover(n_places, &gap.places, |at| {
                let to = node[at];
                edges.push(Edge { from, to, reason });
            });
        }
        for at in (1..n_places).filter(|&at| node[at] != NONE) {
            for half in [2 * at, 2 * at + 1] {
                let (from, to) = (node[at], node[half]);
                edges.push(Edge { from, to, reason });
            }
        }
        Helpers { node }
    }

    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.node.is_empty()
    }

    /// The helpers that stand for the initial version of a key as a reader of it would.
    pub(super) fn readers<'a>(
        &'a self,
        gaps: &'a Gaps,
        key: KeyId,
    ) -> impl Iterator<Item = u32> + 'a {
        let n_places = self.node.len() / 2;
        let helpers = gaps.places(key).filter(move |_| n_places > 0);
        let helpers = helpers.map(move |place| self.node[n_places + place as usize]);
        helpers.filter(|&node| node != NONE)
    }
}

/// The positions in a tree over `n_places` whose intervals are disjoint and together make up some places.
pub fn cover(n_places: usize, places: &Range<u32>, mut take: impl FnMut(usize)) {
    let mut low = n_places + places.start as usize;
    let mut high = n_places + places.end as usize;
    while low < high {
        if low % 2 == 1 {
            take(low);
            low += 1;
        }
        if high % 2 == 1 {
            high -= 1;
            take(high);
        }
        low /= 2;
        high /= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places below a position.
    fn leaves(n_places: usize, at: usize, out: &mut Vec<u32>) {
        if at >= n_places {
            out.push((at - n_places) as u32);
        } else {
            leaves(n_places, 2 * at, out);
            leaves(n_places, 2 * at + 1, out);
        }
    }

    #[test]
    fn every_interval_is_covered_once_and_by_few() {
        for n_places in 1..40_usize {
            for start in 0..n_places as u32 {
                for end in start..=n_places as u32 {
                    let (mut found, mut n_positions) = (Vec::new(), 0);
                    cover(n_places, &(start..end), |at| {
                        n_positions += 1;
                        leaves(n_places, at, &mut found);
                    });
                    found.sort_unstable();
                    assert_eq!(found, (start..end).collect::<Vec<u32>>());
                    assert!(n_positions <= 2 * n_places.ilog2() as usize + 2);
                }
            }
        }
    }
}
