//! Why the known edges exist, as numbers that the graph carries.

use crate::resolve::VersionId;
use kingsnake_graph::Reason;

/// A transaction begins before it commits.
pub const BEGIN: Reason = Reason::Stated { kind: 1, about: 0 };
/// The earlier came first in their session (so).
pub const SESSION: Reason = Reason::Stated { kind: 2, about: 0 };
/// Through a node of the time chain: the earlier was over before the later could be (rt).
pub const REAL_TIME: Reason = Reason::Stated { kind: 3, about: 0 };

/// Through helper nodes: the earlier found some keys absent that the later, or someone behind a helper, wrote (rw).
pub const GAP: Reason = Reason::Stated { kind: 6, about: 0 };

const WR: u8 = 4;
const VIS: u8 = 5;
const GIVEN: u8 = 7;

/// The later read this version, which the earlier installed (wr).
pub fn wr(version: VersionId) -> Reason {
    let about = version.0;
    Reason::Stated { kind: WR, about }
}

/// Whether [`wr`] made a reason.
pub fn is_wr(reason: Reason) -> bool {
    matches!(reason, Reason::Stated { kind: WR, .. })
}

/// The earlier installed `before`, the later `after`, and `before` ≪ `after` (ww).
pub fn ww(before: VersionId, after: VersionId) -> Reason {
    let (before, after) = (before.0, after.0);
    Reason::Ww { before, after }
}

/// The earlier read `before`, the later installed `after`, and `before` ≪ `after` (rw).
pub fn rw(before: VersionId, after: VersionId) -> Reason {
    let (before, after) = (before.0, after.0);
    Reason::Rw { before, after }
}

/// A read of a weak transaction saw the earlier and returned what the later wrote; the number is of the polygraph's sights.
pub fn vis(about: u32) -> Reason {
    Reason::Stated { kind: VIS, about }
}

/// The user put the earlier before the later; the number is of the history's given edges.
pub fn given(about: u32) -> Reason {
    Reason::Stated { kind: GIVEN, about }
}

/// The number of a reason that [`given`] made.
pub fn given_edge(reason: Reason) -> Option<u32> {
    match reason {
        Reason::Stated { kind: GIVEN, about } => Some(about),
        _ => None,
    }
}

/// The number of a reason that [`vis`] made.
pub fn sight(reason: Reason) -> Option<u32> {
    match reason {
        Reason::Stated { kind: VIS, about } => Some(about),
        _ => None,
    }
}

/// What statistics call an edge of this reason.
pub fn name(reason: Reason) -> &'static str {
    match reason {
        Reason::Ww { .. } => "ww",
        Reason::Rw { .. } => "rw",
        BEGIN => "begin to commit",
        SESSION => "so",
        REAL_TIME => "rt",
        GAP => "rw of absent keys",
        Reason::Stated { kind: WR, .. } => "wr",
        Reason::Stated { kind: VIS, .. } => "vis",
        Reason::Stated { kind: GIVEN, .. } => "given",
        Reason::Stated { .. } => "helper",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_reasons_are_the_same() {
        let version = VersionId(0);
        let all = [
            BEGIN,
            SESSION,
            REAL_TIME,
            GAP,
            wr(version),
            ww(version, version),
            rw(version, version),
            vis(0),
            given(0),
        ];
        for (at, reason) in all.iter().enumerate() {
            assert!(!all[..at].contains(reason), "{reason:?} is there twice");
        }
        assert_eq!(given_edge(GAP), None);
    }
}
