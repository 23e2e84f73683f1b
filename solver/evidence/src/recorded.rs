//! The refutation of a recorded certificate or an expected order, as JSON.
//!
//! A version has its `key`, its `value` and its `number` among all values of the history, which identifies it: a delete
//! and a value may share a name.

use kingsnake_history::adya::{
    AdyaStep, Dependency, DependencyReason, Difference, Disagreement, Mismatch, Mismatched,
    Phenomenon, Refutation,
};
use kingsnake_history::model::{History, ValueId};
use kingsnake_history::verdict::Finding;
use kingsnake_tell::RecordedWords;
use serde_json::{Value, json};

use crate::names::{NameReader, field, list, number, small_number, token, txn_name, word};
use crate::view::findings_view;
use crate::{Read, wrong};

/// The names of the phenomena and of the steps that only the times give.
const START: &str = "start";
const PHENOMENA: [Phenomenon; 7] = [
    Phenomenon::G0,
    Phenomenon::G1c,
    Phenomenon::GSingle,
    Phenomenon::G2Item,
    Phenomenon::GSia,
    Phenomenon::GSib,
    Phenomenon::G2,
];

pub(crate) fn refutation_view(history: &History, why: &Refutation) -> Value {
    match why {
        Refutation::Findings(found) => {
            json!({ "kind": "findings", "findings": findings_view(history, found) })
        }
        Refutation::Mismatches(found) => {
            let found = found.iter().map(|it| mismatch_view(history, it));
            json!({ "kind": "mismatches", "mismatches": found.collect::<Vec<_>>() })
        }
        Refutation::Cycle(phenomenon, steps) => {
            let steps = steps.iter().map(|step| step_view(history, step));
            json!({
                "kind": "cycle",
                "phenomenon": phenomenon.name(),
                "steps": steps.collect::<Vec<_>>(),
            })
        }
        Refutation::Order { order, found } => {
            let order = order.iter().map(|&txn| txn_name(history, txn));
            json!({
                "kind": "order",
                "order": order.collect::<Vec<_>>(),
                "operation": found.op,
                "difference": mismatched_view(history, &found.what),
            })
        }
    }
}

fn version(history: &History, value: ValueId) -> Value {
    json!({
        "key": token(history, history.key_token(history.value_key(value))),
        "value": token(history, history.value_token(value)),
        "number": value.0,
    })
}

fn mismatch_view(history: &History, found: &Mismatch) -> Value {
    let version = |value| version(history, value);
    let difference = match found.what {
        Difference::Missing(value) => json!({ "kind": "missing", "version": version(value) }),
        Difference::Extra(key, value) => json!({
            "kind": "extra",
            "key": token(history, history.key_token(key)),
            "version": value.map(version),
        }),
        Difference::Other { returned, visible } => json!({
            "kind": "other",
            "returned": version(returned),
            "visible": version(visible),
        }),
        Difference::Aggregate(expected) => {
            json!({ "kind": "aggregate", "expected": token(history, expected) })
        }
    };
    json!({
        "transaction": txn_name(history, found.txn),
        "predicate": found.predicate,
        "difference": difference,
        "words": RecordedWords::new(history).mismatch(found),
    })
}

fn step_view(history: &History, step: &AdyaStep) -> Value {
    let because = step.because.as_ref();
    let version = |value| version(history, value);
    json!({
        "from": txn_name(history, step.from),
        "to": txn_name(history, step.to),
        "dependency": because.map_or(START, |it| it.dependency.name()),
        "key": because.map(|it| token(history, history.key_token(it.key))),
        "seen": because.and_then(|it| it.seen).map(version),
        "installed": because.map(|it| version(it.installed)),
        "predicate": because.and_then(|it| it.predicate),
        "words": RecordedWords::new(history).step(step),
    })
}

fn mismatched_view(history: &History, what: &Mismatched) -> Value {
    let version = |value| version(history, value);
    let name = |key| token(history, history.key_token(key));
    match *what {
        Mismatched::Read {
            key,
            read,
            expected,
        } => json!({
            "kind": "read",
            "key": name(key),
            "returned": version(read),
            "expected": expected.map(version),
        }),
        Mismatched::List {
            key,
            n_agree,
            n_expected,
        } => json!({ "kind": "list", "key": name(key), "agree": n_agree, "expected": n_expected }),
        Mismatched::Row {
            key,
            returned,
            expected,
        } => json!({
            "kind": "row",
            "key": name(key),
            "returned": returned.map(version),
            "expected": expected.map(version),
        }),
        Mismatched::Predicate(ref found) => {
            json!({ "kind": "predicate", "mismatch": mismatch_view(history, found) })
        }
    }
}

