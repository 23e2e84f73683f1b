//! The interface of a database: a [`Database`] opens [`Session`]s, and a session runs transactions one operation at a time.
//!
//! Adapters are independent of recording, retries and faults; the driver is independent of databases.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A key's number.
pub type Key = i64;

/// The content of a key: a value that no other write has, and a number beside it that only the workload reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredCell {
    /// Unique over the whole collection; 0 is the initial value.
    pub value: i64,
    /// The workload's own number, such as a balance.
    pub beside: i64,
}

/// The database's answer to a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrote {
    /// The version's place among those of its key (`--version-order rank`).
    pub rank: Option<i64>,
    /// The database's own name of the transaction.
    pub txn: Option<String>,
}

/// Why an operation did not succeed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Failure {
    /// The database ended the transaction; none of its writes counts. The reason is one of a few words, to count by.
    #[error("aborted: {0}")]
    Aborted(&'static str),
    /// The connection is lost. Whether a running commit took effect is unknown.
    #[error("connection lost: {0}")]
    Lost(String),
    /// The collection cannot continue: a mistake in the set-up, or in the adapter.
    #[error("{0}")]
    Fatal(String),
}

/// The source of the order of versions of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OrderBy {
    /// The database's own log.
    Log,
    /// A column that each write of a row increments.
    Rank,
    /// A trigger that writes each version into a table.
    Trigger,
    /// Not recorded.
    #[default]
    None,
}

impl OrderBy {
    /// All of them.
    pub const ALL: [OrderBy; 4] = [Self::Log, Self::Rank, Self::Trigger, Self::None];

    /// The name, as typed.
    pub fn name(self) -> &'static str {
        match self {
            OrderBy::Log => "log",
            OrderBy::Rank => "rank",
            OrderBy::Trigger => "trigger",
            OrderBy::None => "none",
        }
    }
}

/// The keys at the beginning of a collection: each row has the value 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Initially {
    /// Keys 0 to this one (excluded) have a row.
    Rows(i64),
    /// Of these keys, the even ones have a row.
    EvenRows(i64),
    /// Keys 0 to this one (excluded) have a row, with different numbers beside the value.
    NumberedRows(i64),
    /// Consecutive blocks of this many keys; in each of them those keys have a row whose bits are set.
    Blocks {
        /// Number of blocks.
        blocks: i64,
        /// Number of keys per block.
        stride: i64,
        /// Which of them have a row.
        rows: u64,
    },
    /// Of these keys, the even ones have a row, with 1 beside the value.
    MarkedRows(i64),
    /// No key has a row.
    Nothing,
}

impl Initially {
    /// The rows: each key with the number beside its value.
    pub fn rows(self) -> Vec<(Key, i64)> {
        match self {
            Initially::Rows(n_keys) => (0..n_keys).map(|key| (key, 0)).collect(),
            Initially::EvenRows(n_keys) => (0..n_keys).step_by(2).map(|key| (key, 0)).collect(),
            Initially::MarkedRows(n_keys) => (0..n_keys).step_by(2).map(|key| (key, 1)).collect(),
            Initially::NumberedRows(n_keys) => {
                (0..n_keys).map(|key| (key, key * 7 % NUMBERS)).collect()
            }
            Initially::Blocks {
                blocks,
                stride,
                rows,
            } => (0..blocks * stride)
                .filter(|key| (rows >> (key % stride)) & 1 == 1)
                .map(|key| (key, 0))
                .collect(),
            Initially::Nothing => Vec::new(),
        }
    }
}

/// Numbers that conditions compare are from 0 to this one (excluded).
pub(crate) const NUMBERS: i64 = 100;

/// The entry of a log for a deleted row, in place of a value.
pub const DELETED: i64 = -1;

/// A row that a condition chose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// Its key.
    pub key: Key,
    /// Its value: what was found, or for an update what was written.
    pub value: i64,
    /// The place of the new version among those of its key (`--version-order rank`).
    pub rank: Option<i64>,
}

/// A function of the rows that a condition chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aggregate {
    /// The number of rows.
    Count,
    /// The sum of the numbers beside their values.
    Sum,
    /// The least key. Keys are unique: if several rows have the least number, it is unknown which of them a database looked at.
    Min,
    /// The greatest key.
    Max,
}

/// The answer to a statement, every value as a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SqlAnswer {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows that it returned.
    pub rows: Vec<Vec<Option<String>>>,
    /// How many rows it changed; for a statement that only reads, any number.
    pub changed: u64,
}

fn no_conditions<T>() -> Result<T, Failure> {
    Err(Failure::Fatal(
        "this database is not asked by conditions".to_owned(),
    ))
}

/// The outcome of a transaction that its client never learnt, as the database reports it afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// It committed.
    Committed,
    /// It did not commit, and never will.
    Aborted,
    /// The database does not know.
    Unknown,
}

