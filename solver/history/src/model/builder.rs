//! Builds a [`History`] operation by operation, without an allocation for each; checks what makes it well formed.
//!
//! Readers call [`HistoryBuilder::begin`], then the operations, then the next `begin`. Sessions may interleave.

use std::ops::Bound;

use rustc_hash::{FxHashMap, FxHashSet};

use super::assumptions::{Assumptions, OrderSource};
use super::build_error::BuildError;
use super::compares::{CompareAndSet, CompareOutcome};
use super::history::{History, InitialRows, Interval, Op, Status, TxnRow, VersionOrder};
use super::ids::{KeyId, RangeId, SessionId, TxnId, ValueId};
use super::intern::TokenTable;
use super::lists::LongestList;
use super::names::{Symbols, Token};
use super::notes::Notes;
use super::predicates::{RowTables, Stamps};
use super::ranges::{RangeRow, Span};

/// The scope of names that no key owns.
const GLOBAL: KeyId = KeyId(0);

/// A read or a write of a key and a value that are numbers.
#[derive(Clone, Copy, Debug)]
pub struct NumberOp {
    /// Whether it is a write.
    pub is_write: bool,
    /// The key.
    pub key: i64,
    /// The value.
    pub value: i64,
}

/// What a version order names: a value, or the delete of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// A value; [`Token::Nil`] is a delete without a name.
    Value(Token),
    /// A delete, by its tombstone.
    Tombstone(Token),
}

impl From<Token> for Installed {
    fn from(value: Token) -> Self {
        Installed::Value(value)
    }
}

/// Collects a history. Operations belong to the transaction begun last.
#[derive(Debug, Default)]
pub struct HistoryBuilder {
    pub(super) history: Parts,
    txn_ids: TokenTable,
    session_ids: FxHashMap<Token, SessionId>,
    key_ids: TokenTable,
    value_ids: TokenTable,
    tombstone_ids: FxHashMap<(KeyId, Token), ValueId>,
    initial_everywhere: Vec<Token>,
    ordered_keys: FxHashSet<KeyId>,
    pub(super) lists: FxHashMap<KeyId, LongestList>,
}

#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) txns: Vec<TxnRow>,
    pub(super) ops: Vec<Op>,
    pub(super) session_names: Vec<Token>,
    pub(super) key_names: Vec<Token>,
    pub(super) value_names: Vec<Token>,
    pub(super) value_key: Vec<KeyId>,
    pub(super) value_initial: Vec<bool>,
    pub(super) lists: Vec<(u32, u32)>,
    pub(super) list_items: Vec<ValueId>,
    pub(super) ranges: Vec<RangeRow>,
    pub(super) range_rows: Vec<ValueId>,
    pub(super) inserts: Vec<u32>,
    pub(super) compares: Vec<CompareAndSet>,
    pub(super) tombstones: FxHashSet<ValueId>,
    pub(super) initial_rows: InitialRows,
    pub(super) intervals: Vec<Interval>,
    pub(super) has_times: bool,
    pub(super) isolation: Vec<Token>,
    pub(super) has_isolation: bool,
    pub(super) version_orders: Vec<VersionOrder>,
    pub(super) symbols: Symbols,
    pub(super) rows: RowTables,
    pub(super) notes: Notes,
}

impl HistoryBuilder {
    /// An empty history in which no value is initial yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes room for this many operations. A hint: callers must have checked it against the size of their input.
    pub fn reserve_ops(&mut self, n_ops: usize) {
        self.history.ops.reserve(n_ops);
    }

    /// The token of a text.
    pub fn text(&mut self, text: &str) -> Token {
        Token::Text(self.history.symbols.intern(text))
    }

    /// A token as text, for error messages.
    pub fn show(&self, token: Token) -> String {
        self.history.symbols.show(token)
    }

    /// Says how the file spells that there is no value; `null` unless said.
    pub fn spell_nil(&mut self, word: &'static str) {
        self.history.symbols.spell_nil(word);
    }

    /// Declares that every key holds this value before any transaction (say it before the first operation).
    pub fn initial_everywhere(&mut self, value: Token) {
        if value != Token::Nil {
            self.history.initial_rows.all.get_or_insert(value);
        }
        self.initial_everywhere.push(value);
    }

    /// Declares the value of one key before any transaction; [`Token::Nil`] is no row.
    pub fn initial(&mut self, key: Token, value: Token) {
        if value != Token::Nil {
            let key = self.key(key);
            self.history.initial_rows.some.insert(key);
        }
        self.initial_absence(key, value);
    }

