//! Real-time order as a chain of time nodes, linear in the transactions where all pairs would be quadratic.
//!
//! Every moment has a latest and an earliest time at which it may have happened. A time node stands between moments whose
//! latest time, plus the drift, is before it and moments whose earliest time is after it: moment → node → … → node → moment.
//! So one moment reaches another through the chain iff it was over, drift and all, strictly before the other could be.

use super::construct::chains;
use super::{Edge, Polygraph, reasons};
use crate::level::{RealTime, Snapshots, Times};
use crate::model::{History, Interval};
use crate::resolve::Node;
use crate::verdict::Moment;

/// Adds the time chain behind the nodes of the transactions.
pub(super) fn add_real_time(history: &History, real_time: RealTime, polygraph: &mut Polygraph) {
    let follows = follows(history, real_time, polygraph);
    let events = events(history, real_time, polygraph);
    let reason = reasons::REAL_TIME;
    let mut over = Vec::new();
    let mut latest = None;
    for TimeBound { is_end, node, .. } in events {
        if is_end {
            over.push(node);
            continue;
        }
        if !over.is_empty() {
            let time = polygraph.problem.n_nodes as u32;
            polygraph.problem.n_nodes += 1;
            let before = over.drain(..).chain(latest);
            let edges = before.map(|from| Edge {
                from,
                to: time,
                reason,
            });
            polygraph.problem.edges.extend(edges);
            latest = Some(time);
        }
        if let Some(from) = latest {
            let to = node;
            polygraph.problem.edges.push(Edge { from, to, reason });
        }
    }
    polygraph.problem.chains = chains(polygraph, &follows);
}

/// That a moment may begin to happen, or that it is over. In their order: at equal times nothing is over yet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct TimeBound {
    /// Wider than a recorded time, so that the drift cannot overflow.
    time: i128,
    is_end: bool,
    node: u32,
}

/// For each transaction, whether the one before it was over, drift and all, before it can have begun. A client runs one
/// transaction after the other, so this makes chains of sessions even where their order is not to count.
fn follows(history: &History, real_time: RealTime, polygraph: &Polygraph) -> Vec<bool> {
    let [begin, commit] = moments(polygraph);
    let interval = |txn: Node| history.interval(polygraph.resolved.txn(txn));
    let drift = drift(real_time);
    let follows = |txn: Node| {
        let before = latest(real_time, interval(txn.checked_sub(1)?), commit)?;
        let after = earliest(real_time, interval(txn), begin)?;
        Some(i128::from(before) + drift < i128::from(after))
    };
    let txns = 0..polygraph.resolved.n_txns() as Node;
    txns.map(|txn| follows(txn).unwrap_or(false)).collect()
}

/// The moments of a transaction that have nodes.
fn moments(polygraph: &Polygraph) -> [Moment; 2] {
    if polygraph.places.width() == 1 {
        [Moment::Whole, Moment::Whole]
    } else {
        [Moment::Begin, Moment::Commit]
    }
}

/// The drift, wide enough to be added to any time.
fn drift(real_time: RealTime) -> i128 {
    i128::from(real_time.drift)
}

fn events(history: &History, real_time: RealTime, polygraph: &Polygraph) -> Vec<TimeBound> {
    let drift = drift(real_time);
    let [begin, commit] = moments(polygraph);
    let places = &polygraph.places;
    let mut events = Vec::new();
    for txn in 0..polygraph.resolved.n_txns() as Node {
        let interval = history.interval(polygraph.resolved.txn(txn));
        let nodes = [(begin, places.begin(txn)), (commit, places.commit(txn))];
        let starts = nodes.map(|(moment, _)| earliest(real_time, interval, moment));
        let ends = nodes.map(|(moment, _)| latest(real_time, interval, moment));
        let mut push = |time: Option<i64>, is_end, node| {
            let margin = if is_end { drift } else { 0 };
            let time = time.map(|time| i128::from(time) + margin);
            events.extend(time.map(|time| TimeBound { time, is_end, node }));
        };
        // What a begin starts after its commit does, too; what a commit is over before so is its begin.
        push(starts[0], false, nodes[0].1);
        if starts[1] != starts[0] {
            push(starts[1], false, nodes[1].1);
        }
        if ends[0] != ends[1] {
            push(ends[0], true, nodes[0].1);
        }
        push(ends[1], true, nodes[1].1);
    }
    events.sort_unstable();
    events
}

/// The earliest time at which a moment may have happened, before any drift; `None` where nothing bounds it.
pub fn earliest(real_time: RealTime, interval: Interval, moment: Moment) -> Option<i64> {
    let began = Some(interval.begin).filter(|&time| time != i64::MIN);
    let committed = Some(interval.commit).filter(|&time| time != i64::MAX);
    let snapshots = real_time.snapshots;
    match (moment, real_time.times) {
        (Moment::Begin, _) if snapshots == Snapshots::Older => None,
        (Moment::Commit, Times::Exact) => committed.or(began),
        _ => began,
    }
}

/// The latest time at which a moment may have happened, before any drift; `None` where nothing bounds it.
pub fn latest(real_time: RealTime, interval: Interval, moment: Moment) -> Option<i64> {
    let began = Some(interval.begin).filter(|&time| time != i64::MIN);
    let committed = Some(interval.commit).filter(|&time| time != i64::MAX);
    match (moment, real_time.times) {
        (Moment::Begin, Times::Exact) => began.or(committed),
        _ => committed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::level::Level;
    use crate::model::{HistoryBuilder, Status, Token};
    use crate::relate::construct;
    use crate::resolve::resolve;

    /// Transactions of a hundred clients, whose intervals overlap by the dozen.
    fn history(n_txns: i64) -> History {
        let mut builder = HistoryBuilder::new();
        for txn in 0..n_txns {
            let session = builder.session(Token::Int(txn % 100));
            let begun = builder.begin(session, Token::Int(txn), Status::Committed);
            begun.expect("names are counted");
            builder.times(Some(10 * txn), Some(10 * txn + 995));
            builder.write(Token::Int(txn), Token::Int(txn));
        }
        builder.finish().expect("it is well formed")
    }

    #[test]
    fn a_hundred_thousand_transactions_with_times_stay_linear() {
        let history = history(100_000);
        for level in [Level::StrictSer, Level::Gsi, Level::StrongSi] {
            for (times, drift) in [
                (Times::Bounds, 0),
                (Times::Bounds, 5_000),
                (Times::Exact, 5_000),
            ] {
                let spec = level.spec(Some(false)).expect("it leaves it open");
                let spec = spec.with_clock(times, drift);
                let resolved = resolve(&history, &Budget::unlimited());
                let resolved = resolved.expect("values are unique");
                let polygraph = construct(&history, resolved, spec, true);
                // At most two moments that start, two that end, and a chain through the starts; begins before commits.
                assert!(polygraph.n_nodes() <= 400_000, "{spec}");
                assert!(polygraph.edges().len() <= 700_000, "{spec}");
                assert!(polygraph.edges().len() > 290_000, "{spec}");
                // Clocks are linear where the hundred clients' sessions are chains: the clock makes them so unless snapshots
                // are old or it drifts further than clients wait.
                let has_chains = level != Level::Gsi && drift == 0;
                assert_eq!(
                    polygraph.problem().chains.len() == 101,
                    has_chains,
                    "{spec}"
                );
            }
        }
    }
}
