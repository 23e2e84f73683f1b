//! `kingsnake completions`: prints a shell's completion script.

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

use crate::args::Typed;
use crate::voice::say;

/// Prints the script.
pub fn run(shell: Shell) -> Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Typed::command(), "kingsnake", &mut script);
    say(&String::from_utf8_lossy(&script)).context("cannot write to stdout")?;
    Ok(0)
}
