//! Reads the counterexample of a JSON document (docs/json.md).
//!
//! Transactions, keys and values are found by name. Certify compares the claims with the history; this reader only
//! refuses what it cannot parse.

use kingsnake_history::verdict::{
    Counterexample, Fact, Finding, LocalAnomaly, Moment, Point, Proof, Step, StepReason, Stuck,
};
use kingsnake_tell::local_name;
use serde_json::Value;

use crate::names::{NameReader, field, list, number, small_number, word};
use crate::recorded::read_refutation;
use crate::{Read, wrong};

/// The counterexample in a JSON value.
pub(crate) fn read_counterexample(names: &NameReader<'_>, value: &Value) -> Read<Counterexample> {
    ProofReader { names }.counterexample(value)
}

struct ProofReader<'n, 'h> {
    names: &'n NameReader<'h>,
}

impl ProofReader<'_, '_> {
    fn counterexample(&self, value: &Value) -> Read<Counterexample> {
        match word(value, "kind")? {
            "local" => Ok(Counterexample::Local(self.findings(value)?)),
            "either way" => {
                let case = |name| self.counterexample(field(value, name)?);
                Ok(Counterexample::EitherWay {
                    txn: self.names.txn(value, "transaction")?,
                    lost: Box::new(case("lost")?),
                    took_effect: Box::new(case("took_effect")?),
                })
            }
            "stuck" => Ok(Counterexample::Stuck(Stuck {
                key: self.names.key(value)?,
                last: self.names.txn(value, "transaction")?,
                // The checker computes these again.
                possible: Vec::new(),
                concurrent: self.names.txns(value, "concurrent")?,
            })),
            "recorded" => Ok(Counterexample::Recorded(read_refutation(
                self.names,
                field(value, "refutation")?,
                &|it| self.findings(it),
            )?)),
            _ => Ok(Counterexample::Cyclic(self.proof(value)?)),
        }
    }

    fn findings(&self, value: &Value) -> Read<Vec<Finding>> {
        let findings = list(value, "findings")?.iter();
        findings.map(|finding| self.finding(finding)).collect()
    }

    fn finding(&self, value: &Value) -> Read<Finding> {
        let name = word(value, "anomaly")?;
        let mut all = LocalAnomaly::ALL.into_iter();
        let anomaly = all.find(|&it| local_name(it).short == name);
        let other = match field(value, "other")? {
            Value::Null => None,
            other => Some((
                self.names.txn(other, "transaction")?,
                number(other, "operation")?,
            )),
        };
        Ok(Finding {
            anomaly: anomaly.ok_or_else(|| wrong(format!("there is no anomaly {name:?}")))?,
            txn: self.names.txn(value, "transaction")?,
            op: number(value, "operation")?,
            key: self.names.key(value)?,
            other,
        })
    }

    fn proof(&self, value: &Value) -> Read<Proof> {
        let inner = |value: &Value| self.proof(value);
        Ok(match word(value, "kind")? {
            "cycle" => {
                let steps = list(value, "steps")?.iter().map(|step| self.step(step));
                Proof::Cycle(steps.collect::<Read<_>>()?)
            }
            "split" => Proof::Split {
                key: self.names.key(value)?,
                one: self.names.txn(value, "one")?,
                other: self.names.txn(value, "other")?,
                one_first: Box::new(inner(field(value, "one_first")?)?),
                other_first: Box::new(inner(field(value, "other_first")?)?),
            },
            "choice" => {
                let case = |case: &Value| {
                    let proof = inner(field(case, "proof")?)?;
                    Ok((self.names.writer(case, "writer")?, proof))
                };
                let op = value.get("operation");
                Proof::Choice {
                    reader: self.names.txn(value, "reader")?,
                    op: op.map(|_| number(value, "operation")).transpose()?,
                    key: self.names.key(value)?,
                    cases: list(value, "cases")?
                        .iter()
                        .map(case)
                        .collect::<Read<_>>()?,
                }
            }
            "aggregate" => {
                let ruled_out = |case: &Value| {
                    let proof = inner(field(case, "proof")?)?;
                    Ok((
                        self.names.key(case)?,
                        self.names.writer(case, "writer")?,
                        proof,
                    ))
                };
                Proof::Aggregate {
                    reader: self.names.txn(value, "reader")?,
                    nth: number(value, "predicate")?,
                    ruled_out: list(value, "ruled_out")?
                        .iter()
                        .map(ruled_out)
                        .collect::<Read<_>>()?,
                }
            }
            kind => {
                return Err(wrong(format!(
                    "a counterexample of kind {kind:?} cannot be judged again"
                )));
            }
        })
    }

    fn point(&self, value: &Value) -> Read<Point> {
        let moment = match word(value, "moment")? {
            "whole" => Moment::Whole,
            "begin" => Moment::Begin,
            "commit" => Moment::Commit,
            other => {
                return Err(wrong(format!(
                    "\"moment\": {other:?}; expected \"whole\", \"begin\" or \"commit\""
                )));
            }
        };
        let txn = self.names.txn(value, "transaction")?;
        Ok(Point { txn, moment })
    }

    fn step(&self, value: &Value) -> Read<Step> {
        let (from, to) = (
            self.point(field(value, "from")?)?,
            self.point(field(value, "to")?)?,
        );
        let key = || self.names.key(value);
        let reason = match word(value, "reason")? {
            "begin" => StepReason::Begin,
            "so" => StepReason::Session,
            "rt" => StepReason::RealTime,
            "given" => StepReason::Stated {
                edge: small_number(value, "edge")?,
            },
            "wr" => {
                let (key, name) = (key()?, field(value, "value")?);
                StepReason::Wr {
                    key,
                    value: self.names.read_value(key, name, from.txn, to.txn)?,
                }
            }
            "ww" => StepReason::Ww {
                key: key()?,
                fact: fact(value)?,
            },
            "rw" => StepReason::Rw {
                key: key()?,
                writer: self.names.writer(value, "writer")?,
                fact: fact(value)?,
            },
            "vis" => StepReason::Vis {
                reader: self.names.txn(value, "reader")?,
                key: key()?,
            },
            other => return Err(wrong(format!("there is no reason {other:?}"))),
        };
        Ok(Step { from, to, reason })
    }
}

fn fact(value: &Value) -> Read<Fact> {
    Ok(match word(value, "because")? {
        "initial" => Fact::Initial,
        "run" => Fact::Run,
        "given" => Fact::Given,
        "assumed" => Fact::Assumed,
        other => return Err(wrong(format!("\"because\": there is no fact {other:?}"))),
    })
}
