//! The store: versions by commit, snapshots, and the four promises.
//!
//! - `serializable`: optimistic concurrency control with backward validation (Kung and Robinson 1981). A transaction reads the
//!   snapshot of its begin. One that writes commits only if nothing that it read has been overwritten since, so it could
//!   have run at its commit; one that only reads could have run at its begin. Both lie within the transaction, so the
//!   history is strictly serializable, in the order of these points.
//! - `snapshot`: reads the snapshot of its begin, and commits only if no other transaction has committed a write of a key that it wrote
//!   (first committer wins, Berenson et al. 1995). Lost updates cannot happen; write skews can.
//! - `prefix-consistent`: reads the snapshot of its begin, and commits whatever others wrote meanwhile, so updates can be lost. Only
//!   appends to a list that has grown since do not: what it read of the list after its own append would be no prefix of it.
//! - `read-committed`: reads whatever is committed at that moment, and always commits.
//!
//! A delete leaves a version too, its tombstone. A range query reads every key of its range, also those that have no version
//! yet, so `serializable` validates the range itself: a row that another transaction put there since is a phantom.

use std::collections::BTreeMap;
use std::time::Instant;

use kingsnake_history::model::Status;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Key;
use super::bug::{Bug, Bugs};
use super::isolation::{AskedIsolation, Isolation};
use super::record::{Record, StoreEvent, StoredRow};
use super::schema::{Cells, Where};

/// A committed write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Version {
    /// The number of the commit that installed it.
    commit: u64,
    pub(super) value: i64,
    pub(super) beside: i64,
    pub(super) is_tombstone: bool,
}

impl Version {
    /// A row that is there before the first commit.
    pub(super) fn initial(value: i64, beside: i64) -> Self {
        Version {
            commit: 0,
            value,
            beside,
            is_tombstone: false,
        }
    }

    fn row(&self) -> StoredRow {
        if self.is_tombstone {
            StoredRow::Deleted(self.value)
        } else {
            StoredRow::Value(self.value)
        }
    }

    /// The value and the number beside it; of a deleted row as of one that never was.
    fn read(&self) -> (i64, i64) {
        if self.is_tombstone {
            (INITIAL, 0)
        } else {
            (self.value, self.beside)
        }
    }
}

/// The versions of a key, oldest first, and the last value assigned for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Versions {
    pub(super) installed: Vec<Version>,
    last_value: i64,
}

impl Versions {
    pub(super) fn at(&self, snapshot: u64) -> Option<&Version> {
        let mut newest_first = self.installed.iter().rev();
        newest_first.find(|version| version.commit <= snapshot)
    }

    /// The versions that were installed after a snapshot.
    pub(super) fn newer(&self, snapshot: u64) -> &[Version] {
        let newest_first = self.installed.iter().rev();
        let n_newer = newest_first.take_while(|version| version.commit > snapshot);
        &self.installed[self.installed.len() - n_newer.count()..]
    }

    /// How often transactions wrote it; a delete is none.
    pub(super) fn n_writes(&self) -> usize {
        let is_write = |it: &&Version| it.commit > 0 && !it.is_tombstone;
        self.installed.iter().filter(is_write).count()
    }

    fn has_newer(&self, snapshot: u64) -> bool {
        let newest = self.installed.last();
        newest.is_some_and(|version| version.commit > snapshot)
    }
}

/// What a write does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Set,
    Append,
    Delete,
}

/// A write that is not committed. The value of a delete is its tombstone.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingCommit {
    pub(super) key: Key,
    pub(super) value: i64,
    pub(super) beside: i64,
    pub(super) sort: Sort,
}

impl PendingCommit {
    fn row(&self) -> StoredRow {
        match self.sort {
            Sort::Delete => StoredRow::Deleted(self.value),
            Sort::Set | Sort::Append => StoredRow::Value(self.value),
        }
    }

    fn read(&self) -> (i64, i64) {
        match self.sort {
            Sort::Delete => (INITIAL, 0),
            Sort::Set | Sort::Append => (self.value, self.beside),
        }
    }
}

