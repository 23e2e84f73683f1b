//! What a history means, from the operations that clients saw to a verdict that anyone can check again.
//!
//! The phases, in order, each consuming what the last one made: [`model`] → [`resolve`] → [`relate`] → [`prune`] →
//! [`decide`] → [`certify`]; `kingsnake-refute` makes the proof of a violation, and `kingsnake-tell` its words. From [`relate`] to [`decide`] everything is about graphs (`kingsnake-graph`).
//! No GPU and no C++ here: the engines of other crates implement that crate's traits.

#[cfg(test)]
mod agreement;
#[cfg(test)]
mod assumptions;
pub mod auto;
pub mod check;
mod context;
mod ends;
mod expected;
pub mod linearizable;
#[cfg(test)]
mod mixed;
#[cfg(test)]
mod mutants;
pub mod phases;
mod promised;
mod psi;
mod report;
pub mod shared;
mod sight;
mod solve;
mod techniques;
pub mod tight;
mod weak;

pub use context::Context;
pub use kingsnake_certify as certify;
pub use kingsnake_graph::{decide, heuristic, session_graph, witness};
pub use kingsnake_history::{
    budget, definition, lattice, level, model, progress, promise, verdict,
};
pub use kingsnake_relate::{assume, prune, relate, resolve};
pub use promised::check_promise;

/// Problems that do not come from a history.
pub mod problem {
    pub use kingsnake_graph::Problem;
    pub use kingsnake_graph::prune::{Outcome, Pruned, prune};
}
