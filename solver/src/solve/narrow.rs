//! What reachability rules out of a read's candidates, for transactions that read the newest version: a version that comes after the read,
//! and one that was overwritten before it.

use crate::relate::Places;
use crate::resolve::{Resolved, Uncertain, VersionId, Versions};
use kingsnake_graph::reach::Reach;

/// The candidates of a read that reachability rules out.
pub(crate) fn impossible_sources(
    base: &Resolved,
    places: &Places,
    reach: &Reach,
    read: &Uncertain,
) -> Vec<VersionId> {
    let mut left = read.candidates.clone();
    Rules::new(base, places, reach, read).narrow(&mut left);
    let all = read.candidates.iter().copied();
    all.filter(|it| left.binary_search(it).is_err()).collect()
}

/// What rules out candidates of a read.
pub(super) struct Rules<'a> {
    base: &'a Resolved,
    versions: &'a Versions,
    places: &'a Places,
    reach: &'a Reach,
    read: &'a Uncertain,
}

impl<'a> Rules<'a> {
    pub(super) fn new(
        base: &'a Resolved,
        places: &'a Places,
        reach: &'a Reach,
        read: &'a Uncertain,
    ) -> Self {
        Rules {
            base,
            versions: base.versions(),
            places,
            reach,
            read,
        }
    }

    /// Leaves the candidates that can have been read.
    pub(super) fn narrow(&self, candidates: &mut Vec<VersionId>) {
        let (versions, places) = (self.versions, self.places);
        let reader = self.read.reader;
        let snap = places.snap(reader);
        candidates.retain(|&version| {
            versions.is_initial(version) || {
                let commit = places.commit(versions.writer(version));
                !self.reach.reaches(snap, commit)
            }
        });
        if !places.reads_newest(reader) {
            return;
        }
        // The newest of the versions that are there when the transaction reads.
        let there = versions.of_key(self.read.key).skip(1).map(VersionId);
        let there = there.filter(|&version| {
            let writer = versions.writer(version);
            writer != reader
                && !self.base.is_in_doubt(writer)
                && self.reach.reaches(places.commit(writer), snap)
        });
        let newest = newest(there, |one, other| self.precedes(one, other));
        candidates.retain(|&version| !newest.iter().any(|&other| self.precedes(version, other)));
    }

    /// Whether one version is known to come before another.
    fn precedes(&self, version: VersionId, other: VersionId) -> bool {
        if version == other {
            return false;
        }
        let versions = self.versions;
        versions.is_initial(version) || {
            let from = self.places.commit(versions.writer(version));
            let to = self.places.install(versions.writer(other));
            self.reach.reaches(from, to)
        }
    }
}

/// Those that no other one comes after: what comes before one of all comes before one of these.
pub(crate) fn newest<T: Copy>(
    all: impl Iterator<Item = T>,
    precedes: impl Fn(T, T) -> bool,
) -> Vec<T> {
    let mut newest: Vec<T> = Vec::new();
    for one in all {
        if !newest.iter().any(|&it| precedes(one, it)) {
            newest.retain(|&it| !precedes(it, one));
            newest.push(one);
        }
    }
    newest
}
