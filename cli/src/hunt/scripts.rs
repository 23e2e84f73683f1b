//! The table of a hunt's scripts: the outcome of each script on each database and level, and what prevented the anomaly.

use std::fmt::Write;

use kingsnake_text::markdown;
use maud::{Markup, html};
use serde_json::Value;

use super::page::is_broken;

/// The outcome of a script.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ScriptOutcome {
    /// The anomaly occurred, though the promised level forbids it.
    Broken,
    /// The anomaly occurred, and no promise forbids it.
    Shown,
    /// A transaction was aborted.
    Aborted,
    /// A step waited for another session.
    Waited,
    /// Every step succeeded, and the anomaly did not occur.
    Unseen,
    /// It failed, or the check did not end.
    Unknown,
}

impl ScriptOutcome {
    /// `breaks` tells whether the cell ran a script.
    fn of(row: &Value) -> Self {
        let breaks = row["breaks"].as_str().unwrap_or("");
        match row[breaks]["verdict"].as_str() {
            _ if is_broken(row) => Self::Broken,
            Some("violated") => Self::Shown,
            Some("satisfied") => Self::prevented(row),
            _ => Self::Unknown,
        }
    }

    fn prevented(row: &Value) -> Self {
        let steps = || row["steps"].as_array().into_iter().flatten();
        let is_aborted = |step: &Value| {
            let result = step["result"].as_str().unwrap_or("");
            result.starts_with("aborted: ")
        };
        if steps().any(is_aborted) {
            Self::Aborted
        } else if steps().any(|step| step["blocked"] == true) {
            Self::Waited
        } else {
            Self::Unseen
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Broken => "shown ✗",
            Self::Shown => "shown",
            Self::Aborted => "abort",
            Self::Waited => "wait",
            Self::Unseen => "–",
            Self::Unknown => "?",
        }
    }

    fn class(self) -> &'static str {
        match self {
            Self::Broken => "broken",
            Self::Shown => "shown",
            Self::Aborted | Self::Waited | Self::Unseen => "holds",
            Self::Unknown => "unknown",
        }
    }
}

/// The table's legend.
const LEGEND: &str = "shown: the history has the anomaly, which the level does not forbid. shown ✗: it has the anomaly although \
    what is promised forbids it. abort: the database aborted a transaction. wait: a step waited for another session. –: every step \
    went through, and the history does not have the anomaly.";

/// Rows of scripts, by database and level; columns by script, with the weakest level that forbids its anomaly.
struct ScriptTable<'a> {
    columns: Vec<(&'a str, &'a str)>,
    rows: Vec<(&'a Value, Vec<&'a Value>)>,
}

/// The same place in the table.
fn place(row: &Value) -> [&Value; 3] {
    [&row["version"], &row["isolation"], &row["fault"]]
}

impl<'a> ScriptTable<'a> {
    fn new(rows: &'a [Value]) -> Self {
        let mut table = ScriptTable {
            columns: Vec::new(),
            rows: Vec::new(),
        };
        for row in rows {
            let Some(breaks) = row["breaks"].as_str() else {
                continue;
            };
            let script = row["workload"].as_str().unwrap_or("");
            if !table.columns.iter().any(|it| it.0 == script) {
                table.columns.push((script, breaks));
            }
            match table.rows.iter_mut().find(|it| place(it.0) == place(row)) {
                Some((_, cells)) => cells.push(row),
                None => table.rows.push((row, vec![row])),
            }
        }
        table
    }

    /// The table cell of a script; of several seeds the first with the anomaly.
    fn cell(cells: &[&'a Value], script: &str) -> Option<(ScriptOutcome, &'a Value)> {
        let all = cells.iter().filter(|it| it["workload"] == script);
        let told = all.map(|row| (ScriptOutcome::of(row), *row));
        let shown = |it: &(ScriptOutcome, &Value)| {
            matches!(it.0, ScriptOutcome::Broken | ScriptOutcome::Shown)
        };
        told.clone().find(shown).or_else(|| told.clone().next())
    }

    fn heads(row: &Value) -> [String; 3] {
        let text = |field: &str| row[field].as_str().unwrap_or("").to_owned();
        let promise = row["promise"].as_str().unwrap_or("nothing").to_owned();
        let fault = row["fault"].as_str().filter(|it| *it != "none");
        let fault = fault.map_or(String::new(), |it| format!(", {it}"));
        [text("version"), text("isolation") + &fault, promise]
    }
}

const HEADS: [&str; 3] = ["database", "level", "promised"];

/// The table in Markdown; empty where there is no script.
pub fn table(rows: &[Value]) -> String {
    let table = ScriptTable::new(rows);
    if table.rows.is_empty() {
        return String::new();
    }
    let names = table.columns.iter().map(|it| markdown(it.0));
    let names: Vec<String> = names.collect();
    let levels: Vec<&str> = table.columns.iter().map(|it| it.1).collect();
    let mut out = format!(
        "| {} | {} |\n|{}\n| | | *forbidden by* | *{}* |\n",
        HEADS.join(" | "),
        names.join(" | "),
        " --- |".repeat(HEADS.len() + names.len()),
        levels.join("* | *")
    );
    for (row, cells) in &table.rows {
        let heads = ScriptTable::heads(row).map(|it| markdown(&it));
        let told = |script| ScriptTable::cell(cells, script).map_or("", |it| it.0.words());
        let told: Vec<&str> = table.columns.iter().map(|it| told(it.0)).collect();
        let _ = writeln!(out, "| {} | {} |", heads.join(" | "), told.join(" | "));
    }
    let _ = writeln!(out, "\n{LEGEND}");
    out
}

/// The table of the page.
pub fn section(rows: &[Value]) -> Markup {
    let table = ScriptTable::new(rows);
    if table.rows.is_empty() {
        return html! {};
    }
    html! {
        section {
            h2 { "Scripts" }
            p.soft { (LEGEND) }
            div.scroller { div.wide tabindex="0" role="region" aria-label="Every database, level and script" {
                table.grid.scripts {
                    thead {
                        tr {
                            @for head in HEADS { th scope="col" { (head) } }
                            @for (script, _) in &table.columns { th scope="col" { (script) } }
                        }
                        tr.soft {
                            td colspan="3" { "forbidden by" }
                            @for (_, breaks) in &table.columns { td { (breaks) } }
                        }
                    }
                    tbody { @for (row, cells) in &table.rows { tr {
                        @for head in ScriptTable::heads(row) { td.whole { (head) } }
                        @for (script, breaks) in &table.columns { (cell(ScriptTable::cell(cells, script), breaks)) }
                    } } }
                }
            } }
        }
    }
}

fn cell(found: Option<(ScriptOutcome, &Value)>, breaks: &str) -> Markup {
    let Some((outcome, row)) = found else {
        return html! { td {} };
    };
    let folder = row["folder"].as_str().unwrap_or("");
    let file = match row[breaks]["story"].as_str() {
        Some(story) if outcome.class() != "holds" => story,
        _ => crate::collecting::steps::STEPS,
    };
    html! { td class=(outcome.class()) { a href={ (folder) "/" (file) } { (outcome.words()) } } }
}

/// The colours of the table.
pub const STYLE: &str = "
.scripts td.holds{background:color-mix(in srgb,var(--good) 12%,transparent)}
.scripts td.shown{background:color-mix(in srgb,var(--open) 22%,transparent)}
.scripts td.broken{background:color-mix(in srgb,var(--bad) 22%,transparent)}
.scripts td{text-align:center}
.scripts td.whole{text-align:left}
.scripts td a{text-decoration:none}";
