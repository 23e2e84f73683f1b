//! Settles constraints by reachability, to the fixpoint: if one way to order two runs closes a cycle, the other is forced.

use std::time::Duration;

use crate::decide::{Constraints, Question};
use crate::polygraph::Polygraph;

/// An acyclic graph by source, with a topological order: the type is the theorem.
#[derive(Clone, Debug)]
pub struct Dag {
    starts: Vec<u32>,
    targets: Vec<u32>,
    order: Vec<u32>,
}

impl Dag {
    /// The number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.order.len()
    }

    /// The direct successors of a node.
    #[inline]
    pub fn successors(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.targets[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// The nodes in a topological order.
    pub fn order(&self) -> &[u32] {
        &self.order
    }
}

/// What one pruning round did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundStats {
    /// Pairs of runs that it judged.
    pub judged: u64,
    /// Pairs that it forced.
    pub forced: u64,
    /// Edges that became known.
    pub new_edges: u64,
    /// Pairs still open.
    pub open: u64,
    /// How long it took.
    pub time: Duration,
}

/// What pruning did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PruneStats {
    /// How reachability was kept: `none` (not needed), `dense`, `chains`.
    pub reachability: &'static str,
    /// Why it was chosen.
    pub why: String,
    /// The rounds.
    pub rounds: Vec<RoundStats>,
    /// Whether nothing more could be forced.
    pub fixpoint: bool,
}

/// The known edges have a cycle: no order explains the history.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// The polygraph with every edge that became known.
    pub polygraph: Polygraph,
    /// Where each round's edges end in `polygraph.edges()`; the first entry is the end of what was known before pruning.
    /// An edge added in a round was forced by the edges of the rounds before it.
    pub round_ends: Vec<usize>,
}

/// An acyclic known graph and the constraints still open.
#[derive(Clone, Debug)]
pub struct Pruned {
    /// The polygraph with every edge that became known.
    pub polygraph: Polygraph,
    /// As in [`Contradiction`].
    pub round_ends: Vec<usize>,
    /// The known graph.
    pub dag: Dag,
    /// What is open.
    pub constraints: Constraints,
    /// The position estimate, or empty.
    pub estimate: Vec<f32>,
}

impl Pruned {
    /// What a back end is asked.
    pub fn question(&self) -> Question<'_> {
        Question {
            n_nodes: self.dag.n_nodes(),
            starts: &self.dag.starts,
            targets: &self.dag.targets,
            order: &self.dag.order,
            constraints: &self.constraints,
            estimate: &self.estimate,
        }
    }
}