/// A transaction that has begun.
#[derive(Clone, Debug)]
pub(super) struct Open {
    /// What it asked for, and was promised.
    asked: AskedIsolation,
    snapshot: u64,
    begin: i64,
    /// Keys of which it read what others wrote.
    pub(super) read: Vec<Key>,
    /// Ranges of keys that it asked for, both ends included.
    ranges: Vec<(Key, Key)>,
    /// Conditions by which it chose rows.
    pub(super) conditions: Vec<Where>,
    pub(super) pending: Vec<PendingCommit>,
    pub(super) events: Vec<StoreEvent>,
    /// The keys that it asked for, and those that stand in their place now.
    pub(super) placed: Vec<(Key, Key)>,
    /// The epoch of the rows that it asks for, once it asked.
    pub(super) epoch: Option<i64>,
}

impl Open {
    pub(super) fn snapshot(&self) -> u64 {
        self.snapshot
    }

    pub(super) fn own(&self, key: Key) -> impl DoubleEndedIterator<Item = &PendingCommit> {
        self.pending.iter().filter(move |write| write.key == key)
    }
}

/// Where times come from: the scheduler's steps, or the machine's clock.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    Steps,
    Machine(Instant),
}

/// The store.
#[derive(Debug)]
pub(super) struct Store {
    isolation: Isolation,
    pub(super) keys: BTreeMap<Key, Versions>,
    n_commits: u64,
    clock: Clock,
    now: i64,
    pub(super) records: Vec<Record>,
    pub(super) n_aborted: usize,
    /// Whether aborted transactions are recorded too.
    keep_aborted: bool,
    /// Whether conditions are validated, so that no phantom comes through.
    pub(super) predicate_locks: bool,
    /// How many transactions clients may still begin.
    pub(super) left: usize,
    bugs: Bugs,
    /// Writes that were acknowledged and are not visible yet, and the commit after which they will be.
    late: Vec<(u64, PendingCommit)>,
    /// After how many writes a key is replaced.
    pub(super) max_writes: Option<u64>,
    /// How often each key was written since it was replaced, and the key that stands in its place.
    pub(super) written: BTreeMap<Key, (u64, i64)>,
    /// How many keys below zero stand in the place of others.
    pub(super) n_beyond: i64,
    /// How often each key was written by what committed, where that matters.
    pub(super) n_committed: FxHashMap<Key, u64>,
    /// How often all rows were replaced, where they are asked for by ranges of keys.
    pub(super) epoch: i64,
    /// The rows of tables; the number beside a version is its place here. The first is of what is not there.
    pub(super) rows: Vec<Cells>,
    /// The keys of rows that clients met.
    pub(super) met: FxHashSet<Key>,
}

/// A step of the scheduler takes a microsecond.
const STEP: i64 = 1_000;

impl Store {
    pub(super) fn new(isolation: Isolation, clock: Clock, keep_aborted: bool, bugs: Bugs) -> Self {
        Store {
            isolation,
            keys: BTreeMap::new(),
            n_commits: 0,
            clock,
            now: 0,
            records: Vec::new(),
            n_aborted: 0,
            keep_aborted,
            predicate_locks: true,
            left: 0,
            bugs,
            late: Vec::new(),
            max_writes: None,
            written: BTreeMap::new(),
            n_beyond: 0,
            n_committed: FxHashMap::default(),
            epoch: 0,
            rows: vec![[0; 6]],
            met: FxHashSet::default(),
        }
    }

    /// The time of an event: later than that of every event before it.
    pub(super) fn tick(&mut self) -> i64 {
        let later = match self.clock {
            Clock::Steps => self.now + STEP,
            Clock::Machine(start) => i64::try_from(start.elapsed().as_nanos()).unwrap_or(i64::MAX),
        };
        self.now = later.max(self.now + 1);
        self.now
    }

    pub(super) fn begin(&mut self) -> Open {
        self.begin_at(self.isolation.into())
    }

