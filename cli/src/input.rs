//! Reads a history within the budget.

use std::path::Path;

use anyhow::{Context, Result, bail};
use kingsnake_datasets::{Parsed, ReadError, ReadOptions};
use kingsnake_history::rng::Rng;
use kingsnake_report::Source;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::model::History;
use kingsnake_workloads::JepsenWorkload;

use crate::args::{OwnWritesArg, ReadArgs};
use crate::limits::{Stopped, is_stdio};
use crate::lint::lint;
use crate::memory;
use crate::plan::Plan;

/// Reads a history, from stdin for `-`, unless the budget ends first.
pub fn load(path: &Path, args: &ReadArgs, budget: &Budget) -> Result<Parsed> {
    let path = if is_stdio(path) {
        Path::new("/dev/stdin")
    } else {
        path
    };
    memory::expect(std::fs::metadata(path).map_or(0, |it| it.len()));
    let options = options(args, budget);
    let mut parsed = match args.workload {
        Some(lock @ (JepsenWorkload::Mutex | JepsenWorkload::OwnedMutex)) => {
            let opened = kingsnake_datasets::open_log(path, &options);
            let (log, format, bytes) = opened.map_err(stopped_or_wrong)?;
            let is_owned = lock == JepsenWorkload::OwnedMutex;
            let history = kingsnake_workloads::registers::lock(&log, is_owned)
                .with_context(|| path.display().to_string())?;
            Parsed {
                history,
                format,
                warnings: Vec::new(),
                bytes,
            }
        }
        _ => kingsnake_datasets::open(path, &options).map_err(stopped_or_wrong)?,
    };
    if args.no_version_order {
        parsed.history.retain_versions(|_| false);
    }
    if args.no_predicates {
        parsed.history.forget_predicates();
    }
    if args.own_writes == Some(OwnWritesArg::Invisible)
        && let Err(txn) = parsed.history.hide_own_writes()
    {
        bail!(
            "{}: --own-writes invisible needs reads and writes apart, and transaction {} changes rows by a condition",
            path.display(),
            parsed.history.txn_name(txn)
        );
    }
    if args.strict {
        let mut found = parsed.warnings.clone();
        found.extend(lint(&parsed.history, parsed.format));
        if !found.is_empty() {
            bail!(
                "{}: refused by --strict: {}",
                path.display(),
                found.join("; ")
            );
        }
    }
    Ok(parsed)
}

/// Size limit of settings, assumptions and other handwritten files.
pub const MOST_TEXT: u64 = 256 << 20;

/// How a history is read.
pub fn options(args: &ReadArgs, budget: &Budget) -> ReadOptions {
    ReadOptions {
        format: args.format,
        version_order: args.version_order.clone(),
        ignore_unwritten: args.workload == Some(JepsenWorkload::RwRegister),
        // The budget has the memory limit.
        max_decompressed: u64::MAX,
        budget: budget.clone(),
        // `interrupt` handles the signal for a truncated file.
        map: true,
    }
}

/// Takes a history apart from where it came from; what came from a pipe cannot be read again.
pub fn source_of(parsed: Parsed, path: &Path) -> (History, Source) {
    Source::of(parsed, path, (!is_stdio(path)).then(again))
}

/// How to read a history again in order to show parts of it.
pub fn again() -> ReadOptions {
    ReadOptions {
        map: true,
        ..ReadOptions::default()
    }
}

/// Why reading stopped, or what is wrong with the file.
pub fn stopped_or_wrong(error: ReadError) -> anyhow::Error {
    match error.stopped() {
        Some(reason) => Stopped(reason.clone()).into(),
        None => error.into(),
    }
}

/// The files that reading a history touches.
pub fn files<'a>(history: &'a Path, args: &'a ReadArgs) -> Vec<&'a Path> {
    std::iter::once(history)
        .chain(args.version_order.as_deref())
        .collect()
}

/// The history with the share of its version orders that the plan keeps, chosen at random.
pub fn thinned(mut parsed: Parsed, plan: &Plan) -> Parsed {
    if let Some(share) = plan.version_order_share {
        let mut rng = Rng::new(u64::from(plan.seed));
        // A float has 53 bits, so that 0 keeps nothing and 1 keeps everything.
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
