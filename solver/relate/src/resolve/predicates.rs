//! What a condition over rows says by what it did and did not choose: a row that was not returned was read in a version that does not
//! satisfy it, and a row that was changed without being returned in one that does.
//!
//! A row no version of which satisfies the condition says nothing: whichever version was there, it was not returned.

use std::iter::Peekable;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};

use super::ResolveError;
use super::attribute::Writers;
use super::candidates::Uncertain;
use super::numbering::Numbering;
use super::reads::{FirstRead, Walk};
use super::versions::{Node, VersionId};
use crate::budget::{Budget, StopReason};
use crate::level::Model;
use crate::model::{
    Act, Column, Comparison, Condition, History, KeyId, Op, Operand, Predicate, Status, Token,
    TxnId, ValueId,
};

/// For every query, the rows that have a version which satisfies it.
pub(super) struct Matching {
    /// Sorted by key; the versions of each are sorted.
    of_query: Vec<Vec<(KeyId, Vec<VersionId>)>>,
    /// Whether some transaction sees what happened before it: then it matters what others read of rows that no condition can choose.
    has_causal: bool,
    /// The table of each key.
    table_of: Vec<Option<u32>>,
    /// What transactions of unknown end that were not observed left in each key.
    pub(super) unsure: FxHashMap<KeyId, Vec<(TxnId, ValueId)>>,
}

/// A version and its row.
type VersionRow = (KeyId, VersionId, ValueId);

impl Matching {
    /// Evaluates every query on every version that an index cannot rule out; nothing where there are no predicates.
    pub(super) fn of(
        history: &History,
        writers: &Writers,
        numbering: &Numbering,
        node_txn: &[TxnId],
        budget: &Budget,
    ) -> Result<Option<Self>, StopReason> {
        if history.n_predicates() == 0 {
            return Ok(None);
        }
        let mut rows: Vec<VersionRow> = Vec::new();
        for value in (0..history.n_values() as u32).map(ValueId) {
            if history.is_initial(value) && !history.is_absence(value) {
                let key = history.value_key(value);
                rows.push((key, numbering.initial(key), value));
            }
        }
        for (node, &txn) in node_txn.iter().enumerate() {
            for write in writers.finals(txn) {
                if let Some(version) = numbering.of_writer(write.key, node as Node) {
                    rows.push((write.key, version, write.value));
                }
            }
        }
        let mut unsure: FxHashMap<KeyId, Vec<(TxnId, ValueId)>> = FxHashMap::default();
        for txn in history.txns() {
            let is_dropped =
                history.status(txn) == Status::Unknown && node_txn.binary_search(&txn).is_err();
            for write in writers.finals(txn).iter().filter(|_| is_dropped) {
                unsure
                    .entry(write.key)
                    .or_default()
                    .push((txn, write.value));
            }
        }
        let keys = (0..history.n_keys() as u32).map(KeyId);
        let table_of: Vec<Option<u32>> = keys.map(|key| history.table_of(key)).collect();
        let index = Index::new(history, &table_of, rows);
        let queries = (0..history.queries().len() as u32).into_par_iter();
        let of_query: Result<Vec<_>, StopReason> = queries
            .map(|query| {
                budget.check()?;
                Ok(index.matching(query))
            })
            .collect();
        Ok(Some(Matching {
            of_query: of_query?,
            has_causal: history.models().contains(&Model::Cc),
            table_of,
            unsure,
        }))
    }

    /// The most rows that conditions did not choose, and may have read.
    pub(super) fn n_looked_at(&self, history: &History) -> usize {
        let all = history.all_predicates().iter();
        all.map(|it| self.of_query(it.1.query).len()).sum()
    }

    pub(super) fn of_query(&self, query: u32) -> &[(KeyId, Vec<VersionId>)] {
        &self.of_query[query as usize]
    }

    fn of_key(&self, query: u32, key: KeyId) -> &[VersionId] {
        let of_query = self.of_query(query);
        match of_query.binary_search_by_key(&key, |it| it.0) {
            Ok(at) => &of_query[at].1,
            Err(_) => &[],
        }
    }
}

