//! What aggregates count: for each, the cells that the versions of each row add to it.
//!
//! An aggregate says nothing of one row, so it makes no reads by itself. Where an order does not give it its result, the rows that it
//! counted become reads, each with all versions as candidates.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::predicates::Matching;
use super::statements::Part;
use super::versions::{Node, VersionId};
use super::{ResolveError, Resolved};
use crate::model::{Act, Column, Function, History, KeyId, Op, Predicate, Token, TxnId, ValueId};

/// The rows that the aggregates of a history can count.
#[derive(Clone, Debug, Default)]
pub(super) struct Aggregates {
    /// For each query, the rows with versions that satisfy it.
    of_query: FxHashMap<u32, Vec<(KeyId, Vec<VersionId>)>>,
    /// The row of each key before any transaction.
    initial: FxHashMap<KeyId, ValueId>,
    /// What transactions of unknown end that were not observed left in each key.
    unsure: FxHashMap<KeyId, Vec<(TxnId, ValueId)>>,
}

impl Aggregates {
    pub(super) fn of(history: &History, matching: Option<&Matching>) -> Arc<Self> {
        let Some(matching) = matching else {
            return Arc::default();
        };
        let mut all = Aggregates::default();
        for (_, predicate) in history.all_predicates() {
            if matches!(predicate.act, Act::Aggregate { .. }) {
                let of_query = all.of_query.entry(predicate.query);
                of_query.or_insert_with(|| matching.of_query(predicate.query).to_vec());
            }
        }
        if all.of_query.is_empty() {
            return Arc::default();
        }
        for value in (0..history.n_values() as u32).map(ValueId) {
            if history.is_initial(value) && !history.is_absence(value) {
                all.initial.insert(history.value_key(value), value);
            }
        }
        all.unsure.clone_from(&matching.unsure);
        Arc::new(all)
    }
}

/// An aggregate, and its cells.
#[derive(Clone, Debug)]
pub struct CountedAggregate {
    /// Who asked.
    pub reader: Node,
    /// Its place among the predicates of its transaction.
    pub nth: usize,
    /// The operation before which it was asked.
    pub at: usize,
    /// Its function.
    pub function: Function,
    /// Its result.
    pub result: Token,
    query: u32,
    column: Option<Column>,
    /// The cells of the rows that the transaction had written itself, where they are chosen.
    pub own: Vec<Token>,
    /// The keys of these rows, sorted.
    own_keys: Vec<KeyId>,
}

/// A row that an aggregate counts: the cell that each version adds, in the order of versions; null where it adds nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedRow {
    /// The row.
    pub key: KeyId,
    /// What each version adds.
    pub cells: Vec<(VersionId, Token)>,
}

impl CountedRow {
    /// What a version adds.
    pub fn cell(&self, version: VersionId) -> Token {
        let at = self.cells.binary_search_by_key(&version, |it| it.0);
        at.map_or(Token::Nil, |at| self.cells[at].1)
    }
}

impl Resolved {
    /// The aggregates of a transaction, or of a part of it.
    pub fn aggregates_of(&self, history: &History, reader: Node) -> Vec<CountedAggregate> {
        let txn = self.txn(reader);
        let predicates = history.predicates(txn).enumerate();
        let predicates = predicates.filter(|it| match self.part(reader) {
            Part::Whole => true,
            Part::Commit => false,
            Part::Statement(statement) => {
                let named = history.statements(txn);
                named.of(named.read_by(it.0)) == statement as usize
            }
        });
        let aggregates = predicates.filter_map(|(nth, predicate)| match predicate.act {
            Act::Aggregate {
                function,
                column,
                result,
            } => {
                let own = own_rows(history, txn, predicate);
                let cells = own.iter();
                let cells = cells.map(|&(_, row)| cell(history, predicate.query, column, row));
                Some(CountedAggregate {
                    reader,
                    nth,
                    at: predicate.at as usize,
                    function,
                    result,
                    query: predicate.query,
                    column,
                    own: cells.collect(),
                    own_keys: own.iter().map(|it| it.0).collect(),
                })
            }
            _ => None,
        });
        aggregates.collect()
    }

    /// The rows that an aggregate counts and that its transaction had not written itself.
    pub fn counted_rows(&self, history: &History, aggregate: &CountedAggregate) -> Vec<CountedRow> {
        let rows = self.rows_of(aggregate).map(|(key, matching)| {
            let versions = self.versions.of_key(*key).map(VersionId);
            let versions = versions.filter(|&it| self.versions.writer(it) != aggregate.reader);
            let cells = versions.map(|it| (it, self.added(history, aggregate, matching, it)));
            CountedRow {
                key: *key,
                cells: cells.collect(),
            }
        });
        rows.collect()
    }

