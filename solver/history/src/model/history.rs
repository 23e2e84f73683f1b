//! A history: what the clients saw, well formed and interned, but not resolved yet.
//!
//! Invariant: transactions are numbered session by session in session order, so a session is a range of ids.

use std::ops::Range;

use rustc_hash::FxHashSet;

use super::assumptions::{Assumptions, OrderSource};
use super::compares::CompareAndSet;
use super::ids::{KeyId, ListId, RangeId, SessionId, TxnId, ValueId};
use super::names::{Symbols, Token, Tokens};
use super::notes::Notes;
use super::predicates::RowTables;
use super::ranges::{RangeQuery, RangeRow};
use crate::level::Model;

/// One operation. Values are interned together with their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The key held this value.
    Read {
        /// The key.
        key: KeyId,
        /// What was read.
        value: ValueId,
    },
    /// The key was set to this value. A delete is a write whose value is an [absence](History::is_absence).
    Write {
        /// The key.
        key: KeyId,
        /// What was written.
        value: ValueId,
    },
    /// The value was appended to the key's list.
    Append {
        /// The key.
        key: KeyId,
        /// What was appended.
        value: ValueId,
    },
    /// The key held this list.
    ReadList {
        /// The key.
        key: KeyId,
        /// What was read.
        list: ListId,
    },
    /// All keys of a range were read at once.
    Range {
        /// The query and its answer.
        range: RangeId,
    },
}

impl Op {
    /// The key that the operation touches; `None` for a range query, which touches many.
    #[inline]
    pub fn key(self) -> Option<KeyId> {
        match self {
            Op::Read { key, .. }
            | Op::Write { key, .. }
            | Op::Append { key, .. }
            | Op::ReadList { key, .. } => Some(key),
            Op::Range { .. } => None,
        }
    }

    /// Whether the operation installs a value (a write or an append).
    #[inline]
    pub fn is_write(self) -> bool {
        matches!(self, Op::Write { .. } | Op::Append { .. })
    }
}

/// The outcome of a transaction, as far as known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It took effect.
    Committed,
    /// It did not take effect.
    Aborted,
    /// Unknown (a lost connection).
    Unknown,
}

/// When a transaction began and committed, in nanoseconds of one clock. An unrecorded bound is as wide as possible, so
/// that it orders nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The begin, or `i64::MIN`.
    pub begin: i64,
    /// The commit, or `i64::MAX`.
    pub commit: i64,
}

impl Interval {
    /// Nothing is known.
    pub const UNKNOWN: Interval = Interval {
        begin: i64::MIN,
        commit: i64::MAX,
    };
}

/// The order in which the values of a key were installed, oldest first, as the database or an assumption says; values may be missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionOrder {
    /// The key.
    pub key: KeyId,
    /// Its values.
    pub values: Vec<ValueId>,
    /// Its source.
    pub source: OrderSource,
}

/// Which keys have a row before any transaction.
#[derive(Clone, Debug, Default)]
pub(super) struct InitialRows {
    /// A value that every key has.
    pub(super) all: Option<Token>,
    pub(super) some: FxHashSet<KeyId>,
    /// Rows of sets and counters, which have none whatever other keys have.
    pub(super) none: FxHashSet<KeyId>,
}

/// A transaction's row.
#[derive(Clone, Copy, Debug)]
pub(super) struct TxnRow {
    pub(super) name: Token,
    pub(super) session: SessionId,
    pub(super) status: Status,
    pub(super) ops_start: u32,
    pub(super) ops_end: u32,
}

/// What the clients saw. Made by a [`HistoryBuilder`](super::HistoryBuilder).
#[derive(Clone, Debug)]
pub struct History {
    pub(super) txns: Vec<TxnRow>,
    /// In the order of the file: those of a transaction stand together.
    pub(super) ops: Vec<Op>,
    pub(super) session_names: Vec<Token>,
    pub(super) session_start: Vec<u32>,
    pub(super) key_names: Tokens,
    pub(super) value_names: Tokens,
    pub(super) value_key: Vec<KeyId>,
    pub(super) value_initial: Vec<bool>,
    /// Where each list starts among the items, and its length. Lists that begin with each other share items.
    pub(super) lists: Vec<(u32, u32)>,
    pub(super) list_items: Vec<ValueId>,
    pub(super) ranges: Vec<RangeRow>,
    pub(super) range_rows: Vec<ValueId>,
    pub(super) inserts: Vec<u32>,
    pub(super) compares: Vec<CompareAndSet>,
    pub(super) tombstones: FxHashSet<ValueId>,
    pub(super) initial_rows: InitialRows,
    pub(super) intervals: Option<Vec<Interval>>,
    pub(super) isolation: Option<Vec<Token>>,
    pub(super) models: Vec<Model>,
    pub(super) version_orders: Vec<VersionOrder>,
    pub(super) symbols: Symbols,
    pub(super) rows: RowTables,
    pub(super) notes: Notes,
    pub(super) assumptions: Assumptions,
}

