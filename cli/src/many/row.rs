//! The row of a checked history: its process's answer, summarised and in full.

use std::path::Path;

use kingsnake_datasets::locate;
use kingsnake_studies::{ChildEnding, EndedChild, Item};
use serde_json::{Value, json};

use super::workers::Answered;
use crate::failure;
use crate::input;
use crate::voice::{grouped, lasting, printable, short};

/// The middle of a longer line is omitted.
const MOST_LETTERS: usize = 2_000;

/// Longer parts of a document are shortened where there is no room for all of it.
const MOST_OF_A_PART: usize = 1_000;

/// Shortens texts and lists, so that what is left is small whatever the history holds.
fn shorten(document: &mut Value) {
    match document {
        Value::String(text) => *text = short(text, MOST_OF_A_PART),
        Value::Array(list) => {
            list.truncate(MOST_OF_A_PART);
            list.iter_mut().for_each(shorten);
        }
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// The row of a process that has ended. Its document is kept whole where there is room for it.
pub fn of(item: &Item, ended: &EndedChild, has_room: bool) -> Value {
    let status = match &ended.ending {
        ChildEnding::Exited(status) => status.code().unwrap_or(2),
        ChildEnding::Late | ChildEnding::Large => 3,
        ChildEnding::Stopped => 2,
    };
    let complaint = ended.stderr.trim();
    let complaint = complaint.strip_prefix("kingsnake: ").unwrap_or(complaint);
    let mut document = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| {
        let words = match &ended.ending {
            ChildEnding::Late => "killed after its time limit".to_owned(),
            ChildEnding::Exited(status) if complaint.is_empty() => status.to_string(),
            _ => complaint.to_owned(),
        };
        failure::document(&words)
    });
    if !has_room && document.is_object() {
        shorten(&mut document);
        document["shortened"] = true.into();
    }
    let wall = ended.wall.as_secs_f64();
    let mut row = row(item, status, document, wall);
    row["attempt"] = u32::from(ended.is_passing()).into();
    row
}

/// The row of a verdict that a process gave to one of several histories.
pub fn answered(item: &Item, answer: &Answered) -> Value {
    let document = answer.document.clone();
    let wall = answer.wall.as_secs_f64();
    let mut row = row(item, answer.status, document, wall);
    row["attempt"] = 0.into();
    row
}

/// The row of a history whose process never came back.
pub fn lost(item: &Item, reason: &str) -> Value {
    row(item, 2, failure::document(reason), 0.0)
}

fn row(item: &Item, status: i32, mut document: Value, wall: f64) -> Value {
    let verdict = match status {
        0 => "satisfied",
        1 => "violated",
        3 => "unknown",
        _ => "error",
    };
    if document.get("path").is_none() {
        document["path"] = item.name.clone().into();
    }
    let device = &document["stats"]["device"];
    let device = device["name"].as_str().filter(|it| !it.is_empty());
    json!({
        "verdict": verdict, "exit_status": status, "wall_seconds": wall,
        "device": if device.is_some() { "gpu" } else { "cpu" }, "adapter": device,
        "page": null, "document": document,
    })
}

/// A row, for printing.
pub struct ManyRow<'a>(pub &'a Value);

