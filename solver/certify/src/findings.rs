//! Checks the anomalies without a cycle: derives each again from the operations that it names.

use super::Refusal;
use super::assumed::is_stale;
use super::meaning::{Meaning, Version, read_by, written, written_by};
use super::rows::{Sight, covers, is_hidden, is_nothing, sight};
use kingsnake_history::level::Spec;
use kingsnake_history::model::{History, KeyId, Op, Status, TxnId, ValueId};
use kingsnake_history::verdict::{Finding, LocalAnomaly};

/// Checks findings; the error names the first that does not hold.
pub fn check_findings(history: &History, findings: &[Finding]) -> Result<(), Refusal> {
    if findings.is_empty() {
        return Err(Refusal::Refutation("no finding at all".to_owned()));
    }
    let scene = Scene {
        meaning: Meaning::of(history),
        history,
    };
    for finding in findings {
        if scene.shows(finding) != Some(true) {
            return Err(Refusal::Refutation(format!(
                "transaction {}, operation {}: no {:?}",
                history.txn_name(finding.txn),
                finding.op,
                finding.anomaly
            )));
        }
    }
    Ok(())
}

/// Checks findings, and that each breaks the level of its transaction.
pub fn check_broken(history: &History, spec: Spec, findings: &[Finding]) -> Result<(), Refusal> {
    check_findings(history, findings)?;
    let is_allowed = |it: &&Finding| !it.breaks(spec.model_of(history, it.txn));
    match findings.iter().find(is_allowed) {
        None => Ok(()),
        Some(finding) => Err(Refusal::Refutation(format!(
            "transaction {}, operation {}: {:?} is allowed at this level",
            history.txn_name(finding.txn),
            finding.op,
            finding.anomaly
        ))),
    }
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

    /// Whether the operations show the anomaly; `None` if they do not exist.
    fn shows(&self, finding: &Finding) -> Option<bool> {
        let (txn, at) = (finding.txn, finding.op);
        let op = self.op(txn, at)?;
        let key = finding.key;
        if key.index() >= self.history.n_keys() || !self.touches(op, key) {
            return Some(false);
        }
        if finding.anomaly == LocalAnomaly::AbortedVersion {
            return Some(self.is_aborted_version(txn, key, written_by(op)?));
        }
        if finding.anomaly == LocalAnomaly::ScatteredAppends {
            return Some(self.is_scattered(key, (txn, at), finding.other?));
        }
        if finding.anomaly == LocalAnomaly::CyclicVersions {
            return Some(self.meaning.counts(txn) && is_stale(self.history, finding));
        }
        if !self.meaning.counts(txn) || op.is_write() {
            return Some(false);
        }
        let seen = self.seen(op, key);
        let others = self.before_own(txn, at, key);
        let other = finding.other.and_then(|(txn, at)| self.op(txn, at));
        Some(match finding.anomaly {
            LocalAnomaly::ThinAirRead => seen
                .iter()
                .any(|&value| !self.is_initial(op, value) && self.is_thin_air(txn, value)),
            LocalAnomaly::AbortedRead => {
                let (writer, value) = (finding.other?.0, written_by(other?)?);
                self.history.status(writer) == Status::Aborted
                    && seen.contains(&value)
                    && !self.is_initial(op, value)
                    && !self.was_written(value)
                    && !self.is_deleted_by_another(txn, value)
            }
            LocalAnomaly::IntermediateRead => {
                let (writer, value) = (finding.other?.0, written_by(other?)?);
                writer != txn
                    && seen.contains(&value)
                    && self.history.status(writer) != Status::Aborted
                    && !self.is_initial(op, value)
                    && !self.is_deleted_by_another(txn, value)
                    && self.is_intermediate(txn, finding.other?, op, key, &seen)
            }
            LocalAnomaly::FutureRead => {
                let ((writer, later), value) = (finding.other?, written_by(other?)?);
                writer == txn
                    && later > at
                    && seen.contains(&value)
                    && !written(&self.history.ops(txn)[..at]).any(|it| it == value)
                    && !self.is_initial(op, value)
                    && self.is_nobody_elses(txn, value)
                    && !self.is_deleted_by_another(txn, value)
            }
            LocalAnomaly::NotMyOwnWrite => {
                let (writer, earlier) = finding.other?;
                let own = self.own_before(txn, key, at);
                let is_own = match self.sight(op, key) {
                    Some(Sight::Nothing { shows_deleted, .. }) => {
                        is_hidden(self.history, *own.last()?, shows_deleted)
                    }
                    _ => seen.iter().any(|value| own.contains(value)),
                };
                writer == txn
                    && earlier < at
                    && other?.is_write()
                    && other?.key() == Some(key)
                    && !is_own
            }
            LocalAnomaly::NotMyLastWrite => {
                let ((writer, earlier), value) = (finding.other?, written_by(other?)?);
                let own = self.own_before(txn, key, at);
                writer == txn && earlier < at && seen == [value] && own.last() != Some(&value)
            }
            LocalAnomaly::NonRepeatableRead => {
                let (reader, earlier) = finding.other?;
                let is_between = !self.own_before(txn, key, at).is_empty();
                reader == txn
                    && !other?.is_write()
                    && match (self.sight(other?, key), self.sight(op, key)) {
                        (Some(_), Some(_)) if is_between => false,
                        (Some(first), Some(second)) if earlier < at => {
                            self.differ(txn, key, &first, &second)
                        }
                        // One answer with two rows of a key contradicts itself.
                        (Some(_), Some(Sight::Values(rows))) if earlier == at => rows
                            .iter()
                            .any(|row| self.differ_as_values(&rows[..1], &[*row])),
                        (None, None) if earlier < at && other?.key() == Some(key) => {
                            self.before_own(txn, earlier, key)? != others?
                        }
                        _ => false,
                    }
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
                let (one, two) = (others?, self.before_own(reader, earlier, key)?);
                let both_lists = [op, other?]
                    .iter()
                    .all(|op| matches!(op, Op::ReadList { .. }));
                self.meaning.counts(reader)
                    && both_lists
                    && other?.key() == Some(key)
                    && !one.starts_with(&two)
                    && !two.starts_with(&one)
            }
            LocalAnomaly::AbortedVersion
            | LocalAnomaly::ScatteredAppends
            | LocalAnomaly::CyclicVersions
            | LocalAnomaly::DuplicateWrite => false,
            LocalAnomaly::MissingRow => match (op, self.sight(op, key)) {
                (
                    Op::Range { .. },
                    Some(Sight::Nothing {
                        shows_deleted,
                        may_be_initial,
                    }),
                ) => {
                    let mut deleters = self.meaning.deleters(txn, key, shows_deleted);
                    !may_be_initial
                        && self.own_before(txn, key, at).is_empty()
                        && deleters.next().is_none()
                }
                _ => false,
            },
        })
    }

    /// Whether an operation is about a key.
    fn touches(&self, op: Op, key: KeyId) -> bool {
        match op {
            Op::Range { range } => covers(self.history, self.history.range(range), key),
            _ => op.key() == Some(key),
        }
    }

    fn sight(&self, op: Op, key: KeyId) -> Option<Sight> {
        sight(self.history, op, key)
    }

    /// The values of a key that an operation reads.
    fn seen(&self, op: Op, key: KeyId) -> Vec<ValueId> {
        let values = read_by(self.history, &op).into_iter();
        values
            .filter(|&value| self.history.value_key(value) == key)
            .collect()
    }

    /// Whether two reads of a register by one transaction cannot be of one version.
    fn differ(&self, txn: TxnId, key: KeyId, one: &Sight, other: &Sight) -> bool {
        if let (Sight::Values(one), Sight::Values(other)) = (one, other) {
            return self.differ_as_values(one, other);
        }
        let (one, other) = (self.may_be(txn, key, one), self.may_be(txn, key, other));
        one.iter().all(|version| !other.contains(version))
    }

    fn differ_as_values(&self, one: &[ValueId], other: &[ValueId]) -> bool {
        let mut both = one.iter().chain(other);
        one != other && !both.all(|&value| self.history.is_initial(value))
    }

    /// The versions that a read can have shown.
    fn may_be(&self, reader: TxnId, key: KeyId, sight: &Sight) -> Vec<Version> {
        match *sight {
            Sight::Values(ref values) => {
                let is_one = |txn: &TxnId| {
                    let left = self.meaning.left(*txn, key);
                    left.is_some_and(|left| values.contains(&left))
                };
                let writers = self.meaning.writers_of(key).filter(is_one).map(Some);
                let initial = values.iter().any(|&value| self.history.is_initial(value));
                writers.chain(initial.then_some(None)).collect()
            }
            Sight::Nothing {
                shows_deleted,
                may_be_initial,
            } => {
                let deleters = self.meaning.deleters(reader, key, shows_deleted).map(Some);
                deleters.chain(may_be_initial.then_some(None)).collect()
            }
        }
    }

    /// Whether a value that only says that there is no row can be what another transaction's delete left.
    fn is_deleted_by_another(&self, reader: TxnId, value: ValueId) -> bool {
        let key = self.history.value_key(value);
        let mut deleters = self.meaning.deleters(reader, key, false);
        is_nothing(self.history, value) && deleters.next().is_some()
    }

    /// What a transaction wrote to a key before its operation `at`.
    fn own_before(&self, txn: TxnId, key: KeyId, at: usize) -> Vec<ValueId> {
        let ops = self.history.ops(txn)[..at].iter();
        ops.filter(|op| op.key() == Some(key))
            .filter_map(|&op| written_by(op))
            .collect()
    }

    /// What a read shows of others' writes; `None` where a list does not end with the reader's own appends.
    fn before_own(&self, txn: TxnId, at: usize, key: KeyId) -> Option<Vec<ValueId>> {
        let op = self.op(txn, at)?;
        let seen = self.seen(op, key);
        if matches!(op, Op::Read { .. } | Op::Range { .. }) {
            return Some(seen);
        }
        let own = self.own_before(txn, key, at);
        seen.strip_suffix(own.as_slice()).map(<[ValueId]>::to_vec)
    }

    fn writers(&self, value: ValueId) -> impl Iterator<Item = TxnId> + '_ {
        let wrote = move |&txn: &TxnId| written(self.history.ops(txn)).any(|it| it == value);
        self.history.txns().filter(wrote)
    }

    /// Whether a read may have found the value in the initial state. A list is empty there.
    fn is_initial(&self, op: Op, value: ValueId) -> bool {
        !matches!(op, Op::ReadList { .. }) && self.history.is_initial(value)
    }

    fn is_thin_air(&self, reader: TxnId, value: ValueId) -> bool {
        self.writers(value).next().is_none() && !self.is_deleted_by_another(reader, value)
    }

    /// Whether a transaction that did not abort wrote a value.
    fn was_written(&self, value: ValueId) -> bool {
        self.counted_writers(value).next().is_some()
    }

    /// Whether only one transaction, if any that did not abort, wrote a value.
    fn is_nobody_elses(&self, txn: TxnId, value: ValueId) -> bool {
        self.counted_writers(value).all(|it| it == txn)
    }

    /// Whether a read shows what its writer overwrote, or not all that its writer appended.
    fn is_intermediate(
        &self,
        reader: TxnId,
        (writer, at): (TxnId, usize),
        op: Op,
        key: KeyId,
        seen: &[ValueId],
    ) -> bool {
        let ops = self.history.ops(writer);
        if matches!(op, Op::Read { .. } | Op::Range { .. }) {
            let overwritten = |later: &Op| later.is_write() && later.key() == Some(key);
            let is_left = seen
                .iter()
                .any(|&value| self.meaning.is_left(reader, value));
            return ops[at + 1..].iter().any(overwritten) && !is_left;
        }
        let all = self.own_before(writer, key, ops.len());
        !all.is_empty() && !seen.windows(all.len()).any(|part| part == all)
    }

    /// Whether a version order lists an append after one that the same transaction made later, or after another's that in turn
    /// is listed after one of this transaction. Each value must have one writer, so that it is known what is listed.
    fn is_scattered(&self, key: KeyId, one: (TxnId, usize), other: (TxnId, usize)) -> bool {
        let orders = self.history.version_orders().iter();
        let mut orders = orders.filter(|order| order.key == key);
        let appended = |(txn, at): (TxnId, usize)| match self.op(txn, at)? {
            Op::Append { key: it, value } if it == key => {
                let mut writers = self.counted_writers(value);
                (writers.next() == Some(txn) && writers.next().is_none()).then_some(value)
            }
            _ => None,
        };
        let (Some(value), Some(between)) = (appended(one), appended(other)) else {
            return false;
        };
        orders.any(|order| {
            let place = |value| order.values.iter().position(|&it| it == value);
            let (Some(last), Some(middle)) = (place(value), place(between)) else {
                return false;
            };
            if one.0 == other.0 {
                return middle < last && one.1 < other.1;
            }
            let mine = (0..self.history.ops(one.0).len()).filter_map(|at| appended((one.0, at)));
            let mut earlier = mine.filter_map(place);
            middle < last && earlier.any(|first| first < middle)
        })
    }

    /// Every write of a value by a transaction that did not abort.
    fn counted_writers(&self, value: ValueId) -> impl Iterator<Item = TxnId> + '_ {
        let txns = self.history.txns();
        let txns = txns.filter(|&txn| self.history.status(txn) != Status::Aborted);
        txns.flat_map(move |txn| {
            let writes = written(self.history.ops(txn)).filter(move |&it| it == value);
            writes.map(move |_| txn)
        })
    }

    fn is_aborted_version(&self, txn: TxnId, key: KeyId, value: ValueId) -> bool {
        let orders = self.history.version_orders().iter();
        let mut orders = orders.filter(|order| order.key == key);
        self.history.status(txn) == Status::Aborted
            && orders.any(|order| order.values.contains(&value))
            && !self.history.is_initial(value)
            && !self.was_written(value)
    }
}
