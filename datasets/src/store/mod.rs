//! An embedded multi-version store, its concurrent clients, and the history and version order that they leave behind.
//!
//! A committed transaction installs its writes at one point of a single sequence of commits, which is therefore the true
//! version order of every key. What a transaction may see, and whether it may commit, is its [`Isolation`]. Operations of
//! many clients interleave: by a seeded scheduler ([`Run::run`], the same seed gives the same history), or on threads.

mod bug;
mod client;
mod engine;
mod fault;
mod isolation;
mod predicates;
mod record;
mod run;
mod table;

pub use bug::{Bug, BugRate, UnknownBug};
pub use fault::{Breaks, Fault, UnknownFault};
pub use isolation::{Isolation, IsolationMix, NoMix, UnknownIsolation};
pub use record::Recorded;
pub use run::{RunError, StoreRun};

/// A key's number.
pub type Key = i64;

/// What a transaction does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TxnStep {
    /// Reads a register.
    Read(Key),
    /// Sets a register or a row. The store gives the write a value that no other write of the key has, and keeps the number
    /// beside it for whoever reads it.
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
    /// Sets a row of a table and its number; true where the client calls it an insert.
    Put(Key, i64, bool),
    /// Reads every row whose number lies from the first to the second.
    Select(i64, i64),
    /// Sets the number of every such row to the third.
    UpdateWhere(i64, i64, i64),
    /// Reads the least number from the first to the second, or the greatest.
    Extreme(i64, i64, bool),
}

/// A transaction as its client runs it.
pub trait ClientTransaction: Send {
    /// The next step, or the commit. `read` is the number beside the value that the last step read; 0 where nobody had
    /// written the key, and after a step that was no read of a register.
    fn next(&mut self, read: i64) -> Option<TxnStep>;
}

impl<I: Iterator<Item = TxnStep> + Send> ClientTransaction for I {
    fn next(&mut self, _: i64) -> Option<TxnStep> {
        Iterator::next(self)
    }
}
