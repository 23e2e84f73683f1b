//! Sets and counters as rows of tables of their own (Elle, section 3), so that only the builder knows them.
//!
//! A set has a row per element: adding one inserts its row, reading the set selects all rows. A counter has a row per
//! increment, which holds the amount, and an initial row of zero: reading it sums them. So an element that was not read
//! gives the reader's anti-dependency, and additions of different elements have no order.

use rustc_hash::FxHashMap;

use super::build_error::BuildError;
use super::builder::HistoryBuilder;
use super::history::History;
use super::ids::KeyId;
use super::names::Token;
use super::predicates::{Act, Column, Condition, Function, Query, Table};

/// The column of a counter's rows.
const AMOUNT: &str = "by";

/// The value of an element's row.
const PRESENT: &str = "added";

/// The kind of object of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// Elements are added; a read returns all of them.
    Set,
    /// Numbers are added; a read returns their sum.
    Counter,
}

impl ObjectKind {
    /// The name in messages.
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Set => "set",
            ObjectKind::Counter => "counter",
        }
    }
}

/// Which set or counter a row belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectRow {
    /// Its table, by its place.
    pub table: u32,
    /// The element, or the amount.
    pub part: Token,
}

/// The sets and counters of a history.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    /// The table of each object, by the object's name.
    tables: FxHashMap<Token, u32>,
    /// By the keys of their rows.
    pub(super) rows: FxHashMap<Token, ObjectRow>,
}

impl Objects {
    pub(super) fn len(&self) -> usize {
        self.tables.len()
    }

    pub(super) fn is_object(&self, name: Token) -> Option<u32> {
        self.tables.get(&name).copied()
    }
}

impl History {
    /// The set or counter, and the part of it, that a key is a row of.
    pub fn object_row(&self, key: KeyId) -> Option<(ObjectKind, Token, Token)> {
        let rows = &self.rows.objects.rows;
        let row = rows
            .get(&self.key_token(key))
            .filter(|_| !rows.is_empty())?;
        let (kind, name) = self.rows.tables[row.table as usize].object?;
        Some((kind, name, row.part))
    }

    /// Whether some table is a set or a counter.
    pub fn has_objects(&self) -> bool {
        self.rows.objects.len() > 0
    }
}

impl HistoryBuilder {
    /// The transaction begun last added an element to a set.
    pub fn add(&mut self, set: Token, element: Token) -> Result<(), BuildError> {
        let table = self.object(set, ObjectKind::Set)?;
        let row = self.element(set, table, element);
        let present = self.text(PRESENT);
        self.insert(row, present);
        Ok(())
    }

    /// The transaction begun last read a set: these elements and no others.
    pub fn read_set(
        &mut self,
        set: Token,
        elements: impl IntoIterator<Item = Token>,
    ) -> Result<(), BuildError> {
        let table = self.object(set, ObjectKind::Set)?;
        let present = self.text(PRESENT);
        let from = self.n_ops();
        let mut elements: Vec<Token> = elements.into_iter().collect();
        elements.sort_unstable();
        elements.dedup();
        for element in elements {
            let row = self.element(set, table, element);
            self.read(row, present);
        }
        self.predicate(Act::Select, all_rows(table), from, None);
        Ok(())
    }

    /// The transaction begun last added a number to a counter.
    pub fn increment(&mut self, counter: Token, by: i64) -> Result<(), BuildError> {
        let table = self.object(counter, ObjectKind::Counter)?;
        let txn = self.history.txns.last().map_or(Token::Nil, |it| it.name);
        let (counter, txn) = (self.show(counter), self.show(txn));
        let mut text = format!("{counter}+={by} by {txn}");
        let known = self.text(&text);
        if self.history.rows.objects.rows.contains_key(&known) {
            text = format!("{text} ({})", self.history.value_names.len());
        }
        let row = self.object_row(&text, table, Token::Int(by));
        let value = self.insert(row, Token::Int(by));
        self.history.value_initial[value.index()] = false;
        self.row(value, &[Token::Int(by)])
    }

