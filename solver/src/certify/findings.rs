//! Checks the anomalies that need no cycle: re-derives each from the operations that it names.

use super::meaning::{Meaning, read_by, written, written_by};
use crate::model::{History, KeyId, Op, Status, TxnId, ValueId};
use crate::verdict::{Finding, LocalAnomaly};

/// Checks findings; the error names the first that does not hold.
pub fn check_findings(history: &History, findings: &[Finding]) -> Result<(), String> {
    if findings.is_empty() {
        return Err("no finding at all".to_owned());
    }
    let scene = Scene {
        meaning: Meaning::of(history),
        history,
    };
    for finding in findings {
        if scene.shows(finding) != Some(true) {
            return Err(format!(
                "transaction {}, operation {}: no {:?}",
                history.txn_name(finding.txn),
                finding.op,
                finding.anomaly
            ));
        }
    }
    Ok(())
}

struct Scene<'h> {
    meaning: Meaning<'h>,
    history: &'h History,
}

impl Scene<'_> {
    fn op(&self, txn: TxnId, at: usize) -> Option<Op> {
        if txn.index() >= self.history.n_txns() {
            return None;
        }
        self.history.ops(txn).get(at).copied()
    }

    /// Whether the operations show the anomaly; `None` where they are not there.
    fn shows(&self, finding: &Finding) -> Option<bool> {
        let (txn, at) = (finding.txn, finding.op);
        let op = self.op(txn, at)?;
        let key = op.key();
        if finding.anomaly == LocalAnomaly::AbortedVersion {
            return Some(self.is_aborted_version(txn, key, written_by(op)?));
        }
        if !self.meaning.counts(txn) || op.is_write() {
            return Some(false);
        }
        let seen = read_by(self.history, &op);
        let others = self.before_own(txn, at);
        let other = finding.other.and_then(|(txn, at)| self.op(txn, at));
        Some(match finding.anomaly {
            LocalAnomaly::ThinAirRead => seen.iter().any(|&value| self.is_thin_air(value)),
            LocalAnomaly::AbortedRead => {
                let (writer, value) = (finding.other?.0, written_by(other?)?);
                self.history.status(writer) == Status::Aborted
                    && seen.contains(&value)
                    && !self.is_somebodys(value)
            }
            LocalAnomaly::IntermediateRead => {
                let (writer, value) = (finding.other?.0, written_by(other?)?);
                writer != txn
                    && seen.contains(&value)
                    && !self.history.is_initial(value)
                    && self.is_intermediate(writer, finding.other?.1, op, &seen)
            }
            LocalAnomaly::FutureRead => {
                let ((writer, later), value) = (finding.other?, written_by(other?)?);
                writer == txn
                    && later > at
                    && seen.contains(&value)
                    && !written(&self.history.ops(txn)[..at]).any(|it| it == value)
                    && self.is_nobody_elses(txn, value)
            }
            LocalAnomaly::NotMyOwnWrite => {
                let (writer, earlier) = finding.other?;
                let own = self.own_before(txn, key, at);
                writer == txn
                    && earlier < at
                    && other?.is_write()
                    && other?.key() == key
                    && seen.iter().all(|value| !own.contains(value))
            }
            LocalAnomaly::NotMyLastWrite => {
                let ((writer, earlier), value) = (finding.other?, written_by(other?)?);
                let own = self.own_before(txn, key, at);
                writer == txn && earlier < at && seen == [value] && own.last() != Some(&value)
            }
            LocalAnomaly::NonRepeatableRead => {
                let (reader, earlier) = finding.other?;
                let first = self.before_own(txn, earlier)?;
                let overwritten =
                    matches!(op, Op::Read { .. }) && !self.own_before(txn, key, at).is_empty();
                let both_initial = [&first, others.as_ref()?]
                    .iter()
                    .all(|seen| seen.iter().all(|&value| self.history.is_initial(value)));
                reader == txn
                    && earlier < at
                    && other?.key() == key
                    && !other?.is_write()
                    && !overwritten
                    && first != others?
                    && !both_initial
            }
            LocalAnomaly::InternalInconsistency => {
                matches!(op, Op::ReadList { .. }) && others.is_none()
            }
            LocalAnomaly::DuplicateElements => {
                let twice = |(at, value): (usize, &ValueId)| seen[..at].contains(value);
                seen.iter().enumerate().any(twice)
            }
            LocalAnomaly::IncompatibleOrder => {
                let (reader, earlier) = finding.other?;
                let (one, two) = (others?, self.before_own(reader, earlier)?);
                let both_lists = [op, other?]
                    .iter()
                    .all(|op| matches!(op, Op::ReadList { .. }));
                self.meaning.counts(reader)
                    && both_lists
                    && other?.key() == key
                    && !one.starts_with(&two)
                    && !two.starts_with(&one)
            }
            LocalAnomaly::AbortedVersion => false,
        })
    }

    /// What a transaction wrote to a key before its operation `at`.
    fn own_before(&self, txn: TxnId, key: KeyId, at: usize) -> Vec<ValueId> {
        let ops = self.history.ops(txn)[..at].iter();
        ops.filter(|op| op.key() == key)
            .filter_map(|&op| written_by(op))
            .collect()
    }

    /// What a read shows of others' writes; `None` where a list does not end with the reader's own appends.
    fn before_own(&self, txn: TxnId, at: usize) -> Option<Vec<ValueId>> {
        let op = self.op(txn, at)?;
        let seen = read_by(self.history, &op);
        if matches!(op, Op::Read { .. }) {
            return Some(seen);
        }
        let own = self.own_before(txn, op.key(), at);
        seen.strip_suffix(own.as_slice()).map(<[ValueId]>::to_vec)
    }

    fn writers(&self, value: ValueId) -> impl Iterator<Item = TxnId> + '_ {
        let wrote = move |&txn: &TxnId| written(self.history.ops(txn)).any(|it| it == value);
        self.history.txns().filter(wrote)
    }

    fn is_thin_air(&self, value: ValueId) -> bool {
        !self.history.is_initial(value) && self.writers(value).next().is_none()
    }

    /// Whether a value was there initially, or a transaction that did not abort wrote it.
    fn is_somebodys(&self, value: ValueId) -> bool {
        let took_effect = |txn| self.history.status(txn) != Status::Aborted;
        self.history.is_initial(value) || self.writers(value).any(took_effect)
    }

    /// Whether only one transaction, if any that did not abort, wrote a value, and it was not there initially.
    fn is_nobody_elses(&self, txn: TxnId, value: ValueId) -> bool {
        let took_effect = |&it: &TxnId| it != txn && self.history.status(it) != Status::Aborted;
        !self.history.is_initial(value) && !self.writers(value).any(|it| took_effect(&it))
    }

    /// Whether a read shows what its writer overwrote, or not all that its writer appended.
    fn is_intermediate(&self, writer: TxnId, at: usize, op: Op, seen: &[ValueId]) -> bool {
        let ops = self.history.ops(writer);
        let key = op.key();
        if let Op::Read { value, .. } = op {
            let overwritten = |later: &Op| later.is_write() && later.key() == key;
            return ops[at + 1..].iter().any(overwritten) && !self.meaning.is_left(value);
        }
        let all = self.own_before(writer, key, ops.len());
        !all.is_empty() && !seen.windows(all.len()).any(|part| part == all)
    }

    fn is_aborted_version(&self, txn: TxnId, key: KeyId, value: ValueId) -> bool {
        let orders = self.history.version_orders().iter();
        let mut orders = orders.filter(|order| order.key == key);
        self.history.status(txn) == Status::Aborted
            && orders.any(|order| order.values.contains(&value))
            && !self.is_somebodys(value)
    }
}
