//! Every class of anomaly in a history, with a count and one short example: the findings without a cycle, and the
//! cycles of direct dependencies, by Adya's classes over the data, with sessions, and with the clock.
//!
//! Names are those of [`lattice`]. A cycle is counted in the class of its own steps, whatever the search was for.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::name::{local_name, name_by};
use crate::certify::Meaning;
use crate::lattice;
use crate::level::{Model, Spec};
use crate::model::{History, Op, Status, TxnId};
use crate::verdict::{Counterexample, Finding, LocalAnomaly, Proof, Step, StepReason};

/// More anomalies of a class are only counted.
pub const MOST_EXAMPLES: usize = 1_000;

/// A class of anomalies.
#[derive(Clone, Debug, PartialEq)]
pub struct AnomalyClass {
    /// Its name in the lattice.
    pub name: &'static str,
    /// Number of findings, or of cycles of different transactions, a shortest one through each transaction.
    pub count: usize,
    /// The testers' names, with counts.
    pub patterns: BTreeMap<&'static str, usize>,
    /// The first of the shortest ones.
    pub example: Counterexample,
    /// All of them, or the first `MOST_EXAMPLES`.
    pub examples: Vec<Counterexample>,
}

/// The anomalies of a history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Anomalies {
    /// The classes, the worst first.
    pub classes: Vec<AnomalyClass>,
    /// Whether the search found and counted all.
    pub is_complete: bool,
}

impl Anomalies {
    /// The names of the classes.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.classes.iter().map(|class| class.name)
    }

    /// The models that they rule out.
    pub fn boundary(&self) -> lattice::Boundary {
        lattice::boundary(self.names())
    }
}

/// Sorts evidence into classes.
pub struct Collector<'m, 'h> {
    meaning: &'m Meaning<'h>,
    classes: BTreeMap<&'static str, AnomalyClass>,
    /// The transactions of the cycles of each class.
    seen: FxHashSet<(&'static str, Vec<TxnId>)>,
}

impl<'m, 'h> Collector<'m, 'h> {
    /// Nothing found yet, for a resolved history.
    pub fn new(meaning: &'m Meaning<'h>) -> Self {
        Collector {
            meaning,
            classes: BTreeMap::new(),
            seen: FxHashSet::default(),
        }
    }

    /// The result; `is_complete` tells whether it is all.
    pub fn finish(self, is_complete: bool) -> Anomalies {
        let mut classes: Vec<AnomalyClass> = self.classes.into_values().collect();
        let place = |name| lattice::ANOMALIES.iter().position(|it| it.name == name);
        classes.sort_by_key(|class| place(class.name));
        Anomalies {
            classes,
            is_complete,
        }
    }

    fn add(&mut self, name: &'static str, short: &'static str, example: Counterexample) {
        let class = self.classes.entry(name).or_insert_with(|| AnomalyClass {
            name,
            count: 0,
            patterns: BTreeMap::new(),
            example: example.clone(),
            examples: Vec::new(),
        });
        class.count += 1;
        if class.examples.len() < MOST_EXAMPLES {
            class.examples.push(example.clone());
        }
        *class.patterns.entry(short).or_default() += 1;
        if n_steps(&example) < n_steps(&class.example) {
            class.example = example;
        }
    }

    /// Adds anomalies that need no cycle.
    pub fn add_findings(&mut self, findings: &[Finding]) {
        let history = self.meaning.history();
        for finding in findings {
            let short = local_name(finding.anomaly).short;
            let example = || Counterexample::Local(vec![finding.clone()]);
            self.add(local_class(finding.anomaly), short, example());
            // A transaction that saw one append of another and missed the next is both after and before it.
            if is_partial_list(history, finding) {
                self.add("G-single-item", short, example());
            }
            if is_dirty_update(history, finding) {
                self.add("dirty-update", "dirty update", example());
            }
        }
    }

    /// Adds a cycle; `pattern` is the lattice's name of the search's target, if that has a name of its own.
    pub fn add_cycle(&mut self, pattern: Option<&'static str>, steps: Vec<Step>) {
        if let Some(pattern) = pattern {
            let short = if pattern == "lost-update" {
                "lost update"
            } else {
                pattern
            };
            self.add_named(pattern, short, steps);
            return;
        }
        let example = Counterexample::Cyclic(Proof::Cycle(steps.clone()));
        // Classes are of cycles in one graph, whatever the level.
        let spec = Spec {
            model: Model::Ser,
            session_order: true,
            real_time: None,
        };
        let short = name_by(self.meaning, spec, &example).short;
        let class = cycle_class(self.meaning.history(), &steps);
        self.add_named(class, short, steps.clone());
        if short == "write skew" {
            self.add_named("write-skew", short, steps);
        }
    }

