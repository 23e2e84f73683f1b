//! The entry point: takes a history and a promise, returns a report with a checked verdict.

use kingsnake_adya::AdyaError;
use kingsnake_history::promise::Promise;

use crate::budget::Budget;
use crate::check::{CheckError, Decider, Engines, Report, Techniques, check_on};
use crate::context::Context;
use crate::linearizable::check_linearizable;
use crate::model::History;
use crate::progress::{Phase, Progress};
use crate::verdict::Verdict;

/// Checks whether a promise was kept.
pub fn check_promise(
    history: &History,
    promise: &Promise,
    techniques: &Techniques,
    engines: Engines<'_>,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Report, CheckError> {
    match promise {
        Promise::Level(spec) => {
            check_on(history, None, *spec, techniques, engines, budget, progress)
        }
        Promise::Linearizable(options) => check_linearizable(history, *options, budget, progress),
        Promise::Recorded(_) | Promise::Along(_) => {
            check_recorded(history, promise, budget, progress)
        }
    }
}

/// Checks the database's record. Nothing is searched.
fn check_recorded(
    history: &History,
    promise: &Promise,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Report, CheckError> {
    let mut context = Context::new(budget, progress);
    context.go_on(Phase::Certify);
    let (answered, decider) = match promise {
        Promise::Along(along) => (
            kingsnake_adya::along(history, along, budget),
            Decider::Replay,
        ),
        Promise::Recorded(level) => {
            let answered = kingsnake_adya::check(history, *level, budget);
            let answered = answered.map(|(verdict, sizes)| {
                context.stats.n_counted = sizes.n_counted;
                context.stats.n_versions = sizes.n_versions;
                context.stats.n_known_edges = sizes.n_edges;
                verdict
            });
            (answered, Decider::Certificate)
        }
        Promise::Level(_) | Promise::Linearizable(_) => return Err(CheckError::NoTimes),
    };
    let (verdict, decider) = match answered {
        Ok(verdict) => (verdict, decider),
        Err(AdyaError::Stopped(reason)) => (Verdict::Unknown(reason), Decider::None),
        Err(error) => return Err(error.into()),
    };
    Ok(Report {
        verdict,
        spec: promise.spec(),
        decider,
        stats: context.finish(),
    })
}
