//! An estimate of what is left of a study.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::cell::Cell;
use crate::conduct::tell;
use crate::error::Result;
use crate::listener::{StudyEvent, StudyListener};
use crate::row::Row;
use crate::words;

/// Reports each row with what is left.
pub struct StudyProgress {
    begun: Instant,
    estimate: Estimate,
    jobs: usize,
}

impl StudyProgress {
    /// Begins now, with this many cells at a time.
    pub fn new(estimate: Estimate, jobs: usize) -> StudyProgress {
        StudyProgress {
            begun: Instant::now(),
            estimate,
            jobs,
        }
    }

    /// How many cells wait.
    pub fn n_waiting(&self) -> usize {
        let waiting = self.estimate.waiting.values();
        waiting.fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// A cell has its row.
    pub fn ended(&mut self, cell: Cell, row: &Row, listener: &mut dyn StudyListener) -> Result<()> {
        self.estimate.ended(cell.point, row.wall_seconds);
        let left = self.estimate.left() / self.jobs as f64;
        let event = StudyEvent::Ended {
            history: &row.history,
            row: &words::row(row),
            gone: self.begun.elapsed(),
            left: Duration::try_from_secs_f64(left).unwrap_or_default(),
        };
        tell(listener, event)
    }
}

/// How long the cells still take: as long as others of the same point did, or else as long as all did on average.
#[derive(Debug, Default)]
pub struct Estimate {
    waiting: HashMap<usize, usize>,
    known: HashMap<usize, (f64, usize)>,
}

impl Estimate {
    /// This many cells of this point wait.
    pub fn wait(&mut self, point: usize, n_cells: usize) {
        *self.waiting.entry(point).or_default() += n_cells;
    }

    /// A cell of this point took this long, in this run or an earlier one.
    pub fn took(&mut self, point: usize, seconds: f64) {
        let (sum, n) = self.known.entry(point).or_default();
        *sum += seconds;
        *n += 1;
    }

    /// A waiting cell of this point has ended after this many seconds.
    pub fn ended(&mut self, point: usize, seconds: f64) {
        if let Some(n) = self.waiting.get_mut(&point) {
            *n = n.saturating_sub(1);
        }
        self.took(point, seconds);
    }

    /// Seconds left, were the cells to run one after the other.
    pub fn left(&self) -> f64 {
        let (sum, n) = self
            .known
            .values()
            .fold((0.0, 0), |(sum, n), (s, m)| (sum + s, n + m));
        let mean = if n == 0 { 0.0 } else { sum / n as f64 };
        let each = |(point, &n): (&usize, &usize)| {
            let one = self
                .known
                .get(point)
                .map_or(mean, |&(sum, n)| sum / n as f64);
            one * n as f64
        };
        self.waiting.iter().map(each).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_takes_as_long_as_its_like() {
        let mut estimate = Estimate::default();
        for (point, n_cells) in [(0, 2), (1, 1), (2, 1)] {
            estimate.wait(point, n_cells);
        }
        assert!(estimate.left().abs() < 1e-9);
        estimate.ended(0, 2.0);
        // One more of the same, and two of which nothing is known.
        assert!((estimate.left() - 6.0).abs() < 1e-9);
        estimate.ended(1, 8.0);
        assert!((estimate.left() - (2.0 + 5.0)).abs() < 1e-9);
    }
}
