//! `kingsnake lint`: logging mistakes that look like database bugs, or hide them.
//!
//! Exit status: 2 if a history cannot be read, else 1 if there is a mistake, else 0.

use anyhow::{Context, Result};
use kingsnake_solver::budget::Budget;
use serde_json::json;

use crate::answer::base_name;
use crate::args::LintArgs;
use crate::input::{files, load};
use crate::limits::{Stopped, is_stdio};
use crate::many::histories;
use crate::output::{Output, expect_apart, put};
use crate::remarks::remarks;
use crate::voice::{Voice, count, say};

/// Reads every history that the paths hold, and prints what it found.
pub fn run(args: &LintArgs, voice: Voice, budget: &Budget) -> Result<u8> {
    let (paths, others) = histories(&args.histories);
    let inputs = paths.iter().flat_map(|it| files(it, &args.read));
    let outputs = args.json.iter().map(|path| Output {
        option: "--json",
        path,
    });
    expect_apart(&inputs.collect::<Vec<_>>(), &outputs.collect::<Vec<_>>())?;
    if others > 0 {
        let words = "left out of the directories, being no history";
        voice.warn(&format!("{} {words}", count(others, "file")));
    }
    let (mut words, mut documents, mut status) = (String::new(), Vec::new(), 0);
    for path in &paths {
        let name = if args.histories.contains(path) {
            base_name(path)
        } else {
            path.display().to_string()
        };
        let parsed = match load(path, &args.read, budget) {
            Ok(parsed) => parsed,
            // Of several, the others are still read.
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
        found.extend(remarks(&parsed));
        for remark in &found {
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
