//! What a back end would be asked about a history: the straight line up to there, for whoever wants the question itself.

use anyhow::{Result, bail};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{CheckError, Techniques};
use kingsnake_solver::level::Spec;
use kingsnake_solver::model::History;
use kingsnake_solver::progress::Progress;
use kingsnake_solver::prune::{Outcome, PruneOptions, PruneStats, prune};
use kingsnake_solver::relate::construct;
use kingsnake_solver::resolve::{ResolveError, resolve};

use crate::limits::Stopped;

/// The question that is left after pruning, or the contradiction that pruning found.
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
    let resolved = match resolve(history, budget) {
        Ok(resolved) if resolved.broken(spec.model).is_empty() => resolved,
        Ok(_) => bail!(
            "no order explains the reads of this history, so there is no question to ask; \
             `kingsnake check` tells which"
        ),
        Err(ResolveError::Stopped(reason)) => return Err(Stopped(reason).into()),
        Err(error) => return Err(error.into()),
    };
    let polygraph = construct(history, resolved, spec, techniques.shape());
    let options = PruneOptions {
        reachability: techniques.reachability,
        rounds: techniques.prune_rounds,
        linear: techniques.linear,
        estimate: techniques.estimate,
        coalesce: techniques.coalesce,
        merge: techniques.merge,
    };
    let mut stats = PruneStats::default();
    prune(polygraph, options, &mut stats, budget, progress).map_err(|reason| Stopped(reason).into())
}
