//! What happened, in the words of `kingsnake-tell`. Words, page and pictures all take their names from its labels.

use kingsnake_solver::certify::Meaning;
use kingsnake_solver::level::Spec;
use kingsnake_solver::model::{History, KeyId, Op, Status, TxnId, ValueId};
use kingsnake_solver::verdict::Counterexample;
use kingsnake_tell::{AnomalyName, LINEARIZABLE, Labels, Story, story_by};

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

/// Tells a counterexample to linearizability: with the times, which the other levels' stories need less.
pub fn tell_linearizable(
    meaning: &Meaning<'_>,
    spec: Spec,
    promise: &str,
    counterexample: &Counterexample,
) -> Telling {
    let mut telling = tell(meaning, spec, counterexample);
    let history = meaning.history();
    let story = &mut telling.story;
    story.headline = story.headline.replace(&spec.to_string(), promise);
    LINEARIZABLE.clone_into(&mut story.definition);
    let begins = story.txns.iter().map(|&txn| history.interval(txn).begin);
    let origin = begins.filter(|&it| it > i64::MIN).min().unwrap_or(0);
    for (&txn, words) in story.txns.iter().zip(&mut story.operations) {
        let interval = history.interval(txn);
        let is_open = interval.commit == i64::MAX || history.status(txn) == Status::Unknown;
        let end = if is_open {
            "an unknown end".to_owned()
        } else {
            since(interval.commit, origin)
        };
        let begin = if interval.begin == i64::MIN {
            "an unknown start".to_owned()
        } else {
            since(interval.begin, origin)
        };
        words.push_str(&format!(" (from {begin} to {end})"));
    }
    telling
}

/// A time after the first of a story, with its unit.
fn since(time: i64, origin: i64) -> String {
    let nanoseconds = i128::from(time) - i128::from(origin);
    let number = nanoseconds as f64;
    match nanoseconds.unsigned_abs() {
        0..10_000 => format!("{nanoseconds} ns"),
        10_000..10_000_000 => format!("{:.3} ms", number / 1e6),
        _ => format!("{:.6} s", number / 1e9),
    }
}

/// Tells a counterexample.
pub fn tell(meaning: &Meaning<'_>, spec: Spec, counterexample: &Counterexample) -> Telling {
    let story = story_by(meaning, spec, counterexample);
    Telling {
        name: story.name,
        story,
        keys: keys(counterexample),
    }
}

impl Telling {
    /// What everybody is called in the story.
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
fn keys(counterexample: &Counterexample) -> Vec<KeyId> {
    let mut keys = Vec::new();
    for leaf in counterexample.leaves() {
        match leaf {
            Counterexample::Local(findings) => {
                keys.extend(findings.iter().map(|finding| finding.key));
            }
            Counterexample::Cyclic(proof) => keys.extend(proof.keys()),
            Counterexample::Stuck(stuck) => keys.push(stuck.key),
            Counterexample::EitherWay { .. } => {}
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}
