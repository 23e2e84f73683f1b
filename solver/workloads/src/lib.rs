//! Jepsen's workloads that are not transactions over keys, each with the rule that Jepsen checks it by.
//!
//! A rule looks at every operation and returns a [`RuleReport`]: the verdict, each violation in words with its operations, and
//! further statistics. Registers and mutexes are histories of compare-and-sets, which [`registers`] builds.

pub mod bank;
mod counter;
mod counter_search;
mod forks;
mod inserts;
mod queue;
pub mod registers;
mod set;
mod set_full;
mod unique;

use std::fmt;
use std::str::FromStr;

use kingsnake_history::budget::Budget;
use kingsnake_history::operations::{Operation, Value};
use rustc_hash::FxHashSet;
use thiserror::Error;

/// A workload of Jepsen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JepsenWorkload {
    /// Transfers between accounts; every read shows the same total.
    Bank,
    /// Additions to a number; every read is between what was acknowledged and what was attempted.
    Counter,
    /// Elements that are added; the last read shows all that were acknowledged.
    Set,
    /// The same with many reads: whether each element stays once it is there, and after how long.
    SetFull,
    /// Writes and reads of groups of keys: no two reads may see two writes in opposite orders.
    LongFork,
    /// Keys that are written in order: a transaction that sees a later one sees the earlier ones.
    Sequential,
    /// Inserts and reads of all: a read that sees one sees all that had been acknowledged before it began.
    Comments,
    /// The same, as the causal-reverse test has it.
    CausalReverse,
    /// Numbers that must never repeat.
    UniqueIds,
    /// Dequeues only of what was enqueued, each once.
    Queue,
    /// The same, and nothing that was acknowledged is lost.
    TotalQueue,
    /// Of two inserts that exclude each other one succeeds at most.
    AdyaG2,
    /// Reads, writes and compare-and-sets of registers: linearizable.
    CasRegister,
    /// A lock: linearizable.
    Mutex,
    /// A lock that only its holder may release.
    OwnedMutex,
    /// Transactions of reads and appends to lists.
    ListAppend,
    /// Transactions of reads and writes; reads of values that were never written are ignored, as Elle ignores them.
    RwRegister,
}

impl JepsenWorkload {
    /// Every workload.
    pub const ALL: [JepsenWorkload; 17] = [
        JepsenWorkload::Bank,
        JepsenWorkload::Counter,
        JepsenWorkload::Set,
        JepsenWorkload::SetFull,
        JepsenWorkload::LongFork,
        JepsenWorkload::Sequential,
        JepsenWorkload::Comments,
        JepsenWorkload::CausalReverse,
        JepsenWorkload::UniqueIds,
        JepsenWorkload::Queue,
        JepsenWorkload::TotalQueue,
        JepsenWorkload::AdyaG2,
        JepsenWorkload::CasRegister,
        JepsenWorkload::Mutex,
        JepsenWorkload::OwnedMutex,
        JepsenWorkload::ListAppend,
        JepsenWorkload::RwRegister,
    ];

    /// The name, as typed and as reported.
    pub fn name(self) -> &'static str {
        match self {
            JepsenWorkload::Bank => "bank",
            JepsenWorkload::Counter => "counter",
            JepsenWorkload::Set => "set",
            JepsenWorkload::SetFull => "set-full",
            JepsenWorkload::LongFork => "long-fork",
            JepsenWorkload::Sequential => "sequential",
            JepsenWorkload::Comments => "comments",
            JepsenWorkload::CausalReverse => "causal-reverse",
            JepsenWorkload::UniqueIds => "unique-ids",
            JepsenWorkload::Queue => "queue",
            JepsenWorkload::TotalQueue => "total-queue",
            JepsenWorkload::AdyaG2 => "adya-g2",
            JepsenWorkload::CasRegister => "cas-register",
            JepsenWorkload::Mutex => "mutex",
            JepsenWorkload::OwnedMutex => "owned-mutex",
            JepsenWorkload::ListAppend => "list-append",
            JepsenWorkload::RwRegister => "rw-register",
        }
    }

    /// Whether it is checked by a rule, and not as a history at a level.
    pub fn has_rule(self) -> bool {
        !matches!(
            self,
            JepsenWorkload::CasRegister
                | JepsenWorkload::Mutex
                | JepsenWorkload::OwnedMutex
                | JepsenWorkload::ListAppend
                | JepsenWorkload::RwRegister
        )
    }
}

impl fmt::Display for JepsenWorkload {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.pad(self.name())
    }
}

impl FromStr for JepsenWorkload {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = JepsenWorkload::ALL.into_iter().find(|it| it.name() == name);
        found.ok_or_else(|| {
            let names: Vec<_> = JepsenWorkload::ALL.iter().map(|it| it.name()).collect();
            format!(
                "no workload {name:?}; the workloads are {}",
                names.join(", ")
            )
        })
    }
}

/// The tester's parameters of a workload.
#[derive(Clone, Debug, Default)]
pub struct RuleOptions {
    /// The sum of all accounts of a bank; that of the first read unless given.
    pub total: Option<i64>,
    /// Whether accounts of a bank may be negative.
    pub allow_negative: bool,
    /// Number of keys per read of long-fork.
    pub group_size: Option<usize>,
    /// Whether set-full demands that an element is seen as soon as it was acknowledged, and counter that there is one order of all
    /// operations.
    pub linearizable: bool,
}

/// The verdict of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleVerdict {
    /// No operation breaks the rule.
    Valid,
    /// Some do.
    Invalid,
    /// There are no operations to judge.
    Unknown,
}

