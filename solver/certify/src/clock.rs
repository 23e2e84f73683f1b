//! The possible true times of a moment, by the definitions in docs/theory.md: a window.
//!
//! A recorded time is off by at most half the drift. Windows are kept in half nanoseconds, so that halves are whole.

use kingsnake_history::level::{Snapshots, Spec, Times};
use kingsnake_history::model::{History, TxnId};
use kingsnake_history::verdict::{Moment, Point};

/// The bounds of a moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClockWindow {
    /// Not before this.
    pub(super) from: i128,
    /// Not after this.
    pub(super) to: i128,
}

const ANY: ClockWindow = ClockWindow {
    from: i128::MIN,
    to: i128::MAX,
};

/// The window of a point. Where the level does not look at the clock, or nothing was recorded, it is as wide as can be.
pub(super) fn window(history: &History, spec: Spec, point: Point) -> ClockWindow {
    let Some(real_time) = spec.real_time else {
        return ANY;
    };
    let drift = i128::from(real_time.drift);
    let near = |time: i64| ClockWindow {
        from: 2 * i128::from(time) - drift,
        to: 2 * i128::from(time) + drift,
    };
    let (began, committed) = recorded(history, point.txn);
    let (began, committed) = (began.map(near), committed.map(near));
    // Whatever the level, the true begin and the true commit are between the recorded ones.
    let mut window = ClockWindow {
        from: began.map_or(ANY.from, |began| began.from),
        to: committed.map_or(ANY.to, |committed| committed.to),
    };
    if !spec.model.has_begin() {
        return window;
    }
    if real_time.times == Times::Exact {
        let recorded = match point.moment {
            Moment::Begin => began,
            Moment::Commit => committed,
            Moment::Whole => None,
        };
        if let Some(recorded) = recorded {
            window = recorded;
        }
    }
    // The state that is read may be older than the true begin.
    if real_time.snapshots == Snapshots::Older && point.moment == Moment::Begin {
        window.from = ANY.from;
    }
    window
}

fn recorded(history: &History, txn: TxnId) -> (Option<i64>, Option<i64>) {
    let interval = history.interval(txn);
    let began = (interval.begin > i64::MIN).then_some(interval.begin);
    let committed = (interval.commit < i64::MAX).then_some(interval.commit);
    (began, committed)
}
