//! How much processor time the process has used, and what each phase of a check has.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use kingsnake_report::answer::{Cost, PhaseCost};
use kingsnake_solver::progress::{Phase, Progress, ProgressEvent};

use crate::memory;

/// What earlier checks of this process used, in nanoseconds.
static EARLIER: AtomicU64 = AtomicU64::new(0);

/// Counts anew.
pub fn forget() {
    EARLIER.store(nanoseconds().unwrap_or(0), Ordering::Relaxed);
}

/// Seconds of all threads together so far; `None` where the system does not tell.
pub fn seconds() -> Option<f64> {
    let earlier = EARLIER.load(Ordering::Relaxed);
    Some(nanoseconds()?.saturating_sub(earlier) as f64 * 1e-9)
}

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps)] // Elsewhere there is none.
fn nanoseconds() -> Option<u64> {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64)
}

#[cfg(not(unix))]
fn nanoseconds() -> Option<u64> {
    None
}

/// Notes what the check has cost since it began; memory only where some output tells it, because asking for it takes time.
pub fn settle(cost: &mut Cost, start: Instant, with_memory: bool) {
    cost.time = start.elapsed();
    cost.cpu_seconds = seconds();
    cost.peak_memory = with_memory.then(memory::peak).flatten();
}

/// Processor time and memory, at the beginning of a phase or at the end of the last one.
#[derive(Clone, Copy, Debug)]
struct Mark {
    seconds: Option<f64>,
    peak: Option<u64>,
}

/// Notes what was used at every beginning of a phase.
#[derive(Debug)]
pub struct Marks {
    begun: Vec<(Phase, Mark)>,
    /// Whether memory is noted too: asking for it takes as long as a phase of a small history.
    with_memory: bool,
}

impl Marks {
    /// None yet.
    pub fn new(with_memory: bool) -> Self {
        let begun = Vec::new();
        Marks { begun, with_memory }
    }

    /// A phase begins, and the last one ends.
    pub fn begin(&mut self, phase: Phase) {
        self.begun.push((phase, self.now()));
    }

    fn now(&self) -> Mark {
        Mark {
            seconds: seconds(),
            peak: self.with_memory.then(memory::peak).flatten(),
        }
    }

    /// What each phase has used; one that came in several parts is there once.
    pub fn spent(&self) -> Vec<PhaseCost> {
        let ends = self.begun.iter().skip(1).map(|it| it.1);
        let mut all: Vec<PhaseCost> = Vec::new();
        for ((phase, begin), end) in self.begun.iter().zip(ends.chain([self.now()])) {
            let seconds = end
                .seconds
                .zip(begin.seconds)
                .map(|(end, begin)| end - begin);
            let known = all.iter_mut().find(|it| it.name == phase.name());
            if let Some(known) = known {
                known.seconds = known.seconds.zip(seconds).map(|(sum, more)| sum + more);
                known.peak = end.peak;
            } else {
                all.push(PhaseCost {
                    name: phase.name(),
                    seconds,
                    peak: end.peak,
                });
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
