//! Who keeps the closure in a round: the CPU (`local`) or a device (`remote`).

use super::device::DeviceError;
use super::{Dag, PruneOptions};
use crate::budget::{Budget, StopReason};
use crate::decide::Constraints;
use crate::polygraph::{Edge, Polygraph};

/// What a round found.
pub(super) struct Round {
    pub(super) edges: Vec<Edge>,
    pub(super) n_open: usize,
}

/// Why an engine gave no answer: the budget, or a device that failed.
pub(super) type Halt = DeviceError;

/// What is left: the constraints, and the position estimate if it was wanted.
pub(super) type Rest = (Constraints, Vec<f32>);

/// Keeps the closure over the rounds. Every engine finds the same.
pub(super) trait Engine {
    /// Brings the closure up to date with the edges of the last round, and judges.
    fn round(
        &mut self,
        polygraph: &Polygraph,
        dag: &Dag,
        new: &[Edge],
        budget: &Budget,
    ) -> Result<Round, Halt>;

    /// Lists what is open. `new` are the edges that the closure does not know yet: `None` where it is up to date.
    fn finish(
        &mut self,
        polygraph: &Polygraph,
        dag: &Dag,
        new: Option<&[Edge]>,
        options: PruneOptions,
        budget: &Budget,
    ) -> Result<Rest, Halt>;
}

/// The position estimate: ancestors minus descendants, a linear extension close to the real execution.
pub(super) fn positions(ancestors: &[u32], descendants: &[u32]) -> Vec<f32> {
    let pairs = ancestors.iter().zip(descendants);
    pairs
        .map(|(&before, &after)| before as f32 - after as f32)
        .collect()
}

/// Memory for the list of all pairs, before it is made.
pub(super) fn reserve_pairs(polygraph: &Polygraph, budget: &Budget) -> Result<(), StopReason> {
    let pairs = polygraph.runs.n_pairs();
    budget.reserve("the list of constraints", pairs.saturating_mul(64))
}
