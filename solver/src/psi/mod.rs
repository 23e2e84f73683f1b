//! Parallel snapshot isolation, exactly: `known` forces orders by reachability, `search` asks a back end for the rest, `prove` explains a no.
//!
//! What snapshot isolation explains is explained here, too, so its order is tried first (technique `witness`): it is found at once in what
//! good databases do. docs/levels.md has the definition.

mod known;
mod prove;
mod search;
#[cfg(test)]
mod tests;

use known::Known;
use rustc_hash::FxHashMap;
use search::Found;

use crate::budget::{Budget, StopReason};
use crate::check::{CheckError, Decider, chosen_order};
use crate::decide::{Backend, DecideStats, Decision};
use crate::level::{Model, Spec};
use crate::model::History;
use crate::progress::Progress;
use crate::prune::{Outcome, PruneOptions, PruneStats, prune};
use crate::relate::{Polygraph, Shape, construct_within};
use crate::verdict::{Moment, Point, Proof};
use kingsnake_refute::NoProof;

/// What is checked, and how.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) history: &'a History,
    pub(crate) shape: Shape,
    pub(crate) options: PruneOptions,
    /// Whether an order that snapshot isolation allows is tried first.
    pub(crate) witness: bool,
    pub(crate) budget: &'a Budget,
}

/// The answer, and what it took.
pub(crate) struct Answer {
    pub(crate) decider: Decider,
    pub(crate) found: Result<Vec<Point>, Proof>,
    /// Pairs that were open after pruning.
    pub(crate) n_open: usize,
    pub(crate) decide: Option<DecideStats>,
}

/// Why there is none.
pub(crate) enum Stop {
    Budget(StopReason),
    Error(CheckError),
    NoProof(Decider),
}

impl From<StopReason> for Stop {
    fn from(reason: StopReason) -> Self {
        Stop::Budget(reason)
    }
}

/// Settles a history at parallel snapshot isolation.
pub(crate) fn settle(
    scene: &Scene<'_>,
    polygraph: &Polygraph,
    backend: &mut dyn Backend,
    progress: &mut dyn Progress,
) -> Result<Answer, Stop> {
    let mut answer = Answer {
        decider: Decider::Prune,
        found: Ok(Vec::new()),
        n_open: 0,
        decide: None,
    };
    if scene.witness
        && !polygraph.runs().is_empty()
        && let Some(order) = by_snapshots(scene, polygraph, backend, progress, &mut answer.decide)?
    {
        answer.decider = Decider::Witness;
        answer.found = Ok(order);
        return Ok(answer);
    }
    let mut known = Known::new(polygraph, scene.budget)?;
    let mut blamed = FxHashMap::default();
    if known.prune(scene.options.rounds, scene.budget)? {
        answer.n_open = known.open.len();
        if answer.n_open > 0 {
            answer.decider = Decider::Backend;
        }
        let decide = &mut answer.decide;
        match search::search(scene, &known, backend, progress, decide)? {
            Found::Order(order) => {
                answer.found = Ok(order
                    .into_iter()
                    .filter_map(|it| polygraph.point(it))
                    .collect());
                return Ok(answer);
            }
            Found::No(found) => blamed = found,
        }
    }
    let fresh = Known::new(polygraph, scene.budget)?;
    let proof = prove::prove(fresh, scene.history, blamed, scene.budget);
    answer.found = Err(proof.map_err(|no| match no {
        NoProof::Stopped(reason) => Stop::Budget(reason),
        NoProof::NotFound => Stop::NoProof(answer.decider),
    })?);
    Ok(answer)
}

/// The commits of an order that explains the history at snapshot isolation, if there is one.
fn by_snapshots(
    scene: &Scene<'_>,
    polygraph: &Polygraph,
    backend: &mut dyn Backend,
    progress: &mut dyn Progress,
    stats: &mut Option<DecideStats>,
) -> Result<Option<Vec<Point>>, Stop> {
    let spec = Spec {
        model: Model::Si,
        ..polygraph.spec()
    };
    let resolved = polygraph.resolved().clone();
    let stronger = construct_within(scene.history, resolved, spec, scene.shape, scene.budget)?;
    let mut prune_stats = PruneStats::default();
    let (options, budget) = (scene.options, scene.budget);
    let outcome = prune(stronger, options, &mut prune_stats, budget, progress)?;
    let Outcome::Pruned(pruned) = outcome else {
        return Ok(None);
    };
    let sides = if pruned.constraints.is_empty() {
        Vec::new()
    } else if let Some(sides) = crate::witness::witness(pruned.question()) {
        sides
    } else {
        let decided = backend.decide(pruned.question(), budget, progress);
        let (decision, own) = decided.map_err(|error| Stop::Error(error.into()))?;
        *stats = Some(own);
        match decision {
            Decision::Choices(sides) => sides,
            Decision::Core(_) => return Ok(None),
            Decision::Unknown(reason) => return Err(reason.into()),
        }
    };
    let order = chosen_order(&pruned, &sides).map_err(|_| cyclic())?;
    let points = order.into_iter();
    let points = points.filter_map(|node| pruned.polygraph.point(node));
    let commits = points.filter(|point| point.moment == Moment::Commit);
    let whole = commits.map(|point| Point {
        moment: Moment::Whole,
        ..point
    });
    Ok(Some(whole.collect()))
}

/// A back end's choices have a cycle.
fn cyclic() -> Stop {
    Stop::Error(CheckError::Uncertified {
        decider: Decider::Backend.name(),
        answer: "satisfied",
        why: "the choices have a cycle".to_owned(),
    })
}