impl History {
    /// The number of transactions, whatever their status.
    pub fn n_txns(&self) -> usize {
        self.txns.len()
    }

    /// The number of sessions, empty ones included.
    pub fn n_sessions(&self) -> usize {
        self.session_names.len()
    }

    /// The number of keys.
    pub fn n_keys(&self) -> usize {
        self.key_names.len()
    }

    /// The number of distinct (key, value) pairs.
    pub fn n_values(&self) -> usize {
        self.value_names.len()
    }

    /// The number of operations.
    pub fn n_ops(&self) -> usize {
        self.ops.len()
    }

    /// All transactions.
    pub fn txns(&self) -> impl DoubleEndedIterator<Item = TxnId> + ExactSizeIterator + use<> {
        (0..self.txns.len() as u32).map(TxnId)
    }

    /// The transactions of a session, in session order.
    pub fn session_txns(&self, session: SessionId) -> Range<u32> {
        self.session_start[session.index()]..self.session_start[session.index() + 1]
    }

    /// The session of a transaction.
    #[inline]
    pub fn session(&self, txn: TxnId) -> SessionId {
        self.txns[txn.index()].session
    }

    /// The outcome of a transaction, as far as known.
    #[inline]
    pub fn status(&self, txn: TxnId) -> Status {
        self.txns[txn.index()].status
    }

    /// The same history with another outcome of a transaction.
    #[must_use]
    pub fn with_status(&self, txn: TxnId, status: Status) -> History {
        let mut history = self.clone();
        history.set_status(txn, status);
        history
    }

    /// Sets the outcome of a transaction.
    pub fn set_status(&mut self, txn: TxnId, status: Status) {
        self.txns[txn.index()].status = status;
    }

    /// The same history in which exactly these transactions of unknown outcome took effect.
    #[must_use]
    pub fn with_effects_of(&self, took_effect: impl Fn(TxnId) -> bool) -> History {
        let mut history = self.clone();
        for (at, row) in history.txns.iter_mut().enumerate() {
            if row.status == Status::Unknown {
                row.status = if took_effect(TxnId(at as u32)) {
                    Status::Committed
                } else {
                    Status::Aborted
                };
            }
        }
        history
    }

    /// The operations of a transaction, in order.
    #[inline]
    pub fn ops(&self, txn: TxnId) -> &[Op] {
        let row = &self.txns[txn.index()];
        &self.ops[row.ops_start as usize..row.ops_end as usize]
    }

    /// The items of a list that was read.
    pub fn list(&self, list: ListId) -> &[ValueId] {
        let (start, length) = self.lists[list.index()];
        &self.list_items[start as usize..(start + length) as usize]
    }

    /// The number of lists that were read.
    pub fn n_lists(&self) -> usize {
        self.lists.len()
    }

