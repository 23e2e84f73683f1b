//! An edge with its reason.

/// Why one node comes before another. The caller that stated the problem knows the meaning of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The problem states it.
    Stated {
        /// The kind of statement.
        kind: u8,
        /// Its subject.
        about: u32,
    },
    /// The earlier installed version `before`, the later installs `after`, and `before` ≪ `after` (ww).
    Ww {
        /// The older version.
        before: u32,
        /// The newer version.
        after: u32,
    },
    /// The earlier read version `before`, the later installs `after`, and `before` ≪ `after` (rw).
    Rw {
        /// The version that was read.
        before: u32,
        /// The newer version.
        after: u32,
    },
}

impl Reason {
    /// No particular reason: for problems from elsewhere.
    pub const NONE: Reason = Reason::Stated { kind: 0, about: 0 };

    /// The version that is put first and the one that is put second, where the reason is about two versions.
    pub fn fact(self) -> Option<(u32, u32)> {
        match self {
            Reason::Ww { before, after } | Reason::Rw { before, after } => Some((before, after)),
            Reason::Stated { .. } => None,
        }
    }
}

/// `from` comes before `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Edge {
    /// The earlier node.
    pub from: u32,
    /// The later node.
    pub to: u32,
    /// Why.
    pub reason: Reason,
}

impl Edge {
    /// An edge without a particular reason.
    pub fn plain(from: u32, to: u32) -> Edge {
        let reason = Reason::NONE;
        Edge { from, to, reason }
    }
}
