//! What the operations say by themselves: who counts, who wrote what was read, and which versions follow each other.
//!
//! This is computed from the history alone and for the checkers alone, a second time and in another way than the search
//! did it, so that a mistake there cannot excuse itself here. A version of a key is named by its writer; `None` is the
//! initial state.

use rustc_hash::{FxHashMap, FxHashSet};

use super::rows::{Sight, is_hidden, is_nothing, sight};
use kingsnake_history::model::{History, KeyId, Op, Status, TxnId, ValueId};

/// A version of a key: who installed it, or nobody.
pub type Version = Option<TxnId>;

const NOBODY: u32 = u32::MAX;

/// The history with its values traced to their writers.
pub struct Meaning<'h> {
    history: &'h History,
    counts: Vec<bool>,
    /// For each value, two transactions that did not abort and left it in its key.
    writers: Vec<[u32; 2]>,
    /// Values that three or more left.
    crowded: FxHashSet<ValueId>,
    /// For each key, the transactions that did not abort and left it without a row, and what they left. Only kept where
    /// range queries or named tombstones make it matter.
    deletes: FxHashMap<KeyId, Vec<(TxnId, ValueId)>>,
}

impl<'h> Meaning<'h> {
    /// Traces every value.
    pub fn of(history: &'h History) -> Self {
        let mut meaning = Meaning {
            history,
            counts: Vec::with_capacity(history.n_txns()),
            writers: vec![[NOBODY; 2]; history.n_values()],
            crowded: FxHashSet::default(),
            deletes: FxHashMap::default(),
        };
        // Who wrote a key last, among the operations seen so far, from a transaction's last to its first.
        let mut seen = vec![NOBODY; history.n_keys()];
        let mut unsure: FxHashMap<ValueId, Vec<TxnId>> = FxHashMap::default();
        for txn in history.txns() {
            let status = history.status(txn);
            meaning.counts.push(status == Status::Committed);
            if status != Status::Aborted {
                meaning.take_writes(txn, &mut seen);
            }
            if status == Status::Unknown {
                for value in written(history.ops(txn)) {
                    unsure.entry(value).or_default().push(txn);
                }
            }
        }
        if !unsure.is_empty() {
            meaning.count_observed(&unsure);
        }
        meaning
    }

    fn take_writes(&mut self, txn: TxnId, seen: &mut [u32]) {
        let deletes_matter = self.history.has_tombstones() || self.history.n_ranges() > 0;
        for &op in self.history.ops(txn).iter().rev() {
            let (Op::Write { key, value } | Op::Append { key, value }) = op else {
                continue;
            };
            if std::mem::replace(&mut seen[key.index()], txn.0) == txn.0 {
                continue;
            }
            if deletes_matter && is_hidden(self.history, value, false) {
                self.deletes.entry(key).or_default().push((txn, value));
            }
            let row = &mut self.writers[value.index()];
            match row {
                [NOBODY, _] => row[0] = txn.0,
                [_, NOBODY] => row[1] = txn.0,
                _ => {
                    self.crowded.insert(value);
                }
            }
        }
    }

    /// Transactions of unknown end count once a counted one, or a version order, shows a value of theirs, or finds a key
    /// without a row that only they can have deleted.
    fn count_observed(&mut self, unsure: &FxHashMap<ValueId, Vec<TxnId>>) {
        let history = self.history;
        let is_unsure = |&(txn, _): &(TxnId, ValueId)| history.status(txn) == Status::Unknown;
        let deleted = self.deletes.iter();
        let deleted = deleted.filter(|(_, deletes)| deletes.iter().any(is_unsure));
        let deleted: Vec<KeyId> = deleted.map(|(&key, _)| key).collect();
        let listed = history.version_orders().iter();
        let mut shown: Vec<ValueId> = listed.flat_map(|order| &order.values).copied().collect();
        let counted = history.txns().filter(|txn| self.counts[txn.index()]);
        let mut fresh: Vec<TxnId> = counted.collect();
        loop {
            while let Some(txn) = fresh.pop() {
                shown.extend(observed(history, txn));
                for &key in &deleted {
                    if let Some(Some(writer)) = self.version_read(txn, key) {
                        self.count(writer, &mut fresh);
                    }
                }
            }
            let Some(value) = shown.pop() else { break };
            for &txn in unsure.get(&value).into_iter().flatten() {
                self.count(txn, &mut fresh);
            }
        }
    }

    fn count(&mut self, txn: TxnId, fresh: &mut Vec<TxnId>) {
        if !std::mem::replace(&mut self.counts[txn.index()], true) {
            fresh.push(txn);
        }
    }

