//! Thins out the known graph: an edge that two others imply bounds no move, since the node between them bounds it closer.
//!
//! Only paths of two edges are looked for. That is nearly all there is to find, because pruning adds edges whose ends are
//! close, and it needs no matrix.

use super::super::graph::Known;

/// The edges that are left, by ids: `nodes[id]` is the node, `ids[node]` its id, and every edge runs from a smaller id to a larger.
pub(super) fn thin(known: &Known, nodes: &[u32], ids: &[u32]) -> Vec<(u32, u32)> {
    let mut kept = Vec::with_capacity(known.n_nodes());
    // By id, the last node from which it was reached by two edges, plus one.
    let mut implied = vec![0u32; nodes.len()];
    let mut targets = Vec::new();
    for (id, &node) in nodes.iter().enumerate() {
        let mark = id as u32 + 1;
        targets.clear();
        targets.extend(known.successors(node).iter().map(|&to| ids[to as usize]));
        targets.sort_unstable();
        targets.dedup();
        for &to in &targets {
            if implied[to as usize] == mark {
                continue;
            }
            kept.push((id as u32, to));
            for &next in known.successors(nodes[to as usize]) {
                implied[ids[next as usize] as usize] = mark;
            }
        }
    }
    kept
}
