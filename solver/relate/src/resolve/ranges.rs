//! Range queries, and reads that found no row: which version each of the keys was read in.

use super::absence::{Absence, AbsenceOrigin, missing, read_nothing};
use super::reads::{FirstRead, Walk, position_of_write};
use super::versions::{NO_NODE, Node, VersionId};
use super::{ResolveError, UnreturnedQuery};
use crate::model::{History, KeyId, RangeId, TxnId, ValueId};
use crate::verdict::LocalAnomaly;

impl Walk<'_> {
    /// Takes a range query: reads of what it returned, and that nothing was there of the other keys. Those that the transaction
    /// has touched, and those whose absence needs a look, are reads; the rest stays an interval.
    pub(super) fn range(
        &mut self,
        node: Node,
        txn: TxnId,
        at: usize,
        range: RangeId,
    ) -> Result<(), ResolveError> {
        let (history, absences) = (self.history, self.absences);
        let query = history.range(range);
        for &value in query.rows {
            self.poll.step()?;
            let key = history.value_key(value);
            self.touch(txn, key, false)?;
            self.returned_by[key.index()] = range;
            self.read(node, txn, at, key, value)?;
        }
        let spanned = absences.sorted.spanned(history, query);
        let touched = self.under.touched(&spanned);
        let touched = touched.iter().map(|&place| absences.sorted.key(place));
        let others = absences.others(history, query);
        self.reserve_choices(others.len())?;
        // If enough rows are known to be missing, the verdict is decided, and the others are not searched.
        let there = if self.is_listed(LocalAnomaly::MissingRow, txn) {
            &[]
        } else {
            absences.there(history, query)
        };
        let deleted = self.touched_deleted(node, at, range);
        let keys = touched.chain(others.iter().chain(there).copied());
        for key in keys.chain(deleted) {
            self.poll.step()?;
            if self.returned_by[key.index()] != range {
                self.touch(txn, key, false)?;
                self.absence(node, txn, at, key, missing(history, key, query))?;
            }
        }
        self.keep_gaps(node, at, &spanned);
        self.under.span(spanned);
        Ok(())
    }

    /// Keeps a query for the deleted rows that it did not return, if that was asked for; those that the transaction touches
    /// elsewhere need reads too.
    fn touched_deleted(&mut self, node: Node, at: usize, range: RangeId) -> Vec<KeyId> {
        if !self.keep_queries {
            return Vec::new();
        }
        let history = self.history;
        let span = history.range(range).span;
        let is_spanned = |key: &KeyId| {
            span.place(history.symbols(), history.key_token(*key))
                .is_eq()
        };
        self.asked.push(UnreturnedQuery {
            reader: node,
            op: at as u32,
            range,
        });
        self.touched.iter().copied().filter(is_spanned).collect()
    }

    /// Records that a transaction found no row of a key.
    fn absence(
        &mut self,
        node: Node,
        txn: TxnId,
        at: usize,
        key: KeyId,
        absence: Absence,
    ) -> Result<(), ResolveError> {
        let history = self.history;
        if let Some(own) = self.state[key.index()].own() {
            let is_hidden = !(absence.shows_deleted && history.is_tombstone(own));
            if !(history.is_absence(own) && is_hidden) {
                let other = position_of_write(history, txn, own).map(|op| (txn, op));
                self.find(LocalAnomaly::NotMyOwnWrite, txn, at, key, other);
            }
            return Ok(());
        }
        if let FirstRead::Of(first) = self.state[key.index()].read {
            let version = VersionId(self.reads[first as usize].version);
            let is_same = match self.numbering.writer(version) {
                NO_NODE => absence.may_be_initial,
                writer => {
                    let writer = self.node_txn[writer as usize];
                    self.absences.is_delete(key, writer, absence)
                }
            };
            if is_same {
                // Read committed may read a key twice, from two transactions.
                let all = self
                    .keep_reads
                    .then(|| self.absent_versions(key, txn, absence));
                match all.transpose()? {
                    Some(several) if several.len() > 1 => {
                        self.keep_choice(node, at, key, &several);
                    }
                    _ => self.keep(node, at, version),
                }
                return Ok(());
            }
        }
        match self.absences.origin(key, txn, absence) {
            AbsenceOrigin::Initial => {
                self.take_read(node, txn, at, key, self.numbering.initial(key));
            }
            AbsenceOrigin::Deleted(writer) => {
                if let Some(version) = self.version_by(key, writer) {
                    self.take_read(node, txn, at, key, version);
                }
            }
            AbsenceOrigin::Nobody => self.find(LocalAnomaly::MissingRow, txn, at, key, None),
            AbsenceOrigin::Several => {
                if let Some(all) = self.settled(self.absent_versions(key, txn, absence))? {
                    self.take_choice(node, txn, at, key, all);
                }
            }
        }
        Ok(())
    }

    /// The versions that a read of no row can have been of.
    fn absent_versions(
        &self,
        key: KeyId,
        txn: TxnId,
        absence: Absence,
    ) -> Result<Vec<VersionId>, ResolveError> {
        let mut candidates = Vec::new();
        candidates.extend(absence.may_be_initial.then(|| self.numbering.initial(key)));
        for writer in self.absences.of_key(key, absence).filter(|&it| it != txn) {
            match self.version_by(key, writer) {
                Some(version) => candidates.push(version),
                None => return Err(unknown_delete(self.history, txn, key, writer)),
            }
        }
        Ok(candidates)
    }

    /// Takes a read of one key that returned nothing, in a history where that can be a delete with a name.
    pub(super) fn nothing(
        &mut self,
        node: Node,
        txn: TxnId,
        at: usize,
        key: KeyId,
        value: ValueId,
    ) -> Result<(), ResolveError> {
        let absence = read_nothing(self.history.is_initial(value));
        let origin = self.absences.origin(key, txn, absence);
        if origin == AbsenceOrigin::Nobody {
            return self.external(node, txn, at, key, value);
        }
        self.absence(node, txn, at, key, absence)
    }
}

/// A transaction of unknown end and another can have removed the row.
fn unknown_delete(history: &History, reader: TxnId, key: KeyId, writer: TxnId) -> ResolveError {
    ResolveError::UnknownDelete {
        reader: history.txn_name(reader),
        key: history.key_name(key),
        writer: history.txn_name(writer),
        txn: writer,
    }
}
