//! The meaning of the operations: which transactions count, who wrote each value that was read, and which versions
//! follow each other.
//!
//! This is computed from the history alone and for the checkers alone, a second time and in a different way than the search
//! did it, so that a mistake there cannot excuse itself here. A version of a key is named by its writer; `None` is the
//! initial state.

mod observed;

use std::cell::RefCell;

use rustc_hash::FxHashMap;

use super::conditions::{Conditions, Look, look};
use super::rows::{Sight, is_hidden, is_nothing, sight};
use kingsnake_history::model::{History, KeyId, Op, Status, TxnId, ValueId};

/// A version of a key: the transaction that installed it, or none.
pub type Version = Option<TxnId>;

const NOBODY: u32 = u32::MAX;

/// The history with its values traced to their writers.
pub struct Meaning<'h> {
    history: &'h History,
    traces: Traces,
    /// The assumed writer that a transaction read a key from.
    pub(super) assumed: RefCell<FxHashMap<(TxnId, KeyId), Version>>,
    /// The same of single operations.
    pub(super) assumed_reads: RefCell<FxHashMap<(TxnId, usize, KeyId), Version>>,
}

/// The traced data, without the history. A caller that moves a history keeps this, and need not trace again.
pub struct Traces {
    counts: Vec<bool>,
    /// For each value, two transactions that did not abort and left it in its key: wrote it last, or appended it.
    writers: Vec<[u32; 2]>,
    /// For values that three or more left, all but those two.
    more: FxHashMap<ValueId, Vec<TxnId>>,
    /// For each key, every transaction that did not abort and wrote it, and what it left. Only kept where there are predicates.
    left_by: FxHashMap<KeyId, Vec<(TxnId, ValueId)>>,
    conditions: Option<Conditions>,
    /// For each key, the transactions that did not abort and left it without a row, and what they left. Only kept where
    /// range queries or named tombstones make it matter.
    deletes: FxHashMap<KeyId, Vec<(TxnId, ValueId)>>,
}

impl<'h> Meaning<'h> {
    /// The meaning of a history from what was traced in it before.
    ///
    /// # Panics
    /// If the data belong to a history of another size.
    pub fn resumed(history: &'h History, traces: Traces) -> Self {
        let sizes = (traces.counts.len(), traces.writers.len());
        assert_eq!(
            sizes,
            (history.n_txns(), history.n_values()),
            "traces of another history"
        );
        Meaning {
            history,
            traces,
            assumed: RefCell::default(),
            assumed_reads: RefCell::default(),
        }
    }

    /// The traced data.
    pub fn into_traces(self) -> Traces {
        self.traces
    }

    /// Traces every value.
    pub fn of(history: &'h History) -> Self {
        let mut meaning = Meaning {
            history,
            traces: Traces {
                counts: Vec::with_capacity(history.n_txns()),
                writers: vec![[NOBODY; 2]; history.n_values()],
                more: FxHashMap::default(),
                left_by: FxHashMap::default(),
                conditions: Conditions::of(history),
                deletes: FxHashMap::default(),
            },
            assumed: RefCell::default(),
            assumed_reads: RefCell::default(),
        };
        // Who wrote a key last, among the operations seen so far, from a transaction's last to its first.
        let mut seen = vec![NOBODY; history.n_keys()];
        let mut unsure: FxHashMap<ValueId, Vec<TxnId>> = FxHashMap::default();
        for txn in history.txns() {
            let status = history.status(txn);
            meaning.traces.counts.push(status == Status::Committed);
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
            let is_overwritten = std::mem::replace(&mut seen[key.index()], txn.0) == txn.0;
            if is_overwritten && matches!(op, Op::Write { .. }) {
                continue;
            }
            if self.traces.conditions.is_some() {
                self.traces
                    .left_by
                    .entry(key)
                    .or_default()
                    .push((txn, value));
            }
            if deletes_matter && is_hidden(self.history, value, false) {
                self.traces
                    .deletes
                    .entry(key)
                    .or_default()
                    .push((txn, value));
            }
            let row = &mut self.traces.writers[value.index()];
            match row {
                [NOBODY, _] => row[0] = txn.0,
                [_, NOBODY] => row[1] = txn.0,
                _ => self.traces.more.entry(value).or_default().push(txn),
            }
        }
    }

