//! Checks a stream of transactions in bounded memory.
//!
//! A batch is an ordinary problem: what was kept, one version of every key, and what arrived. It is pruned and decided like any
//! other. Then everything is dropped that no later transaction can tell from what it leaves behind (`settle`), so memory stays
//! the window, what is unsettled, and one stub per key. `rules` names each rule.
//!
//! The rules hold for unique values: no two writes store the same value under one key.

mod arrival;
mod frame;
mod index;
mod lists;
mod rules;
mod sessions;
mod settle;
mod stamps;
mod suppose;
mod watcher;
mod window;

use thiserror::Error;

pub use arrival::{Arrival, EMPTY_LIST, Horizon, KeyNumber, ValueName, WatchLevel};
pub use rules::{Exact, WatchRules};
pub use sessions::{BrokenPromise, Sessions};
pub use stamps::{StampViolation, Stamped, StampedWatcher};
pub use watcher::{BatchReport, WatchOptions, WatchState, WatchedPoint, Watcher};

use kingsnake_context::budget::StopReason;
use kingsnake_graph::decide::DecideError;

/// Why a batch has no answer.
#[derive(Debug, Error)]
pub enum WatchError {
    /// Two writes store one value under one key.
    #[error(
        "transaction {id} writes a value that its key has had before: watching needs unique values"
    )]
    Repeated {
        /// The caller's name of the later of the two.
        id: u64,
    },
    /// The back end failed.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// Time or memory ran out.
    #[error("{0}")]
    Stopped(StopReason),
}

impl From<StopReason> for WatchError {
    fn from(reason: StopReason) -> Self {
        WatchError::Stopped(reason)
    }
}
