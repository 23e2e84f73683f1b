//! Topological sorting of transactions, and edges by their source.

use super::Commits;
use crate::resolve::Node;

/// The nodes in an order that keeps some edges, if there is one.
pub fn sorted(
    n_nodes: usize,
    edges: &[Commits],
    keep: impl Fn(&Commits) -> bool,
) -> Option<Vec<Node>> {
    let kept = edges.iter().filter(|edge| keep(edge));
    let order = peeled(n_nodes, kept.map(|edge| (edge.from, edge.to)));
    (order.len() == n_nodes).then_some(order)
}

/// The nodes that no cycle comes before, each after those before it.
pub fn peeled(n_nodes: usize, edges: impl Iterator<Item = (Node, Node)> + Clone) -> Vec<Node> {
    let mut waits = vec![0_u32; n_nodes];
    for (_, to) in edges.clone() {
        waits[to as usize] += 1;
    }
    let (start, targets) = outgoing(n_nodes, edges);
    let free = |node: &Node| waits[*node as usize] == 0;
    let mut order: Vec<Node> = (0..n_nodes as Node).filter(free).collect();
    let mut at = 0;
    while let Some(&node) = order.get(at) {
        at += 1;
        for &to in &targets[start[node as usize] as usize..start[node as usize + 1] as usize] {
            waits[to as usize] -= 1;
            if waits[to as usize] == 0 {
                order.push(to);
            }
        }
    }
    order
}

/// Targets by their source: where each one's start, and the targets.
pub fn outgoing(
    n_nodes: usize,
    edges: impl Iterator<Item = (Node, u32)> + Clone,
) -> (Vec<u32>, Vec<u32>) {
    let mut start = vec![0_u32; n_nodes + 1];
    for (from, _) in edges.clone() {
        start[from as usize + 1] += 1;
    }
    for node in 0..n_nodes {
        start[node + 1] += start[node];
    }
    let mut next = start.clone();
    let mut targets = vec![0; start[n_nodes] as usize];
    for (from, to) in edges {
        targets[next[from as usize] as usize] = to;
        next[from as usize] += 1;
    }
    (start, targets)
}
