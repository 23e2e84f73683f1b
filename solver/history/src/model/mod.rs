//! The history as data: sessions of transactions of operations.

mod assumptions;
mod build_error;
mod builder;
mod compares;
mod history;
mod ids;
mod intern;
mod lists;
mod names;
mod notes;
mod objects;
mod own_writes;
mod pieces;
mod predicates;
mod ranges;
mod rivals;
mod rows;
mod savepoints;
mod statements;

pub use assumptions::{GivenEdge, KeyAssumption, OrderSource, Shown, Stale};
pub use build_error::BuildError;
pub use builder::{HistoryBuilder, Installed, NumberOp};
pub use compares::{CompareAndSet, CompareOutcome};
pub use history::{History, Interval, Op, Status, VersionOrder};
pub use ids::{KeyId, ListId, RangeId, SessionId, Symbol, TxnId, ValueId};
pub use lists::ListPlace;
pub use names::{Symbols, Token, visible};
pub use notes::{Event, Note};
pub use objects::{ObjectKind, ObjectRow};
pub use pieces::TxnPiece;
pub use predicates::{
    Act, Column, Comparison, Condition, Extreme, Function, Operand, Predicate, Query, Snapshot,
    Stamps, Table, compare_values,
};
pub use ranges::{RangeQuery, Span, compare};
pub use rows::BUILT_IN;
pub use statements::Statements;
