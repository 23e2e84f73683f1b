//! Tries the order that the database itself recorded: by the timestamps of commits (and begins), or by the recorded times.
//!
//! Only for histories with conditions over rows, where each row that a condition did not choose is a read in doubt.
//! Such an order determines every read, so it is replayed on a state of rows, without resolving anything. If it fits,
//! it is the certificate, which is checked again like any other; otherwise the search begins.

mod index;
mod replay;
#[cfg(test)]
mod tests;

use crate::budget::Budget;
use crate::certify;
use crate::context::Context;
use crate::level::{Model, RealTime, Times};
use crate::model::{History, Op, SessionId, Status, TxnId};
use crate::phases::{Check, Stop};
use crate::progress::Phase;
use crate::verdict::{Certificate, Moment, Point};
use replay::Replay;

/// An order that explains the history, if a recorded one does.
pub(crate) fn expected(
    check: &Check<'_>,
    context: &mut Context<'_>,
) -> Result<Option<Vec<Point>>, Stop> {
    if !check.techniques.witness || !is_tried(check) {
        return Ok(None);
    }
    context.begin(Phase::Decide)?;
    for clock in [Clock::Stamps, Clock::Times] {
        for begins in Begins::of(check) {
            let Some(order) = order(check.history, clock, *begins) else {
                break;
            };
            if explains(check, &order, context.budget)? && keeps_time(check, &order) {
                let is_counted = |it: &&Point| it.moment != Moment::Begin;
                context.stats.n_counted = order.iter().filter(is_counted).count();
                return Ok(Some(order));
            }
        }
    }
    Ok(None)
}

/// Whether the history has conditions, and nothing that the replay does not support.
fn is_tried(check: &Check<'_>) -> bool {
    let history = check.history;
    let is_assumed = !history.key_assumptions().is_empty()
        || !history.given_edges().is_empty()
        || !history.stale_reads().is_empty();
    history.n_predicates() > 0
        && matches!(check.spec.model, Model::Ser | Model::Si | Model::Pc)
        && history.n_lists() == 0
        && history.n_ranges() == 0
        && !is_assumed
}

/// Whether an order keeps the real time that the level asks for: a clock, or the order of sessions, may contradict it.
fn keeps_time(check: &Check<'_>, order: &[Point]) -> bool {
    check.spec.real_time.is_none() || {
        let order = Certificate::from(order.to_vec());
        certify::order::replay(check.history, check.spec, &order).is_ok()
    }
}

/// Whether every read and every condition finds along an order what was recorded.
fn explains(check: &Check<'_>, order: &[Point], budget: &Budget) -> Result<bool, Stop> {
    let mut replay = Replay::new(check.history, check.spec.model);
    let mut poll = budget.poll();
    for (at, &point) in order.iter().enumerate() {
        poll.step()?;
        if !replay.point(at as u32 + 1, point) {
            return Ok(false);
        }
    }
    Ok(replay.has_version_orders())
}

/// Where the begins of transactions are in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    /// The level asks for whole transactions.
    Whole,
    /// Where the clock says.
    Recorded,
    /// Just before the commits: a serial order. A database may read and write more freely than snapshot isolation, as long as
    /// transactions that conflict abort.
    AtCommit,
}

impl Begins {
    /// Those that are tried.
    fn of(check: &Check<'_>) -> &'static [Begins] {
        let is_exact = |it: RealTime| it.times == Times::Exact;
        if !check.spec.has_begins(check.history) {
            &[Begins::Whole]
        } else if check.spec.real_time.is_some_and(is_exact) {
            &[Begins::Recorded]
        } else {
            &[Begins::Recorded, Begins::AtCommit]
        }
    }
}

/// The source of a transaction's begin and commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// The database's own `start_ts` and `commit_ts`.
    Stamps,
    /// The recorded times.
    Times,
}

impl Clock {
    /// The begin and the commit of a transaction, if they are known.
    fn of(self, history: &History, txn: TxnId) -> Option<(i64, i64)> {
        match self {
            Clock::Stamps => {
                let stamps = history.stamps(txn);
                let commit = stamps.commit_ts?;
                Some((stamps.start_ts.unwrap_or(commit), commit))
            }
            Clock::Times => {
                let known = history.has_times().then(|| history.interval(txn))?;
                let is_known = known.begin > i64::MIN && known.commit < i64::MAX;
                is_known.then_some((known.begin, known.commit))
            }
        }
    }
}

/// The committed transactions in the order of a clock; none if it lacks some of them. At equal times commits with
/// writes come first, so that transactions that begin then, or only read, see them. The order of sessions is kept.
fn order(history: &History, clock: Clock, begins: Begins) -> Option<Vec<Point>> {
    let mut points: Vec<((i64, bool), Point)> = Vec::new();
    for session in (0..history.n_sessions() as u32).map(SessionId) {
        let mut last = (i64::MIN, false);
        for txn in history.session_txns(session).map(TxnId) {
            if history.status(txn) != Status::Committed {
                continue;
            }
            let (begin, commit) = clock.of(history, txn)?;
            let writes = history.ops(txn).iter().any(|op: &Op| op.is_write());
            let (begin, commit) = ((begin, true), (commit, !writes));
            let moments = match begins {
                Begins::Whole => &[(Moment::Whole, commit)][..],
                Begins::Recorded => &[(Moment::Begin, begin), (Moment::Commit, commit)],
                Begins::AtCommit => &[(Moment::Begin, commit), (Moment::Commit, commit)],
            };
            for &(moment, place) in moments {
                last = last.max(place);
                points.push((last, Point { txn, moment }));
            }
        }
    }
    points.sort_by_key(|&(place, point)| (place, point.txn, point.moment == Moment::Commit));
    Some(points.into_iter().map(|it| it.1).collect())
}
