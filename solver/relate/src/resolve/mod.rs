//! Finds the writer of every read, names the anomalies without a cycle, and numbers the versions of every key.
//!
//! A transaction whose end is unknown counts as committed once a counted one observes it, and is dropped otherwise:
//! removing what was not observed leaves every explanation of the rest intact, so the verdict does not change.

mod absence;
mod aggregates;
mod attribute;
mod candidates;
mod gaps;
mod given;
mod lists;
mod numbering;
mod predicates;
mod program;
mod ranges;
mod reads;
mod statements;
mod unreturned;
mod versions;

use std::ops::Range;
use std::sync::Arc;

use thiserror::Error;

pub use aggregates::{CountedAggregate, CountedRow};
pub use candidates::{TakenReads, Uncertain};
pub use gaps::{Gap, Gaps, Intervals};
pub use program::{ProgramGap, ProgramReads};
use reads::Keep;
pub use statements::Part;
pub use unreturned::{Unreturned, UnreturnedQuery};
pub use versions::{NO_NODE, Node, VersionId, Versions};

use crate::budget::{Budget, StopReason};
use crate::level::{Model, Spec};
use crate::model::{History, KeyId, TxnId};
use crate::verdict::Finding;

/// The budget is checked once per this many transactions: some milliseconds' work.
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

/// A history whose every read has a counted writer, or the initial state: one, or several candidates; reads that cannot have happened
/// are findings.
#[derive(Clone, Debug)]
pub struct Resolved {
    node_txn: Vec<TxnId>,
    /// What each node is of its transaction; empty where all are whole.
    parts: Arc<[Part]>,
    sessions: Vec<Range<Node>>,
    versions: Versions,
    gaps: Gaps,
    unreturned: Unreturned,
    given: Vec<GivenOrder>,
    in_doubt: Vec<Node>,
    uncertain: Arc<Vec<Uncertain>>,
    aggregates: Arc<aggregates::Aggregates>,
    findings: Vec<Finding>,
    reads: ProgramReads,
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

    /// Anomalies without a cycle that break some level, in transaction order. The versions leave these reads out.
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// The transactions that may have taken effect or not, sorted: a read can have been of what they wrote, or of something else. All of
    /// their reads are uncertain.
    pub fn in_doubt(&self) -> &[Node] {
        &self.in_doubt
    }

    /// Whether a transaction may have taken effect or not.
    #[inline]
    pub fn is_in_doubt(&self, node: Node) -> bool {
        !self.in_doubt.is_empty() && self.in_doubt.binary_search(&node).is_ok()
    }

    /// The transactions in doubt that cannot have taken effect, because a read of theirs breaks the level by itself.
    pub fn without_effect(&self, history: &History, spec: Spec) -> Vec<Node> {
        let breaks = |it: &&Finding| it.breaks(spec.model_of(history, it.txn));
        let broken = self.findings.iter().filter(breaks);
        let broken = broken.filter_map(|it| self.node(it.txn));
        let dead = self.uncertain.iter().filter(|it| it.candidates.is_empty());
        let all = broken.chain(dead.map(|it| it.reader));
        all.filter(|&node| self.is_in_doubt(node)).collect()
    }

    /// The findings that break a level. What a transaction in doubt cannot have read says only that it did not take effect.
    pub fn broken(&self, history: &History, spec: Spec) -> Vec<Finding> {
        let is_sure = |it: &&Finding| {
            self.in_doubt.is_empty() || !self.node(it.txn).is_some_and(|it| self.is_in_doubt(it))
        };
        let breaks = |it: &&Finding| it.breaks(spec.model_of(history, it.txn));
        let broken = self.findings.iter().filter(breaks).filter(is_sure);
        broken.take(reads::MAX_FINDINGS).cloned().collect()
    }

    /// Every external read in program order, where they were asked for; findings' own reads are left out, unless they are
    /// [non-repeatable](crate::verdict::LocalAnomaly::NonRepeatableRead).
    pub fn reads(&self) -> &ProgramReads {
        &self.reads
    }

