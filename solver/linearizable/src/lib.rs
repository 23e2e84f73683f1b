//! Linearizability of registers: is there a moment between the start and the end of every operation such that the
//! operations, in the order of their moments, read and write as on one machine?
//!
//! Linearizability is local (Herlihy and Wing 1990), so every key is decided alone, keys in parallel: by `zones` where
//! every value is written once, else by `search`.

mod findings;
#[cfg(test)]
mod mutants;
mod operations;
mod prove;
mod rules;
mod search;
mod timeline;
mod zones;

use kingsnake_history::budget::{Budget, StopReason};
use kingsnake_history::model::{History, KeyId, TxnId};
use kingsnake_history::verdict::{Counterexample, Finding, Proof};
use rayon::prelude::*;

pub use operations::NotRegisters;

use operations::{Key, Operations};
use rules::{ExactRules, Rules};
use zones::Conflict;

/// What counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterOptions {
    /// How far clocks may disagree, in nanoseconds.
    pub drift: u64,
    /// Whether a refused compare-and-set says that the key did not hold what was expected. Knossos takes it to say nothing.
    pub refusals_count: bool,
}

/// The engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegisterEngine {
    /// Sorting, for keys whose values are written once.
    Zones,
    /// Search with a cache, for the others.
    Search,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterAnswer {
    /// The operations that took effect, in the order of their moments.
    Linearizable(Vec<TxnId>),
    /// Why there is no order.
    Violated(RegisterViolation),
    /// The budget ended first.
    Unknown(StopReason),
}

/// Why there is no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegisterViolation {
    /// Reads that cannot have happened.
    Local(Vec<Finding>),
    /// A cycle, or two cases that both end in one.
    Cyclic(Proof),
    /// The operation of this key that no order reaches: the earliest to end.
    Stuck(KeyId, TxnId),
}

impl RegisterViolation {
    /// The violation as a counterexample, where it is one by itself.
    pub fn counterexample(self) -> Result<Counterexample, (KeyId, TxnId)> {
        match self {
            RegisterViolation::Local(findings) => Ok(Counterexample::Local(findings)),
            RegisterViolation::Cyclic(proof) => Ok(Counterexample::Cyclic(proof)),
            RegisterViolation::Stuck(key, last) => Err((key, last)),
        }
    }
}

/// What it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RegisterStats {
    /// Keys that `zones` decided.
    pub n_zones: usize,
    /// Keys that went to `search`.
    pub n_searched: usize,
    /// Operations that count.
    pub n_counted: usize,
    /// Operations of unknown end that count.
    pub n_unknown_counted: usize,
    /// Operations of unknown end that do not.
    pub n_unknown_dropped: usize,
    /// Configurations that `search` visited.
    pub n_configurations: u64,
}

/// The answer, who gave it, and what it took.
#[derive(Clone, Debug)]
pub struct RegisterReport {
    /// The answer.
    pub answer: RegisterAnswer,
    /// The engine that gave it; `search` if any key needed it.
    pub engine: RegisterEngine,
    /// What it took.
    pub stats: RegisterStats,
}

/// What is known of one key.
enum KeyOutcome {
    /// Its operations in order, each with its moment.
    Ordered(Vec<(i64, TxnId)>),
    Violated(RegisterViolation),
    Unknown(StopReason),
}

/// Decides whether a history is linearizable.
pub fn check(
    history: &History,
    options: RegisterOptions,
    budget: &Budget,
) -> Result<RegisterReport, NotRegisters> {
    check_by::<ExactRules>(history, options, budget)
}

fn check_by<R: Rules>(
    history: &History,
    options: RegisterOptions,
    budget: &Budget,
) -> Result<RegisterReport, NotRegisters> {
    let operations = Operations::of(history, options)?;
    let mut stats = RegisterStats::default();
    let mut engine = RegisterEngine::Zones;
    if let Some(findings) = findings::within_transactions(history) {
        let answer = RegisterAnswer::Violated(RegisterViolation::Local(findings));
        return Ok(RegisterReport {
            answer,
            engine,
            stats,
        });
    }
    let decided: Vec<(KeyOutcome, RegisterEngine, u64)> = (0..operations.n_keys())
        .into_par_iter()
        .map(|at| decide::<R>(history, operations.key(at), budget))
        .collect();
    let mut ordered = Vec::with_capacity(decided.len());
    let mut stopped = None;
    let mut violated = None;
    for (outcome, by, n_configurations) in decided {
        stats.n_configurations += n_configurations;
        match by {
            RegisterEngine::Zones => stats.n_zones += 1,
            RegisterEngine::Search => stats.n_searched += 1,
        }
        engine = engine.max(by);
        match outcome {
            KeyOutcome::Ordered(points) => ordered.push(points),
            KeyOutcome::Violated(violation) => violated = violated.or(Some((violation, by))),
            KeyOutcome::Unknown(reason) => stopped = stopped.or(Some(reason)),
        }
    }
    // One violated key is an answer, whatever became of the others.
    let answer = match (violated, stopped) {
        (Some((violation, by)), _) => {
            engine = by;
            RegisterAnswer::Violated(violation)
        }
        (None, Some(reason)) => RegisterAnswer::Unknown(reason),
        (None, None) => {
            let order = timeline::merge(ordered);
            stats.n_counted = order.len();
            operations.count_unknown(history, &order, &mut stats);
            RegisterAnswer::Linearizable(order)
        }
    };
    Ok(RegisterReport {
        answer,
        engine,
        stats,
    })
}

fn decide<R: Rules>(
    history: &History,
    key: Key<'_>,
    budget: &Budget,
) -> (KeyOutcome, RegisterEngine, u64) {
    if let Err(reason) = budget.check() {
        return (KeyOutcome::Unknown(reason), RegisterEngine::Zones, 0);
    }
    match zones::decide::<R>(&key) {
        zones::ZoneAnswer::Ordered(order) => {
            let points = timeline::moments(key.ops, &order);
            (KeyOutcome::Ordered(points), RegisterEngine::Zones, 0)
        }
        zones::ZoneAnswer::Conflict(conflict) => {
            let outcome = KeyOutcome::Violated(violation(history, &key, &conflict));
            (outcome, RegisterEngine::Zones, 0)
        }
        zones::ZoneAnswer::Repeated => {
            if let Some(findings) = findings::unwritten_reads(history, &key) {
                let outcome = KeyOutcome::Violated(RegisterViolation::Local(findings));
                return (outcome, RegisterEngine::Search, 0);
            }
            let (outcome, n_configurations) = search::decide::<R>(&key, budget);
            (outcome, RegisterEngine::Search, n_configurations)
        }
    }
}

fn violation(history: &History, key: &Key<'_>, conflict: &Conflict) -> RegisterViolation {
    if let Some(proof) = prove::proof(history, key, conflict) {
        return RegisterViolation::Cyclic(proof);
    }
    let Conflict::Unwritten(reads) = conflict else {
        return RegisterViolation::Local(Vec::new());
    };
    let txns = reads.iter().map(|&at| key.ops[at as usize].txn);
    let findings = txns.filter_map(|txn| findings::unwritten(history, key.key, txn));
    RegisterViolation::Local(findings.collect())
}
