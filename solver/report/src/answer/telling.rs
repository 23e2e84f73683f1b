//! A violation in the words of `kingsnake-tell`. Text, page and pictures all take their names from its labels.

use kingsnake_solver::certify::Meaning;
use kingsnake_solver::model::{History, KeyId, Op, TxnId, ValueId};
use kingsnake_solver::promise::Promise;
use kingsnake_solver::verdict::Counterexample;
use kingsnake_tell::{AnomalyName, Labels, Story, recorded_keys, story_of};

/// A violation in words.
#[derive(Clone, Debug)]
pub struct Telling {
    /// The anomaly's name.
    pub name: AnomalyName,
    /// The story.
    pub story: Story,
    /// Which keys it is about.
    pub keys: Vec<KeyId>,
}

/// Describes how a promise was broken.
pub fn tell(meaning: &Meaning<'_>, promise: &Promise, counterexample: &Counterexample) -> Telling {
    let story = story_of(meaning, promise, counterexample);
    Telling {
        name: story.name,
        story,
        keys: keys(meaning.history(), counterexample),
    }
}

impl Telling {
    /// The names used in the story.
    pub fn labels<'h>(&self, history: &'h History) -> Labels<'h> {
        Labels::new(history, &self.story.txns)
    }
}

/// An operation, in the story's names.
pub fn op_words(
    labels: &Labels<'_>,
    history: &History,
    txn: TxnId,
    at: usize,
    keys: &[KeyId],
) -> String {
    labels.operation(txn, at, history.ops(txn)[at], keys)
}

/// An operation with its names in full.
pub fn full_op(history: &History, txn: TxnId, at: usize) -> String {
    let op = history.ops(txn)[at];
    let key = op
        .key()
        .map(|key| history.key_name(key))
        .unwrap_or_default();
    let name = |value| history.value_name(value);
    match op {
        Op::Read { value, .. } if history.is_tombstone(value) => {
            format!("found {key} deleted ({})", name(value))
        }
        Op::Read { value, .. } => format!("read {key} = {}", name(value)),
        Op::Write { value, .. } if history.is_tombstone(value) => {
            format!("deleted {key} ({})", name(value))
        }
        Op::Write { value, .. } if history.is_absence(value) => format!("deleted {key}"),
        Op::Write { value, .. } if history.is_insert(txn, at) => {
            format!("inserted {key} = {}", name(value))
        }
        Op::Write { value, .. } => format!("wrote {key} = {}", name(value)),
        Op::Append { value, .. } => format!("appended {} to {key}", name(value)),
        Op::ReadList { list, .. } => {
            let items: Vec<String> = history.list(list).iter().map(|&it| name(it)).collect();
            format!("read {key} = [{}]", items.join(", "))
        }
        Op::Range { range } => {
            let query = history.range(range);
            let row = |&row: &ValueId| {
                let key = history.key_name(history.value_key(row));
                if history.is_tombstone(row) {
                    return format!("{key} deleted ({})", name(row));
                }
                format!("{key} = {}", name(row))
            };
            let rows: Vec<String> = query.rows.iter().map(row).collect();
            let span = query.span.show(|token| history.symbols().show(token));
            if rows.is_empty() {
                return format!("queried {span}: nothing");
            }
            format!("queried {span}: {}", rows.join(", "))
        }
    }
}

/// The keys that a counterexample is about.
fn keys(history: &History, counterexample: &Counterexample) -> Vec<KeyId> {
    let mut keys = Vec::new();
    for leaf in counterexample.leaves() {
        match leaf {
            Counterexample::Local(findings) => {
                keys.extend(findings.iter().map(|finding| finding.key));
            }
            Counterexample::Cyclic(proof) => keys.extend(proof.keys()),
            Counterexample::Stuck(stuck) => keys.push(stuck.key),
            Counterexample::Recorded(why) => keys.extend(recorded_keys(history, why)),
            Counterexample::EitherWay { .. } => {}
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}