    /// Declares what a read of one key returns where it has no row before any transaction.
    pub fn initial_absence(&mut self, key: Token, value: Token) {
        let key = self.key(key);
        let value = self.value(key, value);
        self.history.value_initial[value.index()] = true;
    }

    /// The session of this name, made if it is new. Sessions keep the order in which they were first named.
    pub fn session(&mut self, name: Token) -> SessionId {
        let names = &mut self.history.session_names;
        *self.session_ids.entry(name).or_insert_with(|| {
            names.push(name);
            SessionId(names.len() as u32 - 1)
        })
    }

    /// Begins the next transaction of a session.
    pub fn begin(
        &mut self,
        session: SessionId,
        name: Token,
        status: Status,
    ) -> Result<(), BuildError> {
        let index = self.history.txns.len() as u32;
        let earlier = self.txn_ids.id(GLOBAL, name, index);
        if earlier != index {
            let first = self.history.txns[earlier as usize].session;
            return Err(self.twice(name, first, session));
        }
        if index >= u32::MAX - 1 {
            return Err(BuildError::TooMany {
                what: "transactions",
            });
        }
        let ops_end = self.history.ops.len() as u32;
        self.history.txns.push(TxnRow {
            name,
            session,
            status,
            ops_end,
        });
        self.history.intervals.push(Interval::UNKNOWN);
        self.history.isolation.push(Token::Nil);
        Ok(())
    }

    fn twice(&self, txn: Token, first: SessionId, second: SessionId) -> BuildError {
        let session = |id: SessionId| self.show(self.history.session_names[id.index()]);
        let txn = self.show(txn);
        if first == second {
            return BuildError::DuplicateTxn {
                txn,
                session: session(first),
            };
        }
        BuildError::TwoSessions {
            txn,
            first: session(first),
            second: session(second),
        }
    }

    /// Changes the status of the transaction begun last, for formats that tell it at the end.
    pub fn status(&mut self, status: Status) {
        self.last().status = status;
    }

    /// Says when the transaction begun last ran; `None` where it was not recorded.
    pub fn times(&mut self, begin: Option<i64>, commit: Option<i64>) {
        let interval = Interval {
            begin: begin.unwrap_or(i64::MIN),
            commit: commit.unwrap_or(i64::MAX),
        };
        self.history.has_times |= begin.is_some() || commit.is_some();
        let index = self.history.txns.len() - 1;
        self.history.intervals[index] = interval;
    }

    /// Says which isolation level the transaction begun last asked for.
    pub fn isolation(&mut self, level: Token) {
        self.history.has_isolation = true;
        let index = self.history.txns.len() - 1;
        self.history.isolation[index] = level;
    }

    /// The transaction begun last read this value.
    #[inline]
    pub fn read(&mut self, key: Token, value: Token) -> ValueId {
        let (key, value) = self.pair(key, value);
        self.push(Op::Read { key, value });
        value
    }

    /// The transaction begun last wrote this value.
    #[inline]
    pub fn write(&mut self, key: Token, value: Token) -> ValueId {
        let (key, value) = self.pair(key, value);
        self.push(Op::Write { key, value });
        value
    }

    /// The transaction begun last wrote this value, and called it an insert.
    pub fn insert(&mut self, key: Token, value: Token) -> ValueId {
        self.history.inserts.push(self.history.ops.len() as u32);
        self.write(key, value)
    }

    /// The transaction begun last set a key to `new` if it held `expected`. Applied, it is a read and a write; refused with
    /// the current value shown, a read of it; refused without, no operation of a transaction.
    /// [`Token::Nil`] as `expected` is an insert if absent.
    pub fn compare_and_set(
        &mut self,
        key: Token,
        expected: Token,
        new: Token,
        outcome: CompareOutcome<Token>,
    ) {
        let key = self.key(key);
        let (expected, new) = (self.value(key, expected), self.value(key, new));
        let outcome = match outcome {
            CompareOutcome::Applied => CompareOutcome::Applied,
            CompareOutcome::Refused => CompareOutcome::Refused,
            CompareOutcome::Shown(current) => CompareOutcome::Shown(self.value(key, current)),
        };
        let before = match self.history.txns.len() {
            0 | 1 => 0,
            n_txns => self.history.txns[n_txns - 2].ops_end,
        };
        self.history.compares.push(CompareAndSet {
            txn: TxnId(self.history.txns.len() as u32 - 1),
            at: self.history.ops.len() as u32 - before,
            key,
            expected,
            new,
            outcome,
        });
        match outcome {
            CompareOutcome::Applied => {
                self.push(Op::Read {
                    key,
                    value: expected,
                });
                self.push(Op::Write { key, value: new });
            }
            CompareOutcome::Shown(value) => self.push(Op::Read { key, value }),
            CompareOutcome::Refused => {}
        }
    }

