//! `chains`: reachability as vector clocks. Where the nodes fall into few chains (sessions), a node needs only, for each
//! chain, how many of the chain's first nodes reach it.
//!
//! n·chains·4 bytes and O(m·chains) time, so a million transactions of 24 sessions take 96 MB where bits would take 125 GB.

use std::ops::Range;

use super::dag::Dag;

/// Clocks are padded to a multiple of this, so that the loops over them vectorise.
const LANES: usize = 8;

/// For each node and chain, how many nodes of the chain reach the node. A chain's nodes reach each other in order, so
/// those that reach the node are its first ones.
#[derive(Debug)]
pub struct Clocks {
    chain_of: Vec<u32>,
    position: Vec<u32>,
    stride: usize,
    rows: Vec<u32>,
}

impl Clocks {
    /// The bytes that the clocks of `n_nodes` on `n_chains` chains take.
    pub fn bytes(n_nodes: usize, n_chains: usize) -> u64 {
        4 * n_nodes as u64 * n_chains.next_multiple_of(LANES) as u64
    }

    /// Clocks of a graph whose nodes the chains cover.
    pub fn new(dag: &Dag, chains: &[Range<u32>]) -> Self {
        Self::on_chains(dag, chains, |nodes, node| node - nodes.start)
    }

    /// How many nodes each node reaches, from the graph turned round.
    pub fn count_descendants(reversed: &Dag, chains: &[Range<u32>]) -> Vec<u32> {
        Self::on_chains(reversed, chains, |nodes, node| nodes.end - 1 - node).ancestors()
    }

    fn on_chains(
        dag: &Dag,
        chains: &[Range<u32>],
        place: impl Fn(&Range<u32>, u32) -> u32,
    ) -> Self {
        let mut chain_of = vec![0; dag.n_nodes()];
        let mut position = vec![0; dag.n_nodes()];
        for (chain, nodes) in chains.iter().enumerate() {
            for node in nodes.clone() {
                chain_of[node as usize] = chain as u32;
                position[node as usize] = place(nodes, node);
            }
        }
        let stride = chains.len().max(1).next_multiple_of(LANES);
        let mut clocks = Clocks {
            chain_of,
            position,
            stride,
            rows: vec![0; dag.n_nodes() * stride],
        };
        clocks.update(dag);
        clocks
    }

    /// Takes a graph with more edges on the same nodes. Clocks only grow, so the old ones are a start.
    pub fn update(&mut self, dag: &Dag) {
        let mut clock = vec![0; self.stride];
        for &node in dag.order() {
            let successors = dag.successors(node);
            if successors.is_empty() {
                continue;
            }
            clock.copy_from_slice(self.row(node));
            clock[self.chain_of[node as usize] as usize] = self.position[node as usize] + 1;
            for &to in successors {
                let row = &mut self.rows[to as usize * self.stride..][..self.stride];
                for (count, &before) in row.iter_mut().zip(&clock) {
                    *count = (*count).max(before);
                }
            }
        }
    }

    /// For each chain, how many of its first nodes reach this node.
    #[inline]
    pub fn row(&self, node: u32) -> &[u32] {
        &self.rows[node as usize * self.stride..][..self.stride]
    }

    /// The chain of a node.
    #[inline]
    pub fn chain(&self, node: u32) -> usize {
        self.chain_of[node as usize] as usize
    }

    /// The place of a node on its chain.
    #[inline]
    pub fn position(&self, node: u32) -> u32 {
        self.position[node as usize]
    }

    /// Whether there is a path of at least one edge.
    #[inline]
    pub fn reaches(&self, from: u32, to: u32) -> bool {
        self.rows[to as usize * self.stride + self.chain(from)] > self.position(from)
    }

    /// The width of a clock.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// How many nodes reach each node.
    pub fn ancestors(&self) -> Vec<u32> {
        let rows = self.rows.chunks_exact(self.stride);
        rows.map(|row| row.iter().sum()).collect()
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
