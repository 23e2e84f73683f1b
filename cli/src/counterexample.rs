//! Reads the counterexample of a JSON document again (docs/json.md), so that `verify` can judge it by the history alone.
//!
//! Transactions, keys and values are found by their names. What is written here and what the history holds are compared by certify,
//! not by this reader; it only refuses what it cannot understand.

use anyhow::{Context, Result, bail};
use kingsnake_solver::level::{Level, RealTime, Snapshots, Spec, Times};
use kingsnake_solver::model::{History, KeyId, Op, Token, TxnId, ValueId};
use kingsnake_solver::verdict::{
    Counterexample, Fact, Finding, LocalAnomaly, Moment, Point, Proof, Step, StepReason, Stuck,
};
use kingsnake_tell::local_name;
use rustc_hash::FxHashMap;
use serde_json::Value;

/// The document of a violated verdict; `None` if this is no document, but perhaps a certificate.
pub fn document(bytes: &[u8]) -> Result<Option<Value>> {
    let document: Value = match serde_json::from_slice(bytes) {
        Ok(document) => document,
        Err(why) if why.to_string().starts_with("recursion limit") => {
            bail!("cases within cases, deeper than a JSON document is read: {why}")
        }
        Err(_) => return Ok(None),
    };
    let Some(verdict) = document.get("verdict") else {
        return Ok(None);
    };
    match verdict.as_str() {
        Some("violated") => Ok(Some(document)),
        Some("satisfied") => bail!(
            "the document says satisfied; the order that shows it is what `check --certificate FILE` writes"
        ),
        _ => bail!("the document says {verdict}; only \"violated\" can be judged again"),
    }
}

/// The level that a document is about.
pub fn level(document: &Value) -> Result<(Level, Spec)> {
    let level = &document["level"];
    let found: Level = word(level, "name")?.parse()?;
    let session_order = flag(level, "session_order")?;
    let mut spec = found.spec(None).context("no such level")?;
    spec.session_order = session_order;
    spec.real_time = if flag(level, "real_time")? {
        Some(real_time(level)?)
    } else {
        None
    };
    Ok((found, spec))
}

fn real_time(level: &Value) -> Result<RealTime> {
    let snapshots = word(level, "snapshots")?;
    let times = word(level, "times")?;
    let drift = level["clock_drift_ms"].as_f64().unwrap_or(0.0);
    let snapshots = [Snapshots::Older, Snapshots::Current]
        .into_iter()
        .find(|it| it.name() == snapshots);
    let times = [Times::Bounds, Times::Exact]
        .into_iter()
        .find(|it| it.name() == times);
    Ok(RealTime {
        snapshots: snapshots.context("\"snapshots\": no such word")?,
        times: times.context("\"times\": no such word")?,
        drift: (drift * 1e6).round() as u64,
    })
}

/// The field `name` of a value.
fn field<'v>(value: &'v Value, name: &str) -> Result<&'v Value> {
    value
        .get(name)
        .with_context(|| format!("a counterexample without \"{name}\""))
}

fn word<'v>(value: &'v Value, name: &str) -> Result<&'v str> {
    let found = field(value, name)?.as_str();
    found.with_context(|| format!("\"{name}\": expected a word"))
}

fn flag(value: &Value, name: &str) -> Result<bool> {
    let found = field(value, name)?.as_bool();
    found.with_context(|| format!("\"{name}\": expected true or false"))
}

fn number(value: &Value, name: &str) -> Result<usize> {
    let found = field(value, name)?.as_u64();
    let found = found.and_then(|it| usize::try_from(it).ok());
    found.with_context(|| format!("\"{name}\": expected a number from 0 on"))
}

fn list<'v>(value: &'v Value, name: &str) -> Result<&'v [Value]> {
    let found = field(value, name)?.as_array();
    let found = found.with_context(|| format!("\"{name}\": expected a list"))?;
    Ok(found)
}

/// The names of a history.
pub struct NameReader<'h> {
    history: &'h History,
    txns: FxHashMap<Token, TxnId>,
    keys: FxHashMap<Token, KeyId>,
}

