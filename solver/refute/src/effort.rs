//! The remaining work for explaining: a number of steps, within the budget of the check.

use crate::budget::{Budget, StopReason};

/// The budget is checked once per this much work: some milliseconds.
const BETWEEN: u64 = 1 << 20;

/// Why a search was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spent {
    /// Its work is used up; a cheaper search may be tried.
    Work,
    /// The budget of the check ended.
    Budget(StopReason),
}

/// The remaining work.
#[derive(Clone, Debug)]
pub(super) struct Effort<'b> {
    left: u64,
    is_spent: bool,
    until_check: u64,
    budget: &'b Budget,
}

impl<'b> Effort<'b> {
    /// This much work within a budget.
    pub(super) fn new(work: u64, budget: &'b Budget) -> Self {
        Effort {
            left: work,
            is_spent: false,
            until_check: BETWEEN,
            budget,
        }
    }

    /// As much work as the budget allows.
    pub(super) fn unlimited(budget: &'b Budget) -> Self {
        Effort::new(u64::MAX, budget)
    }

    /// Counts some work; an error if none is left.
    #[inline]
    pub(super) fn spend(&mut self, work: u64) -> Result<(), Spent> {
        let Some(left) = self.left.checked_sub(work) else {
            self.is_spent = true;
            return Err(Spent::Work);
        };
        self.left = left;
        if let Some(left) = self.until_check.checked_sub(work) {
            self.until_check = left;
            return Ok(());
        }
        self.until_check = BETWEEN;
        let stopped = self.budget.check();
        self.is_spent |= stopped.is_err();
        stopped.map_err(Spent::Budget)
    }

    /// Whether some work was refused.
    pub(super) fn is_spent(&self) -> bool {
        self.is_spent
    }
}
