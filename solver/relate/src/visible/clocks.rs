//! Causal consistency by vector clocks over few sessions: of each session, the last writer of the key that happened before the reader
//! and not before the writer that was read from.
//!
//! The writers of a key are compared with two clocks at once, which takes less time than looking each session up, unless the key has
//! many.

use std::ops::Range;

use super::quick::{Pair, Plain};
use crate::budget::{Poll, StopReason};
use crate::resolve::{NO_NODE, Node};

/// The most sessions.
const MAX_SESSIONS: usize = 64;

/// For each node and each session, where in the session its past ends: the first node of it that is not in the past.
pub(super) struct Clocks {
    n_sessions: usize,
    ends: Vec<Node>,
    /// The first node of each session.
    starts: Vec<Node>,
    /// The session of the writer of each version, initial ones included.
    session: Vec<u8>,
}

/// One node's clock, with room for every session.
type Row = [Node; MAX_SESSIONS];

impl Clocks {
    /// The clocks of all transactions; `None` if something happened before itself, or if there are too many chains for clocks of this
    /// kind.
    pub(super) fn of(plain: &Plain<'_>) -> Result<Option<Self>, StopReason> {
        let sessions = plain.resolved.sessions();
        if !plain.session_order || sessions.len() > MAX_SESSIONS {
            return Ok(None);
        }
        let n_nodes = plain.resolved.n_txns();
        let bytes = n_nodes as u64 * sessions.len() as u64 * 4;
        let budget = plain.budget;
        budget.reserve("the clocks of causal consistency", bytes)?;
        let mut of_node = vec![0_u8; n_nodes];
        for (session, nodes) in sessions.iter().enumerate() {
            of_node[nodes.start as usize..nodes.end as usize].fill(session as u8);
        }
        let (ends, session) = rayon::join(
            || ends(plain, &of_node),
            || {
                let writers = plain.versions.all_writers().iter();
                let session = writers.map(|&it| of_node.get(it as usize).copied().unwrap_or(0));
                session.collect()
            },
        );
        Ok(ends?.map(|ends| Clocks {
            n_sessions: sessions.len(),
            ends,
            starts: sessions.iter().map(|nodes| nodes.start).collect(),
            session,
        }))
    }

    fn row(&self, node: Node) -> Row {
        let mut row = [0; MAX_SESSIONS];
        let at = node as usize * self.n_sessions;
        row[..self.n_sessions].copy_from_slice(&self.ends[at..at + self.n_sessions]);
        row
    }

    /// What the reads of some transactions see; `None` if one returned the initial state all the same.
    pub(super) fn seen(
        &self,
        plain: &Plain<'_>,
        readers: Range<Node>,
        poll: &mut Poll<'_>,
    ) -> Result<Option<Vec<Pair>>, StopReason> {
        let mut pairs = Vec::new();
        for reader in readers {
            let bound = self.row(reader);
            for read in plain.resolved.reads().of(reader) {
                poll.step()?;
                let writer = plain.writer[read];
                let from = match writer {
                    NO_NODE => [0; MAX_SESSIONS],
                    writer => self.row(writer),
                };
                let n_before = pairs.len();
                let versions = plain.versions.of_key(plain.key[read]);
                let versions = versions.start as usize + 1..versions.end as usize;
                let nodes = &plain.versions.all_writers()[versions.clone()];
                let push = |seen: Node| {
                    if seen != writer {
                        pairs.push((seen, writer));
                    }
                };
                if nodes.len() > plain.scanned.writers {
                    self.search(nodes, &from, &bound, push);
                } else {
                    scan(nodes, &self.session[versions], &from, &bound, push);
                }
                if writer == NO_NODE && pairs.len() > n_before {
                    return Ok(None);
                }
            }
        }
        Ok(Some(pairs))
    }

    /// Of each session, the last of some nodes between two clocks, looked up.
    fn search(&self, nodes: &[Node], from: &Row, bound: &Row, mut push: impl FnMut(Node)) {
        for session in 0..self.n_sessions {
            let (from, bound) = (from[session].max(self.starts[session]), bound[session]);
            if from >= bound {
                continue;
            }
            let n_before = nodes.partition_point(|&node| node < bound);
            if let Some(&last) = nodes[..n_before].last().filter(|&&last| last >= from) {
                push(last);
            }
        }
    }
}

/// The same by comparing all nodes, which stand session by session.
fn scan(nodes: &[Node], sessions: &[u8], from: &Row, bound: &Row, mut push: impl FnMut(Node)) {
    const WIDTH: usize = 64;
    let mut after = u8::MAX;
    for at in (0..nodes.len().div_ceil(WIDTH)).rev() {
        let end = nodes.len().min((at + 1) * WIDTH);
        let (nodes, sessions) = (&nodes[at * WIDTH..end], &sessions[at * WIDTH..end]);
        let mut between = 0_u64;
        for (at, (&node, &session)) in nodes.iter().zip(sessions).enumerate() {
            let session = session as usize % MAX_SESSIONS;
            let is_between = node >= from[session] && node < bound[session];
            between |= u64::from(is_between) << at;
        }
        while between != 0 {
            let at = 63 - between.leading_zeros() as usize;
            between ^= 1 << at;
            if sessions[at] != after {
                after = sessions[at];
                push(nodes[at]);
            }
        }
    }
}

/// The rows of all clocks; a row holds the node itself for its own session.
fn ends(plain: &Plain<'_>, of_node: &[u8]) -> Result<Option<Vec<Node>>, StopReason> {
    let Some(order) = plain.sorted(&[]) else {
        return Ok(None);
    };
    let n_sessions = plain.resolved.sessions().len();
    let mut ends = vec![0; order.len() * n_sessions];
    let mut poll = plain.budget.poll();
    for node in order {
        poll.step()?;
        let own = of_node[node as usize] as usize;
        let mut row = [0; MAX_SESSIONS];
        let row = &mut row[..n_sessions];
        if node > plain.resolved.sessions()[own].start {
            let before = (node as usize - 1) * n_sessions;
            row.copy_from_slice(&ends[before..before + n_sessions]);
        }
        for read in plain.resolved.reads().of(node) {
            let from = plain.writer[read];
            if from == NO_NODE || from < row[of_node[from as usize] as usize] {
                continue;
            }
            let theirs = from as usize * n_sessions;
            for (own, &theirs) in row.iter_mut().zip(&ends[theirs..theirs + n_sessions]) {
                *own = theirs.max(*own);
            }
            row[of_node[from as usize] as usize] = from + 1;
        }
        row[own] = node;
        let at = node as usize * n_sessions;
        ends[at..at + n_sessions].copy_from_slice(row);
    }
    Ok(Some(ends))
}
