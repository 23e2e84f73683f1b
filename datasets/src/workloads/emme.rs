//! Emme's workloads: one table of three columns (the key, `c1` and `c2`), five operations a transaction.
//!
//! *Items*: 30 % updates, 40 % reads, 20 % increments (a read, then an update), 10 % inserts, which replace a row that is there.
//! *Predicates*: 10 % inserts; the others are reads and updates in equal parts, and a share of them chooses rows by
//! `c1 between a and b`, as a range, or through its least or greatest value.

use kingsnake_history::model::Function;
use kingsnake_history::rng::Rng;

use super::keys::Keys;
use super::{Workload, WorkloadKind};
use crate::store::{
    Cells, Change, ClientTransaction, ColumnOf, Key, Schema, TableOf, Test, TxnStep, Where, key,
};

/// Numbers are from 0 to this, and a condition spans a tenth of them.
const NUMBERS: usize = 1_000;
const SPAN: i64 = 100;

const TABLES: Schema = Schema(&[TableOf {
    name: "t",
    columns: &[ColumnOf::number("c1"), ColumnOf::number("c2")],
}]);

fn put(key: Key, number: i64, is_insert: bool) -> TxnStep {
    let cells: Cells = [number, number % 7, 0, 0, 0, 0];
    TxnStep::Put(key, cells, is_insert)
}

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

    fn schema(&self) -> Schema {
        TABLES
    }

    fn transaction(&self, rng: &mut Rng) -> Box<dyn ClientTransaction> {
        let mut plan = Vec::with_capacity(self.n_ops);
        for _ in 0..self.n_ops {
            let key = key(0, self.keys.one(rng));
            let number = rng.below(NUMBERS) as i64;
            let drawn = rng.below(100);
            plan.push(match self.predicates {
                None => match drawn {
                    0..30 => Planned::Step(put(key, number, false)),
                    30..70 => Planned::Step(TxnStep::Read(key)),
                    70..90 => Planned::Increment(key),
                    _ => Planned::Step(put(key, number, true)),
                },
                Some(_) if drawn < 10 => Planned::Step(put(key, number, true)),
                Some(share) => {
                    let is_read = drawn < 55;
                    if rng.chance(share) {
                        let low = rng.below(NUMBERS) as i64;
                        let asked = Where::table(0).and(0, Test::Between(low, low + SPAN));
                        Planned::Step(match (is_read, rng.below(4)) {
                            (true, 0) => TxnStep::Aggregate(asked, Function::Min, Some(0)),
                            (true, 1) => TxnStep::Aggregate(asked, Function::Max, Some(0)),
                            (true, _) => TxnStep::Select(asked),
                            (false, _) => {
                                let changes = [(0, number), (1, number % 7)];
                                let changes = changes.map(|(at, to)| Change::To(at, to));
                                TxnStep::UpdateWhere(asked, changes.to_vec())
                            }
                        })
                    } else {
                        Planned::Step(if is_read {
                            TxnStep::Read(key)
                        } else {
                            put(key, number, false)
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
            return Some(put(key, read + 1, false));
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
