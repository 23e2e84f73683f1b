//! The rows of each point as a median and a spread.
//!
//! Invariant: a run without an answer counts as longer than any answer, so that a median over seeds is honest.

use crate::design::{Cell, Study};
use crate::recipe::Measure;
use crate::row::{Outcome, Row};

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
    /// Why the first of those without an answer has none.
    pub lacks: Option<Outcome>,
}

impl Spread {
    /// Whether the median run gave an answer.
    pub fn is_answered(&self) -> bool {
        self.median.is_finite()
    }
}

/// What a run took; `None` if the question does not arise because no solver was asked.
pub fn measured(row: &Row, measure: Measure) -> Option<f64> {
    if row.outcome != Outcome::Answered {
        return Some(f64::INFINITY);
    }
    match measure {
        Measure::Seconds => Some(row.stats.seconds),
        Measure::Cpu => Some(row.stats.cpu_seconds.unwrap_or(row.stats.seconds)),
        Measure::Solver => {
            let solver = row.stats.solver.as_ref()?;
            Some(solver.encode_seconds + solver.solve_seconds)
        }
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
        lacks: rows
            .iter()
            .map(|row| row.outcome)
            .find(|&outcome| outcome != Outcome::Answered),
    })
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
    fn a_median_without_an_answer_is_infinite() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0]), Some(1.0));
        assert_eq!(median(&[1.0, 2.0]), Some(1.5));
        assert_eq!(median(&[1.0, 2.0, f64::INFINITY]), Some(2.0));
        assert_eq!(median(&[1.0, f64::INFINITY]), Some(f64::INFINITY));
    }
}
