//! One topological sort, or a short cycle with its reasons.

use std::collections::VecDeque;

use kingsnake_history::weak::{CommitReason, CommitStep, PathStep, VisibilityReason, WeakSpec};

use kingsnake_relate::visible::sort::{outgoing, peeled, sorted};
use kingsnake_relate::visible::{Commits, Sight, Why};

use crate::resolve::{NO_NODE, Node, Resolved};

/// From how many transactions a shortest cycle is looked for.
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
    let (start, out) = outgoing(n_nodes, pairs.map(|(at, edge)| (edge.from, at as u32)));
    let out = |node: Node| &out[start[node as usize] as usize..start[node as usize + 1] as usize];
    let mut best: Vec<Commits> = Vec::new();
    let mut n_found = 0;
    for first in on_cycles(n_nodes, edges) {
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

/// The transactions that some cycle comes before and some cycle comes after.
fn on_cycles(n_nodes: usize, edges: &[Commits]) -> Vec<Node> {
    let mut is_left = vec![true; n_nodes];
    for node in peeled(n_nodes, edges.iter().map(|edge| (edge.from, edge.to))) {
        is_left[node as usize] = false;
    }
    for node in peeled(n_nodes, edges.iter().map(|edge| (edge.to, edge.from))) {
        is_left[node as usize] = false;
    }
    let left = |node: &Node| is_left[*node as usize];
    (0..n_nodes as Node).filter(left).collect()
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

/// A cycle as evidence, with the paths by which a read saw a transaction.
pub(super) fn steps(resolved: &Resolved, spec: WeakSpec, cycle: &[Commits]) -> Vec<CommitStep> {
    let versions = resolved.versions();
    cycle
        .iter()
        .map(|edge| CommitStep {
            from: resolved.txn(edge.from),
            to: (edge.to != NO_NODE).then(|| resolved.txn(edge.to)),
            reason: match edge.why {
                Why::Session => CommitReason::Session,
                Why::Stated(edge) => CommitReason::Stated(edge),
                Why::Wr(version) => CommitReason::Wr(versions.key(version)),
                Why::Given(key) => CommitReason::Given(key),
                Why::Vis {
                    reader,
                    version,
                    sight,
                } => CommitReason::Vis {
                    reader: resolved.txn(reader),
                    key: versions.key(version),
                    because: match sight {
                        Sight::EarlierRead(by) => VisibilityReason::EarlierRead(versions.key(by)),
                        Sight::Source(by) => VisibilityReason::Source(versions.key(by)),
                        Sight::Session => VisibilityReason::Session,
                        Sight::Past => {
                            VisibilityReason::Path(path(resolved, spec, edge.from, reader))
                        }
                    },
                },
            },
        })
        .collect()
}

/// A shortest way from one transaction to another by session order and reads, found from its end.
fn path(resolved: &Resolved, spec: WeakSpec, from: Node, to: Node) -> Vec<PathStep> {
    let versions = resolved.versions();
    let n_nodes = resolved.n_txns();
    let mut session_start = vec![0; n_nodes];
    for nodes in resolved.sessions() {
        session_start[nodes.start as usize..nodes.end as usize].fill(nodes.start);
    }
    let mut next: Vec<Option<PathStep>> = vec![None; n_nodes];
    let mut queue = VecDeque::from([to]);
    while let Some(node) = queue.pop_front() {
        if node == from {
            break;
        }
        let mut before: Vec<(Node, Option<crate::model::KeyId>)> = Vec::new();
        if spec.session_order && node > session_start[node as usize] {
            before.push((node - 1, None));
        }
        for read in resolved.reads().of(node) {
            let version = resolved.reads().version(read);
            if !versions.is_initial(version) {
                before.push((versions.writer(version), Some(versions.key(version))));
            }
        }
        for (earlier, key) in before {
            if earlier != to && next[earlier as usize].is_none() {
                next[earlier as usize] = Some(PathStep {
                    from: resolved.txn(earlier),
                    to: resolved.txn(node),
                    key,
                });
                queue.push_back(earlier);
            }
        }
    }
    let mut steps = Vec::new();
    let mut at = from;
    while at != to {
        let Some(step) = next[at as usize] else { break };
        steps.push(step);
        at = resolved.node(step.to).unwrap_or(to);
    }
    steps
}