impl<'h> NameReader<'h> {
    /// Of this history.
    pub fn new(history: &'h History) -> Self {
        let txns = history.txns().map(|txn| (history.txn_token(txn), txn));
        let keys = (0..history.n_keys() as u32).map(KeyId);
        NameReader {
            txns: txns.collect(),
            keys: keys.map(|key| (history.key_token(key), key)).collect(),
            history,
        }
    }

    fn token(&self, name: &Value) -> Option<Token> {
        match name {
            Value::Null => Some(Token::Nil),
            Value::Number(number) => number.as_i64().map(Token::Int),
            Value::String(text) => self.history.symbols().find(text).map(Token::Text),
            _ => None,
        }
    }

    fn named_txn(&self, name: &Value) -> Result<TxnId> {
        let found = self.token(name).and_then(|token| self.txns.get(&token));
        found
            .copied()
            .with_context(|| format!("the history has no transaction {name}"))
    }

    fn txn(&self, value: &Value, field_name: &str) -> Result<TxnId> {
        self.named_txn(field(value, field_name)?)
    }

    /// A transaction, or `null` for the initial state.
    fn writer(&self, value: &Value, field_name: &str) -> Result<Option<TxnId>> {
        match field(value, field_name)? {
            Value::Null => Ok(None),
            name => self.named_txn(name).map(Some),
        }
    }

    fn named_key(&self, name: &Value) -> Result<KeyId> {
        let found = self.token(name).and_then(|token| self.keys.get(&token));
        found
            .copied()
            .with_context(|| format!("the history has no key {name}"))
    }

    fn key(&self, value: &Value) -> Result<KeyId> {
        self.named_key(field(value, "key")?)
    }

    /// The counterexample.
    pub fn counterexample(&self, value: &Value) -> Result<Counterexample> {
        match word(value, "kind")? {
            "local" => Ok(Counterexample::Local(self.findings(value)?)),
            "either way" => {
                let case = |name| self.counterexample(field(value, name)?);
                Ok(Counterexample::EitherWay {
                    txn: self.txn(value, "transaction")?,
                    lost: Box::new(case("lost")?),
                    took_effect: Box::new(case("took_effect")?),
                })
            }
            "stuck" => {
                let key = self.key(value)?;
                let concurrent = list(value, "concurrent")?.iter();
                let concurrent = concurrent.map(|name| self.named_txn(name));
                Ok(Counterexample::Stuck(Stuck {
                    key,
                    last: self.txn(value, "transaction")?,
                    // Who judges it finds these again.
                    possible: Vec::new(),
                    concurrent: concurrent.collect::<Result<_>>()?,
                }))
            }
            _ => Ok(Counterexample::Cyclic(self.proof(value)?)),
        }
    }

    fn findings(&self, value: &Value) -> Result<Vec<Finding>> {
        let findings = list(value, "findings")?.iter();
        findings.map(|finding| self.finding(finding)).collect()
    }

    fn finding(&self, value: &Value) -> Result<Finding> {
        let name = word(value, "anomaly")?;
        let mut all = LocalAnomaly::ALL.into_iter();
        let anomaly = all.find(|&it| local_name(it).short == name);
        let other = match field(value, "other")? {
            Value::Null => None,
            other => Some((self.txn(other, "transaction")?, number(other, "operation")?)),
        };
        Ok(Finding {
            anomaly: anomaly.with_context(|| format!("there is no anomaly {name:?}"))?,
            txn: self.txn(value, "transaction")?,
            op: number(value, "operation")?,
            key: self.key(value)?,
            other,
        })
    }

