//! The effect of an anomaly on the application.

use super::findings::changed_by;
use super::name::{AnomalyName, leaves};
use super::recorded::{RecordedWords, recorded_noticed};
use super::words::Words;
use crate::model::{KeyId, Op, TxnId};
use crate::verdict::{Counterexample, Finding, LocalAnomaly, Proof, Step, StepReason};

/// More names than this are counted.
const LISTED: usize = 4;

/// The effect on the application, in one or two sentences.
pub(super) fn noticed(
    words: &Words<'_>,
    name: AnomalyName,
    counterexample: &Counterexample,
) -> String {
    match counterexample {
        Counterexample::Local(findings) => {
            let told = findings.first().map(|it| noticed_locally(words, it));
            told.unwrap_or_default()
        }
        Counterexample::Stuck(stuck) => format!(
            "{} was given an answer that the register cannot have held at that time.",
            words.labels.txn(stuck.last)
        ),
        Counterexample::Recorded(refutation) => {
            recorded_noticed(RecordedWords::new(words.history()), refutation)
        }
        Counterexample::Cyclic(proof) => match leaves(proof).as_slice() {
            [] | [[]] => noticed_nowhere(words, proof),
            [steps] => noticed_in_cycle(words, name.short, steps),
            cases => noticed_in_cases(words, cases),
        },
        Counterexample::EitherWay { txn, .. } => format!(
            "Whether {} took effect or not, the transactions saw what no order of them explains.",
            words.labels.txn(*txn)
        ),
    }
}

/// Of a read that no version explains.
fn noticed_nowhere(words: &Words<'_>, proof: &Proof) -> String {
    if let Some((reader, _)) = proof.aggregates().next() {
        let who = words.labels.txn(reader);
        return format!(
            "{who} was given a result that the rows of the database never had together."
        );
    }
    let Some((reader, key)) = proof.choices().next() else {
        return "What the transactions saw fits no order of them.".to_owned();
    };
    let (who, key) = (words.labels.txn(reader), words.labels.key(key));
    format!("{who} was given an answer about {key} that the database cannot have held.")
}

fn noticed_locally(words: &Words<'_>, finding: &Finding) -> String {
    let who = words.labels.txn(finding.txn);
    let key = words.labels.key(finding.key);
    let other = finding.other.map(|(txn, _)| words.labels.txn(txn));
    let other = other.unwrap_or_else(|| "another transaction".to_owned());
    match finding.anomaly {
        LocalAnomaly::ThinAirRead => {
            format!("{who} acted on a value of {key} that no transaction in this log wrote.")
        }
        LocalAnomaly::AbortedRead | LocalAnomaly::AbortedVersion => {
            format!(
                "{who} acted on a value of {key} that was rolled back: {other} never took effect."
            )
        }
        LocalAnomaly::IntermediateRead => {
            format!("{who} acted on a value of {key} that {other} had not finished.")
        }
        LocalAnomaly::FutureRead => {
            format!("{who} read its own write of {key} before it wrote it.")
        }
        LocalAnomaly::NotMyOwnWrite | LocalAnomaly::NotMyLastWrite => {
            format!("{who} did not find its own change of {key}.")
        }
        LocalAnomaly::NonRepeatableRead => {
            let writer = changed_by(words.meaning.history(), finding);
            let by = writer.map_or_else(String::new, |(txn, op)| {
                let did = words.operation(txn, op, &[finding.key]);
                format!(": {} {did}", words.labels.txn(txn))
            });
            format!("{key} changed under {who} while it was running{by}.")
        }
        LocalAnomaly::InternalInconsistency => {
            format!("{who} did not find its own appends to {key}.")
        }
        LocalAnomaly::DuplicateElements => {
            format!("{who} found one append to {key} twice: it may have been applied twice.")
        }
        LocalAnomaly::IncompatibleOrder => {
            format!(
                "Two readers disagree on the order of the appends to {key}: some were lost or moved."
            )
        }
        LocalAnomaly::CyclicVersions => {
            format!(
                "{who} found {key} as it was before any transaction, although {other} had written it before."
            )
        }
        LocalAnomaly::MissingRow => {
            format!("{who} did not find the row {key}, although no transaction had deleted it.")
        }
        LocalAnomaly::DuplicateWrite => {
            format!("A reader of {key} cannot tell the version of {who} from that of {other}.")
        }
        LocalAnomaly::ScatteredAppends => {
            format!("The appends of one transaction to {key} did not stay together.")
        }
    }
}

