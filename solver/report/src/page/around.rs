//! Chooses what the timeline shows: the transactions of the story, and concurrent ones.

use std::collections::{BTreeMap, BTreeSet};

use kingsnake_solver::model::{History, Interval, KeyId, SessionId, TxnId};

/// More transactions would hide the story.
const MOST: usize = 160;
/// Neighbours in its session that a transaction keeps if there are no times.
const NEIGHBOURS: u32 = 4;

/// Transactions on a time axis.
pub struct Around {
    /// The transactions of the story.
    pub story: BTreeSet<TxnId>,
    /// The transactions that the axis is fitted to: the cycle, without the writers of what it read.
    pub core: BTreeSet<TxnId>,
    /// Everything that is shown, by session.
    pub txns: Vec<TxnId>,
    /// Number of transactions in the span, shown or not.
    pub n_within: usize,
    /// Whether positions are times; otherwise they count the transactions of a session.
    pub has_times: bool,
    /// The time shown as 0.
    pub origin: i64,
    /// Start and end of the axis.
    pub span: (f64, f64),
}

impl Around {
    /// Chooses; `None` if the story has no transactions. The axis is fitted to `core`, or to the story if that is empty.
    pub fn new(
        history: &History,
        story: &[TxnId],
        keys: &[KeyId],
        core: impl IntoIterator<Item = TxnId>,
    ) -> Option<Self> {
        let story: BTreeSet<TxnId> = story.iter().copied().collect();
        story.first()?;
        let core = core.into_iter().filter(|txn| story.contains(txn));
        let mut core: BTreeSet<TxnId> = core.collect();
        if core.is_empty() {
            core.clone_from(&story);
        }
        let has_times = story.iter().any(|&txn| is_known(history.interval(txn)));
        Some(if has_times {
            Self::by_time(history, story, core, keys)
        } else {
            Self::by_place(history, story, core)
        })
    }

    fn by_time(
        history: &History,
        story: BTreeSet<TxnId>,
        core: BTreeSet<TxnId>,
        keys: &[KeyId],
    ) -> Self {
        let (first, last) = ends(history, story.iter().copied());
        let margin = ((last - first) / 4).max(1);
        let (first, last) = (first - margin, last + margin);
        let is_within = |txn: &TxnId| {
            let Interval { begin, commit } = reach(history, *txn);
            let is_known = begin != i64::MIN || commit != i64::MAX;
            is_known && i128::from(begin) <= last && i128::from(commit) >= first
        };
        let within: Vec<TxnId> = history.txns().filter(is_within).collect();
        let mut others: Vec<(bool, i128, TxnId)> = within
            .iter()
            .filter(|txn| !story.contains(txn))
            .map(|&txn| {
                let ops = history.ops(txn).iter();
                let is_near = ops
                    .clone()
                    .any(|&op| keys.iter().any(|&key| history.touches(op, key)));
                (!is_near, away(history, &story, txn), txn)
            })
            .collect();
        others.sort_unstable();
        let mut txns: Vec<TxnId> = others.into_iter().map(|it| it.2).collect();
        txns.truncate(MOST.saturating_sub(story.len()));
        txns.extend(&story);
        txns.sort_unstable();
        let (from, to) = ends(history, txns.iter().copied());
        let origin = ends(history, core.iter().copied()).0 as i64;
        let place = |time: i128| (time - i128::from(origin)) as f64;
        Around {
            n_within: within.len().max(txns.len()),
            story,
            core,
            txns,
            has_times: true,
            origin,
            span: (
                place(from.max(first)),
                place(to.min(last)).max(place(from) + 1.0),
            ),
        }
    }

    fn by_place(history: &History, story: BTreeSet<TxnId>, core: BTreeSet<TxnId>) -> Self {
        let mut txns: BTreeSet<TxnId> = BTreeSet::new();
        for &txn in &story {
            let session = history.session_txns(history.session(txn));
            let from = txn.0.saturating_sub(NEIGHBOURS).max(session.start);
            let to = (txn.0 + NEIGHBOURS + 1).min(session.end);
            if txns.len() < MOST {
                txns.extend((from..to).map(TxnId));
            }
            txns.insert(txn);
        }
        let places = || txns.iter().map(|&txn| place(history, txn));
        let first = places().fold(f64::INFINITY, f64::min);
        let last = places().fold(0.0, f64::max);
        Around {
            n_within: txns.len(),
            txns: txns.into_iter().collect(),
            story,
            core,
            has_times: false,
            origin: 0,
            span: (first - 0.2, last + 1.0),
        }
    }

