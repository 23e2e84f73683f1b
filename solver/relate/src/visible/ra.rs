//! Read atomic: a read sees what any read of its transaction read from, and what came before in the session.

use std::ops::Range;

use super::{Commits, Sight, Visible, Why};
use crate::budget::{Poll, StopReason};
use crate::level::Model;
use crate::model::KeyId;
use crate::resolve::{NO_NODE, Node, VersionId};

/// Adds the edges of what a transaction read from.
pub(super) fn add(graph: &mut Visible<'_>) -> Result<(), StopReason> {
    graph.add_by_reader(find)
}

fn find(
    graph: &Visible<'_>,
    readers: Range<Node>,
    poll: &mut Poll<'_>,
) -> Result<Vec<Commits>, StopReason> {
    let mut edges = Vec::new();
    // For each key, the version that the reader under way read.
    let mut read_of = vec![(NO_NODE, VersionId(0)); graph.versions.n_keys()];
    let mut done = vec![NO_NODE; graph.resolved.n_txns()];
    let mut keys: Vec<KeyId> = Vec::new();
    for reader in readers {
        poll.step()?;
        if graph.models.of(reader) != Model::Ra {
            continue;
        }
        let reads = graph.reads.of(reader);
        keys.clear();
        for read in reads.clone() {
            let version = graph.reads.version(read);
            let key = graph.versions.key(version);
            if read_of[key.index()].0 != reader {
                read_of[key.index()] = (reader, version);
                keys.push(key);
            }
        }
        for read in reads {
            let by = graph.reads.version(read);
            let seen = graph.versions.writer(by);
            if seen == NO_NODE || std::mem::replace(&mut done[seen as usize], reader) == reader {
                continue;
            }
            see(graph, &read_of, &keys, (reader, by), &mut edges);
        }
    }
    Ok(edges)
}

fn see(
    graph: &Visible<'_>,
    read_of: &[(Node, VersionId)],
    keys: &[KeyId],
    (reader, by): (Node, VersionId),
    edges: &mut Vec<Commits>,
) {
    let seen = graph.versions.writer(by);
    for key in graph.written_of(seen, keys) {
        let (of, version) = read_of[key.index()];
        if of != reader {
            continue;
        }
        let writer = graph.versions.writer(version);
        if writer != seen {
            let why = Why::Vis {
                reader,
                version,
                sight: Sight::Source(by),
            };
            let (from, to) = (seen, writer);
            edges.push(Commits { from, to, why });
        }
    }
}

/// Adds the edges of what came before in the session: the last earlier writer of a key that was read commits before the one that
/// it was read from.
pub(super) fn add_sessions(graph: &mut Visible<'_>) -> Result<(), StopReason> {
    let mut last = vec![(u32::MAX, NO_NODE); graph.versions.n_keys()];
    for (session, nodes) in graph.resolved.sessions().iter().enumerate() {
        let session = session as u32;
        for reader in nodes.clone() {
            graph.poll.step()?;
            let is_seen = matches!(graph.models.of(reader), Model::RcSo | Model::Ra);
            for read in graph.reads.of(reader).filter(|_| is_seen) {
                let version = graph.reads.version(read);
                let (of, seen) = last[graph.versions.key(version).index()];
                let writer = graph.versions.writer(version);
                if of == session && seen != writer {
                    let why = Why::Vis {
                        reader,
                        version,
                        sight: Sight::Session,
                    };
                    graph.push(seen, writer, why);
                }
            }
            for at in 0..graph.written(reader).len() {
                last[graph.written(reader)[at].index()] = (session, reader);
            }
        }
    }
    Ok(())
}
