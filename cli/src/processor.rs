//! The processor time of the process, and of each phase of a check.

use kingsnake_solver::progress::{Phase, Progress, ProgressEvent};

/// Processor seconds of all threads so far; `None` if the system does not report them.
#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere there is none.
pub fn seconds() -> Option<f64> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(spent.tv_sec as f64 + spent.tv_nsec as f64 * 1e-9)
}

/// Processor seconds of all threads so far; `None` if the system does not report them.
#[cfg(not(unix))]
pub fn seconds() -> Option<f64> {
    None
}

/// Records the processor time at the beginning of each phase.
#[derive(Debug, Default)]
pub struct Marks {
    begun: Vec<(Phase, f64)>,
}

impl Marks {
    /// A phase begins; the last one ends.
    pub fn begin(&mut self, phase: Phase) {
        self.begun.extend(seconds().map(|so_far| (phase, so_far)));
    }

    /// The time of each phase; phases with several parts are summed.
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

/// Passes progress on and records beginnings of phases in [`Marks`].
pub struct Metered<'a> {
    /// The recorder.
    pub marks: &'a mut Marks,
    /// The other listener.
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
