//! Reads and writes of lists or of registers, half and half, of random lengths (Jepsen's `list-append` and `rw-register`).

use kingsnake_history::rng::Rng;

use super::keys::Keys;
use super::{Workload, WorkloadKind};
use crate::store::{ClientTransaction, TxnStep};

pub(super) struct Micro {
    pub(super) keys: Keys,
    pub(super) n_ops: usize,
    /// Lists that are appended to, or registers.
    pub(super) kind: WorkloadKind,
}

impl Workload for Micro {
    fn kind(&self) -> WorkloadKind {
        self.kind
    }

    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        // A transaction may meet a key again, and must then find what it wrote itself.
        let steps = (0..rng.between(1, self.n_ops)).map(|_| {
            let key = self.keys.one(rng);
            match (self.kind, rng.chance(50)) {
                (WorkloadKind::Lists, true) => TxnStep::ReadList(key),
                (WorkloadKind::Lists, false) => TxnStep::Append(key),
                (_, true) => TxnStep::Read(key),
                (_, false) => TxnStep::Write(key, 0),
            }
        });
        Box::new(steps.collect::<Vec<TxnStep>>().into_iter())
    }
}
