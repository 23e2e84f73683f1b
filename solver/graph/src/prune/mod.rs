//! Decides constraints by reachability, to the fixpoint: if one way to order two runs closes a cycle, the other is forced.
//!
//! Run *a* cannot come before run *b* if *b*'s head already reaches *a*'s last writer or one of its readers. If one way
//! is impossible the other's edges become known; if both are, the known edges get a cycle, which the next round finds.

mod along;
mod asked;
mod device;
mod engine;
mod execute;
mod grow;
mod judge;
mod local;
mod logic;
mod open;
mod remote;
mod residue;
mod rounds;

use std::time::Duration;

pub use device::{
    Device, DeviceError, DeviceStats, Judgement, Offer, PairEdge, Relatives, RunNodes, Task,
};
pub use rounds::{PruneOptions, prune, prune_on};

use crate::decide::{Constraints, Question, Side};
use crate::edge::Edge;
use crate::problem::Problem;
use crate::reach::{Cyclic, Dag};

/// How reachability is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reachability {
    /// Chosen from the sizes.
    #[default]
    Auto,
    /// A bit for every pair of nodes.
    Dense,
    /// For every node, a position on each chain.
    Chains,
}

/// Statistics of one pruning round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RoundStats {
    /// Edges that became known.
    pub new_edges: u64,
    /// Pairs still open.
    pub open: u64,
    /// How long it took.
    pub time: Duration,
}

/// Statistics of pruning.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PruneStats {
    /// How reachability was kept: `none` (not needed), `dense`, `chains`, `device`.
    pub reachability: &'static str,
    /// Why it was chosen.
    pub why: String,
    /// The rounds.
    pub rounds: Vec<RoundStats>,
    /// Whether nothing more could be forced.
    pub fixpoint: bool,
    /// Statistics of a device, or why none was used.
    pub device: DeviceStats,
}

/// The known edges have a cycle, or a clause has no literal left that could hold.
#[derive(Clone, Debug)]
pub struct Contradiction<P = Problem> {
    /// The problem with every edge that became known; `P` may keep beside it what its nodes stand for.
    pub problem: P,
    /// Where each round's edges end in the problem's; the first entry is the end of what was known before pruning.
    /// An edge added in a round was forced by the edges of the rounds before it.
    pub round_ends: Vec<usize>,
}

/// An acyclic known graph and the constraints still open.
#[derive(Clone, Debug)]
pub struct Pruned<P = Problem> {
    /// As in [`Contradiction`].
    pub problem: P,
    /// As in [`Contradiction`].
    pub round_ends: Vec<usize>,
    /// The known graph.
    pub dag: Dag,
    /// What is open.
    pub constraints: Constraints,
    /// The value of each variable of the problem's logic.
    pub variables: Vec<Variable>,
    /// The position estimate, or empty.
    pub estimate: Vec<f32>,
    open: Box<grow::Open>,
}

impl<P> Pruned<P> {
    /// The question for a back end; if the question may grow, without the additions ([`Pruned::grown`]).
    pub fn question(&self) -> Question<'_> {
        let is_open = |it: &Variable| matches!(it, Variable::Open(_));
        Question {
            has_choices: self.open.reach.is_none() && self.variables.iter().any(is_open),
            ..Question::new(&self.dag, &self.constraints, &self.estimate)
        }
    }

    /// The order that sides of the constraints leave; of the known graph alone where none is given.
    pub fn order(&self, sides: &[Side]) -> Result<Vec<u32>, Cyclic> {
        if sides.is_empty() && self.open.grown.is_empty() {
            return Ok(self.dag.order().to_vec());
        }
        let dag = self.dag.with(self.chosen(sides))?;
        Ok(dag.order().to_vec())
    }

    /// The order that sides of the constraints leave in which nodes come as early as their ranks allow.
    pub fn order_by<K: Ord>(
        &self,
        sides: &[Side],
        rank: impl Fn(u32) -> K,
    ) -> Result<Vec<u32>, Cyclic> {
        Ok(self.dag.with(self.chosen(sides))?.order_by(rank))
    }

    /// The known edges and those of the sides.
    pub fn edges(&self, sides: &[Side]) -> Vec<Edge> {
        let chosen = self.chosen(sides).copied();
        self.question().known().chain(chosen).collect()
    }

    /// The edges of the sides.
    fn chosen<'a>(&'a self, sides: &'a [Side]) -> impl Iterator<Item = &'a Edge> + Clone {
        let of_constraints = sides.iter().enumerate().take(self.constraints.len());
        let of_constraints = of_constraints.flat_map(|(at, &side)| self.constraints.side(at, side));
        let grown = self.open.grown.iter();
        of_constraints.chain(grown.flat_map(move |it| it.edges(sides)))
    }
}

/// The state of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// It is settled.
    Settled(bool),
    /// It is this constraint: true is its first side.
    Open(u32),
}

/// The result of pruning.
#[derive(Clone, Debug)]
pub enum Outcome<P = Problem> {
    /// A cycle of known edges.
    Contradiction(Contradiction<P>),
    /// An acyclic graph.
    Pruned(Pruned<P>),
}

impl<P> Outcome<P> {
    /// The same of another way to keep the problem.
    pub fn map<Q>(self, keep: impl FnOnce(P) -> Q) -> Outcome<Q> {
        match self {
            Outcome::Contradiction(found) => Outcome::Contradiction(Contradiction {
                problem: keep(found.problem),
                round_ends: found.round_ends,
            }),
            Outcome::Pruned(pruned) => Outcome::Pruned(Pruned {
                problem: keep(pruned.problem),
                round_ends: pruned.round_ends,
                dag: pruned.dag,
                constraints: pruned.constraints,
                variables: pruned.variables,
                estimate: pruned.estimate,
                open: pruned.open,
            }),
        }
    }
}
