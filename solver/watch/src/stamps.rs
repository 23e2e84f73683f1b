//! Snapshot isolation along the timestamps of the database, in one pass (Chronos, Aion): a read returns the newest version whose
//! commit is not above the reader's start, and transactions that write one key do not overlap.
//!
//! A read is final once no transaction that can still arrive starts at or before the reader's start. An overlap is final as soon
//! as both transactions are there. So versions at or above the least start to come are kept, and one below for each key.
//!
//! Where everything was forgotten, a read is still judged if a version is there that committed after all that was forgotten:
//! then all newer versions are there too. Overlaps of what is there are real in any case.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::arrival::{KeyNumber, ValueName};

/// A committed transaction with the timestamps of the database.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Stamped {
    /// When it read.
    pub start: i64,
    /// When its writes appeared; not below `start`.
    pub commit: i64,
    /// The caller's name for it.
    pub id: u64,
    /// For each key that it read before it wrote it, the value.
    pub reads: Vec<(KeyNumber, ValueName)>,
    /// For each key that it wrote, the last value.
    pub writes: Vec<(KeyNumber, ValueName)>,
}

/// A transaction that breaks the order of the timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StampViolation {
    /// It read something else than the newest version at its start.
    Read {
        /// The reader.
        id: u64,
        /// The key.
        key: KeyNumber,
        /// The writer of the newest version at its start; `None` for the initial state.
        newest: Option<u64>,
    },
    /// It overlaps another transaction that writes the same key.
    Overlap {
        /// The transaction that arrived later.
        id: u64,
        /// The key.
        key: KeyNumber,
        /// The other one.
        other: u64,
    },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct StampedVersion {
    commit: i64,
    start: i64,
    value: ValueName,
    writer: u64,
}

/// Checks transactions along their timestamps.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct StampedWatcher {
    /// By key, in the order of their commits.
    versions: Vec<Vec<StampedVersion>>,
    initial: Vec<ValueName>,
    initial_of: rustc_hash::FxHashMap<KeyNumber, Vec<ValueName>>,
    /// Whose reads are not final yet: those of the least starts first.
    waiting: BinaryHeap<Reverse<Stamped>>,
    /// Versions below it are needed only for the newest of them.
    watermark: i64,
    /// The latest commit that arrived, and the latest of those that were forgotten.
    latest: i64,
    forgotten: Option<i64>,
}

impl StampedWatcher {
    /// Nothing has arrived; these values mean the initial state of a key.
    pub fn new(initial: Vec<ValueName>) -> Self {
        StampedWatcher {
            initial,
            watermark: i64::MIN,
            latest: i64::MIN,
            ..StampedWatcher::default()
        }
    }

    /// One more value that means the initial state of a key.
    pub fn initial(&mut self, key: KeyNumber, value: ValueName) {
        self.initial_of.entry(key).or_default().push(value);
    }

    /// Discards everything; violations found from here on are real, but some are missed.
    pub fn forget(&mut self) {
        *self = StampedWatcher {
            watermark: self.watermark,
            latest: self.latest,
            forgotten: Some(self.latest),
            ..StampedWatcher::default()
        };
    }

    /// Whether anything was discarded.
    pub fn is_partial(&self) -> bool {
        self.forgotten.is_some()
    }

    /// The caller's names of the transactions that wait for their reads to become final.
    pub fn waiting_ids(&self) -> impl Iterator<Item = u64> + '_ {
        self.waiting.iter().map(|it| it.0.id)
    }

    /// Approximate number of retained bytes.
    pub fn n_bytes(&self) -> usize {
        let of = |it: &Vec<StampedVersion>| {
            size_of_val(it) + it.capacity() * size_of::<StampedVersion>()
        };
        let versions: usize = self.versions.iter().map(of).sum();
        versions + self.waiting.len() * (size_of::<Stamped>() + 256)
    }

    /// How many transactions wait for their reads to become final.
    pub fn n_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Takes a transaction; its start must not be below the watermark.
    pub fn arrive(&mut self, stamped: Stamped) -> Result<(), StampViolation> {
        self.latest = self.latest.max(stamped.commit);
        for &(key, value) in &stamped.writes {
            let at = key as usize;
            if self.versions.len() <= at {
                self.versions.resize(at + 1, Vec::new());
            }
            let versions = &mut self.versions[at];
            // What is below the watermark, except the newest, is no longer read and overlaps nothing that arrives.
            let n_below = versions.partition_point(|it| it.commit < self.watermark);
            versions.drain(..n_below.saturating_sub(1));
            let overlaps =
                |it: &&StampedVersion| it.commit > stamped.start && stamped.commit > it.start;
            if let Some(other) = versions.iter().rev().find(overlaps) {
                return Err(StampViolation::Overlap {
                    id: stamped.id,
                    key,
                    other: other.writer,
                });
            }
            let place = versions.partition_point(|it| it.commit <= stamped.commit);
            let version = StampedVersion {
                commit: stamped.commit,
                start: stamped.start,
                value,
                writer: stamped.id,
            };
            versions.insert(place, version);
        }
        if !stamped.reads.is_empty() {
            self.waiting.push(Reverse(stamped));
        }
        Ok(())
    }

    /// Nothing that arrives later starts before this: judges the reads that are final now.
    pub fn advance(&mut self, watermark: i64) -> Result<(), StampViolation> {
        while let Some(Reverse(first)) = self.waiting.peek()
            && first.start < watermark
        {
            self.judge(first)?;
            self.waiting.pop();
        }
        self.watermark = self.watermark.max(watermark);
        Ok(())
    }

    /// Nothing arrives any more: judges the other reads.
    pub fn close(&mut self) -> Result<(), StampViolation> {
        while let Some(Reverse(first)) = self.waiting.pop() {
            self.judge(&first)?;
        }
        Ok(())
    }

    fn judge(&self, reader: &Stamped) -> Result<(), StampViolation> {
        for &(key, value) in &reader.reads {
            let versions = self
                .versions
                .get(key as usize)
                .map_or(&[][..], Vec::as_slice);
            // Its own version, at a start that equals its commit, is not what it read.
            let mut visible = versions.iter().rev();
            let newest = visible.find(|it| it.commit <= reader.start && it.writer != reader.id);
            let is_covered = |forgotten| newest.is_some_and(|it| it.commit > forgotten);
            if !self.forgotten.is_none_or(is_covered) {
                continue;
            }
            let own = self.initial_of.get(&key);
            let is_initial = || {
                let mut values = self.initial.iter().chain(own.into_iter().flatten());
                values.any(|&it| it == value)
            };
            let holds = newest.map_or_else(is_initial, |it| it.value == value);
            if !holds {
                return Err(StampViolation::Read {
                    id: reader.id,
                    key,
                    newest: newest.map(|it| it.writer),
                });
            }
        }
        Ok(())
    }
}
