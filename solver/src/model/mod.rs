//! The history as data: sessions of transactions of operations.

mod builder;
mod history;
mod ids;
mod intern;
mod names;

pub use builder::{BuildError, HistoryBuilder, NumberOp};
pub use history::{History, Interval, Op, Status, VersionOrder};
pub use ids::{KeyId, ListId, SessionId, Symbol, TxnId, ValueId};
pub use names::{Symbols, Token};
