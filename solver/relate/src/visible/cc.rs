//! Causal consistency: a read sees all that happened before its transaction, by session order and reads.
//!
//! Of each session, the last writer of the key that happened before the reader is enough: the earlier ones precede it. If it happened
//! before the writer that was read from too, it precedes that one already.

use std::ops::Range;

use super::gaps::add_cc;
use super::past::{ChainPlace, Past};
use super::{Commits, Sight, Visible, Why};
use crate::budget::{Poll, StopReason};
use crate::level::Model;
use crate::resolve::{NO_NODE, Node, VersionId, Versions};

/// Adds the edges of causal consistency. Where something happened before itself there is a cycle already, and none is added.
pub(super) fn add(graph: &mut Visible<'_>) -> Result<(), StopReason> {
    let Some(past) = Past::of(graph, graph.poll.budget())? else {
        return Ok(());
    };
    let stretches = stretches(graph, &past);
    graph.add_by_reader(|graph, readers, poll| find(graph, &past, &stretches, readers, poll))?;
    add_cc(graph, &past)
}

fn find(
    graph: &Visible<'_>,
    past: &Past,
    stretches: &Stretches,
    readers: Range<Node>,
    poll: &mut Poll<'_>,
) -> Result<Vec<Commits>, StopReason> {
    let mut edges = Vec::new();
    for reader in readers {
        if graph.models.of(reader) != Model::Cc {
            continue;
        }
        let seen = past.clock(reader);
        let mut before: Option<VersionId> = None;
        for read in graph.reads.of(reader) {
            let version = graph.reads.version(read);
            if before.replace(version) == Some(version) {
                continue;
            }
            poll.step()?;
            let key = graph.versions.key(version).index();
            let writer = graph.versions.writer(version);
            let known = (writer != NO_NODE).then(|| past.clock(writer));
            for stretch in stretches.of(key) {
                let from = known.map_or(0, |known| known.end(stretch.place));
                let bound = seen.end(stretch.place);
                if let Some(seen) = stretch.last(graph.versions, from, bound)
                    && seen != writer
                    && seen != reader
                {
                    let why = Why::Vis {
                        reader,
                        version,
                        sight: Sight::Past,
                    };
                    let (from, to) = (seen, writer);
                    edges.push(Commits { from, to, why });
                }
            }
        }
    }
    Ok(edges)
}

/// Versions of a key, one after the other, whose writers are of one chain.
struct Stretch {
    place: ChainPlace,
    first: u32,
    end: u32,
}

impl Stretch {
    /// The last writer before a bound, unless it comes before another.
    #[inline]
    fn last(&self, versions: &Versions, from: Node, bound: Node) -> Option<Node> {
        if from >= bound {
            return None;
        }
        let (mut low, mut high) = (self.first, self.end);
        while low < high {
            let middle = low + (high - low) / 2;
            if versions.writer(VersionId(middle)) < bound {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        let last = low.checked_sub(1).filter(|&last| last >= self.first)?;
        Some(versions.writer(VersionId(last))).filter(|&seen| seen >= from)
    }
}

/// The stretches of each key.
struct Stretches {
    start: Vec<u32>,
    all: Vec<Stretch>,
}

impl Stretches {
    fn of(&self, key: usize) -> &[Stretch] {
        &self.all[self.start[key] as usize..self.start[key + 1] as usize]
    }
}

fn stretches(graph: &Visible<'_>, past: &Past) -> Stretches {
    let versions = graph.versions;
    let mut start = Vec::with_capacity(versions.n_keys() + 1);
    let mut all: Vec<Stretch> = Vec::new();
    for key in 0..versions.n_keys() as u32 {
        start.push(all.len() as u32);
        let first_of_key = all.len();
        for version in versions.of_key(crate::model::KeyId(key)).skip(1) {
            let place = past.place(versions.writer(VersionId(version)));
            match all[first_of_key..].last_mut() {
                Some(last) if last.place == place => last.end = version + 1,
                _ => all.push(Stretch {
                    place,
                    first: version,
                    end: version + 1,
                }),
            }
        }
    }
    start.push(all.len() as u32);
    Stretches { start, all }
}
