//! What a check returns: a verdict, its decider and statistics; or why there is none.

use std::time::Duration;

use thiserror::Error;

use crate::certify::Refusal;
use crate::decide::{DecideError, DecideStats};
use crate::heuristic::HeuristicStats;
use crate::level::{Level, Spec};
use crate::prune::PruneStats;
use crate::resolve::ResolveError;
use crate::verdict::Verdict;

/// The phase or engine that gave the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decider {
    /// Some read cannot have happened at any level.
    Resolve,
    /// One topological sort: every key was ordered.
    Linear,
    /// Pruning left nothing open, or found a contradiction.
    Prune,
    /// The estimated order explained the history.
    Witness,
    /// The back end.
    Backend,
    /// Linearizability, by sorting.
    Zones,
    /// Linearizability, by search.
    Search,
    /// The version order and the snapshots that the database recorded.
    Certificate,
    /// The replay of an expected order.
    Replay,
    /// Another level's answer implies this one, or its proof holds here as well.
    Implied(Level),
    /// None: the check stopped.
    None,
}

impl Decider {
    /// The name, as reported.
    pub fn name(self) -> &'static str {
        match self {
            Decider::Resolve => "resolve",
            Decider::Linear => "linear",
            Decider::Prune => "prune",
            Decider::Witness => "witness",
            Decider::Backend => "backend",
            Decider::Zones => "zones",
            Decider::Search => "search",
            Decider::Certificate => "certificate",
            Decider::Replay => "replay",
            Decider::Implied(_) => "lattice",
            Decider::None => "none",
        }
    }
}

/// Statistics of a check.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckStats {
    /// Duration of each phase, in order.
    pub phases: Vec<(&'static str, Duration)>,
    /// Transactions that count.
    pub n_counted: usize,
    /// Transactions of unknown end that count, because they were observed.
    pub n_unknown_counted: usize,
    /// Transactions of unknown end that were dropped, because they were not observed.
    pub n_unknown_dropped: usize,
    /// Versions, initial ones left out.
    pub n_versions: usize,
    /// Nodes of the polygraph.
    pub n_nodes: usize,
    /// Known edges before pruning.
    pub n_known_edges: usize,
    /// Known edges after pruning.
    pub n_pruned_edges: usize,
    /// Unordered pairs of runs before pruning.
    pub n_pairs: u64,
    /// Constraints that were open after pruning.
    pub n_open: usize,
    /// Statistics of pruning.
    pub prune: PruneStats,
    /// Statistics of the heuristic, if a back end was asked with one.
    pub heuristic: Option<HeuristicStats>,
    /// Statistics of the back end, if one was asked.
    pub decide: Option<DecideStats>,
}

/// A verdict, its decider, and statistics.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The answer, already checked again by [`crate::certify`].
    pub verdict: Verdict,
    /// The promise.
    pub spec: Spec,
    /// The decider.
    pub decider: Decider,
    /// The statistics.
    pub stats: CheckStats,
}

/// A check that could not be carried out; this tells nothing about the database.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The history lacks information.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The level needs times.
    #[error(
        "the level needs begin and commit times, and the history has none; record them (docs/formats.md), or ask for a level that looks \
         at no clock, such as --level ser or --level si"
    )]
    NoTimes,
    /// The history is not one of registers.
    #[error(transparent)]
    NotRegisters(#[from] kingsnake_linearizable::NotRegisters),
    /// The database's record lacks information.
    #[error(transparent)]
    Recorded(#[from] kingsnake_adya::AdyaError),
    /// A back end failed.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// An answer was rejected when it was checked again: a bug of this program. The answer is withheld.
    #[error("internal error: {decider} answered {answer}, which does not hold: {why}")]
    Uncertified {
        /// The decider.
        decider: &'static str,
        /// The answer.
        answer: &'static str,
        /// The reason for the rejection.
        why: Refusal,
    },
}
