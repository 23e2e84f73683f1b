//! Of which rows a snapshot may show another version than the state that an order has reached.
//!
//! A snapshot shows what was stamped before it. Where all that was installed is shown, and nothing else, the versions are the same.
//! So only rows with a version that is installed and stamped late, or stamped early and not installed yet, can differ.

use std::collections::BTreeSet;

use kingsnake_history::model::{KeyId, TxnId};

use crate::adya_reading::{Reading, View};

type Stamps = BTreeSet<(i64, KeyId, u32)>;

pub(crate) struct Window<'a> {
    reading: &'a Reading<'a>,
    times: Option<Sides>,
    xids: Option<Sides>,
}

/// The versions of rows by a stamp of their transactions: those in the state, and the others.
#[derive(Default)]
struct Sides {
    installed: Stamps,
    waiting: Stamps,
}

impl<'a> Window<'a> {
    pub(crate) fn new(reading: &'a Reading<'a>) -> Self {
        let mut window = Window {
            reading,
            times: None,
            xids: None,
        };
        if reading.history().n_predicates() > 0 {
            let sorted = reading.rows().all(|key| reading.is_sorted(key));
            window.times = sorted.then(|| window.sides(false)).flatten();
            window.xids = window.sides(true);
        }
        window
    }

    fn stamp(&self, txn: TxnId, is_xid: bool) -> Option<i64> {
        let stamps = self.reading.history().stamps(txn);
        if is_xid { stamps.xid } else { stamps.commit_ts }
    }

    /// All versions but the initial ones wait; `None` where one has no stamp.
    fn sides(&self, is_xid: bool) -> Option<Sides> {
        let mut waiting = Vec::new();
        for key in self.reading.rows() {
            for (at, version) in self.reading.versions(key).iter().enumerate().skip(1) {
                waiting.push((self.stamp(version.0?, is_xid)?, key, at as u32));
            }
        }
        Some(Sides {
            installed: Stamps::new(),
            waiting: waiting.into_iter().collect(),
        })
    }

    /// A version of a key becomes the state's.
    pub(crate) fn install(&mut self, txn: TxnId, key: KeyId, at: usize) {
        let stamps = [self.stamp(txn, false), self.stamp(txn, true)];
        let both = [&mut self.times, &mut self.xids];
        for (sides, stamp) in both.into_iter().zip(stamps) {
            if let (Some(sides), Some(stamp)) = (sides, stamp) {
                let version = (stamp, key, at as u32);
                if sides.waiting.remove(&version) {
                    sides.installed.insert(version);
                }
            }
        }
    }

    /// The rows that a snapshot may show otherwise; `None` where that can be any row.
    pub(crate) fn keys(&self, view: &View<'_>) -> Option<Vec<KeyId>> {
        let (sides, hidden_from, shown_to) = match view {
            View::At(time) => (self.times.as_ref()?, time.checked_add(1)?, *time),
            View::Postgres(xmin, xmax, _) => (self.xids.as_ref()?, *xmin, xmax.checked_sub(1)?),
            View::Set(_) => return None,
        };
        let late = sides.installed.range((hidden_from, KeyId(0), 0)..);
        let early = (shown_to, KeyId(u32::MAX), u32::MAX);
        let early = sides.waiting.range(..=early);
        let mut keys: Vec<KeyId> = late.chain(early).map(|it| it.1).collect();
        keys.sort_unstable();
        keys.dedup();
        Some(keys)
    }
}
