//! The rules of the clock, of the register and of the cache. [`ExactRules`] are right; tests break one rule at a time,
//! and the comparison with brute force must notice.

use crate::operations::{NONE, Operation};
use crate::zones::Version;

/// The rules, each as it should be.
pub(crate) trait Rules {
    /// Whether what ended at one time was over when something began.
    #[inline]
    fn is_over(end: i64, begin: i64) -> bool {
        end < begin
    }

    /// Whether an operation that took effect shows that the writer of what it read did, too.
    #[inline]
    fn shows_writer(op: &Operation) -> bool {
        op.read != NONE
    }

    /// Of the readers of a version, and then of its writer, who ended first and who started last.
    #[inline]
    fn extremes(version: &Version) -> [(u32, u32); 2] {
        let (writer, readers) = (version.writer, (version.first_end, version.last_start));
        [readers, (writer, writer)]
    }

    /// Whether a block that must come before the block of the initial value leaves no order.
    #[inline]
    fn initial_is_first() -> bool {
        true
    }

    /// Whether two blocks precede each other, by their zones: the least end and the greatest start. The first is forward.
    #[inline]
    fn collide(one: (i64, i64), other: (i64, i64)) -> bool {
        other.0 < one.1 && one.0 < other.1
    }

    /// Whether the register's value allows what an operation read.
    #[inline]
    fn allows(state: u32, op: &Operation) -> bool {
        op.read == NONE || op.read == state || op.read_too == state
    }

    /// What the cache keeps of a configuration.
    #[inline]
    fn cached(taken: u128, state: u32) -> (u128, u32) {
        (taken, state)
    }
}

/// The rules as they are.
pub(crate) struct ExactRules;

impl Rules for ExactRules {}