    /// The history.
    pub fn history(&self) -> &'h History {
        self.history
    }

    /// Whether a transaction took effect.
    pub fn counts(&self, txn: TxnId) -> bool {
        self.counts.get(txn.index()).copied().unwrap_or(false)
    }

    /// The value that a transaction left in a key.
    pub fn left(&self, txn: TxnId, key: KeyId) -> Option<ValueId> {
        let ops = self.history.ops(txn).iter().rev();
        ops.filter(|op| op.key() == Some(key))
            .find_map(|&op| written_by(op))
    }

    /// Who left a value, as `reader` sees it; `None` if that is not certain.
    pub fn writer(&self, reader: TxnId, value: ValueId) -> Option<Version> {
        if self.crowded.contains(&value) {
            return None;
        }
        let left = self.writers[value.index()].into_iter();
        let mut others = left.filter(|&txn| txn != NOBODY && txn != reader.0);
        match (others.next(), others.next()) {
            (None, _) if self.history.is_initial(value) => Some(None),
            (Some(writer), None) if !self.history.is_initial(value) => Some(Some(TxnId(writer))),
            _ => None,
        }
    }

    /// The transactions other than `reader` that did not abort and left a key so that it seemed to have no row.
    pub(super) fn deleters(
        &self,
        reader: TxnId,
        key: KeyId,
        shows_deleted: bool,
    ) -> impl Iterator<Item = TxnId> + '_ {
        let deletes = self.deletes.get(&key).into_iter().flatten();
        deletes
            .filter(move |&&(txn, left)| {
                txn != reader && is_hidden(self.history, left, shows_deleted)
            })
            .map(|&(txn, _)| txn)
    }

    /// The version that an operation showed of a register, as `reader` sees it; `None` if that is not certain.
    fn version_seen(&self, reader: TxnId, key: KeyId, sight: &Sight) -> Option<Version> {
        match *sight {
            Sight::Values(ref values) => self.writer(reader, *values.first()?),
            Sight::Nothing {
                shows_deleted,
                may_be_initial,
            } => {
                let mut deleters = self.deleters(reader, key, shows_deleted);
                match (may_be_initial, deleters.next(), deleters.next()) {
                    (true, None, _) => Some(None),
                    (false, Some(txn), None) => Some(Some(txn)),
                    _ => None,
                }
            }
        }
    }

    /// Whether exactly one transaction left a value, and it was there before none.
    pub fn is_unique(&self, value: ValueId) -> bool {
        let [one, other] = self.writers[value.index()];
        one != NOBODY && other == NOBODY && !self.history.is_initial(value)
    }

    /// Whether a transaction that did not abort left a value.
    pub fn is_left(&self, value: ValueId) -> bool {
        self.writers[value.index()][0] != NOBODY
    }

    /// The version of a key that a transaction began from, if it read the key and the version is certain.
    pub fn version_read(&self, reader: TxnId, key: KeyId) -> Option<Version> {
        let mut own = Vec::new();
        for &op in self.history.ops(reader) {
            if let Some(seen) = sight(self.history, op, key) {
                return self.version_seen(reader, key, &seen);
            }
            match op {
                _ if op.key() != Some(key) => {}
                Op::Write { .. } => return None,
                Op::Append { value, .. } => own.push(value),
                Op::Read { .. } | Op::Range { .. } => {}
                Op::ReadList { list, .. } => {
                    let others = self.history.list(list).strip_suffix(own.as_slice())?;
                    return match others.last() {
                        None => Some(None),
                        Some(&value) => self.writer(reader, value),
                    };
                }
            }
        }
        None
    }

    /// The version that a transaction read and overwrote: no other comes between.
    pub(super) fn overwrote(&self, txn: TxnId, key: KeyId) -> Option<Version> {
        self.left(txn, key)?;
        self.version_read(txn, key)
    }

    /// A version and those that it was made from by read-modify-writes, the newest first. Ends early if they form a circle.
    pub fn lineage(&self, version: Version, key: KeyId) -> Lineage {
        let mut versions = vec![version];
        let mut at = version;
        while let Some(txn) = at {
            let Some(before) = self.overwrote(txn, key) else {
                break;
            };
            if before == version || versions.len() > self.history.n_txns() {
                return Lineage {
                    versions,
                    root: None,
                };
            }
            versions.push(before);
            at = before;
        }
        Lineage {
            versions,
            root: Some(at),
        }
    }

    /// Every counted transaction that wrote a key.
    pub fn writers_of(&self, key: KeyId) -> impl Iterator<Item = TxnId> + '_ {
        let txns = self.history.txns().filter(|&txn| self.counts(txn));
        txns.filter(move |&txn| self.left(txn, key).is_some())
    }
}

/// Versions that follow from each other, and the one that they all came from, unless they are in a circle.
pub struct Lineage {
    /// Newest first.
    pub versions: Vec<Version>,
    /// The oldest.
    pub root: Option<Version>,
}

/// The value that an operation writes.
pub fn written_by(op: Op) -> Option<ValueId> {
    match op {
        Op::Write { value, .. } | Op::Append { value, .. } => Some(value),
        Op::Read { .. } | Op::ReadList { .. } | Op::Range { .. } => None,
    }
}

/// The values that operations write.
pub fn written(ops: &[Op]) -> impl Iterator<Item = ValueId> + '_ {
    ops.iter().filter_map(|&op| written_by(op))
}

/// The values that one operation reads.
pub fn read_by(history: &History, op: &Op) -> Vec<ValueId> {
    match *op {
        Op::Read { value, .. } => vec![value],
        Op::ReadList { list, .. } => history.list(list).to_vec(),
        Op::Range { range } => history.range(range).rows.to_vec(),
        Op::Write { .. } | Op::Append { .. } => Vec::new(),
    }
}

/// The values that show by themselves who took effect. That there was no row does not, where deletes have names.
fn observed(history: &History, txn: TxnId) -> impl Iterator<Item = ValueId> + '_ {
    let values = history.ops(txn).iter().flat_map(|op| read_by(history, op));
    let deletes_matter = history.has_tombstones() || history.n_ranges() > 0;
    values.filter(move |&value| !(deletes_matter && is_nothing(history, value)))
}