    /// A compare-and-set of the transaction begun last that was refused for a reason that the client does not know, or
    /// failed: an aborted one. What it would have written counts as an aborted write.
    pub fn failed_compare_and_set(&mut self, key: Token, expected: Token, new: Token) {
        self.compare_and_set(key, expected, new, CompareOutcome::Refused);
        self.write(key, new);
    }

    /// The transaction begun last deleted a key. The tombstone's name tells this delete from others of the key;
    /// [`Token::Nil`] where it has none.
    pub fn delete(&mut self, key: Token, tombstone: Token) -> ValueId {
        let key = self.key(key);
        let value = self.tombstone(key, tombstone);
        self.push(Op::Write { key, value });
        value
    }

    /// The transaction begun last found a key deleted, by the delete of this name.
    pub fn read_tombstone(&mut self, key: Token, tombstone: Token) -> ValueId {
        let key = self.key(key);
        let value = self.tombstone(key, tombstone);
        self.push(Op::Read { key, value });
        value
    }

    /// The transaction begun last asked for a range of keys and got these rows. `deleted` are deleted rows and the names of
    /// their tombstones, if the client sees them. Returns the rows as values, the deleted ones last.
    pub fn range(
        &mut self,
        low: Bound<Token>,
        high: Bound<Token>,
        rows: &[(Token, Token)],
        deleted: Option<&[(Token, Token)]>,
    ) -> Result<&[ValueId], BuildError> {
        let Some(span) = Span::new(low, high) else {
            let show = |bound: Bound<Token>| match bound {
                Bound::Unbounded => "nowhere".to_owned(),
                Bound::Included(token) | Bound::Excluded(token) => self.show(token),
            };
            let (low, high) = (show(low), show(high));
            return Err(BuildError::MixedBounds { low, high });
        };
        for &(key, value) in rows.iter().chain(deleted.unwrap_or_default()) {
            if span.place(&self.history.symbols, key).is_ne() {
                let span = span.show(|token| self.show(token));
                let key = self.show(key);
                return Err(BuildError::OutsideRange { span, key });
            }
            if value == Token::Nil {
                let key = self.show(key);
                return Err(BuildError::EmptyRow { key });
            }
        }
        let start = self.history.range_rows.len();
        for &(key, value) in rows {
            let (_, value) = self.pair(key, value);
            self.history.range_rows.push(value);
        }
        for &(key, tombstone) in deleted.unwrap_or_default() {
            let key = self.key(key);
            let value = self.tombstone(key, tombstone);
            self.history.range_rows.push(value);
        }
        self.history.ranges.push(RangeRow {
            span,
            rows_end: self.history.range_rows.len() as u32,
            shows_deleted: deleted.is_some(),
        });
        let range = RangeId(self.history.ranges.len() as u32 - 1);
        self.push(Op::Range { range });
        Ok(&self.history.range_rows[start..])
    }

    /// Adds reads and writes to the transaction begun last and returns them as they were interned. It does what
    /// [`read`](Self::read) and [`write`](Self::write) do one by one, but lets their lookups wait for memory together.
    pub fn extend(&mut self, run: &[NumberOp]) -> &[Op] {
        const WIDTH: usize = 32;
        let start = self.history.ops.len();
        for run in run.chunks(WIDTH) {
            let mut keys = [GLOBAL; WIDTH];
            let mut touched = 0;
            for op in run {
                touched ^= self.key_ids.touch(GLOBAL, op.key);
            }
            for (op, key) in run.iter().zip(&mut keys) {
                *key = self.key(Token::Int(op.key));
                touched ^= self.value_ids.touch(*key, op.value);
            }
            std::hint::black_box(touched);
            for (op, &key) in run.iter().zip(&keys) {
                let value = self.value(key, Token::Int(op.value));
                self.history.ops.push(if op.is_write {
                    Op::Write { key, value }
                } else {
                    Op::Read { key, value }
                });
            }
        }
        let ops_end = self.history.ops.len() as u32;
        self.last().ops_end = ops_end;
        &self.history.ops[start..]
    }