    /// The transaction begun last read a counter.
    pub fn read_counter(&mut self, counter: Token, value: i64) -> Result<(), BuildError> {
        let table = self.object(counter, ObjectKind::Counter)?;
        let act = Act::Aggregate {
            function: Function::Sum,
            column: Some(Column::Cell(0)),
            result: Token::Int(value),
        };
        self.predicate(act, all_rows(table), self.n_ops(), None);
        Ok(())
    }

    /// The table of a set or a counter, created if it is new.
    fn object(&mut self, name: Token, kind: ObjectKind) -> Result<u32, BuildError> {
        if let Some(table) = self.history.rows.objects.is_object(name) {
            let known = self.history.rows.tables[table as usize].object;
            return match known {
                Some((it, _)) if it != kind => Err(BuildError::OtherUse {
                    key: self.show(name),
                    one: it.name(),
                    other: kind.name(),
                }),
                _ => Ok(table),
            };
        }
        let text = self.quoted(name);
        let table_name = self.text(&text);
        let columns = match kind {
            ObjectKind::Set => Vec::new(),
            ObjectKind::Counter => vec![self.text(AMOUNT)],
        };
        let rows = &mut self.history.rows;
        let table = rows.tables.len() as u32;
        if rows.table_ids.contains_key(&table_name) {
            return Err(BuildError::DuplicateTable { name: text });
        }
        rows.objects.tables.insert(name, table);
        rows.tables.push(Table {
            name: table_name,
            columns,
            object: Some((kind, name)),
        });
        if kind == ObjectKind::Counter {
            let row = self.object_row(&format!("{text}=0"), table, Token::Int(0));
            let zero = Token::Int(0);
            self.initial(row, zero);
            let key = self.key(row);
            let value = self.value(key, zero);
            self.row(value, &[zero])?;
        }
        Ok(table)
    }

    /// The row of an element.
    fn element(&mut self, set: Token, table: u32, element: Token) -> Token {
        let text = format!("{}∋{}", self.quoted(set), self.quoted(element));
        let row = self.object_row(&text, table, element);
        let (key, present) = (self.key(row), self.text(PRESENT));
        let value = self.value(key, present);
        self.history.value_initial[value.index()] = false;
        row
    }

    /// The key of a row that is absent at first.
    fn object_row(&mut self, text: &str, table: u32, part: Token) -> Token {
        let key = self.text(text);
        let row = ObjectRow { table, part };
        if self.history.rows.objects.rows.insert(key, row).is_none() {
            self.initial_absence(key, Token::Nil);
            let id = self.key(key);
            self.history.initial_rows.none.insert(id);
        }
        key
    }

    /// A name in words, with quotes around a text that looks like a number or like such a text.
    fn quoted(&self, name: Token) -> String {
        let text = self.show(name);
        let quotes = matches!(name, Token::Text(_))
            && (text.parse::<i64>().is_ok() || text.starts_with('"'));
        if quotes { format!("\"{text}\"") } else { text }
    }

    /// No name is that of an object and of a plain key, and no range query spans a row of an object.
    pub(super) fn check_objects(&self) -> Result<(), BuildError> {
        let parts = &self.history;
        let objects = &parts.rows.objects;
        if objects.len() == 0 {
            return Ok(());
        }
        for key in parts.key_names.iter() {
            if let Some(table) = objects.is_object(key) {
                let kind = parts.rows.tables[table as usize].object;
                return Err(BuildError::OtherUse {
                    key: self.show(key),
                    one: kind.map_or("object", |it| it.0.name()),
                    other: "register or list",
                });
            }
        }
        for range in &parts.ranges {
            let mut rows = objects.rows.keys();
            let spanned = rows.find(|&&row| range.span.place(&parts.symbols, row).is_eq());
            if let Some(&row) = spanned {
                let span = range.span.show(|token| self.show(token));
                let key = self.show(row);
                return Err(BuildError::RangeOfObject { span, key });
            }
        }
        Ok(())
    }
}

fn all_rows(table: u32) -> Query {
    Query {
        table,
        condition: Condition::Always(true),
    }
}
