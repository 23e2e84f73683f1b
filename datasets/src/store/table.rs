//! What clients of tables saw, as operations of a history: rows with columns, and predicates over them.

use kingsnake_history::model::{Act, BuildError, Column, HistoryBuilder, Snapshot, Token, ValueId};

use super::Key;
use super::engine::INITIAL;
use super::record::{Chosen, StoreEvent};
use super::schema::{Cells, Schema};

impl StoreEvent {
    /// Whether it changes anything.
    pub(super) fn writes(&self) -> bool {
        match self {
            StoreEvent::Put { .. }
            | StoreEvent::Write(..)
            | StoreEvent::Append(..)
            | StoreEvent::Insert(..)
            | StoreEvent::Delete(..) => true,
            StoreEvent::UpdateWhere { rows, .. } => !rows.is_empty(),
            StoreEvent::DeleteWhere { rows, .. } => !rows.is_empty(),
            _ => false,
        }
    }
}

/// Writes down what clients of tables saw.
pub(super) struct Writer<'a> {
    pub(super) builder: &'a mut HistoryBuilder,
    pub(super) schema: Schema,
    /// The rows, by their places.
    pub(super) rows: &'a [Cells],
}

impl Writer<'_> {
    pub(super) fn key(&mut self, key: Key) -> Token {
        self.schema.key(self.builder, key)
    }

    /// States a row that is there before the first transaction.
    pub(super) fn initial(&mut self, row: Chosen) -> Result<(), BuildError> {
        let (key, value) = (self.key(row.key), Token::Int(row.value));
        self.builder.initial(key, value);
        let value = self
            .builder
            .version(key, kingsnake_history::model::Installed::Value(value));
        self.row(value, row)
    }

    fn row(&mut self, value: ValueId, row: Chosen) -> Result<(), BuildError> {
        let cells = &self.rows[row.place as usize];
        let cells = self.schema.row(self.builder, row.key, cells);
        self.builder.row(value, &cells)
    }

    fn read(&mut self, row: Chosen) {
        let key = self.key(row.key);
        self.builder.read(key, Token::Int(row.value));
    }

    fn write(&mut self, row: Chosen, is_insert: bool) -> Result<(), BuildError> {
        let (key, value) = (self.key(row.key), Token::Int(row.value));
        let value = if is_insert {
            self.builder.insert(key, value)
        } else {
            self.builder.write(key, value)
        };
        self.row(value, row)
    }

    /// Adds what a client saw.
    pub(super) fn add(&mut self, event: &StoreEvent) -> Result<(), BuildError> {
        let from = self.builder.n_ops();
        let (act, asked, at) = match *event {
            StoreEvent::Read(key, value) => {
                let key = self.key(key);
                let value = match value {
                    INITIAL => Token::Nil,
                    value => Token::Int(value),
                };
                self.builder.read(key, value);
                return Ok(());
            }
            StoreEvent::Put { row, is_insert } => return self.write(row, is_insert),
            StoreEvent::Delete(key, tombstone) => {
                let key = self.key(key);
                self.builder.delete(key, Token::Int(tombstone));
                return Ok(());
            }
            StoreEvent::Select {
                ref asked,
                ref rows,
                at,
            } => {
                for &row in rows {
                    self.read(row);
                }
                (Act::Select, asked, at)
            }
            StoreEvent::UpdateWhere {
                ref asked,
                ref rows,
                at,
            } => {
                for &(old, new) in rows {
                    self.read(old);
                    self.write(new, false)?;
                }
                (Act::Update, asked, at)
            }
            StoreEvent::DeleteWhere {
                ref asked,
                ref rows,
                at,
            } => {
                for &(old, tombstone) in rows {
                    self.read(old);
                    let key = self.key(old.key);
                    self.builder.delete(key, Token::Int(tombstone));
                }
                (Act::Delete, asked, at)
            }
            StoreEvent::Aggregate {
                ref asked,
                function,
                column,
                result,
                at,
            } => {
                let act = Act::Aggregate {
                    function,
                    column: column.map(|at| Column::Cell(u32::from(at))),
                    result: result.map_or(Token::Nil, Token::Int),
                };
                (act, asked, at)
            }
            // Workloads of tables do nothing else.
            _ => return Ok(()),
        };
        let query = self.schema.query(self.builder, asked);
        let snapshot = Some(Snapshot::At(at as i64));
        self.builder.predicate(act, query, from, snapshot);
        Ok(())
    }
}
