//! The version of a row that a predicate was evaluated on.

use kingsnake_history::model::{History, KeyId, Op, Predicate, Snapshot, TxnId, ValueId};

use crate::error::AdyaError;
use crate::versions::{NOBODY, Versions};

/// The stamps of every version, as far as some snapshot needs them.
pub(crate) struct Snapshots<'a> {
    history: &'a History,
    versions: &'a Versions,
    /// `commit_ts` of every version; empty where no snapshot is a time.
    times: Vec<i64>,
    /// Whether the times of each key's versions grow.
    is_sorted: Vec<bool>,
    /// `xid` of every version, and the least from it to the key's last; empty where no snapshot is of numbers.
    xids: Vec<i64>,
    least_after: Vec<i64>,
}

/// A snapshot that can be asked, with its transaction: what its transaction commits itself is not in it.
pub(crate) struct View<'a> {
    pub(crate) reader: TxnId,
    pub(crate) shown: Shown<'a>,
}

/// The content of a snapshot.
pub(crate) enum Shown<'a> {
    At(i64),
    Postgres(i64, i64, &'a [i64]),
    /// Places by key, sorted.
    Set(Vec<(KeyId, u32)>),
}

impl<'a> Snapshots<'a> {
    pub(crate) fn new(history: &'a History, versions: &'a Versions) -> Result<Self, AdyaError> {
        let all = history.all_predicates().iter().map(|it| &it.1.snapshot);
        let (mut needs_times, mut needs_xids) = (false, false);
        for snapshot in all {
            match snapshot {
                None | Some(Snapshot::At(_)) => needs_times = true,
                Some(Snapshot::Postgres { .. }) => needs_xids = true,
                Some(Snapshot::Set(_)) => {}
            }
        }
        let mut snapshots = Snapshots {
            history,
            versions,
            times: Vec::new(),
            is_sorted: Vec::new(),
            xids: Vec::new(),
            least_after: Vec::new(),
        };
        if needs_times {
            snapshots.times = snapshots.stamps("commit_ts", "the snapshot of a predicate")?;
            let keys = (0..versions.n_keys() as u32).map(KeyId);
            let sorted = keys.map(|key| snapshots.times[versions.of_key(key)].is_sorted());
            snapshots.is_sorted = sorted.collect();
        }
        if needs_xids {
            snapshots.xids = snapshots.stamps("xid", "the snapshot of a predicate")?;
            snapshots.least_after = snapshots.xids.clone();
            for key in (0..versions.n_keys() as u32).map(KeyId) {
                let range = versions.of_key(key);
                for place in range.clone().rev().skip(1) {
                    let least = snapshots.least_after[place + 1];
                    let own = &mut snapshots.least_after[place];
                    *own = least.min(*own);
                }
            }
        }
        Ok(snapshots)
    }

    fn stamps(&self, field: &'static str, needed_by: &'static str) -> Result<Vec<i64>, AdyaError> {
        let all = self.versions.all().iter();
        let stamps = all.map(|version| {
            if version.writer == NOBODY {
                return Ok(i64::MIN);
            }
            let txn = TxnId(version.writer);
            let stamps = self.history.stamps(txn);
            let stamp = if field == "xid" {
                stamps.xid
            } else {
                stamps.commit_ts
            };
            stamp.ok_or_else(|| AdyaError::NoStamp {
                txn: self.history.txn_name(txn),
                field,
                needed_by,
            })
        });
        stamps.collect()
    }

    /// The snapshot of a predicate; where it has none, that of its transaction's start.
    pub(crate) fn view(&self, txn: TxnId, predicate: &'a Predicate) -> Result<View<'a>, AdyaError> {
        let shown = match &predicate.snapshot {
            Some(Snapshot::At(time)) => Shown::At(*time),
            None => {
                let time = self.history.stamps(txn).start_ts;
                Shown::At(time.ok_or_else(|| AdyaError::NoSnapshot {
                    txn: self.history.txn_name(txn),
                })?)
            }
            Some(Snapshot::Postgres {
                xmin,
                xmax,
                running,
            }) => Shown::Postgres(*xmin, *xmax, running),
            Some(Snapshot::Set(values)) => {
                let mut places = Vec::with_capacity(values.len());
                for &value in values {
                    let key = self.history.value_key(value);
                    places.push((key, self.place_in_set(txn, key, value)?));
                }
                places.sort_unstable();
                Shown::Set(places)
            }
        };
        Ok(View { reader: txn, shown })
    }

    fn place_in_set(&self, txn: TxnId, key: KeyId, value: ValueId) -> Result<u32, AdyaError> {
        let start = self.versions.of_key(key).start;
        let place = match self.versions.writer(value) {
            None if self.history.is_initial(value) => Some(start),
            _ => self.versions.place(value),
        };
        let place = place.ok_or_else(|| {
            AdyaError::Order(format!(
                "a snapshot of transaction {} names value {} of key {}, which is not a committed version",
                self.history.txn_name(txn),
                self.history.value_name(value),
                self.history.key_name(key)
            ))
        })?;
        Ok(place as u32)
    }

    /// The place of the version that a snapshot shows of a key.
    #[inline]
    pub(crate) fn place(&self, view: &View<'_>, key: KeyId) -> usize {
        let range = self.versions.of_key(key);
        let is_own =
            |at: usize| at > 0 && self.versions.at(range.start + at).writer == view.reader.0;
        match &view.shown {
            Shown::At(time) => {
                let times = &self.times[range.clone()];
                if self.is_sorted[key.index()] {
                    let at = times.partition_point(|it| it <= time).max(1) - 1;
                    return range.start + at - usize::from(is_own(at));
                }
                let seen = (1..times.len()).filter(|&at| times[at] <= *time && !is_own(at));
                range.start + seen.max_by_key(|&at| times[at]).unwrap_or(0)
            }
            Shown::Postgres(xmin, xmax, running) => {
                let least = &self.least_after[range.clone()];
                let mut at = least.partition_point(|xid| xid < xmax).max(1) - 1;
                let is_seen =
                    |xid: i64| xid < *xmin || (xid < *xmax && running.binary_search(&xid).is_err());
                while at > 0 && (is_own(at) || !is_seen(self.xids[range.start + at])) {
                    at -= 1;
                }
                range.start + at
            }
            Shown::Set(places) => match places.binary_search_by_key(&key, |it| it.0) {
                Ok(at) => places[at].1 as usize,
                Err(_) => range.start,
            },
        }
    }
}

/// What a transaction wrote before one of its predicates, the last write of each key, sorted by key.
pub(crate) fn own_writes(
    history: &History,
    txn: TxnId,
    before: usize,
    own: &mut Vec<(KeyId, ValueId)>,
) {
    own.clear();
    for op in &history.ops(txn)[..before] {
        if let Op::Write { key, value } = *op {
            match own.iter_mut().find(|it| it.0 == key) {
                Some(it) => it.1 = value,
                None => own.push((key, value)),
            }
        }
    }
    own.sort_unstable();
}