    /// The transaction begun last appended this value.
    pub fn append(&mut self, key: Token, value: Token) -> ValueId {
        let (key, value) = self.pair(key, value);
        self.push(Op::Append { key, value });
        value
    }

    /// Gives the order in which the database installed a key's values; it may leave values out.
    pub fn version_order(
        &mut self,
        key: Token,
        values: impl IntoIterator<Item = impl Into<Installed>>,
    ) -> Result<(), BuildError> {
        let key_name = key;
        let key = self.key(key);
        if !self.ordered_keys.insert(key) {
            let key = self.show(key_name);
            return Err(BuildError::DuplicateVersionOrder { key });
        }
        let values: Vec<ValueId> = values
            .into_iter()
            .map(|installed| match installed.into() {
                Installed::Value(value) => self.value(key, value),
                Installed::Tombstone(name) => self.tombstone(key, name),
            })
            .collect();
        let mut sorted = values.clone();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(BuildError::RepeatedVersion {
                key: self.show(key_name),
                value: self.show(self.history.value_names[twice[0].index()]),
            });
        }
        self.history.version_orders.push(VersionOrder {
            key,
            values,
            source: OrderSource::Database,
        });
        Ok(())
    }

    /// The finished history, its transactions numbered session by session.
    pub fn finish(mut self) -> Result<History, BuildError> {
        self.intern_initial_rows();
        let mut parts = self.history;
        let most = [&parts.list_items, &parts.range_rows].map(Vec::len);
        if parts.ops.len().max(most[0]).max(most[1]) >= u32::MAX as usize {
            return Err(BuildError::TooMany { what: "operations" });
        }
        check_intervals(&parts)?;
        parts.rows_are_there();
        let (keys, values) = (&parts.key_names, &parts.value_names);
        parts.symbols.quote_among([keys, values]);
        Ok(by_session(parts))
    }

    /// Where there are tables, every key that has a row at first has a value for it, be it that nobody reads it.
    fn intern_initial_rows(&mut self) {
        if self.history.rows.tables.is_empty() {
            return;
        }
        if let Some(value) = self.history.initial_rows.all {
            for key in 0..self.history.key_names.len() as u32 {
                self.value(KeyId(key), value);
            }
        }
    }

    fn last(&mut self) -> &mut TxnRow {
        self.history
            .txns
            .last_mut()
            .expect("an operation comes after a begin")
    }

    #[inline]
    pub(super) fn push(&mut self, op: Op) {
        self.history.ops.push(op);
        let ops_end = self.history.ops.len() as u32;
        self.last().ops_end = ops_end;
    }

    #[inline]
    fn pair(&mut self, key: Token, value: Token) -> (KeyId, ValueId) {
        let key = self.key(key);
        (key, self.value(key, value))
    }

    #[inline]
    pub(super) fn key(&mut self, name: Token) -> KeyId {
        let names = &mut self.history.key_names;
        let id = self.key_ids.id(GLOBAL, name, names.len() as u32);
        if id as usize == names.len() {
            names.push(name);
        }
        KeyId(id)
    }

    #[inline]
    pub(super) fn value(&mut self, key: KeyId, name: Token) -> ValueId {
        let parts = &mut self.history;
        let id = self.value_ids.id(key, name, parts.value_names.len() as u32);
        if id as usize == parts.value_names.len() {
            parts.value_names.push(name);
            parts.value_key.push(key);
            parts
                .value_initial
                .push(self.initial_everywhere.contains(&name));
        }
        ValueId(id)
    }

    /// What a delete leaves. A tombstone's name is no value, though it may look like one.
    pub(super) fn tombstone(&mut self, key: KeyId, name: Token) -> ValueId {
        if name == Token::Nil {
            return self.value(key, name);
        }
        let parts = &mut self.history;
        *self.tombstone_ids.entry((key, name)).or_insert_with(|| {
            let id = ValueId(parts.value_names.len() as u32);
            parts.value_names.push(name);
            parts.value_key.push(key);
            parts.value_initial.push(false);
            parts.tombstones.insert(id);
            id
        })
    }
}

impl Parts {
    /// A key that has a row before any transaction is not also without one, whatever the other keys are.
    pub(super) fn rows_are_there(&mut self) {
        let rows = &self.initial_rows;
        let has_ranges = !self.ranges.is_empty();
        if rows.some.is_empty() && !(rows.all.is_some() && has_ranges) {
            return;
        }
        for (value, name) in self.value_names.iter().enumerate() {
            let is_there =
                rows.all.is_some() && has_ranges || rows.some.contains(&self.value_key[value]);
            if *name == Token::Nil && is_there {
                self.value_initial[value] = false;
            }
        }
    }
}

