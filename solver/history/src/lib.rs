//! Plain data that every part shares: what clients saw ([`model`]), what was promised ([`level`]), the answer and its
//! evidence ([`verdict`]), how long a check may take ([`budget`]), and who listens ([`progress`]).
//!
//! This crate is below all others. Crates that must not know each other share only it.

pub mod budget;
pub mod level;
pub mod model;
pub mod operations;
pub mod progress;
pub mod rng;
pub mod verdict;
