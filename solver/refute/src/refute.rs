//! From a contradiction that pruning found, or a core that a back end found, to a short proof.
//!
//! The large graph is searched only for a few relevant transactions; the proof is then made among those alone.

use std::collections::BTreeSet;

use super::arena::{Arc, Arena};
use super::classes::worst_cycle;
use super::cycles::{cyclic_components, members, short_cycles};
use super::effort::{Effort, Spent};
use super::gather::Gathering;
use super::known::KnownGraph;
use super::lemmas::prove_cycle;
use super::prove::{Tree, prove};
use super::reach::reach_among;
use super::relations::Relations;
use super::shrink::{length, prove_among, shrink};
use super::stated::stated;
use super::world::{Universe, turn};
use crate::budget::{Budget, StopReason};
use crate::decide::Side;
use crate::level::Model;
use crate::model::History;
use crate::prune::{Contradiction, Pruned};
use crate::relate::{Edge, Polygraph};
use crate::resolve::Node;
use crate::verdict::{Proof, Step};

/// Work for the worst cycle of direct dependencies, in edges.
const CLASSIFY: u64 = 150_000_000;
/// Work for proving among the transactions that were gathered, in words of bit rows.
const PROVE: u64 = 400_000_000;
/// Work for shortening what was proved.
const SHRINK: u64 = 20_000_000;
/// Larger worlds are not searched before there is a proof.
const LARGEST_WORLD: usize = 2_500;
/// How many forced orders are followed back before there is a proof.
const JUSTIFIED: usize = 2_000;

/// Why there is no proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoProof {
    /// The budget ended.
    Stopped(StopReason),
    /// There is nothing to prove, or the reason of some edge cannot be found again: an error of the back end.
    NotFound,
}

impl From<StopReason> for NoProof {
    fn from(reason: StopReason) -> Self {
        NoProof::Stopped(reason)
    }
}

/// Explains why the known edges of a contradiction are impossible: a proof about the history's operations.
///
/// First the worst cycle of direct dependencies. Where there is none, because pruning forced some of the edges, a short proof by
/// cases among the transactions that matter; where that takes too much work, the cycle itself, with a lemma for each forced order.
pub fn refute(
    contradiction: &Contradiction,
    history: &History,
    budget: &Budget,
) -> Result<Proof, NoProof> {
    refute_through(contradiction, None, history, budget)
}

/// The same of a case: what is assumed of a transaction contradicts what is known, so all cycles pass the transaction. Of a case any
/// short cycle will do.
pub fn refute_case(
    contradiction: &Contradiction,
    assumed_of: Node,
    history: &History,
    budget: &Budget,
) -> Result<Proof, NoProof> {
    refute_through(contradiction, Some(assumed_of), history, budget)
}

fn refute_through(
    contradiction: &Contradiction,
    passes: Option<Node>,
    history: &History,
    budget: &Budget,
) -> Result<Proof, NoProof> {
    let polygraph = &contradiction.problem;
    if let Some(step) = before_the_initial_state(polygraph, history) {
        return Ok(Proof::Cycle(vec![step]));
    }
    let mut graph = KnownGraph::new(polygraph, &contradiction.round_ends);
    let component = cyclic_components(&graph);
    budget.check()?;
    let members = members(polygraph, &component);
    // Direct dependencies are those of serializability and snapshot isolation.
    if matches!(polygraph.spec().model, Model::Ser | Model::Si) {
        let relations = Relations::new(polygraph, history, members);
        let mut effort = Effort::new(CLASSIFY, budget);
        if let Some(steps) = given_up(worst_cycle(&relations, passes, &mut effort))? {
            return Ok(Proof::Cycle(turn(history, steps)));
        }
    }
    let mut stamp = 0;
    let mut candidates = Vec::new();
    let cycles = short_cycles(&graph, &component);
    for cycle in &cycles {
        budget.check()?;
        let mut gathering = Gathering::new(&mut graph, &mut stamp, JUSTIFIED);
        gathering.add_known(cycle);
        candidates.push(gathering.into_nodes());
    }
    candidates.sort_by_key(Vec::len);
    candidates.dedup();
    candidates.retain(|nodes| nodes.len() <= LARGEST_WORLD);
    if let Some(proof) = best_proof(polygraph, history, &candidates, PROVE, budget)? {
        return Ok(proof);
    }
    let mut effort = Effort::unlimited(budget);
    for cycle in &cycles {
        let proof = prove_cycle(&mut graph, history, cycle, &mut stamp, &mut effort);
        if let Some(proof) = given_up(proof)? {
            return Ok(proof);
        }
    }
    Err(NoProof::NotFound)
}

/// That a transaction must commit before the initial state, by a read that saw it and returned the initial state.
fn before_the_initial_state(polygraph: &Polygraph, history: &History) -> Option<Step> {
    let edge = polygraph.edges().iter().find(|edge| edge.from == edge.to)?;
    Some(Step {
        from: polygraph.point(edge.from)?,
        to: polygraph.point(edge.to)?,
        reason: stated(polygraph, history, *edge)?,
    })
}

