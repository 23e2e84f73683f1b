//! Pruning, with the meaning of the nodes kept beside the graph.

pub use kingsnake_graph::prune::{
    Device, DeviceError, DeviceStats, Judgement, Offer, PairEdge, PruneOptions, PruneStats,
    Reachability, Relatives, RoundStats, RunNodes, Task, Variable,
};
pub use kingsnake_graph::reach::{Clocks, Cyclic, Dag, Dense};

use crate::budget::{Budget, StopReason};
use crate::progress::Progress;
use crate::relate::Polygraph;
use kingsnake_graph::prune as graph;

/// No order explains the history.
pub type Contradiction = graph::Contradiction<Polygraph>;
/// An acyclic known graph and the constraints still open.
pub type Pruned = graph::Pruned<Polygraph>;
/// The result of pruning.
pub type Outcome = graph::Outcome<Polygraph>;

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

/// Prunes on a device if it accepts the task. If it fails, the CPU computes the answer, and the statistics say why.
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
    Ok(outcome.map(|problem| {
        polygraph.problem = problem;
        polygraph
    }))
}
