//! What a case of a proof, or a certificate, takes reads to be of: all reads of a key by a transaction, or one of them.

use super::meaning::{Meaning, Version};
use kingsnake_history::model::{KeyId, TxnId};

impl Meaning<'_> {
    /// Assumes whom a transaction read a key from; `None` takes that back. Returns what was assumed before.
    pub fn assume(&self, reader: TxnId, key: KeyId, source: Option<Version>) -> Option<Version> {
        let mut assumed = self.assumed.borrow_mut();
        match source {
            Some(version) => assumed.insert((reader, key), version),
            None => assumed.remove(&(reader, key)),
        }
    }

    /// Assumes whom one operation of a transaction read a key from; `None` takes that back.
    pub(super) fn assume_read(&self, read: (TxnId, usize, KeyId), source: Option<Version>) {
        let mut assumed = self.assumed_reads.borrow_mut();
        match source {
            Some(version) => assumed.insert(read, version),
            None => assumed.remove(&read),
        };
    }

    /// What is assumed of whom one operation read a key from.
    pub(super) fn assumed_read(&self, read: (TxnId, usize, KeyId)) -> Option<Version> {
        self.assumed_reads.borrow().get(&read).copied()
    }

    /// What is assumed of whom one operation read a key from, or all reads of its transaction.
    pub(super) fn taken_read(&self, read: (TxnId, usize, KeyId)) -> Option<Version> {
        let assumed = self.assumed_read(read);
        assumed.or_else(|| self.assumed.borrow().get(&(read.0, read.2)).copied())
    }
}
