//! The page of a hunt: what each database promises at each level, what was found, how often, and the first counterexample.

use std::fmt::Write;

use kingsnake_text::{Frame, count, grouped, markdown};
use maud::{Markup, html};
use serde_json::Value;

use super::{finding, scripts};

/// Whether a promise was broken: violated at the promised level, or wrong at every level.
pub fn is_broken(row: &Value) -> bool {
    let promised = row["promise"]
        .as_str()
        .is_some_and(|level| row[level]["verdict"] == "violated");
    promised || n_findings(row) > 0
}

fn n_findings(row: &Value) -> usize {
    row["findings"].as_array().map_or(0, Vec::len)
}

/// The levels that a row was checked at.
fn levels(row: &Value) -> Vec<&str> {
    let levels = row["levels"].as_array().into_iter().flatten();
    levels.filter_map(Value::as_str).collect()
}

/// A cell's outcome in a few words.
pub fn outcome(row: &Value) -> String {
    if let Some(why) = row["error"].as_str() {
        return format!("failed: {why}");
    }
    let verdict = |level: &str| {
        row[level]["verdict"]
            .as_str()
            .unwrap_or("unknown")
            .to_owned()
    };
    let mut words = Vec::new();
    for level in levels(row) {
        let promised = if row["promise"] == level {
            "promised "
        } else {
            ""
        };
        words.push(format!("{promised}{level} {}", verdict(level)));
        words.extend(row[level]["anomaly"].as_str().map(str::to_owned));
    }
    let mut words = words.join(", ");
    if n_findings(row) > 0 {
        let _ = write!(words, ", {} findings whatever the level", n_findings(row));
    }
    words
}

/// Rows that differ only in their seed.
struct Group<'a> {
    rows: Vec<&'a Value>,
}