fn check_intervals(parts: &Parts) -> Result<(), BuildError> {
    if !parts.has_times {
        return Ok(());
    }
    match parts.intervals.iter().position(|it| it.commit < it.begin) {
        None => Ok(()),
        Some(index) => Err(BuildError::BackwardInterval {
            txn: parts.symbols.show(parts.txns[index].name),
            begin: parts.intervals[index].begin,
            commit: parts.intervals[index].commit,
        }),
    }
}

/// Renumbers the transactions so that each session is a range; keeps the order inside a session.
fn by_session(parts: Parts) -> History {
    let n_sessions = parts.session_names.len();
    let mut session_start = vec![0_u32; n_sessions + 1];
    for txn in &parts.txns {
        session_start[txn.session.index() + 1] += 1;
    }
    for session in 0..n_sessions {
        session_start[session + 1] += session_start[session];
    }
    let sorted = parts.txns.is_sorted_by_key(|txn| txn.session);
    let mut history = History {
        txns: Vec::new(),
        ops: Vec::new(),
        session_names: parts.session_names,
        session_start,
        key_names: parts.key_names,
        value_names: parts.value_names,
        value_key: parts.value_key,
        value_initial: parts.value_initial,
        lists: parts.lists,
        list_items: parts.list_items,
        ranges: parts.ranges,
        range_rows: parts.range_rows,
        inserts: parts.inserts,
        compares: parts.compares,
        tombstones: parts.tombstones,
        initial_rows: parts.initial_rows,
        intervals: parts.has_times.then_some(parts.intervals),
        isolation: parts.has_isolation.then_some(parts.isolation),
        models: Vec::new(),
        version_orders: parts.version_orders,
        symbols: parts.symbols,
        rows: parts.rows,
        notes: parts.notes,
        assumptions: Assumptions::default(),
    };
    if !history.rows.stamps.is_empty() {
        let n_txns = parts.txns.len();
        history.rows.stamps.resize(n_txns, Stamps::default());
    }
    if sorted {
        history.txns = parts.txns;
        history.ops = parts.ops;
        return history;
    }
    let mut order: Vec<u32> = (0..parts.txns.len() as u32).collect();
    order.sort_by_key(|&index| parts.txns[index as usize].session);
    history.ops.reserve_exact(parts.ops.len());
    history.txns.reserve_exact(parts.txns.len());
    let inserts = std::mem::take(&mut history.inserts);
    for &index in &order {
        let index = index as usize;
        let start = if index == 0 {
            0
        } else {
            parts.txns[index - 1].ops_end
        };
        let end = parts.txns[index].ops_end;
        let place = |op: u32| inserts.partition_point(|&it| it < op);
        let moved = history.ops.len() as u32;
        for &insert in &inserts[place(start)..place(end)] {
            history.inserts.push(insert - start + moved);
        }
        history
            .ops
            .extend_from_slice(&parts.ops[start as usize..end as usize]);
        let ops_end = history.ops.len() as u32;
        history.txns.push(TxnRow {
            ops_end,
            ..parts.txns[index]
        });
    }
    let mut places = vec![0_u32; order.len()];
    for (place, &index) in order.iter().enumerate() {
        places[index as usize] = place as u32;
    }
    for compare in &mut history.compares {
        compare.txn = TxnId(places[compare.txn.index()]);
    }
    history.compares.sort_by_key(|compare| compare.txn);
    permute(&mut history.intervals, &order);
    permute(&mut history.isolation, &order);
    permute_rows(&mut history.rows, &order);
    history.notes.permute(&order);
    history
}

fn permute_rows(rows: &mut RowTables, order: &[u32]) {
    if !rows.stamps.is_empty() {
        let moved = order.iter().map(|&index| rows.stamps[index as usize]);
        rows.stamps = moved.collect();
    }
    if !rows.predicates.is_empty() {
        let mut place = vec![TxnId(0); order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old as usize] = TxnId(new as u32);
        }
        for (txn, _) in &mut rows.predicates {
            *txn = place[txn.index()];
        }
        rows.predicates.sort_by_key(|it| it.0);
    }
}

fn permute<T: Copy>(column: &mut Option<Vec<T>>, order: &[u32]) {
    if let Some(rows) = column {
        *rows = order.iter().map(|&index| rows[index as usize]).collect();
    }
}
