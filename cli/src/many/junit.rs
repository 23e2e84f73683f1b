//! The verdicts as `JUnit`'s XML, which CI services read: a test case per history.

use std::fmt::Write;

use kingsnake_text::Escaped;

use super::row::ManyRow;

/// The whole document.
pub fn write(rows: &[ManyRow<'_>]) -> String {
    let n_of = |verdict: &str| rows.iter().filter(|row| row.verdict() == verdict).count();
    let time: f64 = rows.iter().map(ManyRow::seconds).sum();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"0\" time=\"{time:.3}\"",
        rows.len(),
        n_of("violated"),
        n_of("error") + n_of("unknown"),
    );
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n<testsuite name=\"kingsnake check\" {counts}>\n"
    );
    for row in rows {
        let (class, name) = (format!("kingsnake.{}", row.level()), row.path());
        let _ = write!(
            out,
            "<testcase classname=\"{}\" name=\"{}\" file=\"{}\" time=\"{:.3}\"",
            Escaped(&class),
            Escaped(name),
            Escaped(name),
            row.seconds()
        );
        let element = match row.verdict() {
            "satisfied" => {
                out.push_str("/>\n");
                continue;
            }
            "violated" => "failure",
            _ => "error",
        };
        let kind = row.anomaly().unwrap_or_else(|| row.verdict().to_owned());
        let _ = writeln!(
            out,
            ">\n<{element} type=\"{}\" message=\"{}\">{}</{element}>\n</testcase>",
            Escaped(&kind),
            Escaped(&row.why()),
            Escaped(&row.story().join("\n"))
        );
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}
