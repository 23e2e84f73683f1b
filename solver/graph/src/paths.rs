//! Paths from one node of a graph that is given by the steps from each node: with the fewest steps that count (0-1 breadth-first search),
//! or the cheapest (Dijkstra).

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// For each node that is met, the node before it and the step between, on a path from the root with the fewest steps that count. The
/// search ends at a goal. A step is where it leads, whether it counts, and what it is.
pub fn fewest<S, I: IntoIterator<Item = (u32, bool, S)>>(
    n_nodes: usize,
    root: u32,
    goal: Option<u32>,
    steps: impl Fn(u32) -> I,
) -> Vec<Option<(u32, S)>> {
    let mut best = vec![u32::MAX; n_nodes];
    let mut via: Vec<Option<(u32, S)>> = std::iter::repeat_with(|| None).take(n_nodes).collect();
    let mut queue = VecDeque::from([(root, 0)]);
    best[root as usize] = 0;
    while let Some((node, cost)) = queue.pop_front() {
        if goal == Some(node) {
            break;
        }
        if cost > best[node as usize] {
            continue;
        }
        for (next, counts, step) in steps(node) {
            let there = cost + u32::from(counts);
            if there < best[next as usize] {
                best[next as usize] = there;
                via[next as usize] = Some((node, step));
                if counts {
                    queue.push_back((next, there));
                } else {
                    queue.push_front((next, there));
                }
            }
        }
    }
    via
}

/// Cost and last step of the cheapest path from the root to each node; `u32::MAX` if there is none. Paths that cost more than the
/// bound are not followed. A step is where it leads, what it costs, and its number.
pub fn cheapest<I: IntoIterator<Item = (u32, u32, u32)>>(
    n_nodes: usize,
    root: u32,
    bound: u32,
    steps: impl Fn(u32) -> I,
) -> (Vec<u32>, Vec<u32>) {
    let mut costs = vec![u32::MAX; n_nodes];
    let mut last = vec![u32::MAX; n_nodes];
    costs[root as usize] = 0;
    let mut queue = BinaryHeap::from([Reverse((0, root))]);
    while let Some(Reverse((cost, node))) = queue.pop() {
        if cost > costs[node as usize] {
            continue;
        }
        if cost > bound {
            break;
        }
        for (next, more, step) in steps(node) {
            let there = cost + more;
            if there < costs[next as usize] {
                costs[next as usize] = there;
                last[next as usize] = step;
                queue.push(Reverse((there, next)));
            }
        }
    }
    (costs, last)
}

#[cfg(test)]
mod tests {
    use kingsnake_context::rng::Rng;

    use super::*;

    #[test]
    fn both_searches_agree_where_steps_cost_nothing_or_one() {
        let mut rng = Rng::new(1);
        for _ in 0..200 {
            let n_nodes = rng.between(1, 9);
            let mut out = vec![Vec::new(); n_nodes];
            for edge in 0..rng.below(30) as u32 {
                let to = rng.below(n_nodes) as u32;
                out[rng.below(n_nodes)].push((to, rng.chance(50), edge));
            }
            let via = fewest(n_nodes, 0, None, |node| out[node as usize].clone());
            let (costs, last) = cheapest(n_nodes, 0, u32::MAX, |node| {
                let steps = out[node as usize].iter();
                steps.map(|&(to, counts, edge)| (to, u32::from(counts), edge))
            });
            let counts = |node: u32, edge: u32| {
                let mut steps = out[node as usize].iter();
                u32::from(steps.any(|it| it.2 == edge && it.1))
            };
            for node in 1..n_nodes {
                assert_eq!(via[node].is_some(), costs[node] != u32::MAX);
                assert_eq!(last[node] != u32::MAX, costs[node] != u32::MAX);
                let (mut at, mut n_counted) = (node, 0);
                while let Some((before, edge)) = via[at].filter(|_| at != 0) {
                    n_counted += counts(before, edge);
                    at = before as usize;
                }
                assert!(via[node].is_none() || n_counted == costs[node]);
            }
        }
    }
}
