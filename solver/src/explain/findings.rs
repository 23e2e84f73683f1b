//! Words for the anomalies that need no cycle.

use super::words::Words;
use crate::model::{History, Op, TxnId};
use crate::verdict::{Finding, LocalAnomaly};

/// Tells one finding as a sentence.
pub(super) fn tell_finding(history: &History, words: &Words<'_>, finding: &Finding) -> String {
    let scene = Scene { history, words };
    let who = words.with_session(finding.txn);
    let did = scene.operation(finding.txn, finding.op);
    let there = finding
        .other
        .map(|(txn, op)| (words.labels.txn(txn), scene.operation(txn, op)));
    let (other, other_did) =
        there.unwrap_or_else(|| ("somebody".to_owned(), "wrote it".to_owned()));
    match finding.anomaly {
        LocalAnomaly::ThinAirRead => format!("{who} {did}, which nobody wrote."),
        LocalAnomaly::AbortedRead => {
            format!("{who} {did}, but {other}, which {other_did}, aborted.")
        }
        LocalAnomaly::IntermediateRead => {
            let rest = match history.ops(finding.txn).get(finding.op) {
                Some(Op::ReadList { .. }) => "appended more than the list shows",
                _ => "overwrote it before it committed",
            };
            format!("{who} {did}, but {other}, which {other_did}, {rest}.")
        }
        LocalAnomaly::FutureRead => {
            format!("{who} {did} before it {other_did} itself.")
        }
        LocalAnomaly::NotMyOwnWrite => {
            format!("{who} {other_did}, then {did}, which is not its own.")
        }
        LocalAnomaly::NotMyLastWrite => {
            format!("{who} {did} although it had written the key again since it {other_did}.")
        }
        LocalAnomaly::NonRepeatableRead => {
            format!("{who} {other_did}, then {did}, without writing it between.")
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
    }
}

struct Scene<'s, 'h> {
    history: &'h History,
    words: &'s Words<'h>,
}

impl Scene<'_, '_> {
    /// `read x = 1`, `wrote x = 1`.
    fn operation(&self, txn: TxnId, at: usize) -> String {
        let Some(&op) = self.history.ops(txn).get(at) else {
            return "did something".to_owned();
        };
        self.words.operation(op)
    }
}
