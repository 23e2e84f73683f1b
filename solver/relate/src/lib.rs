//! From a history to a graph problem: [`resolve`] finds the meaning of the reads, [`mod@relate`] which transactions the
//! level puts before which, and [`mod@prune`] keeps the meaning of the nodes while `kingsnake-graph` prunes the graph.

pub mod assume;
pub mod prune;
pub mod relate;
pub mod resolve;
pub mod visible;

use kingsnake_history::{budget, level, model, progress, verdict};
