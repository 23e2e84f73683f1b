//! Causal consistency by vector clocks over few sessions: of each session, the last writer of the key that happened before the reader
//! and not before the writer that was read from.
//!
//! The writers of a key are compared with two clocks at once, which takes less time than looking each session up, unless the key has
//! many.

use std::ops::Range;

use super::quick::{Pair, Plain};
use crate::budget::{Poll, StopReason};
use crate::resolve::{NO_NODE, Node};

/// The pairs that causal consistency gives; `None` if something happened before itself, a read returned the initial state although it saw
/// a writer, or there are too many chains for clocks of this kind.
pub(super) fn pairs(plain: &Plain<'_>) -> Result<Option<Vec<Vec<Pair>>>, StopReason> {
    if !plain.session_order {
        return Ok(None);
    }
    match plain.resolved.sessions().len() {
        0..=8 => pairs_of::<8>(plain),
        9..=16 => pairs_of::<16>(plain),
        17..=24 => pairs_of::<24>(plain),
        25..=32 => pairs_of::<32>(plain),
        33..=64 => pairs_of::<64>(plain),
        _ => Ok(None),
    }
}

fn pairs_of<const N: usize>(plain: &Plain<'_>) -> Result<Option<Vec<Vec<Pair>>>, StopReason> {
    match Clocks::<N>::of(plain)? {
        Some(clocks) => plain.by_reader(|readers, poll| clocks.seen(plain, readers, poll)),
        None => Ok(None),
    }
}

/// For each node and each session, where in the session its past ends: the first node of it that is not in the past.
struct Clocks<const N: usize> {
    rows: Vec<[Node; N]>,
    /// The first node of each session.
    starts: Vec<Node>,
    /// The session of the writer of each version, initial ones included.
    session: Vec<u8>,
}

impl<const N: usize> Clocks<N> {
    /// The clocks of all transactions; `None` if something happened before itself.
    fn of(plain: &Plain<'_>) -> Result<Option<Self>, StopReason> {
        let sessions = plain.resolved.sessions();
        let n_nodes = plain.resolved.n_txns();
        let bytes = n_nodes as u64 * N as u64 * 4;
        let budget = plain.budget;
        budget.reserve("the clocks of causal consistency", bytes)?;
        let mut of_node = vec![0_u8; n_nodes];
        for (session, nodes) in sessions.iter().enumerate() {
            of_node[nodes.start as usize..nodes.end as usize].fill(session as u8);
        }
        let (rows, session) = rayon::join(
            || rows(plain, &of_node),
            || {
                let writers = plain.versions.all_writers().iter();
                let session = writers.map(|&it| of_node.get(it as usize).copied().unwrap_or(0));
                session.collect()
            },
        );
        Ok(rows?.map(|rows| Clocks {
            rows,
            starts: sessions.iter().map(|nodes| nodes.start).collect(),
            session,
        }))
    }

    /// What the reads of some transactions see; `None` if one returned the initial state all the same.
    fn seen(
        &self,
        plain: &Plain<'_>,
        readers: Range<Node>,
        poll: &mut Poll<'_>,
    ) -> Result<Option<Vec<Pair>>, StopReason> {
        const NOTHING: Node = 0;
        let mut pairs = Vec::new();
        let nothing = [NOTHING; N];
        for reader in readers {
            let bound = &self.rows[reader as usize];
            for read in plain.resolved.reads().of(reader) {
                poll.step()?;
                let writer = plain.writer[read];
                let from = self.rows.get(writer as usize).unwrap_or(&nothing);
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
                    self.search(nodes, from, bound, push);
                } else {
                    scan(nodes, &self.session[versions], from, bound, push);
                }
                if writer == NO_NODE && pairs.len() > n_before {
                    return Ok(None);
                }
            }
        }
        Ok(Some(pairs))
    }

    /// Of each session, the last of some nodes between two clocks, looked up.
    fn search(
        &self,
        nodes: &[Node],
        from: &[Node; N],
        bound: &[Node; N],
        mut push: impl FnMut(Node),
    ) {
        for (session, &start) in self.starts.iter().enumerate() {
            let (from, bound) = (from[session].max(start), bound[session]);
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
fn scan<const N: usize>(
    nodes: &[Node],
    sessions: &[u8],
    from: &[Node; N],
    bound: &[Node; N],
    mut push: impl FnMut(Node),
) {
    const WIDTH: usize = 64;
    let mut after = u8::MAX;
    for at in (0..nodes.len().div_ceil(WIDTH)).rev() {
        let end = nodes.len().min((at + 1) * WIDTH);
        let (nodes, sessions) = (&nodes[at * WIDTH..end], &sessions[at * WIDTH..end]);
        let mut between = 0_u64;
        for (at, (&node, &session)) in nodes.iter().zip(sessions).enumerate() {
            let session = usize::from(session).min(N - 1);
            // Both are computed: what follows from a branch here cannot be guessed.
            let is_between = u64::from(node >= from[session]) & u64::from(node < bound[session]);
            between |= is_between << at;
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
fn rows<const N: usize>(
    plain: &Plain<'_>,
    of_node: &[u8],
) -> Result<Option<Vec<[Node; N]>>, StopReason> {
    let Some(order) = plain.sorted(&[]) else {
        return Ok(None);
    };
    let mut rows = vec![[0; N]; order.len()];
    let mut poll = plain.budget.poll();
    for node in order {
        poll.step()?;
        let own = usize::from(of_node[node as usize]);
        let mut row = [0; N];
        if node > plain.resolved.sessions()[own].start {
            row = rows[node as usize - 1];
        }
        for read in plain.resolved.reads().of(node) {
            let from = plain.writer[read];
            if from == NO_NODE || from < row[usize::from(of_node[from as usize])] {
                continue;
            }
            for (own, theirs) in row.iter_mut().zip(rows[from as usize]) {
                *own = theirs.max(*own);
            }
            row[usize::from(of_node[from as usize])] = from + 1;
        }
        row[own] = node;
        rows[node as usize] = row;
    }
    Ok(Some(rows))
}
