//! What happened, as a history, with the version order that the store knows to be true.

use std::ops::Bound::Included;

use kingsnake_history::model::{
    BuildError, Function, History, HistoryBuilder, Installed, Stamps, Status, Token,
};

use super::Key;
use super::engine::INITIAL;
use super::isolation::AskedIsolation;
use super::schema::{Cells, Schema, Where};
use super::table::Writer;
use crate::workloads::WorkloadKind;

/// The content of a row. A row without content was never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoredRow {
    Value(i64),
    /// Deleted, by the delete of this tombstone.
    Deleted(i64),
    Nothing,
}

/// One operation as its client saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum StoreEvent {
    Read(Key, i64),
    Write(Key, i64),
    ReadList(Key, Vec<i64>),
    Append(Key, i64),
    ReadRow(Key, StoredRow),
    Insert(Key, i64),
    Delete(Key, i64),
    Range(Key, Key, Vec<(Key, StoredRow)>),
    /// A row of a table was set.
    Put {
        row: Chosen,
        is_insert: bool,
    },
    /// Rows were chosen by a condition, in the state after this many commits.
    Select {
        asked: Where,
        rows: Vec<Chosen>,
        at: u64,
    },
    /// The rows as they were found and as they were left.
    UpdateWhere {
        asked: Where,
        rows: Vec<(Chosen, Chosen)>,
        at: u64,
    },
    /// The rows as they were found, and the tombstones.
    DeleteWhere {
        asked: Where,
        rows: Vec<(Chosen, i64)>,
        at: u64,
    },
    Aggregate {
        asked: Where,
        function: Function,
        column: Option<u8>,
        result: Option<i64>,
        at: u64,
    },
}

/// A version of a row of a table, and where its cells stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) key: Key,
    pub(super) value: i64,
    pub(super) place: i64,
}

/// A transaction as its client saw it.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) client: usize,
    pub(super) asked: AskedIsolation,
    pub(super) status: Status,
    pub(super) begin: i64,
    pub(super) end: i64,
    /// How many commits it saw at its begin, and which one it was.
    pub(super) snapshot: u64,
    pub(super) commit: u64,
    pub(super) events: Vec<StoreEvent>,
}

/// Everything that a run left behind.
#[derive(Clone, Debug)]
pub struct Recorded {
    pub(super) n_clients: usize,
    pub(super) kind: WorkloadKind,
    /// The tables of a workload of tables.
    pub(super) schema: Schema,
    /// The rows of tables that were there at first, as far as an operation met them.
    pub(super) initial: Vec<Chosen>,
    /// The cells of rows, by their places.
    pub(super) rows: Vec<Cells>,
    /// Whether transactions asked for levels of their own.
    pub(super) is_mixed: bool,
    /// In the order in which they ended.
    pub(super) records: Vec<Record>,
    pub(super) version_orders: Vec<(Key, Vec<StoredRow>)>,
    pub(super) n_aborted: usize,
}

impl Recorded {
    /// How many attempts were aborted, recorded or not.
    pub fn n_aborted(&self) -> usize {
        self.n_aborted
    }

    /// The history, with its version order and with begin and commit times unless they are left out.
    pub fn history(&self, version_order: bool, times: bool) -> Result<History, BuildError> {
        let mut builder = HistoryBuilder::new();
        builder.initial_everywhere(match self.kind {
            WorkloadKind::Registers | WorkloadKind::Lists => Token::Int(INITIAL),
            WorkloadKind::Rows | WorkloadKind::Table => Token::Nil,
        });
        if self.kind == WorkloadKind::Table {
            self.schema.declare(&mut builder)?;
            let mut writer = self.writer(&mut builder);
            for &row in &self.initial {
                writer.initial(row)?;
            }
        }
        let clients = 0..self.n_clients as i64;
        let sessions: Vec<_> = clients.map(|it| builder.session(Token::Int(it))).collect();
        for (index, record) in self.records.iter().enumerate() {
            let name = Token::Int(index as i64 + 1);
            builder.begin(sessions[record.client], name, record.status)?;
            if times {
                builder.times(Some(record.begin), Some(record.end));
            }
            if self.is_mixed {
                let asked = builder.text(record.asked.name);
                builder.isolation(asked);
            }
            if self.kind == WorkloadKind::Table {
                builder.stamps(stamps(index, record));
            }
            for event in &record.events {
                match self.kind {
                    WorkloadKind::Table => self.writer(&mut builder).add(event)?,
                    _ => add(&mut builder, event)?,
                }
            }
        }
        if version_order {
            for (key, rows) in &self.version_orders {
                let installed = rows.iter().map(|&row| match row {
                    StoredRow::Value(value) => Installed::Value(Token::Int(value)),
                    StoredRow::Deleted(tombstone) => Installed::Tombstone(Token::Int(tombstone)),
                    StoredRow::Nothing => Installed::Value(Token::Nil),
                });
                let key = match self.kind {
                    WorkloadKind::Table => self.schema.key(&mut builder, *key),
                    _ => Token::Int(*key),
                };
                builder.version_order(key, installed)?;
            }
        }
        builder.finish()
    }