    /// Begins a transaction that is promised this.
    pub(super) fn begin_at(&mut self, asked: AskedIsolation) -> Open {
        let mut snapshot = self.n_commits;
        if self.bugs.strikes(Bug::StaleSnapshot) {
            snapshot = snapshot.saturating_sub(self.bugs.lag());
        }
        Open {
            asked,
            snapshot,
            begin: self.tick(),
            read: Vec::new(),
            ranges: Vec::new(),
            conditions: Vec::new(),
            pending: Vec::new(),
            events: Vec::new(),
            placed: Vec::new(),
            epoch: None,
        }
    }

    /// What a transaction may see of others now.
    pub(super) fn visible(&self, open: &Open) -> u64 {
        match open.asked.isolation {
            Isolation::Serializable | Isolation::Snapshot | Isolation::PrefixConsistent => {
                open.snapshot
            }
            Isolation::ReadCommitted => self.n_commits,
        }
    }

    /// Reads a register; returns the number beside the value.
    pub(super) fn read(&mut self, open: &mut Open, key: Key) -> i64 {
        self.tick();
        let own = self.own_write(open, key);
        let (mut value, beside) = own.unwrap_or_else(|| {
            open.read.push(key);
            let visible = self.visible_to_read(open);
            let versions = self.keys.get(&key);
            let seen = versions.and_then(|versions| versions.at(visible));
            seen.map_or((INITIAL, 0), Version::read)
        });
        if self.bugs.strikes(Bug::InventedValue) {
            value = -1 - self.now;
        }
        open.events.push(StoreEvent::Read(key, value));
        beside
    }

    /// What a transaction sees of its own writes of a register.
    fn own_write(&mut self, open: &Open, key: Key) -> Option<(i64, i64)> {
        let mut own = open.own(key).map(PendingCommit::read);
        let (first, last) = (own.next()?, own.next_back());
        if self.bugs.strikes(Bug::InvisibleOwnWrites) {
            return None;
        }
        match last {
            Some(last) if !self.bugs.strikes(Bug::StaleOwnWrites) => Some(last),
            _ => Some(first),
        }
    }

    /// What one read may see of others.
    fn visible_to_read(&mut self, open: &Open) -> u64 {
        let visible = self.visible(open);
        if self.bugs.strikes(Bug::ReplicaLag) {
            return visible.saturating_sub(self.bugs.lag());
        }
        visible
    }

    /// Reads a list.
    pub(super) fn read_list(&mut self, open: &mut Open, key: Key) {
        self.tick();
        open.read.push(key);
        let visible = self.visible_to_read(open);
        let mut list = self.list(key, visible);
        if !self.bugs.strikes(Bug::InvisibleOwnWrites) {
            list.extend(open.own(key).map(|write| write.value));
        }
        open.events.push(StoreEvent::ReadList(key, list));
    }

    fn list(&self, key: Key, snapshot: u64) -> Vec<i64> {
        let installed = self.keys.get(&key).map_or(&[][..], |it| &it.installed);
        let seen = installed.iter().take_while(|it| it.commit <= snapshot);
        seen.map(|version| version.value).collect()
    }

    /// A value that no write of the key has.
    pub(super) fn fresh(&mut self, key: Key) -> i64 {
        let versions = self.keys.entry(key).or_default();
        versions.last_value += 1;
        versions.last_value
    }

    /// Sets a register or a row; others see it after the commit.
    pub(super) fn write(&mut self, open: &mut Open, key: Key, beside: i64) {
        let value = self.change(open, key, beside, Sort::Set);
        open.events.push(StoreEvent::Write(key, value));
    }

    /// Appends to a list; others see it after the commit.
    pub(super) fn append(&mut self, open: &mut Open, key: Key) {
        let value = self.change(open, key, 0, Sort::Append);
        open.events.push(StoreEvent::Append(key, value));
    }

    /// Inserts a row, or replaces the one that is there; others see it after the commit.
    pub(super) fn insert(&mut self, open: &mut Open, key: Key) {
        let value = self.change(open, key, 0, Sort::Set);
        open.events.push(StoreEvent::Insert(key, value));
    }

    /// Deletes a row, if there is one; others see the tombstone after the commit.
    pub(super) fn delete(&mut self, open: &mut Open, key: Key) {
        let tombstone = self.change(open, key, 0, Sort::Delete);
        open.events.push(StoreEvent::Delete(key, tombstone));
    }

