//! A history with one line per transaction, for the message of a failed test.

use std::fmt::Write;

use kingsnake_history::model::{History, Interval, Op, Status};

/// The history as text, such as `session 0: t1 [3, 9] w(x,1) r(y,0)`.
pub fn sketch(history: &History) -> String {
    let mut text = String::new();
    for txn in history.txns() {
        let session = history.session_name(history.session(txn));
        let status = match history.status(txn) {
            Status::Committed => "",
            Status::Aborted => " aborted",
            Status::Unknown => " unknown",
        };
        let _ = write!(
            text,
            "session {session}: t{}{status}",
            history.txn_name(txn)
        );
        let interval = history.interval(txn);
        if interval != Interval::UNKNOWN {
            let _ = write!(text, " [{}, {}]", interval.begin, interval.commit);
        }
        for (at, &op) in history.ops(txn).iter().enumerate() {
            let key = op
                .key()
                .map(|key| history.key_name(key))
                .unwrap_or_default();
            let value = |value| {
                let dead = if history.is_tombstone(value) {
                    "†"
                } else {
                    ""
                };
                format!("{dead}{}", history.value_name(value))
            };
            let _ = match op {
                Op::Read { value: v, .. } => write!(text, " r({key},{})", value(v)),
                Op::Write { value: v, .. } if history.is_insert(txn, at) => {
                    write!(text, " i({key},{})", value(v))
                }
                Op::Write { value: v, .. } => write!(text, " w({key},{})", value(v)),
                Op::Range { range } => {
                    let query = history.range(range);
                    let span = query.span.show(|token| history.symbols().show(token));
                    let row =
                        |&v: &_| format!("{}={}", history.key_name(history.value_key(v)), value(v));
                    let rows: Vec<String> = query.rows.iter().map(row).collect();
                    let all = if query.shows_deleted { " all" } else { "" };
                    write!(text, " range({span}{all}: {})", rows.join(","))
                }
                Op::Append { value: v, .. } => write!(text, " a({key},{})", value(v)),
                Op::ReadList { list, .. } => {
                    let items: Vec<String> = history.list(list).iter().map(|&v| value(v)).collect();
                    write!(text, " rl({key},[{}])", items.join(","))
                }
            };
        }
        text.push('\n');
    }
    for order in history.version_orders() {
        let values: Vec<String> = order
            .values
            .iter()
            .map(|&v| history.value_name(v))
            .collect();
        let key = history.key_name(order.key);
        let _ = writeln!(text, "version order of {key}: {}", values.join(" "));
    }
    text
}
