//! A table whose columns are the values of one axis and whose lines are the values of the others.

use std::ops::Range;

use crate::design::SettledExperiment;
use maud::{Markup, html};

/// The axis across: the one in colour, or else the last.
pub fn across(shown: &SettledExperiment) -> usize {
    let drawn = shown.figure.as_ref();
    drawn.map_or(shown.axes.len() - 1, |drawn| drawn.series)
}

/// Each line's names, and the points along it.
pub fn lines(shown: &SettledExperiment) -> Vec<(String, Vec<usize>)> {
    let across = across(shown);
    super::combinations(shown)
        .filter(|(at, _)| at[across] == 0)
        .map(|(mut at, _)| {
            let name = line_name(shown, &at, Some(across));
            let along = 0..shown.axes[across].values.len();
            let points = along.map(|value| {
                at[across] = value;
                shown.point(&at)
            });
            let points = points.collect();
            (name, points)
        })
        .collect()
}

/// The values of the axes in a few words, without one of them and without those that do not vary.
pub fn line_name(shown: &SettledExperiment, at: &[usize], but: Option<usize>) -> String {
    let varies = |axis: &usize| shown.axes[*axis].values.len() > 1 || *axis == 0;
    (0..at.len())
        .filter(|axis| Some(*axis) != but)
        .filter(varies)
        .map(|axis| shown.axes[axis].values[at[axis]].name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// Maximum number of columns on a page of 1280 pixels.
const MOST_COLUMNS: usize = 8;

/// A table that fits a page: where it has too many columns it is turned by a quarter, or cut into several. On a phone each line
/// becomes a block, each cell with the name of its column.
pub struct Matrix {
    caption: String,
    columns: Vec<String>,
    lines: Vec<(String, Vec<Markup>)>,
}

impl Matrix {
    /// A table without lines.
    pub fn new(caption: impl Into<String>, columns: Vec<String>) -> Matrix {
        Matrix {
            caption: caption.into(),
            columns,
            lines: Vec::new(),
        }
    }

    /// Adds a line of markup.
    pub fn line(&mut self, name: impl Into<String>, cells: Vec<Markup>) {
        self.lines.push((name.into(), cells));
    }

    /// Adds a line of text.
    pub fn words(&mut self, name: impl Into<String>, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| html! { (cell) });
        self.line(name, cells.collect());
    }

    /// As markup.
    pub fn markup(self) -> Markup {
        let whole = if self.columns.len() > MOST_COLUMNS && self.lines.len() <= MOST_COLUMNS {
            self.turned()
        } else {
            self
        };
        let n_parts = whole.columns.len().div_ceil(MOST_COLUMNS);
        let parts = (0..n_parts).map(|part| {
            let from = part * MOST_COLUMNS;
            let to = whole.columns.len().min(from + MOST_COLUMNS);
            let caption = if n_parts > 1 {
                format!("{} ({} of {n_parts})", whole.caption, part + 1)
            } else {
                whole.caption.clone()
            };
            whole.part(&caption, from..to)
        });
        html! { @for part in parts { (part) } }
    }

    fn turned(self) -> Matrix {
        let mut turned = Matrix::new(
            self.caption,
            self.lines.iter().map(|(name, _)| name.clone()).collect(),
        );
        for (at, column) in self.columns.into_iter().enumerate() {
            let cells = self.lines.iter().map(|(_, cells)| cells[at].clone());
            turned.line(column, cells.collect());
        }
        turned
    }

    fn part(&self, caption: &str, part: Range<usize>) -> Markup {
        let columns = &self.columns[part.clone()];
        html! {
            div.wide tabindex="0" role="region" aria-label=(caption) {
                table.rounds.matrix {
                    caption { (caption) }
                    thead { tr { th {} @for column in columns { th scope="col" { (column) } } } }
                    tbody { @for (name, cells) in &self.lines {
                        tr {
                            th scope="row" { (name) }
                            @for (column, cell) in columns.iter().zip(&cells[part.clone()]) {
                                td data-column=(column) { span { (cell) } }
                            }
                        }
                    } }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n_columns: usize, n_lines: usize) -> String {
        let mut matrix = Matrix::new("m", (0..n_columns).map(|at| format!("c{at}")).collect());
        for line in 0..n_lines {
            let cells = (0..n_columns).map(|at| format!("{line}/{at}"));
            matrix.words(format!("l{line}"), cells);
        }
        matrix.markup().0
    }

    /// The most cells in a line of the markup.
    fn width(markup: &str) -> usize {
        let lines = markup.split("<tr>").map(|line| line.matches("<td").count());
        lines.max().unwrap_or(0)
    }

    #[test]
    fn no_table_is_wider_than_a_page() {
        for (columns, lines) in [(3, 11), (11, 3), (20, 20), (8, 8), (9, 9)] {
            let markup = matrix(columns, lines);
            assert!(width(&markup) <= MOST_COLUMNS, "{columns} by {lines}");
            assert_eq!(markup.matches("<td").count(), columns * lines);
        }
        // Turned, not cut.
        assert_eq!(matrix(11, 3).matches("<table").count(), 1);
        assert_eq!(matrix(20, 20).matches("<table").count(), 3);
    }
}
