//! The models that violated levels rule out: the level that was checked, and those that the expected models need.

use anyhow::Result;
use kingsnake_encodings::BackendOptions;
use kingsnake_solver::auto::{Asked, auto};
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

/// The models that a verdict rules out, and those of the expected ones that other levels do, which are asked for it.
pub fn broken_models(
    history: &History,
    plan: &Plan,
    verdict: &Verdict,
    args: &CheckArgs,
    budget: &Budget,
) -> Result<Names> {
    let checked = Asked {
        level: plan.level,
        spec: plan.spec,
    };
    let mut asked = Expected::parse(&args.all.expect, &args.all.anomalies)?.levels();
    let mut broken = Names::new();
    match verdict {
        Verdict::Violated(_) => broken.extend(broken_by(checked)),
        Verdict::Satisfied(_) => {
            let holds = implied_by(plan.level);
            asked.retain(|it| !implied_by(it.level).is_subset(&holds));
        }
        Verdict::Unknown(_) => {}
    }
    asked.retain(|it| !broken_by(*it).is_subset(&broken));
    if asked.is_empty() || plan.isolation_map.is_some() || plan.level == Level::Linearizable {
        return Ok(broken);
    }
    for it in asked.iter_mut().filter(|it| it.spec.real_time.is_some()) {
        it.spec = clocked(it.spec, &args.level)?;
    }
    let options = BackendOptions {
        seed: plan.seed,
        propagator: plan.search,
        cooler: Some(plan.cooler()),
    };
    let mut backend = kingsnake_encodings::backend(&plan.backend, &options)?;
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
        budget,
        &mut Silent,
    )?;
    let violated = asked.iter().zip(&answers);
    let violated = violated.filter(|(_, answer)| answer.holds() == Some(false));
    broken.extend(violated.flat_map(|(it, _)| broken_by(*it)));
    Ok(broken)
}
