//! From "no" to a counterexample that is short, can be checked again, and can be read.
//!
//! [`refute`] and [`refute_core`] find a proof; everything else here only names and words proofs.

mod absent;
mod anomalies;
mod arena;
mod classes;
mod closure;
mod components;
mod cycles;
mod direct;
mod effort;
mod findings;
mod gather;
mod involved;
mod known;
mod labels;
mod lemmas;
mod name;
mod order;
mod prove;
mod reach;
mod refute;
mod relations;
mod shrink;
mod story;
mod walk;
mod words;
mod world;

pub use anomalies::{Anomalies, AnomalyClass, anomalies, local_class, widest_spec};
pub use labels::Labels;
pub use name::{AnomalyName, local_name, name, name_by};
pub use refute::{NoProof, refute, refute_core};
pub use story::{Line, Story, story, story_by};
