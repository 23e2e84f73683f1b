//! What happened, as the solver's `explain` tells it, and what it calls everybody: words, page and pictures agree on names.

use kingsnake_solver::explain::{AnomalyName, Story, lanes, name, story};
use kingsnake_solver::level::Spec;
use kingsnake_solver::model::{History, KeyId, Op, SessionId, TxnId};
use kingsnake_solver::verdict::{Counterexample, Proof, StepReason};
use rustc_hash::FxHashMap;

/// A violation, told.
#[derive(Clone, Debug)]
pub struct Telling {
    /// The anomaly's name.
    pub name: AnomalyName,
    /// The story.
    pub story: Story,
    /// Which keys it is about.
    pub keys: Vec<KeyId>,
    /// What everybody is called in it.
    pub labels: Labels,
}

/// Tells a counterexample.
pub fn tell(history: &History, spec: Spec, counterexample: &Counterexample) -> Telling {
    let story = story(history, spec, counterexample);
    let labels = Labels {
        txns: lanes(history, counterexample).labels,
        short: story
            .legend
            .iter()
            .map(|(label, full)| (full.clone(), label.clone()))
            .collect(),
    };
    Telling {
        name: name(history, spec, counterexample),
        story,
        keys: keys(history, counterexample),
        labels,
    }
}

/// The story's names.
#[derive(Clone, Debug, Default)]
pub struct Labels {
    txns: FxHashMap<TxnId, String>,
    /// The labels of long names.
    short: FxHashMap<String, String>,
}

impl Labels {
    fn label(&self, full: String) -> String {
        self.short.get(&full).cloned().unwrap_or(full)
    }

    /// A transaction, named so that nobody takes it for a number.
    pub fn txn(&self, history: &History, txn: TxnId) -> String {
        let known = self.txns.get(&txn).cloned();
        known.unwrap_or_else(|| format!("T{}", history.txn_name(txn)))
    }

    /// A key.
    pub fn key(&self, history: &History, key: KeyId) -> String {
        self.label(history.key_name(key))
    }

    /// A session.
    pub fn session(&self, history: &History, session: SessionId) -> String {
        format!("session {}", self.label(history.session_name(session)))
    }

    /// An operation.
    pub fn op(&self, history: &History, op: Op) -> String {
        op_words(history, op, |full| self.label(full))
    }
}

/// An operation with its names in full.
pub fn full_op(history: &History, op: Op) -> String {
    op_words(history, op, |full| full)
}

fn op_words(history: &History, op: Op, label: impl Fn(String) -> String) -> String {
    let key = label(history.key_name(op.key()));
    let value = |value| label(history.value_name(value));
    match op {
        Op::Read { value: read, .. } => format!("read {key} = {}", value(read)),
        Op::Write { value: written, .. } => format!("wrote {key} = {}", value(written)),
        Op::Append { value: added, .. } => format!("appended {} to {key}", value(added)),
        Op::ReadList { list, .. } => {
            let items: Vec<String> = history.list(list).iter().map(|&item| value(item)).collect();
            format!("read {key} = [{}]", items.join(", "))
        }
    }
}

/// The keys that a counterexample is about.
fn keys(history: &History, counterexample: &Counterexample) -> Vec<KeyId> {
    let mut keys = Vec::new();
    match counterexample {
        Counterexample::Local(findings) => {
            let ops = findings
                .iter()
                .filter_map(|finding| history.ops(finding.txn).get(finding.op));
            keys.extend(ops.map(|op| op.key()));
        }
        Counterexample::Cyclic(proof) => proof_keys(proof, &mut keys),
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}

fn proof_keys(proof: &Proof, keys: &mut Vec<KeyId>) {
    match proof {
        Proof::Cycle(steps) => keys.extend(steps.iter().filter_map(|step| match step.reason {
            StepReason::Wr { key, .. }
            | StepReason::Ww { key, .. }
            | StepReason::Rw { key, .. } => Some(key),
            StepReason::Begin | StepReason::Session | StepReason::RealTime => None,
        })),
        Proof::Split {
            key,
            one_first,
            other_first,
            ..
        } => {
            keys.push(*key);
            proof_keys(one_first, keys);
            proof_keys(other_first, keys);
        }
    }
}