/// Every version that the database's log holds.
#[derive(Clone, Debug, Default)]
pub struct VersionLog {
    /// Key and value of each installed version, oldest first; each value as often as the log has it, and [`DELETED`] for a
    /// delete.
    pub versions: Vec<(Key, i64)>,
    /// Whether the log is known to be complete, so that a value which is not in it was never installed.
    pub is_complete: bool,
}

/// The kinds of transactions that a client runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionShare {
    /// Any of the workload.
    All,
    /// Those that write, though others only read.
    Writers,
    /// The reads of any, because the node takes no writes.
    Readers,
}

/// A database under test.
pub trait Database: Send + Sync {
    /// Name and version, such as `PostgreSQL 15.18`.
    fn version(&self) -> Result<String, Failure>;

    /// Creates the tables. Fails if something that is not ours is in the way.
    fn prepare(&self, initially: Initially) -> Result<(), Failure>;

    /// Connects a session; `node` counts the servers from 0.
    fn open(&self, session: usize) -> Result<Box<dyn DatabaseSession>, Failure>;

    /// The node that a session talks to.
    fn node(&self, _session: usize) -> Option<String> {
        None
    }

    /// The kinds of transactions that a session may run on its node.
    fn runs(&self, _session: usize) -> SessionShare {
        SessionShare::All
    }

    /// Settings that affect the findings, to be printed and recorded.
    fn settings(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The versions by the log or the trigger, once all sessions have ended; nothing where the order is by rank or not
    /// recorded.
    fn log(&self) -> Result<Option<VersionLog>, Failure> {
        Ok(None)
    }

    /// The outcome of a transaction, by the database's own name for it.
    fn resolve(&self, _txn: &str) -> Resolution {
        Resolution::Unknown
    }

    /// Deletes what [`Database::prepare`] made.
    fn clean(&self) -> Result<(), Failure>;
}

/// One client's connection. Calls come in the order begin, operations, commit or abort.
pub trait DatabaseSession: Send {
    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), Failure>;
    /// The database's own name of the transaction, if it has one from the start.
    fn name(&mut self) -> Option<String> {
        None
    }
    /// Reads a register; `None` if there is no row.
    fn read(&mut self, key: Key) -> Result<Option<StoredCell>, Failure>;
    /// Sets a register or a row, and creates it if there is none.
    fn write(&mut self, key: Key, cell: StoredCell) -> Result<Wrote, Failure>;
    /// Reads a list.
    fn read_list(&mut self, key: Key) -> Result<Vec<i64>, Failure>;
    /// Appends to a list.
    fn append(&mut self, key: Key, value: i64) -> Result<Wrote, Failure>;
    /// Reads every row from one key to another, both included.
    fn range(&mut self, low: Key, high: Key) -> Result<Vec<(Key, i64)>, Failure>;
    /// Deletes a row; `None` if there was none.
    fn delete(&mut self, key: Key) -> Result<Option<Wrote>, Failure>;
    /// Reads every row whose number lies between these, both included.
    fn select(&mut self, _numbers: (i64, i64)) -> Result<Vec<Chosen>, Failure> {
        no_conditions()
    }
    /// Sets every such row.
    fn update_where(
        &mut self,
        _numbers: (i64, i64),
        _cell: StoredCell,
    ) -> Result<Vec<Chosen>, Failure> {
        no_conditions()
    }
    /// Deletes every such row.
    fn delete_where(&mut self, _numbers: (i64, i64)) -> Result<Vec<Chosen>, Failure> {
        no_conditions()
    }
    /// Reads a function of all such rows; `None` if it has no value.
    fn aggregate(
        &mut self,
        _numbers: (i64, i64),
        _function: Aggregate,
    ) -> Result<Option<i64>, Failure> {
        no_conditions()
    }
    /// Sets a register if it holds this value; returns what it held. A database with its own compare-and-set uses it.
    fn cas(&mut self, key: Key, old: i64, new: StoredCell) -> Result<Option<StoredCell>, Failure> {
        let held = self.read(key)?;
        if held.map_or(0, |cell| cell.value) == old {
            self.write(key, new)?;
        }
        Ok(held)
    }
    /// Runs a statement in the database's own SQL.
    fn sql(&mut self, _statement: &str) -> Result<SqlAnswer, Failure> {
        Err(Failure::Fatal(
            "this database is not asked in SQL; sqlite, postgres and mariadb are".to_owned(),
        ))
    }
    /// Commits; the database's own name of the transaction, where it is only known now.
    fn commit(&mut self) -> Result<Option<String>, Failure>;
    /// Rolls back. After a failed operation too.
    fn abort(&mut self) -> Result<(), Failure>;
    /// The snapshot of the last statement, in the database's own words.
    fn snapshot(&mut self) -> Option<String> {
        None
    }
}
