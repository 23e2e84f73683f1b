//! A table whose columns are the values of one axis and whose lines are the values of the others.

use std::fmt::Write;
use std::ops::Range;

use crate::design::Shown;
use kingsnake_text::Escaped;

/// The axis across: the one in colour, or else the last.
pub fn across(shown: &Shown) -> usize {
    let drawn = shown.figure.as_ref();
    drawn.map_or(shown.axes.len() - 1, |drawn| drawn.series)
}

/// Each line's names, and the points along it.
pub fn lines(shown: &Shown) -> Vec<(String, Vec<usize>)> {
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
pub fn line_name(shown: &Shown, at: &[usize], but: Option<usize>) -> String {
    let varies = |axis: &usize| shown.axes[*axis].values.len() > 1 || *axis == 0;
    (0..at.len())
        .filter(|axis| Some(*axis) != but)
        .filter(varies)
        .map(|axis| shown.axes[axis].values[at[axis]].name.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// As many columns fit on a page of 1280 pixels.
const MOST_COLUMNS: usize = 8;

/// A table that fits a page: where it has too many columns it is turned by a quarter, or cut into several. On a phone each line
/// becomes a block, each cell with the name of its column.
pub struct Matrix {
    caption: String,
    columns: Vec<String>,
    lines: Vec<(String, Vec<String>)>,
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

    /// Adds a line; what is in the cells is markup already.
    pub fn line(&mut self, name: impl Into<String>, cells: Vec<String>) {
        self.lines.push((name.into(), cells));
    }

    /// Writes it.
    pub fn write(self, out: &mut String) {
        let whole = if self.columns.len() > MOST_COLUMNS && self.lines.len() <= MOST_COLUMNS {
            self.turned()
        } else {
            self
        };
        let n_parts = whole.columns.len().div_ceil(MOST_COLUMNS);
        for part in 0..n_parts {
            let from = part * MOST_COLUMNS;
            let to = whole.columns.len().min(from + MOST_COLUMNS);
            let caption = if n_parts > 1 {
                format!("{} ({} of {n_parts})", whole.caption, part + 1)
            } else {
                whole.caption.clone()
            };
            whole.write_part(out, &caption, from..to);
        }
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

    fn write_part(&self, out: &mut String, caption: &str, part: Range<usize>) {
        let _ = write!(
            out,
            r#"<div class="wide" tabindex="0" role="region" aria-label="{caption}"><table class="rounds matrix"><caption>{caption}</caption><thead><tr><th></th>"#,
            caption = Escaped(caption)
        );
        for column in &self.columns[part.clone()] {
            let _ = write!(out, r#"<th scope="col">{}</th>"#, Escaped(column));
        }
        out.push_str("</tr></thead><tbody>");
        for (name, cells) in &self.lines {
            let _ = write!(out, r#"<tr><th scope="row">{}</th>"#, Escaped(name));
            let columns = &self.columns[part.clone()];
            for (column, cell) in columns.iter().zip(&cells[part.clone()]) {
                let _ = write!(
                    out,
                    r#"<td data-column="{}"><span>{cell}</span></td>"#,
                    Escaped(column)
                );
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matrix(n_columns: usize, n_lines: usize) -> String {
        let mut matrix = Matrix::new("m", (0..n_columns).map(|at| format!("c{at}")).collect());
        for line in 0..n_lines {
            let cells = (0..n_columns).map(|at| format!("{line}/{at}")).collect();
            matrix.line(format!("l{line}"), cells);
        }
        let mut out = String::new();
        matrix.write(&mut out);
        out
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
