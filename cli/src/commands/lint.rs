//! `kingsnake lint`: mistakes of the log that would pass for bugs of the database, or hide them.

use anyhow::{Context, Result};
use kingsnake_solver::budget::Budget;

use crate::answer::base_name;
use crate::args::LintArgs;
use crate::input::load;
use crate::remarks::remarks;
use crate::voice::{Voice, say};

/// Looks, and says what it found. Exit status 1 if there is something, else 0.
pub fn run(args: &LintArgs, voice: Voice, budget: &Budget) -> Result<u8> {
    let parsed = load(&args.history, &args.read, budget)?;
    let mut found = parsed.warnings.clone();
    found.extend(remarks(&parsed.history));
    let name = base_name(&args.history);
    let mut words = String::new();
    for remark in &found {
        words.push_str(&format!("{name}: {remark}\n"));
    }
    if found.is_empty() && !voice.quiet {
        words = format!("{name}: nothing to remark\n");
    }
    say(&words).context("cannot write to stdout")?;
    Ok(u8::from(!found.is_empty()))
}
