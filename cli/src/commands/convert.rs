//! `kingsnake convert`: reads any format, writes one.

use std::path::Path;

use anyhow::{Context, Result, bail};
use kingsnake_datasets::Format;
use kingsnake_solver::budget::Budget;

use crate::args::ConvertArgs;
use crate::input::{files, load};
use crate::output::{Output, expect_apart, expect_parent};
use crate::voice::{Voice, count, printable, say};

/// Converts, and says what was written.
pub fn run(args: &ConvertArgs, voice: Voice, budget: &Budget) -> Result<u8> {
    expect_target(args.format_to, &args.to, &files(&args.from, &args.read))?;
    let parsed = load(&args.from, &args.read, budget)?;
    for warning in &parsed.warnings {
        voice.warn(warning);
    }
    for note in kingsnake_datasets::write(&parsed.history, args.format_to, &args.to)? {
        voice.warn(&note);
    }
    if !voice.quiet {
        let words = format!(
            "{} ({} to {}): {}, {}",
            args.to.display(),
            parsed.format,
            args.format_to,
            count(parsed.history.n_txns(), "transaction"),
            count(parsed.history.n_ops(), "operation")
        );
        say(&format!("{}\n", printable(&words))).context("cannot write to stdout")?;
    }
    Ok(0)
}

/// Complains, before anything is read, about a place where the history cannot be written. Cobra's logs go to a directory.
pub fn expect_target(format: Format, to: &Path, inputs: &[&Path]) -> Result<()> {
    if format != Format::Cobra {
        let option = "the output";
        return expect_apart(inputs, &[Output { option, path: to }]);
    }
    if to.exists() && !to.is_dir() {
        bail!(
            "cannot write {}: Cobra's logs need a directory, and this is a file",
            to.display()
        );
    }
    expect_parent(to)
}
