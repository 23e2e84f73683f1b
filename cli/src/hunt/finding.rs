//! The page of a finding: what was found, of which version and settings, how to repeat it, and how to shrink it.

use kingsnake_text::Frame;
use maud::{Markup, html};
use serde_json::Value;

/// The page's name within a cell's directory.
pub const FINDING: &str = "finding.html";

/// The levels that a cell violates, the promised one first.
pub fn violated(row: &Value) -> Vec<&str> {
    let promised = row["promise"].as_str().into_iter();
    let levels = row["levels"].as_array().into_iter().flatten();
    let levels = levels.filter_map(Value::as_str);
    let mut found: Vec<&str> = Vec::new();
    for level in promised.chain(levels) {
        if row[level]["verdict"] == "violated" && !found.contains(&level) {
            found.push(level);
        }
    }
    found
}

/// A finding at a level, with links relative to this place.
pub fn article(row: &Value, level: &str, place: &str) -> Markup {
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let promise = row["promise"].as_str().unwrap_or("nothing");
    let settings = row["settings"].as_object().into_iter().flatten();
    let settings: Vec<String> = settings
        .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or("")))
        .collect();
    let story = text(&row[level]["story"]);
    html! {
        article {
            h3 { (text(&row["cell"])) }
            p { (text(&row[level]["headline"])) " " a href={ (place) (story) } { "The story" } }
            table.plan { tbody {
                tr { th scope="row" { "database" } td { (text(&row["version"])) } }
                tr { th scope="row" { "isolation" } td { (text(&row["isolation"])) ", which promises " (promise) } }
                @if !settings.is_empty() { tr { th scope="row" { "settings" } td { (settings.join(", ")) } } }
                tr { th scope="row" { "versions ordered by" } td { (text(&row["version_order"])) } }
            } }
            p { "Repeat it:" }
            pre { code { (text(&row["command"])) " --check " (level) } }
            @match row["shrunk"][level]["file"].as_str() {
                Some(file) => p {
                    "Shrunk to " (text(&row["shrunk"][level]["size"])) ": " a href={ (place) (file) } { (file) }
                },
                None => {
                    p { "Shrink it, from the directory of this hunt:" }
                    pre { code {
                        "kingsnake shrink " (text(&row["folder"])) "/history.jsonl --level " (level) " --out small.jsonl"
                    } }
                }
            }
        }
    }
}

/// The page of a cell that violates some level; `None` if it violates none.
pub fn page(row: &Value) -> Option<String> {
    let levels = violated(row);
    if levels.is_empty() {
        return None;
    }
    let body = html! {
        header {
            h1 { (row["version"].as_str().unwrap_or("")) }
            p.subject { (row["cell"].as_str().unwrap_or("")) }
        }
        section {
            @for level in levels { (article(row, level, "")) }
            @let findings = row["findings"].as_array().into_iter().flatten();
            ul { @for finding in findings { li { (finding.as_str().unwrap_or("")) } } }
            p { a href="collection.html" { "How the collection went" } }
        }
    };
    let frame = Frame {
        title: "A finding",
        mood: "violated",
        style: "",
        script: crate::page::SCRIPT,
    };
    Some(kingsnake_text::page(frame, &body))
}
