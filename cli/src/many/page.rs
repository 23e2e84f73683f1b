//! The page of many histories: a table of verdicts, with links to the pages of those that are violated.

use std::fmt::Write;

use kingsnake_text::Escaped;

use super::row::{Row, counted, summary};

/// The page.
pub fn write(rows: &[Row<'_>]) -> String {
    let mut body = format!(
        "<header><h1>{} checked</h1><p class=\"subject\">{}</p></header><section><div class=\"wide\"><table><thead><tr>",
        counted(rows.len()),
        Escaped(summary(rows, rows.len()).trim())
    );
    for heading in [
        "history",
        "level",
        "verdict",
        "what was found",
        "seconds",
        "host",
    ] {
        let _ = write!(body, "<th scope=\"col\">{heading}</th>");
    }
    body.push_str("</tr></thead><tbody>");
    for row in rows {
        let found = match row.verdict() {
            "satisfied" => String::new(),
            _ => row.why(),
        };
        let path = match row.page() {
            Some(page) => format!("<a href=\"{}\">{}</a>", Escaped(page), Escaped(row.path())),
            None => Escaped(row.path()).to_string(),
        };
        let _ = write!(
            body,
            "<tr><td>{path}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.2}</td><td>{}</td></tr>",
            Escaped(&row.level()),
            Escaped(row.verdict()),
            Escaped(&found),
            row.seconds(),
            Escaped(row.host())
        );
    }
    body.push_str("</tbody></table></div></section>");
    let is_fine = rows.iter().all(|row| row.verdict() == "satisfied");
    let mood = if is_fine { "satisfied" } else { "violated" };
    kingsnake_text::page("Histories", "", mood, &body)
}
