//! The verdicts as GitLab's code quality report and as SARIF, which services and editors show beside the files.

use serde_json::{Value, json};

use super::row::ManyRow;

/// A history that is not satisfied, as a finding.
struct Issue<'a> {
    row: &'a ManyRow<'a>,
    /// The kind of finding.
    rule: String,
    line: u64,
}

fn issues<'a>(rows: &'a [ManyRow<'a>]) -> Vec<Issue<'a>> {
    let found = rows.iter().filter(|row| row.verdict() != "satisfied");
    let issue = |row: &'a ManyRow<'a>| Issue {
        rule: row.anomaly().unwrap_or_else(|| row.verdict().to_owned()),
        line: row.line_number(),
        row,
    };
    found.map(issue).collect()
}

impl Issue<'_> {
    fn text(&self) -> String {
        let why = self.row.why();
        if why.is_empty() {
            self.rule.clone()
        } else {
            why
        }
    }

    /// The same finding has the same fingerprint in every run, from its file, level and kind.
    fn fingerprint(&self) -> String {
        let text = format!("{}\0{}\0{}", self.row.path(), self.row.level(), self.rule);
        // FNV-1a, which is the same on every machine and in every version.
        let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

/// GitLab's code quality report (`artifacts:reports:codequality`).
pub fn code_quality(rows: &[ManyRow<'_>]) -> String {
    let issues = issues(rows);
    let all = issues.iter().map(|issue| {
        json!({
            "description": issue.text(),
            "check_name": issue.rule,
            "fingerprint": issue.fingerprint(),
            "severity": match issue.row.verdict() { "violated" => "critical", "unknown" => "minor", _ => "major" },
            "location": {"path": issue.row.path(), "lines": {"begin": issue.line}},
        })
    });
    format!("{:#}\n", Value::Array(all.collect()))
}

/// SARIF 2.1.0: a rule per anomaly, a result per history.
pub fn sarif(rows: &[ManyRow<'_>]) -> String {
    let issues = issues(rows);
    let mut names: Vec<&str> = issues.iter().map(|it| it.rule.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let rules = names
        .iter()
        .map(|name| json!({"id": name, "shortDescription": {"text": name}}));
    let results = issues.iter().map(|issue| {
        let mut message = issue.text();
        for line in issue.row.story() {
            message.push('\n');
            message.push_str(&line);
        }
        json!({
            "ruleId": issue.rule,
            "level": if issue.row.verdict() == "unknown" { "warning" } else { "error" },
            "message": {"text": message},
            "locations": [{"physicalLocation": {
                "artifactLocation": {"uri": issue.row.path()}, "region": {"startLine": issue.line},
            }}],
            "partialFingerprints": {"kingsnake/v1": issue.fingerprint()},
        })
    });
    let document = json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "kingsnake", "version": env!("CARGO_PKG_VERSION"), "rules": rules.collect::<Vec<_>>(),
            }},
            "results": results.collect::<Vec<_>>(),
        }],
    });
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_not_satisfied_is_an_issue_and_it_keeps_its_fingerprint() {
        let violated = json!({
            "cell": "a.jsonl", "verdict": "violated", "document": {
                "anomaly": {"name": "lost update", "adya": "G-single"},
                "story": {"headline": "an update is lost", "lines": [{"depth": 0, "text": "T1 < T2"}]},
            },
        });
        let satisfied = json!({"cell": "b.jsonl", "verdict": "satisfied", "document": {}});
        let rows = [ManyRow(&violated), ManyRow(&satisfied)];
        let quality: Value = serde_json::from_str(&code_quality(&rows)).expect("JSON");
        assert_eq!(quality.as_array().map(Vec::len), Some(1));
        assert_eq!(quality[0]["check_name"], "lost update (G-single)");
        assert_eq!(quality[0]["location"]["lines"]["begin"], 1);
        let sarif: Value = serde_json::from_str(&sarif(&rows)).expect("JSON");
        let run = &sarif["runs"][0];
        assert_eq!(
            run["results"][0]["message"]["text"],
            "an update is lost\nT1 < T2"
        );
        assert_eq!(
            run["results"][0]["ruleId"],
            run["tool"]["driver"]["rules"][0]["id"]
        );
        let prints = &run["results"][0]["partialFingerprints"]["kingsnake/v1"];
        assert_eq!(*prints, quality[0]["fingerprint"]);
    }
}
