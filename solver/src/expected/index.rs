//! The rows of a state, found by the columns that conditions compare: those that must be equal by hash, one that must lie in an interval
//! by order.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use crate::model::{Column, Comparison, Condition, History, KeyId, Operand, Token, ValueId};

/// Maximum number of indexes per table, since each has to be kept up to date.
const MOST: usize = 8;

/// The current rows.
pub(super) struct RowIndex<'h> {
    history: &'h History,
    table_of: Vec<Option<u32>>,
    row: Vec<Option<ValueId>>,
    tables: Vec<Table>,
    /// For each query, which index of its table finds its rows, and where in it.
    lookups: Vec<Lookup>,
}

/// A table: its rows in every index.
#[derive(Default)]
struct Table {
    keys: Vec<KeyId>,
    indexes: Vec<Index>,
}

/// Rows by the columns of a shape.
struct Index {
    shape: Shape,
    /// By the hash of the equal columns; then by the number in the other column.
    rows: FxHashMap<u64, BTreeSet<(i64, KeyId)>>,
}

/// The columns that a condition compares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shape {
    /// With one literal each.
    equal: Vec<Column>,
    /// With an interval of numbers.
    within: Option<Column>,
}

/// Where the rows of a query are.
#[derive(Clone, Copy)]
enum Lookup {
    /// Anywhere in its table.
    Table,
    /// In an index, under a hash and an interval.
    Index(usize, u64, (i64, i64)),
}

impl<'h> RowIndex<'h> {
    /// The rows before any transaction.
    pub(super) fn new(history: &'h History) -> Self {
        let mut tables: Vec<Table> = Vec::new();
        tables.resize_with(history.tables().len(), Table::default);
        let keys = (0..history.n_keys() as u32).map(KeyId);
        let table_of: Vec<Option<u32>> = keys.map(|key| history.table_of(key)).collect();
        for (key, table) in table_of.iter().enumerate() {
            if let Some(table) = table {
                tables[*table as usize].keys.push(KeyId(key as u32));
            }
        }
        let queries = history.queries().iter();
        let lookups = queries
            .map(|query| tables[query.table as usize].lookup(&query.condition))
            .collect();
        let mut rows = RowIndex {
            history,
            table_of,
            row: vec![None; history.n_keys()],
            tables,
            lookups,
        };
        for value in (0..history.n_values() as u32).map(ValueId) {
            if history.is_initial(value) && !history.is_absence(value) {
                rows.put(history.value_key(value), value);
            }
        }
        rows
    }

    /// The table of a key.
    pub(super) fn table_of(&self, key: KeyId) -> Option<u32> {
        self.table_of[key.index()]
    }

    /// A key has this row from now on, or none if the value is an absence.
    pub(super) fn put(&mut self, key: KeyId, value: ValueId) {
        let Some(table) = self.table_of[key.index()] else {
            return;
        };
        let history = self.history;
        let new = (!history.is_absence(value)).then_some(value);
        let old = std::mem::replace(&mut self.row[key.index()], new);
        for index in &mut self.tables[table as usize].indexes {
            let [before, after] =
                [old, new].map(|it| it.and_then(|it| index.shape.place(history, it)));
            if before == after {
                continue;
            }
            if let Some((hash, number)) = before
                && let Some(rows) = index.rows.get_mut(&hash)
            {
                rows.remove(&(number, key));
            }
            if let Some((hash, number)) = after {
                index.rows.entry(hash).or_default().insert((number, key));
            }
        }
    }

    /// The rows that satisfy a query now.
    pub(super) fn chosen(&self, query: u32) -> impl Iterator<Item = (KeyId, ValueId)> {
        let table = &self.tables[self.history.queries()[query as usize].table as usize];
        let (all, found) = match self.lookups[query as usize] {
            Lookup::Table => (Some(&table.keys), None),
            Lookup::Index(index, hash, (low, high)) => {
                let rows = table.indexes[index].rows.get(&hash);
                let rows = rows.filter(|_| low <= high);
                let within = (low, KeyId(0))..=(high, KeyId(u32::MAX));
                (None, rows.map(|it| it.range(within)))
            }
        };
        let all = all.into_iter().flatten().copied();
        let found = found.into_iter().flatten().map(|it| it.1);
        all.chain(found).filter_map(move |key| {
            let row = self.row[key.index()]?;
            self.history.satisfies(query, row).then_some((key, row))
        })
    }
}

impl Table {
    /// Where rows that satisfy a condition are; makes an index if there is none of its shape.
    fn lookup(&mut self, condition: &Condition) -> Lookup {
        let mut bounds = Bounds::default();
        bounds.collect(condition);
        let shape = Shape {
            equal: bounds.equal.iter().map(|it| it.0).collect(),
            within: bounds.within.map(|it| it.0),
        };
        if shape == Shape::default() {
            return Lookup::Table;
        }
        let known = self.indexes.iter().position(|it| it.shape == shape);
        let index = match known {
            Some(index) => index,
            None if self.indexes.len() == MOST => return Lookup::Table,
            None => {
                let rows = FxHashMap::default();
                self.indexes.push(Index { shape, rows });
                self.indexes.len() - 1
            }
        };
        let hash = hash(bounds.equal.iter().map(|it| it.1));
        let within = bounds.within.map_or((0, 0), |it| it.1);
        Lookup::Index(index, hash, within)
    }
}

impl Shape {
    /// Where a row is in the index; `None` where it has no number in the column that must lie in an interval.
    fn place(&self, history: &History, row: ValueId) -> Option<(u64, i64)> {
        let number = match self.within.map(|it| history.cell(row, it)) {
            None => 0,
            Some(Token::Int(number)) => number,
            Some(_) => return None,
        };
        let equal = self.equal.iter().map(|&it| history.cell(row, it));
        Some((hash(equal), number))
    }
}

fn hash(tokens: impl Iterator<Item = Token>) -> u64 {
    let mut hasher = FxHasher::default();
    tokens.for_each(|token| token.hash(&mut hasher));
    hasher.finish()
}

/// The constraints on a row that satisfies a condition.
#[derive(Default)]
struct Bounds {
    equal: Vec<(Column, Token)>,
    within: Option<(Column, (i64, i64))>,
}

impl Bounds {
    fn collect(&mut self, condition: &Condition) {
        match condition {
            Condition::And(parts) => parts.iter().for_each(|part| self.collect(part)),
            Condition::Compare(Comparison::Eq, column, Operand::Literal(token)) => {
                self.equal.push((*column, *token));
                self.equal.dedup_by_key(|it| it.0);
            }
            Condition::Compare(sign, column, Operand::Literal(Token::Int(number))) => match sign {
                Comparison::Lt | Comparison::Le => self.bound(*column, (i64::MIN, *number)),
                Comparison::Gt | Comparison::Ge => self.bound(*column, (*number, i64::MAX)),
                Comparison::Eq | Comparison::Ne => {}
            },
            Condition::Between(
                column,
                Operand::Literal(Token::Int(low)),
                Operand::Literal(Token::Int(high)),
            ) => self.bound(*column, (*low, *high)),
            _ => {}
        }
    }

    /// Takes the first column with an interval, and every interval of that column.
    fn bound(&mut self, column: Column, (low, high): (i64, i64)) {
        let (first, within) = self.within.get_or_insert((column, (low, high)));
        if *first == column {
            *within = (within.0.max(low), within.1.min(high));
        }
    }
}
