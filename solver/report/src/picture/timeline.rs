//! Operations as bars on a time axis, one lane per session: the picture of a counterexample to linearizability.

use std::fmt::Write;

use kingsnake_solver::model::{History, SessionId, Status, TxnId};
use kingsnake_solver::verdict::Counterexample;
use kingsnake_tell::Labels;

use super::short;
use crate::answer::telling::op_words;
use kingsnake_text::Escaped;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 130.0;
const RIGHT: f64 = 20.0;
const LANE: f64 = 46.0;
const TOP: f64 = 34.0;
/// Minimum width of a bar, so that it is visible.
const THINNEST: f64 = 6.0;

/// The picture, as one SVG document.
pub fn document(
    history: &History,
    labels: &Labels<'_>,
    txns: &[TxnId],
    counterexample: &Counterexample,
) -> String {
    let mut sessions: Vec<SessionId> = txns.iter().map(|&txn| history.session(txn)).collect();
    sessions.sort_unstable();
    sessions.dedup();
    let axis = Axis::of(history, txns);
    let height = TOP + LANE * sessions.len() as f64 + 30.0;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (lane, &session) in sessions.iter().enumerate() {
        let y = TOP + LANE * lane as f64;
        let name = short(&format!("session {}", labels.session(session)), 18);
        let _ = writeln!(
            out,
            "<text x=\"8\" y=\"{:.1}\" fill=\"#555\">{}</text><line x1=\"{LEFT}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke=\"#ddd\"/>",
            y + 26.0,
            Escaped(&name),
            y + LANE - 4.0,
            WIDTH - RIGHT,
            y + LANE - 4.0,
        );
    }
    for &txn in txns {
        let lane = sessions.binary_search(&history.session(txn)).unwrap_or(0);
        let y = TOP + LANE * lane as f64;
        bar(&mut out, history, labels, txn, y, &axis, counterexample);
    }
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"20\" fill=\"#555\">{}</text><text x=\"{:.1}\" y=\"20\" text-anchor=\"end\" fill=\"#555\">{}</text>\n</svg>",
        Escaped("time 0"),
        WIDTH - RIGHT,
        Escaped(&format!(
            "+{}",
            super::cycle::since(axis.span()).trim_start_matches('+')
        )),
    );
    out
}

fn bar(
    out: &mut String,
    history: &History,
    labels: &Labels<'_>,
    txn: TxnId,
    y: f64,
    axis: &Axis,
    counterexample: &Counterexample,
) {
    let interval = history.interval(txn);
    let is_open = history.status(txn) == Status::Unknown || interval.commit == i64::MAX;
    let from = axis.x(interval.begin);
    let to = if is_open {
        WIDTH - RIGHT
    } else {
        axis.x(interval.commit).max(from + THINNEST)
    };
    let is_blamed = counterexample.leaves().into_iter().any(|leaf| match leaf {
        Counterexample::Stuck(stuck) => stuck.last == txn,
        Counterexample::Local(findings) => findings.iter().any(|it| it.txn == txn),
        Counterexample::Recorded(_)
        | Counterexample::Cyclic(_)
        | Counterexample::EitherWay { .. } => false,
    });
    let fill = if is_blamed { "#f2b8b5" } else { "#cfe3f7" };
    let dash = if is_open {
        " stroke-dasharray=\"4 3\""
    } else {
        ""
    };
    let ops = history.ops(txn);
    let keys: Vec<_> = ops.iter().filter_map(|op| op.key()).collect();
    let words: Vec<String> = (0..ops.len())
        .map(|at| op_words(labels, history, txn, at, &keys))
        .collect();
    let text = format!("{}: {}", labels.txn(txn), words.join(", "));
    // The label is on the side with more room: right of the bar's begin, or left of its end.
    let (on_right, on_left) = (WIDTH - RIGHT - from, to - LEFT);
    let (x, anchor, room) = if on_right >= on_left || is_open {
        (from, "start", on_right)
    } else {
        (to, "end", on_left)
    };
    let room = (room / 6.5).max(12.0) as usize;
    let _ = writeln!(
        out,
        "<g><title>{}</title><rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\" rx=\"3\" fill=\"{fill}\" stroke=\"#456\"{dash}/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text></g>",
        Escaped(&text),
        y + 20.0,
        to - from,
        y + 14.0,
        Escaped(&short(&text, room)),
    );
}

/// The times of a picture.
struct Axis {
    first: i64,
    last: i64,
}

impl Axis {
    fn of(history: &History, txns: &[TxnId]) -> Self {
        let intervals = || txns.iter().map(|&txn| history.interval(txn));
        let begins = intervals().map(|it| it.begin).filter(|&it| it > i64::MIN);
        let ends = intervals().map(|it| it.commit).filter(|&it| it < i64::MAX);
        let first = begins.clone().min().unwrap_or(0);
        let last = ends.chain(begins).max().unwrap_or(first);
        Axis { first, last }
    }

    fn span(&self) -> i128 {
        i128::from(self.last) - i128::from(self.first)
    }

    fn x(&self, time: i64) -> f64 {
        let since = (i128::from(time) - i128::from(self.first)).max(0) as f64;
        let span = self.span().max(1) as f64;
        LEFT + (since / span).min(1.0) * (WIDTH - LEFT - RIGHT - 60.0)
    }
}
