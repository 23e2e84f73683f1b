//! Mini-transactions (MTC): at most two reads and at most two writes, and every write comes after a read of its key.
//!
//! So the version order of every key is known from the reads, and checking takes linear time.

use kingsnake_history::rng::Rng;

use super::Workload;
use super::keys::Keys;
use crate::store::Step::{Read, Write};
use crate::store::{Key, Step, Transaction};

pub(super) struct Mini {
    pub(super) keys: Keys,
}

/// Every shape of a mini-transaction on one key or two.
const SHAPES: [fn(Key, Key) -> Vec<Step>; 7] = [
    |x, _| vec![Read(x)],
    |x, _| vec![Read(x), Write(x, 0)],
    |x, y| vec![Read(x), Read(y)],
    |x, y| vec![Read(x), Read(y), Write(x, 0)],
    |x, y| vec![Read(x), Write(x, 0), Read(y)],
    |x, y| vec![Read(x), Read(y), Write(x, 0), Write(y, 0)],
    |x, y| vec![Read(x), Write(x, 0), Read(y), Write(y, 0)],
];

impl Workload for Mini {
    fn transaction(&self, rng: &mut Rng) -> Box<dyn Transaction> {
        let keys = self.keys.different(2, rng);
        let shape = SHAPES[rng.below(SHAPES.len())];
        Box::new(shape(keys[0], keys[1]).into_iter())
    }
}
