//! The writer of each value.
//!
//! Only a transaction's last write of a key can be read by others, and only if the transaction took effect. So a value
//! has *candidates*: the transactions, not aborted, whose last write of the key it is. Two candidates are ambiguous
//! only if the value is read.

use rustc_hash::{FxHashMap, FxHashSet};

use super::BUDGET_CHECK;
use super::absence::{Absences, is_nothing};
use crate::budget::{Budget, StopReason};
use crate::model::{History, KeyId, Op, Status, TxnId, ValueId};

/// The origin of a value, the best explanation first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ValueOrigin {
    /// A candidate wrote it.
    Candidate,
    /// A transaction wrote it, and overwrote it.
    Intermediate,
    /// An aborted transaction wrote it.
    Aborted,
    /// No transaction wrote it.
    Nobody,
}

/// A transaction's last write of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct FinalWrite {
    pub(super) key: KeyId,
    pub(super) value: ValueId,
}

/// The writers of all values, and the last writes of all transactions that did not abort.
pub(super) struct Writers {
    origin: Vec<ValueOrigin>,
    writer: Vec<TxnId>,
    rivals: FxHashMap<ValueId, Vec<TxnId>>,
    finals_end: Vec<u32>,
    finals: Vec<FinalWrite>,
}

impl Writers {
    /// Reads all writes of the history.
    pub(super) fn of(history: &History, budget: &Budget) -> Result<Self, StopReason> {
        let mut writers = Writers {
            origin: vec![ValueOrigin::Nobody; history.n_values()],
            writer: vec![TxnId(u32::MAX); history.n_values()],
            rivals: FxHashMap::default(),
            finals_end: Vec::with_capacity(history.n_txns()),
            finals: Vec::with_capacity(history.n_ops() / 2),
        };
        let mut seen = vec![u32::MAX; history.n_keys()];
        for txn in history.txns() {
            if txn.0.is_multiple_of(BUDGET_CHECK) {
                budget.check()?;
            }
            writers.take(history, txn, &mut seen);
        }
        Ok(writers)
    }

    /// Records one transaction's writes, from its last operation to its first.
    fn take(&mut self, history: &History, txn: TxnId, seen: &mut [u32]) {
        let aborted = history.status(txn) == Status::Aborted;
        let start = self.finals.len();
        for op in history.ops(txn).iter().rev() {
            let (Op::Write { key, value } | Op::Append { key, value }) = *op else {
                continue;
            };
            let is_final = seen[key.index()] != txn.0;
            seen[key.index()] = txn.0;
            let origin = match (aborted, is_final) {
                (true, _) => ValueOrigin::Aborted,
                (false, true) => ValueOrigin::Candidate,
                (false, false) => ValueOrigin::Intermediate,
            };
            self.claim(value, txn, origin, matches!(op, Op::Append { .. }));
            if origin == ValueOrigin::Candidate {
                self.finals.push(FinalWrite { key, value });
            }
        }
        self.finals[start..].reverse();
        self.finals_end.push(self.finals.len() as u32);
    }

    fn claim(&mut self, value: ValueId, txn: TxnId, origin: ValueOrigin, is_append: bool) {
        let known = self.origin[value.index()];
        // What is appended stays in the list, so of two appends of one value either may be meant.
        let stays =
            |origin| origin == ValueOrigin::Candidate || is_append && origin < ValueOrigin::Aborted;
        if stays(origin) && stays(known) {
            self.rivals.entry(value).or_default().push(txn);
        } else if origin < known {
            self.origin[value.index()] = origin;
            self.writer[value.index()] = txn;
        }
    }

    /// The last writes of a transaction, in the order of its operations; none if it aborted.
    pub(super) fn finals(&self, txn: TxnId) -> &[FinalWrite] {
        let start = match txn.index() {
            0 => 0,
            index => self.finals_end[index - 1] as usize,
        };
        &self.finals[start..self.finals_end[txn.index()] as usize]
    }

    /// The origin of a value.
    #[inline]
    pub(super) fn origin(&self, value: ValueId) -> ValueOrigin {
        self.origin[value.index()]
    }

