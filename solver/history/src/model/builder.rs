//! Builds a [`History`] operation by operation, without an allocation for each; checks what makes it well formed.
//!
//! Readers call [`HistoryBuilder::begin`], then the operations, then the next `begin`. Sessions may interleave.

mod finish;
mod operations;

use finish::{by_session, check_intervals};
pub use operations::NumberOp;
use rustc_hash::{FxHashMap, FxHashSet};

use super::assumptions::OrderSource;
use super::build_error::BuildError;
use super::compares::CompareAndSet;
use super::history::{History, InitialRows, Interval, Op, Status, TxnRow, VersionOrder};
use super::ids::{KeyId, RangeId, SessionId, ValueId};
use super::intern::{TokenTable, Touched};
use super::lists::LongestList;
use super::names::{Symbols, Token, Tokens};
use super::notes::Notes;
use super::predicates::RowTables;
use super::ranges::RangeRow;

/// The scope of names that no key owns.
const GLOBAL: KeyId = KeyId(0);

/// An entry of a version order: a value, or the delete of a name.
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
    session_ids: TokenTable,
    key_ids: TokenTable,
    value_ids: TokenTable,
    tombstone_ids: FxHashMap<(KeyId, Token), ValueId>,
    initial_everywhere: Vec<Token>,
    ordered_keys: FxHashSet<KeyId>,
    pub(super) lists: FxHashMap<KeyId, LongestList>,
    /// What the transaction begun last wrote and rolled back.
    pub(super) rolled_back: Vec<Op>,
}

