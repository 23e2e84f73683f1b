//! Replaces keys that were written often by fresh ones, as Jepsen retires keys.

use super::engine::{Open, Store};
use super::{Key, Step};

impl Store {
    /// The step on the key that stands in the place of the one that it names.
    pub(super) fn placed(&mut self, open: &mut Open, step: Step) -> Step {
        let Some(most) = self.max_writes else {
            return step;
        };
        let (key, is_write) = match step {
            Step::Read(key) | Step::ReadList(key) | Step::ReadRow(key) => (key, false),
            Step::Write(key, _) | Step::Append(key) | Step::Insert(key) | Step::Delete(key) => {
                (key, true)
            }
            Step::Range(..)
            | Step::Put(..)
            | Step::Select(..)
            | Step::UpdateWhere(..)
            | Step::DeleteWhere(..)
            | Step::Aggregate(..) => return step,
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
            Step::Read(_) => Step::Read(placed),
            Step::ReadList(_) => Step::ReadList(placed),
            Step::ReadRow(_) => Step::ReadRow(placed),
            Step::Write(_, beside) => Step::Write(placed, beside),
            Step::Append(_) => Step::Append(placed),
            Step::Insert(_) => Step::Insert(placed),
            Step::Delete(_) => Step::Delete(placed),
            Step::Range(..)
            | Step::Put(..)
            | Step::Select(..)
            | Step::UpdateWhere(..)
            | Step::DeleteWhere(..)
            | Step::Aggregate(..) => step,
        }
    }
}

/// The key that stands in the place of one that was replaced so often.
fn place_of(key: Key, n_replaced: i64) -> Key {
    let bits = if key < 1 << 20 { 20 } else { 53 };
    key + (n_replaced << bits)
}
