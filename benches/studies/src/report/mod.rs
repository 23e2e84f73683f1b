//! Everything that is made of the rows: figures as SVG and PNG, `summary.json`, and one self-contained page.
//!
//! Invariant: everything that comes from a file or the command line passes through [`Escaped`] on its way to the page.

mod figures;
pub mod matrix;
mod paper;
mod setup;
mod tables;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::error::Result;
use serde_json::{Value, json};

use crate::caveats::{caption, caveats};
use crate::design::{Cell, Shown, Study};
use crate::figure::png::Painter;
use crate::ledger::put_whole;
use crate::problems::Problem;
use crate::recipe::Measure;
use crate::row::Row;
use crate::summary::{by_point, spread};
use kingsnake_text::{Escaped, count, page as whole};

const MORE_STYLE: &str = include_str!("report.css");

/// Writes everything, and says where the page is.
pub fn write(
    directory: &Path,
    study: &Study,
    rows: &[(Cell, Row)],
    problems: &[Problem],
) -> Result<PathBuf> {
    let points = by_point(study, rows);
    let painter = Painter::new();
    let mut body = String::new();
    head(&mut body, study, rows, problems);
    for experiment in &study.experiments {
        let _ = write!(body, "<section><h2>{}</h2>", Escaped(&experiment.title));
        if !experiment.about.is_empty() {
            let _ = write!(
                body,
                r#"<p class="soft">{}</p>"#,
                Escaped(&experiment.about)
            );
        }
        for caveat in caveats(experiment, &points, measure(experiment)) {
            let _ = write!(body, r#"<p class="caveat">{}</p>"#, Escaped(&caveat));
        }
        let caption = caption(experiment, &points);
        for (name, svg) in figures::draw(study, experiment, &points) {
            put_whole(&directory.join(format!("{name}.svg")), &svg)?;
            put_whole(&directory.join(format!("{name}.png")), painter.paint(&svg)?)?;
            let _ = write!(
                body,
                r#"<div class="wide drawing" tabindex="0" role="region" aria-label="Figure">{svg}</div><p class="soft files">{}. <a href="{name}.svg">SVG</a> <a href="{name}.png">PNG</a></p>"#,
                Escaped(&caption)
            );
        }
        paper::section(&mut body, study, experiment, &points);
        for table in &experiment.tables {
            tables::table(&mut body, *table, study, experiment, &points);
        }
        body.push_str("</section>\n");
    }
    setup::section(&mut body, study, rows);
    let page = directory.join("report.html");
    put_whole(&page, html(study, problems, rows, &body))?;
    let summary = format!("{:#}\n", summary(study, &points));
    put_whole(&directory.join("summary.json"), summary)?;
    Ok(page)
}

fn html(study: &Study, problems: &[Problem], rows: &[(Cell, Row)], body: &str) -> String {
    let mood = if !problems.is_empty() {
        "violated"
    } else if rows.len() < study.cells.len() {
        "unknown"
    } else {
        "satisfied"
    };
    whole(&study.title, MORE_STYLE, mood, body)
}

fn head(out: &mut String, study: &Study, rows: &[(Cell, Row)], problems: &[Problem]) {
    let done = if rows.len() < study.cells.len() {
        format!(
            "? {} of {} done",
            rows.len(),
            count(study.cells.len(), "cell")
        )
    } else {
        format!("✓ {}", count(rows.len(), "cell"))
    };
    let flagged = if problems.is_empty() {
        String::new()
    } else {
        format!(" ✗ {}", count(problems.len(), "problem"))
    };
    let _ = write!(
        out,
        r#"<header><p class="verdict">{done}{flagged}</p><h1>{}</h1><p class="subject">{}</p></header>"#,
        Escaped(&study.title),
        Escaped(&study.about)
    );
    if problems.is_empty() {
        return;
    }
    out.push_str(r#"<section class="problems"><h2>This must not happen</h2>"#);
    for problem in problems {
        let (words, commands) = problem.words();
        let _ = write!(out, "<p><strong>{}</strong></p>", Escaped(&words));
        for command in commands {
            let _ = write!(out, "<pre><code>{}</code></pre>", Escaped(command));
        }
    }
    out.push_str("</section>\n");
}

/// Which time an experiment compares.
fn measure(experiment: &Shown) -> Measure {
    let drawn = experiment.figure.as_ref();
    drawn.map_or(Measure::Seconds, |drawn| drawn.figure.measure)
}

/// Every value of the axes, with the point there, the last axis varying fastest.
fn combinations(experiment: &Shown) -> impl Iterator<Item = (Vec<usize>, usize)> + '_ {
    let n = experiment.grid.len();
    (0..n).map(|place| {
        let mut rest = place;
        let mut at = vec![0; experiment.axes.len()];
        for (value, axis) in at.iter_mut().zip(&experiment.axes).rev() {
            *value = rest % axis.values.len();
            rest /= axis.values.len();
        }
        (at, experiment.grid[place])
    })
}

fn summary(study: &Study, points: &[Vec<&Row>]) -> Value {
    let experiments = study.experiments.iter().map(|experiment| {
        let of = measure(experiment);
        let cells: Vec<Value> = combinations(experiment)
            .map(|(at, point)| {
                let labels: serde_json::Map<String, Value> = experiment
                    .axes
                    .iter()
                    .zip(&at)
                    .map(|(axis, &at)| (axis.name.clone(), axis.values[at].name.clone().into()))
                    .collect();
                let spread = spread(&points[point], of).map(|spread| {
                    // JSON has no infinity; null is no answer.
                    json!({
                        "runs": spread.n,
                        "shortest": spread.low,
                        "median": spread.median,
                        "longest": spread.high,
                        "median_95_percent": [spread.interval.0, spread.interval.1],
                    })
                });
                json!({"at": labels, "seconds": spread})
            })
            .collect();
        let claims: Vec<Value> = paper::judged(study, experiment, points)
            .into_iter()
            .map(|it| {
                json!({"says": it.says, "paper": it.paper, "ours": it.ours, "finding": it.words})
            })
            .collect();
        json!({"experiment": experiment.name, "measure": of.label(), "cells": cells, "claims": claims})
    });
    json!({
        "study": study.name,
        "kingsnake": env!("CARGO_PKG_VERSION"),
        "timeout_seconds": study.timeout.as_secs_f64(),
        "experiments": experiments.collect::<Vec<_>>(),
    })
}