fn groups(rows: &[Value]) -> Vec<Group<'_>> {
    let name = |row: &Value| {
        let cell = row["cell"].as_str().unwrap_or("");
        cell.rsplit_once(" seed ")
            .map_or(cell, |it| it.0)
            .to_owned()
    };
    let mut groups: Vec<(String, Group<'_>)> = Vec::new();
    // Scripts have a table of their own.
    for row in rows.iter().filter(|row| row["breaks"].is_null()) {
        let name = name(row);
        match groups.iter_mut().find(|(it, _)| *it == name) {
            Some((_, group)) => group.rows.push(row),
            None => groups.push((name, Group { rows: vec![row] })),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

impl Group<'_> {
    fn count(&self, level: &str, verdict: &str) -> usize {
        self.rows
            .iter()
            .filter(|row| row[level]["verdict"] == verdict)
            .count()
    }

    fn sum(&self, field: &str) -> u64 {
        self.rows.iter().filter_map(|row| row[field].as_u64()).sum()
    }

    fn seconds(&self, field: &str) -> f64 {
        self.rows.iter().filter_map(|row| row[field].as_f64()).sum()
    }

    fn promise(&self) -> Option<&str> {
        self.rows[0]["promise"].as_str()
    }

    /// The first row that violates the promised level, or else another checked level.
    fn first(&self) -> Option<(&Value, &str)> {
        let violated = |level| {
            let found = self
                .rows
                .iter()
                .find(|row| row[level]["verdict"] == "violated");
            found.map(|row| (*row, level))
        };
        let mut all = self.promise().into_iter().chain(levels(self.rows[0]));
        all.find_map(violated)
    }

    /// A table cell: one level per line, numbers aligned right, findings in the colour of a violation.
    fn markup(&self, heading: &str, cell: &str) -> Markup {
        let is_broken = self.rows.iter().any(|row| is_broken(row));
        match heading {
            "violated" => html! { td { @for each in cell.split(", ") { span.each { (each) } } } },
            "promise broken" => {
                html! { td.whole.broken[is_broken].holds[!is_broken && cell != "–"] { (cell) } }
            }
            "first anomaly" => {
                html! { td.broken[is_broken].unknown[!is_broken && cell != "–"] { (cell) } }
            }
            "committed" | "aborted" | "seconds to collect / check" => {
                html! { td.whole.right { (cell) } }
            }
            "database" | "fault" => html! { td.whole { (cell) } },
            _ => html! { td { (cell) } },
        }
    }

    fn cells(&self) -> Vec<String> {
        let row = self.rows[0];
        let text = |field: &str| row[field].as_str().unwrap_or("").to_owned();
        let ops = row["ops"]
            .as_u64()
            .map_or(String::new(), |ops| format!(", {ops} ops"));
        let n = self.rows.len();
        let failed = self
            .rows
            .iter()
            .filter(|row| !row["error"].is_null())
            .count();
        let findings: usize = self.rows.iter().map(|row| n_findings(row)).sum();
        let violated = |level: &str| format!("{} of {n}", self.count(level, "violated"));
        let broken = self.promise().map_or("–".to_owned(), violated);
        let levels = levels(row).into_iter();
        let undecided = |level| self.count(level, "unknown") + self.count(level, "error");
        let unknown: usize = levels.clone().map(undecided).sum();
        let each = levels.map(|level| format!("{level} {}", violated(level)));
        let each: Vec<String> = each.collect();
        let mut notes = Vec::new();
        for (number, what) in [
            (failed, "failed"),
            (unknown, "unknown"),
            (findings, "durability findings"),
        ] {
            if number > 0 {
                notes.push(format!("{number} {what}"));
            }
        }
        vec![
            text("version"),
            text("isolation"),
            text("workload") + &ops,
            text("fault"),
            self.promise().unwrap_or("nothing").to_owned(),
            broken,
            each.join(", "),
            self.first()
                .and_then(|(row, level)| row[level]["anomaly"].as_str())
                .unwrap_or("–")
                .to_owned(),
            grouped(self.sum("committed")),
            grouped(self.sum("aborted")),
            format!(
                "{:.1} / {:.1}",
                self.seconds("collecting_seconds") + self.seconds("merging_seconds"),
                self.seconds("checking_seconds")
            ),
            notes.join(", "),
        ]
    }
}

const HEADINGS: [&str; 12] = [
    "database",
    "isolation",
    "workload",
    "fault",
    "promised",
    "promise broken",
    "violated",
    "first anomaly",
    "committed",
    "aborted",
    "seconds to collect / check",
    "notes",
];

/// The same table in Markdown.
pub fn table(name: &str, rows: &[Value]) -> String {
    let mut out = format!(
        "# {}\n\n| {} |\n|{}\n",
        markdown(name),
        HEADINGS.join(" | "),
        " --- |".repeat(HEADINGS.len())
    );
    let scripts = scripts::table(rows);
    let groups = groups(rows);
    if groups.is_empty() && !scripts.is_empty() {
        return format!("# {}\n\n{scripts}", markdown(name));
    }
    for group in groups {
        let cells: Vec<String> = group.cells().iter().map(|it| markdown(it)).collect();
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    if !scripts.is_empty() {
        let _ = write!(out, "\n{scripts}");
    }
    out
}

/// The page.
pub fn page(name: &str, rows: &[Value]) -> String {
    let groups = groups(rows);
    let broken = rows.iter().filter(|row| is_broken(row)).count();
    let first: Vec<(&Value, &str)> = groups.iter().filter_map(Group::first).collect();
    let body = html! {
        header {
            h1 { (name) }
            p.subject { (count(rows.len(), "cell")) ", " (broken) " of which broke a promise" }
        }
        (scripts::section(rows))
        @if !groups.is_empty() { section {
            div.scroller { div.wide tabindex="0" role="region" aria-label="Every database, level, workload and fault" {
                table.grid {
                    thead { tr {
                        @for heading in HEADINGS { th scope="col" { (heading) } }
                        th scope="col" { "story" }
                    } }
                    tbody { @for group in &groups {
                        tr {
                            @for (heading, cell) in HEADINGS.iter().zip(group.cells()) { (group.markup(heading, &cell)) }
                            td { @if let Some((row, level)) = group.first() {
                                (link(row, row[level]["story"].as_str().unwrap_or(""), level)) " " (link(row, finding::FINDING, "finding"))
                            } }
                        }
                    } }
                }
            } }
        } }
        @if !first.is_empty() {
            section {
                h2 { "First counterexamples" }
                @for (row, level) in first {
                    @let folder = format!("{}/", row["folder"].as_str().unwrap_or(""));
                    (finding::article(row, level, &folder))
                }
            }
        }
    };
    let frame = Frame {
        title: name,
        mood: if broken > 0 { "violated" } else { "satisfied" },
        style: &format!("{STYLE}{}", scripts::STYLE),
        script: crate::page::SCRIPT,
    };
    kingsnake_text::page(frame, &body)
}

const STYLE: &str = ":root{--wide:84rem}
article{margin:0 0 .8rem}
.grid{font-size:.8rem}
.grid th,.grid td{padding:.35rem .45rem}
.grid thead th{white-space:normal;vertical-align:bottom}
.each{display:block;white-space:nowrap}";

fn link(row: &Value, file: &str, words: &str) -> Markup {
    let folder = row["folder"].as_str().unwrap_or("");
    html! { a href={ (folder) "/" (file) } { (words) } }
}
