//! The verdicts as annotations, which a CI service shows beside the files.

use kingsnake_text::without_commands;

use super::row::ManyRow;

/// GitHub's workflow commands: an error per violated history and per history that could not be checked, a warning per
/// unknown one, and a plain line for the others.
pub fn github(rows: &[ManyRow<'_>]) -> String {
    let mut out = String::new();
    for row in rows {
        let kind = match row.verdict() {
            "satisfied" => {
                out.push_str(&without_commands(&row.line()));
                out.push('\n');
                continue;
            }
            "unknown" => "warning",
            _ => "error",
        };
        let mut message = row.why();
        for line in row.story() {
            message.push('\n');
            message.push_str(&line);
        }
        let title = match row.anomaly() {
            Some(anomaly) => format!("{}: {anomaly}", row.verdict()),
            None => row.verdict().to_owned(),
        };
        let line = row.line_number();
        out.push_str(&format!(
            "::{kind} file={},line={line},title={}::{}\n",
            property(row.path()),
            property(&title),
            data(&message)
        ));
    }
    out
}

/// What stands after `::`.
fn data(text: &str) -> String {
    let text = without_commands(text).replace('%', "%25");
    text.replace('\r', "%0D").replace('\n', "%0A")
}

/// What stands after `=`.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_violated_history_is_an_error_whose_text_stays_on_one_line() {
        let row = json!({
            "cell": "a,b.jsonl", "verdict": "violated", "document": {
                "anomaly": {"name": "lost update", "adya": "G-single"},
                "story": {"headline": "100% lost", "lines": [{"depth": 0, "text": "T1 < T2"}]},
            },
        });
        let said = github(&[ManyRow(&row)]);
        assert_eq!(
            said,
            "::error file=a%2Cb.jsonl,line=1,title=violated%3A lost update (G-single)::100%25 lost%0AT1 < T2\n"
        );
    }
}
