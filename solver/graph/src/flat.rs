//! A graph in flat arrays: its strongly connected components, and its nodes in topological order.

use crate::components::components;
use crate::sort;

/// Edges by source.
#[derive(Debug)]
pub struct FlatGraph {
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl FlatGraph {
    /// The iterator is walked twice.
    pub fn new(n_nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0u32; n_nodes + 1];
        for (from, _) in edges.clone() {
            starts[from as usize + 1] += 1;
        }
        for node in 0..n_nodes {
            starts[node + 1] += starts[node];
        }
        let mut at = starts.clone();
        let mut targets = vec![0u32; starts[n_nodes] as usize];
        for (from, to) in edges {
            targets[at[from as usize] as usize] = to;
            at[from as usize] += 1;
        }
        FlatGraph { starts, targets }
    }

    /// The number of nodes.
    pub fn n_nodes(&self) -> usize {
        self.starts.len() - 1
    }

    /// The numbers of the node's edges, by which [`FlatGraph::target`] asks.
    #[inline]
    pub fn edges(&self, node: u32) -> std::ops::Range<usize> {
        self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize
    }

    /// Where an edge leads.
    #[inline]
    pub fn target(&self, edge: usize) -> u32 {
        self.targets[edge]
    }

    /// Where the edges of a node lead.
    #[inline]
    pub fn targets(&self, node: u32) -> &[u32] {
        &self.targets[self.edges(node)]
    }

    /// A number for each node; two nodes have the same iff each reaches the other.
    pub fn components(&self) -> Vec<u32> {
        let row = |node: u32| self.starts[node as usize]..self.starts[node as usize + 1];
        let target = |_, edge: u32| Some(self.targets[edge as usize]);
        components(self.n_nodes(), row, target).of
    }

    /// The nodes that no cycle comes before, each after those before it (Kahn).
    pub fn peeled(&self) -> Vec<u32> {
        let mut waits = vec![0_u32; self.n_nodes()];
        for &to in &self.targets {
            waits[to as usize] += 1;
        }
        sort::peeled(waits, |node| self.targets(node).iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use kingsnake_context::rng::Rng;

    use super::*;

    #[test]
    fn components_are_those_of_mutual_reachability() {
        let mut rng = Rng::new(1);
        let mut below = |n: u64| rng.below(n as usize) as u64;
        for _ in 0..200 {
            let n_nodes = 1 + below(9) as usize;
            let edges: Vec<(u32, u32)> = (0..below(16))
                .map(|_| (below(n_nodes as u64) as u32, below(n_nodes as u64) as u32))
                .collect();
            let mut reach = vec![vec![false; n_nodes]; n_nodes];
            for (node, row) in reach.iter_mut().enumerate() {
                row[node] = true;
            }
            for _ in 0..n_nodes {
                for &(from, to) in &edges {
                    for source in &mut reach {
                        source[to as usize] |= source[from as usize];
                    }
                }
            }
            let component = FlatGraph::new(n_nodes, edges.iter().copied()).components();
            for a in 0..n_nodes {
                for b in 0..n_nodes {
                    let mutual = reach[a][b] && reach[b][a];
                    assert_eq!(component[a] == component[b], mutual, "{edges:?}");
                }
            }
        }
    }
}