/// Rows by the cells of the columns that conditions ask for.
struct Index<'h> {
    history: &'h History,
    /// The rows of each table that are there.
    tables: Vec<Vec<VersionRow>>,
    /// For each table and column, the rows by their cells, sorted: numbers by size, texts by symbol.
    columns: FxHashMap<(u32, Column), Vec<(Token, u32)>>,
}

impl<'h> Index<'h> {
    fn new(history: &'h History, table_of: &[Option<u32>], rows: Vec<VersionRow>) -> Self {
        let mut tables = vec![Vec::new(); history.tables().len()];
        for row in rows.into_iter().filter(|it| !history.is_absence(it.2)) {
            if let Some(table) = table_of[row.0.index()] {
                tables[table as usize].push(row);
            }
        }
        let mut asked = Vec::new();
        for query in history.queries() {
            let mut bounds = Vec::new();
            collect_bounds(&query.condition, &mut bounds);
            asked.extend(bounds.iter().map(|it| (query.table, it.0)));
        }
        let asked: FxHashSet<(u32, Column)> = asked.into_iter().collect();
        let columns = asked.into_par_iter().map(|(table, column)| {
            let rows = tables[table as usize].iter().enumerate();
            let cells = rows.map(|(place, row)| (history.cell(row.2, column), place as u32));
            let mut cells: Vec<(Token, u32)> = cells.collect();
            cells.sort_unstable();
            ((table, column), cells)
        });
        let columns = columns.collect::<Vec<_>>().into_iter().collect();
        Index {
            history,
            tables,
            columns,
        }
    }

    fn matching(&self, query: u32) -> Vec<(KeyId, Vec<VersionId>)> {
        let asked = &self.history.queries()[query as usize];
        let rows = &self.tables[asked.table as usize];
        let mut bounds = Vec::new();
        collect_bounds(&asked.condition, &mut bounds);
        let spans = bounds.iter().map(|(column, intervals)| {
            let sorted = &self.columns[&(asked.table, *column)];
            let spans = intervals.iter().map(|it| within(sorted, *it));
            spans.collect::<Vec<_>>()
        });
        let fewest = spans.min_by_key(|spans| spans.iter().map(|it| it.len()).sum::<usize>());
        let is = |row: &VersionRow| self.history.satisfies(query, row.2);
        let mut matching: Vec<(KeyId, VersionId)> = match fewest {
            None => {
                let found = rows.iter().filter(|&it| is(it));
                found.map(|it| (it.0, it.1)).collect()
            }
            Some(spans) => {
                let found = spans.into_iter().flatten();
                let found = found.map(|it| rows[it.1 as usize]).filter(is);
                found.map(|it| (it.0, it.1)).collect()
            }
        };
        matching.sort_unstable();
        let by_key = matching.chunk_by(|one, other| one.0 == other.0);
        by_key
            .map(|rows| (rows[0].0, rows.iter().map(|row| row.1).collect()))
            .collect()
    }
}

/// The part of a sorted column with cells between two tokens.
fn within(sorted: &[(Token, u32)], (low, high): (Token, Token)) -> &[(Token, u32)] {
    let start = sorted.partition_point(|it| it.0 < low);
    let end = sorted.partition_point(|it| it.0 <= high).max(start);
    &sorted[start..end]
}

/// Disjoint intervals of tokens, in one of which the cell of a column must lie if a row satisfies a condition.
type Bounds = (Column, Vec<(Token, Token)>);

fn collect_bounds(condition: &Condition, bounds: &mut Vec<Bounds>) {
    let mut bound = |column: Column, low, high| bounds.push((column, vec![(low, high)]));
    match condition {
        Condition::And(parts) => {
            for part in parts {
                collect_bounds(part, bounds);
            }
        }
        Condition::Compare(Comparison::Eq, column, Operand::Literal(token)) => {
            bound(*column, *token, *token);
        }
        Condition::Compare(sign, column, Operand::Literal(Token::Int(number))) => {
            let (low, high) = match sign {
                Comparison::Lt | Comparison::Le => (i64::MIN, *number),
                Comparison::Gt | Comparison::Ge => (*number, i64::MAX),
                Comparison::Eq | Comparison::Ne => return,
            };
            bound(*column, Token::Int(low), Token::Int(high));
        }
        Condition::Between(
            column,
            Operand::Literal(low @ Token::Int(_)),
            Operand::Literal(high @ Token::Int(_)),
        ) => bound(*column, *low, *high),
        Condition::In(column, list) => {
            let mut list = list.clone();
            list.sort_unstable();
            list.dedup();
            let intervals = list.into_iter().map(|token| (token, token));
            bounds.push((*column, intervals.collect()));
        }
        _ => {}
    }
}

