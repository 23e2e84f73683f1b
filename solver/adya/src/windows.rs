//! The parts of a guessed order in which cycles can lie.
//!
//! An edge that runs backwards in the order spans a part of it. Every cycle runs backwards somewhere and comes back by edges that
//! run forwards, so it lies within parts that overlap: a *window*. Edges that leave a window run forwards and are on no cycle.

use std::sync::Arc;

use crate::versions::NOBODY;

/// The place of every transaction in an order of all of them.
pub(crate) fn places(order: &[u32]) -> Vec<u32> {
    let mut place = vec![0; order.len()];
    for (at, &txn) in order.iter().enumerate() {
        place[txn as usize] = at as u32;
    }
    place
}

pub(crate) struct Windows<'a> {
    order: &'a [u32],
    /// The window of every transaction, or [`NOBODY`].
    of: Arc<[u32]>,
}

impl<'a> Windows<'a> {
    /// The windows that these edges span, all of which run backwards in the order.
    pub(crate) fn new(order: &'a [u32], backwards: impl Iterator<Item = (u32, u32)>) -> Self {
        let place = places(order);
        let mut spans: Vec<(u32, u32)> = backwards
            .map(|(from, to)| (place[to as usize], place[from as usize]))
            .collect();
        spans.sort_unstable();
        let mut of = vec![NOBODY; order.len()];
        // Where the window at hand ends, and which transactions have theirs already.
        let (mut window, mut end) = (NOBODY, None);
        for (low, high) in spans {
            let from = match end {
                Some(end) if low <= end => end + 1,
                _ => {
                    window = window.wrapping_add(1);
                    low
                }
            };
            for at in from..=high {
                of[order[at as usize] as usize] = window;
            }
            end = Some(end.unwrap_or(0).max(high));
        }
        Windows {
            order,
            of: of.into(),
        }
    }

    pub(crate) fn of(&self) -> &Arc<[u32]> {
        &self.of
    }

    /// The guessed order with the transactions of each window in the order given.
    pub(crate) fn arrange(&self, sorted: &[u32]) -> Vec<u32> {
        let n_windows = self.of.iter().filter(|&&it| it != NOBODY).max();
        let mut members: Vec<Vec<u32>> =
            vec![Vec::new(); n_windows.map_or(0, |&it| it as usize + 1)];
        for &txn in sorted.iter().rev() {
            if self.of[txn as usize] != NOBODY {
                members[self.of[txn as usize] as usize].push(txn);
            }
        }
        let all = self.order.iter();
        let arranged = all.map(|&txn| match self.of[txn as usize] {
            NOBODY => txn,
            window => members[window as usize].pop().unwrap_or(txn),
        });
        arranged.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_spans_are_one_window_and_keep_their_slots() {
        let order = [5, 4, 3, 2, 1, 0];
        // Places 0 to 2 and 1 to 3 overlap; 5 is alone.
        let windows = Windows::new(&order, [(3, 5), (2, 4)].into_iter());
        assert_eq!(&windows.of()[..], [NOBODY, NOBODY, 0, 0, 0, 0]);
        assert_eq!(windows.arrange(&[0, 1, 2, 3, 4, 5]), [2, 3, 4, 5, 1, 0]);
        let apart = Windows::new(&order, [(4, 5), (0, 1)].into_iter());
        assert_eq!(&apart.of()[..], [1, 1, NOBODY, NOBODY, 0, 0]);
        assert_eq!(apart.arrange(&[0, 1, 2, 3, 4, 5]), [4, 5, 3, 2, 0, 1]);
    }
}
