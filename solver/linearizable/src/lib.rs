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
use kingsnake_history::model::{History, TxnId};
use kingsnake_history::promise::RegisterOptions;
use kingsnake_history::verdict::{Certificate, Counterexample, Verdict};
use rayon::prelude::*;

pub use operations::NotRegisters;

use operations::{Key, Operations};
use rules::{ExactRules, Rules};
use zones::Conflict;

/// The engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegisterEngine {
    /// Sorting, for keys whose values are written once.
    Zones,
    /// Search with a cache, for the others.
    Search,
}

/// The engine that decided, and statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterStats {
    /// The engine that gave it; `search` if any key needed it.
    pub engine: RegisterEngine,
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

/// The result for one key.
enum KeyOutcome {
    /// Its operations in order, each with its moment.
    Ordered(Vec<(i64, TxnId)>),
    Violated(Counterexample),
    Unknown(StopReason),
}

/// Decides whether a history is linearizable. An operation that no order reaches is named alone: the checker computes
/// the possible values
/// of the register.
pub fn check(
    history: &History,
    options: RegisterOptions,
    budget: &Budget,
) -> Result<(Verdict, RegisterStats), NotRegisters> {
    check_by::<ExactRules>(history, options, budget)
}

fn check_by<R: Rules>(
    history: &History,
    options: RegisterOptions,
    budget: &Budget,
) -> Result<(Verdict, RegisterStats), NotRegisters> {
    let operations = Operations::of(history, options)?;
    let mut stats = RegisterStats {
        engine: RegisterEngine::Zones,
        n_zones: 0,
        n_searched: 0,
        n_counted: 0,
        n_unknown_counted: 0,
        n_unknown_dropped: 0,
        n_configurations: 0,
    };
    if let Some(findings) = findings::within_transactions(history) {
        return Ok((Verdict::Violated(Counterexample::Local(findings)), stats));
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
        stats.engine = stats.engine.max(by);
        match outcome {
            KeyOutcome::Ordered(points) => ordered.push(points),
            KeyOutcome::Violated(violation) => violated = violated.or(Some((violation, by))),
            KeyOutcome::Unknown(reason) => stopped = stopped.or(Some(reason)),
        }
    }
    // One violated key suffices, whatever the others' results are.
    let verdict = match (violated, stopped) {
        (Some((violation, by)), _) => {
            stats.engine = by;
            Verdict::Violated(violation)
        }
        (None, Some(reason)) => Verdict::Unknown(reason),
        (None, None) => {
            let order = timeline::merge(ordered);
            stats.n_counted = order.len();
            operations.count_unknown(history, &order, &mut stats);
            Verdict::Satisfied(Certificate::of_txns(order))
        }
    };
    Ok((verdict, stats))
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
                let outcome = KeyOutcome::Violated(Counterexample::Local(findings));
                return (outcome, RegisterEngine::Search, 0);
            }
            let (outcome, n_configurations) = search::decide::<R>(&key, budget);
            (outcome, RegisterEngine::Search, n_configurations)
        }
    }
}

fn violation(history: &History, key: &Key<'_>, conflict: &Conflict) -> Counterexample {
    if let Some(proof) = prove::proof(history, key, conflict) {
        return Counterexample::Cyclic(proof);
    }
    let Conflict::Unwritten(reads) = conflict else {
        return Counterexample::Local(Vec::new());
    };
    let txns = reads.iter().map(|&at| key.ops[at as usize].txn);
    let findings = txns.filter_map(|txn| findings::unwritten(history, key.key, txn));
    Counterexample::Local(findings.collect())
}
