//! Finds cycles with petgraph, which is independent of our own algorithms.

use std::hash::Hash;

use petgraph::algo::{tarjan_scc, toposort};
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::graphmap::DiGraphMap;

/// Whether some edges lead from each of their ends to every other, and back: one edge at least lies on a cycle then, and all do.
pub(crate) fn is_cycle<N: Copy + Ord + Hash>(edges: impl Iterator<Item = (N, N)>) -> bool {
    let graph: DiGraphMap<N, ()> = edges.collect();
    graph.edge_count() > 0 && tarjan_scc(&graph).len() == 1
}

/// A node on a cycle of edges between nodes that are numbered from 0; `None` if there is no cycle.
pub(crate) fn on_a_cycle(n_nodes: usize, edges: &[(u32, u32)]) -> Option<u32> {
    let mut graph: DiGraph<(), (), u32> = DiGraph::with_capacity(n_nodes, edges.len());
    for _ in 0..n_nodes {
        graph.add_node(());
    }
    for &(from, to) in edges {
        graph.add_edge(NodeIndex::from(from), NodeIndex::from(to), ());
    }
    let cycle = toposort(&graph, None).err()?;
    Some(cycle.node_id().index() as u32)
}

#[cfg(test)]
mod tests {
    use super::{is_cycle, on_a_cycle};

    #[test]
    fn a_cycle_leads_back_from_every_edge() {
        assert!(is_cycle([(1, 2), (2, 3), (3, 1)].into_iter()));
        assert!(is_cycle([(1, 1)].into_iter()));
        assert!(!is_cycle([(1, 2), (2, 3)].into_iter()));
        assert!(!is_cycle([(1, 2), (2, 1), (2, 3)].into_iter()));
        assert!(!is_cycle::<u32>([].into_iter()));
    }

    #[test]
    fn a_node_on_a_cycle_is_found() {
        assert_eq!(on_a_cycle(3, &[(0, 1), (1, 2)]), None);
        assert!(on_a_cycle(4, &[(0, 1), (1, 2), (2, 1), (2, 3)]).is_some());
    }
}
