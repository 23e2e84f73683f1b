//! What was typed for `kingsnake watch`.

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
    /// Take clients at unix:PATH or 127.0.0.1:PORT in place of a log; each sends a header and lines.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["log", "finished", "state"])]
    pub listen: Option<String>,
    /// The log does not grow any more: its sessions are read first, and its end is the end.
    #[arg(long)]
    pub finished: bool,
    /// How many sessions there are, where neither the header nor `open` lines say so.
    #[arg(long, value_name = "N")]
    pub sessions: Option<usize>,
    /// The key that fences read and write, at ser and si: sessions that appear later begin with a fence.
    #[arg(long, value_name = "KEY")]
    pub fence: Option<String>,
    /// Transactions per batch; as many as are kept, and at least 1,000, unless given.
    #[arg(long, value_name = "N", value_parser = batch)]
    pub batch: Option<usize>,
    /// How far clocks may disagree, in milliseconds.
    #[arg(long, alias = "clock-drift", value_name = "MS", default_value = "0", value_parser = milliseconds)]
    pub drift: u64,
    /// Assume that a transaction of unknown end ended within this many seconds of its begin.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub unknown_limit: Option<Duration>,
    /// Beyond this size of what is kept (such as 500M), forget it and look only for violations from there on.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub memory_limit: Option<u64>,
    /// After a violation: `stop`, `continue` with what arrives later, or a command for the shell, and then stop.
    #[arg(long, value_name = "WHAT", default_value = "stop")]
    pub on_violation: String,
    /// Print JSON, one object per line, in place of words.
    #[arg(long)]
    pub json: bool,
    /// Append everything that arrives from stdin or from clients to this file, so that a violation can be checked and told.
    #[arg(long, value_name = "FILE")]
    pub keep: Option<PathBuf>,
    /// Write the page of a violation.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Append the order of what is settled, for `kingsnake verify`.
    #[arg(long, value_name = "FILE", conflicts_with = "memory_limit")]
    pub certificate: Option<PathBuf>,
    /// Keep a snapshot from which a killed watch goes on.
    #[arg(long, value_name = "FILE")]
    pub state: Option<PathBuf>,
    /// Seconds between two snapshots.
    #[arg(long, value_name = "SECONDS", default_value = "5", value_parser = seconds)]
    pub state_every: Duration,
    /// Show a live page at 127.0.0.1:PORT.
    #[arg(long, value_name = "ADDRESS")]
    pub page: Option<String>,
}

fn batch(typed: &str) -> Result<usize, String> {
    match typed.parse() {
        Ok(0) | Err(_) => Err("not a number of transactions".to_owned()),
        Ok(number) => Ok(number),
    }
}
