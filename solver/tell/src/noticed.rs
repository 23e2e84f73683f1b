//! What an anomaly means for who meets it: what the application would have noticed, what the level had promised, and what
//! usually causes it.

use super::name::AnomalyName;
use super::words::Words;
use crate::level::{Model, Spec};
use crate::model::{KeyId, TxnId};
use crate::verdict::{Counterexample, Finding, LocalAnomaly, Step, StepReason};

/// More names than this are counted.
const LISTED: usize = 4;

/// What the application would have noticed, in one or two sentences.
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
        Counterexample::Cyclic(proof) => {
            let steps = proof.cycles().next().unwrap_or(&[]);
            noticed_in_cycle(words, name.short, steps)
        }
    }
}

fn noticed_locally(words: &Words<'_>, finding: &Finding) -> String {
    let who = words.labels.txn(finding.txn);
    let key = words.labels.key(finding.key);
    let other = finding.other.map(|(txn, _)| words.labels.txn(txn));
    let other = other.unwrap_or_else(|| "another transaction".to_owned());
    match finding.anomaly {
        LocalAnomaly::ThinAirRead => {
            format!("{who} acted on a value of {key} that nobody in this log wrote.")
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
            format!("{key} changed under {who} while it was running.")
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
        LocalAnomaly::MissingRow => {
            format!("{who} did not find the row {key}, although nobody had deleted it.")
        }
        LocalAnomaly::ScatteredAppends => {
            format!("The appends of one transaction to {key} did not stay together.")
        }
    }
}

/// Who missed whose write of which key.
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
        return match name {
            "circular information flow" => format!(
                "Each of {all} acted on what another of them wrote, so none of them can have come first."
            ),
            "read of the future" => {
                "A transaction acted on data that, by the recorded order, was written only later."
                    .to_owned()
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
            let lost = lost.unwrap_or(first);
            let (reader, writer, key) = (txn(lost.reader), txn(lost.writer), words.labels.key(lost.key));
            format!("The update of {key} by {writer} is lost: {reader} replaced it without having seen it.")
        }
        "write skew" => {
            let mut keys: Vec<String> = missed(steps).map(|it| words.labels.key(it.key)).collect();
            keys.dedup();
            format!(
                "{all} each acted on a state that the other was about to change. A rule over {} can be broken now, \
                 although each of them kept it.",
                keys.join(" and ")
            )
        }
        "phantom" => format!(
            "The answer to {reader}'s query was incomplete: it lacks what {writer} {}.",
            wrote
        ),
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
        _ if missed(steps).count() == 1 => format!(
            "{reader} worked with a mixed state: it saw newer data, but not that {writer} {wrote}."
        ),
        _ => format!(
            "Each of {all} acted on a state that another was about to change. What they leave together, no order of them would leave."
        ),
    }
}

/// The transactions of a cycle: `T1 and T2`, `T1, T2 and 5 more`.
fn everybody(words: &Words<'_>, steps: &[Step]) -> String {
    let mut txns: Vec<TxnId> = steps.iter().map(|step| step.from.txn).collect();
    txns.sort_unstable();
    txns.dedup();
    let mut names: Vec<String> = txns
        .iter()
        .take(LISTED)
        .map(|&txn| words.labels.txn(txn))
        .collect();
    if txns.len() > LISTED {
        names.push(format!("{} more", txns.len() - LISTED));
    }
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
        None => "the transactions".to_owned(),
    }
}

/// What a level promises, in one line.
pub(super) fn definition(spec: Spec, is_register: bool) -> String {
    if is_register {
        return "Linearizability promises that each operation takes effect at one moment between its start and its end.".to_owned();
    }
    let promise = match spec.model {
        Model::Ser => "some order of all transactions, one after another, explains every read",
        Model::Si => {
            "each transaction reads from the snapshot at its begin, and of two that overlap at most one writes a key"
        }
        Model::Psi => {
            "each transaction reads all that happened before it, and of two concurrent ones at most one writes a key"
        }
        Model::Pc => {
            "each transaction reads from the snapshot at its begin, and all see commits in one order"
        }
        Model::Cc => "whoever sees a write sees also everything that happened before it",
        Model::Ra => "whoever sees a write of a transaction sees all of that transaction's writes",
        Model::RcSo | Model::Rc => {
            "reads return committed values only, and never go back within a transaction"
        }
        Model::Mixed => "each transaction keeps the promise of its own level",
    };
    let session = if spec.session_order {
        "; each session's transactions keep their order"
    } else {
        ""
    };
    let clock = match spec.real_time {
        Some(_) => "; what had ended before another began comes before it",
        None => "",
    };
    let name = spec.to_string();
    let (name, _) = name.split_once(" with ").unwrap_or((&name, ""));
    let name = name.split(',').next().unwrap_or(name);
    let mut line = format!("{name} promises: {promise}{session}{clock}.");
    if let Some(first) = line.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    line
}

