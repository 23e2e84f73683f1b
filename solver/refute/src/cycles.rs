//! Short cycles of the known graph: breadth-first search inside its strongly connected components.
//!
//! Linear in the graph, but for a bounded number of searches; cycles with few edges that pruning added are preferred.

use rustc_hash::FxHashSet;

use super::known::KnownGraph;
use crate::relate::Polygraph;
use crate::resolve::Node;
use kingsnake_graph::components;

/// Number of cycles returned.
const OFFERED: usize = 6;
/// Number of nodes from which cycles are searched.
const SEARCHES: usize = 48;
/// Number of edges that these searches may follow, after the first.
const WORK: u64 = 200_000;

/// Some short cycles, as edges, the easiest to explain first; none if the graph has no cycle.
///
/// Pruning stops at the first cycle, so only its last round's edges close any: there is no need to look at earlier rounds.
pub(super) fn short_cycles(graph: &KnownGraph<'_>, component: &[u32]) -> Vec<Vec<u32>> {
    let mut members: Vec<u32> = (0..component.len() as u32)
        .filter(|&node| component[node as usize] != NONE)
        .collect();
    members.sort_by_key(|&node| component[node as usize]);
    let mut groups: Vec<&[u32]> = members
        .chunk_by(|&a, &b| component[a as usize] == component[b as usize])
        .collect();
    groups.sort_by_key(|group| group.len());
    let mut found = Found::new(graph, component);
    for group in groups.iter().take(OFFERED) {
        found.two_cycles(group);
    }
    for group in groups.iter().take(OFFERED) {
        let step = group.len().div_ceil(SEARCHES).max(1);
        for &start in group.iter().step_by(step) {
            if found.is_done() {
                break;
            }
            found.search(start);
        }
    }
    let mut cycles = found.cycles;
    // Edges that pruning added need reasons of their own, so they count more.
    cycles.sort_by_cached_key(|cycle| -> usize {
        let weight = |&index: &u32| match graph.round(index) {
            _ if graph.is_time(graph.edge(index).from) => 0,
            0 => 2,
            round => 5 + 2 * round,
        };
        cycle.iter().map(weight).sum()
    });
    cycles.truncate(OFFERED);
    cycles
}

struct Found<'g, 'a> {
    graph: &'g KnownGraph<'a>,
    component: &'g [u32],
    cycles: Vec<Vec<u32>>,
    known: FxHashSet<Vec<u32>>,
    seen: Vec<u32>,
    parent: Vec<u32>,
    stamp: u32,
    shortest: usize,
    work: u64,
}

impl<'g, 'a> Found<'g, 'a> {
    fn new(graph: &'g KnownGraph<'a>, component: &'g [u32]) -> Self {
        Found {
            graph,
            component,
            cycles: Vec::new(),
            known: FxHashSet::default(),
            seen: vec![0; component.len()],
            parent: vec![NONE; component.len()],
            stamp: 0,
            shortest: usize::MAX,
            work: WORK,
        }
    }

    fn is_done(&self) -> bool {
        self.work == 0 && !self.cycles.is_empty() || self.cycles.len() >= 8 * OFFERED
    }

    fn add(&mut self, cycle: Vec<u32>) {
        let mut nodes: Vec<u32> = cycle
            .iter()
            .map(|&index| self.graph.edge(index).from)
            .collect();
        nodes.sort_unstable();
        if self.known.insert(nodes) {
            self.shortest = self.shortest.min(cycle.len());
            self.cycles.push(cycle);
        }
    }

    /// Edges there and back again, in linear time: marks a node's predecessors, then looks at its successors.
    fn two_cycles(&mut self, group: &[u32]) {
        for &node in group {
            self.stamp += 1;
            let graph = self.graph;
            for &index in graph.into(node) {
                let from = graph.edge(index).from as usize;
                if self.seen[from] != self.stamp {
                    self.seen[from] = self.stamp;
                    self.parent[from] = index;
                }
            }
            for &index in graph.out(node) {
                let to = graph.edge(index).to;
                if to > node && self.seen[to as usize] == self.stamp {
                    self.add(vec![index, self.parent[to as usize]]);
                }
            }
            if self.cycles.len() >= OFFERED {
                return;
            }
        }
    }

    /// A shortest cycle through a node, inside its component, if it is not much longer than the shortest so far.
    fn search(&mut self, start: u32) {
        self.stamp += 1;
        let graph = self.graph;
        let home = self.component[start as usize];
        let mut level = vec![start];
        let mut depth = 0;
        while !level.is_empty() && depth <= self.shortest {
            let mut next = Vec::new();
            let mut at = 0;
            while at < level.len() {
                let node = level[at];
                at += 1;
                for &index in graph.out(node) {
                    self.work = self.work.saturating_sub(1);
                    let to = graph.edge(index).to;
                    if to == start {
                        self.parent[to as usize] = index;
                        let cycle = self.trace(start);
                        self.add(cycle);
                        return;
                    }
                    if self.component[to as usize] != home || self.seen[to as usize] == self.stamp {
                        continue;
                    }
                    self.seen[to as usize] = self.stamp;
                    self.parent[to as usize] = index;
                    if self.graph.is_time(to) {
                        level.push(to);
                    } else {
                        next.push(to);
                    }
                }
                if self.is_done() {
                    return;
                }
            }
            level = next;
            depth += 1;
        }
    }

    fn trace(&self, start: u32) -> Vec<u32> {
        let mut cycle = vec![self.parent[start as usize]];
        loop {
            let from = self.graph.edge(cycle[cycle.len() - 1]).from;
            if from == start {
                cycle.reverse();
                return cycle;
            }
            cycle.push(self.parent[from as usize]);
        }
    }
}

const NONE: u32 = u32::MAX;

/// The strongly connected component of each node; [`NONE`] where it is the node alone.
pub(super) fn cyclic_components(graph: &KnownGraph<'_>) -> Vec<u32> {
    let found = components(
        graph.polygraph.n_nodes(),
        |node| graph.row(node),
        |_, at| Some(graph.target_at(at)),
    );
    let mut sizes = vec![0_u32; found.n];
    found.of.iter().for_each(|&it| sizes[it as usize] += 1);
    let several = |it: u32| if sizes[it as usize] > 1 { it } else { NONE };
    found.of.into_iter().map(several).collect()
}

/// The transactions that are on some cycle, sorted.
pub(super) fn members(polygraph: &Polygraph, component: &[u32]) -> Vec<Node> {
    let width = polygraph.places().width();
    let nodes = 0..component.len() as u32;
    let nodes = nodes.filter(|&it| component[it as usize] != NONE && polygraph.point(it).is_some());
    let mut members: Vec<Node> = nodes.map(|node| node / width).collect();
    members.dedup();
    members
}
