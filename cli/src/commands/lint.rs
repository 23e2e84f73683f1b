//! `kingsnake lint`: logging mistakes that look like database bugs, or hide them.
//!
//! Exit status: 2 if a history cannot be read, else 1 if there is a mistake, else 0.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use kingsnake_datasets::Scan;
use kingsnake_solver::budget::Budget;
use serde_json::json;

use crate::answer::base_name;
use crate::args::LintArgs;
use crate::input::{files, load};
use crate::limits::{Stopped, is_stdio};
use crate::lint::lint;
use crate::many::tell_others;
use crate::output::{Output, expect_apart, put};
use crate::voice::{Voice, first_of, say};

/// Reads every history on the paths, and prints the problems found.
pub fn run(args: &LintArgs, voice: Voice, budget: &Budget) -> Result<u8> {
    let found = Scan::of(&args.histories, budget).map_err(Stopped)?;
    let paths: Vec<&Path> = found.histories.iter().map(|it| it.path.as_path()).collect();
    let inputs = paths.iter().flat_map(|it| files(it, &args.read));
    let outputs = args.json.iter().map(|path| Output {
        option: "--json",
        path,
    });
    expect_apart(&inputs.collect::<Vec<_>>(), &outputs.collect::<Vec<_>>())?;
    tell_others(&found, voice);
    let (mut words, mut documents, mut status) = (String::new(), Vec::new(), 0);
    for history in &found.histories {
        let path = &history.path;
        let name = if args.histories.contains(path) {
            base_name(path)
        } else {
            path.display().to_string()
        };
        let parsed = match history.problem.clone() {
            Some(problem) => Err(anyhow!(problem)),
            None => load(path, &args.read, budget),
        };
        let parsed = match parsed {
            Ok(parsed) => parsed,
            // If one of several cannot be read, the others still are.
            Err(error) if paths.len() > 1 && !error.is::<Stopped>() => {
                words.push_str(&format!("{name}: error: {error:#}\n"));
                documents.push(
                    json!({"history": path.display().to_string(), "error": format!("{error:#}")}),
                );
                status = 2;
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut found = parsed.warnings.clone();
        found.extend(lint(&parsed.history, parsed.format));
        for remark in first_of(&found) {
            words.push_str(&format!("{name}: {remark}\n"));
        }
        if found.is_empty() && !voice.quiet {
            words.push_str(&format!("{name}: no problems found\n"));
        }
        status = status.max(u8::from(!found.is_empty()));
        documents.push(json!({"history": path.display().to_string(), "remarks": found}));
    }
    if let Some(path) = &args.json {
        put(path, &format!("{:#}\n", json!(documents)))?;
    }
    if !args.json.as_deref().is_some_and(is_stdio) {
        say(&words).context("cannot write to stdout")?;
    }
    Ok(status)
}
