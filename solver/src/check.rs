//! The check: one function over the [`phases`], from a history to a verdict that has been checked again.

use crate::budget::Budget;
use crate::context::Context;
use crate::decide::{Backend, DecideError, Origin};
use crate::ends::{CaseAnswer, check_ends};
use crate::expected::expected;
use crate::level::{Model, Spec};
use crate::model::History;
use crate::phases::{self, Check, Exit, Refuted, Stop};
use crate::progress::Progress;
use crate::prune::Device;
use crate::psi;
use crate::relate::Polygraph;
pub use crate::report::{CheckError, CheckStats, Decider, Report};
use crate::resolve::TakenReads;
use crate::shared::Shared;
use crate::sight;
use crate::solve;
pub use crate::techniques::Techniques;
use crate::verdict::{Certificate, Point, Verdict};
use crate::weak;

/// The engines of other crates.
pub struct Engines<'e> {
    /// Prunes, if it accepts the task. If it fails, the CPU computes the answer, and the statistics say why.
    pub device: Option<&'e mut dyn Device>,
    /// Decides what pruning leaves open.
    pub backend: &'e mut dyn Backend,
}

impl Engines<'_> {
    /// Reborrows the engines.
    pub fn lend(&mut self) -> Engines<'_> {
        Engines {
            device: match &mut self.device {
                Some(device) => Some(&mut **device),
                None => None,
            },
            backend: &mut *self.backend,
        }
    }
}

/// Checks a history at a level.
pub fn check(
    history: &History,
    spec: Spec,
    techniques: &Techniques,
    backend: &mut dyn Backend,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Report, CheckError> {
    let engines = Engines {
        device: None,
        backend,
    };
    check_on(history, None, spec, techniques, engines, budget, progress)
}

/// Checks a history at a level, with all engines, reusing what was computed for other levels.
pub fn check_on(
    history: &History,
    shared: Option<&mut Shared>,
    spec: Spec,
    techniques: &Techniques,
    engines: Engines<'_>,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Report, CheckError> {
    let check = Check {
        history,
        spec,
        techniques,
    };
    check_ends(&check, shared, engines, budget, progress)
}

/// Checks a history, which may be a case of another.
pub(crate) fn check_case(
    check: &Check<'_>,
    shared: Option<&mut Shared>,
    engines: Engines<'_>,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<CaseAnswer, CheckError> {
    expect_answerable(check, engines.backend)?;
    let mut context = Context::new(budget, progress);
    let answer = if check.spec.model.is_weak() {
        answered(weak::settle(check, engines.backend, &mut context))
    } else {
        let found = search(check, shared, engines, &mut context);
        if let Err(Exit::Refuted(refuted)) = &found
            && let Refuted::EitherEnd(txn) = **refuted
        {
            return Ok(CaseAnswer::Open(txn));
        }
        conclude(check, found, &mut context)
    };
    let (decider, verdict) = match answer {
        Ok(answer) => answer,
        Err(CheckError::Resolve(error)) if let Some(txn) = error.unsettled() => {
            return Ok(CaseAnswer::Open(txn));
        }
        Err(error) => return Err(error),
    };
    Ok(CaseAnswer::Report(Box::new(Report {
        verdict,
        spec: check.spec,
        decider,
        stats: context.finish(),
    })))
}

/// From the history to an order.
fn search(
    check: &Check<'_>,
    shared: Option<&mut Shared>,
    engines: Engines<'_>,
    context: &mut Context<'_>,
) -> Result<(Decider, Certificate), Exit> {
    if let Some(order) = expected(check, context)? {
        return Ok((Decider::Witness, order.into()));
    }
    let polygraph = match shared {
        Some(shared) => phases::relate_shared(check, shared, context)?,
        None => phases::relate(check, phases::resolve(check, context)?, context)?,
    };
    settle(check, polygraph, engines, context)
}

/// From the graph to an order.
fn settle(
    check: &Check<'_>,
    polygraph: Polygraph,
    engines: Engines<'_>,
    context: &mut Context<'_>,
) -> Result<(Decider, Certificate), Exit> {
    if phases::needs_sight(check, polygraph.resolved()) {
        return sight::settle(check, polygraph.resolved(), engines.backend, context);
    }
    let mut polygraph = polygraph;
    if check.spec.model == Model::Mixed && !polygraph.resolved().reads().choices().is_empty() {
        // What weak transactions see does not depend on these reads, whose versions are not known yet.
        let all = polygraph.resolved();
        let resolved = all.taking(TakenReads::default(), all.uncertain().to_vec());
        polygraph = phases::relate(check, resolved, context)?;
    }
    let (decider, order) = settle_order(check, polygraph, engines, context)?;
    Ok((decider, order.into()))
}

/// From the graph to an order that determines the reads.
pub(crate) fn settle_order(
    check: &Check<'_>,
    polygraph: Polygraph,
    engines: Engines<'_>,
    context: &mut Context<'_>,
) -> Result<(Decider, Vec<Point>), Exit> {
    if check.spec.model == Model::Psi {
        return psi::settle(check, &polygraph, engines.backend, context);
    }
    solve::settle(check, polygraph, engines, context)
}

/// From an order, or the reason why there is none, to a verdict.
fn conclude(
    check: &Check<'_>,
    found: Result<(Decider, Certificate), Exit>,
    context: &mut Context<'_>,
) -> Result<(Decider, Verdict), CheckError> {
    let explained = phases::explain(check, found, context);
    let certified = explained.and_then(|(decider, evidence)| {
        phases::certify(check, decider, evidence, context).map(|verdict| (decider, verdict))
    });
    answered(certified)
}

/// An answer that was checked again, or a stop before that.
fn answered(certified: Result<(Decider, Verdict), Stop>) -> Result<(Decider, Verdict), CheckError> {
    match certified {
        Ok(answer) => Ok(answer),
        Err(Stop::Budget(reason)) => Ok((Decider::None, Verdict::Unknown(reason))),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// Refuses what the history lacks and what the back end cannot decide.
fn expect_answerable(check: &Check<'_>, backend: &dyn Backend) -> Result<(), CheckError> {
    let spec = check.spec;
    if spec.real_time.is_some() && !check.history.has_times() {
        return Err(CheckError::NoTimes);
    }
    if let Some(what) = backend.refuses(origin(spec)) {
        let what = format!("{what} and cannot decide {spec}; use another back end");
        let backend = backend.name().to_owned();
        return Err(DecideError { backend, what }.into());
    }
    Ok(())
}

/// Whose rules the question will follow.
pub fn origin(spec: Spec) -> Origin {
    match spec.model {
        Model::Si => Origin::SnapshotIsolation,
        _ => Origin::Other,
    }
}

/// The pipeline from a graph on; tests damage graphs and expect it to notice.
#[cfg(test)]
pub(crate) fn settle_graph(
    history: &History,
    polygraph: Polygraph,
    techniques: &Techniques,
    backend: &mut dyn Backend,
) -> Result<(Decider, Verdict), CheckError> {
    let check = Check {
        history,
        spec: polygraph.spec(),
        techniques,
    };
    let (budget, mut silent) = (Budget::unlimited(), crate::progress::Silent);
    let mut context = Context::new(&budget, &mut silent);
    let device = None;
    let found = settle(&check, polygraph, Engines { device, backend }, &mut context);
    conclude(&check, found, &mut context)
}
