//! The weak levels by brute force, as engines of weak levels ask for them.

use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::{History, TxnId};

/// Whether a history satisfies a weak level; `None` where there is too much to try.
pub fn holds(history: &History, spec: Spec) -> Option<bool> {
    holds_each(history, spec.session_order, &|_| spec.model)
}

/// Whether a history satisfies the level of each of its transactions; `None` where there is too much to try.
pub fn holds_each(
    history: &History,
    session_order: bool,
    model: &dyn Fn(TxnId) -> Model,
) -> Option<bool> {
    let spec = Spec {
        model: Model::Mixed,
        session_order,
        real_time: None,
    };
    super::holds_each(history, spec, model)
}