    pub(super) fn change(&mut self, open: &mut Open, key: Key, beside: i64, sort: Sort) -> i64 {
        self.tick();
        let value = self.fresh(key);
        open.pending.push(PendingCommit {
            key,
            value,
            beside,
            sort,
        });
        value
    }

    /// Reads a row.
    pub(super) fn read_row(&mut self, open: &mut Open, key: Key) {
        self.tick();
        let own = open.own(key).next_back().map(PendingCommit::row);
        let row = own.unwrap_or_else(|| {
            open.read.push(key);
            self.row(key, self.visible(open))
        });
        open.events.push(StoreEvent::ReadRow(key, row));
    }

    /// Reads every row of a range, both ends included, with the tombstones of those that were deleted.
    pub(super) fn range(&mut self, open: &mut Open, low: Key, high: Key) {
        self.tick();
        open.ranges.push((low, high));
        let visible = self.visible(open);
        let mut rows: BTreeMap<Key, StoredRow> = BTreeMap::new();
        for (&key, versions) in self.keys.range(low..=high) {
            rows.extend(versions.at(visible).map(|version| (key, version.row())));
        }
        let own = open.pending.iter();
        let own = own.filter(|write| (low..=high).contains(&write.key));
        rows.extend(own.map(|write| (write.key, write.row())));
        let rows = rows.into_iter().collect();
        open.events.push(StoreEvent::Range(low, high, rows));
    }

    fn row(&self, key: Key, snapshot: u64) -> StoredRow {
        let versions = self.keys.get(&key);
        let seen = versions.and_then(|versions| versions.at(snapshot));
        seen.map_or(StoredRow::Nothing, Version::row)
    }

    /// Commits, if the promise can be kept; aborts otherwise. Returns whether it committed.
    pub(super) fn commit(&mut self, client: usize, open: Open) -> bool {
        if self.must_abort(&open) && !self.forgets_to_abort(&open) {
            self.abort(client, open);
            return false;
        }
        self.wear(&open);
        let visible = self.what_is_installed(&open);
        self.install(&visible);
        self.record(client, open, Status::Committed);
        self.install_late();
        true
    }

    /// Whether a bug lets a commit pass that should not.
    fn forgets_to_abort(&mut self, open: &Open) -> bool {
        let overwrites = open.pending.iter().any(|write| {
            let versions = self.keys.get(&write.key);
            versions.is_some_and(|versions| versions.has_newer(open.snapshot))
        });
        self.bugs.strikes(Bug::NoWriteCheck)
            || !overwrites && self.bugs.strikes(Bug::SkippedValidation)
    }

    /// The writes of a commit that become visible with it; bugs lose or delay some.
    fn what_is_installed(&mut self, open: &Open) -> Vec<PendingCommit> {
        let mut visible = open.pending.clone();
        if visible.is_empty() {
            return visible;
        }
        if self.bugs.strikes(Bug::FirstWriteWins) {
            let mut kept: Vec<PendingCommit> = Vec::new();
            for write in &visible {
                let again = kept.iter().any(|it| it.key == write.key);
                if !again || write.sort == Sort::Append {
                    kept.push(*write);
                }
            }
            visible = kept;
        }
        if self.bugs.strikes(Bug::LostWrite) {
            visible.pop();
        }
        let after = self.n_commits + 8;
        if self.bugs.strikes(Bug::LateEffect) {
            self.late
                .extend(visible.drain(..).map(|write| (after, write)));
        } else if visible.len() > 1 && self.bugs.strikes(Bug::TornCommit) {
            let rest = visible.split_off(1);
            self.late
                .extend(rest.into_iter().map(|write| (after, write)));
        }
        visible
    }

    /// Makes visible what was delayed until now.
    fn install_late(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let n_commits = self.n_commits;
        let (due, later): (Vec<_>, Vec<_>) = self
            .late
            .drain(..)
            .partition(|(after, _)| *after <= n_commits);
        self.late = later;
        if !due.is_empty() {
            let due: Vec<PendingCommit> = due.into_iter().map(|(_, write)| write).collect();
            self.install(&due);
        }
    }

