//! Parallel snapshot isolation, exactly: `known` forces orders by reachability, `search` asks a back end for the rest,
//! `prove` explains a violation.
//!
//! What snapshot isolation explains is explained here, too, so its order is tried first (technique `witness`): it is found at once in what
//! good databases do. docs/theory.md has the definition.

mod known;
mod prove;
mod search;
#[cfg(test)]
mod tests;
mod ways;

use known::Known;
pub(crate) use search::{Blamed, FoundForks, ReadChoice, ReadChoices};

use crate::budget::{Budget, StopReason};
use crate::context::Context;
use crate::decide::Backend;
use crate::level::{Model, Spec};
use crate::model::History;
use crate::phases::{self, Check, Exit, Refuted, Stop};
use crate::progress::Phase;
use crate::relate::Polygraph;
use crate::report::Decider;
use crate::verdict::{Moment, Point, Proof};
use kingsnake_graph::reach::Reach;
use kingsnake_refute::NoProof;

/// What is checked, and within which limits.
#[derive(Clone, Copy)]
struct PsiScene<'a> {
    check: &'a Check<'a>,
    budget: &'a Budget,
}

/// Settles a history at parallel snapshot isolation: an order of commits that explains it.
pub(crate) fn settle(
    check: &Check<'_>,
    polygraph: &Polygraph,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<(Decider, Vec<Point>), Exit> {
    if check.techniques.witness
        && !polygraph.runs().is_empty()
        && let Some(order) = by_snapshots(check, polygraph, backend, context)?
    {
        return Ok((Decider::Witness, order));
    }
    context.begin(Phase::Prune)?;
    let budget = context.budget;
    let scene = PsiScene { check, budget };
    let mut known = Known::new(polygraph, budget)?;
    let (mut decider, mut blamed) = (Decider::Prune, Blamed::default());
    if known.prune(check.techniques.prune_rounds, budget)? {
        context.stats.n_open = known.open.len();
        context.begin(Phase::Decide)?;
        let nothing = ReadChoices::default();
        let found;
        (decider, found) = search::search(&scene, &known, &nothing, backend, context)?;
        match found {
            FoundForks::Order(order, _) => {
                let points = order.into_iter().filter_map(|it| polygraph.point(it));
                return Ok((decider, points.collect()));
            }
            FoundForks::No(found) => blamed = found,
        }
    }
    context.go_on(Phase::Explain);
    Err(match prove(polygraph, check.history, blamed, budget) {
        Ok(proof) => Refuted::Proof(decider, proof).into(),
        Err(NoProof::Stopped(reason)) => reason.into(),
        Err(NoProof::NotFound) => Refuted::NoProof(decider).into(),
    })
}

/// Looks for an order where some reads are of one of several versions.
pub(crate) fn ask(
    check: &Check<'_>,
    polygraph: &Polygraph,
    choices: &ReadChoices<'_>,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<FoundForks, Stop> {
    let budget = context.budget;
    let scene = PsiScene { check, budget };
    let mut known = Known::new(polygraph, budget)?;
    if !known.prune(check.techniques.prune_rounds, budget)? {
        return Ok(FoundForks::No(Blamed::default()));
    }
    let found = search::search(&scene, &known, choices, backend, context)?;
    Ok(found.1)
}

/// Proves that nothing explains a graph, given the conflicts of a search.
pub(crate) fn prove(
    polygraph: &Polygraph,
    history: &History,
    blamed: Blamed,
    budget: &Budget,
) -> Result<Proof, NoProof> {
    let fresh = Known::new(polygraph, budget)?;
    prove::prove(fresh, history, blamed.pairs, budget)
}

/// Reachability in D, once what it forces is added; `None` where it contradicts itself.
pub(crate) fn reach(polygraph: &Polygraph, budget: &Budget) -> Result<Option<Reach>, StopReason> {
    let mut known = Known::new(polygraph, budget)?;
    if !known.prune(None, budget)? {
        return Ok(None);
    }
    Ok(known.reach(budget)?.map(|it| it.1))
}

/// The commits of an order that explains the history at snapshot isolation, if there is one.
fn by_snapshots(
    check: &Check<'_>,
    polygraph: &Polygraph,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<Option<Vec<Point>>, Exit> {
    let stronger = Check {
        spec: Spec {
            model: Model::Si,
            ..check.spec
        },
        ..*check
    };
    let stats = context.stats.clone();
    let found = phases::relate(&stronger, polygraph.resolved().clone(), context)
        .and_then(|graph| phases::prune(&stronger, graph, None, context))
        .and_then(|pruned| phases::decide(&stronger, pruned, backend, context));
    let decided = match found {
        Ok(decided) => decided,
        Err(Exit::Refuted(_)) => {
            context.stats.n_nodes = stats.n_nodes;
            context.stats.n_known_edges = stats.n_known_edges;
            context.stats.n_pairs = stats.n_pairs;
            return Ok(None);
        }
        Err(stop) => return Err(stop),
    };
    let commits = phases::order(&decided)?.into_iter();
    let commits = commits.filter(|point| point.moment == Moment::Commit);
    let whole = commits.map(|point| Point {
        moment: Moment::Whole,
        ..point
    });
    Ok(Some(whole.collect()))
}
