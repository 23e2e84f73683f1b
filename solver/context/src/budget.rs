//! The limits of a check in time and memory, and the reasons for stopping.
//!
//! Work polls the budget; another thread watches the process. Time is read by [`Budget::check`] itself. The interrupt flag and the
//! verdict on memory are raised from outside ([`Budget::exhaust`]), so that polling stays cheap.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Why a check ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StopReason {
    /// The time limit passed.
    Time(Duration),
    /// A structure that would exceed the limit was not allocated.
    Memory {
        /// What was to be allocated.
        what: &'static str,
        /// Its size in bytes.
        needed: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The process itself grew over the memory limit.
    Resident {
        /// Its resident size in bytes when that was noticed.
        resident: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// The caller or the user asked it to stop.
    Interrupted,
    /// The back end gave up, with its reason.
    Backend(String),
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Time(limit) => {
                write!(f, "the time limit of {} s passed", limit.as_secs_f64())
            }
            StopReason::Memory {
                what,
                needed,
                limit,
            } => write!(
                f,
                "{what} would take {} MB, over the memory limit of {} MB",
                needed >> 20,
                limit >> 20
            ),
            StopReason::Resident { resident, limit } if resident <= limit => write!(
                f,
                "the process takes {} MB, and other processes take nearly all the rest of the memory",
                resident >> 20
            ),
            StopReason::Resident { resident, limit } => write!(
                f,
                "the process takes {} MB, over the memory limit of {} MB",
                resident >> 20,
                limit >> 20
            ),
            StopReason::Interrupted => f.write_str("interrupted"),
            StopReason::Backend(why) => f.write_str(why),
        }
    }
}

/// The limits of one check. Cheap to clone; clones share the interrupt flag and the memory verdict.
#[derive(Clone, Debug)]
pub struct Budget {
    deadline: Option<(Instant, Duration)>,
    memory: Option<u64>,
    interrupted: Arc<AtomicBool>,
    /// The resident size found to be over the limit, or 0.
    resident: Arc<AtomicU64>,
}

/// Polls a budget once per number of steps of a loop, for steps of a few nanoseconds.
#[derive(Debug)]
pub struct Poll<'a> {
    budget: &'a Budget,
    steps: u32,
}

impl Poll<'_> {
    /// The clock is read once per this many steps.
    const EVERY: u32 = 1 << 12;

    /// The budget.
    pub fn budget(&self) -> &Budget {
        self.budget
    }

    /// One step; returns whether work may continue.
    #[inline]
    pub fn step(&mut self) -> Result<(), StopReason> {
        self.steps += 1;
        if self.steps < Self::EVERY {
            return Ok(());
        }
        self.steps = 0;
        self.budget.check()
    }
}

impl Budget {
    /// No limits.
    pub fn unlimited() -> Self {
        Budget {
            deadline: None,
            memory: None,
            interrupted: Arc::new(AtomicBool::new(false)),
            resident: Arc::new(AtomicU64::new(0)),
        }
    }

    /// Stops this long after `start`.
    #[must_use]
    pub fn with_timeout(mut self, start: Instant, limit: Duration) -> Self {
        self.deadline = start.checked_add(limit).map(|at| (at, limit));
        self
    }

    /// The same, for at most this long from now.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        let own = Instant::now().checked_add(limit).map(|at| (at, limit));
        let ends = [self.deadline, own].into_iter().flatten();
        Budget {
            deadline: ends.min_by_key(|it| it.0),
            ..self.clone()
        }
    }

    /// Refuses to allocate structures over this many bytes. The watcher of the process calls [`Budget::exhaust`] if it
    /// grows over the limit anyway.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Stops when this flag becomes true.
    #[must_use]
    pub fn with_interrupt(mut self, flag: Arc<AtomicBool>) -> Self {
        self.interrupted = flag;
        self
    }

    /// Whether work may continue. Call it at least once per second of work.
    pub fn check(&self) -> Result<(), StopReason> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(StopReason::Interrupted);
        }
        let resident = self.resident.load(Ordering::Relaxed);
        if resident > 0 {
            let limit = self.memory.unwrap_or(0);
            return Err(StopReason::Resident { resident, limit });
        }
        match self.deadline {
            Some((at, limit)) if Instant::now() >= at => Err(StopReason::Time(limit)),
            _ => Ok(()),
        }
    }

    /// For loops whose steps are short.
    pub fn poll(&self) -> Poll<'_> {
        Poll {
            budget: self,
            steps: 0,
        }
    }

    /// Stops everything that has a clone of this budget, because the process takes this many bytes.
    pub fn exhaust(&self, resident: u64) {
        self.resident.store(resident.max(1), Ordering::Relaxed);
    }

    /// The memory limit in bytes, if there is one.
    pub fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Whether a structure of this size may be allocated.
    pub fn reserve(&self, what: &'static str, needed: u64) -> Result<(), StopReason> {
        match self.memory {
            Some(limit) if needed > limit => Err(StopReason::Memory {
                what,
                needed,
                limit,
            }),
            _ => Ok(()),
        }
    }

    /// The time left, if there is a limit.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline
            .map(|(at, _)| at.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_clone_learns_that_memory_is_exhausted() {
        let budget = Budget::unlimited().with_memory(1 << 20);
        let clone = budget.clone();
        assert_eq!(clone.check(), Ok(()));
        budget.exhaust(3 << 20);
        let reason = clone.check().expect_err("the process is too large");
        assert_eq!(
            reason.to_string(),
            "the process takes 3 MB, over the memory limit of 1 MB"
        );
        let budget = Budget::unlimited().with_memory(4 << 20);
        budget.exhaust(3 << 20);
        let words = budget.check().expect_err("others took it").to_string();
        assert!(words.contains("other processes"), "{words}");
    }

    #[test]
    fn a_poll_looks_at_the_budget_within_a_few_thousand_steps() {
        let budget = Budget::unlimited().with_timeout(Instant::now(), Duration::ZERO);
        let mut poll = budget.poll();
        let stopped = (0..10_000).find_map(|_| poll.step().err());
        assert_eq!(stopped, Some(StopReason::Time(Duration::ZERO)));
    }
}
