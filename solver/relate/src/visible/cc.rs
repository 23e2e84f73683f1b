//! Causal consistency: a read sees all that happened before its transaction, by session order and reads.
//!
//! Of each session, the last writer of the key that happened before the reader is enough: the earlier ones precede it. If it happened
//! before the writer that was read from too, it precedes that one already.

use super::gaps::add_cc;
use super::past::Past;
use super::{Sight, Visible, Why};
use crate::budget::{Budget, StopReason};
use crate::level::Model;
use crate::resolve::{NO_NODE, Node, VersionId, Versions};

/// Adds the edges of causal consistency. Where something happened before itself there is a cycle already, and none is added.
pub(super) fn add(graph: &mut Visible<'_>, budget: &Budget) -> Result<(), StopReason> {
    let Some(past) = Past::of(graph, budget)? else {
        return Ok(());
    };
    let stretches = stretches(graph, &past);
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
            graph.poll.step()?;
            let key = graph.versions.key(version).index();
            let writer = graph.versions.writer(version);
            for stretch in stretches.of(key) {
                let bound = past.end(reader, stretch.chain);
                let known = match writer {
                    NO_NODE => 0,
                    _ => past.end(writer, stretch.chain),
                };
                if let Some(seen) = stretch.last(graph.versions, known, bound)
                    && seen != writer
                    && seen != reader
                {
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

/// Versions of a key, one after the other, whose writers are of one chain.
struct Stretch {
    chain: u32,
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
            let chain = past.chain(versions.writer(VersionId(version)));
            match all[first_of_key..].last_mut() {
                Some(last) if last.chain == chain => last.end = version + 1,
                _ => all.push(Stretch {
                    chain,
                    first: version,
                    end: version + 1,
                }),
            }
        }
    }
    start.push(all.len() as u32);
    Stretches { start, all }
}
