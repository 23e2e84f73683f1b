//! Plain data that every part shares: what clients saw ([`model`]), what was promised ([`level`], [`promise`]), the answer and its
//! evidence ([`verdict`]), how long a check may take ([`budget`]), and who listens ([`progress`]).
//!
//! Only the context of a run is below this crate. Crates that must not depend on each other share only these two.

pub mod adya;
pub mod definition;
pub mod lattice;
pub mod level;
pub mod model;
pub mod operations;
pub mod promise;
pub mod verdict;

pub use kingsnake_context::{budget, progress, rng};
