//! How long and how large a check may become, and the word for having stopped.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Why a check ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// The time limit passed.
    Time(Duration),
    /// A structure would not have fitted; it was not allocated.
    Memory {
        /// What was to be allocated.
        what: &'static str,
        /// Its size in bytes.
        needed: u64,
        /// The limit in bytes.
        limit: u64,
    },
    /// Somebody asked it to stop.
    Interrupted,
    /// The back end says no, but no proof was found that could be checked again, so the no is withheld.
    Unexplained(usize),
    /// The back end gave up, and says why.
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
            StopReason::Interrupted => f.write_str("interrupted"),
            StopReason::Unexplained(core) => write!(
                f,
                "the back end finds that {core} constraints cannot all be met, but that could not be checked again"
            ),
            StopReason::Backend(why) => f.write_str(why),
        }
    }
}

/// The limits of one check. Cheap to clone; clones share the interrupt flag.
#[derive(Clone, Debug)]
pub struct Budget {
    deadline: Option<(Instant, Duration)>,
    memory: Option<u64>,
    interrupted: Arc<AtomicBool>,
}

impl Budget {
    /// No limits.
    pub fn unlimited() -> Self {
        Budget {
            deadline: None,
            memory: None,
            interrupted: Arc::new(AtomicBool::new(false)),
        }
    }

    /// Stops this long after `start`.
    #[must_use]
    pub fn with_timeout(mut self, start: Instant, limit: Duration) -> Self {
        self.deadline = start.checked_add(limit).map(|at| (at, limit));
        self
    }

    /// Refuses to allocate structures over this many bytes.
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

    /// Whether work may go on. Call it often enough that a second's work lies between two calls.
    pub fn check(&self) -> Result<(), StopReason> {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err(StopReason::Interrupted);
        }
        match self.deadline {
            Some((at, limit)) if Instant::now() >= at => Err(StopReason::Time(limit)),
            _ => Ok(()),
        }
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

    /// The time that is left, if there is a limit.
    pub fn remaining(&self) -> Option<Duration> {
        self.deadline
            .map(|(at, _)| at.saturating_duration_since(Instant::now()))
    }
}
