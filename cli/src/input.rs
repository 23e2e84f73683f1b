//! Brings a history in, within the budget: reading happens in a thread of its own, so that a time limit or Ctrl-C ends
//! the wait even in the middle of a large file.

use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kingsnake_datasets::{Parsed, ReadError, ReadOptions};
use kingsnake_history::rng::Rng;
use kingsnake_solver::budget::{Budget, StopReason};

use crate::args::ReadArgs;
use crate::plan::Plan;

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
    Ok(open(path, &options(args), args.into())?)
}

/// Reads a history unless the budget ends first.
pub fn load_within(path: &Path, args: &ReadArgs, budget: &Budget) -> Result<Loaded> {
    if let Err(reason) = budget.check() {
        return Ok(Loaded::Stopped(reason));
    }
    let (sender, receiver) = mpsc::channel();
    let (path, options, ignore) = (path.to_owned(), options(args), args.into());
    std::thread::Builder::new()
        .name("read".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // Nobody may be waiting any more, and then nobody needs the answer.
            let _ = sender.send(open(&path, &options, ignore).map(Box::new));
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

/// The history with as much of its version orders as the plan keeps, chosen at random.
pub fn thinned(mut parsed: Parsed, plan: &Plan) -> Parsed {
    if let Some(share) = plan.version_order_share {
        let mut rng = Rng::new(u64::from(plan.seed));
        // 53 bits are what a number from 0 to 1 holds exactly, so that all or none means all or none.
        let mut number = || (rng.number() >> 11) as f64 / (1_u64 << 53) as f64;
        let mut n_given = 0_u64;
        parsed.history.retain_versions(|_| {
            n_given += 1;
            number() < share
        });
        if n_given == 0 && !plan.no_version_order {
            let words = "--version-order-share changes nothing: no order of versions is given";
            parsed.warnings.push(words.to_owned());
        }
    }
    parsed
}

/// What of a history is not looked at.
#[derive(Clone, Copy)]
struct Ignored {
    version_order: bool,
    predicates: bool,
}

impl From<&ReadArgs> for Ignored {
    fn from(args: &ReadArgs) -> Self {
        Ignored {
            version_order: args.no_version_order,
            predicates: args.no_predicates,
        }
    }
}

fn open(path: &Path, options: &ReadOptions, ignored: Ignored) -> Result<Parsed, ReadError> {
    let mut parsed = kingsnake_datasets::open(path, options)?;
    if ignored.version_order {
        parsed.history.retain_versions(|_| false);
    }
    if ignored.predicates {
        parsed.history.forget_predicates();
    }
    Ok(parsed)
}

fn options(args: &ReadArgs) -> ReadOptions {
    ReadOptions {
        format: args.format,
        version_order: args.version_order.clone(),
        ..ReadOptions::default()
    }
}
