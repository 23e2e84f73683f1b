//! The question that a back end would get for a history, for commands that export it.

use anyhow::{Result, bail};
use kingsnake_solver::Context;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{CheckError, Techniques};
use kingsnake_solver::level::Spec;
use kingsnake_solver::model::History;
use kingsnake_solver::phases::{Check, Exit, Refuted, Stop, pose};
use kingsnake_solver::progress::Progress;
use kingsnake_solver::prune::Outcome;

use crate::limits::Stopped;

/// The question after pruning, or the contradiction that pruning found.
pub fn question(
    history: &History,
    spec: Spec,
    techniques: &Techniques,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Outcome> {
    if spec.real_time.is_some() && !history.has_times() {
        return Err(CheckError::NoTimes.into());
    }
    let check = Check {
        history,
        spec,
        techniques,
    };
    let refuted = match pose(&check, &mut Context::new(budget, progress)) {
        Ok(pruned) => return Ok(Outcome::Pruned(pruned)),
        Err(Exit::Refuted(refuted)) => refuted,
        Err(Exit::Stop(stop)) => return Err(stopped(stop)),
    };
    match *refuted {
        Refuted::Contradiction(_, found) => Ok(Outcome::Contradiction(found)),
        _ => bail!(
            "no order explains the reads of this history, so there is no question to ask; \
             `kingsnake check` tells which"
        ),
    }
}

/// Why a phase gave no answer, as an error of this program.
pub fn stopped(stop: Stop) -> anyhow::Error {
    match stop {
        Stop::Budget(reason) => Stopped(reason).into(),
        Stop::Error(error) => error.into(),
    }
}
