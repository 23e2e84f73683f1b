//! Topological sorting of transactions.

use super::Commits;
use crate::resolve::Node;
use kingsnake_graph::FlatGraph;

/// The nodes in an order that keeps some edges, if there is one.
pub fn sorted(
    n_nodes: usize,
    edges: &[Commits],
    keep: impl Fn(&Commits) -> bool,
) -> Option<Vec<Node>> {
    let kept = edges.iter().filter(|edge| keep(edge));
    let order = FlatGraph::new(n_nodes, kept.map(|edge| (edge.from, edge.to))).peeled();
    (order.len() == n_nodes).then_some(order)
}
