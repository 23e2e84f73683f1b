//! Checks the database's own record: a version certificate (Emme) or an expected order (Enne), from Clark, Rigger,
//! Wickerson and Donaldson, "Bringing Order to Practical Validation of Database Isolation Levels".
//!
//! A certificate is a complete version order, given or revealed by lists, and a snapshot for each predicate. [`check`]
//! builds Adya's serialization graph from it and looks for the cycles that a level forbids. Nothing is searched: a refuted
//! certificate does not say that no other one exists.

mod along;
mod check;
mod error;
mod explain;
mod graph;
mod interval;
#[cfg(test)]
mod mutants;
mod predicates;
mod query;
mod reads;
mod rowindex;
mod rules;
mod snapshot;
mod sweep;
#[cfg(test)]
mod tests;
mod versions;
mod windows;

pub use along::along;
pub use check::{PlAnswer, RecordedStats, check};
pub use error::AdyaError;
