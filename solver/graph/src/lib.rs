//! SAT modulo acyclicity: can everything open be decided so that the graph has no cycle?
//!
//! A [`Problem`] is nodes, known edges, two-sided orders and logic over guarded edges. [`prune`] decides what
//! reachability settles, a [`decide::Backend`] the rest. Nothing here knows a history, a transaction or a level.

mod components;
pub mod cool;
pub mod decide;
mod edge;
mod flat;
pub mod heuristic;
mod logic;
mod orders;
pub mod paths;
mod problem;
pub mod prune;
pub mod reach;
mod rings;
pub mod session;
pub mod session_graph;
pub mod sort;
pub mod witness;

pub use components::{Components, components};
pub use edge::{Edge, Reason};
pub use flat::FlatGraph;
pub use logic::{Guarded, Literal, Logic};
pub use orders::{Orders, Run, RunOf};
pub use problem::Problem;
