//! The weak levels: read committed, read atomic, causal consistency.
//!
//! Each level gives edges between commits that follow from the reads alone (`rc`, `ra`, `cc`; Biswas and Enea's saturation, with
//! AWDIT's bounds). The history satisfies the level iff they form no cycle with session order and reads-from, and any
//! topological order is then the certificate. Nothing is searched, unless reads can have been of several versions (`sight`).

mod cycle;
#[cfg(test)]
mod quick_tests;
#[cfg(test)]
pub(crate) mod tests;

use kingsnake_certify::Refusal;
use kingsnake_certify::counterexample::check_counterexample;
use kingsnake_certify::order::replay;
use kingsnake_certify::weak::plain::Prepared;

use kingsnake_relate::visible::quick::{self, ExactRules, Scanned};
use kingsnake_relate::visible::{Commits, TxnModels, Visible, Why};

use crate::budget::{Budget, StopReason};
use crate::check::CheckError;
use crate::context::Context;
use crate::decide::Backend;
use crate::level::Spec;
use crate::model::{History, TxnId};
use crate::phases::{self, Check, Evidence, Stop, note_resolved};
use crate::progress::Phase;
use crate::report::Decider;
use crate::resolve::{Node, Resolved, resolve_program, resolve_reads};
use crate::sight;
use crate::solve::has_aggregates;
use crate::verdict::{Certificate, Counterexample, Proof, Verdict};

/// Checks a history at a weak level, and the answer again.
pub(crate) fn settle(
    check: &Check<'_>,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<(Decider, Verdict), Stop> {
    context.begin(Phase::Decide)?;
    let (decided, prepared) = decide_and_prepare(check, context);
    let (decider, verdict) = match decided? {
        WeakAnswer::Verdict(decider, verdict) => (decider, verdict),
        WeakAnswer::Uncertain => decide_uncertain(check, backend, context)?,
    };
    context.go_on(Phase::Certify);
    certify(check, &verdict, prepared.as_ref(), context.budget).map_err(|why| match why {
        Refusal::Stopped(reason) => Stop::Budget(reason),
        why => Stop::Error(CheckError::Uncertified {
            decider: decider.name(),
            answer: verdict.word(),
            why,
        }),
    })?;
    Ok((decider, verdict))
}

/// What one sort says of a history.
enum WeakAnswer {
    Verdict(Decider, Verdict),
    /// Some reads can have been of several versions.
    Uncertain,
}

/// Histories with fewer operations are decided and read again in sequence.
const ALONE: usize = 20_000;

/// Decides a history, and reads it a second time in parallel for checking the answer.
fn decide_and_prepare<'h>(
    check: &Check<'h>,
    context: &mut Context<'_>,
) -> (Result<WeakAnswer, Stop>, Option<Prepared<'h>>) {
    if check.history.n_ops() < ALONE {
        return (decide(check, context), None);
    }
    // A thread of its own starts sooner than a pool of them, which small histories do not need.
    std::thread::scope(|scope| {
        let prepared = scope.spawn(|| Prepared::of(check.history, check.spec));
        let decided = decide(check, context);
        let prepared = prepared.join();
        let prepared = prepared.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (decided, prepared)
    })
}

/// Checks an answer again, reusing what was read for it already.
fn certify(
    check: &Check<'_>,
    verdict: &Verdict,
    prepared: Option<&Prepared<'_>>,
    budget: &Budget,
) -> Result<(), Refusal> {
    let (history, spec) = (check.history, check.spec);
    match (verdict, prepared) {
        (Verdict::Satisfied(order), Some(prepared)) if order.sources.is_empty() => {
            let commits: Vec<TxnId> = order.commits().collect();
            prepared.replay(&commits)
        }
        (Verdict::Satisfied(order), _) => replay(history, spec, order),
        (Verdict::Violated(why), _) => check_counterexample(history, spec, why, budget),
        (Verdict::Unknown(_), _) => Ok(()),
    }
}

/// Proves that no order explains the history.
fn refuted(proof: Proof) -> Verdict {
    Verdict::Violated(Counterexample::Cyclic(proof))
}

fn decide(check: &Check<'_>, context: &mut Context<'_>) -> Result<WeakAnswer, Stop> {
    let (history, spec, budget) = (check.history, check.spec, context.budget);
    let resolved = resolve_program(history, budget)?;
    note_resolved(&resolved, context);
    let n_reads = resolved.reads().choices().len();
    let findings = resolved.broken(history, spec);
    if !findings.is_empty() {
        let verdict = Verdict::Violated(Counterexample::Local(findings));
        return Ok(WeakAnswer::Verdict(Decider::Resolve, verdict));
    }
    if n_reads > 0 || has_aggregates(history) {
        return Ok(WeakAnswer::Uncertain);
    }
    let in_order = |order: Vec<Node>| {
        let order = order.into_iter().map(|node| resolved.txn(node));
        Verdict::Satisfied(Certificate::of_txns(order))
    };
    let verdict = if let Some(order) = quick_order(history, &resolved, spec, budget)? {
        in_order(order)
    } else {
        let edges = commits(history, &resolved, spec, budget)?;
        match cycle::order(resolved.n_txns(), &edges) {
            Ok(order) => in_order(order),
            Err(cycle) => refuted(Proof::Cycle(cycle::steps(history, &resolved, &cycle))),
        }
    };
    Ok(WeakAnswer::Verdict(Decider::Linear, verdict))
}

/// Decides a history whose reads can have been of several versions.
fn decide_uncertain(
    check: &Check<'_>,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<(Decider, Verdict), Stop> {
    let resolved = resolve_reads(check.history, context.budget)?;
    let found = sight::settle(check, &resolved, backend, context);
    let (decider, evidence) = phases::explain(check, found, context)?;
    let verdict = match evidence {
        Evidence::Order(order) => Verdict::Satisfied(order),
        Evidence::Violated(why) => Verdict::Violated(why),
    };
    Ok((decider, verdict))
}

/// An order of commits, found without reasons; `None` where there is none, or range queries need more.
fn quick_order(
    history: &History,
    resolved: &Resolved,
    spec: Spec,
    budget: &Budget,
) -> Result<Option<Vec<Node>>, StopReason> {
    let mut stated = Vec::new();
    for edge in history.given_edges() {
        if let (Some(from), Some(to)) = (resolved.node(edge.from), resolved.node(edge.to)) {
            stated.push((from, to));
        }
    }
    quick::order(
        ExactRules,
        resolved,
        spec.model,
        spec.session_order,
        stated,
        Scanned::default(),
        budget,
    )
}

/// What commits before what, where every read is of one version.
fn commits(
    history: &History,
    resolved: &Resolved,
    spec: Spec,
    budget: &Budget,
) -> Result<Vec<Commits>, StopReason> {
    let models = TxnModels::Uniform(spec.model);
    let mut graph = Visible::of(resolved, models, spec.session_order, budget)?;
    for (at, edge) in history.given_edges().iter().enumerate() {
        if let (Some(from), Some(to)) = (resolved.node(edge.from), resolved.node(edge.to)) {
            let why = Why::Stated(at as u32);
            graph.edges.push(Commits { from, to, why });
        }
    }
    Ok(graph.edges)
}