    /// What these rows add where each key holds a version.
    pub fn counted_cells(
        &self,
        history: &History,
        aggregate: &CountedAggregate,
        held: impl Fn(KeyId) -> VersionId,
    ) -> Vec<(KeyId, Token)> {
        let rows = self.rows_of(aggregate);
        let cells = rows.map(|(key, matching)| {
            let version = held(*key);
            (*key, self.added(history, aggregate, matching, version))
        });
        cells.collect()
    }

    /// The rows with versions that an aggregate can count, and these versions.
    fn rows_of<'r>(
        &'r self,
        aggregate: &'r CountedAggregate,
    ) -> impl Iterator<Item = &'r (KeyId, Vec<VersionId>)> {
        let of_query = self.aggregates.of_query.get(&aggregate.query);
        let rows = of_query.into_iter().flatten();
        rows.filter(|row| aggregate.own_keys.binary_search(&row.0).is_err())
    }

    /// What a version adds to an aggregate; null where it is none of those that match.
    fn added(
        &self,
        history: &History,
        aggregate: &CountedAggregate,
        matching: &[VersionId],
        version: VersionId,
    ) -> Token {
        if matching.binary_search(&version).is_err() {
            return Token::Nil;
        }
        let row = self.row(history, version);
        row.map_or(Token::Nil, |row| {
            cell(history, aggregate.query, aggregate.column, row)
        })
    }

    /// What a version left in its key.
    fn row(&self, history: &History, version: VersionId) -> Option<ValueId> {
        let key = self.versions.key(version);
        if self.versions.is_initial(version) {
            return self.aggregates.initial.get(&key).copied();
        }
        let ops = history.ops(self.txn(self.versions.writer(version)));
        ops.iter().rev().find_map(|&op| match op {
            Op::Write { key: it, value } if it == key => Some(value),
            _ => None,
        })
    }

    /// Refuses an aggregate that can have counted what a transaction of unknown end left: then it must be known whether that took effect.
    pub fn expect_sure(
        &self,
        history: &History,
        aggregate: &CountedAggregate,
    ) -> Result<(), ResolveError> {
        let (query, reader) = (aggregate.query, self.txn(aggregate.reader));
        let table = Some(history.queries()[query as usize].table);
        let counts = |key: KeyId| {
            let of_query = self.aggregates.of_query.get(&query);
            of_query.is_some_and(|it| it.binary_search_by_key(&key, |it| it.0).is_ok())
        };
        let mut keys: Vec<&KeyId> = self.aggregates.unsure.keys().collect();
        keys.sort_unstable();
        for key in keys {
            if history.table_of(*key) != table || aggregate.own_keys.binary_search(key).is_ok() {
                continue;
            }
            let mut unsure = self.aggregates.unsure[key]
                .iter()
                .filter(|it| it.0 != reader);
            let matters = |it: &&(TxnId, ValueId)| counts(*key) || history.satisfies(query, it.1);
            if let Some(&(writer, _)) = unsure.find(matters) {
                return Err(ResolveError::UnknownDelete {
                    reader: history.txn_name(reader),
                    key: history.key_name(*key),
                    writer: history.txn_name(writer),
                    txn: writer,
                });
            }
        }
        Ok(())
    }

    /// The version of a key that a transaction read for certain.
    pub fn certain_read(&self, reader: Node, key: KeyId) -> Option<VersionId> {
        let mut versions = self.versions.of_key(key).map(VersionId);
        let read = versions.find(|&it| self.versions.readers(it).binary_search(&reader).is_ok());
        let in_gap = || self.gaps.contains(reader, key);
        read.or_else(|| in_gap().then(|| self.versions.initial(key)))
    }
}

/// What a row adds to an aggregate; null where it is not chosen.
fn cell(history: &History, query: u32, column: Option<Column>, row: ValueId) -> Token {
    if !history.satisfies(query, row) {
        return Token::Nil;
    }
    match column {
        None => Token::Int(1),
        Some(column) => history.cell(row, column),
    }
}

/// What a transaction had written itself of a table before it asked, by key.
fn own_rows(history: &History, txn: TxnId, predicate: &Predicate) -> Vec<(KeyId, ValueId)> {
    let table = Some(history.queries()[predicate.query as usize].table);
    let mut own: Vec<(KeyId, ValueId)> = Vec::new();
    for &op in history.ops(txn)[..predicate.at as usize].iter().rev() {
        if let Op::Write { key, value } = op
            && history.table_of(key) == table
            && own.iter().all(|it| it.0 != key)
        {
            own.push((key, value));
        }
    }
    own.sort_unstable_by_key(|it| it.0);
    own
}
