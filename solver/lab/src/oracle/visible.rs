//! Parallel snapshot isolation by its axioms (Cerone and Gotsman): there is a visibility inside the order of commits in which every
//! external read returns the last visible write (EXT), sessions are visible (SESSION), visibility is transitive (TRANSVIS), and of two
//! writers of a key one sees the other (NOCONFLICT). Every visibility is tried.

use super::{Search, Set, Store};

impl Search<'_> {
    /// The sets of transactions that the next one can have seen.
    pub(super) fn visible_sets(&mut self, next: usize, placed: Set) -> Vec<Set> {
        let must = (self.before[next] | self.conflicts[next]) & placed;
        let mut found = Vec::new();
        for set in 0..=placed {
            let is_within = set & placed == set && set & must == must;
            let mut members = (0..self.txns.len()).filter(|&it| set & (1 << it) != 0);
            let is_closed = members.all(|it| self.past[it] & set == self.past[it]);
            if is_within && is_closed && self.reads_from_set(next, set) {
                found.push(set);
            }
        }
        found
    }

    /// Whether a transaction read what those in a set left.
    fn reads_from_set(&mut self, txn: usize, set: Set) -> bool {
        let mut store: Store = self.stores[0].clone();
        for &other in self.order.iter().filter(|&&it| set & (1 << it) != 0) {
            self.install(&mut store, other);
        }
        self.reads_from(&store, txn)
    }
}
