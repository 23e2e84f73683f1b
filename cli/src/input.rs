//! Brings a history in, within the budget.

use std::path::Path;

use anyhow::Result;
use kingsnake_datasets::{Parsed, ReadOptions};
use kingsnake_history::rng::Rng;
use kingsnake_solver::budget::Budget;

use crate::args::ReadArgs;
use crate::limits::Stopped;
use crate::plan::Plan;

/// Reads a history unless the budget ends first.
pub fn load(path: &Path, args: &ReadArgs, budget: &Budget) -> Result<Parsed> {
    let options = ReadOptions {
        format: args.format,
        version_order: args.version_order.clone(),
        // The budget knows how much memory there is.
        max_decompressed: u64::MAX,
        budget: budget.clone(),
    };
    let mut parsed = match kingsnake_datasets::open(path, &options) {
        Ok(parsed) => parsed,
        Err(error) => match error.stopped() {
            Some(reason) => return Err(Stopped(reason.clone()).into()),
            None => return Err(error.into()),
        },
    };
    if args.no_version_order {
        parsed.history.retain_versions(|_| false);
    }
    if args.no_predicates {
        parsed.history.forget_predicates();
    }
    Ok(parsed)
}

/// The files that reading a history touches.
pub fn files<'a>(history: &'a Path, args: &'a ReadArgs) -> Vec<&'a Path> {
    std::iter::once(history)
        .chain(args.version_order.as_deref())
        .collect()
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
