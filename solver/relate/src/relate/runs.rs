//! Runs: versions that must be consecutive, because each writer read the version before (Cobra's write combining, MTC's
//! whole idea).
//!
//! A run is in the order of its read-modify-writes, and no other version of the key can come between. The run that starts
//! from the initial version comes before every other. So only the other runs of a key are still to be ordered.

use super::Places;
use crate::model::KeyId;
use crate::resolve::{Resolved, VersionId, Versions};

/// Consecutive versions of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Run {
    /// The oldest.
    pub(super) head: VersionId,
    /// The newest.
    pub(super) last: VersionId,
}

/// The version that must follow this one directly, if versions are combined.
pub(super) fn next(versions: &Versions, places: &Places, version: VersionId) -> Option<VersionId> {
    let next = versions.successor(version)?;
    places.is_atomic(versions.writer(next)).then_some(next)
}

/// The runs of one key (single versions unless `combine`): first the one from the initial version, then the others by their heads.
/// What transactions in doubt wrote is in none.
/// Where two transactions read-modified-wrote one version, or some did in a circle, the known edges have a cycle already
/// and the runs do not matter.
pub(super) fn runs_of_key(
    resolved: &Resolved,
    places: &Places,
    key: KeyId,
    combine: bool,
    out: &mut Vec<Run>,
) {
    out.clear();
    let versions = resolved.versions();
    let next = |version| next(versions, places, version).filter(|_| combine);
    for head in versions.of_key(key).map(VersionId) {
        if resolved.is_in_doubt(versions.writer(head)) {
            continue;
        }
        let before = versions.predecessor(head);
        if before.is_some_and(|before| next(before) == Some(head)) {
            continue;
        }
        let mut last = head;
        while let Some(after) = next(last) {
            last = after;
        }
        out.push(Run { head, last });
    }
}
