//! `kingsnake lint`: mistakes of the log that would pass for bugs of the database, or hide them.

use anyhow::{Context, Result};
use kingsnake_solver::budget::Budget;
use serde_json::json;

use crate::answer::base_name;
use crate::args::LintArgs;
use crate::input::{files, load};
use crate::limits::is_stdio;
use crate::output::{Output, expect_apart, put};
use crate::remarks::remarks;
use crate::voice::{Voice, say};

/// Looks, and says what it found. Exit status 1 if there is something, else 0.
pub fn run(args: &LintArgs, voice: Voice, budget: &Budget) -> Result<u8> {
    let inputs = args.histories.iter().flat_map(|it| files(it, &args.read));
    let outputs = args.json.iter().map(|path| Output {
        option: "--json",
        path,
    });
    expect_apart(&inputs.collect::<Vec<_>>(), &outputs.collect::<Vec<_>>())?;
    let (mut words, mut documents, mut n_remarks) = (String::new(), Vec::new(), 0);
    for path in &args.histories {
        let parsed = load(path, &args.read, budget)?;
        let mut found = parsed.warnings.clone();
        found.extend(remarks(&parsed.history));
        let name = base_name(path);
        for remark in &found {
            words.push_str(&format!("{name}: {remark}\n"));
        }
        if found.is_empty() && !voice.quiet {
            words.push_str(&format!("{name}: nothing to remark\n"));
        }
        n_remarks += found.len();
        documents.push(json!({"history": path.display().to_string(), "remarks": found}));
    }
    if let Some(path) = &args.json {
        put(path, &format!("{:#}\n", json!(documents)))?;
    }
    if !args.json.as_deref().is_some_and(is_stdio) {
        say(&words).context("cannot write to stdout")?;
    }
    Ok(u8::from(n_remarks > 0))
}
