//! Runs: versions that must be consecutive, because each writer read the version before (Cobra's write combining, MTC's
//! whole idea).
//!
//! A run is in the order of its read-modify-writes, and no other version of the key can come between. The run that starts
//! from the initial version comes before every other. So only the other runs of a key are still to be ordered.

use std::ops::Range;

use crate::model::KeyId;
use crate::resolve::{VersionId, Versions};

/// Consecutive versions of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The oldest.
    pub head: VersionId,
    /// The newest.
    pub last: VersionId,
}

/// The runs of every key that is not settled, the run from the initial version left out.
#[derive(Clone, Debug, Default)]
pub struct Runs {
    keys: Vec<KeyId>,
    starts: Vec<u32>,
    all: Vec<Run>,
    n_pairs: u64,
}

impl Runs {
    /// How many keys are not settled.
    pub fn n_keys(&self) -> usize {
        self.keys.len()
    }

    /// A key that is not settled.
    pub fn key(&self, at: usize) -> KeyId {
        self.keys[at]
    }

    /// The runs of the key at this place, in node order of the writers of their heads.
    #[inline]
    pub fn of(&self, at: usize) -> &[Run] {
        &self.all[self.range(at)]
    }

    /// Where the runs of the key at this place stand among all.
    #[inline]
    pub fn range(&self, at: usize) -> Range<usize> {
        let start = if at == 0 { 0 } else { self.starts[at - 1] };
        start as usize..self.starts[at] as usize
    }

    /// A run by its place among all.
    #[inline]
    pub fn run(&self, index: u32) -> Run {
        self.all[index as usize]
    }

    /// How many runs there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether every key is settled.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The unordered pairs of runs whose order matters, before anything is pruned.
    pub fn n_pairs(&self) -> u64 {
        self.n_pairs
    }

    pub(super) fn push_key(&mut self, key: KeyId, runs: &[Run], n_pairs: u64) {
        self.n_pairs += n_pairs;
        self.keys.push(key);
        self.all.extend_from_slice(runs);
        self.starts.push(self.all.len() as u32);
    }
}

/// The runs of one key (single versions unless `combine`): first the one from the initial version, then the others by their heads.
/// Where two transactions read-modified-wrote one version, or some did in a circle, the known edges have a cycle already
/// and the runs do not matter.
pub(super) fn runs_of_key(versions: &Versions, key: KeyId, combine: bool, out: &mut Vec<Run>) {
    out.clear();
    for head in versions.of_key(key).map(VersionId) {
        if combine && continues_a_run(versions, head) {
            continue;
        }
        let mut last = head;
        while let Some(next) = versions.successor(last).filter(|_| combine) {
            last = next;
        }
        out.push(Run { head, last });
    }
}

fn continues_a_run(versions: &Versions, version: VersionId) -> bool {
    versions
        .predecessor(version)
        .is_some_and(|before| versions.successor(before) == Some(version))
}
