//! Names an anomaly by its shape: Adya's phenomena, and the names that testers use.
//!
//! Adya, *Weak Consistency* (1999); Terry et al. for the session guarantees; Elle for the session and real-time variants.

use super::direct::direct_order;
use super::recorded::recorded_name;
use crate::certify::Meaning;
use crate::certify::weak::{Seen, why_seen};
use crate::level::{Model, Spec};
use crate::model::{History, KeyId, Op, TxnId, ValueId};
use crate::verdict::{Counterexample, LocalAnomaly, Proof, Split, Step, StepReason};

/// A row that a range query missed.
const PHANTOM: &str = "phantom";

/// A transaction saw of a key what no version of it can show.
const IMPOSSIBLE_READ: AnomalyName = AnomalyName {
    short: "impossible read",
    adya: None,
    about: "A transaction saw a row in a state that no version of it, and no initial state, explains.",
};

/// An aggregate whose result no versions give.
const IMPOSSIBLE_RESULT: AnomalyName = AnomalyName {
    short: "impossible result",
    adya: None,
    about: "An aggregate returned a result that no combination of versions of its rows explains.",
};

/// A row that a transaction found by one question and not by another.
const FLEETING_ROW: AnomalyName = AnomalyName {
    short: PHANTOM,
    adya: None,
    about: "One query of a transaction returned a row, and another query that the row satisfies did not: the row changed between the two.",
};

/// The name of an anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnomalyName {
    /// The testers' name.
    pub short: &'static str,
    /// Adya's name, with `-session` or `-realtime` if the cycle needs that order; `None` if he has none.
    pub adya: Option<&'static str>,
    /// What happened, in one sentence.
    pub about: &'static str,
}

/// Names a counterexample to a level.
pub fn name(history: &History, spec: Spec, counterexample: &Counterexample) -> AnomalyName {
    name_by(&Meaning::of(history), spec, counterexample)
}

/// Names a counterexample of a history whose meaning has been read.
pub fn name_by(meaning: &Meaning<'_>, spec: Spec, counterexample: &Counterexample) -> AnomalyName {
    match counterexample {
        Counterexample::Local(findings) => {
            let first = findings.first().map(|finding| finding.anomaly);
            first.map_or(cycle_name("G2", ""), local_name)
        }
        Counterexample::Cyclic(proof) => {
            let names = leaves(proof)
                .into_iter()
                .map(|steps| Shape::of(steps).name(meaning, spec));
            let mut names: Vec<AnomalyName> = names.collect();
            // In every case the history shows at least the mildest of the phenomena.
            names.sort_by_key(|name| severity(name.adya.unwrap_or("")));
            let mildest = names.pop().unwrap_or_else(|| unexplained(meaning, proof));
            let agree = names.iter().all(|name| name.short == mildest.short);
            if agree { mildest } else { general(mildest) }
        }
        Counterexample::EitherWay {
            lost, took_effect, ..
        } => {
            let [one, other] = [lost, took_effect].map(|case| name_by(meaning, spec, case));
            let rank = |name: &AnomalyName| severity(name.adya.unwrap_or(""));
            if rank(&one) >= rank(&other) {
                one
            } else {
                other
            }
        }
        Counterexample::Recorded(refutation) => recorded_name(refutation),
        Counterexample::Stuck(_) => AnomalyName {
            short: "no linearization",
            adya: None,
            about: "No order of the operations on a register explains every observed result.",
        },
    }
}

/// Names a view of a row that no version explains. If the transaction read the row, and some version explains that a
/// condition did not choose it, either answer alone is possible.
fn unexplained(meaning: &Meaning<'_>, proof: &Proof) -> AnomalyName {
    let history = meaning.history();
    if proof.aggregates().next().is_some() {
        return IMPOSSIBLE_RESULT;
    }
    let Proof::Choice { reader, key, .. } = *proof else {
        return IMPOSSIBLE_READ;
    };
    let mut ops = history.ops(reader).iter();
    let is_read = ops.any(|op| matches!(op, Op::Read { key: it, .. } if *it == key));
    let values = || (0..history.n_values() as u32).map(ValueId);
    let may_be_missed = |query: u32| {
        let mut others = values().filter(|&it| history.value_key(it) == key);
        !history.is_there_initially(key) || others.any(|it| !history.satisfies(query, it))
    };
    let mut predicates = history.predicates(reader);
    let is_explained = predicates.any(|it| {
        let asked = &history.queries()[it.query as usize];
        history.table_of(key) == Some(asked.table) && may_be_missed(it.query)
    });
    if is_read && is_explained {
        FLEETING_ROW
    } else {
        IMPOSSIBLE_READ
    }
}

