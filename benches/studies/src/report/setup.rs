//! What was run and where, so that it can be run again.

use crate::cell::Cell;
use crate::design::{HistoryOrigin, Study};
use crate::machine;
use crate::row::Row;
use kingsnake_text::{count, lasting, sized};
use maud::{Markup, html};

/// The section.
pub fn section(study: &Study, rows: &[(Cell, Row)]) -> Markup {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut facts = vec![
        ("kingsnake", env!("CARGO_PKG_VERSION").to_owned()),
        (
            "machine",
            format!(
                "{} {}, {}",
                std::env::consts::OS,
                std::env::consts::ARCH,
                count(cores, "core")
            ),
        ),
        ("time limit of a check", lasting(study.timeout)),
        (
            "memory limit of a check",
            study.memory.map_or("what was free".to_owned(), sized),
        ),
        (
            "cells",
            format!("{} done of {}", rows.len(), study.n_cells()),
        ),
    ];
    if let Some(name) = machine::processor() {
        facts.insert(2, ("processor", name));
    }
    for (name, value) in &study.parameters {
        facts.push((name, value.clone()));
    }
    let first = rows
        .iter()
        .filter(|(cell, _)| cell.repeat == 0 && cell.seed == 0);
    html! {
        section {
            h2 { "The set-up" }
            table.plan { tbody {
                @for (name, value) in facts { tr { th scope="row" { (name) } td { (value) } } }
            } }
            details {
                summary { "The histories" }
                table.plan { tbody {
                    @for source in &study.sources {
                        tr { th scope="row" { (source.name) } td { code { (origin(&source.origin)) } } }
                    }
                } }
            }
            details {
                summary { "A command for each check" }
                @for (_, row) in first { pre { code { (row.command) } } }
            }
            p.soft {
                "Every run: " a href="rows.csv" { "rows.csv" } ", " a href="rows.jsonl" { "rows.jsonl" } ". Medians: "
                a href="summary.json" { "summary.json" } "."
            }
        }
    }
}

fn origin(origin: &HistoryOrigin) -> String {
    match origin {
        HistoryOrigin::Generated(words) => format!("kingsnake generate {}", words.join(" ")),
        HistoryOrigin::File(path) => path.display().to_string(),
        HistoryOrigin::Corpus { name, .. } => format!("datasets/corpus/{name}"),
    }
}
