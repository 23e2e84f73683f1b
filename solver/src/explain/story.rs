//! A counterexample in plain words: who did what, why that orders them, and where it contradicts itself.
//!
//! Evidence is data first: the story is made from the proof and the history alone, and only of what the checker re-derives.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::findings::tell_finding;
use super::name::name;
use super::words::{Case, Words};
use crate::level::Spec;
use crate::model::{History, KeyId, TxnId};
use crate::verdict::{Counterexample, Finding, Proof, Step, StepReason};

/// How many findings are told; the others are counted.
const TOLD: usize = 5;

/// A line of a story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// How many cases it is in.
    pub depth: usize,
    /// What it says.
    pub text: String,
}

/// A counterexample in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Story {
    /// The anomaly, and what is not satisfied.
    pub headline: String,
    /// What the anomaly is, in one sentence.
    pub about: String,
    /// The argument.
    pub lines: Vec<Line>,
    /// The transactions involved.
    pub txns: Vec<TxnId>,
    /// What each of them did, as far as it matters, in the same order.
    pub operations: Vec<String>,
    /// Names that were shortened, and what they stand for.
    pub legend: Vec<(String, String)>,
}

/// Tells a counterexample.
pub fn story(history: &History, spec: Spec, counterexample: &Counterexample) -> Story {
    let (txns, keys) = involved(history, counterexample);
    let mut teller = Teller {
        words: Words::new(history, &txns),
        lines: Vec::new(),
        cases: Vec::new(),
    };
    match counterexample {
        Counterexample::Local(findings) => teller.tell_findings(history, findings),
        Counterexample::Cyclic(proof) => teller.tell(proof, 0),
    }
    let name = name(history, spec, counterexample);
    let mut headline = name.short.to_owned();
    if let Some(first) = headline.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    if let Some(adya) = name.adya {
        let _ = write!(headline, " ({adya})");
    }
    let _ = match counterexample {
        Counterexample::Local(_) => write!(headline, ": no level allows it"),
        Counterexample::Cyclic(_) => write!(headline, ": no {spec}"),
    };
    let told = |&txn: &TxnId| {
        let who = teller.words.with_session(txn);
        format!("{who}: {}", teller.words.operations(txn, &keys))
    };
    Story {
        headline,
        about: name.about.to_owned(),
        operations: txns.iter().map(told).collect(),
        lines: teller.lines,
        legend: teller.words.labels.legend,
        txns,
    }
}

impl Story {
    /// The story as text, with a line feed at the end of each line.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n{}\n\n", self.headline, self.about);
        for line in &self.lines {
            let _ = writeln!(text, "  {}{}", "  ".repeat(line.depth), line.text);
        }
        text.push_str("\nThe transactions:\n");
        for operations in &self.operations {
            let _ = writeln!(text, "  {operations}");
        }
        if !self.legend.is_empty() {
            text.push_str("\nShortened names:\n");
            for (label, full) in &self.legend {
                let _ = writeln!(text, "  {label} is {full}");
            }
        }
        text
    }
}

/// The transactions and keys that a counterexample is about, sorted.
pub(super) fn involved(
    history: &History,
    counterexample: &Counterexample,
) -> (Vec<TxnId>, Vec<KeyId>) {
    let mut txns = BTreeSet::new();
    let mut keys = BTreeSet::new();
    match counterexample {
        Counterexample::Local(findings) => {
            for finding in findings.iter().take(TOLD) {
                txns.insert(finding.txn);
                txns.extend(finding.other.map(|(txn, _)| txn));
                let op = history.ops(finding.txn).get(finding.op);
                keys.extend(op.map(|op| op.key()));
            }
        }
        Counterexample::Cyclic(proof) => visit(proof, &mut txns, &mut keys),
    }
    (txns.into_iter().collect(), keys.into_iter().collect())
}

