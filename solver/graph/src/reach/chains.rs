//! `chains`: reachability as vector clocks. Where the nodes fall into few chains (sessions), a node needs only, for each
//! chain, how many of the chain's first nodes reach it.
//!
//! A node that is on no chain has a clock as well, but none counts it.
//!
//! A clock is the largest of those of the nodes directly before. Who is counted by one of these already adds nothing, and the
//! neighbour on the chain counts most: so nearly all edges cost one comparison, as in a race detector.
//!
//! n·chains·4 bytes, so a million transactions of 24 sessions take 96 MB where bits would take 125 GB.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::dag::{Cyclic, Dag};
use crate::edge::Edge;

/// The chain of a node that is on none.
const NO_CHAIN: u32 = u32::MAX;

/// Clocks are padded to a multiple of this, so that the loops over them vectorise.
const LANES: usize = 8;

/// For each node and chain, how many nodes of the chain reach the node. A chain's nodes reach each other in order, so
/// those that reach the node are its first ones.
#[derive(Debug)]
pub struct Clocks {
    chains: Vec<Range<u32>>,
    on_chain: Vec<ChainPlace>,
    stride: usize,
    rows: Vec<u32>,
}

/// Where a node is on its chain.
#[derive(Clone, Copy, Debug)]
struct ChainPlace {
    chain: u32,
    position: u32,
}

impl Clocks {
    /// The bytes that the clocks of `n_nodes` on `n_chains` chains take.
    pub fn bytes(n_nodes: usize, n_chains: usize) -> u64 {
        4 * n_nodes as u64 * n_chains.next_multiple_of(LANES) as u64
    }

    /// Clocks of a graph whose nodes the chains cover, but for those that are never asked about.
    pub fn new(dag: &Dag, chains: &[Range<u32>]) -> Self {
        let mut clocks = Self::zero(dag.n_nodes(), chains, |nodes, node| node - nodes.start);
        clocks.update(dag);
        clocks
    }

    /// Clocks on the same chains that look the other way: for each node and chain, how many of the chain's last nodes it
    /// reaches. Positions count from the chain's end.
    #[must_use]
    pub fn descending(&self, dag: &Dag) -> Self {
        let from_end = |nodes: &Range<u32>, node| nodes.end - 1 - node;
        let mut clocks = Self::zero(dag.n_nodes(), &self.chains, from_end);
        let nodes = dag.order().iter().rev();
        clocks.sweep(nodes, |node| node + 1, |node| dag.successors(node));
        clocks
    }

    fn zero(
        n_nodes: usize,
        chains: &[Range<u32>],
        place: impl Fn(&Range<u32>, u32) -> u32,
    ) -> Self {
        let alone = ChainPlace {
            chain: NO_CHAIN,
            position: 0,
        };
        let mut on_chain = vec![alone; n_nodes];
        for (nodes, chain) in chains.iter().zip(0..) {
            for node in nodes.clone() {
                let position = place(nodes, node);
                on_chain[node as usize] = ChainPlace { chain, position };
            }
        }
        let stride = chains.len().max(1).next_multiple_of(LANES);
        Clocks {
            chains: chains.to_vec(),
            on_chain,
            stride,
            rows: vec![0; n_nodes * stride],
        }
    }

    /// Takes a graph with more edges on the same nodes.
    pub fn update(&mut self, dag: &Dag) {
        let back = dag.reversed();
        let nodes = dag.order().iter();
        self.sweep(nodes, |node| node - 1, |node| back.successors(node));
    }

