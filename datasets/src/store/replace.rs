//! Replaces keys that were written often by fresh ones, as Jepsen retires keys.

use super::engine::{Open, Store};
use super::{Key, TxnStep};

impl Store {
    /// The step on the key that stands in the place of the one that it names.
    pub(super) fn placed(&mut self, open: &mut Open, step: TxnStep) -> TxnStep {
        let Some(most) = self.max_writes else {
            return step;
        };
        let (key, is_write) = match step {
            TxnStep::Read(key) | TxnStep::ReadList(key) | TxnStep::ReadRow(key) => (key, false),
            TxnStep::Write(key, _)
            | TxnStep::Append(key)
            | TxnStep::Insert(key)
            | TxnStep::Delete(key) => (key, true),
            TxnStep::Range(..)
            | TxnStep::Put(..)
            | TxnStep::Select(..)
            | TxnStep::UpdateWhere(..)
            | TxnStep::DeleteWhere(..)
            | TxnStep::Aggregate(..) => return step,
        };
        let (n_writes, n_replaced) = self.written.entry(key).or_default();
        let known = open.placed.iter().find(|(asked, _)| *asked == key);
        let placed = known.map_or(place_of(key, *n_replaced), |(_, placed)| *placed);
        if known.is_none() {
            open.placed.push((key, placed));
        }
        if is_write && placed == place_of(key, *n_replaced) {
            *n_writes += 1;
            if *n_writes >= most {
                (*n_writes, *n_replaced) = (0, *n_replaced + 1);
            }
        }
        match step {
            TxnStep::Read(_) => TxnStep::Read(placed),
            TxnStep::ReadList(_) => TxnStep::ReadList(placed),
            TxnStep::ReadRow(_) => TxnStep::ReadRow(placed),
            TxnStep::Write(_, beside) => TxnStep::Write(placed, beside),
            TxnStep::Append(_) => TxnStep::Append(placed),
            TxnStep::Insert(_) => TxnStep::Insert(placed),
            TxnStep::Delete(_) => TxnStep::Delete(placed),
            TxnStep::Range(..)
            | TxnStep::Put(..)
            | TxnStep::Select(..)
            | TxnStep::UpdateWhere(..)
            | TxnStep::DeleteWhere(..)
            | TxnStep::Aggregate(..) => step,
        }
    }
}

/// The key that stands in the place of one that was replaced so often.
fn place_of(key: Key, n_replaced: i64) -> Key {
    let bits = if key < 1 << 20 { 20 } else { 53 };
    key + (n_replaced << bits)
}
