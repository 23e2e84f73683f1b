//! The figures and the page of `bench reach`.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Result;
use kingsnake_gpu::About;
use serde_json::json;

use super::{Copying, Row};
use crate::figure::png::Painter;
use crate::figure::{Line, Lines};
use crate::ledger::put_whole;
use crate::summary::Spread;
use kingsnake_text::{Escaped, count, grouped, lasting, page as whole};

const MORE_STYLE: &str = include_str!("../report/report.css");

/// Writes figures, `rows.json` and the page, and says where the page is.
pub fn write(
    directory: &Path,
    rows: &[Row],
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
    let painter = Painter::new();
    let mut body = head(copying, about);
    let mut degrees: Vec<u32> = rows.iter().map(|row| row.degree).collect();
    degrees.sort_unstable();
    degrees.dedup();
    for degree in degrees {
        let of_degree: Vec<&Row> = rows.iter().filter(|row| row.degree == degree).collect();
        let name = format!("reach-{degree}");
        let svg = draw(&name, degree, &of_degree);
        put_whole(&directory.join(format!("{name}.svg")), &svg)?;
        put_whole(&directory.join(format!("{name}.png")), painter.paint(&svg)?)?;
        let _ = write!(
            body,
            r#"<section><h2>{}</h2><div class="wide drawing" tabindex="0" role="region" aria-label="Figure">{svg}</div>"#,
            count(degree as usize, "edge") + " a node"
        );
        table(&mut body, &of_degree);
        body.push_str("</section>\n");
    }
    let page = directory.join("report.html");
    put_whole(&page, whole("Reachability", MORE_STYLE, "satisfied", &body))?;
    Ok(page)
}

fn head(copying: Copying, about: Option<&About>) -> String {
    let device = match about {
        Some(about) => format!("{} ({}, {})", about.name, about.backend, about.kind),
        None => "none".to_owned(),
    };
    format!(
        r#"<header><h1>Reachability</h1><p class="subject">The closure of random graphs like those of histories.</p><p class="soft">The shortest of several times: on the CPU over memory that the round before has touched, on a device with the graph's way up. Bytes moved are read and written, as docs/gpu.md counts them.</p></header><section><h2>The set-up</h2><table class="plan"><tbody><tr><th scope="row">threads</th><td>{}</td></tr><tr><th scope="row">device</th><td>{}</td></tr><tr><th scope="row">copying, one thread</th><td>{:.1} GB/s read and written</td></tr><tr><th scope="row">copying, all threads</th><td>{:.1} GB/s read and written</td></tr></tbody></table></section>"#,
        rayon::current_num_threads(),
        Escaped(&device),
        copying.one_thread / 1e9,
        copying.all_threads / 1e9
    )
}

fn draw(id: &str, degree: u32, rows: &[&Row]) -> String {
    let mut lines: Vec<Line> = Vec::new();
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
            None => lines.push(Line {
                name: row.engine.clone(),
                points: vec![point],
            }),
        }
    }
    let figure = Lines {
        id,
        title: &format!("Closure with {degree} edges a node"),
        y_label: "Time",
        x_label: "nodes",
        x_log: true,
        all: lines,
        limit: f64::INFINITY,
    };
    figure.draw()
}

fn table(out: &mut String, rows: &[&Row]) {
    out.push_str(
        r#"<div class="wide" tabindex="0" role="region" aria-label="Rows"><table class="rounds"><thead><tr><th scope="col">nodes</th><th scope="col">engine</th><th scope="col">time</th><th scope="col">fresh memory</th><th scope="col">words OR-ed</th><th scope="col">G words/s</th><th scope="col">GB/s moved</th><th scope="col">of copying</th><th scope="col">kernels</th><th scope="col">lanes busy</th></tr></thead><tbody>"#,
    );
    for row in rows {
        let share = row.share_of_copy;
        let share = share.map_or("–".to_owned(), |share| format!("{:.0} %", 100.0 * share));
        let kernels = match row.dispatches {
            0 => "–".to_owned(),
            n => format!("{} {}", grouped(n), row.form),
        };
        let busy = row.occupancy;
        let busy = busy.map_or("–".to_owned(), |busy| format!("{:.0} %", 100.0 * busy));
        let _ = write!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td>{:.1}</td><td>{share}</td><td>{}</td><td>{busy}</td></tr>",
            grouped(row.nodes),
            Escaped(&row.engine),
            lasting(Duration::from_secs_f64(row.seconds)),
            row.first_seconds
                .map_or("–".to_owned(), |it| lasting(Duration::from_secs_f64(it))),
            grouped(row.words_ored),
            row.words_a_second / 1e9,
            row.bytes_a_second / 1e9,
            Escaped(&kernels)
        );
    }
    out.push_str("</tbody></table></div>");
}
