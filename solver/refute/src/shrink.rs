//! Shortens a refutation: keeps the transactions that it names, then tries to remove each of them.
//!
//! Invariant: what is returned refutes the world of the transactions that it names.

use std::collections::BTreeSet;

use super::effort::Effort;
use super::prove::prove;
use super::world::Universe;
use crate::resolve::{Node, Resolved};
use crate::verdict::{Fact, Proof, Step, StepReason};

/// The length of a proof for a reader: steps, and more for each case and each assumption.
pub(super) fn length(proof: &Proof) -> usize {
    let of_steps: usize = proof.steps().map(step_length).sum();
    of_steps + 12 * proof.splits().count()
}

fn step_length(step: &Step) -> usize {
    match step.reason {
        StepReason::Begin => 1,
        StepReason::Session
        | StepReason::RealTime
        | StepReason::Stated { .. }
        | StepReason::Wr { .. } => 4,
        StepReason::Vis { .. } => 6,
        StepReason::Ww { fact, .. } | StepReason::Rw { fact, .. } => match fact {
            Fact::Initial | Fact::Assumed => 5,
            Fact::Run | Fact::Given => 6,
        },
    }
}

/// The transactions that a proof steps through, sorted.
pub(super) fn nodes_of(proof: &Proof, resolved: &Resolved) -> Vec<Node> {
    let stepped = proof.steps().map(|step| step.from.txn);
    let split = proof.splits().flat_map(|split| [split.one, split.other]);
    let nodes: BTreeSet<Node> = stepped
        .chain(split)
        .filter_map(|txn| resolved.node(txn))
        .collect();
    nodes.into_iter().collect()
}

/// A proof in the world of these transactions, if one is found with this much work.
pub(super) fn prove_among(
    universe: &Universe<'_>,
    nodes: &[Node],
    work: &mut Effort<'_>,
) -> Option<Proof> {
    let world = universe.world(nodes);
    prove(&world.arena, work).map(|tree| world.proof(&tree, universe.history))
}

/// Shortens a proof as long as there is work left.
pub(super) fn shrink(
    universe: &Universe<'_>,
    resolved: &Resolved,
    mut proof: Proof,
    work: &mut Effort<'_>,
) -> Proof {
    loop {
        let nodes = nodes_of(&proof, resolved);
        let before = length(&proof);
        let mut candidates = vec![nodes.clone()];
        if proof.as_cycle().is_none() {
            candidates.extend((0..nodes.len()).map(|at| without(&nodes, at)));
        }
        for fewer in candidates {
            let Some(shorter) = prove_among(universe, &fewer, work) else {
                continue;
            };
            if length(&shorter) < length(&proof) {
                proof = shorter;
                break;
            }
        }
        if length(&proof) == before || work.is_spent() {
            return proof;
        }
    }
}

fn without(nodes: &[Node], at: usize) -> Vec<Node> {
    [&nodes[..at], &nodes[at + 1..]].concat()
}
