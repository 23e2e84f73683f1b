//! Read atomic: a read sees what any read of its transaction read from, and what came before in the session.

use super::{Sight, Visible, Why};
use crate::budget::StopReason;
use crate::level::Model;
use crate::model::KeyId;
use crate::resolve::{NO_NODE, Node, VersionId};

/// Adds the edges of what a transaction read from.
pub(super) fn add(graph: &mut Visible<'_>) -> Result<(), StopReason> {
    // For each key, the version that the reader under way read.
    let mut read_of = vec![(NO_NODE, VersionId(0)); graph.versions.n_keys()];
    let mut done = vec![NO_NODE; graph.resolved.n_txns()];
    let mut keys: Vec<KeyId> = Vec::new();
    for reader in 0..graph.resolved.n_txns() as Node {
        graph.poll.step()?;
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
            see(graph, &read_of, &keys, reader, by);
        }
    }
    Ok(())
}

fn see(
    graph: &mut Visible<'_>,
    read_of: &[(Node, VersionId)],
    keys: &[KeyId],
    reader: Node,
    by: VersionId,
) {
    let seen = graph.versions.writer(by);
    let n_written = graph.written(seen).len();
    for at in 0..n_written.min(keys.len()) {
        let key = if n_written <= keys.len() {
            graph.written(seen)[at]
        } else {
            keys[at]
        };
        let (of, version) = read_of[key.index()];
        if of != reader || n_written > keys.len() && !graph.writes(seen, key) {
            continue;
        }
        let writer = graph.versions.writer(version);
        if writer != seen {
            let why = Why::Vis {
                reader,
                version,
                sight: Sight::Source(by),
            };
            graph.push(seen, writer, why);
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