    /// Transactions of unknown end that were observed.
    pub fn n_unknown_counted(&self) -> usize {
        self.n_unknown_counted
    }

    /// Transactions of unknown end that were not observed.
    pub fn n_unknown_dropped(&self) -> usize {
        self.n_unknown_dropped
    }
}

/// Why a history cannot be resolved. These are limits of the input or of the budget, not of the database.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResolveError {
    /// The budget ended.
    #[error("{0}")]
    Stopped(StopReason),
    /// A list was read that shows a value which several transactions appended.
    #[error(
        "transaction {reader} read a list of {key} with {value}, which both {first} and {second} appended: \
         what is appended to a list must be unique"
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
    /// No row was found, which a transaction of unknown end, or another, may have removed.
    #[error(
        "transaction {reader} found no row of key {key}, which transaction {writer}, whose end is unknown, or another \
         deleted: say whether {writer} committed"
    )]
    UnknownDelete {
        /// Who read.
        reader: String,
        /// The key.
        key: String,
        /// The transaction whose end is unknown.
        writer: String,
        /// The same.
        txn: TxnId,
    },
    /// A read can have been of several versions, and the level asks a back end once for every proposal.
    #[error(
        "{} can have been of several versions, because values repeat, rows were deleted or conditions chose rows: \
         `check` decides this level by many questions, so there is no single one to write; ser, si and pc have one",
        reads_in_words(*n_reads)
    )]
    Uncertain {
        /// How many.
        n_reads: usize,
    },
    /// A value was read that a transaction of unknown end, or another, may have written.
    #[error(
        "transaction {reader} read {key} = {value}, which transaction {writer}, whose end is unknown, or another wrote: \
         say whether {writer} committed"
    )]
    UnknownWriter {
        /// Who read.
        reader: String,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// The writer whose end is unknown.
        writer: String,
        /// The same.
        txn: TxnId,
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

fn reads_in_words(n_reads: usize) -> String {
    match n_reads {
        1 => "1 read".to_owned(),
        n_reads => format!("{n_reads} reads"),
    }
}

impl ResolveError {
    /// The transaction of unknown end of which it must be known whether it took effect.
    pub fn unsettled(&self) -> Option<TxnId> {
        match self {
            ResolveError::UnknownDelete { txn, .. } | ResolveError::UnknownWriter { txn, .. } => {
                Some(*txn)
            }
            _ => None,
        }
    }
}

impl From<StopReason> for ResolveError {
    fn from(reason: StopReason) -> Self {
        ResolveError::Stopped(reason)
    }
}

/// Resolves a history. Findings do not end it.
pub fn resolve(history: &History, budget: &Budget) -> Result<Resolved, ResolveError> {
    reads::resolve(history, budget, Keep::First)
}

/// Resolves a history without the reads that rest on whether a transaction of unknown end took effect.
pub fn resolve_certain(history: &History, budget: &Budget) -> Result<Resolved, ResolveError> {
    reads::resolve(history, budget, Keep::Certain)
}

/// Resolves a history and keeps every external read in program order, as weak levels need it.
pub fn resolve_reads(history: &History, budget: &Budget) -> Result<Resolved, ResolveError> {
    reads::resolve(history, budget, Keep::All)
}

/// The same for the weak levels alone: unless some reads are uncertain, the versions do not know their readers.
pub fn resolve_program(history: &History, budget: &Budget) -> Result<Resolved, ResolveError> {
    reads::resolve(history, budget, Keep::Program)
}

/// Resolves a history with what a level needs of it. Where an order tells what every query returns, the deleted rows that queries did
/// not return are [`Unreturned`], not reads.
pub fn resolve_for(
    history: &History,
    spec: Spec,
    budget: &Budget,
) -> Result<Resolved, ResolveError> {
    match spec.model {
        Model::Ser | Model::Si | Model::Pc => reads::resolve(history, budget, Keep::Queries),
        model if model.is_weak() || model == Model::Mixed => resolve_reads(history, budget),
        _ => resolve(history, budget),
    }
}
