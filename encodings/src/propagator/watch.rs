//! Shared state of the callbacks and their thread: the budget, the reason for stopping, progress.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use cadical_sys::Terminator;
use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::ProgressEvent;

/// Interval between two progress reports.
const EVERY: Duration = Duration::from_millis(100);

/// Polls the budget between callbacks, and remembers its answer.
pub(crate) struct Watch {
    budget: Budget,
    reason: RefCell<Option<StopReason>>,
    finished: Cell<bool>,
    events: Option<Sender<ProgressEvent>>,
    told: Cell<Instant>,
}

impl Watch {
    pub fn new(budget: Budget, events: Option<Sender<ProgressEvent>>) -> Rc<Watch> {
        Rc::new(Watch {
            budget,
            reason: RefCell::new(None),
            finished: Cell::new(false),
            events,
            told: Cell::new(Instant::now()),
        })
    }

    /// Whether the search should end: the budget has, or [`Watch::finish`] was called.
    pub fn over(&self) -> bool {
        if self.finished.get() {
            return true;
        }
        if let Err(reason) = self.budget.check() {
            self.reason.replace(Some(reason));
            self.finished.set(true);
        }
        self.finished.get()
    }

    /// The budget, for work that asks it by itself.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Whether the search was told to end, without asking the budget.
    #[inline]
    pub fn finished(&self) -> bool {
        self.finished.get()
    }

    /// Ends the search: there is nothing left to find.
    pub fn finish(&self) {
        self.finished.set(true);
    }

    /// Why the budget ended the search, if it did.
    pub fn reason(&self) -> Option<StopReason> {
        self.reason.borrow().clone()
    }

    /// Reports the progress of the search from time to time.
    pub fn tell(&self, event: impl FnOnce() -> ProgressEvent) {
        if let Some(events) = &self.events
            && self.told.get().elapsed() >= EVERY
        {
            self.told.set(Instant::now());
            // The receiver may be gone, which is no reason to stop.
            let _ = events.send(event());
        }
    }
}

/// The solver's query whether to continue.
pub(crate) struct Stop(pub Rc<Watch>);

impl Terminator for Stop {
    fn terminated(&mut self) -> bool {
        self.0.over()
    }
}
