//! What was run on what, so that it can be run again.

use std::fmt::Write;

use crate::design::{Cell, Origin, Study};
use crate::machine;
use crate::row::Row;
use kingsnake_text::{Escaped, count, lasting, sized};

/// The section.
pub fn section(out: &mut String, study: &Study, rows: &[(Cell, Row)]) {
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
            format!("{} done of {}", rows.len(), study.cells.len()),
        ),
    ];
    if let Some(name) = machine::processor() {
        facts.insert(2, ("processor", name));
    }
    for (name, value) in &study.parameters {
        facts.push((name, value.clone()));
    }
    out.push_str("<section><h2>The set-up</h2><table class=\"plan\"><tbody>");
    for (name, value) in facts {
        let _ = write!(
            out,
            r#"<tr><th scope="row">{}</th><td>{}</td></tr>"#,
            Escaped(name),
            Escaped(&value)
        );
    }
    out.push_str(
        "</tbody></table><details><summary>The histories</summary><table class=\"plan\"><tbody>",
    );
    for source in &study.sources {
        let words = match &source.origin {
            Origin::Generated(words) => format!("kingsnake generate {}", words.join(" ")),
            Origin::File(path) => path.display().to_string(),
            Origin::Corpus { name, .. } => format!("datasets/corpus/{name}"),
        };
        let _ = write!(
            out,
            r#"<tr><th scope="row">{}</th><td><code>{}</code></td></tr>"#,
            Escaped(&source.name),
            Escaped(&words)
        );
    }
    out.push_str("</tbody></table></details><details><summary>A command for each check</summary>");
    for (cell, row) in rows {
        if cell.repeat == 0 && cell.seed == 0 {
            let _ = write!(out, "<pre><code>{}</code></pre>", Escaped(&row.command));
        }
    }
    out.push_str("</details><p class=\"soft\">Every run: <a href=\"rows.csv\">rows.csv</a>, <a href=\"rows.jsonl\">rows.jsonl</a>. Medians: <a href=\"summary.json\">summary.json</a>.</p></section>\n");
}
