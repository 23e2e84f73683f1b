//! `propagate`: the open sides that a new edge makes impossible, found by searches that are bounded.
//!
//! An edge that would run from what follows the new one back to what precedes it closes a cycle, so its side cannot be chosen.
//! The search visits at most this many nodes in each direction; what it misses is found when it is chosen.

use super::graph::Sides;
use super::order::{NONE, Order};

/// The edges of the sides by target, and the search's arrays.
pub(crate) struct SideReach {
    bound: usize,
    starts: Vec<u32>,
    edges: Vec<u32>,
    seen: Vec<u32>,
    stamp: u32,
    queue: Vec<u32>,
}

impl SideReach {
    /// Visits at most `bound` nodes in each direction.
    pub fn new(sides: &Sides, n_nodes: usize, bound: usize) -> SideReach {
        let mut starts = vec![0u32; n_nodes + 1];
        let target = |edge: usize| sides.ends(edge).1 as usize;
        for edge in 0..sides.n_edges() {
            starts[target(edge) + 1] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        let mut at = starts.clone();
        let mut edges = vec![0u32; sides.n_edges()];
        for edge in 0..sides.n_edges() {
            edges[at[target(edge)] as usize] = edge as u32;
            at[target(edge)] += 1;
        }
        SideReach {
            bound,
            starts,
            edges,
            seen: vec![0; n_nodes],
            stamp: 0,
            queue: Vec::new(),
        }
    }

    /// The bytes that this takes.
    pub fn bytes(n_nodes: usize, n_edges: usize) -> u64 {
        12 * n_nodes as u64 + 4 * n_edges as u64
    }

    /// Adds edges that would close a cycle over this linked one.
    pub fn impossible(&mut self, order: &Order, edge: usize, found: &mut Vec<u32>) {
        let (from, to) = order.sides.ends(edge);
        let after = self.stamp + 1;
        self.search(to, |node, see| {
            for &to in order.known.successors(node) {
                see(to);
            }
            let mut edge = order.first_out[node as usize];
            while edge != NONE {
                see(order.sides.ends(edge as usize).1);
                edge = order.next_out[edge as usize];
            }
        });
        self.search(from, |node, see| {
            for &from in order.known.predecessors(node) {
                see(from);
            }
            let mut edge = order.first_in[node as usize];
            while edge != NONE {
                see(order.sides.ends(edge as usize).0);
                edge = order.next_in[edge as usize];
            }
        });
        for &node in &self.queue {
            let node = node as usize;
            let entering = &self.edges[self.starts[node] as usize..self.starts[node + 1] as usize];
            let closing = entering.iter().copied().filter(|&edge| {
                let (from, _) = order.sides.ends(edge as usize);
                self.seen[from as usize] == after
            });
            found.extend(closing);
        }
    }

    /// Leaves in the queue what it saw, breadth first.
    fn search(&mut self, start: u32, neighbours: impl Fn(u32, &mut dyn FnMut(u32))) {
        self.stamp += 1;
        let (stamp, bound) = (self.stamp, self.bound);
        let (seen, mut next) = (&mut self.seen, 0);
        self.queue.clear();
        self.queue.push(start);
        seen[start as usize] = stamp;
        while next < self.queue.len() && self.queue.len() < bound {
            let node = self.queue[next];
            next += 1;
            let queue = &mut self.queue;
            neighbours(node, &mut |node| {
                if seen[node as usize] != stamp && queue.len() < bound {
                    seen[node as usize] = stamp;
                    queue.push(node);
                }
            });
        }
    }
}
