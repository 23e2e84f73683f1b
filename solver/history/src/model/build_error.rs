//! Errors in a sequence of calls to the builder.

use thiserror::Error;

/// Why a sequence of calls is no history.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// Two transactions have one name.
    #[error("transaction {txn} appears twice in session {session}")]
    DuplicateTxn {
        /// The name.
        txn: String,
        /// The session of both.
        session: String,
    },
    /// One transaction is claimed by two sessions.
    #[error("transaction {txn} appears in session {first} and in session {second}")]
    TwoSessions {
        /// The name.
        txn: String,
        /// The session that had it first.
        first: String,
        /// The session that also has it.
        second: String,
    },
    /// An id would not fit in 32 bits.
    #[error("more than 4,294,967,294 {what}")]
    TooMany {
        /// The kind of thing that there are too many of.
        what: &'static str,
    },
    /// A version order names one key twice.
    #[error("two version orders for key {key}")]
    DuplicateVersionOrder {
        /// The key.
        key: String,
    },
    /// A version order names one value twice.
    #[error("the version order of key {key} names value {value} twice")]
    RepeatedVersion {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A transaction commits before it begins.
    #[error("transaction {txn} commits at {commit}, before it begins at {begin}")]
    BackwardInterval {
        /// The transaction.
        txn: String,
        /// Its begin.
        begin: i64,
        /// Its commit.
        commit: i64,
    },
    /// The ends of a range are not of one kind.
    #[error("a range from {low} to {high}: both must be numbers, or both texts")]
    MixedBounds {
        /// The lower end.
        low: String,
        /// The upper end.
        high: String,
    },
    /// A range query returned a key outside its range.
    #[error("the range query of {span} returned key {key}, which is outside")]
    OutsideRange {
        /// The range.
        span: String,
        /// The key.
        key: String,
    },
    /// A range query returned a row without a value.
    #[error("a range query returned key {key} with null, which means that there is no row")]
    EmptyRow {
        /// The key.
        key: String,
    },
    /// A table needs a name that can stand before a `/`.
    #[error("{name} is no name for a table; write a text without `/`")]
    TableName {
        /// The name.
        name: String,
    },
    /// Two tables have one name.
    #[error("table {name} is declared twice")]
    DuplicateTable {
        /// The name.
        name: String,
    },
    /// A column is declared twice, or has the name of a built-in one.
    #[error(
        "column {column} of table {table} is declared twice (every table has `key` and `value`)"
    )]
    DuplicateColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// One version has two rows.
    #[error("two different rows for key {key} with value {value}")]
    TwoRows {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// One name stands for objects of two kinds.
    #[error("key {key} is a {one} in one place and a {other} in another")]
    OtherUse {
        /// The name.
        key: String,
        /// What it is.
        one: &'static str,
        /// What it is too.
        other: &'static str,
    },
    /// A range query would read a row of a set or a counter.
    #[error(
        "the range query of {span} spans {key}, which is part of a set or a counter; give the range bounds that leave it out"
    )]
    RangeOfObject {
        /// The range.
        span: String,
        /// The row.
        key: String,
    },
    /// What was rolled back to a savepoint cannot be told apart.
    #[error(
        "transaction {txn} wrote key {key} after a savepoint and then asked for rows by a range or a condition, before it rolled back; record such a query as reads of its keys"
    )]
    QueryRolledBack {
        /// The transaction.
        txn: String,
        /// The key.
        key: String,
    },
}
