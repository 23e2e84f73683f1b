//! The page of many histories: a table of verdicts, with links to the pages of violated histories.

use kingsnake_text::Frame;
use maud::{Markup, html};

use super::row::{ManyRow, counted, summary};

const HEADINGS: [&str; 6] = [
    "history",
    "level",
    "verdict",
    "what was found",
    "seconds",
    "host",
];

/// The page.
pub fn write(rows: &[ManyRow<'_>]) -> String {
    let body = html! {
        header {
            h1 { (counted(rows.len())) " checked" }
            p.subject { (summary(rows, rows.len()).trim()) }
        }
        section {
            div.scroller { div.wide tabindex="0" role="region" aria-label="Every history" {
                table.grid {
                    thead { tr { @for heading in HEADINGS { th.right[heading == "seconds"] scope="col" { (heading) } } } }
                    tbody { @for row in rows { (line(row)) } }
                }
            } }
        }
    };
    let is_fine = rows.iter().all(|row| row.verdict() == "satisfied");
    let frame = Frame {
        title: "Histories",
        mood: if is_fine { "satisfied" } else { "violated" },
        script: crate::page::SCRIPT,
        ..Frame::default()
    };
    kingsnake_text::page(frame, &body)
}

fn line(row: &ManyRow<'_>) -> Markup {
    let found = match row.verdict() {
        "satisfied" => String::new(),
        _ => row.why(),
    };
    html! {
        tr {
            td {
                @match row.page() {
                    Some(page) => a href=(page) { (row.path()) },
                    None => (row.path()),
                }
            }
            td { (row.level()) }
            td class={ "whole " (row.verdict()) } { (row.verdict()) }
            td.what { (found) }
            td.right { (format!("{:.2}", row.seconds())) }
            td { (row.host()) }
        }
    }
}
