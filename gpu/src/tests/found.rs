//! The result of pruning on a device or on the CPU, for comparison.

use kingsnake_graph::Edge;
use kingsnake_graph::decide::Side;
use kingsnake_graph::prune::{Outcome, PruneStats, Variable};

/// The result of pruning, for comparison: edges, where rounds end, sides, estimate, variables, statistics of each round.
#[derive(Debug, PartialEq)]
pub(super) struct Found {
    is_contradiction: bool,
    edges: Vec<Edge>,
    round_ends: Vec<usize>,
    sides: Vec<Vec<Edge>>,
    estimate: Vec<f32>,
    variables: Vec<Variable>,
    rounds: Vec<(u64, u64)>,
}

impl Found {
    pub(super) fn of(outcome: Outcome, stats: &PruneStats) -> Found {
        let rounds = stats.rounds.iter().map(|it| (it.new_edges, it.open));
        let rounds = rounds.collect();
        match outcome {
            Outcome::Contradiction(it) => Found {
                is_contradiction: true,
                edges: it.problem.edges,
                round_ends: it.round_ends,
                sides: Vec::new(),
                estimate: Vec::new(),
                variables: Vec::new(),
                rounds,
            },
            Outcome::Pruned(it) => {
                let sides = (0..it.constraints.len()).flat_map(|at| {
                    [Side::Either, Side::Or].map(|side| it.constraints.side(at, side).to_vec())
                });
                Found {
                    is_contradiction: false,
                    sides: sides.collect(),
                    edges: it.problem.edges,
                    round_ends: it.round_ends,
                    estimate: it.estimate,
                    variables: it.variables,
                    rounds,
                }
            }
        }
    }

    pub(super) fn is_contradiction(&self) -> bool {
        self.is_contradiction
    }

    /// The values of the variables.
    pub(super) fn variables(&self) -> &[Variable] {
        &self.variables
    }
}
