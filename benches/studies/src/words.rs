//! A study in words, for stdout and for `-v`.

use std::fmt::Write;
use std::path::Path;

use crate::caveats::{caption, caveats};
use crate::cell::Cell;
use crate::claims::{apart, judge};
use crate::design::Study;
use crate::problems::StudyProblem;
use crate::recipe::{FigureKind, Measure};
use crate::report::{matrix, tables};
use crate::row::{Row, RowOutcome};
use crate::summary::{by_point, spread};
use kingsnake_text::{Paint, count, printable};

/// One finished cell.
pub fn row(row: &Row) -> String {
    let answer = if row.outcome == RowOutcome::Answered {
        row.verdict.as_str()
    } else {
        row.outcome.word()
    };
    format!("{answer} {:.3} s  {}", row.wall_seconds, row.cell)
}

/// The end of a study.
pub fn ending(
    study: &Study,
    rows: &[(Cell, Row)],
    problems: &[StudyProblem],
    page: &Path,
    left_out: &[usize],
    paint: Paint,
) -> String {
    let points = by_point(study, rows);
    let mut out = String::new();
    for shown in &study.experiments {
        let measure = shown
            .figure
            .as_ref()
            .map_or(Measure::Seconds, |drawn| drawn.figure.measure);
        let _ = writeln!(out, "{}", paint.strong(&printable(&shown.title)));
        let mut table = vec![vec![String::new()]];
        let columns = &shown.axes[matrix::across(shown)].values;
        table[0].extend(columns.iter().map(|label| label.name.clone()));
        for (name, along) in matrix::lines(shown) {
            // Where all that varies is across, the line has no name.
            let mut line = vec![if name.is_empty() {
                "time".to_owned()
            } else {
                name
            }];
            line.extend(along.iter().map(|&point| {
                let rows = &points[point];
                match shown.figure.as_ref().map(|drawn| drawn.figure.kind) {
                    Some(FigureKind::Detection) => return tables::detection(rows),
                    Some(FigureKind::Aborts) => return tables::aborts(rows),
                    Some(FigureKind::Making) => return tables::making(rows),
                    _ => {}
                }
                let limit = study.timeout.as_secs_f64();
                let median = |measure: Measure| match spread(rows, measure) {
                    Some(spread) => measure.within(spread.median, limit),
                    None => "–".to_owned(),
                };
                match measure {
                    Measure::Both => format!("{} / {}", median(measure), median(Measure::Cpu)),
                    measure => median(measure),
                }
            }));
            table.push(line);
        }
        out.push_str(&aligned(&table));
        if measure == Measure::Both {
            let _ = writeln!(out, "  by the clock / processor time");
        }
        let caption = caption(shown, &points);
        if !caption.is_empty() {
            let _ = writeln!(out, "  {}", printable(&caption));
        }
        for caveat in caveats(shown, &points, left_out, measure) {
            let _ = writeln!(out, "  warning: {}", printable(&caveat));
        }
        let claims = shown.claims.iter();
        let claims = claims.map(|stated| judge(stated, study, &points, measure));
        let (claims, not_compared) = apart(claims.collect());
        for judged in &claims {
            let _ = writeln!(
                out,
                "  {} (paper {}, here {}): {}",
                printable(&judged.says),
                judged.paper,
                judged.ours,
                judged.words
            );
        }
        for words in not_compared.into_iter().chain(shown.needs_more()) {
            let _ = writeln!(out, "  {}", printable(&words));
        }
        out.push('\n');
    }
    for problem in problems {
        let (words, commands) = problem.words();
        let _ = writeln!(out, "{}", paint.bad(&printable(&words)));
        for command in commands {
            let _ = writeln!(out, "  {}", printable(command));
        }
    }
    if rows.len() + left_out.iter().sum::<usize>() < study.n_cells() {
        let _ = writeln!(
            out,
            "stopped: {} of {} done; the same command goes on",
            rows.len(),
            count(study.n_cells(), "cell")
        );
    }
    let _ = writeln!(out, "{}", printable(&page.display().to_string()));
    out
}

/// The first column to the left, the others to the right.
fn aligned(table: &[Vec<String>]) -> String {
    let n_columns = table.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..n_columns)
        .map(|column| {
            let cells = table.iter().map(|line| line[column].chars().count());
            cells.max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for line in table {
        let mut text = String::from(" ");
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            if column == 0 {
                let _ = write!(text, " {cell:<width$}");
            } else {
                let _ = write!(text, "  {cell:>width$}");
            }
        }
        out.push_str(&printable(text.trim_end()));
        out.push('\n');
    }
    out
}