    /// Where a transaction begins and ends on the axis; `None` if not recorded.
    pub fn places(&self, history: &History, txn: TxnId) -> (Option<f64>, Option<f64>) {
        if !self.has_times {
            let at = place(history, txn);
            return (Some(at), Some(at + 0.8));
        }
        let Interval { begin, commit } = reach(history, txn);
        let since = |time: i64| (i128::from(time) - i128::from(self.origin)) as f64;
        (
            (begin != i64::MIN).then(|| since(begin)),
            (commit != i64::MAX).then(|| since(commit)),
        )
    }

    /// The sessions in order of their names, each with its transactions.
    pub fn lanes(&self, history: &History) -> Lanes {
        let mut lanes: BTreeMap<SessionId, Vec<TxnId>> = BTreeMap::new();
        for &txn in &self.txns {
            lanes.entry(history.session(txn)).or_default().push(txn);
        }
        let mut lanes: Lanes = lanes.into_iter().collect();
        lanes.sort_by_cached_key(|(session, _)| by_number(&history.session_name(*session)));
        lanes
    }

    /// The part of the axis that contains the core, with some margin.
    pub fn window(&self, history: &History) -> (f64, f64) {
        let places = self.core.iter().map(|&txn| self.places(history, txn));
        let all: Vec<f64> = places.flat_map(|(from, to)| [from, to]).flatten().collect();
        if all.is_empty() {
            return self.span;
        }
        let from = all.iter().copied().fold(f64::INFINITY, f64::min);
        let to = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let room = ((to - from) * 0.06).max(1e-3);
        (from - room, to + room)
    }
}

/// Sessions with their transactions, from the top down.
pub type Lanes = Vec<(SessionId, Vec<TxnId>)>;

/// A name split into text and numbers, so that 10 sorts after 9.
fn by_number(name: &str) -> Vec<(String, u64)> {
    let mut parts: Vec<(String, u64)> = vec![(String::new(), 0)];
    let mut is_in_number = false;
    for letter in name.chars() {
        let digit = letter.to_digit(10).map(u64::from);
        if digit.is_none() && is_in_number {
            parts.push((String::new(), 0));
        }
        is_in_number = digit.is_some();
        if let Some((text, number)) = parts.last_mut() {
            match digit {
                Some(digit) => *number = number.saturating_mul(10).saturating_add(digit),
                None => text.push(letter),
            }
        }
    }
    parts
}

fn place(history: &History, txn: TxnId) -> f64 {
    f64::from(txn.0 - history.session_txns(history.session(txn)).start)
}

fn is_known(interval: Interval) -> bool {
    interval.begin != i64::MIN || interval.commit != i64::MAX
}

/// When a transaction ran. An unrecorded bound extends to its neighbour in the session.
fn reach(history: &History, txn: TxnId) -> Interval {
    let Interval {
        mut begin,
        mut commit,
    } = history.interval(txn);
    let session = history.session_txns(history.session(txn));
    if commit == i64::MAX && txn.0 + 1 < session.end {
        let next = history.interval(TxnId(txn.0 + 1)).begin;
        commit = if next > begin { next } else { commit };
    }
    if begin == i64::MIN && txn.0 > session.start {
        let last = history.interval(TxnId(txn.0 - 1)).commit;
        begin = if last < commit { last } else { begin };
    }
    Interval { begin, commit }
}

/// The first begin and the last commit that are known.
fn ends(history: &History, txns: impl Iterator<Item = TxnId>) -> (i128, i128) {
    let mut all = Vec::new();
    for txn in txns {
        let Interval { begin, commit } = reach(history, txn);
        all.extend((begin != i64::MIN).then_some(i128::from(begin)));
        all.extend((commit != i64::MAX).then_some(i128::from(commit)));
    }
    let first = all.iter().copied().min().unwrap_or(0);
    (first, all.into_iter().max().unwrap_or(first))
}

/// The distance of a transaction from the nearest of the story.
fn away(history: &History, story: &BTreeSet<TxnId>, txn: TxnId) -> i128 {
    let it = reach(history, txn);
    let gap = |other: &TxnId| {
        let other = reach(history, *other);
        let before = i128::from(other.begin) - i128::from(it.commit);
        let after = i128::from(it.begin) - i128::from(other.commit);
        before.max(after).max(0)
    };
    story.iter().map(gap).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::by_number;

    #[test]
    fn sessions_are_sorted_as_a_person_counts() {
        let mut names = ["10", "9", "client 2", "client 10", "0"];
        names.sort_by_cached_key(|name| by_number(name));
        assert_eq!(names, ["0", "9", "10", "client 2", "client 10"]);
    }
}
