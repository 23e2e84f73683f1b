//! How much processor time the process has used, and each phase of a check.

use std::time::Instant;

use kingsnake_report::Cost;
use kingsnake_solver::progress::{Phase, Progress, ProgressEvent};

use crate::memory;

/// Notes what the process has cost since it began.
pub fn settle(cost: &mut Cost, start: Instant) {
    cost.time = start.elapsed();
    cost.cpu_seconds = seconds();
    cost.peak_memory = memory::peak();
}

/// Seconds of all threads together so far; `None` where the system does not tell.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere there is none.
pub fn seconds() -> Option<f64> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9)
}

/// Seconds of all threads together so far; `None` where the system does not tell.
#[cfg(not(unix))]
pub fn seconds() -> Option<f64> {
    None
}

/// Notes the processor time at every beginning of a phase.
#[derive(Debug, Default)]
pub struct Marks {
    begun: Vec<(Phase, f64)>,
}

impl Marks {
    /// A phase begins, and the last one ends.
    pub fn begin(&mut self, phase: Phase) {
        self.begun.extend(seconds().map(|so_far| (phase, so_far)));
    }

    /// What each phase has used; one that came in several parts is there once.
    pub fn spent(&self) -> Vec<(&'static str, f64)> {
        let ends = self.begun.iter().skip(1).map(|(_, end)| *end);
        let mut all: Vec<(&'static str, f64)> = Vec::new();
        for ((phase, begin), end) in self.begun.iter().zip(ends.chain(seconds())) {
            match all.iter_mut().find(|(name, _)| *name == phase.name()) {
                Some((_, sum)) => *sum += end - begin,
                None => all.push((phase.name(), end - begin)),
            }
        }
        all
    }
}

/// Listens for beginnings of phases on behalf of [`Marks`], and passes everything on.
pub struct Metered<'a> {
    /// Who takes note.
    pub marks: &'a mut Marks,
    /// Who else listens.
    pub inner: &'a mut dyn Progress,
}

impl Progress for Metered<'_> {
    fn event(&mut self, event: ProgressEvent) {
        if let ProgressEvent::Phase(phase) = event {
            self.marks.begin(phase);
        }
        self.inner.event(event);
    }
}
