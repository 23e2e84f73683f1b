//! A history as plain data, so that two can be compared whatever their ids.

use std::collections::BTreeMap;

use kingsnake_solver::model::{History, Interval, KeyId, Op, SessionId, Status, TxnId, ValueId};

/// What the comparison looks at besides sessions, statuses, times and operations.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Names of sessions and transactions, and values as written.
    All,
    /// Values as written.
    Values,
    /// Values only as far as they are equal or initial.
    None,
}

/// One transaction: name, status, times, isolation, operations.
pub type Txn = (String, Status, Interval, Option<String>, Vec<String>);

/// The sessions with their transactions, and the version orders.
#[derive(Debug, PartialEq, Eq)]
pub struct Canonical {
    sessions: Vec<(String, Vec<Txn>)>,
    orders: BTreeMap<String, Vec<String>>,
    /// Where ranges are queried, which keys have a row from the start.
    there: BTreeMap<String, bool>,
}

/// The canonical form of a history; sessions without transactions count for nothing.
pub fn canonical(history: &History, names: Names) -> Canonical {
    let mut renamed = BTreeMap::new();
    let mut value = |value: ValueId| {
        let initial = if history.is_initial(value) {
            " (initial)"
        } else {
            ""
        };
        if names == Names::None {
            if history.is_initial(value) {
                return "initial".to_owned();
            }
            let next = renamed.len();
            return format!("#{}", renamed.entry(value).or_insert(next));
        }
        format!("{:?}{initial}", shown(history, history.value_token(value)))
    };
    let mut sessions = Vec::new();
    for session in (0..history.n_sessions()).map(|it| SessionId(it as u32)) {
        let mut txns = Vec::new();
        for txn in history.session_txns(session).map(TxnId) {
            let ops = history.ops(txn).iter().enumerate().map(|(at, &op)| {
                let key = op.key().map(|key| shown(history, history.key_token(key)));
                let key = key.unwrap_or_default();
                let mut value = |it: ValueId| {
                    let dead = if history.is_tombstone(it) {
                        "deleted "
                    } else {
                        ""
                    };
                    format!("{dead}{}", value(it))
                };
                match op {
                    Op::Write { value: v, .. } if history.is_insert(txn, at) => {
                        format!("i {key} {}", value(v))
                    }
                    Op::Range { range } => {
                        let query = history.range(range);
                        let span = query.span.show(|token| shown(history, token));
                        let rows = query.rows.iter().map(|&row| {
                            let key = history.key_token(history.value_key(row));
                            format!("{} {}", shown(history, key), value(row))
                        });
                        let rows: Vec<String> = rows.collect();
                        format!("range {span} {rows:?} {}", query.shows_deleted)
                    }
                    Op::Read { value: v, .. } => format!("r {key} {}", value(v)),
                    Op::Write { value: v, .. } => format!("w {key} {}", value(v)),
                    Op::Append { value: v, .. } => format!("a {key} {}", value(v)),
                    Op::ReadList { list, .. } => {
                        let items: Vec<String> =
                            history.list(list).iter().map(|&v| value(v)).collect();
                        format!("rl {key} {items:?}")
                    }
                }
            });
            let ops = ops.collect();
            let isolation = history.isolation(txn).map(|level| shown(history, level));
            let name = shown(history, history.txn_token(txn));
            let name = if names == Names::All {
                name
            } else {
                String::new()
            };
            txns.push((
                name,
                history.status(txn),
                history.interval(txn),
                isolation,
                ops,
            ));
        }
        let name = shown(history, history.session_token(session));
        let name = if names == Names::All {
            name
        } else {
            String::new()
        };
        if !txns.is_empty() {
            sessions.push((name, txns));
        }
    }
    let orders = history.version_orders().iter().map(|order| {
        let values = order.values.iter().map(|&v| value(v)).collect();
        (shown(history, history.key_token(order.key)), values)
    });
    let orders = orders.collect();
    let n_keys = if history.n_ranges() > 0 {
        history.n_keys()
    } else {
        0
    };
    let there = (0..n_keys as u32).map(KeyId).map(|key| {
        let name = shown(history, history.key_token(key));
        (name, history.is_there_initially(key))
    });
    let there = there.collect();
    Canonical {
        sessions,
        orders,
        there,
    }
}

/// A token with its kind: the number 1 and the text "1" differ.
fn shown(history: &History, token: kingsnake_solver::model::Token) -> String {
    use kingsnake_solver::model::Token::{Int, Nil, Text};
    match token {
        Nil => "nil".to_owned(),
        Int(number) => number.to_string(),
        Text(symbol) => format!("\"{}\"", history.symbols().text(symbol)),
    }
}
