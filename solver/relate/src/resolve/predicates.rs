//! What a condition over rows says by what it did and did not choose: a row that was not returned was read in a version that does not
//! satisfy it, and a row that was changed without being returned in one that does.
//!
//! A row no version of which satisfies the condition says nothing: whichever version was there, it was not returned.

use rustc_hash::FxHashMap;

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
    /// What transactions of unknown end that nobody observed left in each key.
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
        let mut index = Index {
            history,
            rows,
            columns: FxHashMap::default(),
        };
        let mut of_query = Vec::with_capacity(history.queries().len());
        for query in 0..history.queries().len() as u32 {
            budget.check()?;
            of_query.push(index.matching(query));
        }
        Ok(Some(Matching {
            of_query,
            has_causal: history.models().contains(&Model::Cc),
            unsure,
        }))
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
    rows: Vec<VersionRow>,
    /// For each table and column, the rows by their cells, sorted: numbers by size, texts by symbol.
    columns: FxHashMap<(u32, Column), Vec<(Token, u32)>>,
}

impl Index<'_> {
    fn matching(&mut self, query: u32) -> Vec<(KeyId, Vec<VersionId>)> {
        let history = self.history;
        let asked = &history.queries()[query as usize];
        let mut bounds = Vec::new();
        collect_bounds(&asked.condition, &mut bounds);
        let mut fewest: Option<(usize, Bounds)> = None;
        for (column, intervals) in bounds {
            let sorted = self.column(asked.table, column);
            let n_rows = intervals.iter().map(|it| within(sorted, *it).len()).sum();
            if fewest.as_ref().is_none_or(|it| n_rows < it.0) {
                fewest = Some((n_rows, (column, intervals)));
            }
        }
        let places: Vec<u32> = match fewest {
            None => (0..self.rows.len() as u32).collect(),
            Some((_, (column, intervals))) => {
                let sorted = self.column(asked.table, column);
                let found = intervals.iter().flat_map(|it| within(sorted, *it));
                found.map(|it| it.1).collect()
            }
        };
        let mut matching: Vec<(KeyId, VersionId)> = places
            .into_iter()
            .map(|place| self.rows[place as usize])
            .filter(|&(key, _, value)| {
                history.table_of(key) == Some(asked.table) && history.satisfies(query, value)
            })
            .map(|(key, version, _)| (key, version))
            .collect();
        matching.sort_unstable();
        let by_key = matching.chunk_by(|one, other| one.0 == other.0);
        by_key
            .map(|rows| (rows[0].0, rows.iter().map(|row| row.1).collect()))
            .collect()
    }

    fn column(&mut self, table: u32, column: Column) -> &[(Token, u32)] {
        let (history, rows) = (self.history, &self.rows);
        self.columns.entry((table, column)).or_insert_with(|| {
            let cells = rows.iter().enumerate();
            let cells = cells.filter(|(_, row)| {
                history.table_of(row.0) == Some(table) && !history.is_absence(row.2)
            });
            let mut cells: Vec<(Token, u32)> = cells
                .map(|(place, row)| (history.cell(row.2, column), place as u32))
                .collect();
            cells.sort_unstable();
            cells
        })
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
    /// Takes what the conditions say that a transaction asked before an operation.
    pub(super) fn ask(&mut self, node: Node, txn: TxnId, at: usize) -> Result<(), ResolveError> {
        let history = self.history;
        for (nth, predicate) in history.predicates(txn).enumerate() {
            if predicate.at as usize != at {
                continue;
            }
            self.asking = Some(nth);
            if !matches!(predicate.act, Act::Aggregate { .. }) {
                self.predicate(node, txn, predicate)?;
            } else if self.keep_reads {
                self.aggregate(node, txn, predicate)?;
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
            if history.table_of(key) == table
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
            if self.state[key.index()].own.is_none() {
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
            if history.table_of(key) == table {
                self.see(node, txn, at, key, query, false)?;
            }
        }
        chosen.sort_unstable();
        for (key, _) in matching.of_query(query) {
            self.poll.step()?;
            if chosen.binary_search(key).is_err() {
                self.touch(txn, *key, false)?;
                self.see(node, txn, at, *key, query, false)?;
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
        let (history, Some(matching)) = (self.history, self.matching) else {
            return Ok(());
        };
        if let Some(own) = self.state[key.index()].own {
            if history.satisfies(query, own) != satisfies {
                self.cannot_be(node, at, key);
            }
            return Ok(());
        }
        let unsure = matching.unsure.get(&key).into_iter().flatten();
        let mut unsure = unsure.filter(|it| history.satisfies(query, it.1) == satisfies);
        if let Some(&(writer, _)) = unsure.find(|it| it.0 != txn) {
            return Err(self.unknown_delete(txn, key, writer));
        }
        let matched = matching.of_key(query, key);
        let mut candidates: Vec<VersionId> = self.numbering.of_key(key).collect();
        candidates.retain(|version| matched.binary_search(version).is_ok() == satisfies);
        candidates.retain(|&version| self.numbering.writer(version) != node);
        self.see_one_of(node, at, key, candidates);
        Ok(())
    }

    /// Takes it that a transaction read a key in one of these versions. What contradicts its other reads leaves no candidate.
    fn see_one_of(&mut self, node: Node, at: usize, key: KeyId, candidates: Vec<VersionId>) {
        self.keep_choice(node, at, key, &candidates);
        match self.state[key.index()].read {
            FirstRead::None => {
                self.state[key.index()].read = FirstRead::Choice(self.uncertain.len() as u32);
                self.push_choice(node, at, key, candidates);
            }
            FirstRead::Of(first) => {
                let version = VersionId(self.reads[first as usize].version);
                if !candidates.contains(&version) {
                    self.push_choice(node, at, key, Vec::new());
                }
            }
            FirstRead::Choice(first) => {
                let earlier = &mut self.uncertain[first as usize].candidates;
                earlier.retain(|version| candidates.contains(version));
            }
        }
    }

    fn push_choice(&mut self, node: Node, at: usize, key: KeyId, candidates: Vec<VersionId>) {
        // A plain read that contradicts it is told by what is left of the candidates, so it has no first candidates.
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
