//! Reads with several candidates: a value that several transactions wrote, a row that several deleted.
//!
//! A transaction's reads of one key are of one version, so all of them together leave one list of candidates. Where one candidate is
//! left the read is like any other.

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use super::numbering::{Numbering, Read};
use super::reads::{FirstRead, Walk};
use super::versions::{Node, VersionId, Versions};
use super::{ResolveError, Resolved};
use crate::model::{KeyId, TxnId, ValueId};

/// What is assumed of the reads with several candidates.
#[derive(Clone, Debug, Default)]
pub struct TakenReads {
    /// What reads in program order are of, by their numbers; those that are not listed are left out.
    pub program: FxHashMap<usize, VersionId>,
    /// What transactions that read a key in one version read of it.
    pub first: Vec<(VersionId, Node)>,
    /// The transactions and keys whose reads may differ: only the reads in program order say what was read.
    pub loose: FxHashSet<(Node, KeyId)>,
}

/// Minimum memory of an uncertain read: itself, and its candidates twice.
const BYTES: u64 = size_of::<Uncertain>() as u64 + 2 * 24;

/// A read of a key with several candidates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncertain {
    /// Who read.
    pub reader: Node,
    /// The first operation that read the key.
    pub op: u32,
    /// The key.
    pub key: KeyId,
    /// What it can have read, sorted. None where its reads of the key contradict each other.
    pub candidates: Vec<VersionId>,
}

impl Walk<'_> {
    /// Takes an external read of one of several versions.
    pub(super) fn take_choice(
        &mut self,
        node: Node,
        txn: TxnId,
        at: usize,
        key: KeyId,
        mut candidates: Vec<VersionId>,
    ) {
        candidates.sort_unstable();
        candidates.dedup();
        self.keep_choice(node, at, key, &candidates);
        let is_candidate = |version: &VersionId| candidates.binary_search(version).is_ok();
        match self.state[key.index()].read {
            FirstRead::None => {
                self.state[key.index()].read = FirstRead::Choice(self.uncertain.len() as u32);
                let number = self.uncertain.len() as u32;
                self.first_candidates.insert(number, candidates.clone());
                self.uncertain.push(Uncertain {
                    reader: node,
                    op: at as u32,
                    key,
                    candidates,
                });
            }
            FirstRead::Of(first) => {
                if !is_candidate(&VersionId(self.reads[first as usize].version)) {
                    self.find_second_read(txn, at, key);
                }
            }
            FirstRead::Choice(first) => {
                let earlier = &self.uncertain[first as usize].candidates;
                let both = earlier.iter().copied().filter(is_candidate).collect();
                let seen = self.first_candidates.get(&first);
                let is_second =
                    seen.is_some_and(|seen| !seen.is_empty() && !seen.iter().any(is_candidate));
                if is_second {
                    self.find_second_read(txn, at, key);
                } else {
                    self.uncertain[first as usize].candidates = both;
                }
            }
        }
    }

    /// Checks that this many more uncertain reads fit.
    pub(super) fn reserve_choices(&self, n_more: usize) -> Result<(), ResolveError> {
        let n_reads = (self.uncertain.len() + n_more) as u64;
        let what = "the reads of rows that several can have deleted";
        Ok(self.poll.budget().reserve(what, n_reads * BYTES)?)
    }

    /// The versions of a key that a value can be, besides the reader's own.
    pub(super) fn candidates(
        &self,
        txn: TxnId,
        key: KeyId,
        value: ValueId,
    ) -> Result<Vec<VersionId>, ResolveError> {
        let initial = self.history.is_initial(value);
        let first = self.writers.writer(value);
        let rivals = self.writers.rivals(value).iter().copied();
        let others = rivals.chain([first]).filter(|&writer| writer != txn);
        let mut candidates: Vec<VersionId> = Vec::new();
        candidates.extend(initial.then(|| self.numbering.initial(key)));
        for writer in others {
            match self.version_by(key, writer) {
                Some(version) => candidates.push(version),
                None => return Err(self.unknown_writer(txn, key, value, writer)),
            }
        }
        Ok(candidates)
    }

    /// The version of a key that a transaction installed, if it counts.
    pub(super) fn version_by(&self, key: KeyId, writer: TxnId) -> Option<VersionId> {
        let node = self.node_txn.binary_search(&writer).ok()?;
        self.numbering.of_writer(key, node as Node)
    }

    /// A transaction of unknown end and another can have written what was read.
    fn unknown_writer(
        &self,
        txn: TxnId,
        key: KeyId,
        value: ValueId,
        writer: TxnId,
    ) -> ResolveError {
        ResolveError::UnknownWriter {
            reader: self.history.txn_name(txn),
            key: self.history.key_name(key),
            value: self.history.value_name(value),
            writer: self.history.txn_name(writer),
            txn: writer,
        }
    }
}

/// Moves the choices with one candidate left to the certain reads, and returns the others, and those of transactions in doubt.
pub(super) fn settle(
    numbering: &Numbering,
    reads: &mut Vec<Read>,
    mut uncertain: Vec<Uncertain>,
    in_doubt: &[Node],
) -> Vec<Uncertain> {
    let n_reads = reads.len();
    uncertain.retain(|read| {
        let &[version] = read.candidates.as_slice() else {
            return true;
        };
        if in_doubt.binary_search(&read.reader).is_ok() {
            return true;
        }
        let own = numbering.of_writer(read.key, read.reader);
        reads.push(Read {
            reader: read.reader,
            version: version.0,
            overwritten_by: own.map_or(u32::MAX, |version| version.0),
        });
        false
    });
    if reads.len() > n_reads {
        reads.sort_by_key(|read| read.reader);
    }
    uncertain
}

impl Resolved {
    /// The reads that can have been of several versions.
    pub fn uncertain(&self) -> &[Uncertain] {
        &self.uncertain
    }

    /// The same where some reads are taken to be of versions and these are uncertain. Reads in program order that can have been of
    /// several versions and are not taken are left out: the uncertain reads speak for them.
    #[must_use]
    pub fn taking(&self, mut taken: TakenReads, uncertain: Vec<Uncertain>) -> Resolved {
        taken.first.sort_unstable();
        Resolved {
            versions: self.versions.taking(&taken),
            reads: self.reads.taking(|it| taken.program.get(&it).copied()),
            uncertain: Arc::new(uncertain),
            ..self.clone()
        }
    }
}

impl Versions {
    /// The same with the reads that are taken, and without those that may differ.
    fn taking(&self, taken: &TakenReads) -> Versions {
        let mut settled = self.clone();
        settled.readers.clear();
        settled.reader_start.clear();
        settled.predecessor.fill(u32::MAX);
        settled.successor.fill(u32::MAX);
        let mut extra = taken.first.iter().copied().peekable();
        for version in (0..self.len() as u32).map(VersionId) {
            let (start, key) = (settled.readers.len(), self.key(version));
            settled.reader_start.push(start as u32);
            let known = self.readers(version).iter().copied();
            let known = known.filter(|&it| !taken.loose.contains(&(it, key)));
            settled.readers.extend(known);
            while let Some((_, reader)) = extra.next_if(|it| it.0 == version) {
                settled.readers.push(reader);
            }
            settled.readers[start..].sort_unstable();
            for at in start..settled.readers.len() {
                let Some(own) = self.of_writer(key, settled.readers[at]) else {
                    continue;
                };
                settled.predecessor[own.index()] = version.0;
                let next = &mut settled.successor[version.index()];
                *next = (*next).min(own.0);
            }
        }
        settled.reader_start.push(settled.readers.len() as u32);
        settled
    }
}
