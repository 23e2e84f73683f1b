//! `kingsnake shrink`: cuts a violated history down to the few transactions that show the violation.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use kingsnake::{Checker, ShrinkAnswer, Shrunk};
use kingsnake_datasets::Format;
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::model::History;
use kingsnake_solver::promise::Promise;

use crate::answer::base_name;
use crate::args::{FailedCasArg, ShrinkArgs};
use crate::input::{files, load};
use crate::limits::{self, Stopped, is_stdio, within};
use crate::output::{Output, expect_apart};
use crate::plan::{isolation_map, one_level, spec, start_threads};
use crate::progress::{CheckListener, Drawing};
use crate::voice::{Voice, complain, count, grouped, lasting, printable, say};

/// Exit statuses of `check`: the history is violated, or it is not.
const VIOLATED: u8 = 1;
const SATISFIED: u8 = 0;

/// Shrinks, and prints what is left.
pub fn run(args: &ShrinkArgs, voice: Voice, start: Instant) -> Result<u8> {
    if is_stdio(&args.out) {
        bail!("--out needs a file: it is written again whenever a smaller history is found");
    }
    let out = Output {
        option: "--out",
        path: &args.out,
    };
    expect_apart(&files(&args.history, &args.read), &[out])?;
    start_threads(&args.limits)?;
    let budget = limits::budget(&args.limits.bounds, start)?;
    let drawing = Drawing::new(start, voice.quiet);
    let work = {
        let (args, budget) = (args.clone(), budget.clone());
        let listener = drawing.listener();
        move || shrink(&args, &budget, &listener)
    };
    let done = within(&budget, work);
    drop(drawing);
    match done {
        Ok(done) => done.tell(args, voice, start),
        // The worker thread was abandoned; the file that it wrote is complete.
        Err(error) => match (limits::stopped(&error), limits::certified()) {
            (Some(reason), Some(status)) => {
                complain(&stopped_words(&args.out, reason));
                Ok(status)
            }
            _ => Err(error),
        },
    }
}

/// The result, with what its text needs.
struct ShrinkRun {
    promise: Promise,
    warnings: Vec<String>,
    before: Counts,
    answer: ShrinkAnswer,
}

#[derive(Clone, Copy)]
struct Counts {
    txns: usize,
    ops: usize,
    sessions: usize,
}

impl Counts {
    fn of(history: &History) -> Self {
        Counts {
            txns: history.n_txns(),
            ops: history.n_ops(),
            sessions: history.n_sessions(),
        }
    }
}

fn shrink(args: &ShrinkArgs, budget: &Budget, listener: &CheckListener) -> Result<ShrinkRun> {
    let level = one_level(&args.level)?;
    let refusals_count = args.level.failed_cas == Some(FailedCasArg::Differs);
    let promise = level.promise(spec(level, &args.level)?, refusals_count);
    let mut parsed = load(&args.history, &args.read, budget)?;
    if let Some(map) = isolation_map(level, &args.level)? {
        map.apply(&mut parsed.history)?;
    }
    let mut checker = Checker::new()
        .hold_to(promise.clone())
        .within(budget.clone())
        .progress(listener.clone());
    let mut failed = None;
    let mut on_smaller = |history: &History, n_checks: usize| {
        listener.shrinking(history.n_txns(), n_checks);
        failed = put_history(history, &args.out).err();
        if failed.is_none() {
            limits::certify(VIOLATED);
        }
    };
    let answer = checker.shrink(&parsed.history, &mut on_smaller)?;
    if let Some(error) = failed {
        return Err(error);
    }
    if let ShrinkAnswer::Shrunk(shrunk) = &answer
        && limits::certified().is_none()
    {
        put_history(&shrunk.history, &args.out)?;
    }
    Ok(ShrinkRun {
        promise,
        warnings: parsed.warnings,
        before: Counts::of(&parsed.history),
        answer,
    })
}

fn put_history(history: &History, out: &Path) -> Result<()> {
    let written = kingsnake_datasets::write(history, Format::Kingsnake, out);
    written
        .map(drop)
        .with_context(|| format!("cannot write {}", out.display()))
}

fn stopped_words(out: &Path, reason: &StopReason) -> String {
    format!(
        "stopped: {reason}; {} is the smallest history so far and may not be minimal",
        out.display()
    )
}

impl ShrinkRun {
    fn tell(self, args: &ShrinkArgs, voice: Voice, start: Instant) -> Result<u8> {
        voice.warn_each(&self.warnings);
        let name = printable(&base_name(&args.history));
        let promise = &self.promise;
        match self.answer {
            ShrinkAnswer::Satisfied => {
                complain(&format!(
                    "{name} satisfies {promise}: there is nothing to shrink, and {} is not written",
                    args.out.display()
                ));
                Ok(SATISFIED)
            }
            ShrinkAnswer::Unknown(reason) => {
                complain(&format!(
                    "whether {name} violates {promise} is not known: there is nothing to shrink yet"
                ));
                Err(Stopped(reason).into())
            }
            ShrinkAnswer::Shrunk(shrunk) => {
                if let Some(reason) = &shrunk.stopped {
                    complain(&stopped_words(&args.out, reason));
                }
                say(&words(&shrunk, self.before, promise, args, start))
                    .context("cannot write to stdout")?;
                Ok(VIOLATED)
            }
        }
    }
}

fn words(
    shrunk: &Shrunk,
    before: Counts,
    promise: &Promise,
    args: &ShrinkArgs,
    start: Instant,
) -> String {
    let after = Counts::of(&shrunk.history);
    let of = |after: usize, before: usize, what: &str| {
        format!("{} of {}", grouped(after as u64), count(before, what))
    };
    format!(
        "violated: {promise}: {}\n{}: {}, {}, {} ({}, {})\n",
        shrunk.anomaly,
        printable(&args.out.display().to_string()),
        of(after.txns, before.txns, "transaction"),
        of(after.ops, before.ops, "operation"),
        of(after.sessions, before.sessions, "session"),
        count(shrunk.n_checks, "check"),
        lasting(start.elapsed())
    )
}
