//! From "no" to a proof that is short and can be checked again.
//!
//! [`refute`] takes a contradiction that pruning found, [`refute_core`] a core that a back end found. [`every_cycle`] finds the cycles
//! of every class. Nothing here names or words what it finds: that is `kingsnake-tell`.

mod absent;
mod arena;
mod classes;
mod closure;
mod cycles;
mod effort;
mod every;
mod gather;
mod known;
mod lemmas;
mod order;
mod prove;
mod reach;
mod refute;
mod relations;
mod rivals;
mod shrink;
mod stated;
mod steps;
mod walk;
mod world;

pub use every::{every_cycle, widest_spec};
pub use refute::{NoProof, refute, refute_case, refute_core};
pub use steps::Steps;

use kingsnake_graph::decide;
use kingsnake_history::{budget, level, model, verdict};
use kingsnake_relate::{prune, relate, resolve};
