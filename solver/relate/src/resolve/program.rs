//! Every external read in program order, with the versions that it can have returned.
//!
//! Serializability and snapshot isolation need only a transaction's first read of a key. Read committed also asks in which
//! order it read, and may read a key twice and differently.

use super::VersionId;
use super::reads::Walk;
use crate::model::KeyId;
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
    /// The statement.
    pub op: u32,
    /// The places of the keys, as [`super::Gaps`] numbers them.
    pub places: Range<u32>,
}

/// Reads in program order, their statements, and those that can have been of several versions.
pub(super) type Kept = (Vec<ProgramRead>, Vec<u32>, Vec<(u32, Vec<VersionId>)>);

/// The external reads of all transactions, in program order; none where they were not asked for.
#[derive(Clone, Debug, Default)]
pub struct ProgramReads {
    node_start: Vec<u32>,
    reads: Vec<ProgramRead>,
    /// The statements of the reads; empty where each operation is one.
    statement: Vec<u32>,
    /// The reads that can have been of several versions, sorted.
    choices: Vec<(u32, Vec<VersionId>)>,
    /// What range queries did not return, by reader and operation.
    gaps: Vec<ProgramGap>,
}

impl ProgramReads {
    /// Takes reads that stand in the order of their readers.
    pub(super) fn new(
        n_nodes: usize,
        (program, statement, choices): Kept,
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
            statement,
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

    /// The operation that made a read, or the condition, as [`crate::model::Statements`] names them. The reads of a range query are
    /// made by one.
    #[inline]
    pub fn op(&self, read: usize) -> u32 {
        self.reads[read].op
    }

    /// The statement that made a read: its operation, unless the history has conditions, whose rows are of one statement.
    #[inline]
    pub fn statement(&self, read: usize) -> u32 {
        let own = self.reads[read].op;
        self.statement.get(read).copied().unwrap_or(own)
    }

    /// The reads that can have been of several versions, and those versions, sorted.
    pub fn choices(&self) -> &[(u32, Vec<VersionId>)] {
        &self.choices
    }

    /// The version that a read returned; of several, the one that is assumed.
    #[inline]
    pub fn version(&self, read: usize) -> VersionId {
        self.reads[read].version
    }

    /// The same without reads of several versions: each is of the version that is given, or left out. The numbers of reads change.
    pub(super) fn taking(&self, version_of: impl Fn(usize) -> Option<VersionId>) -> Self {
        let mut choices = self.choices.iter().map(|it| it.0 as usize).peekable();
        let mut kept: Kept = (Vec::new(), Vec::new(), Vec::new());
        for (at, &read) in self.reads.iter().enumerate() {
            let version = match choices.next_if_eq(&at) {
                Some(_) => version_of(at),
                None => Some(read.version),
            };
            if let Some(version) = version {
                kept.0.push(ProgramRead { version, ..read });
                kept.1.extend(self.statement.get(at));
            }
        }
        let n_nodes = self.node_start.len().saturating_sub(1);
        ProgramReads::new(n_nodes, kept, self.gaps.clone())
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

impl Walk<'_> {
    /// Keeps an external read in program order, if that was asked for.
    #[inline]
    pub(super) fn keep(&mut self, node: Node, at: usize, version: VersionId) {
        if self.keep_reads {
            let op = self.asking.map_or(at, |nth| self.statements.read_by(nth));
            if self.matching.is_some() {
                self.statement.push(self.statements.of(op) as u32);
            }
            self.program.push(ProgramRead {
                reader: node,
                op: op as u32,
                version,
            });
        }
    }

    /// Keeps what a range query did not return, of the keys that the transaction has not touched, if that was asked for.
    pub(super) fn keep_gaps(&mut self, node: Node, at: usize, spanned: &Range<u32>) {
        if self.keep_reads {
            let mut gaps = Vec::new();
            self.under.untouched(spanned, &mut gaps);
            let op = match self.matching {
                None => at,
                Some(_) => self.statements.of(at),
            };
            self.program_gaps
                .extend(gaps.into_iter().map(|places| ProgramGap {
                    reader: node,
                    op: op as u32,
                    places,
                }));
        }
    }

    /// Keeps a read of one of several versions in program order, if that was asked for.
    pub(super) fn keep_choice(
        &mut self,
        node: Node,
        at: usize,
        key: KeyId,
        candidates: &[VersionId],
    ) {
        if self.keep_reads {
            let read = self.program.len() as u32;
            let initial = self.numbering.initial(key);
            self.keep(node, at, candidates.first().copied().unwrap_or(initial));
            let mut candidates = candidates.to_vec();
            candidates.sort_unstable();
            candidates.dedup();
            self.choices.push((read, candidates));
        }
    }
}
