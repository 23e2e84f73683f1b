//! The cells of a study: each check times its seeds times its repeats, made when they are asked for, however many there are.
//!
//! One repeat follows the other, and one seed the other within it, so that a stopped study has something of everything.

use std::collections::HashMap;

use crate::design::{HistoryOrigin, Study};
use crate::row::Row;

/// How often a check is run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Runs {
    /// On how many histories of a recipe; on none where it is left out.
    pub seeds: u32,
    /// How often on each.
    pub repeats: u32,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Which check.
    pub point: usize,
    /// The seed of the history.
    pub seed: u32,
    /// The seed of the check.
    pub repeat: u32,
}

impl Study {
    /// How often a check is really run: a given history has one seed, and what is refused does not run.
    fn runs(&self, point: usize) -> Runs {
        let point = &self.points[point];
        let varies = matches!(
            self.sources[point.source].origin,
            HistoryOrigin::Generated(_)
        );
        match point.refused {
            Some(_) => Runs::default(),
            None if varies => point.runs,
            None => Runs {
                seeds: point.runs.seeds.min(1),
                ..point.runs
            },
        }
    }

    /// How many cells a check has.
    pub fn n_cells_of(&self, point: usize) -> usize {
        let runs = self.runs(point);
        (runs.seeds as usize).saturating_mul(runs.repeats as usize)
    }

    /// How many cells there are.
    pub fn n_cells(&self) -> usize {
        let points = 0..self.points.len();
        points.fold(0, |sum, it| sum.saturating_add(self.n_cells_of(it)))
    }

    /// Every cell, in the order in which they run.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        let all: Vec<Runs> = (0..self.points.len()).map(|it| self.runs(it)).collect();
        let n_repeats = all.iter().map(|it| it.repeats).max().unwrap_or(0);
        (0..n_repeats).flat_map(move |repeat| {
            let repeated = all.iter().enumerate().filter(|it| it.1.repeats > repeat);
            let repeated: Vec<(usize, u32)> = repeated.map(|(at, it)| (at, it.seeds)).collect();
            let n_seeds = repeated.iter().map(|it| it.1).max().unwrap_or(0);
            (0..n_seeds).flat_map(move |seed| {
                let seeded: Vec<usize> = repeated
                    .iter()
                    .filter(|it| it.1 > seed)
                    .map(|it| it.0)
                    .collect();
                seeded.into_iter().map(move |point| Cell {
                    point,
                    seed,
                    repeat,
                })
            })
        })
    }

    /// The rows that are of these cells, in the order in which the cells run.
    pub fn rows_of_cells(&self, rows: &[Row]) -> Vec<(Cell, Row)> {
        let mut points: HashMap<(&str, &[String]), Vec<usize>> = HashMap::new();
        for (at, point) in self.points.iter().enumerate() {
            let name = self.sources[point.source].name.as_str();
            points.entry((name, &point.check)).or_default().push(at);
        }
        let mut found = Vec::new();
        for row in rows {
            let of = points.get(&(row.history.as_str(), &row.check[..]));
            for &point in of.into_iter().flatten() {
                let runs = self.runs(point);
                if row.seed < runs.seeds && row.repeat < runs.repeats {
                    let cell = Cell {
                        point,
                        seed: row.seed,
                        repeat: row.repeat,
                    };
                    found.push((cell, row.clone()));
                }
            }
        }
        found.sort_by_key(|(cell, _)| (cell.repeat, cell.seed, cell.point));
        found
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use super::*;
    use crate::design::{HistorySource, StudyPoint};

    fn study(runs: &[(bool, u32, u32)]) -> Study {
        let source = |is_generated: bool| HistorySource {
            name: is_generated.to_string(),
            origin: if is_generated {
                HistoryOrigin::Generated(Vec::new())
            } else {
                HistoryOrigin::File("h".into())
            },
        };
        let point =
            |(at, &(is_generated, seeds, repeats)): (usize, &(bool, u32, u32))| StudyPoint {
                source: usize::from(is_generated),
                check: vec![at.to_string()],
                expect: None,
                refused: None,
                runs: Runs { seeds, repeats },
            };
        Study {
            name: String::new(),
            title: String::new(),
            about: String::new(),
            parameters: BTreeMap::new(),
            timeout: Duration::from_secs(1),
            memory: None,
            sources: vec![source(false), source(true)],
            points: runs.iter().enumerate().map(point).collect(),
            experiments: Vec::new(),
        }
    }

    #[test]
    fn cells_are_counted_as_they_come() {
        let study = study(&[(true, 3, 2), (false, 3, 1), (true, 1, 4), (true, 0, 0)]);
        let cells: Vec<Cell> = study.cells().collect();
        assert_eq!(cells.len(), 6 + 1 + 4);
        assert_eq!(study.n_cells(), cells.len());
        let key = |it: &Cell| (it.repeat, it.seed, it.point);
        assert!(cells.is_sorted_by_key(key));
    }

    #[test]
    fn numbers_that_no_memory_holds_cost_nothing_until_they_are_reached() {
        // Most seeds and most repeats are those of different checks.
        let mut study = study(&[(true, u32::MAX, 1), (true, 1, u32::MAX)]);
        assert_eq!(study.n_cells(), 2 * u32::MAX as usize);
        assert_eq!(study.cells().take(1000).count(), 1000);
        study.points[0].runs.seeds = 2;
        let late = study.cells().nth(1_000_000).unwrap();
        assert_eq!((late.point, late.seed, late.repeat), (1, 0, 999_998));
    }
}
