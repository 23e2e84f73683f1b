//! The writers that a case of a proof, or a certificate, assumes for reads: for all reads of a key by a transaction or
//! for a single one, and their candidates.

use super::conditions::{Look, look};
use super::meaning::{Meaning, Version, written_by};
use super::rows::sight;
use kingsnake_history::model::{KeyId, Predicate, TxnId};

impl Meaning<'_> {
    /// Assumes the writer that a transaction read a key from; `None` takes that back. Returns what was assumed before.
    pub fn assume(&self, reader: TxnId, key: KeyId, source: Option<Version>) -> Option<Version> {
        let mut assumed = self.assumed.borrow_mut();
        match source {
            Some(version) => assumed.insert((reader, key), version),
            None => assumed.remove(&(reader, key)),
        }
    }

    /// Assumes the writer that one operation of a transaction read a key from; `None` takes that back.
    pub fn assume_read(&self, read: (TxnId, usize, KeyId), source: Option<Version>) {
        let mut assumed = self.assumed_reads.borrow_mut();
        match source {
            Some(version) => assumed.insert(read, version),
            None => assumed.remove(&read),
        };
    }

    /// The assumed writer that one operation read a key from.
    pub fn assumed_read(&self, read: (TxnId, usize, KeyId)) -> Option<Version> {
        self.assumed_reads.borrow().get(&read).copied()
    }

    /// The assumed writer that one operation read a key from, or all reads of its transaction.
    pub(super) fn taken_read(&self, read: (TxnId, usize, KeyId)) -> Option<Version> {
        let assumed = self.assumed_read(read);
        assumed.or_else(|| self.assumed.borrow().get(&(read.0, read.2)).copied())
    }

    /// Every version that explains what an operation saw of a key that its transaction had not written itself; `None` if there is no
    /// such operation.
    pub(super) fn external_sources(
        &self,
        reader: TxnId,
        op: usize,
        key: KeyId,
    ) -> Option<Vec<Version>> {
        let ops = self.history().ops(reader);
        let mut before = ops.iter().take(op);
        let is_own = before.any(|it| it.is_write() && it.key() == Some(key));
        if op < ops.len() && is_own {
            return None;
        }
        self.sources_of(reader, op, key)
    }

    /// Every version of a register that explains what one operation saw of it; `None` if the operation does not read it.
    pub(super) fn sources_of(&self, reader: TxnId, op: usize, key: KeyId) -> Option<Vec<Version>> {
        let ops = self.history().ops(reader);
        if let Some(nth) = op.checked_sub(ops.len()) {
            let predicate = self.history().predicates(reader).nth(nth)?;
            return self.sources_by(reader, predicate, key);
        }
        let op = ops[op];
        let seen = sight(self.history(), op, key)?;
        Some(self.possible(reader, key, &seen))
    }

    /// Every version of a row that explains what a condition said of it; none where what the transaction itself left, or was
    /// returned, does not. `None` if the condition says nothing of it, or what the transaction left explains it.
    fn sources_by(&self, reader: TxnId, predicate: &Predicate, key: KeyId) -> Option<Vec<Version>> {
        let before = &self.history().ops(reader)[..predicate.at as usize];
        let own = before.iter().rev().filter(|op| op.key() == Some(key));
        let own = own.copied().find_map(written_by);
        match (look(self.history(), reader, predicate, key)?, own) {
            (Look::Never, _) => Some(Vec::new()),
            (Look::Satisfies(is), Some(own)) => {
                (self.history().satisfies(predicate.query, own) != is).then(Vec::new)
            }
            (Look::Satisfies(is), None) => Some(self.satisfying(reader, key, predicate.query, is)),
            (Look::Anything, Some(_)) => None,
            (Look::Anything, None) => {
                let mut any = self.satisfying(reader, key, predicate.query, true);
                any.extend(self.satisfying(reader, key, predicate.query, false));
                Some(any)
            }
        }
    }
}
