//! The rows of each point as a median and a spread.
//!
//! Invariant: a run without an answer counts as longer than any answer, so that a median over seeds is honest.

use kingsnake_context::rng::Rng;

use crate::cell::Cell;
use crate::design::Study;
use crate::recipe::Measure;
use crate::row::{Row, RowOutcome};

/// The rows of every point.
pub fn by_point<'a>(study: &Study, rows: &'a [(Cell, Row)]) -> Vec<Vec<&'a Row>> {
    let mut all = vec![Vec::new(); study.points.len()];
    for (cell, row) in rows {
        all[cell.point].push(row);
    }
    all
}

/// Seconds over several runs; infinite where a run gave no answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The shortest.
    pub low: f64,
    /// The one in the middle.
    pub median: f64,
    /// The longest.
    pub high: f64,
    /// How many.
    pub n: usize,
    /// Where the median lies with 95 % confidence, by bootstrap; the whole range of fewer than three runs.
    pub interval: (f64, f64),
    /// Runs far from the others.
    pub outliers: usize,
    /// Why the first of those without an answer has none.
    pub lacks: Option<RowOutcome>,
}

impl Spread {
    /// Whether the median run gave an answer.
    pub fn is_answered(&self) -> bool {
        self.median.is_finite()
    }
}

/// What a run took; `None` if the question does not arise because no solver was asked, if nothing was counted, or if
/// the device that was asked for did not compute.
///
/// What pruning left open is known also of a run whose solver gave no answer.
pub fn measured(row: &Row, measure: Measure) -> Option<f64> {
    let (stats, solver) = (&row.stats, row.stats.solver.as_ref());
    let is_answered = row.outcome == RowOutcome::Answered;
    if row.lacks_device() {
        return None;
    }
    match measure {
        Measure::Constraints => {
            let is_pruned = is_answered || !stats.rounds.is_empty();
            is_pruned.then_some(stats.open_constraints as f64)
        }
        Measure::Work => {
            let work = solver.map_or(0, |it| it.conflicts + it.decisions);
            is_answered.then_some(work as f64)
        }
        _ if !is_answered => Some(f64::INFINITY),
        Measure::Seconds | Measure::Both => Some(stats.seconds),
        Measure::Cpu => Some(stats.cpu_seconds.unwrap_or(stats.seconds)),
        Measure::Solver => solver.map(|it| it.encode_seconds + it.solve_seconds),
    }
}

/// What these runs took; `None` if there are none.
pub fn spread(rows: &[&Row], measure: Measure) -> Option<Spread> {
    let mut all: Vec<f64> = rows
        .iter()
        .filter_map(|row| measured(row, measure))
        .collect();
    all.sort_by(f64::total_cmp);
    Some(Spread {
        low: *all.first()?,
        median: median(&all)?,
        high: *all.last()?,
        n: all.len(),
        interval: interval(&all)?,
        outliers: outliers(&all),
        lacks: rows
            .iter()
            .map(|row| row.outcome)
            .find(|&outcome| outcome != RowOutcome::Answered),
    })
}

/// How often the runs are drawn again, and what lies outside the interval at each end.
const DRAWS: usize = 1000;
const OUTSIDE: usize = 25;

/// Where the median of sorted numbers lies with 95 % confidence: the middle of the medians of as many runs drawn from these with
/// replacement. The draws are the same every time, so that a page does not change by being drawn again.
fn interval(sorted: &[f64]) -> Option<(f64, f64)> {
    let n = sorted.len();
    if n < 3 {
        return Some((*sorted.first()?, *sorted.last()?));
    }
    let mut rng = Rng::new(0);
    let mut draw = || sorted[rng.below(n)];
    let mut medians: Vec<f64> = (0..DRAWS)
        .filter_map(|_| {
            let mut drawn: Vec<f64> = (0..n).map(|_| draw()).collect();
            drawn.sort_by(f64::total_cmp);
            median(&drawn)
        })
        .collect();
    medians.sort_by(f64::total_cmp);
    Some((medians[OUTSIDE], medians[DRAWS - 1 - OUTSIDE]))
}

/// Ten standard deviations, as hyperfine has it, by the median of the deviations from the median.
const FAR: f64 = 14.826;
/// A run this close is never an outlier, however close together the others are.
const NEAR: f64 = 0.1;

/// How many of these sorted numbers lie far from the others.
fn outliers(sorted: &[f64]) -> usize {
    let finite: Vec<f64> = sorted.iter().copied().filter(|it| it.is_finite()).collect();
    let Some(middle) = median(&finite).filter(|_| finite.len() > 2) else {
        return 0;
    };
    let mut deviations: Vec<f64> = finite.iter().map(|it| (it - middle).abs()).collect();
    deviations.sort_by(f64::total_cmp);
    let usual = median(&deviations).unwrap_or(0.0);
    let is_far = |it: &&f64| **it > FAR * usual && **it > NEAR * middle;
    deviations.iter().filter(is_far).count()
}

/// The median of sorted numbers.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted.get(half).copied()
    } else {
        Some(f64::midpoint(
            *sorted.get(half.checked_sub(1)?)?,
            sorted[half],
        ))
    }
}

/// The median of a count, over the rows that have it.
pub fn middle(rows: &[&Row], of: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    let mut all: Vec<f64> = rows.iter().filter_map(|row| of(row)).collect();
    all.sort_by(f64::total_cmp);
    median(&all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_holds_the_median_and_is_the_same_every_time() {
        let runs = [1.0, 1.1, 1.2, 1.3, 9.0];
        let (low, high) = interval(&runs).unwrap();
        assert!(low <= 1.2 && 1.2 <= high && low >= 1.0 && high <= 9.0);
        assert_eq!(interval(&runs), interval(&runs));
        assert_eq!(interval(&[1.0, 2.0]), Some((1.0, 2.0)));
        assert_eq!(interval(&[]), None);
        let half = [1.0, 1.0, f64::INFINITY];
        assert!(interval(&half).unwrap().1.is_infinite());
    }

    #[test]
    fn a_run_far_from_the_others_is_an_outlier() {
        assert_eq!(outliers(&[1.0, 1.01, 1.02, 5.0]), 1);
        assert_eq!(outliers(&[1.0, 1.1, 1.2, 1.4]), 0);
        // Practically equal.
        assert_eq!(outliers(&[1.0, 1.0, 1.0, 1.001]), 0);
        assert_eq!(outliers(&[1.0, 50.0]), 0);
    }

    #[test]
    fn a_median_without_an_answer_is_infinite() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0]), Some(1.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(median(&[1.0, 2.0, f64::INFINITY]), Some(2.0));
        assert_eq!(median(&[1.0, f64::INFINITY]), Some(f64::INFINITY));
    }
}
