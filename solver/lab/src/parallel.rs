//! Parallel snapshot isolation, as its engines ask for it.

use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::History;

/// Whether parallel snapshot isolation holds; `None` where there is too much to try.
pub fn hold(history: &History, session_order: bool) -> Option<bool> {
    let spec = Spec {
        model: Model::Psi,
        session_order,
        real_time: None,
    };
    super::oracle::holds(history, spec)
}

pub use hold as hold_by_graph;
pub use hold as hold_by_sources;
