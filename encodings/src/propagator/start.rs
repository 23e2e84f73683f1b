//! The order that the search starts from, and how it judges the constraints.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use kingsnake_graph::decide::{Question, Side};

/// Each node's place in a linear extension of the known graph: by the estimate where there is one, else the question's own
/// order. Neither is trusted: an estimate that is no extension becomes the priority of a topological sort. `None` if the known
/// graph has a cycle.
pub(crate) fn places(question: &Question<'_>) -> Option<Vec<u32>> {
    let mut places = vec![u32::MAX; question.n_nodes];
    for (place, &node) in question.order.iter().enumerate() {
        *places.get_mut(node as usize)? = place as u32;
    }
    if question.estimate.len() == question.n_nodes {
        let mut order: Vec<u32> = (0..question.n_nodes as u32).collect();
        order.sort_unstable_by(|&a, &b| {
            let (x, y) = (question.estimate[a as usize], question.estimate[b as usize]);
            x.total_cmp(&y)
                .then(places[a as usize].cmp(&places[b as usize]))
        });
        for (place, &node) in order.iter().enumerate() {
            places[node as usize] = place as u32;
        }
    }
    if extends(question, &places) {
        Some(places)
    } else {
        sort(question, &places)
    }
}

/// The nodes that must follow.
pub(crate) fn successors<'a>(question: &Question<'a>, node: usize) -> &'a [u32] {
    &question.targets[question.starts[node] as usize..question.starts[node + 1] as usize]
}

fn extends(question: &Question<'_>, places: &[u32]) -> bool {
    (0..question.n_nodes).all(|from| {
        successors(question, from)
            .iter()
            .all(|&to| places[from] < places[to as usize])
    })
}

/// Kahn's sort that always takes the node of the least priority; `None` if there is a cycle.
pub(crate) fn sort(question: &Question<'_>, priority: &[u32]) -> Option<Vec<u32>> {
    let mut waiting = vec![0u32; question.n_nodes];
    for &to in question.targets {
        waiting[to as usize] += 1;
    }
    let mut ready: BinaryHeap<_> = (0..question.n_nodes)
        .filter(|&node| waiting[node] == 0)
        .map(|node| Reverse((priority[node], node)))
        .collect();
    let mut places = vec![u32::MAX; question.n_nodes];
    let mut next = 0;
    while let Some(Reverse((_, node))) = ready.pop() {
        places[node] = next;
        next += 1;
        for &to in successors(question, node) {
            let to = to as usize;
            waiting[to] -= 1;
            if waiting[to] == 0 {
                ready.push(Reverse((priority[to], to)));
            }
        }
    }
    (next as usize == question.n_nodes).then_some(places)
}

/// A side of every constraint that runs forward in these places, if each has one.
pub(crate) fn choices(question: &Question<'_>, places: &[u32]) -> Option<Vec<Side>> {
    let constraints = question.constraints;
    let forward = |constraint, side| {
        constraints
            .side(constraint, side)
            .iter()
            .all(|edge| places[edge.from as usize] < places[edge.to as usize])
    };
    (0..constraints.len())
        .map(|constraint| {
            [Side::Either, Side::Or]
                .into_iter()
                .find(|&side| forward(constraint, side))
        })
        .collect()
}
