//! Causal consistency: a read sees all that happened before its transaction, by session order and reads.
//!
//! Of each session, the last writer of the key that happened before the reader is enough: the earlier ones precede it.

use super::gaps::add_cc;
use super::past::Past;
use super::{Sight, Visible, Why};
use crate::budget::{Budget, StopReason};
use crate::level::Model;
use crate::resolve::{NO_NODE, Node, VersionId};

/// Adds the edges of causal consistency. Where something happened before itself there is a cycle already, and none is added.
pub(super) fn add(graph: &mut Visible<'_>, budget: &Budget) -> Result<(), StopReason> {
    let Some(past) = Past::of(graph, budget)? else {
        return Ok(());
    };
    let segments = segments(graph, &past);
    for reader in 0..graph.resolved.n_txns() as Node {
        if graph.models.of(reader) != Model::Cc {
            continue;
        }
        let mut before: Option<VersionId> = None;
        for read in graph.reads.of(reader) {
            let version = graph.reads.version(read);
            if before.replace(version) == Some(version) {
                continue;
            }
            let key = graph.versions.key(version).index();
            let writer = graph.versions.writer(version);
            for at in segments.start[key]..segments.start[key + 1] {
                graph.poll.step()?;
                let (first, end) = (segments.first[at], segments.first[at + 1]);
                let chain = past.chain(graph.versions.writer(VersionId(first)));
                let bound = past.end(reader, chain);
                // The last version of the chain whose writer happened before the reader.
                let (mut low, mut high) = (first, segments.end[at].min(end));
                while low < high {
                    let middle = low + (high - low) / 2;
                    if graph.versions.writer(VersionId(middle)) < bound {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                if low == first {
                    continue;
                }
                let seen = graph.versions.writer(VersionId(low - 1));
                if seen != writer && seen != reader && seen != NO_NODE {
                    let why = Why::Vis {
                        reader,
                        version,
                        sight: Sight::Past,
                    };
                    graph.push(seen, writer, why);
                }
            }
        }
    }
    add_cc(graph, &past)
}

/// For each key, the stretches of its versions whose writers are of one chain.
struct Segments {
    /// Where the stretches of each key start among all.
    start: Vec<usize>,
    /// The first version of each stretch; one more at the end.
    first: Vec<u32>,
    /// The version behind each stretch.
    end: Vec<u32>,
}

fn segments(graph: &Visible<'_>, past: &Past) -> Segments {
    let versions = graph.versions;
    let mut segments = Segments {
        start: Vec::with_capacity(versions.n_keys() + 1),
        first: Vec::new(),
        end: Vec::new(),
    };
    for key in 0..versions.n_keys() as u32 {
        segments.start.push(segments.first.len());
        let written = versions.of_key(crate::model::KeyId(key)).skip(1);
        let mut chain = None;
        for version in written {
            let own = past.chain(versions.writer(VersionId(version)));
            if chain.replace(own) == Some(own) {
                *segments.end.last_mut().expect("a stretch is open") = version + 1;
            } else {
                segments.first.push(version);
                segments.end.push(version + 1);
            }
        }
    }
    segments.start.push(segments.first.len());
    segments.first.push(versions.len() as u32);
    segments
}
