//! Which uncertain reads an order does not explain: those that find in it a version which is no candidate.

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Scene;
use crate::model::KeyId;
use crate::phases::{self, Decided, Stop};
use crate::relate::Places;
use crate::resolve::{Resolved, VersionId};

/// The reads that are attended to from the beginning, sorted: those that aggregates count, and those that an order does not tell.
pub(super) fn needed(scene: &Scene<'_>, base: &Resolved) -> Vec<usize> {
    let places = Places::of(scene.check.history, base, scene.check.spec);
    let mut needed: Vec<usize> = scene.counted.reads().collect();
    if !places.all_read_newest() {
        let reads = base.uncertain().iter().enumerate();
        let untold = reads.filter(|it| !places.reads_newest(it.1.reader));
        needed.extend(untold.map(|it| it.0));
    }
    needed.sort_unstable();
    needed.dedup();
    needed
}

/// The reads that an order does not explain, in the order of their readers.
pub(super) fn missed(base: &Resolved, decided: &Decided) -> Result<Vec<usize>, Stop> {
    let pruned = &decided.pruned;
    let order = phases::sorted(decided)?;
    let mut place = vec![0_u32; order.len()];
    for (&node, at) in order.iter().zip(0..) {
        place[node as usize] = at;
    }
    let places = pruned.problem.places();
    let lines = lines(base, |node| place[places.commit(node) as usize]);
    let reads = base.uncertain().par_iter().enumerate();
    let missed = reads.filter_map(|(at, read)| {
        if !places.reads_newest(read.reader) {
            return None;
        }
        let line = &lines[&read.key];
        let when = place[places.snap(read.reader) as usize];
        let n_before = line.partition_point(|it| it.0 < when);
        let version = match n_before.checked_sub(1) {
            Some(last) => line[last].1,
            None => base.versions().initial(read.key),
        };
        let is_explained = read.candidates.binary_search(&version).is_ok();
        (!is_explained).then_some((when, at))
    });
    let mut missed: Vec<(u32, usize)> = missed.collect();
    missed.sort_unstable();
    Ok(missed.into_iter().map(|it| it.1).collect())
}

/// The versions of every key that some read is uncertain of, by where they are installed.
fn lines(base: &Resolved, place: impl Fn(u32) -> u32) -> FxHashMap<KeyId, Vec<(u32, VersionId)>> {
    let versions = base.versions();
    let mut lines = FxHashMap::default();
    for read in base.uncertain() {
        lines.entry(read.key).or_insert_with(|| {
            let written = versions.of_key(read.key).skip(1).map(VersionId);
            let mut line: Vec<(u32, VersionId)> = written
                .map(|version| (place(versions.writer(version)), version))
                .collect();
            line.sort_unstable();
            line
        });
    }
    lines
}
