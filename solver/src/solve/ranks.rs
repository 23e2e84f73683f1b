//! The likely positions of transactions in an order: a hint, by which the nearest candidates of reads are tried first.

use crate::model::History;
use crate::relate::Polygraph;
use crate::resolve::{Node, Resolved};

/// The likely positions: by commit times, if recorded, otherwise by places in the sessions.
pub(crate) struct Ranks {
    ranks: Vec<u64>,
    /// Whether they were recorded.
    are_recorded: bool,
}

impl Ranks {
    pub(crate) fn new(history: &History, base: &Resolved) -> Self {
        let txns = || (0..base.n_txns() as Node).map(|it| base.txn(it));
        let stamps = txns().map(|it| history.stamps(it).commit_ts);
        let stamped: Option<Vec<i64>> = stamps.collect();
        let (likely, are_recorded) = match stamped {
            Some(stamps) => (stamps, true),
            None if history.has_times() => {
                let times = txns().map(|it| history.interval(it).commit);
                (times.collect(), true)
            }
            None => {
                let places = base.sessions().iter().flat_map(|it| 0..it.len() as i64);
                (places.collect(), false)
            }
        };
        let least = likely.iter().copied().min().unwrap_or(0);
        let rank = |it: i64| it.abs_diff(least).saturating_add(1);
        Ranks {
            ranks: likely.into_iter().map(rank).collect(),
            are_recorded,
        }
    }

    /// Whether they were recorded.
    pub(super) fn are_recorded(&self) -> bool {
        self.are_recorded
    }

    /// Where a node is likely to come; a helper comes as soon as it can.
    pub(super) fn of(&self, polygraph: &Polygraph, node: u32) -> u64 {
        let txn = polygraph.transaction(node);
        txn.map_or(0, |it| self.ranks[it as usize])
    }
}
