//! What a history means, from the operations that clients saw to a verdict that anyone can check again.
//!
//! The phases, in order, each consuming what the last one made: [`model`] → [`resolve`] → [`polygraph`] → [`prune`] →
//! [`decide`] → [`certify`] → [`explain`]. No GPU and no C++ here: the engines of other crates implement this crate's traits.

#[cfg(test)]
mod agreement;
pub mod auto;
pub mod check;
pub mod decide;
pub mod explain;
#[cfg(test)]
mod fault;
pub mod heuristic;
pub mod linearizable;
pub mod polygraph;
pub mod prune;
pub mod resolve;
pub mod session_graph;
pub mod shared;
pub mod witness;

pub use kingsnake_certify as certify;
pub use kingsnake_history::{budget, level, model, progress, verdict};
