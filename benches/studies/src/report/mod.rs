//! Everything that is made from the rows: figures as SVG, `summary.json`, and one self-contained page.
//!
//! Invariant: the page is markup of `maud`, which escapes what it is given; only our own figures go in as they are.

mod figures;
pub mod matrix;
mod paper;
mod setup;
pub mod tables;

use std::path::{Path, PathBuf};

use crate::error::Result;
use serde_json::{Value, json};

use crate::caveats::{caption, caveats};
use crate::cell::Cell;
use crate::design::{SettledExperiment, Study};
use crate::figure::files::FigureFiles;
use crate::ledger::put_whole;
use crate::problems::StudyProblem;
use crate::recipe::Measure;
use crate::row::{Row, RowOutcome};
use crate::summary::{by_point, spread};
use kingsnake_text::{Frame, count, page as whole};
use maud::{Markup, PreEscaped, html};

const MORE_STYLE: &str = include_str!("report.css");

/// Writes everything, and prints where the page is.
pub fn write(
    directory: &Path,
    study: &Study,
    rows: &[(Cell, Row)],
    problems: &[StudyProblem],
    left_out: &[usize],
) -> Result<PathBuf> {
    let points = by_point(study, rows);
    let files = FigureFiles::new(directory);
    let mut sections = Vec::new();
    for experiment in &study.experiments {
        let mut drawn = Vec::new();
        for (name, svg) in figures::draw(study, experiment, &points) {
            files.put(&name, &svg)?;
            drawn.push((name, svg));
        }
        sections.push(section(study, experiment, &points, left_out, drawn));
    }
    let n_left_out = left_out.iter().sum();
    let body = html! {
        (head(study, rows, problems, n_left_out))
        @for section in &sections { (section) }
        (setup::section(study, rows))
    };
    let page = put_page(
        directory,
        &study.title,
        mood(study, problems, rows.len() + n_left_out),
        &body,
    )?;
    let summary = format!("{:#}\n", summary(study, &points));
    put_whole(&directory.join("summary.json"), summary)?;
    Ok(page)
}

/// Writes the page of a study or a benchmark, and prints where it is.
pub(crate) fn put_page(
    directory: &Path,
    title: &str,
    mood: &str,
    body: &Markup,
) -> Result<PathBuf> {
    let frame = Frame {
        title,
        mood,
        style: MORE_STYLE,
        script: "",
    };
    let page = directory.join("report.html");
    put_whole(&page, whole(frame, body))?;
    Ok(page)
}

/// An experiment: its caveats, its figures, the paper's numbers, its tables.
fn section(
    study: &Study,
    experiment: &SettledExperiment,
    points: &[Vec<&Row>],
    left_out: &[usize],
    drawn: Vec<(String, String)>,
) -> Markup {
    let caption = caption(experiment, points);
    html! {
        section {
            h2 { (experiment.title) }
            @if !experiment.about.is_empty() { p.soft { (experiment.about) } }
            @for caveat in caveats(experiment, points, left_out, measure(experiment)) { p.caveat { (caveat) } }
            @for (name, svg) in drawn {
                div.wide.drawing tabindex="0" role="region" aria-label="Figure" { (PreEscaped(svg)) }
                p.soft.files {
                    (caption) ". " a href={ (name) ".svg" } { "SVG" }
                }
            }
            (paper::section(study, experiment, points))
            @for table in &experiment.tables { (tables::table(*table, study, experiment, points)) }
        }
    }
}

fn mood(study: &Study, problems: &[StudyProblem], n_done: usize) -> &'static str {
    if !problems.is_empty() {
        "violated"
    } else if n_done < study.n_cells() {
        "unknown"
    } else {
        "satisfied"
    }
}

fn head(
    study: &Study,
    rows: &[(Cell, Row)],
    problems: &[StudyProblem],
    n_left_out: usize,
) -> Markup {
    let cells = count(study.n_cells(), "cell");
    let is_failed = |it: &&(Cell, Row)| it.1.outcome == RowOutcome::Failed;
    let n_failed = rows.iter().filter(is_failed).count();
    let done = if rows.len() + n_left_out < study.n_cells() {
        format!("? {} of {cells} done", rows.len())
    } else if n_failed > 0 {
        format!("✗ {n_failed} of {cells} failed")
    } else {
        format!("✓ {}", count(rows.len(), "cell"))
    };
    html! {
        header {
            p.verdict {
                (done)
                @if n_left_out > 0 { ", " (count(n_left_out, "run")) " left out after a time-out" }
                @if !problems.is_empty() { " ✗ " (count(problems.len(), "problem")) }
            }
            h1 { (study.title) }
            p.subject { (study.about) }
        }
        @if !problems.is_empty() {
            section.problems {
                h2 { "This must not happen" }
                @for (words, commands) in problems.iter().map(StudyProblem::words) {
                    p { strong { (words) } }
                    @for command in commands { pre { code { (command) } } }
                }
            }
        }
    }
}

/// What an experiment compares.
fn measure(experiment: &SettledExperiment) -> Measure {
    let drawn = experiment.figure.as_ref();
    drawn.map_or(Measure::Seconds, |drawn| drawn.figure.measure)
}

/// Every value of the axes, with the point there, the last axis varying fastest.
fn combinations(experiment: &SettledExperiment) -> impl Iterator<Item = (Vec<usize>, usize)> + '_ {
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
