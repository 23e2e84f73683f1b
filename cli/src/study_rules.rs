//! Checks the commands in a study file against the command line.

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use kingsnake_encodings::BackendOptions;
use kingsnake_solver::level::Level;
use kingsnake_studies::{RuleRefusal, Rules};

use crate::args::{Command, LevelArg, Typed, project};
use crate::plan::Plan;

/// The rules of this program.
pub struct CommandLine;

impl Rules for CommandLine {
    fn accepts(&self, line: &[String]) -> Result<Option<String>, RuleRefusal> {
        let Command::Check(mut args) = parse(line)?.command else {
            return Ok(None);
        };
        // Each check prints its document, which the study reads.
        let mut words = line.iter().filter(|it| *it != "--json");
        if let Some(word) = words.find(|it| project::is_written(it)) {
            return Err(RuleRefusal {
                words: "the checks of a study write no files of their own".to_owned(),
                arguments: vec![word.clone()],
            });
        }
        args.check.history = args.histories.remove(0);
        // These are not searched, so no plan and no back end applies.
        if matches!(
            args.check.level.level,
            Some(LevelArg::One(Level::Pl(_)) | LevelArg::Auto)
        ) {
            return Ok(None);
        }
        let plan = Plan::new(&args.check).map_err(|error| refusal(&error))?;
        let backend = kingsnake_encodings::backend(&plan.backend, &BackendOptions::default());
        let backend = backend.map_err(|error| refusal(&error))?;
        Ok(backend.refuses(kingsnake_solver::check::origin(plan.spec)))
    }
}

fn refusal(error: &dyn std::fmt::Display) -> RuleRefusal {
    RuleRefusal {
        words: error.to_string(),
        arguments: Vec::new(),
    }
}

fn parse(line: &[String]) -> Result<Typed, RuleRefusal> {
    let all = std::iter::once("kingsnake").chain(line.iter().map(String::as_str));
    Typed::try_parse_from(all).map_err(|error| {
        let arguments = [ContextKind::InvalidValue, ContextKind::InvalidArg]
            .into_iter()
            .filter_map(|kind| match error.get(kind) {
                Some(ContextValue::String(name)) => Some(name.clone()),
                _ => None,
            })
            .collect();
        let text = error.to_string();
        let reason = text.lines().next().unwrap_or_default();
        RuleRefusal {
            words: reason.strip_prefix("error: ").unwrap_or(reason).to_owned(),
            arguments,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    fn pages(directory: &Path, out: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pages(&path, out);
            } else if path.extension().is_some_and(|it| it == "md") {
                out.push(path);
            }
        }
    }

    #[test]
    fn every_command_of_a_recorded_run_is_one_that_the_program_takes() {
        let mut all = Vec::new();
        let runs = concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/runs");
        pages(Path::new(runs), &mut all);
        for page in ["gpu-box.md", "cluster.md", "ablation.md"] {
            let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs");
            all.push(Path::new(docs).join(page));
        }
        let mut n_commands = 0;
        for page in all {
            let text = std::fs::read_to_string(&page).unwrap();
            let quoted = text.split('`').filter(|part| !part.contains('\n'));
            for command in quoted.filter(|part| part.starts_with("kingsnake ")) {
                // `[…]` and `A|B` describe a syntax, not a command.
                if command.contains(['[', '|', '…']) {
                    continue;
                }
                let mut line = shlex::split(command).expect("its quotes are closed");
                line.remove(0);
                // A bare name, such as `kingsnake check`, is not a command to type.
                if line.len() < 3 {
                    continue;
                }
                // Text about several commands at once has no --out.
                let asks = ["ablate", "bench"].contains(&line[0].as_str());
                if asks && !line.iter().any(|word| word == "--out") {
                    line.extend(["--out", "DIR"].map(str::to_owned));
                }
                if let Err(refusal) = parse(&line) {
                    panic!("{}: {command}: {}", page.display(), refusal.words);
                }
                n_commands += 1;
            }
        }
        assert!(n_commands > 15, "{n_commands}");
    }
}