/// What usually causes an anomaly, the most likely first.
pub(super) fn causes(name: &str) -> &'static [&'static str] {
    match name {
        "lost update" => &[
            "The application reads a value, computes a new one, and writes it back without locking the row (SELECT … FOR UPDATE) or comparing versions.",
            "The database ran the transaction at read committed, not at the level that was asked for.",
            "Two nodes accepted writes of one key at the same time.",
        ],
        "write skew" | "anti-dependency cycle" => &[
            "Snapshot isolation is the strongest level that the database gives, whatever its name for it; Oracle's SERIALIZABLE and MySQL's REPEATABLE READ are examples.",
            "Reads on which a decision rests do not lock what they read.",
        ],
        "phantom" => &[
            "Predicates are not locked: locks or conflict checks cover the rows that a query returned, not those that it would return.",
            "A secondary index is read at another moment than the table.",
        ],
        "fractured read" | "non-monotonic read" | "single anti-dependency cycle" => &[
            "Each statement reads from a snapshot of its own, as at read committed.",
            "Reads go to several nodes or shards that are not at the same point.",
            "A cache answers some of the reads.",
        ],
        "long fork" | "cycle with nonadjacent anti-dependencies" => &[
            "Replicas apply commits in different orders (parallel snapshot isolation).",
            "Readers take snapshots from nodes that have not seen each other's commits.",
        ],
        "read your writes violated"
        | "monotonic reads violated"
        | "stale read"
        | "stale read of the initial state" => &[
            "Reads go to a replica that lags behind.",
            "The client was moved to another node between two transactions.",
            "A cache was not invalidated.",
        ],
        "monotonic writes violated" | "writes follow reads violated" | "causality violation" => &[
            "Replication delivers writes without waiting for those that they depend on.",
            "Sessions move between nodes without carrying what they have seen.",
        ],
        "read of the future" => &[
            "The clients' clocks disagree by more than --clock-drift allows.",
            "The log gives the transactions of a session in another order than they ran.",
        ],
        "circular information flow" => &[
            "Transactions read each other's writes before they committed (dirty reads).",
            "The log joins operations of several transactions under one id.",
        ],
        "write cycle" => &[
            "Writers do not lock, or release their locks before they commit (dirty writes).",
            "Replicas resolve conflicting writes key by key.",
        ],
        "thin-air read" => &[
            "The log lacks the state before the test: say it in the header, as \"initial\".",
            "The log lacks a transaction, or spells a value in two ways.",
            "A write was applied whose client saw an error.",
        ],
        "aborted read" | "aborted version" => &[
            "The database shows writes before they commit (read uncommitted).",
            "The client logged \"aborted\" for a commit whose end it does not know: log \"unknown\".",
        ],
        "intermediate read" => {
            &["The database shows writes before they commit (read uncommitted)."]
        }
        "no linearization" => &[
            "Reads are answered by a replica, or by a leader that has been replaced.",
            "A write that timed out took effect later.",
            "The clients' clocks disagree.",
        ],
        "duplicate elements" => &["A write was retried although it had taken effect."],
        "incompatible order" | "scattered appends" => {
            &["Two nodes accepted appends at the same time, and one of them was dropped."]
        }
        "not my own write"
        | "not my last write"
        | "future read"
        | "internal inconsistency"
        | "non-repeatable read" => &[
            "Statements of one transaction ran on several connections, or outside of the transaction (autocommit).",
            "Each statement reads from a snapshot of its own, as at read committed.",
        ],
        "missing row" => {
            &["A query was answered from an index or a node that had not seen the row yet."]
        }
        _ => {
            &["The database ran the transactions at a weaker level than the one that was checked."]
        }
    }
}
