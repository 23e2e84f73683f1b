//! Writes counterexamples as JSON.

use kingsnake_history::model::History;
use kingsnake_history::promise::Promise;
use kingsnake_history::verdict::{
    Counterexample, Fact, Finding, Moment, Point, Proof, Split, Step, StepReason,
};
use kingsnake_tell::local_name;
use serde_json::{Value, json};

use crate::level::level_view;
use crate::names::{token, txn_name};
use crate::recorded::refutation_view;

/// The text of a counterexample: the part of the document of `kingsnake check --json` that is checked again.
pub fn counterexample(
    history: &History,
    promise: &Promise,
    counterexample: &Counterexample,
) -> String {
    let document = json!({
        "verdict": "violated",
        "level": level_view(promise, promise.name()),
        "counterexample": counterexample_view(history, counterexample),
    });
    format!("{document:#}\n")
}

/// A counterexample as JSON.
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
            json!({"kind": "local", "findings": findings_view(history, findings)})
        }
        Counterexample::Recorded(refutation) => {
            json!({"kind": "recorded", "refutation": refutation_view(history, refutation)})
        }
    }
}

pub(crate) fn findings_view(history: &History, findings: &[Finding]) -> Vec<Value> {
    let view = |finding: &Finding| {
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
    };
    findings.iter().map(view).collect()
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
