//! Relates transactions: which comes before which, by a resolved history and the level of each transaction.
//!
//! SER has one node per transaction (Papadimitriou's polygraph, Cobra's constraints); SI has a begin and a commit node
//! (Viper's BC-polygraph). Constraints stay implicit: any two runs of one key are ordered one way or the other.

mod choices;
mod construct;
mod ends;
mod gaps;
mod places;
mod real_time;
pub mod reasons;
mod runs;
mod sights;

pub use choices::{Candidates, ChoiceRuns};
pub use construct::{Shape, add_clock, construct, construct_within};
pub use gaps::cover;
pub use kingsnake_graph::{Edge, Reason};
pub use places::{Places, reads_at};
pub use real_time::{earliest, latest};
pub use sights::{Implied, Listed, SightRead, WrittenKeys, each_sight};

use std::collections::BTreeMap;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::level::Spec;
use crate::model::KeyId;
use crate::resolve::{Node, Resolved, VersionId};
use crate::verdict::Point;
use crate::visible::Commits;
use kingsnake_graph::{Orders, Problem};

/// A problem, and the meaning of its nodes and versions.
#[derive(Clone, Debug)]
pub struct Polygraph {
    pub(crate) resolved: Resolved,
    pub(crate) spec: Spec,
    places: Places,
    /// Nodes of transactions come first, then helpers of gaps, then nodes of the time chain.
    n_txn_nodes: usize,
    /// The implications of weak transactions' reads; the reasons of edges number them.
    sights: Vec<Commits>,
    n_helpers: usize,
    /// Whether read-modify-writes are merged into runs, and whether two versions without readers need no order.
    combine: bool,
    unread: bool,
    /// Runs of keys with given orders that need no other order, unless a choice is about them.
    free_runs: FxHashMap<KeyId, Vec<runs::Run>>,
    /// Which transactions in doubt took effect.
    ends: ends::Ends,
    /// The graph.
    pub(crate) problem: Problem,
}

impl Polygraph {
    /// The meaning of the reads.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// The level's components.
    pub fn spec(&self) -> Spec {
        self.spec
    }

    /// Which node an edge touches.
    pub fn places(&self) -> &Places {
        &self.places
    }

    /// The graph.
    pub fn problem(&self) -> &Problem {
        &self.problem
    }

    /// The graph, to change what is known or open in it.
    pub fn problem_mut(&mut self) -> &mut Problem {
        &mut self.problem
    }

    /// The same graph, read as that of other ingredients.
    #[must_use]
    pub fn with_spec(mut self, spec: Spec) -> Self {
        self.spec = spec;
        self
    }

    /// The number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.problem.n_nodes
    }

    /// The known edges.
    pub fn edges(&self) -> &[Edge] {
        &self.problem.edges
    }

    /// How many known edges there are for each kind of reason, by its name.
    pub fn edge_kinds(&self) -> BTreeMap<&'static str, usize> {
        let mut kinds = BTreeMap::new();
        for edge in self.edges() {
            *kinds.entry(reasons::name(edge.reason)).or_default() += 1;
        }
        kinds
    }

    /// The runs of versions of the keys that are not settled.
    pub fn runs(&self) -> &Orders {
        &self.problem.orders
    }

    /// The first node of the time chain, if there is one.
    pub fn first_time(&self) -> u32 {
        (self.n_txn_nodes + self.n_helpers) as u32
    }

    /// The meaning of a node; `None` for a node of the time chain, a helper of gaps, or one that logic needs.
    pub fn point(&self, node: u32) -> Option<Point> {
        if node as usize >= self.n_txn_nodes {
            return None;
        }
        let (index, moment) = self.places.point(node);
        let txn = self.resolved.txn(index);
        Some(Point { txn, moment })
    }

    /// The transaction of a node, if it is one of a transaction.
    pub fn transaction(&self, node: u32) -> Option<Node> {
        ((node as usize) < self.n_txn_nodes).then(|| self.places.point(node).0)
    }

    /// The nodes of each session.
    pub fn sessions(&self) -> Vec<Range<u32>> {
        let width = self.places.width();
        let sessions = self.resolved.sessions().iter();
        sessions
            .map(|it| it.start * width..it.end * width)
            .collect()
    }

    /// The variable that is true if a transaction in doubt took effect.
    pub fn took_effect(&self, txn: Node) -> Option<u32> {
        self.ends.variable(txn)
    }

    /// The basis of an edge that a weak transaction's read gave.
    pub fn sight(&self, reason: Reason) -> Option<Commits> {
        self.sights.get(reasons::sight(reason)? as usize).copied()
    }

    /// The edges of the opposite order of the two runs that a forced order is about.
    pub fn opposite(&self, before: VersionId, after: VersionId) -> Option<Vec<Edge>> {
        let KeyId(key) = self.resolved.versions().key(before);
        let orders = &self.problem.orders;
        let (a, b) = orders.find(key, before.0, after.0)?;
        Some(orders.edges(b, a).collect())
    }

    /// The version that a reason's fact puts first and the one that it puts second, where it is about two versions.
    pub fn fact(reason: Reason) -> Option<(VersionId, VersionId)> {
        let (before, after) = reason.fact()?;
        Some((VersionId(before), VersionId(after)))
    }
}

impl AsRef<Problem> for Polygraph {
    fn as_ref(&self) -> &Problem {
        &self.problem
    }
}
