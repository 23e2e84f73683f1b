//! From a contradiction that pruning found, or a core that a back end found, to a short proof.
//!
//! The large graph is searched only for a handful of transactions that matter; the proof is then made among those alone.

use std::collections::BTreeSet;

use super::arena::{Arc, Arena};
use super::cycles::short_cycles;
use super::gather::Gathering;
use super::known::KnownGraph;
use super::prove::{Tree, prove};
use super::reach::reach_among;
use super::shrink::{length, prove_among, shrink};
use super::world::Universe;
use crate::decide::Side;
use crate::model::History;
use crate::polygraph::{Edge, Polygraph};
use crate::prune::{Contradiction, Pruned};
use crate::resolve::Node;
use crate::verdict::Proof;

/// Work for proving among the transactions that were gathered, in words of bit rows.
const PROVE: u64 = 400_000_000;
/// Work for shortening what was proved.
const SHRINK: u64 = 20_000_000;
/// Larger worlds than this are not built.
const LARGEST_WORLD: usize = 2_500;
/// A core with more ends of edges than this is not explained.
const LARGEST_CORE: usize = 4_000;

/// Explains why the known edges of a contradiction cannot be: a proof about the history's operations.
///
/// An empty cycle, which no checker accepts, if the edges have no cycle or the reasons of its edges cannot be found again.
pub fn refute(contradiction: &Contradiction, history: &History) -> Proof {
    let polygraph = &contradiction.polygraph;
    let mut graph = KnownGraph::new(polygraph, &contradiction.round_ends);
    let mut stamp = 0;
    let mut candidates = Vec::new();
    for cycle in short_cycles(&graph) {
        let mut gathering = Gathering::new(&mut graph, &mut stamp);
        gathering.add_known(&cycle);
        candidates.push(gathering.into_nodes());
    }
    candidates.sort_by_key(Vec::len);
    candidates.dedup();
    best_proof(polygraph, history, &candidates).unwrap_or(Proof::Cycle(Vec::new()))
}

/// The shortest of the proofs found among each of these sets of transactions.
fn best_proof(polygraph: &Polygraph, history: &History, candidates: &[Vec<Node>]) -> Option<Proof> {
    let all: BTreeSet<Node> = candidates.iter().flatten().copied().collect();
    let all: Vec<Node> = all.into_iter().collect();
    let universe = Universe::new(polygraph, history, &all);
    let mut best: Option<Proof> = None;
    for nodes in candidates
        .iter()
        .filter(|nodes| nodes.len() <= LARGEST_WORLD)
    {
        let found = prove_among(&universe, nodes, &mut PROVE.clone());
        if let Some(proof) = found
            && best
                .as_ref()
                .is_none_or(|least| length(&proof) < length(least))
        {
            best = Some(proof);
        }
    }
    best.map(|proof| shrink(&universe, polygraph.resolved(), proof, &mut SHRINK.clone()))
}

/// Explains why a core's constraints cannot all be met, or gives up when that would take too much work.
pub fn refute_core(pruned: &Pruned, core: &[u32], history: &History) -> Option<Proof> {
    let polygraph = &pruned.polygraph;
    let mut ends = BTreeSet::new();
    for edge in core_edges(pruned, core) {
        ends.extend([edge.from, edge.to]);
        if ends.len() > LARGEST_CORE {
            return None;
        }
    }
    let ends: Vec<u32> = ends.into_iter().collect();
    let arena = core_arena(pruned, core, &ends)?;
    let tree = prove(&arena, &mut PROVE.clone())?;
    let mut graph = KnownGraph::new(polygraph, &pruned.round_ends);
    let mut stamp = 0;
    let mut gathering = Gathering::new(&mut graph, &mut stamp);
    gather_tree(&tree, &arena, &ends, &mut gathering);
    best_proof(polygraph, history, &[gathering.into_nodes()])
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