/// The effect common to all cases: a write was missed; the transaction that missed it depends on the case.
fn noticed_in_cases(words: &Words<'_>, cases: &[&[Step]]) -> String {
    let mut readers: Vec<TxnId> = Vec::new();
    for case in cases {
        match missed(case).next() {
            Some(missed) => readers.push(missed.reader),
            None => return "What the transactions saw and wrote fits no order of them.".to_owned(),
        }
    }
    sort(words, &mut readers);
    let names = listed(words, &readers, "or");
    if readers.len() == 1 {
        return format!(
            "{names} acted on outdated data, whichever of the open orders of writes is the true one."
        );
    }
    format!(
        "{names} acted on outdated data. Which of them depends on an order of writes that the log does not tell."
    )
}

/// Which transaction missed whose write of which key.
struct Missed {
    reader: TxnId,
    writer: TxnId,
    key: KeyId,
}

fn missed(steps: &[Step]) -> impl Iterator<Item = Missed> + '_ {
    steps.iter().filter_map(|step| match step.reason {
        StepReason::Rw { key, .. } => Some(Missed {
            reader: step.from.txn,
            writer: step.to.txn,
            key,
        }),
        _ => None,
    })
}

fn noticed_in_cycle(words: &Words<'_>, name: &str, steps: &[Step]) -> String {
    let txn = |txn: TxnId| words.labels.txn(txn);
    let all = everybody(words, steps);
    let Some(first) = missed(steps).next() else {
        if let Some(missed) = noticed_by_sight(words, name, steps) {
            return missed;
        }
        return match name {
            "circular information flow" => format!(
                "Each of {all} acted on what another of them wrote, so none of them can have come first."
            ),
            "read of the future" => {
                let of = steps
                    .iter()
                    .find(|step| matches!(step.reason, StepReason::Wr { .. }));
                let of = of.map(|step| (txn(step.to.txn), txn(step.from.txn)));
                let (who, other) = of.unwrap_or_default();
                format!(
                    "{who} acted on what {other} wrote, although by the recorded order {other} came later."
                )
            }
            _ => format!("The writes of {all} are interleaved: what is left is a mixture of them."),
        };
    };
    let (reader, writer, key) = (
        txn(first.reader),
        txn(first.writer),
        words.labels.key(first.key),
    );
    let wrote = words.write(first.writer, first.key);
    let session = words.session_of(first.reader);
    match name {
        "lost update" => {
            let lost = missed(steps).find(|it| words.meaning.left(it.reader, it.key).is_some());
            noticed_lost(words, &lost.unwrap_or(first))
        }
        "write skew" => {
            let mut keys: Vec<String> = missed(steps).map(|it| words.labels.key(it.key)).collect();
            keys.sort_unstable();
            keys.dedup();
            format!(
                "{all} each acted on a state that the other was about to change. An invariant over {} may now be broken, \
                 although each transaction preserved it.",
                keys.join(" and ")
            )
        }
        "phantom" => {
            format!("The answer to {reader}'s query was not up to date: it does not show that {writer} {wrote}.")
        }
        "long fork" => {
            "Two readers disagree on which of two writes came first: two users see events in opposite orders.".to_owned()
        }
        "read your writes violated" => {
            format!("The user of session {session} does not find a change of their own: {writer} {wrote}.")
        }
        "monotonic reads violated" => {
            format!("In session {session}, {key} went back to an older value.")
        }
        "stale read" | "stale read of the initial state" => {
            format!("{reader} was given old data: it did not see that {writer} {wrote}.")
        }
        "monotonic writes violated" | "writes follow reads violated" | "causality violation" => {
            format!("{reader} saw a consequence without its cause: it did not see that {writer} {wrote}.")
        }
        "single anti-dependency cycle" if !saw_newer(steps) => {
            format!("{reader} acted on outdated data: it did not see that {writer} {wrote}.")
        }
        _ if missed(steps).count() == 1 => format!(
            "{reader} worked with a mixed state: it saw newer data, but not that {writer} {wrote}."
        ),
        _ => format!(
            "Each of {all} acted on a state that another was about to change. What they leave together, no order of them would leave."
        ),
    }
}

