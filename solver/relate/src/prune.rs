//! Pruning, with what the nodes stand for kept beside the graph.

pub use kingsnake_graph::prune::{
    Device, DeviceError, DeviceStats, Judgement, Offer, PairEdge, PruneOptions, PruneStats,
    Reachability, Relatives, RoundStats, RunNodes, Task, Variable,
};
pub use kingsnake_graph::reach::{Clocks, Cyclic, Dag, Dense};

use crate::budget::{Budget, StopReason};
use crate::decide::{Constraints, Question};
use crate::progress::Progress;
use crate::relate::Polygraph;
use kingsnake_graph::prune as graph;

/// No order explains the history.
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
    /// What became of each variable of the problem's logic.
    pub variables: Vec<Variable>,
    /// The position estimate, or empty.
    pub estimate: Vec<f32>,
}

impl Pruned {
    /// What a back end is asked.
    pub fn question(&self) -> Question<'_> {
        Question::new(&self.dag, &self.constraints, &self.estimate)
    }
}

/// What pruning ended with.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// A cycle of known edges.
    Contradiction(Contradiction),
    /// An acyclic graph.
    Pruned(Pruned),
}

/// Prunes to the fixpoint, or as long as the options allow, on this CPU.
pub fn prune(
    polygraph: Polygraph,
    options: PruneOptions,
    stats: &mut PruneStats,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Outcome, StopReason> {
    prune_on(None, polygraph, options, stats, budget, progress)
}

/// Prunes on a device if it takes the task. If it fails the CPU answers, and the statistics say why.
pub fn prune_on(
    device: Option<&mut dyn Device>,
    mut polygraph: Polygraph,
    options: PruneOptions,
    stats: &mut PruneStats,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Outcome, StopReason> {
    let problem = std::mem::take(&mut polygraph.problem);
    let outcome = graph::prune_on(device, problem, options, stats, budget, progress)?;
    Ok(match outcome {
        graph::Outcome::Contradiction(found) => {
            polygraph.problem = found.problem;
            Outcome::Contradiction(Contradiction {
                polygraph,
                round_ends: found.round_ends,
            })
        }
        graph::Outcome::Pruned(pruned) => {
            polygraph.problem = pruned.problem;
            Outcome::Pruned(Pruned {
                polygraph,
                round_ends: pruned.round_ends,
                dag: pruned.dag,
                constraints: pruned.constraints,
                variables: pruned.variables,
                estimate: pruned.estimate,
            })
        }
    })
}
