//! Which outputs do not apply to a check, and why: one table, shown in docs/levels.md.

use anyhow::{Result, bail};
use kingsnake_solver::level::Level;

use crate::args::CheckArgs;

/// The kind of check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// One level.
    Level(Level),
    /// `--along`: an expected order.
    Along,
    /// `--level auto`.
    Auto,
    /// `--workload`, if it has a rule.
    Workload,
}

/// The proof of a back end.
pub const PROOF: &str = "--proof";

const SORTED: &str = "is decided by a sort, so there is no question to write or to prove; `check --certificate` and `--json` write what shows the answer";
const SEVERAL: &str = "asks several questions that depend on earlier answers, so there is no single question to write or to prove";
const REGISTERS: &str = "is decided without a back end, so there is nothing to prove";
const RECORDED: &str =
    "is judged by what the database recorded; nothing is searched, so there is nothing to prove";
const ONE_LEVEL: &str = "is about many levels, and this output is about one level; name it";
const RULE: &str = "is checked by its rule, which has no such output";

/// Why an output does not apply to a check; `None` if it does. Outputs are options of `check`, or `explain`.
pub fn refusal(subject: Subject, output: &str) -> Option<&'static str> {
    match (subject, output) {
        (Subject::Level(Level::Psi), PROOF) => Some(SEVERAL),
        (Subject::Level(level), PROOF) if level.model().is_weak() => Some(SORTED),
        (Subject::Level(Level::Linearizable), PROOF) => Some(REGISTERS),
        (Subject::Level(Level::Pl(_)) | Subject::Along, PROOF) => Some(RECORDED),
        (Subject::Auto, "--certificate" | PROOF | "--dot" | "--svg" | "explain") => Some(ONE_LEVEL),
        (
            Subject::Workload,
            "--certificate" | PROOF | "--edn" | "--directory" | "--dot" | "--all",
        ) => Some(RULE),
        _ => None,
    }
}

/// Refuses outputs that do not apply, by the table; `level` is the checked level, if it is a single one.
pub fn expect_sensible(args: &CheckArgs, level: Option<Level>) -> Result<()> {
    let (subject, name) = match (args.read.workload, level) {
        (Some(workload), _) if workload.has_rule() => {
            (Subject::Workload, format!("--workload {workload}"))
        }
        _ if args.asks_auto() => (Subject::Auto, "--level auto".to_owned()),
        _ if args.along.is_some() => (Subject::Along, "--along".to_owned()),
        (_, Some(level)) => (Subject::Level(level), format!("--level {level}")),
        (_, None) => return Ok(()),
    };
    for output in args.outputs() {
        if let Some(why) = refusal(subject, output) {
            bail!("{output}: {name} {why}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUTS: [&str; 14] = [
        "--certificate",
        PROOF,
        "--json",
        "--edn",
        "--directory",
        "--dot",
        "--svg",
        "--report",
        "--junit",
        "--code-quality",
        "--sarif",
        "--annotations",
        "--all",
        "explain",
    ];

    /// The rows of docs/levels.md: an output, a kind of check, and the reason.
    fn rows() -> Vec<String> {
        let levels = Level::ALL.map(|level| (Subject::Level(level), format!("`{level}`")));
        let others = [
            (Subject::Along, "`--along`".to_owned()),
            (Subject::Auto, "`auto`".to_owned()),
            (Subject::Workload, "a workload with a rule".to_owned()),
        ];
        let mut rows: Vec<(String, Vec<String>, &str)> = Vec::new();
        for (subject, name) in levels.into_iter().chain(others) {
            for output in OUTPUTS {
                let Some(why) = refusal(subject, output) else {
                    continue;
                };
                let output = format!("`{output}`");
                match rows.iter_mut().find(|it| it.0 == output && it.2 == why) {
                    Some(row) => row.1.push(name.clone()),
                    None => rows.push((output, vec![name.clone()], why)),
                }
            }
        }
        let row = |(output, names, why): &(String, Vec<String>, &str)| {
            format!("| {output} | {} | {why} |", names.join(", "))
        };
        rows.iter().map(row).collect()
    }

    #[test]
    fn the_document_shows_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/levels.md");
        let text = std::fs::read_to_string(path).expect("the document is there");
        let shown: Vec<&str> = text
            .lines()
            .skip_while(|line| *line != "## Outputs")
            .filter(|line| line.starts_with("| `"))
            .collect();
        let rows = rows();
        assert_eq!(shown, rows, "{}", rows.join("\n"));
    }
}