/// The result of a search; `None` if its work was used up.
fn given_up<T>(found: Result<Option<T>, Spent>) -> Result<Option<T>, NoProof> {
    match found {
        Ok(found) => Ok(found),
        Err(Spent::Work) => Ok(None),
        Err(Spent::Budget(reason)) => Err(NoProof::Stopped(reason)),
    }
}

/// The shortest of the proofs found among each of these sets of transactions.
fn best_proof(
    polygraph: &Polygraph,
    history: &History,
    candidates: &[Vec<Node>],
    work: u64,
    budget: &Budget,
) -> Result<Option<Proof>, NoProof> {
    let all: BTreeSet<Node> = candidates.iter().flatten().copied().collect();
    let all: Vec<Node> = all.into_iter().collect();
    let universe = Universe::new(polygraph, history, &all);
    let mut best: Option<Proof> = None;
    for nodes in candidates {
        let mut effort = Effort::new(work, budget);
        let found = prove_among(&universe, nodes, &mut effort);
        budget.check()?;
        if let Some(proof) = found
            && best
                .as_ref()
                .is_none_or(|least| length(&proof) < length(least))
        {
            best = Some(proof);
        }
    }
    let mut effort = Effort::new(SHRINK, budget);
    Ok(best.map(|proof| shrink(&universe, polygraph.resolved(), proof, &mut effort)))
}

/// Explains why a core's constraints cannot all be met. The search ends with a proof, or with the budget.
pub fn refute_core(
    pruned: &Pruned,
    core: &[u32],
    history: &History,
    budget: &Budget,
) -> Result<Proof, NoProof> {
    let polygraph = &pruned.problem;
    let mut ends = BTreeSet::new();
    for edge in core_edges(pruned, core) {
        ends.extend([edge.from, edge.to]);
    }
    let ends: Vec<u32> = ends.into_iter().collect();
    reserve("the paths between the ends of a core", ends.len(), budget)?;
    let arena = core_arena(pruned, core, &ends).ok_or(NoProof::NotFound)?;
    let tree = prove(&arena, &mut Effort::unlimited(budget));
    budget.check()?;
    let tree = tree.ok_or(NoProof::NotFound)?;
    let mut graph = KnownGraph::new(polygraph, &pruned.round_ends);
    let mut stamp = 0;
    let mut gathering = Gathering::new(&mut graph, &mut stamp, usize::MAX);
    gather_tree(&tree, &arena, &ends, &mut gathering);
    let nodes = gathering.into_nodes();
    reserve(
        "the transactions that a core rests on",
        2 * nodes.len(),
        budget,
    )?;
    let proof = best_proof(polygraph, history, &[nodes], u64::MAX, budget)?;
    proof.ok_or(NoProof::NotFound)
}

/// Whether a bit for each pair of points may be allocated, for some tens of cases at a time.
fn reserve(what: &'static str, n_points: usize, budget: &Budget) -> Result<(), StopReason> {
    let bits = (n_points as u64).saturating_mul(n_points as u64);
    budget.reserve(what, bits / 8)
}

fn core_edges<'p>(pruned: &'p Pruned, core: &'p [u32]) -> impl Iterator<Item = &'p Edge> {
    core.iter().flat_map(move |&constraint| {
        let sides = [Side::Either, Side::Or];
        sides
            .into_iter()
            .flat_map(move |side| pruned.constraints.side(constraint as usize, side))
    })
}

/// The core as an arena: the ends of its edges, known paths between them, and its constraints as splits.
fn core_arena(pruned: &Pruned, core: &[u32], ends: &[u32]) -> Option<Arena> {
    let place = |node: u32| ends.binary_search(&node).ok().map(|at| at as u32);
    let mut arcs: Vec<Arc> = reach_among(&pruned.dag, ends)
        .into_iter()
        .map(|(from, to)| Arc {
            from,
            to,
            cost: 2,
            split: None,
        })
        .collect();
    for (split, &constraint) in core.iter().enumerate() {
        for (at, side) in [Side::Either, Side::Or].into_iter().enumerate() {
            for edge in pruned.constraints.side(constraint as usize, side) {
                arcs.push(Arc {
                    from: place(edge.from)?,
                    to: place(edge.to)?,
                    cost: 3,
                    split: Some((split as u32, at)),
                });
            }
        }
    }
    Some(Arena::new(ends.len(), core.len(), arcs))
}

/// Gathers what the leaves of a tree rest on.
fn gather_tree(tree: &Tree, arena: &Arena, ends: &[u32], gathering: &mut Gathering<'_, '_>) {
    match tree {
        Tree::Cycle(arcs) => {
            for &arc in arcs {
                let arc = arena.arc(arc);
                let (from, to) = (ends[arc.from as usize], ends[arc.to as usize]);
                gathering.add_nodes(from, to);
                if arc.split.is_none() {
                    gathering.add_path(from, to);
                }
            }
        }
        Tree::Split { sides, .. } => {
            for side in sides.iter() {
                gather_tree(side, arena, ends, gathering);
            }
        }
    }
}
