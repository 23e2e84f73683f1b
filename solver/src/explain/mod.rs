//! From "no" to a counterexample that is short, can be checked again, and can be read.
//!
//! [`refute`] and [`refute_core`] find a proof; everything else here only words, names and draws proofs.

mod arena;
mod closure;
mod cycles;
mod gather;
mod known;
mod order;
mod prove;
mod reach;
mod refute;
mod shrink;
mod world;

pub use refute::{refute, refute_core};
