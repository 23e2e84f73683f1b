//! The checkers' own state of rows along an order: the value of each key, and which keys can satisfy a condition now.

use std::collections::BTreeSet;

use kingsnake_history::model::{Act, Column, History, KeyId, Predicate, Token, TxnId, ValueId};

use crate::conditions::{Spans, returned, spans_of};

/// The current value of every key; rows by the cells of the columns that conditions bound.
pub(crate) struct Standing<'h> {
    history: &'h History,
    held: Vec<Option<ValueId>>,
    /// The keys of each table.
    tables: Vec<Vec<KeyId>>,
    /// By table.
    columns: Vec<Vec<(Column, Cells)>>,
    /// For each query, the bounds of its columns.
    spans: Vec<Vec<Spans>>,
}

type Cells = BTreeSet<(Token, KeyId)>;

impl<'h> Standing<'h> {
    /// The state before any transaction.
    pub(crate) fn new(history: &'h History) -> Self {
        let mut tables = vec![Vec::new(); history.tables().len()];
        for key in (0..history.n_keys() as u32).map(KeyId) {
            if let Some(table) = history.table_of(key) {
                tables[table as usize].push(key);
            }
        }
        let mut columns: Vec<Vec<(Column, Cells)>> = vec![Vec::new(); tables.len()];
        let mut spans = Vec::with_capacity(history.queries().len());
        for query in history.queries() {
            let mut asked = Vec::new();
            spans_of(&query.condition, &mut asked);
            let known = &mut columns[query.table as usize];
            for (column, _) in &asked {
                if known.iter().all(|it| it.0 != *column) {
                    known.push((*column, Cells::new()));
                }
            }
            spans.push(asked);
        }
        let mut standing = Standing {
            history,
            held: vec![None; history.n_keys()],
            tables,
            columns,
            spans,
        };
        for value in (0..history.n_values() as u32).map(ValueId) {
            if history.is_initial(value) && !history.is_absence(value) {
                standing.put(history.value_key(value), value);
            }
        }
        standing
    }

    /// The value of a key.
    pub(crate) fn held(&self, key: KeyId) -> Option<ValueId> {
        self.held[key.index()]
    }

    /// Sets the value of a key.
    pub(crate) fn put(&mut self, key: KeyId, value: ValueId) {
        let history = self.history;
        let old = self.held[key.index()].replace(value);
        let Some(table) = history.table_of(key) else {
            return;
        };
        let is_there = |value: &ValueId| !history.is_absence(*value);
        for (column, rows) in &mut self.columns[table as usize] {
            let before = old.filter(is_there).map(|it| history.cell(it, *column));
            let after = Some(value).filter(is_there);
            let after = after.map(|it| history.cell(it, *column));
            if before == after {
                continue;
            }
            if let Some(before) = before {
                rows.remove(&(before, key));
            }
            if let Some(after) = after {
                rows.insert((after, key));
            }
        }
    }

    /// The keys whose rows can satisfy a query now; some of them do not.
    pub(crate) fn keys(&self, query: u32) -> Vec<KeyId> {
        let table = self.history.queries()[query as usize].table as usize;
        let columns = self.spans[query as usize].iter().filter_map(|asked| {
            let known = self.columns[table].iter().find(|it| it.0 == asked.0)?;
            Some(Asked {
                rows: &known.1,
                spans: &asked.1,
            })
        });
        let columns: Vec<Asked<'_>> = columns.collect();
        match narrowest(&columns) {
            Some(narrowest) => narrowest.within().collect(),
            None => self.tables[table].clone(),
        }
    }

    /// The rows that satisfy a query now.
    pub(crate) fn chosen(&self, query: u32) -> Vec<ValueId> {
        let keys = self.keys(query).into_iter();
        let held = keys.filter_map(|key| self.held(key));
        held.filter(|&it| self.history.satisfies(query, it))
            .collect()
    }

    /// Whether a predicate returned what it should have, given what its transaction wrote before; the error names a key. The result of
    /// an aggregate is of no key.
    pub(crate) fn check(
        &self,
        txn: TxnId,
        predicate: &Predicate,
        own: &[(u32, ValueId)],
    ) -> Result<(), Option<KeyId>> {
        let (history, query) = (self.history, predicate.query);
        let table = Some(history.queries()[query as usize].table);
        let chosen = |key: KeyId| {
            let mine = own.iter().rev().find(|it| it.0 == key.0).map(|it| it.1);
            let held = mine.or_else(|| self.held(key));
            held.filter(|&held| history.satisfies(query, held))
        };
        let mut keys = self.keys(query);
        let own_keys = own.iter().map(|it| KeyId(it.0));
        keys.extend(own_keys.filter(|&key| history.table_of(key) == table));
        keys.sort_unstable();
        keys.dedup();
        if let Act::Aggregate {
            function,
            column,
            result,
        } = predicate.act
        {
            let rows = keys.iter().filter_map(|&key| chosen(key));
            let cells = rows.map(|row| match column {
                None => Token::Int(1),
                Some(column) => history.cell(row, column),
            });
            let is_result = function.apply(history.symbols(), cells) == Some(result);
            return if is_result { Ok(()) } else { Err(None) };
        }
        let returned = returned(history, txn, predicate);
        for &key in &keys {
            if chosen(key).is_some() != returned.binary_search(&key).is_ok() {
                return Err(Some(key));
            }
        }
        match returned.into_iter().find(|&key| chosen(key).is_none()) {
            Some(key) => Err(Some(key)),
            None => Ok(()),
        }
    }
}

/// The column with the fewest rows: all are walked at the same pace until one ends.
fn narrowest<'c, 'a>(columns: &'c [Asked<'a>]) -> Option<&'c Asked<'a>> {
    if columns.len() > 1 {
        let mut walks: Vec<_> = columns.iter().map(Asked::within).collect();
        loop {
            let ended = walks.iter_mut().position(|walk| walk.next().is_none());
            if let Some(ended) = ended {
                return columns.get(ended);
            }
        }
    }
    columns.first()
}

/// A column of the state, and where a query wants it to lie.
struct Asked<'a> {
    rows: &'a Cells,
    spans: &'a [(Token, Token)],
}

impl Asked<'_> {
    fn within(&self) -> impl Iterator<Item = KeyId> {
        let spans = self.spans.iter().filter(|span| span.0 <= span.1);
        let found = |&(low, high): &(Token, Token)| {
            let range = (low, KeyId(0))..=(high, KeyId(u32::MAX));
            self.rows.range(range).map(|it| it.1)
        };
        spans.flat_map(found)
    }
}