    /// The transaction that explains the origin.
    #[inline]
    pub(super) fn writer(&self, value: ValueId) -> TxnId {
        self.writer[value.index()]
    }

    /// The one transaction other than the reader that can have left a value in its key, if the value was not there
    /// before any transaction and no other can.
    pub(super) fn only_candidate(
        &self,
        history: &History,
        reader: TxnId,
        value: ValueId,
    ) -> Option<TxnId> {
        let is_candidate =
            self.origin(value) == ValueOrigin::Candidate && !history.is_initial(value);
        is_candidate.then(|| self.only_other(reader, value))?
    }

    /// The one transaction other than the reader that can have appended a value.
    pub(super) fn only_appender(&self, reader: TxnId, value: ValueId) -> Option<TxnId> {
        (self.origin(value) < ValueOrigin::Aborted).then(|| self.only_other(reader, value))?
    }

    fn only_other(&self, reader: TxnId, value: ValueId) -> Option<TxnId> {
        let all = self
            .rivals(value)
            .iter()
            .chain([&self.writer[value.index()]]);
        let mut others = all.copied().filter(|&writer| writer != reader);
        others.next().filter(|_| others.next().is_none())
    }

    /// Whether any value has several candidates.
    pub(super) fn has_rivals(&self) -> bool {
        !self.rivals.is_empty()
    }

    /// Whether a value has one candidate.
    #[inline]
    pub(super) fn is_only_candidate(&self, value: ValueId) -> bool {
        self.origin(value) == ValueOrigin::Candidate
            && (self.rivals.is_empty() || !self.rivals.contains_key(&value))
    }

    /// The candidates besides the first.
    pub(super) fn rivals(&self, value: ValueId) -> &[TxnId] {
        if self.rivals.is_empty() {
            return &[];
        }
        self.rivals.get(&value).map_or(&[], Vec::as_slice)
    }
}

/// Which transactions count, and how many of unknown end do and do not.
pub(super) struct Census {
    pub(super) counts: Vec<bool>,
    /// The transactions of unknown end that may have taken effect or not, sorted.
    pub(super) in_doubt: Vec<TxnId>,
    pub(super) n_unknown_counted: usize,
    pub(super) n_unknown_dropped: usize,
}

impl Census {
    /// The committed transactions, and those of unknown end that every explanation has: a counted one read what only they
    /// can have written, or a version order lists what they wrote.
    pub(super) fn of(
        history: &History,
        writers: &Writers,
        absences: &Absences,
        budget: &Budget,
    ) -> Result<Self, StopReason> {
        let mut census = Census {
            counts: history
                .txns()
                .map(|txn| history.status(txn) == Status::Committed)
                .collect(),
            in_doubt: Vec::new(),
            n_unknown_counted: 0,
            n_unknown_dropped: 0,
        };
        let n_unknown = history
            .txns()
            .filter(|&txn| history.status(txn) == Status::Unknown)
            .count();
        if n_unknown == 0 {
            return Ok(census);
        }
        let listed = history.version_orders().iter();
        let mut fresh = Vec::new();
        for &value in listed.flat_map(|order| &order.values) {
            census.observe_listed(history, writers, value, &mut fresh);
        }
        let committed = |txn: &TxnId| history.status(*txn) == Status::Committed;
        let mut counted: Vec<TxnId> = history.txns().filter(committed).collect();
        counted.append(&mut fresh);
        while let Some(txn) = counted.pop() {
            if txn.0.is_multiple_of(BUDGET_CHECK) {
                budget.check()?;
            }
            census.observe_reads(history, writers, absences, txn, &mut counted);
        }
        census.n_unknown_dropped = n_unknown - census.n_unknown_counted;
        Ok(census)
    }