/// Reads a refutation; `findings` reads those of a value.
pub(crate) fn read_refutation(
    names: &NameReader<'_>,
    value: &Value,
    findings: &dyn Fn(&Value) -> Read<Vec<Finding>>,
) -> Read<Refutation> {
    match word(value, "kind")? {
        "findings" => Ok(Refutation::Findings(findings(value)?)),
        "mismatches" => {
            let found = list(value, "mismatches")?.iter();
            let found = found.map(|it| mismatch(names, it));
            Ok(Refutation::Mismatches(found.collect::<Read<_>>()?))
        }
        "cycle" => {
            let name = word(value, "phenomenon")?;
            let phenomenon = PHENOMENA.into_iter().find(|it| it.name() == name);
            let phenomenon =
                phenomenon.ok_or_else(|| wrong(format!("there is no phenomenon {name:?}")))?;
            let steps = list(value, "steps")?.iter().map(|it| step(names, it));
            Ok(Refutation::Cycle(phenomenon, steps.collect::<Read<_>>()?))
        }
        "order" => {
            let order = names.txns(value, "order")?;
            let Some(&txn) = order.last() else {
                return Err(wrong("\"order\": expected transactions"));
            };
            let found = Disagreement {
                txn,
                place: order.len() - 1,
                op: number(value, "operation")?,
                what: mismatched(names, field(value, "difference")?)?,
            };
            Ok(Refutation::Order { order, found })
        }
        kind => Err(wrong(format!("there is no refutation of kind {kind:?}"))),
    }
}

fn read_version(names: &NameReader<'_>, value: &Value) -> Read<ValueId> {
    let number = small_number(value, "number")?;
    if number as usize >= names.history.n_values() {
        return Err(wrong(format!("the history has no version {number}")));
    }
    Ok(ValueId(number))
}

fn may_be_version(names: &NameReader<'_>, value: &Value, name: &str) -> Read<Option<ValueId>> {
    match field(value, name)? {
        Value::Null => Ok(None),
        it => read_version(names, it).map(Some),
    }
}

fn mismatch(names: &NameReader<'_>, value: &Value) -> Read<Mismatch> {
    let difference = field(value, "difference")?;
    let version = |name| read_version(names, field(difference, name)?);
    Ok(Mismatch {
        txn: names.txn(value, "transaction")?,
        predicate: small_number(value, "predicate")?,
        what: match word(difference, "kind")? {
            "missing" => Difference::Missing(version("version")?),
            "extra" => Difference::Extra(
                names.key(difference)?,
                may_be_version(names, difference, "version")?,
            ),
            "other" => Difference::Other {
                returned: version("returned")?,
                visible: version("visible")?,
            },
            "aggregate" => {
                let expected = names.token(field(difference, "expected")?);
                let expected = expected.ok_or_else(|| wrong("\"expected\": no such result"))?;
                Difference::Aggregate(expected)
            }
            kind => return Err(wrong(format!("there is no difference {kind:?}"))),
        },
    })
}

fn step(names: &NameReader<'_>, value: &Value) -> Read<AdyaStep> {
    let name = word(value, "dependency")?;
    let because = if name == START {
        None
    } else {
        let dependency = Dependency::ALL.into_iter().find(|it| it.name() == name);
        Some(DependencyReason {
            dependency: dependency
                .ok_or_else(|| wrong(format!("there is no dependency {name:?}")))?,
            key: names.key(value)?,
            seen: may_be_version(names, value, "seen")?,
            installed: read_version(names, field(value, "installed")?)?,
            predicate: match field(value, "predicate")? {
                Value::Null => None,
                _ => Some(small_number(value, "predicate")?),
            },
        })
    };
    Ok(AdyaStep {
        from: names.txn(value, "from")?,
        to: names.txn(value, "to")?,
        because,
    })
}

fn mismatched(names: &NameReader<'_>, value: &Value) -> Read<Mismatched> {
    Ok(match word(value, "kind")? {
        "read" => Mismatched::Read {
            key: names.key(value)?,
            read: read_version(names, field(value, "returned")?)?,
            expected: may_be_version(names, value, "expected")?,
        },
        "list" => Mismatched::List {
            key: names.key(value)?,
            n_agree: number(value, "agree")?,
            n_expected: number(value, "expected")?,
        },
        "row" => Mismatched::Row {
            key: names.key(value)?,
            returned: may_be_version(names, value, "returned")?,
            expected: may_be_version(names, value, "expected")?,
        },
        "predicate" => Mismatched::Predicate(mismatch(names, field(value, "mismatch")?)?),
        kind => return Err(wrong(format!("there is no disagreement {kind:?}"))),
    })
}
