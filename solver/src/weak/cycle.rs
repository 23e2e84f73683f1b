//! One topological sort, or a short cycle with its reasons.

use std::collections::VecDeque;

use kingsnake_graph::FlatGraph;
use kingsnake_graph::sort::around_cycles;
use kingsnake_relate::visible::sort::sorted;
use kingsnake_relate::visible::{Commits, Why};

use crate::model::History;
use crate::resolve::{NO_NODE, Node, Resolved};
use crate::verdict::{Fact, Moment, Point, Step, StepReason};

/// From this many transactions on, the shortest cycle is searched differently.
const MAX_STARTS: usize = 64;

/// An order that keeps the edges, or a cycle; an edge into the initial state is one by itself.
pub(super) fn order(n_nodes: usize, edges: &[Commits]) -> Result<Vec<Node>, Vec<Commits>> {
    if let Some(&edge) = edges.iter().find(|edge| edge.to == NO_NODE) {
        return Err(vec![edge]);
    }
    match sorted(n_nodes, edges, |_| true) {
        Some(order) => Ok(order),
        None => Err(shortest(n_nodes, edges)),
    }
}

/// A shortest cycle through one of some transactions that are on cycles.
fn shortest(n_nodes: usize, edges: &[Commits]) -> Vec<Commits> {
    let pairs = edges.iter().enumerate();
    let out = FlatGraph::new(n_nodes, pairs.map(|(at, edge)| (edge.from, at as u32)));
    let out = |node: Node| out.targets(node);
    let mut best: Vec<Commits> = Vec::new();
    let mut n_found = 0;
    let is_left = around_cycles(n_nodes, edges.iter().map(|it| (it.from, it.to)));
    for first in (0..n_nodes as Node).filter(|&it| is_left[it as usize]) {
        let cycle = around(n_nodes, edges, first, out);
        if !cycle.is_empty() {
            n_found += 1;
            if best.is_empty() || cycle.len() < best.len() {
                best = cycle;
            }
        }
        if best.len() == 2 || n_found >= MAX_STARTS {
            break;
        }
    }
    best
}

/// A shortest cycle through a transaction; empty if there is none.
fn around<'e>(
    n_nodes: usize,
    edges: &[Commits],
    first: Node,
    out: impl Fn(Node) -> &'e [u32],
) -> Vec<Commits> {
    let mut via = vec![u32::MAX; n_nodes];
    let mut queue = VecDeque::from([first]);
    while let Some(node) = queue.pop_front() {
        for &at in out(node) {
            let to = edges[at as usize].to;
            if via[to as usize] != u32::MAX {
                continue;
            }
            via[to as usize] = at;
            if to == first {
                let mut cycle = vec![edges[at as usize]];
                while cycle[cycle.len() - 1].from != first {
                    let before = cycle[cycle.len() - 1].from;
                    cycle.push(edges[via[before as usize] as usize]);
                }
                cycle.reverse();
                return cycle;
            }
            queue.push_back(to);
        }
    }
    Vec::new()
}

/// A cycle as evidence. One that leads to the initial state leads back to where it began.
pub(super) fn steps(history: &History, resolved: &Resolved, cycle: &[Commits]) -> Vec<Step> {
    let versions = resolved.versions();
    let point = |node: Node| Point {
        txn: resolved.txn(node),
        moment: Moment::Whole,
    };
    let step = |edge: &Commits| {
        Some(Step {
            from: point(edge.from),
            to: point(if edge.to == NO_NODE {
                edge.from
            } else {
                edge.to
            }),
            reason: match edge.why {
                Why::Session => StepReason::Session,
                Why::Stated(edge) => StepReason::Stated { edge },
                Why::Wr(version) => {
                    let key = versions.key(version);
                    let value = history.last_written(resolved.txn(edge.from), key)?;
                    StepReason::Wr { key, value }
                }
                Why::Given(key) => StepReason::Ww {
                    key,
                    fact: Fact::Given,
                },
                Why::Vis {
                    reader, version, ..
                } => StepReason::Vis {
                    reader: resolved.txn(reader),
                    key: versions.key(version),
                },
            },
        })
    };
    cycle.iter().filter_map(step).collect()
}
