//! The external reads of a transaction in program order, as the checkers of the weak levels see them.
//!
//! What a range query did not return stays a query, as long as the keys in question are absent for one reason: they were never deleted
//! and they were not there before. Other keys are *wary*: each is asked for, one by one.

use std::cmp::Ordering;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::conditions::{Look, is_read_by, look, returned};
use crate::meaning::{Meaning, Version};
use crate::rows::{Sight, covers, sight};
use crate::sorted::SortedKeys;
use kingsnake_history::model::{
    Act, History, KeyId, Op, Predicate, RangeQuery, Statements, TxnId, ValueId,
};

/// A read of another's write: which operation, of which key, and who wrote what it returned.
#[derive(Clone, Copy)]
pub(super) struct External {
    pub(super) op: usize,
    pub(super) key: KeyId,
    pub(super) from: Version,
}

/// A range query that found keys as they were before any transaction: those that it asked for, but for some.
pub(super) struct Absent<'h> {
    pub(super) op: usize,
    pub(super) query: RangeQuery<'h>,
    /// What it returned, and what the transaction had written before.
    except: FxHashSet<KeyId>,
}

impl Absent<'_> {
    /// Whether the query says of a key that it had not been written.
    pub(super) fn tells(&self, wary: &Wary<'_>, key: KeyId) -> bool {
        covers(wary.history, self.query, key)
            && !self.except.contains(&key)
            && !wary.keys.contains(key)
    }
}

/// The keys whose absence must be examined.
pub(crate) struct Wary<'h> {
    history: &'h History,
    keys: SortedKeys<'h>,
}

impl<'h> Wary<'h> {
    /// Those of them that a query asks for.
    pub(crate) fn within(&self, query: RangeQuery<'h>) -> Vec<KeyId> {
        self.keys.within(query).collect()
    }

    /// The keys that were there before any transaction, or that were deleted.
    pub(crate) fn of(meaning: &Meaning<'h>) -> Self {
        let history = meaning.history();
        let mut keys = SortedKeys::new(history);
        if history.n_ranges() > 0 {
            let all = (0..history.n_keys() as u32).map(KeyId);
            let there = all.filter(|&key| history.is_there_initially(key));
            there
                .chain(meaning.deleted())
                .for_each(|key| keys.insert(key));
        }
        Wary { history, keys }
    }

    /// Whether a key is one of them.
    pub(crate) fn contains(&self, key: KeyId) -> bool {
        self.keys.contains(key)
    }
}

/// The reads of a transaction.
#[derive(Default)]
pub(super) struct ReadsOf<'h> {
    /// Key by key, in program order.
    pub(super) externals: Vec<External>,
    /// By query, in program order.
    pub(super) absents: Vec<Absent<'h>>,
}

/// The external reads of a transaction; the error names one that is not certain.
pub(super) fn externals<'h>(
    meaning: &Meaning<'h>,
    wary: &Wary<'h>,
    txn: TxnId,
) -> Result<ReadsOf<'h>, String> {
    externals_given(meaning, wary, txn, FxHashMap::default())
}

/// The external reads of a transaction whose reads of a key are all of one version: what one of them shows holds for the others.
pub(super) fn repeatable_externals<'h>(
    meaning: &Meaning<'h>,
    wary: &Wary<'h>,
    txn: TxnId,
) -> Result<ReadsOf<'h>, String> {
    let history = meaning.history();
    let mut first: FxHashMap<KeyId, Version> = FxHashMap::default();
    let mut own: FxHashSet<KeyId> = FxHashSet::default();
    for &op in history.ops(txn) {
        let shown: Vec<KeyId> = match op {
            Op::Write { key, .. } => {
                own.insert(key);
                continue;
            }
            Op::Read { key, .. } => vec![key],
            Op::Range { range } => {
                let query = history.range(range);
                let rows = query.rows.iter().map(|&row| history.value_key(row));
                rows.chain(wary.keys.within(query)).collect()
            }
            Op::Append { .. } | Op::ReadList { .. } => continue,
        };
        for key in shown.into_iter().filter(|key| !own.contains(key)) {
            let seen = sight(history, op, key);
            let from = seen.and_then(|seen| meaning.version_seen_or(txn, key, &seen, None));
            if let Some(from) = from {
                first.entry(key).or_insert(from);
            }
        }
    }
    externals_given(meaning, wary, txn, first)
}

fn externals_given<'h>(
    meaning: &Meaning<'h>,
    wary: &Wary<'h>,
    txn: TxnId,
    first: FxHashMap<KeyId, Version>,
) -> Result<ReadsOf<'h>, String> {
    read_all(
        WeakReading {
            meaning,
            txn,
            own: Own::default(),
            first,
            skips_uncertain: false,
            reads: ReadsOf::default(),
        },
        wary,
    )
}

/// The external reads of a transaction that are certain or assumed; the others say nothing.
pub(super) fn certain_externals<'h>(
    meaning: &Meaning<'h>,
    wary: &Wary<'h>,
    txn: TxnId,
) -> ReadsOf<'h> {
    let reading = WeakReading {
        meaning,
        txn,
        own: Own::default(),
        first: FxHashMap::default(),
        skips_uncertain: true,
        reads: ReadsOf::default(),
    };
    read_all(reading, wary).unwrap_or_default()
}

