//! Why a history has no certificate that can be checked.

use kingsnake_certify::Refusal;
use kingsnake_history::budget::StopReason;
use thiserror::Error;

/// The history lacks information, or contradicts itself; this tells nothing about the database.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum AdyaError {
    /// The order of some versions is not known.
    #[error(
        "the version order of key {key} is not complete: it lacks {n} of {of} versions, such as {value} of transaction {txn}; \
         give {{\"version_order\":{{\"key\":…,\"values\":[…]}}}} with every committed value, commit_ts for every transaction that writes the key (no two equal), or lists that are read at the end"
    )]
    Partial {
        /// The key.
        key: String,
        /// Number of versions without a place.
        n: usize,
        /// Number of versions.
        of: usize,
        /// One that has none.
        value: String,
        /// Its writer.
        txn: String,
    },
    /// Two writes have one value, and one of them did not commit: a read of it could be of either.
    #[error(
        "transactions {first} and {second}, of which one did not commit, both wrote {value} to key {key}; a certificate needs versions that can be told apart"
    )]
    DuplicateValue {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// One writer.
        first: String,
        /// The other.
        second: String,
    },
    /// A read of nothing may mean two things.
    #[error(
        "transaction {txn} found no row of key {key}, which may be the initial state or a delete; give deletes names, and say in reads which one was found"
    )]
    AmbiguousAbsence {
        /// The key.
        key: String,
        /// The reader.
        txn: String,
    },
    /// A version order names a value that was never written.
    #[error("the version order of key {key} names value {value}, which no transaction wrote")]
    UnknownVersion {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A predicate has no version set.
    #[error(
        "a predicate of transaction {txn} has no snapshot, and the transaction has no start_ts; add {{\"at\":N}}, {{\"pg\":\"xmin:xmax:xip\"}} or {{\"set\":[…]}} to the predicate, or start_ts to the transaction"
    )]
    NoSnapshot {
        /// The transaction.
        txn: String,
    },
    /// A transaction lacks what snapshots or the level refer to.
    #[error("transaction {txn} has no {field}, which {needed_by} needs")]
    NoStamp {
        /// The transaction.
        txn: String,
        /// The field.
        field: &'static str,
        /// The transaction.
        needed_by: &'static str,
    },
    /// The level needs the database's own times, and there are none.
    #[error("pl-si needs start_ts and commit_ts, and no transaction has them")]
    NoTimes,
    /// Range queries give no snapshots.
    #[error(
        "transaction {txn} queries a key range; certificates know selects instead: [\"select\",{{\"table\":…,\"where\":[\"between\",\"key\",…]}},…]"
    )]
    Range {
        /// The transaction.
        txn: String,
    },
    /// A sum has no result.
    #[error("a predicate of transaction {txn} sums a column that holds texts, or beyond 64 bits")]
    NoSum {
        /// The transaction.
        txn: String,
    },
    /// An expected order does not fit the history.
    #[error("{0}")]
    Order(String),
    /// The budget ended.
    #[error("{0}")]
    Stopped(StopReason),
    /// An answer was rejected when it was checked again: a bug of this program. The answer is withheld.
    #[error("internal error: the answer {answer} does not hold: {why}")]
    Uncertified {
        /// The answer.
        answer: &'static str,
        /// The reason for the rejection.
        why: Refusal,
    },
}

impl From<StopReason> for AdyaError {
    fn from(reason: StopReason) -> Self {
        AdyaError::Stopped(reason)
    }
}