    /// Makes visible all that was delayed.
    pub(super) fn settle(&mut self) {
        let rest: Vec<PendingCommit> = self.late.drain(..).map(|(_, write)| write).collect();
        if !rest.is_empty() {
            self.install(&rest);
        }
    }

    fn must_abort(&self, open: &Open) -> bool {
        let newer = |key: &Key| {
            let versions = self.keys.get(key);
            versions.is_some_and(|versions| versions.has_newer(open.snapshot))
        };
        let changed = |&(low, high): &(Key, Key)| {
            let mut versions = self.keys.range(low..=high);
            versions.any(|(_, versions)| versions.has_newer(open.snapshot))
        };
        match open.asked.isolation {
            Isolation::Serializable => {
                let is_stale = || {
                    open.read.iter().any(newer)
                        || open.ranges.iter().any(changed)
                        || (self.predicate_locks && self.has_phantom(open))
                };
                !open.pending.is_empty() && is_stale()
            }
            Isolation::Snapshot => open.pending.iter().any(|write| newer(&write.key)),
            Isolation::PrefixConsistent => {
                let mut appends = open.pending.iter().filter(|it| it.sort == Sort::Append);
                appends.any(|write| newer(&write.key))
            }
            Isolation::ReadCommitted => false,
        }
    }

    /// Makes writes visible, as one commit. Of several writes of a register or a row the last counts.
    pub(super) fn install(&mut self, pending: &[PendingCommit]) {
        self.n_commits += 1;
        for write in pending {
            let version = Version {
                commit: self.n_commits,
                value: write.value,
                beside: write.beside,
                is_tombstone: write.sort == Sort::Delete,
            };
            let installed = &mut self.keys.entry(write.key).or_default().installed;
            match installed.last_mut() {
                Some(last) if last.commit == self.n_commits && write.sort != Sort::Append => {
                    *last = version;
                }
                _ => installed.push(version),
            }
        }
    }

    pub(super) fn abort(&mut self, client: usize, open: Open) {
        self.n_aborted += 1;
        let leaks = !open.pending.is_empty() && self.bugs.strikes(Bug::LeakingAborts);
        if leaks {
            self.install(&open.pending);
        }
        if self.keep_aborted || leaks {
            self.record(client, open, Status::Aborted);
        }
    }

    /// Writes down a transaction that ends now.
    pub(super) fn record(&mut self, client: usize, open: Open, status: Status) {
        let end = self.tick();
        self.records.push(Record {
            client,
            asked: open.asked,
            status,
            begin: open.begin,
            end,
            snapshot: open.snapshot,
            commit: self.n_commits,
            events: open.events,
        });
    }

    /// The newest committed value of a register, and the number beside it.
    pub(super) fn newest(&self, key: Key) -> (i64, i64) {
        let versions = self.keys.get(&key);
        let newest = versions.and_then(|versions| versions.installed.last());
        newest.map_or((INITIAL, 0), Version::read)
    }

    /// What is committed of a row.
    pub(super) fn newest_row(&self, key: Key) -> StoredRow {
        self.row(key, self.n_commits)
    }

    /// The committed elements of a list.
    pub(super) fn newest_list(&self, key: Key) -> Vec<i64> {
        self.list(key, self.n_commits)
    }

    /// The keys with writes or attempted writes.
    pub(super) fn known_keys(&self) -> Vec<Key> {
        self.keys.keys().copied().collect()
    }

    /// Every key's values and tombstones in the order in which they were installed.
    pub(super) fn version_orders(&self) -> Vec<(Key, Vec<StoredRow>)> {
        let orders = self.keys.iter().map(|(&key, versions)| {
            let later = versions.installed.iter().filter(|it| it.commit > 0);
            let rows = later.map(Version::row);
            (key, rows.collect())
        });
        orders
            .filter(|(_, rows): &(Key, Vec<StoredRow>)| !rows.is_empty())
            .collect()
    }
}

/// The value of every register before any write.
pub(super) const INITIAL: i64 = 0;