    /// Computes the clock of each node from those of the nodes directly `before`, among which is the `neighbour` on its chain.
    fn sweep<'a>(
        &mut self,
        nodes: impl Iterator<Item = &'a u32>,
        neighbour: impl Fn(u32) -> u32,
        before: impl Fn(u32) -> &'a [u32],
    ) {
        let mut clock = vec![0; self.stride];
        for &node in nodes {
            let ChainPlace { chain, position } = self.on_chain[node as usize];
            if position > 0 {
                clock.copy_from_slice(self.row(neighbour(node)));
                clock[chain as usize] = position;
            } else {
                clock.fill(0);
            }
            for &other in before(node) {
                let ChainPlace { chain, position } = self.on_chain[other as usize];
                match clock.get(chain as usize) {
                    // Who is counted has a clock that was taken with that of who counts it.
                    Some(&count) if count > position => {}
                    Some(_) => {
                        raise(&mut clock, self.row(other));
                        clock[chain as usize] = position + 1;
                    }
                    None => raise(&mut clock, self.row(other)),
                }
            }
            self.rows[node as usize * self.stride..][..self.stride].copy_from_slice(&clock);
        }
    }

    /// Takes new edges between nodes on chains, whether the graph has them or not, unless they close a cycle. `more` are all
    /// edges that the graph lacks, by source. Only nodes whose clocks grow are visited, in the order of the graph; they are
    /// returned, some several times.
    pub(crate) fn follow<'a>(
        &mut self,
        dag: &Dag,
        new: &[Edge],
        more: impl Fn(u32) -> &'a [u32],
    ) -> Result<Vec<u32>, Cyclic> {
        let places = dag.places();
        let mut is_waiting = vec![false; dag.n_nodes()];
        let mut grown = BinaryHeap::new();
        let push = |node: u32, grown: &mut BinaryHeap<_>, is_waiting: &mut Vec<bool>| {
            if !std::mem::replace(&mut is_waiting[node as usize], true) {
                grown.push(Reverse((places[node as usize], node)));
            }
        };
        for edge in new {
            push(edge.from, &mut grown, &mut is_waiting);
        }
        let mut clock = vec![0; self.stride];
        let mut moved = Vec::new();
        while let Some(Reverse((_, node))) = grown.pop() {
            is_waiting[node as usize] = false;
            clock.copy_from_slice(self.row(node));
            if let Some(own) = clock.get_mut(self.chain(node)) {
                *own = self.position(node) + 1;
            }
            for &to in dag.successors(node).iter().chain(more(node)) {
                let row = &mut self.rows[to as usize * self.stride..][..self.stride];
                if row.iter().zip(&clock).any(|(own, other)| own < other) {
                    raise(row, &clock);
                    moved.push(to);
                    push(to, &mut grown, &mut is_waiting);
                }
            }
        }
        // What an edge of a cycle adds comes round to where it starts.
        let is_open = |edge: &Edge| edge.from != edge.to && !self.reaches(edge.to, edge.from);
        if new.iter().all(is_open) {
            Ok(moved)
        } else {
            Err(Cyclic)
        }
    }

    /// Whether a node is on a chain.
    pub(crate) fn is_chained(&self, node: u32) -> bool {
        self.on_chain[node as usize].chain != NO_CHAIN
    }

    /// For each chain, how many of its first nodes reach this node.
    #[inline]
    pub fn row(&self, node: u32) -> &[u32] {
        &self.rows[node as usize * self.stride..][..self.stride]
    }

    /// The chain of a node.
    #[inline]
    pub fn chain(&self, node: u32) -> usize {
        self.on_chain[node as usize].chain as usize
    }

    /// How many nodes a chain has.
    #[inline]
    pub fn chain_length(&self, chain: usize) -> u32 {
        self.chains[chain].len() as u32
    }

    /// The place of a node on its chain.
    #[inline]
    pub fn position(&self, node: u32) -> u32 {
        self.on_chain[node as usize].position
    }

    /// Whether there is a path of at least one edge from a node that is on a chain.
    #[inline]
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        let ChainPlace { chain, position } = self.on_chain[from as usize];
        self.rows[to as usize * self.stride + chain as usize] > position
    }

    /// The width of a clock.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// How many nodes reach each node (or, descending, how many it reaches).
    pub fn totals(&self) -> Vec<u32> {
        let rows = self.rows.chunks_exact(self.stride);
        rows.map(|row| row.iter().sum()).collect()
    }
}

/// Raises each count to at least the other's. Both are whole clocks, of some [`LANES`] each.
#[inline]
#[allow(clippy::needless_range_loop)] // Starting a `zip` takes as long as raising eight counts.
pub(crate) fn raise(clock: &mut [u32], other: &[u32]) {
    let (clock, _) = clock.as_chunks_mut::<LANES>();
    let (other, _) = other.as_chunks::<LANES>();
    for at in 0..clock.len().min(other.len()) {
        for lane in 0..LANES {
            clock[at][lane] = clock[at][lane].max(other[at][lane]);
        }
    }
}

#[cfg(test)]
impl Clocks {
    /// Counts one node too few, as a comparison with `>` for `>=` would.
    pub(super) fn be_late(&mut self) {
        let counts = self.rows.iter_mut();
        counts.for_each(|count| *count = count.saturating_sub(1));
    }

    /// Counts one node too many.
    pub(super) fn be_early(&mut self) {
        self.rows.iter_mut().for_each(|count| *count += 1);
    }
}
