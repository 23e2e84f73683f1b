//! Where nodes stand in the matrix: in a topological order, so that rows have bits to the right of their own place.
//!
//! A node's place is its rank by depth minus height, the longest ways to it and from it in edges. Both change along every
//! edge, so this is a topological order; and it is near the middle of what other orders allow, so that edges that become
//! known later seldom go far against it.

use kingsnake_graph::reach::Dag;

use crate::matrix::Cut;

/// The places of nodes, and the nodes of places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) of_node: Vec<u32>,
    pub(crate) nodes: Vec<u32>,
}

impl Places {
    pub(crate) fn new(dag: &Dag) -> Self {
        let mut depth = vec![0_i64; dag.n_nodes()];
        let mut height = vec![0_i64; dag.n_nodes()];
        for &node in dag.order() {
            for &to in dag.successors(node) {
                depth[to as usize] = depth[to as usize].max(depth[node as usize] + 1);
            }
        }
        for &node in dag.order().iter().rev() {
            let below = dag.successors(node).iter();
            let below = below.map(|&to| height[to as usize] + 1).max();
            height[node as usize] = below.unwrap_or(0);
        }
        let mut nodes: Vec<u32> = (0..dag.n_nodes() as u32).collect();
        nodes.sort_by_key(|&node| depth[node as usize] - height[node as usize]);
        Places {
            of_node: kingsnake_graph::reach::places(&nodes),
            nodes,
        }
    }

    /// Whether every row that a graph gives bits in a strip is among the strip's rows.
    pub(crate) fn fit(&self, dag: &Dag, cut: &Cut) -> bool {
        // For each node one more than the last place from which it is reached.
        let mut reached = vec![0_u32; dag.n_nodes()];
        dag.order().iter().all(|&node| {
            let place = self.of_node[node as usize];
            let last = reached[node as usize];
            for &to in dag.successors(node) {
                let reached = &mut reached[to as usize];
                *reached = (*reached).max(last).max(place + 1);
            }
            last <= cut.limits[cut.strip_of(place)]
        })
    }
}
