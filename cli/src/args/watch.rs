//! Options of `kingsnake watch`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::{bytes, milliseconds, seconds};

/// A level that can be watched, as typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum WatchLevelArg {
    /// Serializable, session order and real time.
    StrictSer,
    /// Snapshot isolation, session order and real time.
    StrongSi,
    /// Serializable and session order.
    Ser,
    /// Snapshot isolation and session order.
    Si,
    /// Snapshot isolation along the timestamps of the database (`start_ts`, `commit_ts`).
    Timestamps,
}

/// `kingsnake watch`.
#[derive(Clone, Debug, Args)]
pub struct WatchArgs {
    /// The log: a file that grows, a directory of such files, or `-` for stdin.
    #[arg(value_name = "LOG", required_unless_present = "listen")]
    pub log: Option<PathBuf>,
    /// The level.
    #[arg(short, long, default_value = "strict-ser")]
    pub level: WatchLevelArg,
    /// Listen for clients at unix:PATH or 127.0.0.1:PORT instead of reading a log; each sends a header and lines.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["log", "finished", "state"])]
    pub listen: Option<String>,
    /// The log is complete: read its sessions first, and stop at its end.
    #[arg(long)]
    pub finished: bool,
    /// Number of sessions, if neither the header nor `open` lines state it.
    #[arg(long, value_name = "N")]
    pub sessions: Option<usize>,
    /// The key that fences read and write, at ser and si: later sessions begin with a fence.
    #[arg(long, value_name = "KEY")]
    pub fence: Option<String>,
    /// Transactions per batch; `auto` takes as many as are kept, and at least 1,000.
    #[arg(long, value_name = "N|auto", default_value = "auto", value_parser = batch)]
    pub batch: BatchSize,
    /// Clock drift in milliseconds.
    #[arg(long, alias = "clock-drift", value_name = "MS", default_value = "0", value_parser = milliseconds)]
    pub drift: u64,
    /// Assume that a transaction with unknown outcome ended within this many seconds of its begin.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub unknown_limit: Option<Duration>,
    /// When the retained data exceed this size (such as 500M), discard them and search only for violations from there on.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory_limit: Option<u64>,
    /// At that limit first move keys that nothing retained uses to this file, and discard data only if that is not enough.
    #[arg(
        long,
        value_name = "FILE",
        requires = "memory_limit",
        conflicts_with = "state"
    )]
    pub stubs: Option<PathBuf>,
    /// After a violation: `stop`, `continue` with later transactions, or a shell command to run before stopping.
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    pub on_violation: String,
    /// Print JSON, one object per line, instead of text.
    #[arg(long)]
    pub json: bool,
    /// Append all input from stdin or clients to this file, so that a violation can be checked and explained.
    #[arg(long, value_name = "FILE")]
    pub keep: Option<PathBuf>,
    /// Write the page of a violation.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Append the order of the settled transactions, for `kingsnake verify`.
    #[arg(long, value_name = "FILE", conflicts_with = "memory_limit")]
    pub certificate: Option<PathBuf>,
    /// Keep a snapshot from which a killed watch resumes.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Seconds between two snapshots.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub state_every: Duration,
    /// Serve a live page at 127.0.0.1:PORT.
    #[arg(long, value_name = "ADDRESS")]
    pub page: Option<String>,
}

/// How many transactions are judged at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchSize {
    Auto,
    Txns(usize),
}

fn batch(typed: &str) -> Result<BatchSize, String> {
    match typed.parse() {
        _ if typed == "auto" => Ok(BatchSize::Auto),
        Ok(0) | Err(_) => Err("expected a number of transactions, or auto".to_owned()),
        Ok(number) => Ok(BatchSize::Txns(number)),
    }
}
