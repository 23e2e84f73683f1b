//! Every external read in program order, with the versions that it can have returned.
//!
//! Serializability and snapshot isolation need only a transaction's first read of a key. Read committed also asks in which
//! order it read, and may read a key twice and differently.

use super::VersionId;
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

/// The external reads of all transactions, in program order; none where they were not asked for.
#[derive(Clone, Debug, Default)]
pub struct ProgramReads {
    node_start: Vec<u32>,
    reads: Vec<ProgramRead>,
    /// The reads that can have been of several versions, sorted.
    choices: Vec<(u32, Vec<VersionId>)>,
    /// What range queries did not return, by reader and operation.
    gaps: Vec<ProgramGap>,
}

impl ProgramReads {
    /// Takes reads that stand in the order of their readers.
    pub(super) fn new(
        n_nodes: usize,
        (program, choices): (Vec<ProgramRead>, Vec<(u32, Vec<VersionId>)>),
        gaps: Vec<ProgramGap>,
    ) -> Self {
        let mut node_start = vec![0; n_nodes + 1];
        for read in &program {
            node_start[read.reader as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            node_start[node + 1] += node_start[node];
        }
        ProgramReads {
            node_start,
            reads: program,
            choices,
            gaps,
        }
    }

    /// How many reads there are.
    pub fn n_reads(&self) -> usize {
        self.reads.len()
    }

    /// The reads of a transaction, by their numbers.
    #[inline]
    pub fn of(&self, node: Node) -> Range<usize> {
        match self.node_start.get(node as usize..node as usize + 2) {
            Some(&[start, end]) => start as usize..end as usize,
            _ => 0..0,
        }
    }

    /// The operation that made a read. The reads of a range query are made by one.
    #[inline]
    pub fn op(&self, read: usize) -> u32 {
        self.reads[read].op
    }

    /// The reads that can have been of several versions, and those versions.
    pub fn choices(&self) -> &[(u32, Vec<VersionId>)] {
        &self.choices
    }

    /// The version that a read returned; of several, the one that is assumed.
    #[inline]
    pub fn version(&self, read: usize) -> VersionId {
        self.reads[read].version
    }

    /// Takes a read to be of a version.
    pub(super) fn assign(&mut self, read: usize, version: VersionId) {
        self.reads[read].version = version;
    }

    /// What range queries did not return, by reader and operation; these keys have no reads of their own.
    pub fn gaps(&self) -> &[ProgramGap] {
        &self.gaps
    }

    /// The gaps of a transaction, by operation.
    pub fn gaps_of(&self, reader: Node) -> &[ProgramGap] {
        let start = self.gaps.partition_point(|gap| gap.reader < reader);
        let length = self.gaps[start..].partition_point(|gap| gap.reader == reader);
        &self.gaps[start..start + length]
    }
}
