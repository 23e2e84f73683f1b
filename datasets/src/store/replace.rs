//! Replaces keys that were written often by fresh ones, as Jepsen retires keys.
//!
//! A register or a list is replaced by an empty one. Rows that are asked for by ranges of keys are about their neighbours, so
//! all of them are replaced together, by an empty table. A row of a table that conditions choose gets a new key: a transaction that changes
//! it next deletes it and inserts it under that key.
//!
//! Transactions that run at the same time may have met a key before it was replaced. One whose commit would give a key more
//! writes than allowed rolls back, and meets the fresh key when it is tried again; each such abort is owed to a commit, so some
//! transaction always gets on. Only one that by itself writes a key more often than allowed does so, on a key that is all its
//! own. Rows that conditions choose are met under whatever key they have, so there the bound is not kept by aborts.

use super::engine::{Open, Sort, Store, Versions};
use super::record::Chosen;
use super::schema::GENERATIONS;
use super::{Key, TxnStep};
use crate::workloads::WorkloadKind;

/// The keys of the rows of one epoch.
const EPOCH_BITS: u32 = 32;

impl Store {
    /// The step on the key that stands in the place of the one that it names.
    pub(super) fn placed(&mut self, open: &mut Open, kind: WorkloadKind, step: TxnStep) -> TxnStep {
        let Some(most) = self.max_writes else {
            return step;
        };
        match kind {
            WorkloadKind::Registers | WorkloadKind::Lists => self.replaced(open, most, step),
            WorkloadKind::Rows => self.in_epoch(open, most, step),
            WorkloadKind::Table => self.under_new_key(open, step),
        }
    }

    fn replaced(&mut self, open: &mut Open, most: u64, step: TxnStep) -> TxnStep {
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
        let (n_writes, newest) = self.written.entry(key).or_insert((0, key));
        let known = open.placed.iter().find(|(asked, _)| *asked == key);
        let placed = known.map_or(*newest, |(_, placed)| *placed);
        if known.is_none() {
            open.placed.push((key, placed));
        }
        if is_write && placed == *newest {
            *n_writes += 1;
            if *n_writes >= most {
                *n_writes = 0;
                *newest = next_place(key, *newest, &mut self.n_beyond);
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

    /// The step on the rows of the transaction's epoch. The next one begins when some row was written often enough.
    fn in_epoch(&mut self, open: &mut Open, most: u64, step: TxnStep) -> TxnStep {
        let epoch = *open.epoch.get_or_insert(self.epoch);
        let placed = |key: Key| key + (epoch << EPOCH_BITS);
        if let TxnStep::Write(key, _) | TxnStep::Insert(key) | TxnStep::Delete(key) = step
            && epoch == self.epoch
        {
            let (n_writes, _) = self.written.entry(key).or_default();
            *n_writes += 1;
            if *n_writes >= most {
                self.epoch += 1;
                self.written.clear();
            }
        }
        match step {
            TxnStep::ReadRow(key) => TxnStep::ReadRow(placed(key)),
            TxnStep::Write(key, beside) => TxnStep::Write(placed(key), beside),
            TxnStep::Insert(key) => TxnStep::Insert(placed(key)),
            TxnStep::Delete(key) => TxnStep::Delete(placed(key)),
            TxnStep::Range(low, high) => TxnStep::Range(placed(low), placed(high)),
            other => other,
        }
    }

    /// The step on the newest key of the row that it names; a row that was written often enough gets a new one first.
    fn under_new_key(&mut self, open: &mut Open, step: TxnStep) -> TxnStep {
        match step {
            TxnStep::Read(row) => TxnStep::Read(self.newest_key(open, row)),
            TxnStep::Put(row, cells, is_insert) => {
                let key = self.newest_key(open, row);
                if !self.is_worn(open, key) {
                    return TxnStep::Put(key, cells, is_insert);
                }
                if self.is_there(open, key) {
                    self.met.insert(key);
                    self.delete(open, key);
                }
                TxnStep::Put(key + 1, cells, true)
            }
            other => other,
        }
    }

    /// Gives new keys to those of the rows that were written often enough. Returns whether there were any.
    pub(super) fn replace_worn(&mut self, open: &mut Open, rows: &[Chosen]) -> bool {
        let mut any = false;
        for row in rows {
            if self.max_writes.is_some() && self.is_worn(open, row.key) {
                let cells = *self.cells(row.place);
                self.delete(open, row.key);
                self.put(open, row.key + 1, cells, true);
                any = true;
            }
        }
        any
    }

    /// The newest key of a row that a transaction may see, its own writes included; the first one where it sees none.
    fn newest_key(&self, open: &Open, row: Key) -> Key {
        let keys = row..=row | GENERATIONS;
        let visible = self.visible(open);
        let mut newest_first = self.keys.range(keys.clone()).rev();
        let seen = newest_first.find(|(_, versions)| versions.at(visible).is_some());
        let own = open.pending.iter().map(|write| write.key);
        let own = own.filter(|key| keys.contains(key)).max();
        seen.map(|(&key, _)| key).max(own).unwrap_or(row)
    }

    /// Whether a key was written as often as it may be, and there is another one.
    fn is_worn(&self, open: &Open, key: Key) -> bool {
        let installed = self.keys.get(&key).map_or(0, Versions::n_writes) as u64;
        let n_writes = installed + n_own(open, key);
        self.max_writes.is_some_and(|most| n_writes >= most) && key & GENERATIONS < GENERATIONS
    }

    /// Whether a commit would give a key more writes than allowed, because others wrote it meanwhile.
    pub(super) fn wears_out(&self, open: &Open, kind: WorkloadKind) -> bool {
        let Some(most) = self.max_writes.filter(|_| kind != WorkloadKind::Table) else {
            return false;
        };
        let mut keys = open.pending.iter().map(|write| write.key);
        keys.any(|key| {
            let others = self.n_committed.get(&key).copied().unwrap_or(0);
            others > 0 && others + n_own(open, key) > most
        })
    }

    /// Counts the writes of a commit.
    pub(super) fn wear(&mut self, open: &Open) {
        if self.max_writes.is_some() {
            for write in open.pending.iter().filter(|it| it.sort != Sort::Delete) {
                *self.n_committed.entry(write.key).or_default() += 1;
            }
        }
    }

    /// Whether a transaction sees a row under a key.
    fn is_there(&self, open: &Open, key: Key) -> bool {
        let mut own = open.pending.iter().rev();
        if let Some(own) = own.find(|write| write.key == key) {
            return own.sort != Sort::Delete;
        }
        let versions = self.keys.get(&key);
        let seen = versions.and_then(|versions| versions.at(self.visible(open)));
        seen.is_some_and(|version| !version.is_tombstone)
    }
}

/// How often a transaction has written a key itself; a delete is no write.
fn n_own(open: &Open, key: Key) -> u64 {
    let own = open.own(key).filter(|write| write.sort != Sort::Delete);
    own.count() as u64
}

/// The key that takes the place of `placed`, which stands for `key`. Where there is no number left above, those below zero are
/// given out.
fn next_place(key: Key, placed: Key, n_beyond: &mut i64) -> Key {
    let step = 1 << if key < 1 << 20 { 20 } else { 53 };
    let above = placed.checked_add(step).filter(|_| placed >= 0);
    above.unwrap_or_else(|| {
        *n_beyond += 1;
        -*n_beyond
    })
}
