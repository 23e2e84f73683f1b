//! Cases with a plain reason: the two writers are ordered anyway, so only one order of their writes is possible.
//!
//! A proof splits on such a pair like on any other; a story need not.

use crate::model::{KeyId, TxnId};
use crate::verdict::{Fact, Step, StepReason};

/// The steps that order `first` before `second` without any assumption, where a cycle refutes the opposite order of their
/// writes of a key by nothing else.
pub(super) fn direct_order(
    cycle: Option<&[Step]>,
    key: KeyId,
    first: TxnId,
    second: TxnId,
) -> Option<Vec<Step>> {
    let steps = cycle?;
    let is_assumed = |step: &Step| {
        matches!(
            step.reason,
            StepReason::Ww {
                fact: Fact::Assumed,
                ..
            } | StepReason::Rw {
                fact: Fact::Assumed,
                ..
            }
        )
    };
    let at = steps.iter().position(is_assumed)?;
    let back = StepReason::Ww {
        key,
        fact: Fact::Assumed,
    };
    let step = steps[at];
    if step.reason != back || (step.from.txn, step.to.txn) != (second, first) {
        return None;
    }
    let mut path = steps.to_vec();
    path.rotate_left(at);
    path.remove(0);
    (!path.iter().any(is_assumed)).then_some(path)
}
