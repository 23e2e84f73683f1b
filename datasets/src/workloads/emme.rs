//! Emme's workloads: one table of three columns (the key, `c1` and `c2`), five operations a transaction.
//!
//! *Items*: 30 % updates, 40 % reads, 20 % increments (a read, then an update), 10 % inserts, which replace a row that is there.
//! *Predicates*: 10 % inserts; the others are reads and updates in equal parts, and a share of them chooses rows by
//! `c1 between a and b`, as a range, or through its least or greatest value.

use kingsnake_history::rng::Rng;

use super::keys::Keys;
use super::{Workload, WorkloadKind};
use crate::store::{ClientTransaction, Key, TxnStep};

/// Numbers are from 0 to this, and a condition spans a tenth of them.
const NUMBERS: usize = 1_000;
const SPAN: i64 = 100;

pub(super) struct Emme {
    pub(super) keys: Keys,
    pub(super) n_ops: usize,
    /// How many of the reads and updates choose rows by a condition, in percent; `None` for the item workload.
    pub(super) predicates: Option<usize>,
}

impl Workload for Emme {
    fn kind(&self) -> WorkloadKind {
        WorkloadKind::Table
    }

    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let mut plan = Vec::with_capacity(self.n_ops);
        for _ in 0..self.n_ops {
            let key = self.keys.one(rng);
            let number = rng.below(NUMBERS) as i64;
            let drawn = rng.below(100);
            plan.push(match self.predicates {
                None => match drawn {
                    0..30 => Planned::Step(TxnStep::Put(key, number, false)),
                    30..70 => Planned::Step(TxnStep::Read(key)),
                    70..90 => Planned::Increment(key),
                    _ => Planned::Step(TxnStep::Put(key, number, true)),
                },
                Some(_) if drawn < 10 => Planned::Step(TxnStep::Put(key, number, true)),
                Some(share) => {
                    let is_read = drawn < 55;
                    if rng.chance(share) {
                        let low = rng.below(NUMBERS) as i64;
                        let span = (low, low + SPAN);
                        Planned::Step(match (is_read, rng.below(4)) {
                            (true, 0) => TxnStep::Extreme(span.0, span.1, false),
                            (true, 1) => TxnStep::Extreme(span.0, span.1, true),
                            (true, _) => TxnStep::Select(span.0, span.1),
                            (false, _) => TxnStep::UpdateWhere(span.0, span.1, number),
                        })
                    } else {
                        Planned::Step(if is_read {
                            TxnStep::Read(key)
                        } else {
                            TxnStep::Put(key, number, false)
                        })
                    }
                }
            });
        }
        plan.reverse();
        Box::new(Running {
            plan,
            incremented: None,
        })
    }
}

enum Planned {
    Step(TxnStep),
    Increment(Key),
}

struct Running {
    /// What is left, last first.
    plan: Vec<Planned>,
    /// The key that was read to be incremented.
    incremented: Option<Key>,
}

impl ClientTransaction for Running {
    fn next(&mut self, read: i64) -> Option<TxnStep> {
        if let Some(key) = self.incremented.take() {
            return Some(TxnStep::Put(key, read + 1, false));
        }
        match self.plan.pop()? {
            Planned::Step(step) => Some(step),
            Planned::Increment(key) => {
                self.incremented = Some(key);
                Some(TxnStep::Read(key))
            }
        }
    }
}