/// One violation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleViolation {
    /// What happened.
    pub words: String,
    /// The operations that show it, as places in the log.
    pub operations: Vec<usize>,
}

/// Points to draw over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// The title.
    pub title: String,
    /// The label of the vertical axis.
    pub unit: String,
    /// Names, and points of seconds and amounts.
    pub series: Vec<(String, Vec<(f64, f64)>)>,
}

/// The result of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleReport {
    /// The verdict.
    pub verdict: RuleVerdict,
    /// The rule, in a sentence.
    pub rule: &'static str,
    /// Every violation.
    pub violations: Vec<RuleViolation>,
    /// Counts and times.
    pub facts: Vec<(&'static str, String)>,
    /// The plots that Jepsen would draw.
    pub plot: Option<Plot>,
}

impl RuleReport {
    fn new(rule: &'static str, violations: Vec<RuleViolation>) -> Self {
        RuleReport {
            verdict: if violations.is_empty() {
                RuleVerdict::Valid
            } else {
                RuleVerdict::Invalid
            },
            rule,
            violations,
            facts: Vec::new(),
            plot: None,
        }
    }
}

/// A log that a rule cannot judge.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("workload {workload}: {what}")]
pub struct Unfit {
    workload: JepsenWorkload,
    what: String,
}

impl Unfit {
    fn new(workload: JepsenWorkload, what: impl Into<String>) -> Self {
        Unfit {
            workload,
            what: what.into(),
        }
    }
}

/// Checks a log by the rule of a workload; `None` for workloads that are histories.
pub fn check(
    workload: JepsenWorkload,
    log: &[Operation],
    options: &RuleOptions,
    budget: &Budget,
) -> Option<Result<RuleReport, Unfit>> {
    Some(match workload {
        JepsenWorkload::Bank => bank::check(log, options),
        JepsenWorkload::Counter => counter::check(log, options, budget),
        JepsenWorkload::Set => set::check(log),
        JepsenWorkload::SetFull => set_full::check(log, options),
        JepsenWorkload::LongFork => forks::long_fork(log, options),
        JepsenWorkload::Sequential => forks::sequential(log),
        JepsenWorkload::Comments | JepsenWorkload::CausalReverse => forks::comments(workload, log),
        JepsenWorkload::UniqueIds => Ok(unique::check(log)),
        JepsenWorkload::Queue => Ok(queue::queue(log)),
        JepsenWorkload::TotalQueue => Ok(queue::total_queue(log)),
        JepsenWorkload::AdyaG2 => inserts::check(log),
        JepsenWorkload::CasRegister
        | JepsenWorkload::Mutex
        | JepsenWorkload::OwnedMutex
        | JepsenWorkload::ListAppend
        | JepsenWorkload::RwRegister => return None,
    })
}

/// The workload of a log, by what its operations are called and what they return; `None` if that is not clear.
pub fn recognise(log: &[Operation]) -> Option<JepsenWorkload> {
    let has = |f: &str| log.iter().any(|op| op.f == f);
    let is_unkeyed_seq = |op: &Operation| {
        op.f == "read" && op.is_ok() && matches!(op.output, Value::Seq(_) | Value::Set(_))
    };
    let n_lists = log.iter().filter(|op| is_unkeyed_seq(op)).count();
    if has("transfer") {
        return Some(JepsenWorkload::Bank);
    }
    if has("acquire") {
        return Some(JepsenWorkload::Mutex);
    }
    if has("generate") {
        return Some(JepsenWorkload::UniqueIds);
    }
    if has("enqueue") {
        let drains = has("drain");
        return Some(if drains {
            JepsenWorkload::TotalQueue
        } else {
            JepsenWorkload::Queue
        });
    }
    if has("insert") {
        return Some(JepsenWorkload::AdyaG2);
    }
    if has("add") {
        let reads_number = |op: &Operation| op.f == "read" && op.output.int().is_some();
        return match n_lists {
            0 if log.iter().any(reads_number) => Some(JepsenWorkload::Counter),
            0 => recognise_adds(log),
            1 => Some(JepsenWorkload::Set),
            _ => Some(JepsenWorkload::SetFull),
        };
    }
    let reads_set = |op: &Operation| op.f == "read" && matches!(op.output, Value::Set(_));
    if has("write") && log.iter().any(reads_set) {
        return Some(JepsenWorkload::Comments);
    }
    let reads_map = |op: &Operation| op.f == "read" && matches!(op.output, Value::Map(_));
    log.iter().any(reads_map).then_some(JepsenWorkload::Bank)
}

/// Additions that were never read: the elements of a set are different, and a counter adds numbers.
fn recognise_adds(log: &[Operation]) -> Option<JepsenWorkload> {
    let adds = || log.iter().filter(|op| op.f == "add");
    if adds().all(|op| matches!(op.input, Value::Text(_))) {
        return Some(JepsenWorkload::Set);
    }
    let numbers: Option<Vec<i64>> = adds().map(|op| op.input.int()).collect();
    let mut seen = FxHashSet::default();
    let repeats = numbers?.into_iter().any(|number| !seen.insert(number));
    repeats.then_some(JepsenWorkload::Counter)
}

/// A count and its noun.
fn count(n: usize, noun: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {noun}{s}")
}

/// Seconds since the start of the log.
fn seconds(op: &Operation) -> f64 {
    op.end.or(op.begin).unwrap_or(op.invoked as i64) as f64 / 1e9
}