    /// Finds the transactions of unknown end that are in doubt: each may have written what a counted one, or another in doubt, read. None
    /// where more than reads and writes of single values speaks of them.
    pub(super) fn find_doubts(
        &mut self,
        history: &History,
        writers: &Writers,
        absences: &Absences,
    ) {
        let is_plain = !absences.matter()
            && history.n_predicates() == 0
            && history.given_edges().is_empty()
            && history.version_orders().is_empty();
        if self.n_unknown_dropped == 0 || !writers.has_rivals() || !is_plain {
            return;
        }
        let mut found: FxHashSet<TxnId> = FxHashSet::default();
        let counts = |txn: &TxnId| self.counts[txn.index()];
        let mut readers: Vec<TxnId> = history.txns().filter(counts).collect();
        let mut own: FxHashSet<KeyId> = FxHashSet::default();
        while let Some(txn) = readers.pop() {
            own.clear();
            for &op in history.ops(txn) {
                let Op::Read { key, value } = op else {
                    own.extend(op.key().filter(|_| op.is_write()));
                    continue;
                };
                if own.contains(&key) || writers.origin(value) != ValueOrigin::Candidate {
                    continue;
                }
                let rivals = writers.rivals(value).iter().copied();
                let in_doubt = rivals.chain([writers.writer(value)]).filter(|&writer| {
                    writer != txn
                        && history.status(writer) == Status::Unknown
                        && !self.counts[writer.index()]
                });
                readers.extend(in_doubt.filter(|&writer| found.insert(writer)));
            }
        }
        let is_plain = |op: &Op| matches!(op, Op::Read { .. } | Op::Write { .. });
        let mut ops = found.iter().flat_map(|&txn| history.ops(txn));
        if ops.all(is_plain) {
            self.n_unknown_dropped -= found.len();
            self.in_doubt = found.into_iter().collect();
            self.in_doubt.sort_unstable();
        }
    }

    /// Counts the transactions that one's external reads leave no doubt about. A read of its own write shows nothing of
    /// others, and one that several can have written does not show which of them took effect.
    fn observe_reads(
        &mut self,
        history: &History,
        writers: &Writers,
        absences: &Absences,
        txn: TxnId,
        fresh: &mut Vec<TxnId>,
    ) {
        let mut own: FxHashSet<KeyId> = FxHashSet::default();
        for &op in history.ops(txn) {
            match op {
                Op::Read { key, value } if !own.contains(&key) => {
                    let shown = if absences.matter() && is_nothing(history, value) {
                        absences.shown_by_read(key, txn, history.is_initial(value))
                    } else {
                        writers.only_candidate(history, txn, value)
                    };
                    self.count_all(history, shown, fresh);
                }
                Op::Read { .. } => {}
                Op::Range { range } => {
                    let query = history.range(range);
                    let rows = query.rows.iter().copied();
                    let external = rows.filter(|&row| !own.contains(&history.value_key(row)));
                    let shown =
                        external.filter_map(|row| writers.only_candidate(history, txn, row));
                    self.count_all(history, shown, fresh);
                    self.count_all(
                        history,
                        absences.shown_by_range(history, txn, query, &own),
                        fresh,
                    );
                }
                Op::ReadList { list, .. } => {
                    let items = history.list(list).iter();
                    let shown = items.filter_map(|&item| writers.only_appender(txn, item));
                    self.count_all(history, shown, fresh);
                }
                Op::Write { key, .. } | Op::Append { key, .. } => {
                    own.insert(key);
                }
            }
        }
    }

    fn count_all(
        &mut self,
        history: &History,
        shown: impl IntoIterator<Item = TxnId>,
        fresh: &mut Vec<TxnId>,
    ) {
        for writer in shown {
            self.count(history, writer, fresh);
        }
    }

    /// Counts every transaction that wrote a value of a version order: the order says that it was installed.
    fn observe_listed(
        &mut self,
        history: &History,
        writers: &Writers,
        value: ValueId,
        fresh: &mut Vec<TxnId>,
    ) {
        if writers.origin(value) >= ValueOrigin::Aborted {
            return;
        }
        // With rivals the order is ambiguous: that is reported, and no choice is silently made.
        for &writer in writers.rivals(value).iter().chain([&writers.writer(value)]) {
            self.count(history, writer, fresh);
        }
    }

    fn count(&mut self, history: &History, writer: TxnId, fresh: &mut Vec<TxnId>) {
        if history.status(writer) == Status::Unknown && !self.counts[writer.index()] {
            self.counts[writer.index()] = true;
            self.n_unknown_counted += 1;
            fresh.push(writer);
        }
    }
}
