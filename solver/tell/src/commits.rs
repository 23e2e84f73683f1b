//! A cycle of commits in words: what each transaction saw, so what it must not have missed.

use kingsnake_history::weak::{CommitReason, CommitStep, PathStep, VisibilityReason};

use super::advice::causes;
use super::labels::Labels;
use super::notes::beside;
use super::noticed::missed_sentence;
use crate::model::{History, KeyId, TxnId};

/// A cycle in words.
#[derive(Clone, Debug)]
pub struct CommitStory {
    /// The kind of anomaly.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub about: &'static str,
    /// What the application would have noticed.
    pub noticed: String,
    /// What usually causes it, the most likely first.
    pub causes: &'static [&'static str],
    /// One sentence a step.
    pub lines: Vec<String>,
    /// The transactions that it is about, and what each did.
    pub operations: Vec<String>,
}

/// Tells a cycle of commits.
pub fn commit_story(history: &History, steps: &[CommitStep]) -> CommitStory {
    let (txns, keys) = involved(steps);
    let teller = Teller {
        labels: Labels::new(history, &txns),
    };
    let mut lines: Vec<String> = steps.iter().map(|step| teller.step(step)).collect();
    if steps.last().is_some_and(|step| step.to.is_some()) {
        lines.push(
            "So these commits are in a circle: no order of commits explains them.".to_owned(),
        );
    }
    let operations = txns
        .iter()
        .map(|&txn| teller.operations(history, txn, &keys))
        .collect();
    let (name, about) = name(steps);
    let (short, _) = name.split_once(" (").unwrap_or((name, ""));
    CommitStory {
        name,
        about,
        noticed: teller.noticed(history, short, steps),
        causes: causes(short),
        lines,
        operations,
    }
}

/// The name of a cycle, after Plume's patterns, and what it is.
fn name(steps: &[CommitStep]) -> (&'static str, &'static str) {
    let mut sights = steps.iter().filter_map(|step| match &step.reason {
        CommitReason::Vis { because, .. } => Some(because),
        _ => None,
    });
    match sights.next() {
        None => (
            "cyclic information flow (G1c)",
            "Transactions read or overwrote each other's writes in a circle.",
        ),
        Some(VisibilityReason::EarlierRead(_)) => (
            "non-monotonic read",
            "A transaction saw one write of another and then missed another one.",
        ),
        Some(VisibilityReason::Source(_)) => (
            "fractured read",
            "A transaction saw one write of another and missed another one.",
        ),
        Some(VisibilityReason::Session) => (
            "a session that forgets its past",
            "A transaction missed what came before it in its session.",
        ),
        Some(VisibilityReason::Path(_)) => (
            "causality violation",
            "A transaction missed what had happened before it.",
        ),
    }
}

fn involved(steps: &[CommitStep]) -> (Vec<TxnId>, Vec<KeyId>) {
    let (mut txns, mut keys) = (Vec::new(), Vec::new());
    for step in steps {
        txns.push(step.from);
        txns.extend(step.to);
        match &step.reason {
            CommitReason::Session | CommitReason::Stated(_) => {}
            CommitReason::Wr(key) | CommitReason::Given(key) => keys.push(*key),
            CommitReason::Vis {
                reader,
                key,
                because,
            } => {
                txns.push(*reader);
                keys.push(*key);
                match because {
                    VisibilityReason::EarlierRead(via) | VisibilityReason::Source(via) => {
                        keys.push(*via);
                    }
                    VisibilityReason::Session => {}
                    VisibilityReason::Path(path) => {
                        txns.extend(path.iter().flat_map(|step| [step.from, step.to]));
                        keys.extend(path.iter().filter_map(|step| step.key));
                    }
                }
            }
        }
    }
    txns.sort_unstable();
    txns.dedup();
    keys.sort_unstable();
    keys.dedup();
    (txns, keys)
}

struct Teller<'h> {
    labels: Labels<'h>,
}

