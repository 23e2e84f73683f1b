//! The figures and the page of `bench anneal`.

use std::path::{Path, PathBuf};

use kingsnake_encodings::AnnealTrace;
use kingsnake_text::grouped;
use maud::{Markup, PreEscaped, html};

use super::{Course, Subject, name, speeds};
use crate::error::Result;
use crate::figure::files::FigureFiles;
use crate::figure::{Courses, FigureLabels};
use crate::recipe::Measure;
use crate::report::put_page;

/// Writes figures and the page, and prints where the page is.
pub fn write(directory: &Path, subjects: &[Subject]) -> Result<PathBuf> {
    let files = FigureFiles::new(directory);
    let mut sections = Vec::new();
    for (at, subject) in subjects.iter().enumerate() {
        let mut drawn = Vec::new();
        for (figure, svg) in [
            ("violated", violated(at, subject)),
            ("moves", moves(at, subject)),
        ] {
            files.put(&format!("{figure}-{}", at + 1), &svg)?;
            drawn.push(svg);
        }
        sections.push(section(subject, &drawn));
    }
    let body = html! {
        header {
            h1 { "Annealing" }
            p.subject { "Violated constraints over time, and moves per second, from the estimated order." }
            p.soft {
                "Serial cools one node after the other on one thread and walks once. Coloured moves all nodes of a colour at once, on "
                (rayon::current_num_threads()) " threads, and walks on each. Device cools on the device and walks as coloured does. \
                 Time starts before the line is laid out and coloured. A device tells how far each sweep was only at the end, so its sweeps are drawn \
                 equally long."
            }
        }
        @for section in &sections { (section) }
    };
    put_page(directory, "Annealing", "satisfied", &body)
}

fn size(found: &AnnealTrace) -> String {
    format!(
        "{} nodes, {} constraints, {} colours",
        grouped(found.n_nodes as u64),
        grouped(found.n_constraints as u64),
        found.n_colours
    )
}

fn courses(
    subject: &Subject,
    of: impl Fn(&AnnealTrace) -> Vec<(f64, f64)>,
) -> Vec<(String, Vec<(f64, f64)>)> {
    let all = subject.courses.iter();
    all.map(|course| (name(course.way).to_owned(), of(&course.trace)))
        .filter(|(_, points)| !points.is_empty())
        .collect()
}

fn violated(at: usize, subject: &Subject) -> String {
    let points = |trace: &AnnealTrace| {
        let moments = trace.moments.iter();
        moments
            .map(|it| (it.seconds, it.n_violated as f64))
            .collect()
    };
    let y = "Violated constraints; none is drawn as one";
    over_time(at, subject, ["violated", "Violated constraints", y], points)
}

fn moves(at: usize, subject: &Subject) -> String {
    let points = |trace: &AnnealTrace| {
        let pairs = trace.moments.windows(2);
        let speed = pairs.filter_map(|pair| {
            let seconds = pair[1].seconds - pair[0].seconds;
            let n_moves = (pair[1].n_moves - pair[0].n_moves) as f64;
            (seconds > 0.0 && n_moves > 0.0).then(|| (pair[1].seconds, n_moves / seconds))
        });
        speed.collect()
    };
    let y = "Moves a second";
    over_time(at, subject, ["moves", y, y], points)
}

/// Draws the state of each method at each moment.
fn over_time(
    at: usize,
    subject: &Subject,
    [id, title, y]: [&str; 3],
    points: impl Fn(&AnnealTrace) -> Vec<(f64, f64)>,
) -> String {
    let labels = FigureLabels {
        id: &format!("{id}-{}", at + 1),
        title: &format!("{title}, {}", subject.name),
        y,
        x: "seconds since the start",
        measure: Measure::Seconds,
    };
    let all = courses(subject, points);
    Courses { labels, all }.draw()
}

const HEADINGS: [&str; 8] = [
    "way",
    "seconds",
    "violated at the end",
    "moves",
    "cooling, moves/s",
    "walk, moves/s",
    "dispatches",
    "device",
];

fn section(subject: &Subject, drawn: &[String]) -> Markup {
    let about = subject.courses.first().map(|course| size(&course.trace));
    html! {
        section {
            h2 { (subject.name) }
            @if let Some(about) = about { p.soft { (about) } }
            @for svg in drawn {
                div.wide.drawing tabindex="0" role="region" aria-label="Figure" { (PreEscaped(svg)) }
            }
            div.wide tabindex="0" role="region" aria-label="Rows" {
                table.rounds {
                    thead { tr { @for name in HEADINGS { th scope="col" { (name) } } } }
                    tbody { @for course in &subject.courses {
                        tr { @for cell in cells(course) { td { (cell) } } }
                    } }
                }
            }
        }
    }
}

fn cells(course: &Course) -> [String; 8] {
    const NOTHING: &str = "–";
    let trace = &course.trace;
    let last = trace.moments.last();
    let [cool, walk] = speeds(&trace.moments)
        .map(|speed| speed.map_or(NOTHING.to_owned(), |it| grouped(it as u64)));
    let (dispatches, device) = match trace.device.dispatches {
        0 => (NOTHING.to_owned(), NOTHING.to_owned()),
        n => (grouped(n), trace.device.name.clone()),
    };
    [
        name(course.way).to_owned(),
        last.map_or(NOTHING.to_owned(), |it| format!("{:.2}", it.seconds)),
        last.map_or(NOTHING.to_owned(), |it| grouped(it.n_violated as u64)),
        last.map_or(NOTHING.to_owned(), |it| grouped(it.n_moves)),
        cool,
        walk,
        dispatches,
        device,
    ]
}
