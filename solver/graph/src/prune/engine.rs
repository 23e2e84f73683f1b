//! The engine that keeps the closure in a round: the CPU (`local`) or a device (`remote`).

use super::PruneOptions;
use super::Variable;
use super::device::DeviceError;
use super::open::Placed;
use crate::decide::Constraints;
use crate::edge::Edge;
use crate::problem::Problem;
use crate::reach::{Dag, Reach};
use crate::session::Growth;
use kingsnake_context::budget::{Budget, StopReason};

/// The result of a round.
pub(super) struct Round {
    pub(super) edges: Vec<Edge>,
    pub(super) n_open: usize,
    /// Whether a clause has no literal left that could hold.
    pub(super) is_contradiction: bool,
}

/// Why an engine gave no answer: the budget, or a device that failed.
pub(super) type Halt = DeviceError;

/// What is left: the constraints, and the position estimate if it was wanted.
#[derive(Default)]
pub(super) struct Rest {
    pub(super) constraints: Constraints,
    pub(super) estimate: Vec<f32>,
    /// The known graph with the nodes that logic needs, if it needs any.
    pub(super) dag: Option<Dag>,
    pub(super) variables: Vec<Variable>,
    /// What the logic says, where the question will grow.
    pub(super) left: Option<Growth>,
    /// The constraint of each open pair, where the question will grow.
    pub(super) placed: Placed,
    /// The closure of the known graph, if the engine has it.
    pub(super) reach: Option<Reach>,
    /// Whether a clause has no literal left that could hold.
    pub(super) is_contradiction: bool,
}

/// Keeps the closure over the rounds. Every engine computes the same.
pub(super) trait Engine {
    /// Takes new edges into the closure without the graph that has them; whether they close no cycle. `None` if it needs the graph.
    /// The graph that it is given need not have the edges that it took before.
    fn follow(&mut self, _: &Dag, _: &[Edge]) -> Option<bool> {
        None
    }

    /// Brings the closure up to date with the edges of the last round, and judges.
    fn round(
        &mut self,
        problem: &Problem,
        dag: &Dag,
        new: &[Edge],
        budget: &Budget,
    ) -> Result<Round, Halt>;

    /// The graph that was closed last, without edges that others imply, if that makes the next rounds cheaper.
    fn reduce(&self, _: &Dag) -> Option<Dag> {
        None
    }

    /// Lists what is open. `new` are the edges that the closure does not know yet: `None` where it is up to date.
    fn finish(
        &mut self,
        problem: &Problem,
        dag: &Dag,
        new: Option<&[Edge]>,
        options: PruneOptions,
        budget: &Budget,
    ) -> Result<Rest, Halt>;
}

/// Memory for the list of all pairs, before it is made.
pub(super) fn reserve_pairs(problem: &Problem, budget: &Budget) -> Result<(), StopReason> {
    let pairs = problem.orders.n_pairs();
    budget.reserve("the list of constraints", pairs.saturating_mul(64))
}