    fn add_named(&mut self, name: &'static str, short: &'static str, steps: Vec<Step>) {
        let mut txns: Vec<TxnId> = steps.iter().map(|step| step.from.txn).collect();
        txns.sort_unstable();
        if self.seen.insert((name, txns)) {
            let example = Counterexample::Cyclic(Proof::Cycle(steps));
            self.add(name, short, example);
        }
    }
}

fn n_steps(example: &Counterexample) -> usize {
    match example {
        Counterexample::Local(_) | Counterexample::Stuck(_) | Counterexample::Recorded(_) => 0,
        Counterexample::Cyclic(proof) => proof.steps().count(),
        Counterexample::EitherWay {
            lost, took_effect, ..
        } => n_steps(lost) + n_steps(took_effect),
    }
}

/// The lattice's name of an anomaly without a cycle.
pub fn local_class(anomaly: LocalAnomaly) -> &'static str {
    match anomaly {
        LocalAnomaly::ThinAirRead => "thin-air-read",
        LocalAnomaly::AbortedRead | LocalAnomaly::AbortedVersion => "G1a",
        LocalAnomaly::IntermediateRead => "G1b",
        LocalAnomaly::FutureRead => "future-read",
        LocalAnomaly::NotMyOwnWrite
        | LocalAnomaly::NotMyLastWrite
        | LocalAnomaly::NonRepeatableRead
        | LocalAnomaly::InternalInconsistency => "internal",
        LocalAnomaly::DuplicateElements => "duplicate-elements",
        LocalAnomaly::DuplicateWrite => "duplicate-write",
        LocalAnomaly::IncompatibleOrder => "incompatible-order",
        LocalAnomaly::ScatteredAppends | LocalAnomaly::CyclicVersions => "cyclic-versions",
        LocalAnomaly::MissingRow => "predicate-read-miss",
    }
}

/// Whether a list shows some of a transaction's appends and not its next.
fn is_partial_list(history: &History, finding: &Finding) -> bool {
    let op = history.ops(finding.txn).get(finding.op);
    finding.anomaly == LocalAnomaly::IntermediateRead && matches!(op, Some(Op::ReadList { .. }))
}

/// Whether a list shows an aborted append and a committed one behind it.
fn is_dirty_update(history: &History, finding: &Finding) -> bool {
    let Some((writer, at)) = finding.other else {
        return false;
    };
    let ops = history.ops(finding.txn).get(finding.op);
    let (Some(&Op::ReadList { list, key }), LocalAnomaly::AbortedRead) = (ops, finding.anomaly)
    else {
        return false;
    };
    let Some(&Op::Append { value, .. }) = history.ops(writer).get(at) else {
        return false;
    };
    let list = history.list(list);
    let place = list.iter().position(|&it| it == value);
    let later = place.map_or(&[][..], |place| &list[place + 1..]);
    let commits = |txn: TxnId| {
        let is_later = |op: &Op| matches!(*op, Op::Append { key: of, value } if of == key && later.contains(&value));
        history.status(txn) == Status::Committed && history.ops(txn).iter().any(is_later)
    };
    !later.is_empty() && history.txns().any(commits)
}

/// The class of a cycle by its steps: Adya's letters, `-item` if every rw step is about a key that was read by itself,
/// and the order besides the data that it needs.
fn cycle_class(history: &History, steps: &[Step]) -> &'static str {
    let mut kinds: Vec<StepReason> = steps.iter().map(|step| step.reason).collect();
    kinds.retain(|reason| *reason != StepReason::Begin);
    let is_rw = |at: usize| matches!(kinds[at % kinds.len()], StepReason::Rw { .. });
    let n_rw = (0..kinds.len()).filter(|&at| is_rw(at)).count();
    let in_a_row = kinds.len() > 1 && (0..kinds.len()).any(|at| is_rw(at) && is_rw(at + 1));
    let has_wr = kinds.iter().any(|it| matches!(it, StepReason::Wr { .. }));
    let by_range = steps.iter().any(|step| is_by_range(history, step));
    let class = match (n_rw, by_range) {
        (0, _) if !has_wr => "G0",
        (0, _) => "G1c",
        (1, false) => "G-single-item",
        (1, true) => "G-single",
        (_, false) if in_a_row => "G2-item",
        (_, true) if in_a_row => "G2",
        (_, false) => "G-nonadjacent-item",
        (_, true) => "G-nonadjacent",
    };
    let order = if kinds.contains(&StepReason::RealTime) {
        "-realtime"
    } else if kinds.contains(&StepReason::Session) {
        "-process"
    } else {
        ""
    };
    let full = format!("{class}{order}");
    lattice::anomaly(&full).map_or(class, |it| it.name)
}

/// Whether an rw step rests on a range query.
fn is_by_range(history: &History, step: &Step) -> bool {
    let StepReason::Rw { key, .. } = step.reason else {
        return false;
    };
    let mut ops = history.ops(step.from.txn).iter();
    let first = ops.find(|&&op| history.touches(op, key));
    matches!(first, Some(Op::Range { .. }))
}
