//! Every external read in program order, with the versions that it can have returned.
//!
//! Serializability and snapshot isolation need only a transaction's first read of a key. Read committed also asks in which
//! order it read, and may read a key twice and differently.

use super::{ResolveError, Resolved, VersionId};
use crate::resolve::Node;
use std::ops::Range;

/// An external read as it is met.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramRead {
    pub(super) reader: Node,
    pub(super) op: u32,
    pub(super) version: VersionId,
}

/// An interval of places that an operation found empty, apart from keys that its transaction had touched before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramGap {
    /// Who read.
    pub reader: Node,
    /// The operation.
    pub op: u32,
    /// The places of the keys, as [`super::Gaps`] numbers them.
    pub places: Range<u32>,
}

/// The external reads of all transactions, in program order.
#[derive(Clone, Debug)]
pub struct Reads {
    node_start: Vec<u32>,
    op: Vec<u32>,
    version: Vec<VersionId>,
}

impl Reads {
    /// Takes reads that stand in the order of their readers.
    pub(super) fn new(n_nodes: usize, program: &[ProgramRead]) -> Self {
        let mut node_start = vec![0; n_nodes + 1];
        for read in program {
            node_start[read.reader as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            node_start[node + 1] += node_start[node];
        }
        Reads {
            node_start,
            op: program.iter().map(|read| read.op).collect(),
            version: program.iter().map(|read| read.version).collect(),
        }
    }

    /// The reads of a transaction, by their numbers.
    #[inline]
    pub fn of(&self, node: Node) -> Range<usize> {
        self.node_start[node as usize] as usize..self.node_start[node as usize + 1] as usize
    }

    /// The operation that made a read. The reads of a range query are made by one.
    #[inline]
    pub fn op(&self, read: usize) -> u32 {
        self.op[read]
    }

    /// The versions that a read can have returned. There is exactly one as long as values tell versions apart.
    #[inline]
    pub fn candidates(&self, read: usize) -> &[VersionId] {
        std::slice::from_ref(&self.version[read])
    }

    /// The one version that a read returned.
    #[inline]
    pub fn version(&self, read: usize) -> VersionId {
        self.version[read]
    }
}

/// A resolved history with all its reads. The findings' own reads are left out, unless they are
/// [non-repeatable](crate::verdict::LocalAnomaly::NonRepeatableRead).
#[derive(Debug)]
pub struct WithReads {
    /// Versions, sessions and findings.
    pub resolved: Resolved,
    /// All other external reads, but for those of keys in gaps.
    pub reads: Reads,
    /// What range queries did not return, by reader and operation.
    pub gaps: Vec<ProgramGap>,
    /// Set where a second read that found no row was taken for a repetition of the first, and could have found what another left.
    /// At levels that allow reads to differ, a *no* then needs the other readings, too.
    pub guess: Option<ResolveError>,
}

impl WithReads {
    /// The gaps of a transaction, by operation.
    pub fn gaps_of(&self, reader: Node) -> &[ProgramGap] {
        let start = self.gaps.partition_point(|gap| gap.reader < reader);
        let length = self.gaps[start..].partition_point(|gap| gap.reader == reader);
        &self.gaps[start..start + length]
    }
}
