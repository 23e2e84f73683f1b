//! Reads that are impossible in any order: of values that no operation left, and against the transaction's own operations.

use kingsnake_history::model::{History, KeyId, Op, Status, TxnId, ValueId};
use kingsnake_history::verdict::{Finding, LocalAnomaly};

use crate::operations::{INITIAL, Key, NONE};

/// Reads of committed transactions that contradict their own earlier operations, if there are any.
pub(crate) fn within_transactions(history: &History) -> Option<Vec<Finding>> {
    let mut findings = Vec::new();
    for txn in history.txns() {
        if history.status(txn) == Status::Committed && history.ops(txn).len() > 1 {
            walk(history, txn, &mut findings);
        }
    }
    (!findings.is_empty()).then_some(findings)
}

/// Follows one transaction, which touches one key.
fn walk(history: &History, txn: TxnId, findings: &mut Vec<Finding>) {
    let mut written: Vec<(usize, ValueId)> = Vec::new();
    let mut read: Option<(usize, ValueId)> = None;
    for (at, &op) in history.ops(txn).iter().enumerate() {
        let (key, value) = match op {
            Op::Write { value, .. } => {
                written.push((at, value));
                continue;
            }
            Op::Read { key, value } => (key, value),
            _ => continue,
        };
        let same = |other: ValueId| {
            value == other || history.is_initial(value) && history.is_initial(other)
        };
        let (anomaly, other) = match (written.last(), read) {
            (Some(&(_, last)), _) if last == value => continue,
            (Some(&(last, _)), _) => match written.iter().find(|it| it.1 == value) {
                Some(&(earlier, _)) => (LocalAnomaly::NotMyLastWrite, earlier),
                None => (LocalAnomaly::NotMyOwnWrite, last),
            },
            (None, Some((earlier, first))) if !same(first) => {
                (LocalAnomaly::NonRepeatableRead, earlier)
            }
            (None, _) => {
                read = read.or(Some((at, value)));
                continue;
            }
        };
        findings.push(Finding {
            anomaly,
            txn,
            op: at,
            key,
            other: Some((txn, other)),
        });
    }
}

/// Committed reads of values that no operation of the key left, where values may repeat.
pub(crate) fn unwritten_reads(history: &History, key: &Key<'_>) -> Option<Vec<Finding>> {
    let mut is_left = vec![false; key.n_values];
    is_left[INITIAL as usize] = true;
    for op in key.ops.iter().filter(|op| op.write != NONE) {
        is_left[op.write as usize] = true;
    }
    let is_wrong = |op: &&crate::operations::Operation| {
        !op.is_unknown && op.read != NONE && !is_left[op.read as usize]
    };
    let wrong = key.ops.iter().filter(is_wrong);
    let findings: Vec<Finding> = wrong
        .filter_map(|op| unwritten(history, key.key, op.txn))
        .collect();
    (!findings.is_empty()).then_some(findings)
}

/// What is wrong with the first read of an operation, whose value no other operation left.
pub(crate) fn unwritten(history: &History, key: KeyId, txn: TxnId) -> Option<Finding> {
    let mut ops = history.ops(txn).iter().enumerate();
    let (op, value) = ops.find_map(|(at, &op)| match op {
        Op::Read { value, .. } => Some((at, value)),
        _ => None,
    })?;
    let mut own = None;
    let mut aborted = None;
    let mut intermediate = None;
    for writer in history.txns() {
        for (at, &other) in history.ops(writer).iter().enumerate() {
            if other != (Op::Write { key, value }) {
                continue;
            }
            let place = match history.status(writer) {
                _ if writer == txn => &mut own,
                Status::Aborted => &mut aborted,
                _ => &mut intermediate,
            };
            place.get_or_insert((writer, at));
        }
    }
    let (anomaly, other) = match (intermediate, own, aborted) {
        (Some(other), _, _) => (LocalAnomaly::IntermediateRead, Some(other)),
        (None, Some(other), _) => (LocalAnomaly::FutureRead, Some(other)),
        (None, None, Some(other)) => (LocalAnomaly::AbortedRead, Some(other)),
        (None, None, None) => (LocalAnomaly::ThinAirRead, None),
    };
    Some(Finding {
        anomaly,
        txn,
        op,
        key,
        other,
    })
}
