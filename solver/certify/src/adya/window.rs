//! Of which rows a snapshot may show another version than the state that an order has reached.
//!
//! A snapshot shows what was stamped before it. Where all that was installed is shown, and nothing else, the versions are the same.
//! So only rows with a version that is installed and stamped late, or stamped early and not installed yet, can differ.

use kingsnake_history::model::{KeyId, Snapshot, TxnId};

use super::reading::{Reading, View};

pub(crate) struct Window {
    times: Option<Sides>,
    xids: Option<Sides>,
    /// If there are this many versions between a snapshot and the state, any row may differ.
    limit: usize,
}

/// The versions of rows, sorted by a stamp of their transactions.
struct Sides {
    stamps: Vec<i64>,
    keys: Vec<KeyId>,
    is_installed: Vec<bool>,
    /// All before this number are in the state.
    waiting_from: usize,
    /// None from this number on is in the state.
    installed_to: usize,
    /// The number of each key's versions, by their place.
    numbers: Vec<Vec<u32>>,
}

impl Window {
    pub(crate) fn new(reading: &Reading<'_>) -> Self {
        let history = reading.history();
        let (mut needs_times, mut needs_xids) = (false, false);
        for (_, predicate) in history.all_predicates() {
            match predicate.snapshot {
                None | Some(Snapshot::At(_)) => needs_times = true,
                Some(Snapshot::Postgres { .. }) => needs_xids = true,
                Some(Snapshot::Set(_)) => {}
            }
        }
        needs_times = needs_times && reading.rows().all(|key| reading.is_sorted(key));
        let commit_ts = |txn| history.stamps(txn).commit_ts;
        let xid = |txn| history.stamps(txn).xid;
        Window {
            times: needs_times
                .then(|| Sides::new(reading, commit_ts))
                .flatten(),
            xids: needs_xids.then(|| Sides::new(reading, xid)).flatten(),
            limit: 256 + reading.rows().count(),
        }
    }

    /// A version of a key becomes the state's.
    pub(crate) fn install(&mut self, key: KeyId, at: usize) {
        for sides in [&mut self.times, &mut self.xids].into_iter().flatten() {
            sides.install(key, at);
        }
    }

    /// Adds the rows that a snapshot may show otherwise; false where that can be any row.
    pub(crate) fn keys(&self, view: &View<'_>, keys: &mut Vec<KeyId>) -> bool {
        let (sides, hidden_from, shown_to) = match view {
            View::At(time, _) => (&self.times, time.checked_add(1), Some(*time)),
            View::Postgres(xmin, xmax, ..) => (&self.xids, Some(*xmin), xmax.checked_sub(1)),
            View::Set(_) => return false,
        };
        let (Some(sides), Some(hidden_from), Some(shown_to)) = (sides, hidden_from, shown_to)
        else {
            return false;
        };
        sides.keys(hidden_from, shown_to, self.limit, keys)
    }
}

impl Sides {
    /// All versions but the initial ones wait; `None` where one has no stamp.
    fn new(reading: &Reading<'_>, stamp: impl Fn(TxnId) -> Option<i64>) -> Option<Self> {
        let mut all = Vec::new();
        let mut numbers = vec![Vec::new(); reading.history().n_keys()];
        for key in reading.rows() {
            let versions = reading.versions(key);
            numbers[key.index()] = vec![0; versions.len()];
            for (at, version) in versions.iter().enumerate().skip(1) {
                all.push((stamp(version.0?)?, key, at));
            }
        }
        all.sort_unstable();
        for (number, &(_, key, at)) in all.iter().enumerate() {
            numbers[key.index()][at] = number as u32;
        }
        Some(Sides {
            stamps: all.iter().map(|it| it.0).collect(),
            keys: all.iter().map(|it| it.1).collect(),
            is_installed: vec![false; all.len()],
            waiting_from: 0,
            installed_to: 0,
            numbers,
        })
    }

    fn install(&mut self, key: KeyId, at: usize) {
        let Some(&number) = self.numbers[key.index()].get(at) else {
            return;
        };
        self.is_installed[number as usize] = true;
        self.installed_to = self.installed_to.max(number as usize + 1);
        while self.is_installed.get(self.waiting_from) == Some(&true) {
            self.waiting_from += 1;
        }
    }

    fn keys(&self, hidden_from: i64, shown_to: i64, limit: usize, keys: &mut Vec<KeyId>) -> bool {
        let hidden = self.stamps[..self.installed_to].partition_point(|&it| it < hidden_from);
        let shown = self.stamps[self.waiting_from..].partition_point(|&it| it <= shown_to);
        if self.installed_to - hidden + shown > limit {
            return false;
        }
        let late = (hidden..self.installed_to).filter(|&it| self.is_installed[it]);
        let early = self.waiting_from..self.waiting_from + shown;
        let early = early.filter(|&it| !self.is_installed[it]);
        keys.extend(late.chain(early).map(|it| self.keys[it]));
        true
    }
}
