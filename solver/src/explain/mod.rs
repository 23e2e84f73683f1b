//! From "no" to a counterexample that is short, can be checked again, and can be read.
//!
//! [`refute`] and [`refute_core`] find a proof; everything else here only words, names and draws proofs.

mod arena;
mod closure;
mod cycles;
mod direct;
mod findings;
mod gather;
mod involved;
mod known;
mod labels;
mod lanes;
mod name;
mod order;
mod prove;
mod reach;
mod refute;
mod shrink;
mod story;
mod words;
mod world;

pub use labels::Labels;
pub use lanes::{Arrow, Lanes, lanes};
pub use name::{AnomalyName, local_name, name};
pub use refute::{refute, refute_core};
pub use story::{Line, Story, story};
