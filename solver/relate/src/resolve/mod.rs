//! Gives every read its writer, names the anomalies that need no cycle, and numbers the versions of every key.
//!
//! A transaction whose end is unknown counts as committed once a counted one observes it, and is dropped otherwise:
//! removing what nobody observed leaves every explanation of the rest intact, so the verdict does not change.

mod absence;
mod attribute;
mod gaps;
mod given;
mod lists;
mod numbering;
mod program;
mod ranges;
mod reads;
mod versions;

use std::ops::Range;

use thiserror::Error;

pub use gaps::{Gap, Gaps, Intervals};
pub use program::{ProgramGap, Reads, WithReads};
pub use versions::{NO_NODE, Node, VersionId, Versions};

use crate::budget::{Budget, StopReason};
use crate::level::Model;
use crate::model::{History, KeyId, TxnId};
use crate::verdict::Finding;

/// The budget is asked once for this many transactions: some milliseconds' work.
const BUDGET_CHECK: u32 = 1 << 14;

/// The order in which a key's versions were installed, as far as the history says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenOrder {
    /// The key.
    pub key: KeyId,
    /// Its versions, oldest first; the initial one is not listed.
    pub versions: Vec<VersionId>,
    /// Whether every version that is not listed comes after those that are (so it is where lists were read).
    pub is_prefix: bool,
}

/// A history whose every read has exactly one counted writer, or the initial state; reads that cannot have happened are findings.
#[derive(Clone, Debug)]
pub struct Resolved {
    node_txn: Vec<TxnId>,
    sessions: Vec<Range<Node>>,
    versions: Versions,
    gaps: Gaps,
    given: Vec<GivenOrder>,
    findings: Vec<Finding>,
    n_unknown_counted: usize,
    n_unknown_dropped: usize,
}

impl Resolved {
    /// The number of counted transactions.
    pub fn n_txns(&self) -> usize {
        self.node_txn.len()
    }

    /// The transaction of a node.
    #[inline]
    pub fn txn(&self, node: Node) -> TxnId {
        self.node_txn[node as usize]
    }

    /// The node of a transaction, if it counts.
    pub fn node(&self, txn: TxnId) -> Option<Node> {
        self.node_txn.binary_search(&txn).ok().map(|at| at as Node)
    }

    /// The sessions, as ranges of nodes.
    pub fn sessions(&self) -> &[Range<Node>] {
        &self.sessions
    }

    /// The versions of every key.
    pub fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Which keys range queries did not return, where no more than their initial versions can be meant.
    pub fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// The version orders that the history gives or its lists reveal, by key.
    pub fn given(&self) -> &[GivenOrder] {
        &self.given
    }

    /// What needs no cycle and breaks some level, in transaction order. The versions leave these reads out.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The findings that break a level.
    pub fn broken(&self, model: Model) -> Vec<Finding> {
        let broken = self.findings.iter().filter(|it| it.breaks(model));
        broken.cloned().collect()
    }

    /// Transactions of unknown end that somebody observed.
    pub fn n_unknown_counted(&self) -> usize {
        self.n_unknown_counted
    }

    /// Transactions of unknown end that nobody observed.
    pub fn n_unknown_dropped(&self) -> usize {
        self.n_unknown_dropped
    }
}

/// Why a history cannot be resolved. These are limits of the input or of the budget, not of the database.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ResolveError {
    /// The budget ended.
    #[error("{0}")]
    Stopped(StopReason),
    /// A value was read that several transactions may have written.
    #[error(
        "transaction {reader} read {key} = {value}, which both {first} and {second} wrote: \
         values must be unique per key where they are read"
    )]
    AmbiguousRead {
        /// Who read.
        reader: String,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// One writer, or the initial state.
        first: String,
        /// Another.
        second: String,
    },
    /// No row was found where several transactions may have removed it.
    #[error(
        "transaction {reader} found no row of key {key}, which may be {first} or {second}: give the \
         deletes names, and say in reads which one was found, where the client can see it"
    )]
    AmbiguousAbsence {
        /// Who read.
        reader: String,
        /// The key.
        key: String,
        /// One delete, or the initial state.
        first: String,
        /// Another delete.
        second: String,
    },
    /// A key holds lists in one place and single values in another.
    #[error("key {key} is used both as a list and as a register (transaction {txn})")]
    MixedKey {
        /// The key.
        key: String,
        /// Where it was noticed.
        txn: String,
    },
    /// A version order names a value that several transactions wrote.
    #[error(
        "the version order of key {key} names value {value}, which both transaction {first} and \
         transaction {second} wrote"
    )]
    AmbiguousVersion {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// One writer.
        first: String,
        /// Another.
        second: String,
    },
    /// A version order names a value that no transaction wrote.
    #[error("the version order of key {key} names value {value}, which no transaction wrote")]
    UnknownVersion {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
}

impl From<StopReason> for ResolveError {
    fn from(reason: StopReason) -> Self {
        ResolveError::Stopped(reason)
    }
}

/// Resolves a history. Findings do not end it.
pub fn resolve(history: &History, budget: &Budget) -> Result<Resolved, ResolveError> {
    reads::resolve(history, budget)
}

/// Resolves a history and keeps every external read in program order.
pub fn resolve_reads(history: &History, budget: &Budget) -> Result<WithReads, ResolveError> {
    reads::resolve_reads(history, budget)
}
