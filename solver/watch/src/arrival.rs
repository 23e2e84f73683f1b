//! An arriving transaction, reduced to what other transactions can see of it.

use serde::{Deserialize, Serialize};

/// A key, numbered from 0 in the order of first use.
pub type KeyNumber = u32;

/// A value of a key. Equal values have equal names; the caller makes them.
pub type ValueName = u128;

/// What a read of an empty list returns. No caller names a value so.
pub const EMPTY_LIST: ValueName = ValueName::MAX - 2;

/// A transaction that committed, or whose end is unknown. Aborted ones never arrive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// The caller's name for it.
    pub id: u64,
    /// The session. A session's transactions arrive in the order in which it ran them.
    pub session: u32,
    /// Not later than the true begin.
    pub begin: i64,
    /// Not earlier than the true commit; `None` where nothing bounds it.
    pub commit: Option<i64>,
    /// Whether its end is unknown.
    pub is_unknown: bool,
    /// For each key that it read before it wrote it, the value.
    pub reads: Vec<(KeyNumber, ValueName)>,
    /// For each key that it wrote, the last value.
    pub writes: Vec<(KeyNumber, ValueName)>,
    /// For each list that it read before it appended to it, all elements. `reads` has the last one, or [`EMPTY_LIST`].
    pub lists: Vec<(KeyNumber, Vec<ValueName>)>,
    /// For each list that it appended to, the elements in order. `writes` has the last one.
    pub appends: Vec<(KeyNumber, Vec<ValueName>)>,
}

impl Arrival {
    /// What it appended to a list.
    pub(crate) fn appended(&self, key: KeyNumber) -> &[ValueName] {
        let appended = self.appends.iter().find(|it| it.0 == key);
        appended.map_or(&[], |it| it.1.as_slice())
    }

    pub(crate) fn forget_read(&mut self, key: KeyNumber) {
        self.reads.retain(|it| it.0 != key);
        self.lists.retain(|it| it.0 != key);
    }
}

/// The levels that can be watched without timestamps of the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WatchLevel {
    /// Serializable, session order and real time.
    StrictSer,
    /// Snapshot isolation, session order and real time.
    StrongSi,
    /// Serializable and session order.
    Ser,
    /// Snapshot isolation and session order.
    Si,
}

impl WatchLevel {
    /// Whether the clock orders transactions.
    pub fn has_real_time(self) -> bool {
        matches!(self, WatchLevel::StrictSer | WatchLevel::StrongSi)
    }

    /// Whether begins and commits are apart.
    pub fn has_snapshots(self) -> bool {
        matches!(self, WatchLevel::StrongSi | WatchLevel::Si)
    }
}

/// What can still arrive after a batch.
#[derive(Clone, Debug, Default)]
pub struct Horizon {
    /// No transaction that arrives later begins before this time.
    pub watermark: i64,
    /// The sessions that can still deliver.
    pub live: Vec<u32>,
    /// Further sessions may appear; each begins with a transaction that reads and writes this key.
    pub fence: Option<KeyNumber>,
    /// Further sessions may appear, and each of their transactions begins at the watermark or later. At levels
    /// without real time nothing is settled then, unless there is a fence.
    pub is_open: bool,
}

impl Horizon {
    /// Nothing can arrive any more.
    pub fn closed() -> Self {
        Horizon {
            watermark: i64::MAX,
            ..Horizon::default()
        }
    }

    /// Whether nothing can arrive any more.
    pub fn is_closed(&self) -> bool {
        self.live.is_empty() && self.fence.is_none() && !self.is_open
    }
}
