//! Real-time order as a chain of time nodes, linear in the transactions where all pairs would be quadratic.
//!
//! A time node stands between the commits before it and the begins after it: commit → node → … → node → begin. One
//! transaction reaches another through the chain iff it committed strictly before the other began.

use super::{Edge, Polygraph, Reason};
use crate::model::History;
use crate::resolve::Node;

/// Adds the time chain behind the nodes of the transactions.
pub(super) fn add_real_time(history: &History, polygraph: &mut Polygraph) {
    // At equal times a begin goes before a commit: only a strictly earlier commit orders anything.
    let mut events: Vec<(i64, bool, Node)> = Vec::new();
    for node in 0..polygraph.resolved.n_txns() as Node {
        let interval = history.interval(polygraph.resolved.txn(node));
        if interval.begin != i64::MIN {
            events.push((interval.begin, false, node));
        }
        if interval.commit != i64::MAX {
            events.push((interval.commit, true, node));
        }
    }
    events.sort_unstable();
    let reason = Reason::RealTime;
    let mut committed = Vec::new();
    let mut latest = None;
    for (_, is_commit, node) in events {
        if is_commit {
            committed.push(polygraph.commit(node));
            continue;
        }
        if !committed.is_empty() {
            let time = polygraph.n_nodes as u32;
            polygraph.n_nodes += 1;
            let before = committed.drain(..).chain(latest);
            let edges = before.map(|from| Edge {
                from,
                to: time,
                reason,
            });
            polygraph.edges.extend(edges);
            latest = Some(time);
        }
        if let Some(from) = latest {
            let to = polygraph.begin(node);
            polygraph.edges.push(Edge { from, to, reason });
        }
    }
}
