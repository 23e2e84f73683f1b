//! What the command line takes, for the words of a study file.

use clap::Parser;
use clap::error::{ContextKind, ContextValue};
use kingsnake_encodings::Options;
use kingsnake_studies::{Refusal, Rules};

use crate::args::{Command, Typed};
use crate::plan::Plan;

/// The rules of this program.
pub struct CommandLine;

impl Rules for CommandLine {
    fn accepts(&self, line: &[String]) -> Result<Option<String>, Refusal> {
        let Command::Check(args) = parse(line)?.command else {
            return Ok(None);
        };
        let plan = Plan::new(&args).map_err(|error| refusal(&error))?;
        let backend = kingsnake_encodings::backend(&plan.backend, &Options::default());
        let backend = backend.map_err(|error| refusal(&error))?;
        Ok(backend.refuses(kingsnake_solver::check::origin(plan.spec)))
    }
}

fn refusal(error: &dyn std::fmt::Display) -> Refusal {
    Refusal {
        words: error.to_string(),
        arguments: Vec::new(),
    }
}

fn parse(line: &[String]) -> Result<Typed, Refusal> {
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
        Refusal {
            words: reason.strip_prefix("error: ").unwrap_or(reason).to_owned(),
            arguments,
        }
    })
}
