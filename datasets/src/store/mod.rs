//! An embedded multi-version store, its concurrent clients, and the history and version order that they produce.
//!
//! A committed transaction installs its writes at one point of a single sequence of commits, which is therefore the true
//! version order of every key. What a transaction may see, and whether it may commit, is its [`Isolation`]. Operations of
//! many clients interleave: by a seeded scheduler ([`StoreRun::run`], the same seed gives the same history), or on threads.

mod bug;
mod client;
mod engine;
mod fault;
mod isolation;
mod predicates;
mod record;
mod replace;
mod run;
mod schema;
mod table;

pub use bug::{Bug, BugRate, UnknownBug};
pub use fault::{Breaks, Fault, UnknownFault};
pub use isolation::{AskedIsolation, Isolation, IsolationMix, NoMix, UnknownIsolation};
pub use record::Recorded;
pub use run::{RunError, StoreRun};
pub use schema::{Cells, Change, ColumnOf, NULL, Schema, TableOf, Test, Where, key};

use kingsnake_history::model::Function;

/// A key's number.
pub type Key = i64;

/// The next step of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TxnStep {
    /// Reads a register.
    Read(Key),
    /// Sets a register or a row. The store gives the write a value that no other write of the key has, and keeps the number
    /// beside it for its readers.
    Write(Key, i64),
    /// Reads a list.
    ReadList(Key),
    /// Appends to a list an element that the store chooses.
    Append(Key),
    /// Reads a row, or finds it deleted, or finds nothing.
    ReadRow(Key),
    /// Inserts a row, or replaces the one that is there.
    Insert(Key),
    /// Deletes a row, if there is one.
    Delete(Key),
    /// Reads every row from one key to another, both included.
    Range(Key, Key),
    /// Sets a row of a table; true where the client calls it an insert.
    Put(Key, Cells, bool),
    /// Reads every row that a condition chooses.
    Select(Where),
    /// Changes every such row.
    UpdateWhere(Where, Vec<Change>),
    /// Deletes every such row.
    DeleteWhere(Where),
    /// Reads a function of a column of every such row; without a column it is of the rows themselves.
    Aggregate(Where, Function, Option<u8>),
}

/// A transaction as its client runs it.
pub trait ClientTransaction: Send {
    /// The next step, or the commit. `read` is the number beside the value that the last step read; 0 where none had
    /// written the key, and after a step that was no read of a register.
    /// Of a row of a table it is the first cell, of an aggregate the result.
    fn next(&mut self, read: i64) -> Option<TxnStep>;

    /// Which of the workload's kinds of transactions it is; empty where there are none.
    fn kind(&self) -> &'static str {
        ""
    }

    /// Takes the rows of a table that the last step read, in the order of their keys; before the next step is asked for.
    fn rows(&mut self, _: &[Cells]) {}
}

impl<I: Iterator<Item = TxnStep> + Send> ClientTransaction for I {
    fn next(&mut self, _: i64) -> Option<TxnStep> {
        Iterator::next(self)
    }
}
