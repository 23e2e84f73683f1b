//! Why an answer is rejected.

use kingsnake_history::budget::StopReason;
use thiserror::Error;

/// Why an answer is rejected.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// An order does not explain the history: what does not hold.
    #[error("{0}")]
    Order(String),
    /// A proof, a cycle or a finding does not follow from the history; the reason.
    #[error("{0}")]
    Refutation(String),
    /// More states than the limit would have to be visited to check it.
    #[error("more than {0} configurations")]
    TooMany(usize),
    /// The budget ended before it was checked.
    #[error("{0}")]
    Stopped(StopReason),
}

impl From<StopReason> for Refusal {
    fn from(reason: StopReason) -> Self {
        Refusal::Stopped(reason)
    }
}
