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
    Because, CommitReason, CommitStep, PathStep, WeakLevel, WeakSpec, WeakVerdict,
};

use kingsnake_certify::weak_cycle::check_cycle;

use kingsnake_relate::visible::{Commits, Models, Visible, Why};

use crate::budget::Budget;
use crate::check::CheckError;
use crate::model::{Act, History};
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
        Err(error) => return Err(error.into()),
    };
    let (answer, holds) = match &verdict {
        WeakVerdict::Satisfied(order) => ("satisfied", replay(history, spec, order)),
        WeakVerdict::Local(findings) => (
            "violated",
            kingsnake_certify::refutation::check_findings(history, findings),
        ),
        WeakVerdict::Cycle(steps) => ("violated", check_cycle(history, spec, steps)),
        WeakVerdict::Unknown(_) => ("unknown", Ok(())),
    };
    holds.map_err(|why| CheckError::Uncertified {
        decider: "weak",
        answer,
        why,
    })?;
    let mut predicates = history.all_predicates().iter();
    let has_aggregates = predicates.any(|(_, it)| matches!(it.act, Act::Aggregate { .. }));
    if has_aggregates && matches!(verdict, WeakVerdict::Satisfied(_)) {
        return Err(CheckError::Aggregates);
    }
    Ok(verdict)
}

fn decide(history: &History, spec: WeakSpec, budget: &Budget) -> Result<WeakVerdict, ResolveError> {
    let resolved = resolve_reads(history, budget)?;
    if !resolved.reads().choices().is_empty() {
        let n_reads = resolved.reads().choices().len();
        return Err(ResolveError::Uncertain { n_reads });
    }
    let mut findings = resolved.findings().to_vec();
    findings.retain(|finding| spec.level.is_broken_by(finding));
    if !findings.is_empty() {
        return Ok(WeakVerdict::Local(findings));
    }
    let models = Models::Uniform(spec.level.into());
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
