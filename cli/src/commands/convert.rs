//! `kingsnake convert`: reads any format, writes one.

use anyhow::{Context, Result};

use crate::args::ConvertArgs;
use crate::input::load;
use crate::voice::{Voice, count, printable, say};

/// Converts, and says what was written.
pub fn run(args: &ConvertArgs, voice: Voice) -> Result<u8> {
    let parsed = load(&args.from, &args.read)?;
    for warning in &parsed.warnings {
        voice.warn(warning);
    }
    kingsnake_datasets::write(&parsed.history, args.format_to, &args.to)?;
    if !voice.quiet {
        let words = format!(
            "{} ({} to {}): {}, {}\n",
            args.to.display(),
            parsed.format,
            args.format_to,
            count(parsed.history.n_txns(), "transaction"),
            count(parsed.history.n_ops(), "operation")
        );
        say(&printable(&words)).context("cannot write to stdout")?;
    }
    Ok(0)
}
