//! Topological sorts of graphs that are given by the steps from each node, and what is left of a graph with cycles.

use crate::flat::FlatGraph;

/// The nodes that no cycle comes before, each after those before it, given how many edges lead to each node (Kahn).
pub fn peeled<I: IntoIterator<Item = u32>>(
    mut waits: Vec<u32>,
    targets: impl Fn(u32) -> I,
) -> Vec<u32> {
    let mut order = Vec::with_capacity(waits.len());
    order.extend((0..waits.len() as u32).filter(|&node| waits[node as usize] == 0));
    let mut at = 0;
    while let Some(&node) = order.get(at) {
        at += 1;
        for to in targets(node) {
            waits[to as usize] -= 1;
            if waits[to as usize] == 0 {
                order.push(to);
            }
        }
    }
    order
}

/// An order of all nodes, each after those before it, made from one that `more` steps, as places in it, may run back over: only
/// stretches that some run back over are sorted again. `None` if these are most of it, or if there is a cycle, which is in one of them.
pub(crate) fn resorted<'a>(
    order: &[u32],
    places: &[u32],
    more: &[(u32, u32)],
    targets: impl Fn(u32) -> &'a [u32],
) -> Option<Vec<u32>> {
    let back = more.iter().filter(|(from, to)| from >= to);
    let mut stretches: Vec<(u32, u32)> = back.map(|&(from, to)| (to, from + 1)).collect();
    stretches.sort_unstable();
    stretches.dedup_by(|next, last| {
        let overlaps = next.0 < last.1;
        if overlaps {
            last.1 = last.1.max(next.1);
        }
        overlaps
    });
    let lengths = stretches.iter().map(|it| (it.1 - it.0) as usize);
    if 2 * lengths.sum::<usize>() > order.len() {
        return None;
    }
    let mut sorted = order.to_vec();
    for (start, end) in stretches {
        let stretch = &order[start as usize..end as usize];
        let all = (start..end).zip(stretch);
        let steps = all.flat_map(|(from, &node)| {
            let to = targets(node).iter().map(|&to| places[to as usize]);
            to.filter(move |to| *to < end)
                .map(move |to| (from - start, to - start))
        });
        let graph = FlatGraph::new(stretch.len(), steps);
        let peeled = graph.peeled();
        if peeled.len() < stretch.len() {
            return None;
        }
        for (at, &from) in (start..).zip(&peeled) {
            sorted[at as usize] = stretch[from as usize];
        }
    }
    Some(sorted)
}

/// All nodes, each after those before it, depth first; nothing where there is a cycle. `before` gives what directly precedes a node, by
/// number, `u32::MAX` where one counts for nothing, and ends with `None`. Where the nodes are nearly in order this stays near in memory.
pub fn depth_first(n_nodes: usize, before: impl Fn(u32, usize) -> Option<u32>) -> Option<Vec<u32>> {
    const NEW: u8 = 0;
    const OPEN: u8 = 1;
    const DONE: u8 = 2;
    let mut state = vec![NEW; n_nodes];
    let mut order = Vec::with_capacity(n_nodes);
    // A node, and how many of those before it were looked at.
    let mut stack: Vec<(u32, u32)> = Vec::new();
    for root in 0..n_nodes as u32 {
        if state[root as usize] != NEW {
            continue;
        }
        state[root as usize] = OPEN;
        stack.push((root, 0));
        while let Some((node, looked_at)) = stack.last_mut() {
            let node = *node;
            let next = loop {
                let at = *looked_at as usize;
                *looked_at += 1;
                let Some(next) = before(node, at) else {
                    break None;
                };
                match state.get(next as usize) {
                    None | Some(&DONE) => {}
                    Some(&OPEN) => return None,
                    Some(_) => break Some(next),
                }
            };
            if let Some(next) = next {
                state[next as usize] = OPEN;
                stack.push((next, 0));
            } else {
                state[node as usize] = DONE;
                order.push(node);
                stack.pop();
            }
        }
    }
    Some(order)
}

/// Whether some cycle comes before each node, and some cycle after it: the nodes on cycles are among these.
pub fn around_cycles(n_nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Vec<bool> {
    let ahead = FlatGraph::new(n_nodes, edges.clone());
    let back = FlatGraph::new(n_nodes, edges.map(|(from, to)| (to, from)));
    let mut is_left = vec![true; n_nodes];
    for node in [ahead, back].iter().flat_map(FlatGraph::peeled) {
        is_left[node as usize] = false;
    }
    is_left
}

#[cfg(test)]
mod tests {
    use kingsnake_context::rng::Rng;

    use super::*;

    #[test]
    fn an_order_that_steps_run_back_over_is_mended() {
        let mut rng = Rng::new(2);
        let (mut n_mended, mut n_refused) = (0, 0);
        for _ in 0..2_000 {
            let n_nodes = rng.between(2, 40);
            let mut pair = || (rng.below(n_nodes) as u32, rng.below(n_nodes) as u32);
            let known = (0..n_nodes).map(|_| pair());
            let known: Vec<(u32, u32)> = known.filter(|it| it.0 < it.1).collect();
            let order = FlatGraph::new(n_nodes, known.iter().copied()).peeled();
            let places = crate::reach::places(&order);
            let new = [pair(), pair()];
            let more = new.map(|(from, to)| (places[from as usize], places[to as usize]));
            let edges = || known.iter().chain(&new).copied();
            let graph = FlatGraph::new(n_nodes, edges());
            let is_acyclic = graph.peeled().len() == n_nodes;
            match resorted(&order, &places, &more, |node| graph.targets(node)) {
                Some(sorted) => {
                    n_mended += usize::from(sorted != order);
                    let mut nodes = sorted.clone();
                    nodes.sort_unstable();
                    assert!(is_acyclic && nodes.iter().copied().eq(0..n_nodes as u32));
                    let place = crate::reach::places(&sorted);
                    assert!(edges().all(|(from, to)| place[from as usize] < place[to as usize]));
                }
                None => n_refused += 1,
            }
        }
        assert!(n_mended > 100 && n_refused > 100, "{n_mended} {n_refused}");
    }

    #[test]
    fn both_sorts_agree_whether_there_is_a_cycle_and_keep_the_edges() {
        let mut rng = Rng::new(1);
        let mut n_sorted = [0; 2];
        for _ in 0..500 {
            let n_nodes = rng.between(1, 9);
            let mut node = || rng.below(n_nodes) as u32;
            let edges: Vec<(u32, u32)> = (0..n_nodes).map(|_| (node(), node())).collect();
            let graph = FlatGraph::new(n_nodes, edges.iter().copied());
            let peeled = graph.peeled();
            let back = FlatGraph::new(n_nodes, edges.iter().map(|it| (it.1, it.0)));
            let sorted = depth_first(n_nodes, |node, at| back.targets(node).get(at).copied());
            assert_eq!(sorted.is_some(), peeled.len() == n_nodes, "{edges:?}");
            let left = around_cycles(n_nodes, edges.iter().copied());
            assert_eq!(sorted.is_none(), left.contains(&true), "{edges:?}");
            n_sorted[usize::from(sorted.is_some())] += 1;
            let Some(sorted) = sorted else { continue };
            for order in [peeled, sorted] {
                let place = crate::reach::places(&order);
                let is_kept = |&(from, to): &(u32, u32)| place[from as usize] < place[to as usize];
                assert!(edges.iter().all(is_kept), "{edges:?}: {order:?}");
            }
        }
        assert!(n_sorted.iter().all(|&it| it > 20), "{n_sorted:?}");
    }
}
