//! How a watch goes, once per second: a line on a terminal, JSON lines, and what the live page shows.

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
    /// How far the watermark is behind the latest time of the log.
    pub lag_seconds: f64,
    pub retained: usize,
    pub open: usize,
    pub keys: usize,
    pub memory_bytes: u64,
    /// No later line changes what was said of begins below this.
    pub final_up_to: Option<i64>,
    pub verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
}

/// What was told last, for the page.
pub type SharedFigures = Arc<Mutex<Vec<WatchFigures>>>;

/// Tells the figures.
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

    /// Tells how it goes, if a second has passed or the words are the last.
    pub fn tell(
        &mut self,
        is_last: bool,
        figures: impl FnOnce() -> WatchFigures,
    ) -> io::Result<()> {
        let since = self.last.elapsed();
        if since < EVERY && !is_last {
            return Ok(());
        }
        let mut now = figures();
        now.seconds = self.start.elapsed().as_secs_f64();
        now.memory_bytes = memory::resident().unwrap_or(0);
        let (n_txns, time) = if is_last {
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
        if shared.len() >= 120 {
            shared.remove(0);
        }
        shared.push(now);
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
