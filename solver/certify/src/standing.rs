//! The checkers' own state of rows along an order: what each key holds, and which keys can satisfy a condition now.

use std::collections::BTreeMap;

use kingsnake_history::model::{Column, History, KeyId, Token, ValueId};

use crate::conditions::{Spans, numbers};

/// What every key holds now; rows by the numbers of the columns that conditions compare with numbers.
pub(crate) struct Standing<'h> {
    history: &'h History,
    held: Vec<Option<ValueId>>,
    /// The keys of each table.
    tables: Vec<Vec<KeyId>>,
    /// By table.
    columns: Vec<Vec<(Column, Numbered)>>,
    /// Of each query, where its columns must lie.
    spans: Vec<Vec<Spans>>,
}

type Numbered = BTreeMap<i64, Vec<KeyId>>;

impl<'h> Standing<'h> {
    /// The state before any transaction.
    pub(crate) fn new(history: &'h History) -> Self {
        let mut tables = vec![Vec::new(); history.tables().len()];
        for key in (0..history.n_keys() as u32).map(KeyId) {
            if let Some(table) = history.table_of(key) {
                tables[table as usize].push(key);
            }
        }
        let mut columns: Vec<Vec<(Column, Numbered)>> = vec![Vec::new(); tables.len()];
        let mut spans = Vec::with_capacity(history.queries().len());
        for query in history.queries() {
            let mut asked = Vec::new();
            numbers(&query.condition, &mut asked);
            let known = &mut columns[query.table as usize];
            for (column, _) in &asked {
                if known.iter().all(|it| it.0 != *column) {
                    known.push((*column, Numbered::new()));
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

    /// What a key holds.
    pub(crate) fn held(&self, key: KeyId) -> Option<ValueId> {
        self.held[key.index()]
    }

    /// A key holds another value from now on.
    pub(crate) fn put(&mut self, key: KeyId, value: ValueId) {
        let history = self.history;
        let old = self.held[key.index()].replace(value);
        let Some(table) = history.table_of(key) else {
            return;
        };
        let number = |value: ValueId, column: Column| {
            if history.is_absence(value) {
                return None;
            }
            match history.cell(value, column) {
                Token::Int(number) => Some(number),
                _ => None,
            }
        };
        for (column, rows) in &mut self.columns[table as usize] {
            let before = old.and_then(|old| number(old, *column));
            let after = number(value, *column);
            if before == after {
                continue;
            }
            if let Some(keys) = before.and_then(|it| rows.get_mut(&it)) {
                keys.retain(|it| *it != key);
            }
            if let Some(after) = after {
                rows.entry(after).or_default().push(key);
            }
        }
    }

    /// The keys whose rows can satisfy a query now; some of them do not.
    pub(crate) fn keys(&self, query: u32) -> Vec<KeyId> {
        let table = self.history.queries()[query as usize].table as usize;
        let columns = self.spans[query as usize].iter().filter_map(|asked| {
            let known = self.columns[table].iter().find(|it| it.0 == asked.0)?;
            Some((&known.1, &asked.1))
        });
        let mut fewest: Option<Vec<KeyId>> = None;
        for (rows, spans) in columns {
            let spans = spans.iter().filter(|span| span.0 <= span.1);
            let within = spans.flat_map(|span| rows.range(span.0..=span.1));
            let limit = fewest.as_ref().map_or(usize::MAX, Vec::len);
            let found = within.flat_map(|it| it.1).take(limit);
            let found: Vec<KeyId> = found.copied().collect();
            if found.len() < limit {
                fewest = Some(found);
            }
        }
        fewest.unwrap_or_else(|| self.tables[table].clone())
    }

    /// The rows that satisfy a query now.
    pub(crate) fn chosen(&self, query: u32) -> Vec<ValueId> {
        let keys = self.keys(query).into_iter();
        let held = keys.filter_map(|key| self.held(key));
        held.filter(|&it| self.history.satisfies(query, it))
            .collect()
    }
}
