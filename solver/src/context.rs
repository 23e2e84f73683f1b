//! What every phase of a check gets besides its input: the budget, a clock, a progress listener, and the statistics.

use std::time::Instant;

use crate::budget::{Budget, StopReason};
use crate::progress::{Phase, Progress, ProgressEvent};
use crate::report::CheckStats;

/// Passed through the phases of one check.
pub struct Context<'a> {
    /// The limits of the check.
    pub budget: &'a Budget,
    /// Who listens.
    pub progress: &'a mut dyn Progress,
    /// The statistics so far.
    pub stats: CheckStats,
    current: Option<(Phase, Instant)>,
}

impl<'a> Context<'a> {
    /// No phase has begun.
    pub fn new(budget: &'a Budget, progress: &'a mut dyn Progress) -> Self {
        Context {
            budget,
            progress,
            stats: CheckStats::default(),
            current: None,
        }
    }

    /// Ends the previous phase and begins another, if there is time left.
    pub fn begin(&mut self, phase: Phase) -> Result<(), StopReason> {
        self.budget.check()?;
        self.go_on(phase);
        Ok(())
    }

    /// Ends the previous phase and begins another that finishes an answer, even if the time is used up.
    pub fn go_on(&mut self, phase: Phase) {
        self.leave();
        self.current = Some((phase, Instant::now()));
        self.progress.event(ProgressEvent::Phase(phase));
    }

    fn leave(&mut self) {
        if let Some((phase, start)) = self.current.take() {
            self.stats.phases.push((phase.name(), start.elapsed()));
        }
    }

    /// Ends the last phase; returns the statistics.
    pub fn finish(mut self) -> CheckStats {
        self.leave();
        self.stats
    }
}
