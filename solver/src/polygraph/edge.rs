//! An edge of the polygraph, with the reason why it is there.

use crate::resolve::VersionId;

/// Why one node comes before another. The papers' letters are in brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// A transaction begins before it commits (SI only).
    Begin,
    /// The earlier came first in their session (so).
    Session,
    /// Through a node of the time chain: the earlier was over before the later could be (rt).
    RealTime,
    /// The later read this version, which the earlier installed (wr).
    Wr(VersionId),
    /// The earlier installed `before`, the later `after`, and `before` ≪ `after` (ww).
    Ww {
        /// The older version.
        before: VersionId,
        /// The newer version.
        after: VersionId,
    },
    /// The earlier read `before`, the later installed `after`, and `before` ≪ `after` (rw).
    Rw {
        /// The version that was read.
        before: VersionId,
        /// The newer version.
        after: VersionId,
    },
}

/// `from` comes before `to`. Nodes are the polygraph's: transactions for SER, begins and commits for SI, then time nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The earlier node.
    pub from: u32,
    /// The later node.
    pub to: u32,
    /// Why.
    pub reason: Reason,
}