fn read_all<'h>(mut reading: WeakReading<'_, 'h>, wary: &Wary<'h>) -> Result<ReadsOf<'h>, String> {
    let (history, txn, meaning) = (reading.meaning.history(), reading.txn, reading.meaning);
    reading.reads.externals.reserve(history.ops(txn).len());
    let statements = history.statements(txn);
    let may_be_several = history.has_tombstones() || history.n_ranges() > 0;
    for (at, &op) in history.ops(txn).iter().enumerate() {
        let wrong = |key: KeyId| {
            let (txn, key) = (history.txn_name(txn), history.key_name(key));
            format!("operation {at} of transaction {txn} cannot have returned that of key {key}")
        };
        reading.conditions(at, &statements).map_err(wrong)?;
        let statement = statements.of(at);
        match op {
            Op::Write { key, value } | Op::Append { key, value } => reading.own.push(key, value),
            Op::ReadList { key, list } => {
                let mine = reading.own.appended(key);
                let before = history.list(list).strip_suffix(mine.as_slice());
                let from = before.and_then(|before| meaning.end_of_list(txn, before));
                let from = from.ok_or_else(|| wrong(key))?;
                let op = statement;
                reading.reads.externals.push(External { op, key, from });
            }
            Op::Read { key, value }
                if !may_be_several
                    && reading.own.last(key).is_none()
                    && let Some(from) = meaning.writer(txn, value) =>
            {
                let op = statement;
                reading.reads.externals.push(External { op, key, from });
            }
            Op::Read { key, .. } => {
                let seen = sight(history, op, key).ok_or_else(|| wrong(key))?;
                let read = (at, statement);
                reading
                    .register(read, key, &seen)
                    .ok_or_else(|| wrong(key))?;
            }
            Op::Range { range } => {
                let query = history.range(range);
                reading.range((at, statement), query, wary).map_err(wrong)?;
            }
        }
    }
    let end = history.ops(txn).len();
    reading.conditions(end, &statements).map_err(|key| {
        let (txn, key) = (history.txn_name(txn), history.key_name(key));
        format!("a condition of transaction {txn} cannot have chosen that of key {key}")
    })?;
    Ok(reading.reads)
}

/// How many writes of a transaction are looked through one by one.
const MAX_LISTED: usize = 16;

/// The writes of a transaction so far.
#[derive(Default)]
struct Own {
    written: Vec<(KeyId, ValueId)>,
    /// The places of each key's writes; of long transactions only.
    by_key: FxHashMap<KeyId, Vec<usize>>,
}

impl Own {
    fn push(&mut self, key: KeyId, value: ValueId) {
        self.written.push((key, value));
        let n_written = self.written.len();
        let unlisted = match n_written.cmp(&(MAX_LISTED + 1)) {
            Ordering::Less => return,
            Ordering::Equal => 0..n_written,
            Ordering::Greater => n_written - 1..n_written,
        };
        for at in unlisted {
            let places = self.by_key.entry(self.written[at].0).or_default();
            places.push(at);
        }
    }

    /// What the transaction wrote last to a key.
    fn last(&self, key: KeyId) -> Option<ValueId> {
        if self.written.len() <= MAX_LISTED {
            let mut written = self.written.iter().rev();
            return written.find(|it| it.0 == key).map(|it| it.1);
        }
        let places = self.by_key.get(&key)?;
        places.last().map(|&at| self.written[at].1)
    }

    /// What the transaction appended to a key.
    fn appended(&self, key: KeyId) -> Vec<ValueId> {
        if self.written.len() <= MAX_LISTED {
            let written = self.written.iter().filter(|it| it.0 == key);
            return written.map(|it| it.1).collect();
        }
        let places = self.by_key.get(&key).into_iter().flatten();
        places.map(|&at| self.written[at].1).collect()
    }

    /// The keys that were written.
    fn keys(&self) -> impl Iterator<Item = KeyId> + '_ {
        let keys: FxHashSet<KeyId> = self.written.iter().map(|it| it.0).collect();
        keys.into_iter()
    }
}

struct WeakReading<'m, 'h> {
    meaning: &'m Meaning<'h>,
    txn: TxnId,
    /// The writes of the transaction so far.
    own: Own,
    /// The version of each key that it read first, where a read may be of several.
    first: FxHashMap<KeyId, Version>,
    /// Whether reads that can have been of several versions are left out.
    skips_uncertain: bool,
    reads: ReadsOf<'h>,
}

