//! Tables with columns, and the conditions by which clients choose their rows.

use kingsnake_history::model::{
    BuildError, Column, Comparison, Condition, HistoryBuilder, Operand, Query, Token,
};

use super::Key;

/// A row: a cell for each column of its table, and zeros after them.
pub type Cells = [i64; 6];

/// The cell of a column that is null.
pub const NULL: i64 = i64::MIN;

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub struct ColumnOf {
    name: &'static str,
    /// The text that stands for a number; the number itself unless there is one.
    text: Option<fn(i64) -> String>,
}

impl ColumnOf {
    /// A column of numbers.
    pub const fn number(name: &'static str) -> Self {
        ColumnOf { name, text: None }
    }

    /// A column of texts, each of which stands for a number.
    pub const fn text(name: &'static str, text: fn(i64) -> String) -> Self {
        ColumnOf {
            name,
            text: Some(text),
        }
    }
}

/// A table: its name and its columns.
#[derive(Clone, Copy, Debug)]
pub struct TableOf {
    /// The name.
    pub name: &'static str,
    /// The columns, at most as many as a row has cells.
    pub columns: &'static [ColumnOf],
}

/// The tables of a workload.
#[derive(Clone, Copy, Debug)]
pub struct Schema(pub &'static [TableOf]);

/// A key of a row has the number of its table, of its row there, and how often the row got a new key, from the highest bit down.
const GENERATION_BITS: u32 = 15;
const ROW_BITS: u32 = 44;

/// The bits that say how often a row got a new key.
pub(super) const GENERATIONS: Key = (1 << GENERATION_BITS) - 1;

/// The first key of a row of a table.
pub fn key(table: u8, id: i64) -> Key {
    (Key::from(table) << (ROW_BITS + GENERATION_BITS)) | (id << GENERATION_BITS)
}

fn table_of(key: Key) -> usize {
    (key >> (ROW_BITS + GENERATION_BITS)) as usize
}

impl Schema {
    /// Declares the tables.
    pub(super) fn declare(self, builder: &mut HistoryBuilder) -> Result<(), BuildError> {
        for table in self.0 {
            let name = builder.text(table.name);
            let columns = table.columns.iter();
            let columns = columns.map(|it| builder.text(it.name)).collect();
            builder.table(name, columns)?;
        }
        Ok(())
    }

    /// A key's name: the number of its row, with several tables after the name of its table, and with how often the row got a
    /// new key after it, as in `stock/7.2`.
    pub(super) fn key(self, builder: &mut HistoryBuilder, key: Key) -> Token {
        let id = (key >> GENERATION_BITS) & ((1 << ROW_BITS) - 1);
        let generation = key & GENERATIONS;
        let table = self.0[table_of(key)].name;
        match (self.0.len(), generation) {
            (1, 0) => Token::Int(id),
            (1, _) => builder.text(&format!("{id}.{generation}")),
            (_, 0) => builder.text(&format!("{table}/{id}")),
            _ => builder.text(&format!("{table}/{id}.{generation}")),
        }
    }

    /// A row as the history has it.
    pub(super) fn row(self, builder: &mut HistoryBuilder, key: Key, cells: &Cells) -> Vec<Token> {
        let columns = 0..self.0[table_of(key)].columns.len();
        columns
            .map(|at| self.cell(builder, table_of(key), at, cells[at]))
            .collect()
    }

    fn cell(self, builder: &mut HistoryBuilder, table: usize, at: usize, cell: i64) -> Token {
        match self.0[table].columns[at].text {
            _ if cell == NULL => Token::Nil,
            Some(text) => builder.text(&text(cell)),
            None => Token::Int(cell),
        }
    }

    /// A condition as the history has it.
    pub(super) fn query(self, builder: &mut HistoryBuilder, asked: &Where) -> Query {
        let table = usize::from(asked.table);
        let mut parts: Vec<Condition> = Vec::new();
        for (column, test) in &asked.tests {
            let at = usize::from(*column);
            let column = Column::Cell(u32::from(*column));
            let mut cell = |number| self.cell(builder, table, at, number);
            parts.push(match *test {
                Test::Null => Condition::IsNull(column),
                Test::In(ref list) => {
                    Condition::In(column, list.iter().map(|&number| cell(number)).collect())
                }
                Test::Between(low, high) if low == high => {
                    Condition::Compare(Comparison::Eq, column, Operand::Literal(cell(low)))
                }
                Test::Between(low, high) => {
                    let [low, high] = [low, high].map(|number| Operand::Literal(cell(number)));
                    Condition::Between(column, low, high)
                }
                Test::Below(number) => {
                    Condition::Compare(Comparison::Lt, column, Operand::Literal(cell(number)))
                }
            });
        }
        let condition = match parts.len() {
            0 => Condition::Always(true),
            1 => parts.remove(0),
            _ => Condition::And(parts),
        };
        Query {
            table: u32::from(asked.table),
            condition,
        }
    }
}

/// What a condition asks of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// It lies from the first number to the second.
    Between(i64, i64),
    /// It is less than the number.
    Below(i64),
    /// It is one of the numbers.
    In(Vec<i64>),
    /// It is null.
    Null,
}

impl Test {
    fn holds(&self, cell: i64) -> bool {
        match self {
            Test::Null => cell == NULL,
            _ if cell == NULL => false,
            Test::Between(low, high) => *low <= cell && cell <= *high,
            Test::Below(number) => cell < *number,
            Test::In(list) => list.contains(&cell),
        }
    }
}

/// The rows of a table whose columns pass every test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Where {
    table: u8,
    tests: Vec<(u8, Test)>,
    /// Between which keys such rows can only be.
    keys: (Key, Key),
}

impl Where {
    /// Every row of a table.
    pub fn table(table: u8) -> Self {
        Where {
            table,
            tests: Vec::new(),
            keys: (key(table, 0), key(table + 1, 0) - 1),
        }
    }

    /// Those of them that pass a test too.
    #[must_use]
    pub fn and(mut self, column: u8, test: Test) -> Self {
        self.tests.push((column, test));
        self
    }

    /// Those of them whose column has this number.
    #[must_use]
    pub fn is(self, column: u8, number: i64) -> Self {
        self.and(column, Test::Between(number, number))
    }

    /// The same; it chooses only rows from one key to another, which saves the store from looking at all.
    #[must_use]
    pub fn from_key(mut self, first: Key, last: Key) -> Self {
        self.keys = (first, last | GENERATIONS);
        self
    }

    pub(super) fn keys(&self) -> std::ops::RangeInclusive<Key> {
        self.keys.0..=self.keys.1
    }

    pub(super) fn holds(&self, cells: &Cells) -> bool {
        let mut tests = self.tests.iter();
        tests.all(|(column, test)| test.holds(cells[usize::from(*column)]))
    }
}

/// What an update does to a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Sets it.
    To(u8, i64),
    /// Adds to it.
    Add(u8, i64),
}

impl Change {
    pub(super) fn apply(self, cells: &mut Cells) {
        match self {
            Change::To(column, number) => cells[usize::from(column)] = number,
            Change::Add(column, number) => cells[usize::from(column)] += number,
        }
    }
}
