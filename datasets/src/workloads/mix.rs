//! Reads, blind writes and read-modify-writes in given percentages (Cobra's `BlindW`, King Cobra's three workloads).
//!
//! A transaction's operations are on different keys, so that a write is a read-modify-write only where one was drawn. A
//! read-modify-write is one operation, which the history shows as a read and a write.

use kingsnake_history::rng::Rng;

use super::keys::Keys;
use super::{Granularity, Workload};
use crate::store::{ClientTransaction, TxnStep};

pub(super) struct Mix {
    pub(super) keys: Keys,
    pub(super) n_ops: usize,
    /// Of reads, of blind writes, of read-modify-writes.
    pub(super) percentages: [usize; 3],
    pub(super) granularity: Granularity,
}

#[derive(Clone, Copy)]
enum MixKind {
    Read,
    Write,
    Both,
}

impl Mix {
    fn sort(&self, rng: &mut Rng) -> MixKind {
        let [reads, writes, both] = self.percentages;
        let drawn = rng.below(reads + writes + both);
        if drawn < reads {
            MixKind::Read
        } else if drawn < reads + writes {
            MixKind::Write
        } else {
            MixKind::Both
        }
    }
}

impl Workload for Mix {
    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let whole = self.sort(rng);
        let mut steps = Vec::with_capacity(2 * self.n_ops);
        for key in self.keys.different(self.n_ops, rng) {
            let sort = match self.granularity {
                Granularity::Operation => self.sort(rng),
                Granularity::Transaction => whole,
            };
            if matches!(sort, MixKind::Read | MixKind::Both) {
                steps.push(TxnStep::Read(key));
            }
            if matches!(sort, MixKind::Write | MixKind::Both) {
                steps.push(TxnStep::Write(key, 0));
            }
        }
        Box::new(steps.into_iter())
    }
}