fn visit(proof: &Proof, txns: &mut BTreeSet<TxnId>, keys: &mut BTreeSet<KeyId>) {
    match proof {
        Proof::Cycle(steps) => {
            for step in steps {
                txns.insert(step.from.txn);
                match step.reason {
                    StepReason::Wr { key, .. } | StepReason::Ww { key, .. } => {
                        keys.insert(key);
                    }
                    StepReason::Rw { key, writer, .. } => {
                        keys.insert(key);
                        txns.extend(writer);
                    }
                    StepReason::Begin | StepReason::Session | StepReason::RealTime => {}
                }
            }
        }
        Proof::Split {
            key,
            one,
            other,
            one_first,
            other_first,
        } => {
            keys.insert(*key);
            txns.extend([*one, *other]);
            visit(one_first, txns, keys);
            visit(other_first, txns, keys);
        }
    }
}

struct Teller<'h> {
    words: Words<'h>,
    lines: Vec<Line>,
    cases: Vec<Case>,
}

impl Teller<'_> {
    fn say(&mut self, depth: usize, text: String) {
        self.lines.push(Line { depth, text });
    }

    fn tell(&mut self, proof: &Proof, depth: usize) {
        match proof {
            Proof::Cycle(steps) => self.tell_cycle(steps, depth),
            Proof::Split {
                key,
                one,
                other,
                one_first,
                other_first,
            } => match (one_first.as_ref(), other_first.as_ref()) {
                // A case that ends at once is a small proof of the opposite; the rest goes on without being indented.
                (rest @ Proof::Split { .. }, closed @ Proof::Cycle(_)) => {
                    self.tell_forced(*key, (*one, *other), closed, rest, depth);
                }
                (closed @ Proof::Cycle(_), rest @ Proof::Split { .. }) => {
                    self.tell_forced(*key, (*other, *one), closed, rest, depth);
                }
                (first, second) => {
                    let (a, b) = (self.words.labels.txn(*one), self.words.labels.txn(*other));
                    let wrote = [self.words.write(*one, *key), self.words.write(*other, *key)];
                    let text = format!("{a} {} and {b} {}. Which came first?", wrote[0], wrote[1]);
                    self.say(depth, text);
                    self.say(depth, format!("Either {a} came first. Then:"));
                    self.tell_case((*key, *one, *other), first, depth + 1);
                    self.say(depth, format!("Or {b} came first. Then:"));
                    self.tell_case((*key, *other, *one), second, depth + 1);
                }
            },
        }
    }

    fn tell_case(&mut self, case: Case, proof: &Proof, depth: usize) {
        self.cases.push(case);
        self.tell(proof, depth);
        self.cases.pop();
    }

    /// Tells why `first` must have written before `second`, then the rest.
    fn tell_forced(
        &mut self,
        key: KeyId,
        (first, second): (TxnId, TxnId),
        closed: &Proof,
        rest: &Proof,
        depth: usize,
    ) {
        let (a, b) = (self.words.labels.txn(first), self.words.labels.txn(second));
        let wrote = [self.words.write(first, key), self.words.write(second, key)];
        let text = format!("{a} {} before {b} {}. Otherwise:", wrote[0], wrote[1]);
        self.say(depth, text);
        self.tell_case((key, second, first), closed, depth + 1);
        self.tell_case((key, first, second), rest, depth);
    }

    fn tell_cycle(&mut self, steps: &[Step], depth: usize) {
        let n_steps = steps.len();
        for (at, step) in steps.iter().enumerate() {
            let claim = self.words.claim(step);
            let reason = self.words.reason(step, &self.cases);
            let because = if reason.is_empty() {
                String::new()
            } else {
                format!(", because {reason}")
            };
            let text = if at + 1 == n_steps {
                format!("However, {claim}{because}: a contradiction.")
            } else {
                format!("{claim}{because}.")
            };
            self.say(depth, text);
        }
    }

    fn tell_findings(&mut self, history: &History, findings: &[Finding]) {
        for finding in findings.iter().take(TOLD) {
            let text = tell_finding(history, &self.words, finding);
            self.say(0, text);
        }
        if findings.len() > TOLD {
            let n_more = findings.len() - TOLD;
            self.say(0, format!("And {n_more} more."));
        }
    }
}
