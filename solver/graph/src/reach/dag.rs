//! An acyclic graph by source, with a topological order; the type guarantees that it is acyclic.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rayon::prelude::*;

use crate::edge::Edge;
use crate::sort::{peeled, resorted};

/// The order of so many nodes is mended where new edges run back over it. Fewer are sorted again as a whole.
const LARGE: usize = 1 << 17;

/// Number of nodes that a thread reduces at a time.
const REDUCED_AT_ONCE: usize = 512;

/// An acyclic graph.
#[derive(Clone, Debug)]
pub struct Dag {
    starts: Vec<u32>,
    targets: Vec<u32>,
    order: Vec<u32>,
}

/// The edges have a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cyclic;

impl Dag {
    /// Sorts the edges by source and the nodes topologically (Kahn), or says that there is a cycle.
    pub fn new<'a>(
        n_nodes: usize,
        edges: impl Iterator<Item = &'a Edge> + Clone,
    ) -> Result<Self, Cyclic> {
        Self::joined(n_nodes, None, edges)
    }

    /// This graph with more edges.
    pub fn with<'a>(&self, more: impl Iterator<Item = &'a Edge> + Clone) -> Result<Self, Cyclic> {
        Self::joined(self.n_nodes(), Some(self), more)
    }

    fn joined<'a>(
        n_nodes: usize,
        known: Option<&Dag>,
        more: impl Iterator<Item = &'a Edge> + Clone,
    ) -> Result<Self, Cyclic> {
        let mut starts = vec![0_u32; n_nodes + 1];
        for edge in more.clone() {
            starts[edge.from as usize + 1] += 1;
        }
        if let Some(known) = known {
            for node in 0..n_nodes {
                starts[node + 1] += known.successors(node as u32).len() as u32;
            }
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        let mut targets = vec![0_u32; starts[n_nodes] as usize];
        let mut next = starts.clone();
        if let Some(known) = known {
            for (node, next) in next[..n_nodes].iter_mut().enumerate() {
                let successors = known.successors(node as u32);
                targets[*next as usize..][..successors.len()].copy_from_slice(successors);
                *next += successors.len() as u32;
            }
        }
        for edge in more.clone() {
            let at = &mut next[edge.from as usize];
            targets[*at as usize] = edge.to;
            *at += 1;
        }
        drop(next);
        let targets_of = |node: u32| {
            &targets[starts[node as usize] as usize..starts[node as usize + 1] as usize]
        };
        let mended = known.filter(|_| n_nodes >= LARGE).and_then(|known| {
            let places = known.places();
            let place = |node: u32| places[node as usize];
            let more: Vec<(u32, u32)> = more.map(|it| (place(it.from), place(it.to))).collect();
            resorted(&known.order, &places, &more, targets_of)
        });
        let order = mended.unwrap_or_else(|| {
            let mut indegree = vec![0_u32; n_nodes];
            for &to in &targets {
                indegree[to as usize] += 1;
            }
            peeled(indegree, |node| targets_of(node).iter().copied())
        });
        if order.len() < n_nodes {
            return Err(Cyclic);
        }
        Ok(Dag {
            starts,
            targets,
            order,
        })
    }

    /// The graph without the edges that a path of others implies (its transitive reduction), given where paths are.
    #[must_use]
    pub fn reduced(&self, reaches: impl Fn(u32, u32) -> bool + Sync) -> Self {
        let place = self.places();
        let nodes: Vec<u32> = (0..self.n_nodes() as u32).collect();
        let reduce = |nodes: &[u32]| {
            let (mut ends, mut kept) = (Vec::with_capacity(nodes.len()), Vec::new());
            let mut targets: Vec<u32> = Vec::new();
            for &node in nodes {
                // What implies an edge is a path through a successor that stands nearer.
                targets.clear();
                targets.extend_from_slice(self.successors(node));
                targets.sort_unstable_by_key(|&to| place[to as usize]);
                targets.dedup();
                let first = kept.len();
                for &to in &targets {
                    if !kept[first..].iter().any(|&nearer| reaches(nearer, to)) {
                        kept.push(to);
                    }
                }
                ends.push(kept.len() as u32);
            }
            (ends, kept)
        };
        let parts: Vec<(Vec<u32>, Vec<u32>)> =
            nodes.par_chunks(REDUCED_AT_ONCE).map(reduce).collect();
        let (mut starts, mut targets) = (vec![0_u32], Vec::new());
        for (ends, kept) in parts {
            let first = targets.len() as u32;
            starts.extend(ends.iter().map(|end| first + end));
            targets.extend(kept);
        }
        Dag {
            starts,
            targets,
            order: self.order.clone(),
        }
    }

    /// The number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.order.len()
    }

    /// The number of edges.
    pub fn n_edges(&self) -> usize {
        self.targets.len()
    }

    /// The direct successors of a node.
    #[inline]
    pub fn successors(&self, node: u32) -> &[u32] {
        let node = node as usize;
        &self.targets[self.starts[node] as usize..self.starts[node + 1] as usize]
    }

    /// The nodes in a topological order.
    pub fn order(&self) -> &[u32] {
        &self.order
    }

    /// The nodes in the topological order that takes, of those that can come next, the one of the least rank.
    pub fn order_by<K: Ord>(&self, rank: impl Fn(u32) -> K) -> Vec<u32> {
        let mut indegree = vec![0_u32; self.n_nodes()];
        for &to in &self.targets {
            indegree[to as usize] += 1;
        }
        let nodes = 0..self.n_nodes() as u32;
        let free = nodes.filter(|&it| indegree[it as usize] == 0);
        let mut next: BinaryHeap<Reverse<(K, u32)>> =
            free.map(|it| Reverse((rank(it), it))).collect();
        let mut order = Vec::with_capacity(self.n_nodes());
        while let Some(Reverse((_, node))) = next.pop() {
            order.push(node);
            for &to in self.successors(node) {
                indegree[to as usize] -= 1;
                if indegree[to as usize] == 0 {
                    next.push(Reverse((rank(to), to)));
                }
            }
        }
        order
    }

    /// The same graph with another topological order of its nodes.
    #[must_use]
    pub(crate) fn in_order(self, order: Vec<u32>) -> Dag {
        debug_assert_eq!(order.len(), self.n_nodes());
        Dag { order, ..self }
    }

    /// Where each node stands in the topological order.
    pub fn places(&self) -> Vec<u32> {
        places(&self.order)
    }

    /// Where each node's successors begin in [`Dag::targets`].
    pub fn starts(&self) -> &[u32] {
        &self.starts
    }

    /// All successors, by source.
    pub fn targets(&self) -> &[u32] {
        &self.targets
    }

    /// The same graph with every edge turned round.
    #[must_use]
    pub fn reversed(&self) -> Dag {
        let n_nodes = self.n_nodes();
        let mut starts = vec![0_u32; n_nodes + 1];
        for &to in &self.targets {
            starts[to as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut targets = vec![0_u32; self.targets.len()];
        for from in 0..n_nodes as u32 {
            for &to in self.successors(from) {
                let at = &mut next[to as usize];
                targets[*at as usize] = from;
                *at += 1;
            }
        }
        let order = self.order.iter().rev().copied().collect();
        Dag {
            starts,
            targets,
            order,
        }
    }
}

/// Where each node stands in an order of all nodes.
pub fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (at, &node) in order.iter().enumerate() {
        places[node as usize] = at as u32;
    }
    places
}
