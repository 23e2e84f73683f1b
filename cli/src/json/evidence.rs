//! Counterexamples and transactions as JSON.

use kingsnake_solver::model::{History, Op, Status, Token, TxnId, ValueId};
use kingsnake_solver::verdict::{
    Counterexample, Fact, Moment, Point, Proof, Split, Step, StepReason,
};
use kingsnake_tell::local_name;
use serde::Serialize;
use serde_json::{Value, json};

use crate::answer::status_word;

#[derive(Debug, Serialize)]
pub(super) struct TxnView {
    name: Value,
    session: Value,
    /// Counted from 0.
    position: usize,
    status: &'static str,
    /// What a collector noted beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    isolation: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    database_name: Option<Value>,
    operations: Vec<Value>,
}

/// A name as its producer wrote it: a number, a text, or null.
pub fn token(history: &History, token: Token) -> Value {
    match token {
        Token::Nil => Value::Null,
        Token::Int(number) => number.into(),
        Token::Text(symbol) => history.symbols().text(symbol).into(),
    }
}

fn txn_name(history: &History, txn: TxnId) -> Value {
    token(history, history.txn_token(txn))
}

/// How many transactions had committed when the last of these did; nothing without times.
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

pub(super) fn txn_view(history: &History, txn: TxnId) -> TxnView {
    let note = history.note(txn);
    let noted = |it: Token| (it != Token::Nil).then(|| token(history, it));
    TxnView {
        name: txn_name(history, txn),
        session: token(history, history.session_token(history.session(txn))),
        position: history.session_position(txn),
        status: status_word(history.status(txn)),
        isolation: history.isolation(txn).map(|it| token(history, it)),
        node: noted(note.node),
        database_name: noted(note.name).or(history.stamps(txn).xid.map(Value::from)),
        operations: history
            .ops(txn)
            .iter()
            .enumerate()
            .map(|(at, &op)| op_view(history, op, history.is_insert(txn, at)))
            .collect(),
    }
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

pub fn counterexample_view(history: &History, counterexample: &Counterexample) -> Value {
    match counterexample {
        Counterexample::Cyclic(proof) => proof_view(history, proof),
        Counterexample::EitherWay {
            txn,
            lost,
            took_effect,
        } => json!({
            "kind": "either way",
            "transaction": txn_name(history, *txn),
            "lost": counterexample_view(history, lost),
            "took_effect": counterexample_view(history, took_effect),
        }),
        Counterexample::Stuck(stuck) => json!({
            "kind": "stuck",
            "key": token(history, history.key_token(stuck.key)),
            "transaction": txn_name(history, stuck.last),
            "possible": stuck.possible.iter().map(|state| match state {
                None => json!("initial"),
                Some(value) => json!([token(history, history.value_token(*value))]),
            }).collect::<Vec<Value>>(),
            "concurrent": stuck.concurrent.iter().map(|&txn| txn_name(history, txn)).collect::<Vec<Value>>(),
        }),
        Counterexample::Local(findings) => {
            let findings: Vec<Value> = findings
                .iter()
                .map(|finding| {
                    json!({
                        "anomaly": local_name(finding.anomaly).short,
                        "transaction": txn_name(history, finding.txn),
                        "operation": finding.op,
                        "key": token(history, history.key_token(finding.key)),
                        "other": finding.other.map(|(txn, op)| json!({
                            "transaction": txn_name(history, txn),
                            "operation": op,
                        })),
                    })
                })
                .collect();
            json!({"kind": "local", "findings": findings})
        }
    }
}

fn proof_view(history: &History, proof: &Proof) -> Value {
    proof.fold(
        |steps| {
            let steps: Vec<Value> = steps.iter().map(|step| step_view(history, step)).collect();
            json!({"kind": "cycle", "steps": steps})
        },
        |Split { key, one, other }, one_first, other_first| {
            json!({
                "kind": "split",
                "key": token(history, history.key_token(key)),
                "one": txn_name(history, one),
                "other": txn_name(history, other),
                "one_first": one_first,
                "other_first": other_first,
            })
        },
        |reader, op, key, cases| {
            let cases: Vec<Value> = cases
                .into_iter()
                .map(|(writer, proof)| {
                    let writer = writer.map(|txn| txn_name(history, txn));
                    json!({"writer": writer, "proof": proof})
                })
                .collect();
            let mut choice = json!({
                "kind": "choice",
                "reader": txn_name(history, reader),
                "key": token(history, history.key_token(key)),
                "cases": cases,
            });
            if let Some(op) = op {
                choice["operation"] = json!(op);
            }
            choice
        },
        |reader, nth, ruled_out| {
            let ruled_out: Vec<Value> = ruled_out
                .into_iter()
                .map(|(key, writer, proof)| {
                    let key = token(history, history.key_token(key));
                    let writer = writer.map(|txn| txn_name(history, txn));
                    json!({"key": key, "writer": writer, "proof": proof})
                })
                .collect();
            json!({
                "kind": "aggregate",
                "reader": txn_name(history, reader),
                "predicate": nth,
                "ruled_out": ruled_out,
            })
        },
    )
}

fn step_view(history: &History, step: &Step) -> Value {
    let mut view =
        json!({"from": point_view(history, step.from), "to": point_view(history, step.to)});
    let key = |key| token(history, history.key_token(key));
    let more = match step.reason {
        StepReason::Begin => json!({"reason": "begin"}),
        StepReason::Session => json!({"reason": "so"}),
        StepReason::RealTime => json!({"reason": "rt"}),
        StepReason::Stated { edge } => json!({
            "reason": "given",
            "edge": edge,
            "name": history.given_edges().get(edge as usize).map(|it| &it.name),
        }),
        StepReason::Wr { key: of, value } => json!({
            "reason": "wr",
            "key": key(of),
            "value": token(history, history.value_token(value)),
        }),
        StepReason::Ww { key: of, fact } => {
            json!({"reason": "ww", "key": key(of), "because": fact_word(fact)})
        }
        StepReason::Vis { reader, key: of } => json!({
            "reason": "vis",
            "key": key(of),
            "reader": txn_name(history, reader),
        }),
        StepReason::Rw {
            key: of,
            writer,
            fact,
        } => json!({
            "reason": "rw",
            "key": key(of),
            "writer": writer.map(|txn| txn_name(history, txn)),
            "because": fact_word(fact),
        }),
    };
    if let (Some(view), Value::Object(more)) = (view.as_object_mut(), more) {
        view.extend(more);
    }
    view
}

fn point_view(history: &History, point: Point) -> Value {
    let moment = match point.moment {
        Moment::Whole => "whole",
        Moment::Begin => "begin",
        Moment::Commit => "commit",
    };
    json!({"transaction": txn_name(history, point.txn), "moment": moment})
}

fn fact_word(fact: Fact) -> &'static str {
    match fact {
        Fact::Initial => "initial",
        Fact::Run => "run",
        Fact::Given => "given",
        Fact::Assumed => "assumed",
    }
}