/// The update that was lost. If both read one version and overwrote it, the cycle alone does not tell which write came first.
fn noticed_lost(words: &Words<'_>, missed: &Missed) -> String {
    let (meaning, key) = (words.meaning, missed.key);
    let history = meaning.history();
    let pair = [missed.writer, missed.reader];
    let [seen, also_seen] = pair.map(|txn| meaning.version_read(txn, key));
    let is_open = seen.is_some() && seen == also_seen;
    let first = if is_open {
        let readers = pair.map(|txn| readers(words, txn, key));
        history.overwritten(key, pair, [&readers[0], &readers[1]])
    } else {
        Some(missed.writer)
    };
    let name = words.labels.key(key);
    let is_delete = |txn| {
        let left = meaning.left(txn, key);
        left.is_some_and(|it| history.is_absence(it))
    };
    let Some(first) = first else {
        let mut both = pair.to_vec();
        sort(words, &mut both);
        let both = listed(words, &both, "and");
        return format!(
            "One of the two updates of {name} by {both} is lost: each replaced what it had read, and neither saw the other's."
        );
    };
    let last = if first == pair[0] { pair[1] } else { pair[0] };
    let what = if is_delete(first) { "delete" } else { "update" };
    let did = match (is_delete(first), is_delete(last)) {
        (true, false) => "wrote the row again",
        (false, true) => "deleted it",
        _ => "replaced it",
    };
    let (first, last) = (words.labels.txn(first), words.labels.txn(last));
    format!("The {what} of {name} by {first} is lost: {last} {did} without having seen it.")
}

/// The transactions that read what a transaction left in a key.
fn readers(words: &Words<'_>, writer: TxnId, key: KeyId) -> Vec<TxnId> {
    let (meaning, history) = (words.meaning, words.meaning.history());
    let Some(left) = meaning.left(writer, key) else {
        return Vec::new();
    };
    let shows = |op: &Op| match *op {
        Op::Read { value, .. } => value == left,
        Op::ReadList { list, .. } => history.list(list).contains(&left),
        Op::Range { range } => history.range(range).rows.contains(&left),
        Op::Write { .. } | Op::Append { .. } => false,
    };
    let txns = history.txns().filter(|&txn| meaning.counts(txn));
    txns.filter(|&txn| history.ops(txn).iter().any(shows))
        .collect()
}

/// The effect on the transaction that missed a write, if a cycle rests on what a weak transaction saw.
fn noticed_by_sight(words: &Words<'_>, name: &str, steps: &[Step]) -> Option<String> {
    let (seen, reader, key) = steps.iter().find_map(|step| match step.reason {
        StepReason::Vis { reader, key } => Some((step.from.txn, reader, key)),
        _ => None,
    })?;
    let (who, other) = (words.labels.txn(reader), words.labels.txn(seen));
    let wrote = words.write(seen, key);
    Some(missed_sentence(name, &who, &other, &wrote))
}

/// Of a transaction that missed another's write at a weak level: `wrote` is what it missed, as in `wrote x = 1`.
pub(super) fn missed_sentence(name: &str, who: &str, other: &str, wrote: &str) -> String {
    match name {
        "a session that forgets its past" => {
            format!(
                "The user of {who}'s session does not find an earlier change of that session: {other} {wrote}."
            )
        }
        "causality violation" => {
            format!(
                "{who} saw a consequence without its cause: it did not see that {other} {wrote}."
            )
        }
        _ => format!(
            "{who} worked with half of {other}'s changes: it saw one of them, but not that {other} {wrote}."
        ),
    }
}

/// Whether the transaction that missed a write read something newer, so that the state that it saw is a mixture.
fn saw_newer(steps: &[Step]) -> bool {
    let mut steps = steps.iter().filter(|step| step.reason != StepReason::Begin);
    let is_rw = |step: &Step| matches!(step.reason, StepReason::Rw { .. });
    let Some(reader) = steps
        .clone()
        .find(|step| is_rw(step))
        .map(|step| step.from.txn)
    else {
        return false;
    };
    steps.any(|step| step.to.txn == reader && matches!(step.reason, StepReason::Wr { .. }))
}

/// The transactions of a cycle: `T1 and T2`, `T1, T2 and 5 more`.
fn everybody(words: &Words<'_>, steps: &[Step]) -> String {
    let mut txns: Vec<TxnId> = steps.iter().map(|step| step.from.txn).collect();
    sort(words, &mut txns);
    listed(words, &txns, "and")
}

/// Sorts transactions in display order, without duplicates.
fn sort(words: &Words<'_>, txns: &mut Vec<TxnId>) {
    let history = words.meaning.history();
    txns.sort_by(|&one, &other| history.compare_txns(one, other));
    txns.dedup();
}

fn listed(words: &Words<'_>, txns: &[TxnId], and: &str) -> String {
    let shown = txns.iter().take(LISTED);
    let mut names: Vec<String> = shown.map(|&txn| words.labels.txn(txn)).collect();
    if txns.len() > LISTED {
        names.push(format!("{} more", txns.len() - LISTED));
    }
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} {and} {last}", rest.join(", ")),
        None => "the transactions".to_owned(),
    }
}