/// Keeps the common letters, drops those of single cases.
fn general(name: AnomalyName) -> AnomalyName {
    let letters = name.adya.unwrap_or("G2");
    let (class, suffix) = split_suffix(letters);
    AnomalyName {
        adya: Some(letters),
        ..cycle_name(class, suffix)
    }
}

fn split_suffix(letters: &'static str) -> (&'static str, &'static str) {
    for suffix in ["-realtime", "-session"] {
        if let Some(class) = letters.strip_suffix(suffix) {
            return (class, suffix);
        }
    }
    (letters, "")
}

fn severity(letters: &'static str) -> usize {
    let (class, suffix) = split_suffix(letters);
    let classes = ["G0", "G1c", "G-single", "G-nonadjacent", "G2-item"];
    let rank = classes.iter().position(|&it| it == class);
    2 * rank.unwrap_or(classes.len()) + usize::from(!suffix.is_empty())
}

/// The cycles of the cases that must be considered.
pub(super) fn leaves(proof: &Proof) -> Vec<&[Step]> {
    let whole = proof.fold(
        |steps| (Some(steps), vec![steps]),
        |Split { key, one, other }, (if_one, mut leaves), (if_other, other_leaves)| {
            // Writes of transactions that are ordered anyway are not a case.
            let needs_one = direct_order(if_one, key, other, one).is_none();
            let needs_other = direct_order(if_other, key, one, other).is_none();
            if !needs_one && needs_other {
                leaves.clear();
            }
            if needs_other {
                leaves.extend(other_leaves);
            }
            (None, leaves)
        },
        |_, _, _, cases| {
            let leaves = cases.into_iter().flat_map(|(_, (_, leaves))| leaves);
            (None, leaves.collect())
        },
        |_, _, cases| {
            let leaves = cases.into_iter().flat_map(|(_, _, (_, leaves))| leaves);
            (None, leaves.collect())
        },
    );
    whole.1
}

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StepKind {
    So,
    Rt,
    Wr,
    Ww,
    Rw,
    Vis,
}

macro_rules! letters {
    ($class:literal, $suffix:expr) => {
        match $suffix {
            "-session" => concat!($class, "-session"),
            "-realtime" => concat!($class, "-realtime"),
            _ => $class,
        }
    };
}

/// A cycle without its begins, rotated so that an rw step, if any, comes last.
struct Shape {
    kinds: Vec<StepKind>,
    steps: Vec<Step>,
}

impl Shape {
    fn of(steps: &[Step]) -> Self {
        let mut steps: Vec<Step> = steps.to_vec();
        steps.retain(|step| step.reason != StepReason::Begin);
        let last = steps.iter().rposition(|step| kind(step) == StepKind::Rw);
        if let Some(last) = last {
            let n_turns = (last + 1) % steps.len();
            steps.rotate_left(n_turns);
        }
        Shape {
            kinds: steps.iter().map(kind).collect(),
            steps,
        }
    }

    fn key(&self, at: usize) -> Option<KeyId> {
        self.steps[at].reason.key()
    }

    fn count(&self, kind: StepKind) -> usize {
        self.kinds.iter().filter(|&&it| it == kind).count()
    }

    /// Adya's class, and whether session or real-time order is needed.
    fn class(&self) -> (&'static str, &'static str) {
        let n_steps = self.kinds.len();
        let adjacent = (0..n_steps).any(|at| {
            n_steps > 1
                && self.kinds[at] == StepKind::Rw
                && self.kinds[(at + 1) % n_steps] == StepKind::Rw
        });
        let class = match self.count(StepKind::Rw) {
            0 if self.count(StepKind::Wr) == 0 => "G0",
            0 => "G1c",
            1 => "G-single",
            _ if adjacent => "G2",
            _ => "G-nonadjacent",
        };
        let suffix = match (self.count(StepKind::Rt), self.count(StepKind::So)) {
            (0, 0) => "",
            (0, _) => "-session",
            _ => "-realtime",
        };
        (class, suffix)
    }

