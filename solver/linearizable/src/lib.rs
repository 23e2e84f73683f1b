//! Linearizability of registers: is there a moment between the start and the end of every operation such that the
//! operations, in the order of their moments, read and write as on one machine?
//!
//! Linearizability is local (Herlihy and Wing 1990), so every key is decided alone, keys in parallel: by `zones` where
//! every value is written once, else by `search`.

mod fault;
mod findings;
mod operations;
mod prove;
mod search;
mod timeline;
mod zones;

use kingsnake_history::budget::{Budget, StopReason};
use kingsnake_history::model::{History, KeyId, TxnId};
use kingsnake_history::verdict::{Counterexample, Finding, Proof};
use rayon::prelude::*;

pub use operations::NotRegisters;

use operations::{Key, Operations};
use zones::Conflict;

/// What counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// How far clocks may disagree, in nanoseconds.
    pub drift: u64,
    /// Whether a refused compare-and-set says that the key did not hold what was expected. Knossos takes it to say nothing.
    pub refusals_count: bool,
}

/// The engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Engine {
    /// Sorting, for keys whose values are written once.
    Zones,
    /// Search with a cache, for the others.
    Search,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The operations that took effect, in the order of their moments.
    Linearizable(Vec<TxnId>),
    /// Why there is no order.
    Violated(Violation),
    /// The budget ended first.
    Unknown(StopReason),
}

/// Why there is no order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// Reads that cannot have happened.
    Local(Vec<Finding>),
    /// A cycle, or two cases that both end in one.
    Cyclic(Proof),
    /// The operation of this key that no order reaches: the earliest to end.
    Stuck(KeyId, TxnId),
}

impl Violation {
    /// The violation as a counterexample, where it is one by itself.
    pub fn counterexample(self) -> Result<Counterexample, (KeyId, TxnId)> {
        match self {
            Violation::Local(findings) => Ok(Counterexample::Local(findings)),
            Violation::Cyclic(proof) => Ok(Counterexample::Cyclic(proof)),
            Violation::Stuck(key, last) => Err((key, last)),
        }
    }
}

/// What it took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
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
pub struct Report {
    /// The answer.
    pub answer: Answer,
    /// The engine that gave it; `search` if any key needed it.
    pub engine: Engine,
    /// What it took.
    pub stats: Stats,
}

/// What is known of one key.
enum Outcome {
    /// Its operations in order, each with its moment.
    Ordered(Vec<(i64, TxnId)>),
    Violated(Violation),
    Unknown(StopReason),
}

/// Decides whether a history is linearizable.
pub fn check(history: &History, options: Options, budget: &Budget) -> Result<Report, NotRegisters> {
    let operations = Operations::of(history, options)?;
    let mut stats = Stats::default();
    let mut engine = Engine::Zones;
    if let Some(findings) = findings::within_transactions(history) {
        let answer = Answer::Violated(Violation::Local(findings));
        return Ok(Report {
            answer,
            engine,
            stats,
        });
    }
    let decided: Vec<(Outcome, Engine, u64)> = (0..operations.n_keys())
        .into_par_iter()
        .map(|at| decide(history, operations.key(at), budget))
        .collect();
    let mut ordered = Vec::with_capacity(decided.len());
    let mut stopped = None;
    let mut violated = None;
    for (outcome, by, n_configurations) in decided {
        stats.n_configurations += n_configurations;
        match by {
            Engine::Zones => stats.n_zones += 1,
            Engine::Search => stats.n_searched += 1,
        }
        engine = engine.max(by);
        match outcome {
            Outcome::Ordered(points) => ordered.push(points),
            Outcome::Violated(violation) => violated = violated.or(Some((violation, by))),
            Outcome::Unknown(reason) => stopped = stopped.or(Some(reason)),
        }
    }
    // One violated key is an answer, whatever became of the others.
    let answer = match (violated, stopped) {
        (Some((violation, by)), _) => {
            engine = by;
            Answer::Violated(violation)
        }
        (None, Some(reason)) => Answer::Unknown(reason),
        (None, None) => {
            let order = timeline::merge(ordered);
            stats.n_counted = order.len();
            operations.count_unknown(history, &order, &mut stats);
            Answer::Linearizable(order)
        }
    };
    Ok(Report {
        answer,
        engine,
        stats,
    })
}

fn decide(history: &History, key: Key<'_>, budget: &Budget) -> (Outcome, Engine, u64) {
    if let Err(reason) = budget.check() {
        return (Outcome::Unknown(reason), Engine::Zones, 0);
    }
    match zones::decide(&key) {
        zones::Answer::Ordered(order) => {
            let points = timeline::moments(key.ops, &order);
            (Outcome::Ordered(points), Engine::Zones, 0)
        }
        zones::Answer::Conflict(conflict) => {
            let outcome = Outcome::Violated(violation(history, &key, &conflict));
            (outcome, Engine::Zones, 0)
        }
        zones::Answer::Repeated => {
            if let Some(findings) = findings::unwritten_reads(history, &key) {
                let outcome = Outcome::Violated(Violation::Local(findings));
                return (outcome, Engine::Search, 0);
            }
            let (outcome, n_configurations) = search::decide(&key, budget);
            (outcome, Engine::Search, n_configurations)
        }
    }
}

fn violation(history: &History, key: &Key<'_>, conflict: &Conflict) -> Violation {
    if let Some(proof) = prove::proof(history, key, conflict) {
        return Violation::Cyclic(proof);
    }
    let Conflict::Unwritten(reads) = conflict else {
        return Violation::Local(Vec::new());
    };
    let txns = reads.iter().map(|&at| key.ops[at as usize].txn);
    let findings = txns.filter_map(|txn| findings::unwritten(history, key.key, txn));
    Violation::Local(findings.collect())
}
