//! `kingsnake convert`: reads any format and writes another.

use std::path::Path;

use anyhow::{Context, Result, bail};
use kingsnake_datasets::Format;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::model::History;

use crate::args::{ConvertArgs, DropArg};
use crate::input::{files, load};
use crate::limits::is_stdio;
use crate::output::{Output, expect_apart, expect_parent, fill, scratch};
use crate::voice::{Voice, count, printable, say};

/// Converts, and prints what was written.
pub fn run(args: &ConvertArgs, voice: Voice, budget: &Budget) -> Result<u8> {
    let format = args.format_to.unwrap_or_else(|| by_name(&args.to));
    expect_target(format, &args.to, &files(&args.from, &args.read))?;
    let mut parsed = load(&args.from, &args.read, budget)?;
    for what in &args.drop {
        match what {
            DropArg::Times => parsed.history.forget_times(),
            DropArg::VersionOrder => parsed.history.retain_versions(|_| false),
        }
    }
    voice.warn_each(&parsed.warnings);
    if is_stdio(&args.to) {
        return to_stdout(&parsed.history, format, voice);
    }
    for note in kingsnake_datasets::write(&parsed.history, format, &args.to)? {
        voice.warn(&note);
    }
    if !voice.quiet {
        let words = format!(
            "{} ({} to {}): {}, {}",
            args.to.display(),
            parsed.format,
            format,
            count(parsed.history.n_txns(), "transaction"),
            count(parsed.history.n_ops(), "operation")
        );
        say(&format!("{}\n", printable(&words))).context("cannot write to stdout")?;
    }
    Ok(0)
}

/// The format for a file's extension.
fn by_name(to: &Path) -> Format {
    let ending = to.extension().and_then(|it| it.to_str()).unwrap_or("");
    match ending {
        "txt" => Format::Text,
        "edn" => Format::JepsenEdn,
        "json" => Format::JepsenJson,
        "bincode" => Format::Dbcop,
        _ if to.is_dir() || to.as_os_str().as_encoded_bytes().ends_with(b"/") => Format::Cobra,
        _ => Format::Kingsnake,
    }
}

/// A writer needs a file; for stdout a temporary file is written and copied, as the format may be binary.
pub fn to_stdout(history: &History, format: Format, voice: Voice) -> Result<u8> {
    if format == Format::Cobra {
        bail!("Cobra's logs are a directory and cannot be written to stdout");
    }
    let directory = scratch()?;
    let path = directory.path().join("history");
    for note in kingsnake_datasets::write(history, format, &path)? {
        voice.warn(&note);
    }
    let bytes = std::fs::read(&path).context("cannot read what was written")?;
    fill(Path::new("-"), |out| out.write_all(&bytes)).context("cannot write to stdout")?;
    Ok(0)
}

/// Refuses, before anything is read, an output that cannot be written. Cobra's logs need a directory.
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