#[derive(Debug, Default)]
pub(super) struct Parts {
    pub(super) txns: Vec<TxnRow>,
    pub(super) ops: Vec<Op>,
    pub(super) session_names: Vec<Token>,
    pub(super) key_names: Tokens,
    pub(super) value_names: Tokens,
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
    /// When transactions ran, up to the last of which that is known.
    pub(super) intervals: Vec<Interval>,
    /// The same of their levels.
    pub(super) isolation: Vec<Token>,
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
        let parts = &mut self.history;
        parts.ops.reserve(n_ops);
        // About every second operation writes a new value. Growing would copy them; unused room costs nothing.
        let n_values = n_ops / 2;
        parts.value_names.reserve(n_values);
        parts.value_key.reserve(n_values);
        parts.value_initial.reserve(n_values);
    }

    /// Makes room for this many transactions and values. A hint: callers must have checked it against the size of their input.
    pub fn reserve_txns(&mut self, n_txns: usize, n_values: usize) {
        self.history.txns.reserve(n_txns);
        self.history.value_names.reserve(n_values);
        self.history.value_key.reserve(n_values);
        self.history.value_initial.reserve(n_values);
    }

    /// The token of a text.
    pub fn text(&mut self, text: &str) -> Token {
        Token::Text(self.history.symbols.intern(text))
    }

    /// A token as text, for error messages.
    pub fn show(&self, token: Token) -> String {
        self.history.symbols.show(token)
    }

    /// Sets the file's spelling of a missing value [default: `null`].
    pub fn spell_nil(&mut self, word: &'static str) {
        self.history.symbols.spell_nil(word);
    }

    /// Declares that every key holds this value before any transaction. Call it before the first operation.
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

    /// The session of this name, created if it is new. Sessions keep the order in which they were first named.
    pub fn session(&mut self, name: Token) -> SessionId {
        let names = &mut self.history.session_names;
        let id = self.session_ids.id(GLOBAL, name, names.len() as u32);
        if id as usize == names.len() {
            names.push(name);
        }
        SessionId(id)
    }

    /// Begins the next transaction of a session.
    pub fn begin(
        &mut self,
        session: SessionId,
        name: Token,
        status: Status,
    ) -> Result<(), BuildError> {
        self.roll_back_pending()?;
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
        let ops_start = self.history.ops.len() as u32;
        self.history.txns.push(TxnRow {
            name,
            session,
            status,
            ops_start,
            ops_end: ops_start,
        });
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

    /// Changes the status of the transaction begun last, for formats that have it at the end.
    pub fn status(&mut self, status: Status) {
        self.last().status = status;
    }

    /// Sets when the transaction begun last ran; `None` if not recorded.
    pub fn times(&mut self, begin: Option<i64>, commit: Option<i64>) {
        let interval = Interval {
            begin: begin.unwrap_or(i64::MIN),
            commit: commit.unwrap_or(i64::MAX),
        };
        if interval != Interval::UNKNOWN {
            let n_before = self.history.txns.len() - 1;
            self.history.intervals.resize(n_before, Interval::UNKNOWN);
            self.history.intervals.push(interval);
        }
    }

    /// Sets the isolation level that the transaction begun last requested.
    pub fn isolation(&mut self, level: Token) {
        let n_before = self.history.txns.len() - 1;
        self.history.isolation.resize(n_before, Token::Nil);
        self.history.isolation.push(level);
    }

    /// Sets the order in which the database installed a key's values; values may be missing.
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
                value: self.show(self.history.value_names.get(twice[0].index())),
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
        self.roll_back_pending()?;
        self.check_objects()?;
        self.settle_untouched_keys();
        self.intern_initial_rows();
        drop(std::mem::take(&mut self.value_ids)); // The largest table; the next steps need the memory.
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

    /// With tables, every key that has a row at first has a value for it, even if it is never read.
    fn intern_initial_rows(&mut self) {
        if self.history.rows.tables.is_empty() {
            return;
        }
        if let Some(value) = self.history.initial_rows.all {
            for key in (0..self.history.key_names.len() as u32).map(KeyId) {
                if !self.history.initial_rows.none.contains(&key) {
                    self.value(key, value);
                }
            }
        }
    }

    /// A query of one key that showed neither a row nor a delete of a name is a read of null, where the key has no such delete and
    /// null is the initial value.
    fn settle_untouched_keys(&mut self) {
        let mut start = 0;
        let mut asked = FxHashMap::default();
        for (at, row) in self.history.ranges.iter().enumerate() {
            let is_empty = row.shows_deleted && row.rows_end == start;
            start = row.rows_end;
            if let Some(key) = row.span.only_key().filter(|_| is_empty) {
                asked.insert(RangeId(at as u32), key);
            }
        }
        if asked.is_empty() || !self.initial_everywhere.contains(&Token::Nil) {
            return;
        }
        let deletes = self.history.tombstones.iter();
        let deleted: FxHashSet<KeyId> = deletes
            .map(|value| self.history.value_key[value.index()])
            .collect();
        let mut kept = Vec::new();
        for at in 0..self.history.ops.len() {
            let Op::Range { range } = self.history.ops[at] else {
                continue;
            };
            let key = asked.get(&range).map(|&key| self.key(key));
            self.history.ops[at] = if let Some(key) = key.filter(|key| !deleted.contains(key)) {
                let value = self.value(key, Token::Nil);
                Op::Read { key, value }
            } else {
                kept.push(self.history.ranges[range.0 as usize]);
                let range = RangeId(kept.len() as u32 - 1);
                Op::Range { range }
            };
        }
        // Queries that became reads returned no rows, so the other queries' rows stay in place.
        self.history.ranges = kept;
    }

    pub(super) fn last(&mut self) -> &mut TxnRow {
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
        let fresh = self.history.key_names.len() as u32;
        let id = self.key_ids.id(GLOBAL, name, fresh);
        self.known_key(id, name)
    }

    /// How many operations came before those of the transaction begun last.
    pub(super) fn ops_start(&self) -> usize {
        self.history
            .txns
            .last()
            .map_or(0, |it| it.ops_start as usize)
    }

    /// The key of a number that [`TokenTable::touch`] looked at.
    #[inline]
    fn touched_key(&mut self, touched: Touched, number: i64) -> KeyId {
        let fresh = self.history.key_names.len() as u32;
        let id = self.key_ids.touched_id(touched, GLOBAL, number, fresh);
        self.known_key(id, Token::Int(number))
    }

    /// Keeps the name of a key whose id is new.
    #[inline]
    fn known_key(&mut self, id: u32, name: Token) -> KeyId {
        let names = &mut self.history.key_names;
        if id as usize == names.len() {
            names.push(name);
        }
        KeyId(id)
    }

    #[inline]
    pub(super) fn value(&mut self, key: KeyId, name: Token) -> ValueId {
        let fresh = self.history.value_names.len() as u32;
        let id = self.value_ids.id(key, name, fresh);
        self.known_value(id, key, name)
    }

    /// The value of a number that [`TokenTable::touch`] looked at.
    #[inline]
    fn touched_value(&mut self, touched: Touched, key: KeyId, number: i64) -> ValueId {
        let fresh = self.history.value_names.len() as u32;
        let id = self.value_ids.touched_id(touched, key, number, fresh);
        self.known_value(id, key, Token::Int(number))
    }

    /// Keeps the name of a value whose id is new.
    #[inline]
    fn known_value(&mut self, id: u32, key: KeyId, name: Token) -> ValueId {
        let parts = &mut self.history;
        if id as usize == parts.value_names.len() {
            parts.value_names.push(name);
            parts.value_key.push(key);
            parts
                .value_initial
                .push(self.initial_everywhere.contains(&name));
        }
        ValueId(id)
    }

    /// The value left by a delete. A tombstone's name is not a value, though it may look like one.
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
            let key = self.value_key[value];
            let has_all = rows.all.is_some() && has_ranges && !rows.none.contains(&key);
            let is_there = has_all || rows.some.contains(&key);
            if name == Token::Nil && is_there {
                self.value_initial[value] = false;
            }
        }
    }
}
