//! Read committed: a read sees what earlier reads of its transaction, or reads of the same statement, read from.
//!
//! A transaction's reads are walked backwards. Of each key the two earliest different sources below are kept: if *t2*, first read
//! here, writes the key, it commits before the first of them that is not itself, and that one before the later
//! ones by the same rule. One source would not do: it may be *t2* itself.

use std::ops::Range;

use super::{Commits, Sight, Visible, Why};
use crate::budget::{Poll, StopReason};
use crate::level::Model;
use crate::model::KeyId;
use crate::resolve::{NO_NODE, Node, VersionId};

/// The earliest two reads below, of different versions of a key.
#[derive(Clone, Copy)]
struct Slot {
    reader: Node,
    reads: [Option<VersionId>; 2],
}

/// How many sources of a key are kept.
pub const SLOTS: usize = 2;

/// Adds the edges of read committed. `n_slots` is [`SLOTS`]; a test shows that fewer would not do.
pub(super) fn add(graph: &mut Visible<'_>, n_slots: usize) -> Result<(), StopReason> {
    graph.add_by_reader(|graph, readers, poll| find(graph, readers, n_slots, poll))
}

fn find(
    graph: &Visible<'_>,
    readers: Range<Node>,
    n_slots: usize,
    poll: &mut Poll<'_>,
) -> Result<Vec<Commits>, StopReason> {
    let mut edges = Vec::new();
    let empty = Slot {
        reader: NO_NODE,
        reads: [None; 2],
    };
    let mut slots = vec![empty; graph.versions.n_keys()];
    let mut keys: Vec<KeyId> = Vec::new();
    // For each source, the number of its first read by the reader under way.
    let mut first = vec![(NO_NODE, 0_usize); graph.resolved.n_txns()];
    for reader in readers {
        let reads = graph.reads.of(reader);
        if reads.len() < 2 || !matches!(graph.models.of(reader), Model::Rc | Model::RcSo) {
            continue;
        }
        for read in reads.clone().rev() {
            let writer = graph.versions.writer(graph.reads.version(read));
            if writer != NO_NODE {
                first[writer as usize] = (reader, read);
            }
        }
        keys.clear();
        let mut end = reads.end;
        while end > reads.start {
            poll.step()?;
            let op = graph.reads.statement(end - 1);
            let mut start = end - 1;
            while start > reads.start && graph.reads.statement(start - 1) == op {
                start -= 1;
            }
            for read in (start..end).rev() {
                take(graph, &mut slots, &mut keys, reader, read);
            }
            for read in start..end {
                let version = graph.reads.version(read);
                let seen = graph.versions.writer(version);
                if seen != NO_NODE && first[seen as usize] == (reader, read) {
                    let by = (reader, version);
                    see(graph, &slots[..], &keys, by, n_slots, &mut edges);
                }
            }
            end = start;
        }
    }
    Ok(edges)
}

fn take(graph: &Visible<'_>, slots: &mut [Slot], keys: &mut Vec<KeyId>, reader: Node, read: usize) {
    let version = graph.reads.version(read);
    let key = graph.versions.key(version);
    let slot = &mut slots[key.index()];
    if slot.reader != reader {
        *slot = Slot {
            reader,
            reads: [None; 2],
        };
        keys.push(key);
    }
    if slot.reads[0] != Some(version) {
        slot.reads = [Some(version), slot.reads[0]];
    }
}

/// Puts a transaction that is seen from here on before what is read below of the keys that it writes.
fn see(
    graph: &Visible<'_>,
    slots: &[Slot],
    keys: &[KeyId],
    (reader, by): (Node, VersionId),
    n_slots: usize,
    edges: &mut Vec<Commits>,
) {
    let seen = graph.versions.writer(by);
    for key in graph.written_of(seen, keys) {
        let slot = slots[key.index()];
        if slot.reader != reader {
            continue;
        }
        let other = |version: &VersionId| graph.versions.writer(*version) != seen;
        if let Some(version) = slot.reads.into_iter().take(n_slots).flatten().find(other) {
            let why = Why::Vis {
                reader,
                version,
                sight: Sight::EarlierRead(by),
            };
            let (from, to) = (seen, graph.versions.writer(version));
            edges.push(Commits { from, to, why });
        }
    }
}
