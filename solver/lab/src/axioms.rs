//! Levels of their own, as engines of mixed levels ask for them.

use kingsnake_history::level::Model;
use kingsnake_history::model::{History, TxnId};

/// Whether the levels hold; `None` where there is too much to try.
pub fn hold(
    history: &History,
    session_order: bool,
    model: &dyn Fn(TxnId) -> Model,
) -> Option<bool> {
    super::oracle::weak::holds_each(history, session_order, model)
}