impl<'h> WeakReading<'_, 'h> {
    /// Takes a read of a register; `None` if it is not certain, or not what the transaction itself left.
    fn register(&mut self, (at, op): (usize, usize), key: KeyId, seen: &Sight) -> Option<()> {
        if let Some(mine) = self.own.last(key) {
            return self.meaning.shows_as(mine, seen).then_some(());
        }
        if let Some(from) = self.meaning.taken_read((self.txn, at, key)) {
            self.reads.externals.push(External { op, key, from });
            return Some(());
        }
        let history = self.meaning.history();
        let may_be_several = history.has_tombstones() || history.n_ranges() > 0;
        let before = if may_be_several {
            self.first.get(&key).copied()
        } else {
            None
        };
        // What is left out elsewhere must not be filled in from another read of the key.
        let before = before.filter(|_| !self.skips_uncertain);
        let from = match self.meaning.version_seen_or(self.txn, key, seen, before) {
            None if self.skips_uncertain => return Some(()),
            from => from?,
        };
        if may_be_several {
            self.first.entry(key).or_insert(from);
        }
        self.reads.externals.push(External { op, key, from });
        Some(())
    }

    /// Takes the rows that the conditions before an operation looked at and did not return; the error is a key that cannot have been so.
    fn conditions(&mut self, at: usize, statements: &Statements) -> Result<(), KeyId> {
        let (meaning, txn) = (self.meaning, self.txn);
        let Some(conditions) = meaning.conditions() else {
            return Ok(());
        };
        let history = meaning.history();
        let asked = history.predicates(txn).enumerate();
        for (nth, predicate) in asked.filter(|(_, it)| it.at as usize == at) {
            let read = statements.read_by(nth);
            if matches!(predicate.act, Act::Aggregate { .. }) {
                self.aggregate(
                    conditions.keys(predicate.query),
                    (read, statements.of(read)),
                );
                continue;
            }
            let table = history.queries()[predicate.query as usize].table;
            let own = self
                .own
                .keys()
                .filter(|&it| history.table_of(it) == Some(table));
            let chosen = returned(history, txn, predicate);
            let mut keys: Vec<KeyId> = own.chain(chosen).collect();
            keys.extend(conditions.keys(predicate.query));
            keys.sort_unstable();
            keys.dedup();
            for key in keys {
                self.condition(predicate, (read, statements.of(read)), key)
                    .ok_or(key)?;
            }
        }
        Ok(())
    }

    /// Takes the rows that an aggregate counted, where their writers are assumed.
    fn aggregate(&mut self, keys: &[KeyId], (read, op): (usize, usize)) {
        for &key in keys.iter().filter(|&&key| self.own.last(key).is_none()) {
            if let Some(from) = self.meaning.taken_read((self.txn, read, key)) {
                self.reads.externals.push(External { op, key, from });
            }
        }
    }

    /// Takes what a condition says of a row; `None` if it cannot be, or is not certain.
    fn condition(
        &mut self,
        predicate: &Predicate,
        (read, op): (usize, usize),
        key: KeyId,
    ) -> Option<()> {
        let (meaning, txn) = (self.meaning, self.txn);
        let (history, query) = (meaning.history(), predicate.query);
        let is = match look(history, txn, predicate, key) {
            None | Some(Look::Anything) => return Some(()),
            Some(Look::Never) => return self.skips_uncertain.then_some(()),
            Some(Look::Satisfies(is)) => is,
        };
        if let Some(mine) = self.own.last(key) {
            return (self.skips_uncertain || history.satisfies(query, mine) == is).then_some(());
        }
        if is && is_read_by(history, txn, predicate, key) {
            return Some(());
        }
        if let Some(from) = meaning.taken_read((txn, read, key)) {
            self.reads.externals.push(External { op, key, from });
            return Some(());
        }
        let others = meaning.satisfying(txn, key, query, !is);
        if others.is_empty() && !is {
            return Some(());
        }
        match meaning.satisfying(txn, key, query, is).as_slice() {
            &[from] => self.reads.externals.push(External { op, key, from }),
            _ if self.skips_uncertain => {}
            _ => return None,
        }
        Some(())
    }

    /// Takes a range query; the error is a key that it cannot have shown so.
    fn range(
        &mut self,
        (at, op): (usize, usize),
        query: RangeQuery<'h>,
        wary: &Wary<'h>,
    ) -> Result<(), KeyId> {
        let history = self.meaning.history();
        let mut rows: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
        for &row in query.rows {
            rows.entry(history.value_key(row)).or_default().push(row);
        }
        let mut except: FxHashSet<KeyId> = FxHashSet::default();
        for &row in query.rows {
            let key = history.value_key(row);
            if except.insert(key) {
                let seen = Sight::Values(rows.remove(&key).unwrap_or_default());
                self.register((at, op), key, &seen).ok_or(key)?;
            }
        }
        let own = self.own.keys();
        let own = own.filter(|&key| covers(history, query, key) && !wary.contains(key));
        let own: Vec<KeyId> = own.filter(|key| !except.contains(key)).collect();
        let unreturned = wary.keys.within(query).filter(|key| !except.contains(key));
        let unreturned: Vec<KeyId> = unreturned.chain(own.iter().copied()).collect();
        for key in unreturned {
            let seen = Sight::Nothing {
                shows_deleted: query.shows_deleted,
                may_be_initial: !history.is_there_initially(key),
            };
            self.register((at, op), key, &seen).ok_or(key)?;
        }
        except.extend(own);
        self.reads.absents.push(Absent { op, query, except });
        Ok(())
    }
}