    fn name(&self, meaning: &Meaning<'_>, spec: Spec) -> AnomalyName {
        let missed = self.steps.iter().find_map(|step| match step.reason {
            StepReason::Vis { reader, key } => Some((reader, key, step)),
            _ => None,
        });
        if let Some((reader, key, step)) = missed {
            return missed_name(meaning, spec, (reader, key), step);
        }
        let (class, suffix) = self.class();
        let plain = cycle_name(class, suffix);
        let is_pair = matches!(self.kinds.as_slice(), [StepKind::Rw, StepKind::Rw]);
        if (class == "G-single" || is_pair) && self.is_lost_update(meaning) {
            // In either order one of the two overwrote the other's write: one of the two rw steps is a ww step as well.
            return AnomalyName {
                short: "lost update",
                adya: cycle_name("G-single", suffix).adya,
                about: "Two transactions read the same version of a key and both overwrote it.",
            };
        }
        if let Some(about) = self.phantom(meaning) {
            let adya = match class {
                "G2" => letters!("G2", suffix),
                _ => plain.adya.unwrap_or("G2"),
            };
            return AnomalyName {
                short: PHANTOM,
                adya: Some(adya),
                about,
            };
        }
        match self.well_known(meaning) {
            Some((short, about)) => AnomalyName {
                short,
                adya: plain.adya,
                about,
            },
            None => plain,
        }
    }

    /// The shapes that have names of their own.
    fn well_known(&self, meaning: &Meaning<'_>) -> Option<(&'static str, &'static str)> {
        use StepKind::{Rt, Rw, So, Wr, Ww};
        let stale_initial = matches!(
            self.steps.last()?.reason,
            StepReason::Rw { writer: None, .. }
        );
        let other_keys = |a: usize, b: usize| self.key(a) != self.key(b);
        Some(match *self.kinds.as_slice() {
            [Rw, Rw] if other_keys(0, 1) => (
                "write skew",
                "Two transactions each read what the other then overwrote, on different keys.",
            ),
            [Wr, Rw] if other_keys(0, 1) && self.is_new_then_old(meaning.history()) => (
                "non-monotonic read",
                "A transaction saw one write of another, and afterwards missed a second one.",
            ),
            [Wr, Rw] if other_keys(0, 1) => (
                "fractured read",
                "A transaction missed one write of another, and afterwards saw a second one.",
            ),
            [Ww, Rw] if !other_keys(0, 1) => (
                "lost update",
                "A transaction overwrote a write that it had not seen, although it had read the key.",
            ),
            [So, Rw] if stale_initial => (
                "stale read of the initial state",
                "A session read the initial state of a key that it had overwritten before.",
            ),
            [So, Rw] => (
                "read your writes violated",
                "A session read a version of a key that it had overwritten before.",
            ),
            [Rt, Rw] if stale_initial => (
                "stale read of the initial state",
                "A transaction read the initial state although a write had committed before it began.",
            ),
            [Rt, Rw] => (
                "stale read",
                "A transaction read a version that had been overwritten before it began.",
            ),
            [Wr, So, Rw] if !other_keys(0, 2) => (
                "monotonic reads violated",
                "A session read a version of a key, and later an older one.",
            ),
            [So, Wr, Rw] => (
                "monotonic writes violated",
                "A transaction saw a session's later write and missed an earlier one.",
            ),
            [So, Ww] | [Ww, So] => (
                "monotonic writes violated",
                "A session's writes of a key took effect in the opposite order.",
            ),
            [Wr, So, Wr, Rw] => (
                "writes follow reads violated",
                "A transaction saw a write and missed another that the writing session had read before.",
            ),
            [Wr, Rw, Wr, Rw] if other_keys(1, 3) => (
                "long fork",
                "Two readers saw two writes in opposite orders.",
            ),
            [Rt | So, Wr] | [Wr, Rt | So] => (
                "read of the future",
                "A transaction read what a later one wrote.",
            ),
            _ if self.count(Rw) == 1 && self.count(Ww) == 0 && self.count(Rt) == 0 => (
                "causality violation",
                "A transaction missed a write that what it saw depends on.",
            ),
            _ => return None,
        })
    }

