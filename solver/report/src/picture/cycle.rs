//! A cycle as a panel: its transactions in cycle order, rotated so that sessions run from left to right if possible.

use kingsnake_solver::model::{History, KeyId, TxnId};
use kingsnake_solver::verdict::{Fact, Moment, Point, Step, StepReason};

use super::{Arrow, ArrowKind, Card, Moments, Panel, PictureSource, lines, short};

/// Consecutive points of one transaction: the whole, its begin, its commit, or both.
struct Visit {
    txn: TxnId,
    /// The step that leaves the transaction.
    out: Step,
}

/// The panel of a cycle.
pub fn panel(source: PictureSource<'_>, steps: &[Step]) -> Panel {
    let history = source.history;
    let visits = turn(history, visits(steps));
    let (sessions, lanes) = source.lanes(visits.iter().map(|visit| visit.txn));
    let last = visits.len() - 1;
    let cards = visits.iter().enumerate().map(|(at, visit)| {
        let before = &visits[if at == 0 { last } else { at - 1 }];
        let keys = [before.out.reason.key(), visit.out.reason.key()];
        let keys: Vec<KeyId> = keys.into_iter().flatten().collect();
        let (lines, n_more) = lines(source, visit.txn, &keys, |_, op| {
            keys.iter().any(|&key| history.touches(op, key))
        });
        let again = visits[..at].iter().any(|earlier| earlier.txn == visit.txn);
        Card {
            lane: sessions
                .binary_search(&history.session(visit.txn))
                .unwrap_or(0),
            title: short(&source.txn(visit.txn), 20),
            note: again.then_some("again"),
            lines,
            n_more,
            moments: moments(history, &visits, at),
            is_aborted: false,
        }
    });
    let arrows = visits.iter().enumerate().map(|(at, visit)| {
        let to = if at == last { 0 } else { at + 1 };
        arrow(source, &visit.out, at, to)
    });
    Panel {
        title: Vec::new(),
        cards: cards.collect(),
        arrows: arrows.collect(),
        lanes,
    }
}

/// The begin and the commit of a visit's transaction, with their times if the cycle uses the clock.
fn moments(history: &History, visits: &[Visit], at: usize) -> Option<Moments> {
    let visit = &visits[at];
    if visit.out.from.moment == Moment::Whole {
        return None;
    }
    let before = &visits[if at == 0 { visits.len() } else { at } - 1];
    let is_touched = |moment| visit.out.from.moment == moment || before.out.to.moment == moment;
    let needs_clock = visits
        .iter()
        .any(|visit| visit.out.reason == StepReason::RealTime);
    let begins = visits.iter().map(|visit| history.interval(visit.txn).begin);
    let origin = begins.filter(|&begin| begin != i64::MIN).min().unwrap_or(0);
    let word = |word: &str, time: i64, missing: i64| {
        if !needs_clock || time == missing {
            return word.to_owned();
        }
        format!("{word} {}", since(i128::from(time) - i128::from(origin)))
    };
    let interval = history.interval(visit.txn);
    Some(Moments {
        words: [
            word("begin", interval.begin, i64::MIN),
            word("commit", interval.commit, i64::MAX),
        ],
        is_touched: [Moment::Begin, Moment::Commit].map(is_touched),
    })
}

/// A time relative to the first begin of the picture.
pub fn since(nanoseconds: i128) -> String {
    let number = nanoseconds as f64;
    match nanoseconds.unsigned_abs() {
        0..1_000 => format!("{nanoseconds:+} ns"),
        1_000..1_000_000 => format!("{:+.1} µs", number / 1e3),
        1_000_000..1_000_000_000 => format!("{:+.1} ms", number / 1e6),
        _ => format!("{:+.2} s", number / 1e9),
    }
}

fn visits(steps: &[Step]) -> Vec<Visit> {
    let leaving = steps.iter().filter(|step| step.from.txn != step.to.txn);
    let mut visits: Vec<Visit> = leaving
        .map(|&out| Visit {
            txn: out.from.txn,
            out,
        })
        .collect();
    if visits.is_empty() {
        // A transaction that contradicts itself: the last step leads back to it.
        visits.extend(steps.last().map(|&out| Visit {
            txn: out.from.txn,
            out,
        }));
    }
    visits
}

/// Rotates the cycle so that the fewest pairs of one session are reversed.
fn turn(history: &History, mut visits: Vec<Visit>) -> Vec<Visit> {
    let txns: Vec<TxnId> = visits.iter().map(|visit| visit.txn).collect();
    let wrong = |start: usize| {
        let at = |i: usize| txns[(start + i) % txns.len()];
        let pairs = (0..txns.len()).flat_map(|i| (i + 1..txns.len()).map(move |j| (i, j)));
        pairs
            .filter(|&(i, j)| history.session(at(i)) == history.session(at(j)) && at(i) > at(j))
            .count()
    };
    // For a cycle of hundreds the rotation does not matter; the search is cubic.
    if let Some(best) = (0..txns.len().min(60)).min_by_key(|&start| wrong(start)) {
        visits.rotate_left(best);
    }
    visits
}

/// The kind of a step.
pub fn kind(reason: StepReason) -> ArrowKind {
    match reason {
        StepReason::Begin => ArrowKind::Bc,
        StepReason::Session => ArrowKind::So,
        StepReason::RealTime => ArrowKind::Rt,
        StepReason::Stated { .. } => ArrowKind::Given,
        StepReason::Wr { .. } => ArrowKind::Wr,
        StepReason::Ww { .. } => ArrowKind::Ww,
        StepReason::Rw { .. } => ArrowKind::Rw,
        StepReason::Vis { .. } => ArrowKind::Vis,
    }
}

pub(super) fn arrow(source: PictureSource<'_>, step: &Step, from: usize, to: usize) -> Arrow {
    let kind = kind(step.reason);
    let mut label = step
        .reason
        .key()
        .map_or(String::new(), |key| short(&source.labels.key(key), 16));
    if let StepReason::Ww {
        fact: Fact::Assumed,
        ..
    }
    | StepReason::Rw {
        fact: Fact::Assumed,
        ..
    } = step.reason
    {
        label.push_str(" · assumed");
    }
    let name = |point: Point| {
        let moment = match point.moment {
            Moment::Whole => "",
            Moment::Begin => "’s begin",
            Moment::Commit => "’s commit",
        };
        format!("{}{moment}", source.txn(point.txn))
    };
    let mut full = format!(
        "{} → {}: {}",
        name(step.from),
        name(step.to),
        kind.meaning(step.from.moment != Moment::Whole)
    );
    if let Some(key) = step.reason.key() {
        full.push_str(", key ");
        let (label, name) = (source.labels.key(key), source.history.key_name(key));
        full.push_str(&label);
        if name.len() > label.len() {
            full.push_str(&format!(" ({name})"));
        }
    }
    Arrow {
        from: (from, step.from.moment),
        to: (to, step.to.moment),
        kind,
        label,
        full,
    }
}
