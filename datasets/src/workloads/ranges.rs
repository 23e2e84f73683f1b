//! Rows that are inserted, read, updated, deleted and asked for by ranges (Viper's `V-Range` B, RQH and IDH).
//!
//! The weights, the keys, eight operations of one sort a transaction and ranges of eleven keys are those of Viper's
//! published benchmark. There inserts take keys that were never used; here they take any, so that rows come back after a
//! delete, and a transaction stays a function of its random numbers.

use kingsnake_history::rng::Rng;

use super::keys::Keys;
use super::{Granularity, Workload, WorkloadKind};
use crate::store::{ClientTransaction, Key, TxnStep};

/// A range query asks for a key and the ten after it.
const REACH: Key = 10;

pub(super) struct Ranges {
    pub(super) keys: Keys,
    pub(super) n_ops: usize,
    /// Of inserts, reads, updates, deletes and range queries.
    pub(super) weights: [usize; 5],
    pub(super) granularity: Granularity,
}

const SORTS: [fn(Key) -> TxnStep; 5] = [
    TxnStep::Insert,
    TxnStep::ReadRow,
    |key| TxnStep::Write(key, 0),
    TxnStep::Delete,
    |key| TxnStep::Range(key, key + REACH),
];

impl Ranges {
    fn sort(&self, rng: &mut Rng) -> fn(Key) -> TxnStep {
        let mut drawn = rng.below(self.weights.iter().sum());
        for (&weight, &sort) in self.weights.iter().zip(&SORTS) {
            if drawn < weight {
                return sort;
            }
            drawn -= weight;
        }
        SORTS[0]
    }
}

impl Workload for Ranges {
    fn kind(&self) -> WorkloadKind {
        WorkloadKind::Rows
    }

    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let whole = self.sort(rng);
        let keys = self.keys.different(self.n_ops, rng);
        let steps = keys.into_iter().map(|key| match self.granularity {
            Granularity::Operation => self.sort(rng)(key),
            Granularity::Transaction => whole(key),
        });
        Box::new(steps.collect::<Vec<TxnStep>>().into_iter())
    }
}
