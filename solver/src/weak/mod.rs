//! The weak levels: read committed, read atomic, causal consistency.
//!
//! Each level gives edges between commits that follow from the reads alone (`rc`, `ra`, `cc`; Biswas and Enea's saturation, with
//! AWDIT's bounds). The history satisfies the level iff they form no cycle with session order and reads-from, and any
//! topological order is then the certificate. Nothing is searched.

mod cycle;
#[cfg(test)]
mod tests;

pub use kingsnake_certify::weak::replay;
pub use kingsnake_history::weak::{
    CommitReason, CommitStep, PathStep, VisibilityReason, WeakLevel, WeakSpec, WeakVerdict,
};

use kingsnake_certify::weak_cycle::check_cycle;

use kingsnake_relate::visible::{Commits, TxnModels, Visible, Why};

use crate::budget::Budget;
use crate::check::CheckError;
use crate::level::Spec;
use crate::model::{Act, History, Status, TxnId};
use crate::resolve::{ResolveError, resolve_reads};

/// Checks a history at a weak level. The answer has been checked again.
pub fn check(
    history: &History,
    spec: WeakSpec,
    budget: &Budget,
) -> Result<WeakVerdict, CheckError> {
    let verdict = match decide(history, spec, budget) {
        Ok(verdict) => verdict,
        Err(ResolveError::Stopped(reason)) => WeakVerdict::Unknown(reason),
        Err(error) => match error.unsettled() {
            Some(txn) => return check_either_way(history, spec, txn, budget),
            None => return Err(error.into()),
        },
    };
    certify(history, spec, &verdict)?;
    let mut predicates = history.all_predicates().iter();
    let has_aggregates = predicates.any(|(_, it)| matches!(it.act, Act::Aggregate { .. }));
    if has_aggregates && matches!(verdict, WeakVerdict::Satisfied(_)) {
        return Err(CheckError::Aggregates);
    }
    Ok(verdict)
}

/// Checks a history as if a transaction of unknown end had not taken effect, and as if it had.
fn check_either_way(
    history: &History,
    spec: WeakSpec,
    txn: TxnId,
    budget: &Budget,
) -> Result<WeakVerdict, CheckError> {
    let case = |status| check(&history.with_status(txn, status), spec, budget);
    let lost = case(Status::Aborted)?;
    let took_effect = match lost {
        WeakVerdict::Satisfied(_) => None,
        _ => Some(case(Status::Committed)?),
    };
    let verdict = match (lost, took_effect) {
        (lost, Some(took_effect)) if lost.is_violated() && took_effect.is_violated() => {
            return Ok(WeakVerdict::EitherWay {
                txn,
                lost: Box::new(lost),
                took_effect: Box::new(took_effect),
            });
        }
        (_, Some(satisfied @ WeakVerdict::Satisfied(_))) => satisfied,
        (stopped @ WeakVerdict::Unknown(_), _) | (_, Some(stopped)) => stopped,
        (satisfied, None) => satisfied,
    };
    certify(history, spec, &verdict)?;
    Ok(verdict)
}

/// Checks an answer again.
fn certify(history: &History, spec: WeakSpec, verdict: &WeakVerdict) -> Result<(), CheckError> {
    let (answer, holds) = match verdict {
        WeakVerdict::Satisfied(order) => ("satisfied", replay(history, spec, order)),
        WeakVerdict::Local(findings) => (
            "violated",
            kingsnake_certify::refutation::check_findings(history, findings),
        ),
        WeakVerdict::Cycle(steps) => ("violated", check_cycle(history, spec, steps)),
        // Each case was checked in a history of its own.
        WeakVerdict::EitherWay { .. } | WeakVerdict::Unknown(_) => return Ok(()),
    };
    holds.map_err(|why| CheckError::Uncertified {
        decider: "weak",
        answer,
        why,
    })
}

fn decide(history: &History, spec: WeakSpec, budget: &Budget) -> Result<WeakVerdict, ResolveError> {
    let resolved = resolve_reads(history, budget)?;
    if !resolved.reads().choices().is_empty() {
        let n_reads = resolved.reads().choices().len();
        return Err(ResolveError::Uncertain { n_reads });
    }
    let at_level = Spec {
        model: spec.level.into(),
        session_order: spec.session_order,
        real_time: None,
    };
    let findings = resolved.broken(history, at_level);
    if !findings.is_empty() {
        return Ok(WeakVerdict::Local(findings));
    }
    let models = TxnModels::Uniform(spec.level.into());
    let mut graph = Visible::of(&resolved, models, spec.session_order, budget)?;
    for (at, edge) in history.given_edges().iter().enumerate() {
        if let (Some(from), Some(to)) = (resolved.node(edge.from), resolved.node(edge.to)) {
            let why = Why::Stated(at as u32);
            graph.edges.push(Commits { from, to, why });
        }
    }
    Ok(match cycle::order(resolved.n_txns(), &graph.edges) {
        Ok(order) => {
            WeakVerdict::Satisfied(order.into_iter().map(|node| resolved.txn(node)).collect())
        }
        Err(cycle) => WeakVerdict::Cycle(cycle::steps(&resolved, spec, &cycle)),
    })
}