impl Teller<'_> {
    fn noticed(&self, history: &History, name: &str, steps: &[CommitStep]) -> String {
        let missed = steps.iter().find_map(|step| match step.reason {
            CommitReason::Vis { reader, key, .. } => Some((reader, step.from, key)),
            _ => None,
        });
        let Some((reader, seen, key)) = missed else {
            let mut txns: Vec<TxnId> = steps.iter().map(|step| step.from).collect();
            txns.truncate(4);
            let names: Vec<String> = txns.iter().map(|&txn| self.labels.txn(txn)).collect();
            return format!(
                "Each of {} acted on what another of them wrote, so none of them can have come first.",
                names.join(", ")
            );
        };
        let mut ops = history.ops(seen).iter().enumerate();
        let last = ops.rfind(|(_, op)| op.is_write() && op.key() == Some(key));
        let wrote = last.map_or_else(
            || format!("wrote {}", self.labels.key(key)),
            |(at, &op)| self.labels.operation(seen, at, op, &[key]),
        );
        let (who, other) = (self.labels.txn(reader), self.labels.txn(seen));
        missed_sentence(name, &who, &other, &wrote)
    }

    fn step(&self, step: &CommitStep) -> String {
        let from = self.labels.txn(step.from);
        let to = step
            .to
            .map_or_else(|| "the initial state".to_owned(), |to| self.labels.txn(to));
        match &step.reason {
            CommitReason::Session => {
                format!("{from} comes before {to} in their session.")
            }
            CommitReason::Stated(edge) => {
                let edges = self.labels.history().given_edges();
                let name = edges.get(*edge as usize).map_or("", |it| it.name.as_str());
                format!("{from} comes before {to}, by the given order {name}.")
            }
            CommitReason::Wr(key) => {
                format!(
                    "{to} read {from}'s {}, so {from} committed first.",
                    self.labels.key(*key)
                )
            }
            CommitReason::Given(key) => format!(
                "{from}'s {} comes before {to}'s, as the version order or a list shows.",
                self.labels.key(*key)
            ),
            CommitReason::Vis {
                reader,
                key,
                because,
            } => {
                let (who, key) = (self.labels.txn(*reader), self.labels.key(*key));
                let saw = self.sight(&who, &from, because);
                let consequence = if step.to.is_some() {
                    format!("so {from} committed before {to}")
                } else {
                    "which is impossible, since nothing comes before it".to_owned()
                };
                format!(
                    "{saw}, so {who} must not miss {from}'s {key}; yet it read {key} from {to}, {consequence}."
                )
            }
        }
    }

    fn sight(&self, who: &str, seen: &str, because: &VisibilityReason) -> String {
        match because {
            VisibilityReason::EarlierRead(via) => {
                format!("{who} had seen {seen} through {}", self.labels.key(*via))
            }
            VisibilityReason::Source(via) => {
                format!("{who} saw {seen} through {}", self.labels.key(*via))
            }
            VisibilityReason::Session => format!("{who} came after {seen} in their session"),
            VisibilityReason::Path(path) => {
                let steps: Vec<String> = path.iter().map(|step| self.path_step(step)).collect();
                format!("{seen} happened before {who} ({})", steps.join(", "))
            }
        }
    }

    fn path_step(&self, step: &PathStep) -> String {
        let (from, to) = (self.labels.txn(step.from), self.labels.txn(step.to));
        match step.key {
            None => format!("{from}, then {to} in one session"),
            Some(key) => format!("{to} read {from}'s {}", self.labels.key(key)),
        }
    }

    fn operations(&self, history: &History, txn: TxnId, keys: &[KeyId]) -> String {
        let ops = history.ops(txn).iter().enumerate();
        let ops = ops.filter(|&(_, &op)| keys.iter().any(|&key| history.touches(op, key)));
        let ops: Vec<String> = ops
            .map(|(at, &op)| self.labels.operation(txn, at, op, keys))
            .collect();
        let session = self.labels.session(history.session(txn));
        format!(
            "{} (session {session}){}: {}",
            self.labels.txn(txn),
            beside(history, txn),
            ops.join("; ")
        )
    }
}