    fn writer<'a>(&'a self, builder: &'a mut HistoryBuilder) -> Writer<'a> {
        Writer {
            builder,
            schema: self.schema,
            rows: &self.rows,
        }
    }
}

/// What the store knows of when a transaction ran. One that only reads ran at its snapshot, unless every read had its own.
fn stamps(index: usize, record: &Record) -> Stamps {
    let is_writer = record.events.iter().any(StoreEvent::writes);
    let committed = if is_writer {
        record.commit
    } else {
        record.snapshot
    };
    Stamps {
        xid: Some(index as i64 + 1),
        start_ts: Some(record.snapshot as i64),
        commit_ts: (record.status == Status::Committed).then_some(committed as i64),
    }
}

fn add(builder: &mut HistoryBuilder, event: &StoreEvent) -> Result<(), BuildError> {
    match *event {
        StoreEvent::Read(key, value) | StoreEvent::ReadRow(key, StoredRow::Value(value)) => {
            builder.read(Token::Int(key), Token::Int(value));
        }
        StoreEvent::Write(key, value) => {
            builder.write(Token::Int(key), Token::Int(value));
        }
        StoreEvent::Append(key, value) => {
            builder.append(Token::Int(key), Token::Int(value));
        }
        StoreEvent::ReadList(key, ref list) => {
            let values = list.iter().map(|&value| Token::Int(value));
            builder.read_list(Token::Int(key), values);
        }
        StoreEvent::ReadRow(key, StoredRow::Deleted(tombstone)) => {
            builder.read_tombstone(Token::Int(key), Token::Int(tombstone));
        }
        // A read of nothing by a client that sees tombstones is a range of one key.
        StoreEvent::ReadRow(key, StoredRow::Nothing) => add_range(builder, key, key, &[])?,
        StoreEvent::Insert(key, value) => {
            builder.insert(Token::Int(key), Token::Int(value));
        }
        StoreEvent::Delete(key, tombstone) => {
            builder.delete(Token::Int(key), Token::Int(tombstone));
        }
        StoreEvent::Range(low, high, ref rows) => add_range(builder, low, high, rows)?,
        // Only of tables.
        StoreEvent::Put { .. }
        | StoreEvent::Select { .. }
        | StoreEvent::UpdateWhere { .. }
        | StoreEvent::DeleteWhere { .. }
        | StoreEvent::Aggregate { .. } => {}
    }
    Ok(())
}

fn add_range(
    builder: &mut HistoryBuilder,
    low: Key,
    high: Key,
    rows: &[(Key, StoredRow)],
) -> Result<(), BuildError> {
    let (mut live, mut deleted) = (Vec::new(), Vec::new());
    for &(key, row) in rows {
        match row {
            StoredRow::Value(value) => live.push((Token::Int(key), Token::Int(value))),
            StoredRow::Deleted(name) => deleted.push((Token::Int(key), Token::Int(name))),
            StoredRow::Nothing => {}
        }
    }
    let [low, high] = [low, high].map(|key| Included(Token::Int(key)));
    builder.range(low, high, &live, Some(&deleted)).map(drop)
}
