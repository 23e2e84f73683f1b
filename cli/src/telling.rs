//! What happened, as the solver's `explain` tells it. Words, page and pictures all take their names from its labels.

use kingsnake_solver::explain::{AnomalyName, Labels, Story, name, story};
use kingsnake_solver::level::Spec;
use kingsnake_solver::model::{History, KeyId, Op};
use kingsnake_solver::verdict::Counterexample;

/// A violation, told.
#[derive(Clone, Debug)]
pub struct Telling {
    /// The anomaly's name.
    pub name: AnomalyName,
    /// The story.
    pub story: Story,
    /// Which keys it is about.
    pub keys: Vec<KeyId>,
}

/// Tells a counterexample.
pub fn tell(history: &History, spec: Spec, counterexample: &Counterexample) -> Telling {
    Telling {
        name: name(history, spec, counterexample),
        story: story(history, spec, counterexample),
        keys: keys(history, counterexample),
    }
}

impl Telling {
    /// What everybody is called in the story.
    pub fn labels<'h>(&self, history: &'h History) -> Labels<'h> {
        Labels::new(history, &self.story.txns)
    }
}

/// An operation, in the story's names.
pub fn op_words(labels: &Labels<'_>, history: &History, op: Op) -> String {
    let key = labels.key(op.key());
    match op {
        Op::Read { value, .. } => format!("read {key} = {}", labels.value(value)),
        Op::Write { value, .. } => format!("wrote {key} = {}", labels.value(value)),
        Op::Append { value, .. } => format!("appended {} to {key}", labels.value(value)),
        Op::ReadList { list, .. } => format!("read {key} = {}", labels.list(history.list(list))),
    }
}

/// An operation with its names in full.
pub fn full_op(history: &History, op: Op) -> String {
    let key = history.key_name(op.key());
    match op {
        Op::Read { value, .. } => format!("read {key} = {}", history.value_name(value)),
        Op::Write { value, .. } => format!("wrote {key} = {}", history.value_name(value)),
        Op::Append { value, .. } => format!("appended {} to {key}", history.value_name(value)),
        Op::ReadList { list, .. } => {
            let items = history.list(list).iter();
            let items: Vec<String> = items.map(|&value| history.value_name(value)).collect();
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
        Counterexample::Cyclic(proof) => return proof.keys(),
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}