impl ManyRow<'_> {
    /// The history's path.
    pub fn path(&self) -> &str {
        self.0["cell"].as_str().unwrap_or("")
    }

    /// `satisfied`, `violated`, `unknown` or `error`.
    pub fn verdict(&self) -> &str {
        self.0["verdict"].as_str().unwrap_or("error")
    }

    /// The answer of its process.
    pub fn document(&self) -> &Value {
        &self.0["document"]
    }

    /// Seconds from the start of its process to its end.
    pub fn seconds(&self) -> f64 {
        self.0["wall_seconds"].as_f64().unwrap_or(0.0)
    }

    /// The path of its page, relative to the directory of rows.
    pub fn page(&self) -> Option<&str> {
        self.0["page"].as_str()
    }

    /// Where it ran.
    pub fn host(&self) -> &str {
        self.0["host"].as_str().unwrap_or("")
    }

    /// The level that was checked.
    pub fn level(&self) -> String {
        let name = self.document()["level"]["name"].as_str();
        name.unwrap_or("check").to_owned()
    }

    /// The anomaly's name, of a violated history.
    pub fn anomaly(&self) -> Option<String> {
        let document = self.document();
        let anomaly = &document["anomaly"];
        // With `auto` there are several.
        let first = document["anomaly_types"][0].as_str();
        let name = anomaly["name"].as_str().or(first)?;
        Some(match anomaly["adya"].as_str() {
            Some(adya) => format!("{name} ({adya})"),
            None => name.to_owned(),
        })
    }

    /// Why it is not satisfied, in one line.
    pub fn why(&self) -> String {
        let document = self.document();
        let found = [
            document["error"]["message"].as_str(),
            document["story"]["headline"].as_str(),
            document["reason"]["words"].as_str(),
        ];
        let found = found.into_iter().flatten().next().map(str::to_owned);
        let found = found.or_else(|| self.anomaly()).unwrap_or_default();
        short(&found, MOST_LETTERS)
    }

    /// The line of the file to point at: where reading failed, or the last of the transactions involved; 1 if there is none.
    pub fn line_number(&self) -> u64 {
        let document = self.document();
        if let Some(line) = document["error"]["line"].as_u64() {
            return line;
        }
        let plain = |value: &Value| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        let txns = document["transactions"].as_array().into_iter().flatten();
        let wanted: Vec<(String, String)> = txns
            .map(|txn| (plain(&txn["session"]), plain(&txn["name"])))
            .collect();
        let format = document["history"]["format"].as_str();
        let Some(Ok(format)) = format.map(str::parse).filter(|_| !wanted.is_empty()) else {
            return 1;
        };
        let path = Path::new(self.path());
        let found = locate(path, format, &wanted, &input::again());
        let lines = found.map(|it| it.lines).unwrap_or_default();
        let last = lines.into_iter().flatten().map(|it| it.number).max();
        last.map_or(1, |it| it as u64)
    }

    /// The counterexample's text, line by line.
    pub fn story(&self) -> Vec<String> {
        let lines = self.document()["story"]["lines"].as_array();
        let text = |line: &Value| {
            let text = line["text"].as_str()?;
            let depth = line["depth"].as_u64().unwrap_or(0) as usize;
            Some(format!("{}{text}", "  ".repeat(depth)))
        };
        lines.into_iter().flatten().filter_map(text).collect()
    }

    /// The row in one line.
    pub fn line(&self) -> String {
        let rest = match self.verdict() {
            "satisfied" => {
                let seconds = std::time::Duration::from_secs_f64(self.seconds());
                format!(" ({})", lasting(seconds))
            }
            "violated" => self.anomaly().map_or(String::new(), |it| format!(": {it}")),
            _ => format!(": {}", self.why()),
        };
        let (verdict, path) = (self.verdict(), self.path());
        printable(&short(&format!("{verdict:<9} {path}{rest}"), MOST_LETTERS))
    }
}

fn n_of(rows: &[ManyRow<'_>], verdict: &str) -> usize {
    rows.iter().filter(|row| row.verdict() == verdict).count()
}

/// All of them in one line.
pub fn summary(rows: &[ManyRow<'_>], n_histories: usize) -> String {
    let parts = ["satisfied", "violated", "unknown", "error"].map(|verdict| {
        let word = if verdict == "error" {
            "failed"
        } else {
            verdict
        };
        format!("{} {word}", n_of(rows, verdict))
    });
    let left = n_histories.saturating_sub(rows.len());
    let left = match left {
        0 => String::new(),
        left => format!(", {left} not checked yet"),
    };
    format!("{}: {}{left}\n", counted(n_histories), parts.join(", "))
}

/// `1 history`, `2 histories`.
pub fn counted(n_histories: usize) -> String {
    match n_histories {
        1 => "1 history".to_owned(),
        n => format!("{} histories", grouped(n as u64)),
    }
}

/// The exit status of all.
pub fn worst(rows: &[ManyRow<'_>], n_histories: usize) -> u8 {
    if n_of(rows, "violated") > 0 {
        1
    } else if n_of(rows, "error") > 0 {
        2
    } else if n_of(rows, "unknown") > 0 || rows.len() < n_histories {
        3
    } else {
        0
    }
}
