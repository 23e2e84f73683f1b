//! Which outputs make no sense for what is asked, and why: one table, which docs/levels.md shows.

use anyhow::{Result, bail};
use kingsnake_solver::level::Level;

use crate::args::{CheckArgs, LevelArg};

/// What is asked of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// One level.
    Level(Level),
    /// `--along`: an expected order.
    Along,
    /// `--level auto`.
    Auto,
    /// `--workload`, where it has a rule.
    Workload,
}

/// What can be written or told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputKind {
    /// `--certificate`.
    Certificate,
    /// `--proof`.
    Proof,
    /// `--json`.
    Json,
    /// `--edn`.
    Edn,
    /// `--directory`.
    Directory,
    /// `--dot`.
    Dot,
    /// `--svg`.
    Svg,
    /// `--report`.
    Report,
    /// `--all`.
    All,
    /// `kingsnake explain`.
    Explain,
}

impl OutputKind {
    /// All of them.
    #[cfg(test)]
    const EVERY: [OutputKind; 10] = [
        OutputKind::Certificate,
        OutputKind::Proof,
        OutputKind::Json,
        OutputKind::Edn,
        OutputKind::Directory,
        OutputKind::Dot,
        OutputKind::Svg,
        OutputKind::Report,
        OutputKind::All,
        OutputKind::Explain,
    ];

    /// The option or command.
    fn name(self) -> &'static str {
        match self {
            OutputKind::Certificate => "--certificate",
            OutputKind::Proof => "--proof",
            OutputKind::Json => "--json",
            OutputKind::Edn => "--edn",
            OutputKind::Directory => "--directory",
            OutputKind::Dot => "--dot",
            OutputKind::Svg => "--svg",
            OutputKind::Report => "--report",
            OutputKind::All => "--all",
            OutputKind::Explain => "explain",
        }
    }
}

const SORTED: &str = "is decided by a sort, so there is no question to write or to prove; `check --certificate` and `--json` write what shows the answer";
const SEVERAL: &str = "asks several questions, each with what the last one taught, so there is no one question to write or to prove";
const REGISTERS: &str = "is decided without a back end, so there is nothing to prove";
const RECORDED: &str =
    "is judged by what the database recorded; nothing is searched, so there is nothing to prove";
const ONE_LEVEL: &str = "is about many levels, and this output is about one level; name it";
const RULE: &str = "is checked by its rule, which has no such output";

/// Why an output makes no sense for what is asked; `None` where it does.
pub fn refusal(subject: Subject, output: OutputKind) -> Option<&'static str> {
    use OutputKind::{All, Certificate, Directory, Dot, Edn, Explain, Proof, Svg};
    match (subject, output) {
        (Subject::Level(Level::Psi), Proof) => Some(SEVERAL),
        (Subject::Level(level), Proof) if level.model().is_weak() => Some(SORTED),
        (Subject::Level(Level::Linearizable), Proof) => Some(REGISTERS),
        (Subject::Level(Level::Pl(_)) | Subject::Along, Proof) => Some(RECORDED),
        (Subject::Auto, Certificate | Proof | Dot | Svg | Explain) => Some(ONE_LEVEL),
        (Subject::Workload, Certificate | Proof | Dot | Edn | Directory | All) => Some(RULE),
        _ => None,
    }
}

/// Refuses outputs that make no sense, by the table; `level` is the one that is checked, where it is one.
pub fn expect_sensible(args: &CheckArgs, level: Option<Level>) -> Result<()> {
    let (subject, name) = match (args.read.workload, level) {
        (Some(workload), _) if workload.has_rule() => {
            (Subject::Workload, format!("--workload {workload}"))
        }
        _ if args.level.level == Some(LevelArg::Auto) => (Subject::Auto, "--level auto".to_owned()),
        _ if args.along.is_some() => (Subject::Along, "--along".to_owned()),
        (_, Some(level)) => (Subject::Level(level), format!("--level {level}")),
        (_, None) => return Ok(()),
    };
    let files = &args.files;
    let wanted = [
        (OutputKind::Certificate, files.certificate.is_some()),
        (OutputKind::Proof, files.proof.is_some()),
        (OutputKind::Json, files.json.is_some()),
        (OutputKind::Edn, files.edn.is_some()),
        (OutputKind::Directory, files.directory.is_some()),
        (OutputKind::Dot, files.dot.is_some()),
        (OutputKind::Svg, files.svg.is_some()),
        (OutputKind::Report, files.report.is_some()),
        (OutputKind::All, args.all.all),
        (OutputKind::Explain, args.explains),
    ];
    for (output, _) in wanted.into_iter().filter(|it| it.1) {
        if let Some(why) = refusal(subject, output) {
            bail!("{}: {name} {why}", output.name());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of docs/levels.md: an output, what is asked, and why it is refused.
    fn rows() -> Vec<String> {
        let levels = Level::ALL.map(|level| (Subject::Level(level), format!("`{level}`")));
        let others = [
            (Subject::Along, "`--along`".to_owned()),
            (Subject::Auto, "`auto`".to_owned()),
            (Subject::Workload, "a workload with a rule".to_owned()),
        ];
        let mut rows: Vec<(String, Vec<String>, &str)> = Vec::new();
        for (subject, name) in levels.into_iter().chain(others) {
            for output in OutputKind::EVERY {
                let Some(why) = refusal(subject, output) else {
                    continue;
                };
                let output = format!("`{}`", output.name());
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
