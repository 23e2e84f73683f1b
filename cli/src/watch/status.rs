//! The progress of a watch, once per second: a line on a terminal, JSON lines, and the data of the live page.

use std::collections::VecDeque;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::memory;
use crate::voice::{grouped, say, sized};

const EVERY: Duration = Duration::from_secs(1);

/// The figures of a moment.
#[derive(Clone, Debug, Default, Serialize)]
pub struct WatchFigures {
    /// `status`, or what ended it.
    pub watch: &'static str,
    pub seconds: f64,
    pub transactions: u64,
    pub per_second: f64,
    /// Distance of the watermark from the latest time of the log.
    pub lag_seconds: f64,
    pub retained: usize,
    pub open: usize,
    pub keys: usize,
    pub memory_bytes: u64,
    /// No later line changes the judgement of begins below this.
    pub final_up_to: Option<i64>,
    pub verdict: &'static str,
    /// Whether anything was discarded.
    pub is_partial: bool,
}

/// The data of the page, and which clients have it.
#[derive(Default)]
pub struct ShownFigures {
    pub lately: VecDeque<WatchFigures>,
    /// The text of the last violation.
    pub story: Option<String>,
    pub asked: Option<Instant>,
    pub is_end_shown: bool,
}

impl ShownFigures {
    /// How many figures are shown.
    pub const LONGEST: usize = 120;

    /// Whether these are the last figures.
    pub fn is_ended(&self) -> bool {
        self.lately.back().is_some_and(|it| it.watch == "end")
    }
}

pub type SharedFigures = Arc<Mutex<ShownFigures>>;

/// Why figures are printed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Occasion {
    /// Once a second has passed.
    Due,
    /// Something happened.
    Now,
    /// Nothing follows.
    End,
}

/// Reports the figures.
pub struct StatusTeller {
    start: Instant,
    last: Instant,
    n_last: u64,
    bar: ProgressBar,
    json: bool,
    pub shared: SharedFigures,
}

impl StatusTeller {
    pub fn new(quiet: bool, json: bool) -> Self {
        let target = if quiet || json || !io::stderr().is_terminal() {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        StatusTeller {
            start: Instant::now(),
            last: Instant::now(),
            n_last: 0,
            bar,
            json,
            shared: SharedFigures::default(),
        }
    }

    /// Reports the progress.
    pub fn tell(
        &mut self,
        occasion: Occasion,
        figures: impl FnOnce() -> WatchFigures,
    ) -> io::Result<()> {
        let since = self.last.elapsed();
        if since < EVERY && occasion == Occasion::Due {
            return Ok(());
        }
        let mut now = figures();
        now.seconds = self.start.elapsed().as_secs_f64();
        now.memory_bytes = memory::resident().unwrap_or(0);
        now.watch = if occasion == Occasion::End {
            "end"
        } else {
            "status"
        };
        let (n_txns, time) = if occasion == Occasion::End {
            (now.transactions, now.seconds)
        } else {
            (now.transactions - self.n_last, since.as_secs_f64())
        };
        now.per_second = (n_txns as f64 / time.max(1e-9)).round();
        (self.last, self.n_last) = (Instant::now(), now.transactions);
        if self.json {
            say(&format!(
                "{}\n",
                serde_json::to_string(&now).unwrap_or_default()
            ))?;
        } else {
            self.bar.set_message(words(&now));
            self.bar.tick();
        }
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if shared.lately.len() >= ShownFigures::LONGEST {
            shared.lately.pop_front();
        }
        shared.lately.push_back(now);
        Ok(())
    }

    /// Clears the line.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// The figures as one line.
pub fn words(now: &WatchFigures) -> String {
    format!(
        "{} transactions, {} per second, lag {:.2} s, {} retained, {} keys, {}",
        grouped(now.transactions),
        grouped(now.per_second as u64),
        now.lag_seconds,
        grouped(now.retained as u64),
        grouped(now.keys as u64),
        sized(now.memory_bytes),
    )
}
