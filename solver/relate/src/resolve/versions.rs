//! The versions of every key: who installed each, and who read it.
//!
//! Invariant: a key's versions are contiguous; the first is the initial one, the others follow in node order.

use std::ops::Range;

use crate::model::KeyId;

/// A counted transaction, numbered densely in session order.
pub type Node = u32;

/// The writer of an initial version: no transaction.
pub const NO_NODE: Node = u32::MAX;

/// A version of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VersionId(pub u32);

impl VersionId {
    /// The position in the array of versions.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// All versions of a history.
#[derive(Clone, Debug)]
pub struct Versions {
    pub(super) key_start: Vec<u32>,
    pub(super) key: Vec<KeyId>,
    pub(super) writer: Vec<Node>,
    pub(super) reader_start: Vec<u32>,
    pub(super) readers: Vec<Node>,
    pub(super) successor: Vec<u32>,
    pub(super) predecessor: Vec<u32>,
}

impl Versions {
    /// How many versions there are, initial ones included.
    pub fn len(&self) -> usize {
        self.writer.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.writer.is_empty()
    }

    /// The number of keys.
    pub fn n_keys(&self) -> usize {
        self.key_start.len() - 1
    }

    /// The versions of a key: first the initial one, then the others in node order of their writers.
    #[inline]
    pub fn of_key(&self, key: KeyId) -> Range<u32> {
        self.key_start[key.index()]..self.key_start[key.index() + 1]
    }

    /// The initial version of a key.
    #[inline]
    pub fn initial(&self, key: KeyId) -> VersionId {
        VersionId(self.key_start[key.index()])
    }

    /// The key of a version.
    #[inline]
    pub fn key(&self, version: VersionId) -> KeyId {
        self.key[version.index()]
    }

    /// The transaction that installed a version; [`NO_NODE`] for an initial one.
    #[inline]
    pub fn writer(&self, version: VersionId) -> Node {
        self.writer[version.index()]
    }

    /// The transactions that installed all versions, by version.
    #[inline]
    pub(crate) fn all_writers(&self) -> &[Node] {
        &self.writer
    }

    /// The transactions that write a key, sorted.
    pub(crate) fn writers_of(&self, key: KeyId) -> &[Node] {
        let range = self.of_key(key);
        &self.writer[range.start as usize + 1..range.end as usize]
    }

    /// Whether this is the version before any transaction.
    #[inline]
    pub fn is_initial(&self, version: VersionId) -> bool {
        self.writer[version.index()] == NO_NODE
    }

    /// The transactions that read a version, in node order, those that then overwrote it included.
    #[inline]
    pub fn readers(&self, version: VersionId) -> &[Node] {
        let index = version.index();
        &self.readers[self.reader_start[index] as usize..self.reader_start[index + 1] as usize]
    }

    /// The version that a reader of this one installed itself (a read-modify-write), so that nothing can come between.
    /// Where several readers did, which no level allows, the first.
    #[inline]
    pub fn successor(&self, version: VersionId) -> Option<VersionId> {
        match self.successor[version.index()] {
            u32::MAX => None,
            next => Some(VersionId(next)),
        }
    }

    /// The version that the writer of this one read before it wrote, if it read the key.
    #[inline]
    pub fn predecessor(&self, version: VersionId) -> Option<VersionId> {
        match self.predecessor[version.index()] {
            u32::MAX => None,
            before => Some(VersionId(before)),
        }
    }

    /// The version of a key that a transaction installed.
    pub fn of_writer(&self, key: KeyId, writer: Node) -> Option<VersionId> {
        let range = self.of_key(key);
        let written = &self.writer[range.start as usize + 1..range.end as usize];
        let at = written.binary_search(&writer).ok()?;
        Some(VersionId(range.start + 1 + at as u32))
    }

    /// The total number of reads.
    pub fn n_reads(&self) -> usize {
        self.readers.len()
    }
}
