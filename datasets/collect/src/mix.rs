//! A mix from a TOML file: transactions with weights, each a list of operations on variables that stand for different
//! keys.
//!
//! ```toml
//! [[transaction]]
//! weight = 3
//! ops = ["read a", "read b", "write a"]
//! ```

use std::path::{Path, PathBuf};

use kingsnake_datasets::store::TxnStep;
use kingsnake_datasets::workloads::WorkloadKind;
use kingsnake_history::rng::Rng;
use serde::Deserialize;
use thiserror::Error;

use crate::adapter::Key;

/// Transactions of a file, each with a weight.
pub(crate) struct Mix {
    pub(crate) kind: WorkloadKind,
    /// The most different keys that a transaction needs.
    pub(crate) n_variables: usize,
    transactions: Vec<(usize, Vec<(MixVerb, usize)>)>,
    weight: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MixVerb {
    Read,
    Write,
    List,
    Append,
    Range,
    Insert,
}

/// Why a file is no workload.
#[derive(Debug, Error)]
pub enum BadMix {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// It is not of the expected form.
    #[error("{path}: {problem}")]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to write instead.
        problem: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    transaction: Vec<RawTransaction>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTransaction {
    #[serde(default = "one")]
    weight: usize,
    ops: Vec<String>,
}

fn one() -> usize {
    1
}

/// The most bytes of a mix.
const MOST_MIX: u64 = 16 << 20;

pub(crate) fn read(path: &str) -> Result<Mix, BadMix> {
    let path = Path::new(path);
    let text =
        kingsnake_datasets::bounded::read_text(path, MOST_MIX).map_err(|error| BadMix::Io {
            path: path.to_owned(),
            error,
        })?;
    parse(&text).map_err(|problem| BadMix::Form {
        path: path.to_owned(),
        problem,
    })
}

fn parse(text: &str) -> Result<Mix, String> {
    let raw: Raw = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut mix = Mix {
        kind: WorkloadKind::Registers,
        n_variables: 1,
        transactions: Vec::new(),
        weight: 0,
    };
    let mut kind = None;
    for transaction in raw.transaction {
        let mut variables: Vec<&str> = Vec::new();
        let mut ops = Vec::new();
        for op in &transaction.ops {
            let (verb, of, name) = parse_op(op)?;
            if *kind.get_or_insert(of) != of {
                return Err(format!(
                    "{op:?}: a workload is of registers (read, write), of lists (list, append) or of rows (range, insert), not of several"
                ));
            }
            let place = variables.iter().position(|it| *it == name);
            ops.push((verb, place.unwrap_or(variables.len())));
            if place.is_none() {
                variables.push(name);
            }
        }
        mix.n_variables = mix.n_variables.max(variables.len());
        mix.weight += transaction.weight;
        mix.transactions.push((transaction.weight, ops));
    }
    if mix.weight == 0 {
        return Err("no [[transaction]] has a weight above 0".to_owned());
    }
    mix.kind = kind.unwrap_or(WorkloadKind::Registers);
    Ok(mix)
}

fn parse_op(op: &str) -> Result<(MixVerb, WorkloadKind, &str), String> {
    let expected = || {
        format!(
            "{op:?} is no operation; write `read a`, `write a`, `list a`, `append a`, `range a` or `insert a`, where a is any name"
        )
    };
    let (verb, name) = op.trim().split_once(' ').ok_or_else(expected)?;
    let (verb, kind) = match verb {
        "read" => (MixVerb::Read, WorkloadKind::Registers),
        "write" => (MixVerb::Write, WorkloadKind::Registers),
        "list" => (MixVerb::List, WorkloadKind::Lists),
        "append" => (MixVerb::Append, WorkloadKind::Lists),
        "range" => (MixVerb::Range, WorkloadKind::Rows),
        "insert" => (MixVerb::Insert, WorkloadKind::Rows),
        _ => return Err(expected()),
    };
    Ok((verb, kind, name.trim()))
}

impl Mix {
    /// One transaction's steps, on different keys among this many.
    pub(crate) fn steps(&self, keys: usize, rng: &mut Rng) -> Vec<TxnStep> {
        let mut drawn = rng.below(self.weight);
        let mut ops: &[(MixVerb, usize)] = &[];
        for (weight, these) in &self.transactions {
            ops = these;
            if drawn < *weight {
                break;
            }
            drawn -= weight;
        }
        let mut chosen: Vec<Key> = Vec::new();
        while chosen.len() < self.n_variables {
            let key = rng.below(keys) as Key;
            if !chosen.contains(&key) {
                chosen.push(key);
            }
        }
        let step = |&(verb, variable): &(MixVerb, usize)| {
            let key = chosen[variable];
            match verb {
                MixVerb::Read => TxnStep::Read(key),
                MixVerb::Write => TxnStep::Write(key, 0),
                MixVerb::List => TxnStep::ReadList(key),
                MixVerb::Append => TxnStep::Append(key),
                MixVerb::Range => TxnStep::Range(key, key + 8),
                MixVerb::Insert => TxnStep::Insert(key),
            }
        };
        ops.iter().map(step).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_stand_for_different_keys() {
        let text = "[[transaction]]\nops = ['read a', 'read b', 'write a']";
        let mix = parse(text).unwrap();
        let mut rng = Rng::new(1);
        for _ in 0..100 {
            let steps = mix.steps(2, &mut rng);
            let [TxnStep::Read(a), TxnStep::Read(b), TxnStep::Write(c, 0)] = steps[..] else {
                panic!("{steps:?}");
            };
            assert!(a != b && a == c);
        }
    }

    #[test]
    fn a_word_that_is_no_operation_is_refused_with_what_to_write() {
        let error = parse("[[transaction]]\nops = ['update a']").err().unwrap();
        assert!(error.contains("write `read a`"), "{error}");
        let error = parse("[[transaction]]\nops = ['read a', 'append b']")
            .err()
            .unwrap();
        assert!(error.contains("not of several"), "{error}");
    }
}
