//! Brings a history in, within the budget: reading happens in a thread of its own, so that a time limit or Ctrl-C ends
//! the wait even in the middle of a large file.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kingsnake_datasets::{Parsed, ReadOptions};
use kingsnake_solver::budget::{Budget, StopReason};

use crate::args::ReadArgs;

const POLL: Duration = Duration::from_millis(20);
/// As much as a main thread usually has.
const STACK: usize = 8 << 20;

/// A history, or the reason why reading it stopped.
pub enum Loaded {
    /// It was read.
    Parsed(Box<Parsed>),
    /// The budget ended first.
    Stopped(StopReason),
}

/// Reads a history without any limit.
pub fn load(path: &Path, args: &ReadArgs) -> Result<Parsed> {
    Ok(kingsnake_datasets::open(path, &options(args))?)
}

/// Reads a history unless the budget ends first.
pub fn load_within(path: &Path, args: &ReadArgs, budget: &Budget) -> Result<Loaded> {
    if let Err(reason) = budget.check() {
        return Ok(Loaded::Stopped(reason));
    }
    let (sender, receiver) = mpsc::channel();
    let (path, options) = (path.to_owned(), options(args));
    std::thread::Builder::new()
        .name("read".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // Nobody may be waiting any more, and then nobody needs the answer.
            let _ = sender.send(kingsnake_datasets::open(&path, &options).map(Box::new));
        })
        .context("cannot start a thread for reading")?;
    loop {
        match receiver.recv_timeout(POLL) {
            Ok(parsed) => return Ok(Loaded::Parsed(parsed?)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                bail!("internal error: the reader stopped without an answer")
            }
        }
        if let Err(reason) = budget.check() {
            return Ok(Loaded::Stopped(reason));
        }
    }
}

fn options(args: &ReadArgs) -> ReadOptions {
    ReadOptions {
        format: args.format,
        version_order: args.version_order.clone(),
        ..ReadOptions::default()
    }
}