    /// The history.
    pub fn history(&self) -> &'h History {
        self.history
    }

    /// Whether a transaction took effect.
    pub fn counts(&self, txn: TxnId) -> bool {
        self.traces
            .counts
            .get(txn.index())
            .copied()
            .unwrap_or(false)
    }

    /// The value that a transaction left in a key.
    pub fn left(&self, txn: TxnId, key: KeyId) -> Option<ValueId> {
        let ops = self.history.ops(txn).iter().rev();
        ops.filter(|op| op.key() == Some(key))
            .find_map(|&op| written_by(op))
    }

    /// What a transaction left in a key: one value, or all that it appended.
    pub fn installed(&self, txn: TxnId, key: KeyId) -> Vec<ValueId> {
        let ops = self.history.ops(txn).iter();
        let writes = ops.filter(|op| op.is_write() && op.key() == Some(key));
        let appends = writes.filter_map(|&op| match op {
            Op::Append { value, .. } => Some(value),
            _ => None,
        });
        let appends: Vec<ValueId> = appends.collect();
        if appends.is_empty() {
            return self.left(txn, key).into_iter().collect();
        }
        appends
    }

    /// Who left a value, as `reader` sees it; `None` if that is not certain.
    pub fn writer(&self, reader: TxnId, value: ValueId) -> Option<Version> {
        let others = self.others(reader, value)?;
        match (others, self.history.is_initial(value)) {
            (None, true) => Some(None),
            (Some(writer), false) => Some(Some(writer)),
            _ => None,
        }
    }

    /// Who left a value at the end of a list, as `reader` sees it; `None` if that is not certain. A list is empty before
    /// any transaction, whatever value registers have.
    fn appender(&self, reader: TxnId, value: ValueId) -> Option<Version> {
        self.others(reader, value)?.map(Some)
    }

    /// The transaction other than `reader` that left a value, if any did; `None` if several did.
    #[allow(clippy::option_option)] // None, one, or uncertain.
    fn others(&self, reader: TxnId, value: ValueId) -> Option<Option<TxnId>> {
        if self.traces.more.contains_key(&value) {
            return None;
        }
        let left = self.traces.writers[value.index()].into_iter();
        let mut others = left.filter(|&txn| txn != NOBODY && txn != reader.0);
        match (others.next(), others.next()) {
            (_, Some(_)) => None,
            (one, None) => Some(one.map(TxnId)),
        }
    }

    /// The keys that some transaction that did not abort left without a row.
    pub(super) fn deleted(&self) -> impl Iterator<Item = KeyId> + '_ {
        self.traces.deletes.keys().copied()
    }

    /// The transactions other than `reader` that did not abort and left a key so that it seemed to have no row.
    pub(super) fn deleters(
        &self,
        reader: TxnId,
        key: KeyId,
        shows_deleted: bool,
    ) -> impl Iterator<Item = TxnId> + '_ {
        let deletes = self.traces.deletes.get(&key).into_iter().flatten();
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

    /// The writer of the end of a list, as `reader` sees it; none where it is empty.
    pub(super) fn end_of_list(&self, reader: TxnId, list: &[ValueId]) -> Option<Version> {
        match list.last() {
            None => Some(None),
            Some(&value) => self.appender(reader, value),
        }
    }

    /// Whether a register that holds a value can look like this.
    pub(super) fn shows_as(&self, held: ValueId, seen: &Sight) -> bool {
        match seen {
            Sight::Values(values) => values.iter().all(|&value| {
                value == held || is_nothing(self.history, value) && self.history.is_absence(held)
            }),
            Sight::Nothing { shows_deleted, .. } => is_hidden(self.history, held, *shows_deleted),
        }
    }

    /// The version that an operation showed of a register. Where there was no row, that may be any of several; then it
    /// is the one that was read before, if that can be it.
    pub(super) fn version_seen_or(
        &self,
        reader: TxnId,
        key: KeyId,
        seen: &Sight,
        before: Option<Version>,
    ) -> Option<Version> {
        if let (
            Some(before),
            &Sight::Nothing {
                shows_deleted,
                may_be_initial,
            },
        ) = (before, seen)
        {
            let can_be = match before {
                None => may_be_initial,
                Some(txn) => self
                    .deleters(reader, key, shows_deleted)
                    .any(|it| it == txn),
            };
            if can_be {
                return Some(before);
            }
        }
        self.version_seen(reader, key, seen)
    }

    /// Whether exactly one transaction left a value. (What the initial state held has no place in an order but its head.)
    pub fn is_unique(&self, value: ValueId) -> bool {
        let [one, other] = self.traces.writers[value.index()];
        one != NOBODY && other == NOBODY
    }

    /// Whether a transaction other than `reader` that did not abort left a value.
    pub fn is_left(&self, reader: TxnId, value: ValueId) -> bool {
        let mut left = self.traces.writers[value.index()].into_iter();
        left.any(|txn| txn != NOBODY && txn != reader.0)
    }

    /// The version of a key that a transaction began from, if it read the key and the version is certain or assumed.
    pub fn version_read(&self, reader: TxnId, key: KeyId) -> Option<Version> {
        if let Some(version) = self.first_version_read(reader, key) {
            return Some(version);
        }
        if let Some(&assumed) = self.assumed.borrow().get(&(reader, key)) {
            return Some(assumed);
        }
        match self.sources(reader, key)?.as_slice() {
            &[version] => Some(version),
            _ => None,
        }
    }

    /// The version that a transaction's first read of a key leaves no doubt about.
    fn first_version_read(&self, reader: TxnId, key: KeyId) -> Option<Version> {
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
                        Some(&value) => self.appender(reader, value),
                    };
                }
            }
        }
        None
    }

    /// Every version of a register that explains all that a transaction saw of it before it wrote it, and none if what it saw then
    /// is not what it wrote; `None` if it saw nothing.
    pub fn sources(&self, reader: TxnId, key: KeyId) -> Option<Vec<Version>> {
        let history = self.history;
        let (ops, predicates) = (history.ops(reader), history.predicates(reader));
        let mut common: Option<Vec<Version>> = None;
        let mut keep = |possible: Vec<Version>| match &mut common {
            None => common = Some(possible),
            Some(common) => common.retain(|it| possible.contains(it)),
        };
        let mut own: Option<ValueId> = None;
        for at in 0..=ops.len() {
            for predicate in predicates.clone().filter(|it| it.at as usize == at) {
                let query = predicate.query;
                match (look(history, reader, predicate, key), own) {
                    (None, _) | (Some(Look::Anything), Some(_)) => {}
                    (Some(Look::Never), _) => return Some(Vec::new()),
                    (Some(Look::Anything), None) => {
                        let mut any = self.satisfying(reader, key, query, true);
                        any.extend(self.satisfying(reader, key, query, false));
                        keep(any);
                    }
                    (Some(Look::Satisfies(is)), Some(own)) => {
                        if history.satisfies(query, own) != is {
                            return Some(Vec::new());
                        }
                    }
                    (Some(Look::Satisfies(is)), None) => {
                        keep(self.satisfying(reader, key, query, is));
                    }
                }
            }
            let Some(&op) = ops.get(at) else { break };
            if op.key() == Some(key)
                && let Some(value) = written_by(op)
            {
                own = Some(value);
            }
            if let (None, Some(seen)) = (own, sight(history, op, key)) {
                keep(self.possible(reader, key, &seen));
            }
        }
        common
    }

    pub(super) fn conditions(&self) -> Option<&Conditions> {
        self.traces.conditions.as_ref()
    }

    /// Every version of a row that satisfies a condition, or does not.
    pub(super) fn satisfying(
        &self,
        reader: TxnId,
        key: KeyId,
        query: u32,
        is: bool,
    ) -> Vec<Version> {
        let history = self.history;
        let initial = self
            .traces
            .conditions
            .as_ref()
            .and_then(|it| it.initial(key));
        let satisfies = |row: ValueId| history.satisfies(query, row);
        let initial = (initial.is_some_and(satisfies) == is).then_some(None);
        let left = self.traces.left_by.get(&key).into_iter().flatten();
        let others = left.filter(|it| it.0 != reader && satisfies(it.1) == is);
        others.map(|it| Some(it.0)).chain(initial).collect()
    }

    /// Every version of a register that explains what an operation saw of it.
    pub(super) fn possible(&self, reader: TxnId, key: KeyId, seen: &Sight) -> Vec<Version> {
        match *seen {
            Sight::Values(ref values) => {
                let Some((&value, rest)) = values.split_first() else {
                    return Vec::new();
                };
                if rest.iter().any(|&other| other != value) {
                    return Vec::new();
                }
                let two = self.traces.writers[value.index()].into_iter();
                let two = two.filter(|&txn| txn != NOBODY).map(TxnId);
                let more = self.traces.more.get(&value).into_iter().flatten().copied();
                let others = two.chain(more).filter(|&txn| txn != reader).map(Some);
                let initial = self.history.is_initial(value).then_some(None);
                others.chain(initial).collect()
            }
            Sight::Nothing {
                shows_deleted,
                may_be_initial,
            } => {
                let deleters = self.deleters(reader, key, shows_deleted).map(Some);
                deleters.chain(may_be_initial.then_some(None)).collect()
            }
        }
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
