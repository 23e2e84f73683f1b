//! The figures and the page of `ablate watch`.

use std::path::{Path, PathBuf};

use kingsnake_text::grouped;
use maud::{PreEscaped, html};

use super::{OPS, SESSIONS, WatchStudy, WatchedCourse, WatchedRow};
use crate::error::Result;
use crate::figure::files::FigureFiles;
use crate::figure::{Courses, FigureLabels};
use crate::recipe::Measure;
use crate::report::put_page;

type RowNumber = fn(&WatchedRow) -> f64;

const FIGURES: [(&str, &str, RowNumber); 4] = [
    ("rate", "Transactions per second", |it| it.per_second),
    ("retained", "Transactions retained", |it| it.retained as f64),
    ("memory", "Memory in MB", |it| {
        it.memory_bytes as f64 / f64::from(1 << 20)
    }),
    ("lag", "Lag in milliseconds", |it| it.lag_seconds * 1e3),
];

const HEADINGS: [&str; 7] = [
    "course",
    "transactions",
    "per second",
    "per second of processor time",
    "largest lag, s",
    "most retained",
    "most memory, MB",
];

/// Writes figures and the page, and prints where the page is.
pub(super) fn write(
    directory: &Path,
    study: &WatchStudy,
    courses: &[WatchedCourse],
) -> Result<PathBuf> {
    let files = FigureFiles::new(directory);
    let mut drawn = Vec::new();
    for (id, title, number) in FIGURES {
        let points = |course: &WatchedCourse| {
            // The last row is of the whole course, not of its last second.
            let rows = &course.rows[..course.rows.len().saturating_sub(1)];
            rows.iter()
                .map(|it| (it.seconds, number(it)))
                .collect::<Vec<_>>()
        };
        let labels = FigureLabels {
            id,
            title,
            y: title,
            x: "seconds since the start",
            measure: Measure::Seconds,
        };
        let all = courses.iter().map(|it| (it.name.to_owned(), points(it)));
        let all: Vec<(String, Vec<(f64, f64)>)> = all.filter(|it| !it.1.is_empty()).collect();
        if all.is_empty() {
            continue;
        }
        let svg = Courses { labels, all }.draw();
        files.put(id, &svg)?;
        drawn.push(svg);
    }
    let body = html! {
        header {
            h1 { "Watching" }
            p.subject { "Rate, lag and memory of " code { "kingsnake watch" } " over time, on generated logs that come through a pipe." }
            p.soft {
                (SESSIONS) " sessions, " (OPS) " operations per transaction (half reads, half blind writes), "
                (grouped(study.keys as u64)) " uniform keys. Fenced courses have a fence after every 5 transactions of a session; the \
                 paced one gets 50,000 transactions per second. The lag is the time since the last judged transaction was written: \
                 without a pace it is what the pipe and the batch hold."
            }
        }
        @for svg in &drawn {
            div.wide.drawing tabindex="0" role="region" aria-label="Figure" { (PreEscaped(svg)) }
        }
        div.wide tabindex="0" role="region" aria-label="Rows" {
            table.rounds {
                thead { tr { @for name in HEADINGS { th scope="col" { (name) } } } }
                tbody { @for course in courses { @if let Some(cells) = cells(course) {
                    tr { @for cell in cells { td { (cell) } } }
                } } }
            }
        }
    };
    put_page(directory, "Watching", "satisfied", &body)
}

fn cells(course: &WatchedCourse) -> Option<[String; 7]> {
    let rows = &course.rows;
    let last = rows.last()?;
    let per = |seconds: f64| grouped((last.transactions as f64 / seconds.max(1e-9)) as u64);
    let most = |number: RowNumber| rows.iter().map(number).fold(0.0, f64::max);
    Some([
        course.name.to_owned(),
        grouped(last.transactions),
        per(last.seconds),
        per(last.processor_seconds),
        format!("{:.2}", most(|it| it.lag_seconds)),
        grouped(most(|it| it.retained as f64) as u64),
        grouped(most(|it| it.memory_bytes as f64) as u64 >> 20),
    ])
}
