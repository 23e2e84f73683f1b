//! The models that violated levels rule out: the level that was checked, and those that the expected models need.

use anyhow::Result;
use kingsnake_solver::auto::{Asked, auto, holds};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::Engines;
use kingsnake_solver::lattice::Names;
use kingsnake_solver::level::Level;
use kingsnake_solver::model::History;
use kingsnake_solver::progress::Silent;
use kingsnake_solver::verdict::Verdict;

use crate::anomalies::{Expected, broken_by, implied_by};
use crate::args::CheckArgs;
use crate::plan::{Plan, clocked};

/// What violated levels rule out.
#[derive(Default)]
pub struct RuledOut {
    /// The models of the lattice.
    pub models: Names,
    /// The levels themselves.
    pub levels: Vec<Level>,
}

/// What a verdict rules out, and which expected models further levels rule out; those levels are checked for this.
pub fn broken_models(
    history: &History,
    plan: &Plan,
    verdict: &Verdict,
    args: &CheckArgs,
    budget: &Budget,
) -> Result<RuledOut> {
    let checked = Asked {
        level: plan.level,
        spec: plan.spec,
    };
    let mut asked = Expected::parse(&args.all.expect, &args.all.anomalies)?.levels();
    let mut broken = RuledOut::default();
    match verdict {
        Verdict::Violated(_) if !plan.promise.is_recorded() => {
            broken.models.extend(broken_by(checked));
            broken.levels.push(checked.level);
        }
        Verdict::Satisfied(_) if !plan.promise.is_recorded() => {
            let holds = implied_by(plan.level);
            asked.retain(|it| !implied_by(it.level).is_subset(&holds));
        }
        _ => {}
    }
    asked.retain(|it| {
        let models = broken_by(*it);
        *it != checked && (models.is_empty() || !models.is_subset(&broken.models))
    });
    if asked.is_empty()
        || plan.isolation_map.is_some()
        || plan.level == Level::Linearizable
        || plan.promise.is_recorded()
    {
        return Ok(broken);
    }
    for it in asked.iter_mut().filter(|it| it.spec.real_time.is_some()) {
        it.spec = clocked(it.spec, &args.level)?;
    }
    let mut backend = plan.backend()?;
    let mut engines = Engines {
        device: None,
        backend: &mut *backend,
    };
    let techniques = &plan.techniques;
    let answers = auto(
        history,
        &asked,
        techniques,
        &mut engines,
        (budget, None),
        &mut Silent,
    )?;
    let violated = asked.iter().zip(&answers);
    let violated = violated.filter(|(_, answer)| holds(answer.as_ref()) == Some(false));
    for (it, _) in violated {
        broken.models.extend(broken_by(*it));
        broken.levels.push(it.level);
    }
    Ok(broken)
}