    /// Whether the reader of a cycle of a wr and an rw step saw the other's write first, and missed another one afterwards.
    fn is_new_then_old(&self, history: &History) -> bool {
        let place = |at: usize| {
            let key = self.key(at)?;
            let mut ops = history.ops(self.steps[1].from.txn).iter();
            ops.position(|&op| history.touches(op, key))
        };
        matches!((place(0), place(1)), (Some(new), Some(old)) if new < old)
    }

    /// What happened if some range query did not return a row that the next transaction of the cycle wrote.
    fn phantom(&self, meaning: &Meaning<'_>) -> Option<&'static str> {
        let history = meaning.history();
        let is_missed = |step: &Step| {
            let StepReason::Rw { key, .. } = step.reason else {
                return false;
            };
            let ops = history.ops(step.from.txn).iter();
            let first = ops.copied().find(|&op| history.touches(op, key));
            let Some(Op::Range { range }) = first else {
                return false;
            };
            let rows = history.range(range).rows.iter();
            let left = meaning.left(step.to.txn, key);
            rows.filter(|&&row| history.value_key(row) == key && !history.is_tombstone(row))
                .count()
                == 0
                && left.is_some_and(|left| !history.is_absence(left))
        };
        let n_missed = self.steps.iter().filter(|step| is_missed(step)).count();
        match (n_missed, self.kinds.as_slice()) {
            (0, _) => None,
            (2.., [StepKind::Rw, StepKind::Rw]) => Some(
                "Two transactions each queried a range and missed the row that the other wrote into it.",
            ),
            _ => Some(
                "A range query missed a row that another transaction wrote into the range, and no order \
                 puts that write after the query.",
            ),
        }
    }

    /// Two transactions that began from the same version of a key and both overwrote it.
    fn is_lost_update(&self, meaning: &Meaning<'_>) -> bool {
        let mut txns: Vec<TxnId> = self.steps.iter().map(|step| step.from.txn).collect();
        txns.dedup();
        let [one, two] = *txns.as_slice() else {
            return false;
        };
        let mut keys = (0..self.steps.len()).filter_map(|at| self.key(at));
        keys.any(|key| {
            let seen = meaning.version_read(one, key);
            let both_left = [one, two]
                .iter()
                .all(|&txn| meaning.left(txn, key).is_some());
            both_left && seen.is_some() && seen == meaning.version_read(two, key)
        })
    }
}

fn kind(step: &Step) -> StepKind {
    match step.reason {
        StepReason::Begin | StepReason::Session => StepKind::So,
        StepReason::RealTime => StepKind::Rt,
        StepReason::Wr { .. } => StepKind::Wr,
        // An order given by the user counts like one of two writes.
        StepReason::Ww { .. } | StepReason::Stated { .. } => StepKind::Ww,
        StepReason::Rw { .. } => StepKind::Rw,
        StepReason::Vis { .. } => StepKind::Vis,
    }
}

/// The name of a cycle in which a weak transaction missed what it saw; after Plume's patterns.
fn missed_name(
    meaning: &Meaning<'_>,
    spec: Spec,
    (reader, key): (TxnId, KeyId),
    step: &Step,
) -> AnomalyName {
    let model = spec.model_of(meaning.history(), reader);
    let is_rc = matches!(model, Model::Rc | Model::RcSo);
    let seen = why_seen(
        meaning,
        spec,
        reader,
        (key, step.read_instead()),
        step.from.txn,
    );
    // Reads of a case are seen through a key.
    let seen = seen.unwrap_or(Seen::Through(key));
    let (short, about) = match seen {
        Seen::Through(_) if is_rc => (
            "non-monotonic read",
            "A transaction saw one write of another and then missed another one.",
        ),
        Seen::Through(_) => (
            "fractured read",
            "A transaction saw one write of another and missed another one.",
        ),
        Seen::Session => (
            "a session that forgets its past",
            "A transaction missed what came before it in its session.",
        ),
        Seen::Path(_) => (
            "causality violation",
            "A transaction missed what had happened before it.",
        ),
    };
    AnomalyName {
        short,
        adya: None,
        about,
    }
}

/// The names of cycles without a shape of their own.
fn cycle_name(class: &str, suffix: &str) -> AnomalyName {
    let (short, adya, about) = match class {
        "G0" => (
            "write cycle",
            letters!("G0", suffix),
            "Transactions overwrote each other in a circle.",
        ),
        "G1c" => (
            "circular information flow",
            letters!("G1c", suffix),
            "Transactions read or overwrote each other's writes in a circle.",
        ),
        "G-single" => (
            "single anti-dependency cycle",
            letters!("G-single", suffix),
            "A transaction missed a write that what it saw, or what it overwrote, depends on.",
        ),
        "G-nonadjacent" => (
            "cycle with nonadjacent anti-dependencies",
            letters!("G-nonadjacent", suffix),
            "Several transactions missed each other's writes in a circle, never two in a row.",
        ),
        _ => (
            "anti-dependency cycle",
            letters!("G2", suffix),
            "Several transactions missed each other's writes in a circle.",
        ),
    };
    let adya = match adya {
        "G2" => "G2-item",
        "G2-session" => "G2-item-session",
        "G2-realtime" => "G2-item-realtime",
        other => other,
    };
    AnomalyName {
        short,
        adya: Some(adya),
        about,
    }
}

/// The names of the anomalies that need no cycle.
pub fn local_name(anomaly: LocalAnomaly) -> AnomalyName {
    let (short, adya, about) = match anomaly {
        LocalAnomaly::ThinAirRead => (
            "thin-air read",
            None,
            "A transaction read a value that was never written.",
        ),
        LocalAnomaly::AbortedRead => (
            "aborted read",
            Some("G1a"),
            "A value was read that an aborted transaction wrote.",
        ),
        LocalAnomaly::IntermediateRead => (
            "intermediate read",
            Some("G1b"),
            "A value was read that its writer replaced before it committed.",
        ),
        LocalAnomaly::FutureRead => (
            "future read",
            None,
            "A transaction read a value that it writes itself only later.",
        ),
        LocalAnomaly::NotMyOwnWrite => (
            "not my own write",
            None,
            "After its own write of a key, a transaction read what another wrote.",
        ),
        LocalAnomaly::NotMyLastWrite => (
            "not my last write",
            None,
            "After several writes of a key, a transaction read one that is not its last.",
        ),
        LocalAnomaly::NonRepeatableRead => (
            "non-repeatable read",
            None,
            "A transaction read a key twice, did not write it between, and saw two values.",
        ),
        LocalAnomaly::InternalInconsistency => (
            "internal inconsistency",
            None,
            "A transaction read a list without its own appends at the end.",
        ),
        LocalAnomaly::DuplicateElements => (
            "duplicate elements",
            None,
            "A list was read that shows one append twice.",
        ),
        LocalAnomaly::IncompatibleOrder => (
            "incompatible order",
            None,
            "Two lists of one key were read, neither of which begins with the other.",
        ),
        LocalAnomaly::AbortedVersion => (
            "aborted version",
            None,
            "The version order lists a value that an aborted transaction wrote.",
        ),
        LocalAnomaly::MissingRow => (
            "missing row",
            None,
            "A range query did not return a row that no transaction had deleted.",
        ),
        LocalAnomaly::CyclicVersions => (
            "cyclic versions",
            None,
            "What is assumed of the order of a key's versions contradicts what its readers found.",
        ),
        LocalAnomaly::DuplicateWrite => (
            "duplicate write",
            None,
            "Two committed writes gave one key the same value, so its versions cannot be told apart.",
        ),
        LocalAnomaly::ScatteredAppends => (
            "scattered appends",
            None,
            "The version order of a list takes one transaction's appends apart, or reverses them.",
        ),
    };
    AnomalyName { short, adya, about }
}