impl Walk<'_> {
    /// Takes the implications of the conditions that a transaction used before an operation.
    pub(super) fn ask<'p>(
        &mut self,
        node: Node,
        txn: TxnId,
        at: usize,
        left: &mut Peekable<impl Iterator<Item = (usize, &'p Predicate)>>,
    ) -> Result<(), ResolveError> {
        while let Some((nth, predicate)) = left.next_if(|it| it.1.at as usize <= at) {
            self.asking = Some(nth);
            if !matches!(predicate.act, Act::Aggregate { .. }) {
                self.predicate(node, txn, predicate)?;
            } else if self.keep_reads {
                self.aggregate(node, txn, predicate)?;
            } else if let Some(matching) = self.matching {
                for (key, _) in matching.of_query(predicate.query) {
                    self.lists.check_kind(self.history, txn, *key, false)?;
                }
            }
        }
        self.asking = None;
        Ok(())
    }

    /// Takes an aggregate to have read each row that it can count, in any version.
    fn aggregate(
        &mut self,
        node: Node,
        txn: TxnId,
        predicate: &Predicate,
    ) -> Result<(), ResolveError> {
        let (history, Some(matching)) = (self.history, self.matching) else {
            return Ok(());
        };
        let (at, query) = (predicate.at as usize, predicate.query);
        let table = Some(history.queries()[query as usize].table);
        for (&key, unsure) in &matching.unsure {
            let mut others = unsure.iter().filter(|it| it.0 != txn);
            let counts = !matching.of_key(query, key).is_empty();
            if matching.table_of[key.index()] == table
                && let Some(&(writer, _)) =
                    others.find(|it| counts || history.satisfies(query, it.1))
            {
                return Err(self.unknown_delete(txn, key, writer));
            }
        }
        let counted = matching.of_query(query).iter().map(|it| it.0);
        for key in counted.chain(self.never_chosen(txn, query)) {
            self.poll.step()?;
            self.touch(txn, key, false)?;
            if self.state[key.index()].own().is_none() {
                let mut any: Vec<VersionId> = self.numbering.of_key(key).collect();
                any.retain(|&version| self.numbering.writer(version) != node);
                self.keep_choice(node, at, key, &any);
            }
        }
        Ok(())
    }

    /// The rows that no version of which satisfies a condition, where it matters in which version a transaction read them: it read the
    /// newest, which happened before whatever comes after it.
    fn never_chosen(&self, txn: TxnId, query: u32) -> Vec<KeyId> {
        let (history, Some(matching)) = (self.history, self.matching) else {
            return Vec::new();
        };
        if !matching.has_causal || history.model(txn).is_weak() {
            return Vec::new();
        }
        let table = Some(history.queries()[query as usize].table);
        let keys = (0..history.n_keys() as u32).map(KeyId);
        let keys = keys.filter(|&key| history.table_of(key) == table);
        keys.filter(|&key| matching.of_key(query, key).is_empty())
            .collect()
    }

    fn unknown_delete(&self, reader: TxnId, key: KeyId, writer: TxnId) -> ResolveError {
        ResolveError::UnknownDelete {
            reader: self.history.txn_name(reader),
            key: self.history.key_name(key),
            writer: self.history.txn_name(writer),
            txn: writer,
        }
    }

    fn predicate(
        &mut self,
        node: Node,
        txn: TxnId,
        predicate: &Predicate,
    ) -> Result<(), ResolveError> {
        let (history, Some(matching)) = (self.history, self.matching) else {
            return Ok(());
        };
        let (at, query) = (predicate.at as usize, predicate.query);
        let mut chosen: Vec<KeyId> = Vec::new();
        for &op in &history.ops(txn)[at..at + predicate.n_ops as usize] {
            let Some(key) = op.key().filter(|key| !chosen.contains(key)) else {
                continue;
            };
            chosen.push(key);
            self.touch(txn, key, false)?;
            match op {
                Op::Read { value, .. } => {
                    if !history.satisfies(query, value) {
                        self.cannot_be(node, at, key);
                    }
                }
                _ => self.see(node, txn, at, key, query, true)?,
            }
        }
        // Its own rows, which may satisfy the condition though no version does.
        let table = Some(history.queries()[query as usize].table);
        for op in history.ops(txn)[..at].iter().filter(|op| op.is_write()) {
            let Some(key) = op.key().filter(|key| !chosen.contains(key)) else {
                continue;
            };
            chosen.push(key);
            if matching.table_of[key.index()] == table {
                self.see(node, txn, at, key, query, false)?;
            }
        }
        chosen.sort_unstable();
        for (key, matched) in matching.of_query(query) {
            self.poll.step()?;
            if chosen.binary_search(key).is_err() {
                self.touch(txn, *key, false)?;
                self.see_among(node, txn, at, (*key, matched), query, false)?;
            }
        }
        for key in self.never_chosen(txn, query) {
            if chosen.binary_search(&key).is_err() {
                self.touch(txn, key, false)?;
                self.see(node, txn, at, key, query, false)?;
            }
        }
        Ok(())
    }

    /// Takes it that the version of a row which a transaction read satisfied a condition, or did not.
    fn see(
        &mut self,
        node: Node,
        txn: TxnId,
        at: usize,
        key: KeyId,
        query: u32,
        satisfies: bool,
    ) -> Result<(), ResolveError> {
        let matched = self.matching.map_or(&[][..], |it| it.of_key(query, key));
        self.see_among(node, txn, at, (key, matched), query, satisfies)
    }

    /// The same, given the versions of the row that satisfy the condition.
    fn see_among(
        &mut self,
        node: Node,
        txn: TxnId,
        at: usize,
        (key, matched): (KeyId, &[VersionId]),
        query: u32,
        satisfies: bool,
    ) -> Result<(), ResolveError> {
        let (history, Some(matching)) = (self.history, self.matching) else {
            return Ok(());
        };
        if let Some(own) = self.state[key.index()].own() {
            if history.satisfies(query, own) != satisfies {
                self.cannot_be(node, at, key);
            }
            return Ok(());
        }
        let unsure = matching.unsure.get(&key).into_iter().flatten();
        let mut unsure = unsure.filter(|it| history.satisfies(query, it.1) == satisfies);
        if let Some(&(writer, _)) = unsure.find(|it| it.0 != txn) {
            let error = self.unknown_delete(txn, key, writer);
            return self.settled(Err(error)).map(|_: Option<()>| ());
        }
        let candidates = self.numbering.of_key(key).filter(|version| {
            matched.binary_search(version).is_ok() == satisfies
                && self.numbering.writer(*version) != node
        });
        self.see_one_of(node, at, key, candidates.collect());
        Ok(())
    }

    /// Takes it that a transaction read a key in one of these versions, sorted. What contradicts its other reads leaves no candidate.
    fn see_one_of(&mut self, node: Node, at: usize, key: KeyId, candidates: Vec<VersionId>) {
        self.keep_choice(node, at, key, &candidates);
        match self.state[key.index()].read {
            FirstRead::None => {
                self.state[key.index()].read = FirstRead::Choice(self.uncertain.len() as u32);
                self.push_choice(node, at, key, candidates);
            }
            FirstRead::Of(first) => {
                let version = VersionId(self.reads[first as usize].version);
                if candidates.binary_search(&version).is_err() {
                    self.push_choice(node, at, key, Vec::new());
                }
            }
            FirstRead::Choice(first) => {
                let earlier = &mut self.uncertain[first as usize].candidates;
                earlier.retain(|version| candidates.binary_search(version).is_ok());
            }
        }
    }

    fn push_choice(&mut self, node: Node, at: usize, key: KeyId, candidates: Vec<VersionId>) {
        // A plain read that contradicts it shows in what is left of the candidates, so it has no first candidates.
        self.uncertain.push(Uncertain {
            reader: node,
            op: at as u32,
            key,
            candidates,
        });
    }

    /// Takes it that a transaction cannot have seen of a row what it saw.
    fn cannot_be(&mut self, node: Node, at: usize, key: KeyId) {
        self.keep_choice(node, at, key, &[]);
        self.push_choice(node, at, key, Vec::new());
    }
}
