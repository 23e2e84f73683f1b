//! Which reads must be removed with writes, so that a part of a history is violated only if the whole is.
//!
//! A removed write never happened. A read is kept only if some execution of the whole history, without the removed
//! operations, still returns the same: all its possible writers must be kept. Removed appends are cut out of the lists
//! that were read.

use std::collections::{BTreeMap, BTreeSet};

use kingsnake_history::model::{
    Act, CompareOutcome, History, KeyId, Op, Predicate, Snapshot, TxnPiece, ValueId,
};

/// The possible writers, by pieces of a history.
pub(super) struct Writers<'h> {
    history: &'h History,
    pieces: &'h [TxnPiece],
    of_value: Vec<Vec<usize>>,
    of_key: BTreeMap<KeyId, Vec<usize>>,
    /// Deletes.
    of_absence: BTreeMap<KeyId, Vec<usize>>,
}

impl<'h> Writers<'h> {
    pub(super) fn new(history: &'h History, pieces: &'h [TxnPiece]) -> Self {
        let mut writers = Writers {
            history,
            pieces,
            of_value: vec![Vec::new(); history.n_values()],
            of_key: BTreeMap::new(),
            of_absence: BTreeMap::new(),
        };
        for (at, piece) in pieces.iter().enumerate() {
            for &op in history.piece_ops(piece) {
                if let Op::Write { key, value } | Op::Append { key, value } = op {
                    writers.of_value[value.index()].push(at);
                    writers.of_key.entry(key).or_default().push(at);
                    if history.is_absence(value) {
                        writers.of_absence.entry(key).or_default().push(at);
                    }
                }
            }
        }
        writers
    }

    /// Marks as removed every piece that depends on removed ones.
    pub(super) fn remove_orphans(&self, is_removed: &mut [bool]) {
        // A removed piece may write too, so others follow.
        loop {
            let mut changed = false;
            for at in 0..self.pieces.len() {
                if !is_removed[at] && self.is_orphan(&self.pieces[at], is_removed) {
                    is_removed[at] = true;
                    changed = true;
                }
            }
            if !changed {
                return;
            }
        }
    }

    /// Whether a value was appended once, by a piece that is removed.
    pub(super) fn is_gone(&self, value: ValueId, is_removed: &[bool]) -> bool {
        matches!(self.of_value[value.index()][..], [only] if is_removed[only])
    }

    fn is_orphan(&self, piece: &TxnPiece, is_removed: &[bool]) -> bool {
        let ops = self.history.piece_ops(piece);
        let reads = ops.iter().any(|&op| self.lacks(op, is_removed));
        let refused = piece.compare.is_some_and(|at| {
            let compare = self.history.all_compares()[at];
            compare.outcome == CompareOutcome::Refused
                && has_removed(self.of_key.get(&compare.key), is_removed)
        });
        let condition = piece.predicate.is_some_and(|at| {
            let predicate = &self.history.all_predicates()[at].1;
            self.misjudges(predicate, ops, is_removed)
        });
        reads || refused || condition
    }

    /// Whether a removed piece may have written a version. A read of nothing may have read any delete.
    fn is_lost(&self, value: ValueId, is_removed: &[bool]) -> bool {
        let key = self.history.value_key(value);
        has_removed(Some(&self.of_value[value.index()]), is_removed)
            || self.history.is_absence(value)
                && !self.history.is_tombstone(value)
                && has_removed(self.of_absence.get(&key), is_removed)
    }

    /// Whether an operation read something removed.
    fn lacks(&self, op: Op, is_removed: &[bool]) -> bool {
        match op {
            Op::Write { .. } | Op::Append { .. } => false,
            Op::Read { value, .. } => self.is_lost(value, is_removed),
            Op::ReadList { list, .. } => self.history.list(list).iter().any(|&item| {
                has_removed(Some(&self.of_value[item.index()]), is_removed)
                    && !self.is_gone(item, is_removed)
            }),
            Op::Range { range } => {
                let rows = self.history.range(range).rows;
                let shown: BTreeSet<KeyId> = rows
                    .iter()
                    .map(|&row| self.history.value_key(row))
                    .collect();
                rows.iter().any(|&row| self.is_lost(row, is_removed))
                    || self.of_absence.iter().any(|(&key, deletes)| {
                        self.history.touches(op, key)
                            && !shown.contains(&key)
                            && has_removed(Some(deletes), is_removed)
                    })
            }
        }
    }

    /// Whether a condition may have looked at something removed. A row that it did not return can be removed as a whole.
    fn misjudges(&self, predicate: &Predicate, returned: &[Op], is_removed: &[bool]) -> bool {
        if let Some(Snapshot::Set(versions)) = &predicate.snapshot
            && versions.iter().any(|&it| self.is_lost(it, is_removed))
        {
            return true;
        }
        let table = self.history.queries()[predicate.query as usize].table;
        let is_aggregate = matches!(predicate.act, Act::Aggregate { .. });
        self.of_key.iter().any(|(&key, writers)| {
            let is_of = |op: &&Op| op.key() == Some(key);
            let is_read = |op: &Op| matches!(op, Op::Read { .. });
            // A row changed without being shown had some version that satisfies the condition.
            let is_settled = || !is_aggregate && returned.iter().filter(is_of).any(is_read);
            let is_free = || {
                !is_aggregate
                    && !self.history.is_there_initially(key)
                    && !returned.iter().any(|it| it.key() == Some(key))
                    && writers.iter().all(|&at| is_removed[at])
            };
            self.history.table_of(key) == Some(table)
                && writers.iter().any(|&at| is_removed[at])
                && !is_settled()
                && !is_free()
        })
    }
}

fn has_removed(pieces: Option<&Vec<usize>>, is_removed: &[bool]) -> bool {
    pieces.is_some_and(|it| it.iter().any(|&at| is_removed[at]))
}
