//! Options of `kingsnake shrink`.

use std::path::PathBuf;

use clap::Args;

use super::ReadArgs;
use super::check::{LevelArgs, LimitArgs};

/// `kingsnake shrink`.
#[derive(Clone, Debug, Args)]
pub struct ShrinkArgs {
    /// The history: a file, or a directory of logs.
    pub history: PathBuf,
    /// The output, in our own format. It is written whenever a smaller history is found.
    #[arg(short, long, value_name = "FILE")]
    pub out: PathBuf,
    /// What is violated.
    #[command(flatten)]
    pub level: LevelArgs,
    /// How the history is read.
    #[command(flatten)]
    pub read: ReadArgs,
    /// Limits.
    #[command(flatten)]
    pub limits: LimitArgs,
}
