//! Reads and writes of lists or of registers, half and half, of random lengths (Jepsen's `list-append` and `rw-register`).

use kingsnake_history::rng::Rng;

use super::keys::Keys;
use super::{Kind, Workload};
use crate::store::{Step, Transaction};

pub(super) struct Micro {
    pub(super) keys: Keys,
    pub(super) n_ops: usize,
    /// Lists that are appended to, or registers.
    pub(super) kind: Kind,
}

impl Workload for Micro {
    fn kind(&self) -> Kind {
        self.kind
    }

    fn transaction(&self, rng: &mut Rng) -> Box<dyn Transaction> {
        // A transaction may meet a key again, and must then find what it wrote itself.
        let steps = (0..rng.between(1, self.n_ops)).map(|_| {
            let key = self.keys.one(rng);
            match (self.kind, rng.chance(50)) {
                (Kind::Lists, true) => Step::ReadList(key),
                (Kind::Lists, false) => Step::Append(key),
                (_, true) => Step::Read(key),
                (_, false) => Step::Write(key, 0),
            }
        });
        Box::new(steps.collect::<Vec<Step>>().into_iter())
    }
}
