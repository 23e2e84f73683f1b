//! From a history to a graph problem: [`resolve`] says what the reads mean, [`mod@relate`] which transactions the level puts before which,
//! and [`mod@prune`] keeps what the nodes stand for beside the graph while `kingsnake-graph` prunes it.

pub mod assume;
pub mod prune;
pub mod relate;
pub mod resolve;
pub mod visible;

use kingsnake_graph::decide;
use kingsnake_history::{budget, level, model, progress, verdict};
