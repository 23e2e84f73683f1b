//! Lists that are read and appended to, half and half (Jepsen's `list-append`).

use kingsnake_history::rng::Rng;

use super::keys::Keys;
use super::{Kind, Workload};
use crate::store::{Step, Transaction};

pub(super) struct Lists {
    pub(super) keys: Keys,
    pub(super) n_ops: usize,
}

impl Workload for Lists {
    fn kind(&self) -> Kind {
        Kind::Lists
    }

    fn transaction(&self, rng: &mut Rng) -> Box<dyn Transaction> {
        // A transaction may meet a key again, and must then find its own appends.
        let steps = (0..rng.between(1, self.n_ops)).map(|_| {
            let key = self.keys.one(rng);
            if rng.chance(50) {
                Step::ReadList(key)
            } else {
                Step::Append(key)
            }
        });
        Box::new(steps.collect::<Vec<Step>>().into_iter())
    }
}