    /// A range query.
    pub fn range(&self, range: RangeId) -> RangeQuery<'_> {
        let start = match range.index() {
            0 => 0,
            index => self.ranges[index - 1].rows_end as usize,
        };
        let row = self.ranges[range.index()];
        RangeQuery {
            span: row.span,
            rows: &self.range_rows[start..row.rows_end as usize],
            shows_deleted: row.shows_deleted,
        }
    }

    /// Whether an operation is about a key, directly or within a range.
    pub fn touches(&self, op: Op, key: KeyId) -> bool {
        match op {
            Op::Range { range } => {
                let span = self.range(range).span;
                span.place(&self.symbols, self.key_token(key)).is_eq()
            }
            _ => op.key() == Some(key),
        }
    }

    /// What a transaction wrote or appended last to a key.
    pub fn last_written(&self, txn: TxnId, key: KeyId) -> Option<ValueId> {
        let ops = self.ops(txn).iter().rev();
        ops.filter(|op| op.key() == Some(key))
            .find_map(|&op| match op {
                Op::Write { value, .. } | Op::Append { value, .. } => Some(value),
                Op::Read { .. } | Op::ReadList { .. } | Op::Range { .. } => None,
            })
    }

    /// The number of range queries.
    pub fn n_ranges(&self) -> usize {
        self.ranges.len()
    }

    /// Whether a write of a transaction, by its place, was called an insert. This does not change its meaning.
    pub fn is_insert(&self, txn: TxnId, at: usize) -> bool {
        !self.inserts.is_empty() && {
            let op = self.txns[txn.index()].ops_start + at as u32;
            self.inserts.binary_search(&op).is_ok()
        }
    }

    /// The compare-and-sets of a transaction, in order.
    pub fn compares(&self, txn: TxnId) -> &[CompareAndSet] {
        let start = self.compares.partition_point(|it| it.txn < txn);
        let n_own = self.compares[start..].partition_point(|it| it.txn == txn);
        &self.compares[start..start + n_own]
    }

    /// All compare-and-sets, by transaction.
    pub fn all_compares(&self) -> &[CompareAndSet] {
        &self.compares
    }

    /// Whether a key with this value has no row: nothing or a delete was written.
    #[inline]
    pub fn is_absence(&self, value: ValueId) -> bool {
        self.value_names.get(value.index()) == Token::Nil || self.is_tombstone(value)
    }

    /// Whether this is the value of a delete whose name distinguishes it from the initial absence.
    #[inline]
    pub fn is_tombstone(&self, value: ValueId) -> bool {
        !self.tombstones.is_empty() && self.tombstones.contains(&value)
    }

    /// Whether there are deletes whose tombstones have names.
    pub fn has_tombstones(&self) -> bool {
        !self.tombstones.is_empty()
    }

    /// Whether a key has a row before any transaction: some value other than nothing is initial.
    #[inline]
    pub fn is_there_initially(&self, key: KeyId) -> bool {
        let rows = &self.initial_rows;
        rows.some.contains(&key) || rows.all.is_some() && !rows.none.contains(&key)
    }

    /// A value that every key has before any transaction, unless it is nothing.
    pub fn initial_of_all(&self) -> Option<Token> {
        self.initial_rows.all
    }

    /// The key that a value belongs to.
    #[inline]
    pub fn value_key(&self, value: ValueId) -> KeyId {
        self.value_key[value.index()]
    }

    /// Whether this is the value of its key before any transaction.
    #[inline]
    pub fn is_initial(&self, value: ValueId) -> bool {
        self.value_initial[value.index()]
    }

    /// Whether any transaction has a begin or a commit time.
    pub fn has_times(&self) -> bool {
        self.intervals.is_some()
    }

    /// When a transaction ran.
    pub fn interval(&self, txn: TxnId) -> Interval {
        self.intervals
            .as_ref()
            .map_or(Interval::UNKNOWN, |intervals| intervals[txn.index()])
    }

    /// The isolation level that the transaction requested, in its producer's words.
    pub fn isolation(&self, txn: TxnId) -> Option<Token> {
        match self.isolation.as_ref()?[txn.index()] {
            Token::Nil => None,
            level => Some(level),
        }
    }

    /// Gives each transaction the model of its isolation level.
    pub fn set_models<E>(
        &mut self,
        mut model: impl FnMut(&History, TxnId) -> Result<Model, E>,
    ) -> Result<(), E> {
        let txns = (0..self.n_txns() as u32).map(TxnId);
        self.models = txns.map(|txn| model(self, txn)).collect::<Result<_, E>>()?;
        Ok(())
    }

    /// The model of a transaction by [`History::set_models`]; [`Model::Ser`] where nothing was set.
    #[inline]
    pub fn model(&self, txn: TxnId) -> Model {
        self.models.get(txn.index()).copied().unwrap_or(Model::Ser)
    }

    /// The models of all transactions; empty where nothing was set.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The version orders that came with the history.
    pub fn version_orders(&self) -> &[VersionOrder] {
        &self.version_orders
    }

    /// Keeps only the chosen part of the version orders, so that the kept neighbours become neighbours; asks in the order of
    /// the lists.
    pub fn retain_versions(&mut self, mut keep: impl FnMut(ValueId) -> bool) {
        let given = self.version_orders.iter_mut();
        for order in given.filter(|order| order.source == OrderSource::Database) {
            order.values.retain(|&value| keep(value));
        }
        self.version_orders.retain(|order| !order.values.is_empty());
    }

    /// Removes begin and commit times.
    pub fn forget_times(&mut self) {
        self.intervals = None;
    }

    /// The texts.
    pub fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The name of a transaction.
    pub fn txn_token(&self, txn: TxnId) -> Token {
        self.txns[txn.index()].name
    }

    /// The name of a session.
    pub fn session_token(&self, session: SessionId) -> Token {
        self.session_names[session.index()]
    }

    /// The name of a key.
    pub fn key_token(&self, key: KeyId) -> Token {
        self.key_names.get(key.index())
    }

    /// A value as its producer wrote it.
    pub fn value_token(&self, value: ValueId) -> Token {
        self.value_names.get(value.index())
    }

    /// The name of a transaction, as text.
    pub fn txn_name(&self, txn: TxnId) -> String {
        self.symbols.show(self.txn_token(txn))
    }

    /// The name of a session, as text.
    pub fn session_name(&self, session: SessionId) -> String {
        self.symbols.show(self.session_token(session))
    }

    /// The name of a key, as text.
    pub fn key_name(&self, key: KeyId) -> String {
        self.symbols.spell(self.key_token(key))
    }

    /// A value, as text.
    pub fn value_name(&self, value: ValueId) -> String {
        self.symbols.spell(self.value_token(value))
    }

    /// Where a transaction stands in its session, counted from 0.
    pub fn session_position(&self, txn: TxnId) -> usize {
        (txn.0 - self.session_start[self.session(txn).index()]) as usize
    }
}
