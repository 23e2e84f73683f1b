//! Words for the anomalies without a cycle.

use super::words::Words;
use crate::model::{History, Op, TxnId};
use crate::verdict::{Finding, LocalAnomaly};

/// One finding as a sentence.
pub(super) fn tell_finding(history: &History, words: &Words<'_>, finding: &Finding) -> String {
    let who = words.with_session(finding.txn);
    let did = words.operation(finding.txn, finding.op, &[finding.key]);
    let there = finding.other.map(|(txn, op)| {
        (
            words.labels.txn(txn),
            words.operation(txn, op, &[finding.key]),
        )
    });
    let (other, other_did) =
        there.unwrap_or_else(|| ("another transaction".to_owned(), "wrote it".to_owned()));
    let is_range = matches!(
        history.ops(finding.txn).get(finding.op),
        Some(Op::Range { .. })
    );
    // The row of a query's answer that the finding is about.
    let did_one = || {
        let ops = history.ops(finding.txn).get(finding.op);
        let rows = ops.into_iter().flat_map(|&op| match op {
            Op::Range { range } => history.range(range).rows,
            _ => &[],
        });
        let mut rows = rows.filter(|&&row| history.value_key(row) == finding.key);
        match rows.next() {
            Some(&row) => format!("{did}; {}", words.labels.row(row)),
            None => did.clone(),
        }
    };
    match finding.anomaly {
        LocalAnomaly::ThinAirRead => format!("{who} {}, which was never written.", did_one()),
        LocalAnomaly::AbortedRead => {
            let did = did_one();
            format!("{who} {did}, but {other}, which {other_did}, aborted.")
        }
        LocalAnomaly::IntermediateRead => {
            let rest = match history.ops(finding.txn).get(finding.op) {
                Some(Op::ReadList { .. }) => "appended more than the list shows",
                _ => "overwrote it before it committed",
            };
            let did = did_one();
            format!("{who} {did}, but {other}, which {other_did}, {rest}.")
        }
        LocalAnomaly::FutureRead => {
            format!("{who} {did} before it {other_did} itself.")
        }
        LocalAnomaly::NotMyOwnWrite if is_range => {
            format!("{who} {other_did}, then {did}, which does not show it.")
        }
        LocalAnomaly::NonRepeatableRead if is_range => {
            let key = words.labels.key(finding.key);
            let writer = changer(history, words, finding);
            format!("{who} {other_did}, then {did}, without writing {key} between.{writer}")
        }
        LocalAnomaly::NotMyOwnWrite => {
            format!("{who} {other_did}, then {did}, which is not its own.")
        }
        LocalAnomaly::NotMyLastWrite => {
            format!("{who} {did} although it had written the key again since it {other_did}.")
        }
        LocalAnomaly::NonRepeatableRead => {
            let writer = changer(history, words, finding);
            format!("{who} {other_did}, then {did}, without writing it between.{writer}")
        }
        LocalAnomaly::InternalInconsistency => {
            format!("{who} {other_did}, then {did}: its own appends are not where they belong.")
        }
        LocalAnomaly::DuplicateElements => {
            format!("{who} {did}, which shows one element twice.")
        }
        LocalAnomaly::IncompatibleOrder => {
            format!("{who} {did}, but {other} {other_did}: neither list begins with the other.")
        }
        LocalAnomaly::AbortedVersion => {
            format!("{who} {did} and aborted, but the version order lists that value.")
        }
        LocalAnomaly::ScatteredAppends if finding.other.is_some_and(|it| it.0 == finding.txn) => {
            format!(
                "{who} {did} before it {other_did}, but the version order has them the other way round."
            )
        }
        LocalAnomaly::ScatteredAppends => {
            format!(
                "{who} {did} and more, but the version order puts what {other} did ({other_did}) between."
            )
        }
        LocalAnomaly::DuplicateWrite => {
            format!("{who} {did}, and {other} {other_did}: the versions cannot be told apart.")
        }
        LocalAnomaly::CyclicVersions => {
            let why = words.later(finding.txn, finding.other.map(|it| it.0));
            format!("{other} {other_did}, and {who} {did}, the initial state, though {why}.")
        }
        LocalAnomaly::MissingRow => {
            let key = words.labels.key(finding.key);
            format!(
                "{who} {did}. Key {key} is in that range, was there before any transaction, and no \
                 other transaction that took effect left it deleted."
            )
        }
    }
}

/// ` T2 (session b) wrote x = 1.`, for a non-repeatable read; empty if several may have changed the value.
fn changer(history: &History, words: &Words<'_>, finding: &Finding) -> String {
    let writer = changed_by(history, finding);
    let told = writer.map(|(txn, op)| {
        let wrote = words.operation(txn, op, &[finding.key]);
        format!(" {} {wrote}.", words.with_session(txn))
    });
    told.unwrap_or_default()
}

/// The transaction that wrote the value of a non-repeatable read, or deleted the row that a query no longer returned,
/// if only one did.
pub fn changed_by(history: &History, finding: &Finding) -> Option<(TxnId, usize)> {
    if finding.anomaly != LocalAnomaly::NonRepeatableRead {
        return None;
    }
    let value = match *history.ops(finding.txn).get(finding.op)? {
        Op::Read { value, .. } => Some(value),
        Op::Range { range } => {
            let mut rows = history.range(range).rows.iter().copied();
            rows.find(|&row| history.value_key(row) == finding.key)
        }
        _ => return None,
    };
    let writes = |op: &Op| match (*op, value) {
        (Op::Write { value: written, .. }, Some(value)) => written == value,
        (Op::Write { key, value }, None) => key == finding.key && history.is_absence(value),
        _ => false,
    };
    let mut writers = history.txns().filter_map(|txn| {
        let at = history.ops(txn).iter().rposition(writes)?;
        Some((txn, at))
    });
    let first = writers.next();
    first.filter(|_| writers.next().is_none())
}
