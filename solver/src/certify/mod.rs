//! Checks answers again, with code that knows nothing of how they were found.

mod clock;
mod findings;
mod meaning;
pub mod order;
pub mod refutation;
#[cfg(test)]
mod soundness;

pub(crate) use meaning::Meaning;
