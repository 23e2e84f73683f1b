//! The figures and the page of `bench reach`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Result;
use kingsnake_gpu::About;
use serde_json::json;

use super::{Copying, ReachRow};
use crate::figure::files::FigureFiles;
use crate::figure::{FigureLabels, Lines, Series};
use crate::ledger::put_whole;
use crate::recipe::Measure;
use crate::report::put_page;
use crate::summary::Spread;
use kingsnake_text::{count, grouped, lasting};
use maud::{Markup, PreEscaped, html};

/// Writes figures, `rows.json` and the page, and prints where the page is.
pub fn write(
    directory: &Path,
    rows: &[ReachRow],
    copying: Copying,
    about: Option<&About>,
) -> Result<PathBuf> {
    let document = json!({
        "kingsnake": env!("CARGO_PKG_VERSION"),
        "threads": rayon::current_num_threads(),
        "copying": copying,
        "adapter": about.map(|about| json!({
            "name": about.name,
            "backend": about.backend,
            "kind": about.kind.to_string(),
            "driver": about.driver,
        })),
        "rows": rows,
    });
    put_whole(&directory.join("rows.json"), format!("{document:#}\n"))?;
    let files = FigureFiles::new(directory);
    let mut sections = Vec::new();
    let mut degrees: Vec<u32> = rows.iter().map(|row| row.degree).collect();
    degrees.sort_unstable();
    degrees.dedup();
    for degree in degrees {
        let of_degree: Vec<&ReachRow> = rows.iter().filter(|row| row.degree == degree).collect();
        let name = format!("reach-{degree}");
        let svg = draw(&name, degree, &of_degree);
        files.put(&name, &svg)?;
        sections.push(html! {
            section {
                h2 { (count(degree as usize, "edge")) " per node" }
                div.wide.drawing tabindex="0" role="region" aria-label="Figure" { (PreEscaped(svg)) }
                (table(&of_degree))
            }
        });
    }
    let body = html! {
        (head(copying, about))
        @for section in &sections { (section) }
    };
    put_page(directory, "Reachability", "satisfied", &body)
}

fn head(copying: Copying, about: Option<&About>) -> Markup {
    let device = match about {
        Some(about) => format!("{} ({}, {})", about.name, about.backend, about.kind),
        None => "none".to_owned(),
    };
    let copied = |speed: f64| format!("{:.1} GB/s read and written", speed / 1e9);
    let facts = [
        ("threads", rayon::current_num_threads().to_string()),
        ("device", device),
        ("copying, one thread", copied(copying.one_thread)),
        ("copying, all threads", copied(copying.all_threads)),
    ];
    html! {
        header {
            h1 { "Reachability" }
            p.subject { "The closure of random graphs like those of histories." }
            p.soft {
                "The shortest of several times: on the CPU over memory that the round before has touched, on a device with the \
                 graph's way up. Bytes moved are read and written, as docs/gpu.md counts them."
            }
        }
        section {
            h2 { "The set-up" }
            table.plan { tbody {
                @for (name, value) in facts { tr { th scope="row" { (name) } td { (value) } } }
            } }
        }
    }
}

fn draw(id: &str, degree: u32, rows: &[&ReachRow]) -> String {
    let mut lines: Vec<Series> = Vec::new();
    for row in rows {
        let point = (
            f64::from(row.nodes),
            grouped(row.nodes),
            Spread {
                low: row.seconds,
                median: row.seconds,
                high: row.seconds,
                n: 1,
                interval: (row.seconds, row.seconds),
                outliers: 0,
                lacks: None,
            },
        );
        match lines.iter_mut().find(|line| line.name == row.engine) {
            Some(line) => line.points.push(point),
            None => lines.push(Series {
                name: row.engine.clone(),
                points: vec![point],
            }),
        }
    }
    let figure = Lines {
        labels: FigureLabels {
            id,
            title: &format!("Closure with {degree} edges per node"),
            y: "Time",
            x: "nodes",
            measure: Measure::Seconds,
        },
        x_log: true,
        all: lines,
        limit: f64::INFINITY,
    };
    figure.draw()
}

const HEADINGS: [&str; 10] = [
    "nodes",
    "engine",
    "time",
    "fresh memory",
    "words OR-ed",
    "G words/s",
    "GB/s moved",
    "of copying",
    "kernels",
    "lanes busy",
];

fn table(rows: &[&ReachRow]) -> Markup {
    html! {
        div.wide tabindex="0" role="region" aria-label="Rows" {
            table.rounds {
                thead { tr { @for name in HEADINGS { th scope="col" { (name) } } } }
                tbody { @for row in rows {
                    tr { @for cell in cells(row) { td { (cell) } } }
                } }
            }
        }
    }
}

fn cells(row: &ReachRow) -> [String; 10] {
    const NOTHING: &str = "–";
    let percent =
        |share: Option<f64>| share.map_or(NOTHING.to_owned(), |it| format!("{:.0} %", 100.0 * it));
    let seconds = |it: f64| lasting(Duration::from_secs_f64(it));
    [
        grouped(row.nodes),
        row.engine.clone(),
        seconds(row.seconds),
        row.first_seconds.map_or(NOTHING.to_owned(), seconds),
        grouped(row.words_ored),
        format!("{:.2}", row.words_a_second / 1e9),
        format!("{:.1}", row.bytes_a_second / 1e9),
        percent(row.share_of_copy),
        match row.dispatches {
            0 => NOTHING.to_owned(),
            n => format!("{} {}", grouped(n), row.form),
        },
        percent(row.occupancy),
    ]
}
