//! Transactions as JSON.

use kingsnake_evidence::{token, txn_name};
use kingsnake_solver::model::{History, Op, Status, Token, TxnId, ValueId};
use serde_json::{Value, json};

use crate::answer::status_word;

/// Number of transactions committed when the last of these committed; null without times.
pub(super) fn position(history: &History, txns: &[TxnId]) -> Option<usize> {
    let commit = |txn: TxnId| {
        let commit = history.interval(txn).commit;
        (commit < i64::MAX).then_some(commit)
    };
    let last = txns.iter().filter_map(|&txn| commit(txn)).max()?;
    let committed = history
        .txns()
        .filter(|&txn| history.status(txn) == Status::Committed);
    let by_then = committed.filter_map(commit).filter(|&it| it <= last);
    Some(by_then.count())
}

/// A transaction: its place in the session is counted from 0; `isolation` is what a collector noted beside it.
pub(super) fn txn_view(history: &History, txn: TxnId) -> Value {
    let note = history.note(txn);
    let noted = |it: Token| (it != Token::Nil).then(|| token(history, it));
    let database_name = noted(note.name).or(history.stamps(txn).xid.map(Value::from));
    let ops = history.ops(txn).iter().enumerate();
    let ops = ops.map(|(at, &op)| op_view(history, op, history.is_insert(txn, at)));
    json!({
        "name": txn_name(history, txn),
        "session": token(history, history.session_token(history.session(txn))),
        "position": history.session_position(txn),
        "status": status_word(history.status(txn)),
        "isolation": history.isolation(txn).map(|it| token(history, it)),
        "node": noted(note.node),
        "database_name": database_name,
        "operations": ops.collect::<Vec<_>>(),
    })
}

fn op_view(history: &History, op: Op, is_insert: bool) -> Value {
    let key = op.key().map(|key| token(history, history.key_token(key)));
    let value = |value| token(history, history.value_token(value));
    match op {
        Op::Read { value: read, .. } if history.is_tombstone(read) => {
            json!({"op": "read", "key": key, "value": null, "tombstone": value(read)})
        }
        Op::Read { value: read, .. } => json!({"op": "read", "key": key, "value": value(read)}),
        Op::Write { value: left, .. } if history.is_tombstone(left) => {
            json!({"op": "delete", "key": key, "tombstone": value(left)})
        }
        Op::Write { value: left, .. } if history.is_absence(left) => {
            json!({"op": "delete", "key": key})
        }
        Op::Write { value: written, .. } => {
            let op = if is_insert { "insert" } else { "write" };
            json!({"op": op, "key": key, "value": value(written)})
        }
        Op::Append { value: added, .. } => {
            json!({"op": "append", "key": key, "value": value(added)})
        }
        Op::ReadList { list, .. } => {
            let values: Vec<Value> = history.list(list).iter().map(|&item| value(item)).collect();
            json!({"op": "read-list", "key": key, "values": values})
        }
        Op::Range { range } => {
            let query = history.range(range);
            let row = |&row: &ValueId| {
                let key = token(history, history.key_token(history.value_key(row)));
                json!([key, value(row)])
            };
            let is_deleted = |row: &&ValueId| history.is_tombstone(**row);
            let rows = query.rows.iter().filter(|row| !is_deleted(row));
            let deleted = query.rows.iter().filter(is_deleted);
            let mut view = json!({
                "op": "range",
                "range": query.span.show(|end| history.symbols().whole(end)),
                "rows": rows.map(row).collect::<Vec<Value>>(),
            });
            if query.shows_deleted {
                view["deleted"] = deleted.map(row).collect();
            }
            view
        }
    }
}