    fn proof(&self, value: &Value) -> Result<Proof> {
        let inner = |value: &Value| self.proof(value);
        Ok(match word(value, "kind")? {
            "cycle" => {
                let steps = list(value, "steps")?.iter().map(|step| self.step(step));
                Proof::Cycle(steps.collect::<Result<_>>()?)
            }
            "split" => Proof::Split {
                key: self.key(value)?,
                one: self.txn(value, "one")?,
                other: self.txn(value, "other")?,
                one_first: Box::new(inner(field(value, "one_first")?)?),
                other_first: Box::new(inner(field(value, "other_first")?)?),
            },
            "choice" => {
                let case = |case: &Value| {
                    let proof = inner(field(case, "proof")?)?;
                    Ok((self.writer(case, "writer")?, proof))
                };
                let op = value.get("operation");
                Proof::Choice {
                    reader: self.txn(value, "reader")?,
                    op: op.map(|_| number(value, "operation")).transpose()?,
                    key: self.key(value)?,
                    cases: list(value, "cases")?
                        .iter()
                        .map(case)
                        .collect::<Result<_>>()?,
                }
            }
            "aggregate" => {
                let ruled_out = |case: &Value| {
                    let proof = inner(field(case, "proof")?)?;
                    Ok((self.key(case)?, self.writer(case, "writer")?, proof))
                };
                Proof::Aggregate {
                    reader: self.txn(value, "reader")?,
                    nth: number(value, "predicate")?,
                    ruled_out: list(value, "ruled_out")?
                        .iter()
                        .map(ruled_out)
                        .collect::<Result<_>>()?,
                }
            }
            kind => bail!("a counterexample of kind {kind:?} cannot be judged again"),
        })
    }

    fn point(&self, value: &Value) -> Result<Point> {
        let moment = match word(value, "moment")? {
            "whole" => Moment::Whole,
            "begin" => Moment::Begin,
            "commit" => Moment::Commit,
            other => bail!("\"moment\": {other:?}; expected \"whole\", \"begin\" or \"commit\""),
        };
        let txn = self.txn(value, "transaction")?;
        Ok(Point { txn, moment })
    }

    fn step(&self, value: &Value) -> Result<Step> {
        let (from, to) = (
            self.point(field(value, "from")?)?,
            self.point(field(value, "to")?)?,
        );
        let key = || self.key(value);
        let reason = match word(value, "reason")? {
            "begin" => StepReason::Begin,
            "so" => StepReason::Session,
            "rt" => StepReason::RealTime,
            "given" => StepReason::Stated { edge: edge(value)? },
            "wr" => {
                let (key, name) = (key()?, field(value, "value")?);
                StepReason::Wr {
                    key,
                    value: self.value(key, name, from.txn, to.txn)?,
                }
            }
            "ww" => StepReason::Ww {
                key: key()?,
                fact: fact(value)?,
            },
            "rw" => StepReason::Rw {
                key: key()?,
                writer: self.writer(value, "writer")?,
                fact: fact(value)?,
            },
            "vis" => StepReason::Vis {
                reader: self.txn(value, "reader")?,
                key: key()?,
            },
            other => bail!("there is no reason {other:?}"),
        };
        Ok(Step { from, to, reason })
    }

    /// What `to` read of `from` by this name. A delete's name may be a value's too, so one that both have is preferred.
    fn value(&self, key: KeyId, name: &Value, from: TxnId, to: TxnId) -> Result<ValueId> {
        let history = self.history;
        let token = self.token(name);
        let is_named = |value: ValueId| {
            history.value_key(value) == key && Some(history.value_token(value)) == token
        };
        let written = history.ops(from).iter().filter_map(|op| match *op {
            Op::Write { value, .. } | Op::Append { value, .. } => Some(value),
            _ => None,
        });
        let written: Vec<ValueId> = written.filter(|&it| is_named(it)).collect();
        let is_read = |value: &&ValueId| {
            let reads = |op: &Op| matches!(op, Op::Read { value: it, .. } if it == *value);
            history.ops(to).iter().any(reads)
        };
        let found = written.iter().find(is_read).or(written.first());
        found.copied().with_context(|| {
            let (txn, key) = (history.txn_name(from), history.key_name(key));
            format!("transaction {txn} does not write {name} to key {key}")
        })
    }
}

fn edge(value: &Value) -> Result<u32> {
    u32::try_from(number(value, "edge")?).context("\"edge\": too large")
}

fn fact(value: &Value) -> Result<Fact> {
    Ok(match word(value, "because")? {
        "initial" => Fact::Initial,
        "run" => Fact::Run,
        "given" => Fact::Given,
        "assumed" => Fact::Assumed,
        other => bail!("\"because\": there is no fact {other:?}"),
    })
}
