//! The evidence of a weak level as JSON: cycles of commits, cases, sources; and the whole counterexample, which `verify` reads again.

use kingsnake_solver::model::{History, KeyId, TxnId};
use kingsnake_solver::verdict::Counterexample;
use kingsnake_solver::weak::{
    CommitReason, CommitStep, OperationSource, PathStep, VisibilityReason, WeakVerdict,
};
use serde_json::{Value, json};

use crate::json::{counterexample_view, token};

/// A cycle as an array; cases as an object.
pub(super) fn evidence_json(history: &History, verdict: &WeakVerdict) -> Value {
    match verdict {
        WeakVerdict::Cycle(steps) => steps.iter().map(|step| step_json(history, step)).collect(),
        WeakVerdict::Choice {
            reader,
            op,
            key,
            cases,
        } => {
            let case = |(source, case): &(Option<TxnId>, WeakVerdict)| {
                json!({
                    "writer": source.map(|it| history.txn_name(it)),
                    "because": evidence_json(history, case),
                })
            };
            json!({
                "reader": history.txn_name(*reader),
                "operation": op,
                "key": history.key_name(*key),
                "cases": cases.iter().map(case).collect::<Vec<Value>>(),
            })
        }
        WeakVerdict::Aggregate { reader, nth } => json!({
            "reader": history.txn_name(*reader),
            "aggregate": nth,
        }),
        WeakVerdict::EitherWay {
            txn,
            lost,
            took_effect,
        } => json!({
            "transaction": history.txn_name(*txn),
            "lost": evidence_json(history, lost),
            "took_effect": evidence_json(history, took_effect),
        }),
        _ => Value::Null,
    }
}

pub(super) fn source_json(history: &History, source: &OperationSource) -> Value {
    json!({
        "reader": history.txn_name(source.reader),
        "operation": source.op,
        "key": history.key_name(source.key),
        "writer": source.writer.map(|it| history.txn_name(it)),
    })
}

fn step_json(history: &History, step: &CommitStep) -> Value {
    let txn = |txn: TxnId| history.txn_name(txn);
    let key = |key: KeyId| history.key_name(key);
    let reason = match &step.reason {
        CommitReason::Session => json!({"reason": "so"}),
        CommitReason::Stated(edge) => json!({
            "reason": "given",
            "name": history.given_edges().get(*edge as usize).map(|it| &it.name),
        }),
        CommitReason::Wr(it) => json!({"reason": "wr", "key": key(*it)}),
        CommitReason::Given(it) => json!({"reason": "ww", "key": key(*it)}),
        CommitReason::Vis {
            reader,
            key: it,
            because,
        } => json!({
            "reason": "vis",
            "reader": txn(*reader),
            "key": key(*it),
            "because": match because {
                VisibilityReason::EarlierRead(via) => json!({"earlier_read": key(*via)}),
                VisibilityReason::Source(via) => json!({"source": key(*via)}),
                VisibilityReason::Session => json!("session"),
                VisibilityReason::Path(path) => path.iter().map(|step| json!({
                    "from": txn(step.from),
                    "to": txn(step.to),
                    "key": step.key.map(key),
                })).collect(),
            },
        }),
    };
    let mut value = json!({"from": txn(step.from), "to": step.to.map(txn)});
    if let (Some(value), Value::Object(reason)) = (value.as_object_mut(), reason) {
        value.extend(reason);
    }
    value
}

/// The counterexample with the names as the history has them, of the kinds that docs/json.md lists; `None` without a violation.
pub(super) fn counterexample_json(history: &History, verdict: &WeakVerdict) -> Option<Value> {
    let txn = |txn: TxnId| token(history, history.txn_token(txn));
    let key = |key: KeyId| token(history, history.key_token(key));
    Some(match verdict {
        WeakVerdict::Satisfied(..) | WeakVerdict::Unknown(_) => return None,
        WeakVerdict::Local(findings) => {
            counterexample_view(history, &Counterexample::Local(findings.clone()))
        }
        WeakVerdict::Cycle(steps) => {
            let steps = steps.iter().map(|step| exact_step(history, step));
            json!({"kind": "commits", "steps": steps.collect::<Vec<Value>>()})
        }
        WeakVerdict::Choice {
            reader,
            op,
            key: of,
            cases,
        } => {
            let case = |(writer, case): &(Option<TxnId>, WeakVerdict)| {
                let proof = counterexample_json(history, case);
                json!({"writer": writer.map(txn), "proof": proof})
            };
            json!({
                "kind": "choice",
                "reader": txn(*reader),
                "operation": op,
                "key": key(*of),
                "cases": cases.iter().map(case).collect::<Vec<Value>>(),
            })
        }
        WeakVerdict::Aggregate { reader, nth } => {
            json!({"kind": "aggregate", "reader": txn(*reader), "predicate": nth})
        }
        WeakVerdict::EitherWay {
            txn: of,
            lost,
            took_effect,
        } => json!({
            "kind": "either way",
            "transaction": txn(*of),
            "lost": counterexample_json(history, lost),
            "took_effect": counterexample_json(history, took_effect),
        }),
    })
}

fn exact_step(history: &History, step: &CommitStep) -> Value {
    let txn = |txn: TxnId| token(history, history.txn_token(txn));
    let key = |key: KeyId| token(history, history.key_token(key));
    let mut value = step_json(history, step);
    value["from"] = txn(step.from);
    value["to"] = step.to.map_or(Value::Null, txn);
    match &step.reason {
        CommitReason::Session => {}
        CommitReason::Stated(edge) => value["edge"] = json!(edge),
        CommitReason::Wr(it) | CommitReason::Given(it) => value["key"] = key(*it),
        CommitReason::Vis {
            reader,
            key: it,
            because,
        } => {
            value["reader"] = txn(*reader);
            value["key"] = key(*it);
            value["because"] = match because {
                VisibilityReason::EarlierRead(via) => json!({"earlier_read": key(*via)}),
                VisibilityReason::Source(via) => json!({"source": key(*via)}),
                VisibilityReason::Session => json!("session"),
                VisibilityReason::Path(path) => {
                    path.iter().map(|it| path_step(history, it)).collect()
                }
            };
        }
    }
    value
}

/// A step of what happened before; without a key it is of session order.
fn path_step(history: &History, step: &PathStep) -> Value {
    let txn = |txn: TxnId| token(history, history.txn_token(txn));
    let mut value = json!({"from": txn(step.from), "to": txn(step.to)});
    if let Some(key) = step.key {
        value["key"] = token(history, history.key_token(key));
    }
    value
}

/// Whose write of a key a transaction missed, where that is the reason of a step.
pub(super) fn missed_by(verdict: &WeakVerdict, missing: TxnId, missed: KeyId) -> Option<TxnId> {
    let WeakVerdict::Cycle(steps) = verdict else {
        return None;
    };
    let mut steps = steps.iter();
    let step = steps.find(|step| {
        matches!(step.reason, CommitReason::Vis { reader, key, .. } if (reader, key) == (missing, missed))
    });
    step.map(|it| it.from)
}
