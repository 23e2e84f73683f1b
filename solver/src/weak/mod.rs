//! The weak levels: read committed, read atomic, causal consistency.
//!
//! Each level gives edges between commits that follow from the reads alone (`rc`, `ra`, `cc`; Biswas and Enea's saturation, with
//! AWDIT's bounds). The history satisfies the level iff they form no cycle with session order and reads-from, and any
//! topological order is then the certificate. Nothing is searched.

mod cycle;
mod either_way;
#[cfg(test)]
mod tests;

pub use kingsnake_certify::weak::replay;
pub use kingsnake_history::weak::{
    CommitReason, CommitStep, PathStep, VisibilityReason, WeakLevel, WeakSpec, WeakVerdict,
};

use kingsnake_certify::Refusal;
use kingsnake_certify::weak_cycle::check_cycle;

use kingsnake_relate::visible::{Commits, TxnModels, Visible, Why};

use crate::budget::Budget;
use crate::check::CheckError;
use crate::level::Spec;
use crate::model::{History, Status};
use crate::resolve::{ResolveError, resolve_reads};

/// Checks a history at a weak level. The answer has been checked again.
pub fn check(
    history: &History,
    spec: WeakSpec,
    budget: &Budget,
) -> Result<WeakVerdict, CheckError> {
    either_way::check_case(history, spec, budget, &mut Vec::new())
}

/// Checks an answer again.
fn certify(history: &History, spec: WeakSpec, verdict: &WeakVerdict) -> Result<(), CheckError> {
    let answer = match verdict {
        WeakVerdict::Unknown(_) => return Ok(()),
        WeakVerdict::Satisfied(_) => "satisfied",
        _ => "violated",
    };
    holds(history, spec, verdict).map_err(|why| CheckError::Uncertified {
        decider: "weak",
        answer,
        why,
    })
}

/// Whether an answer stands up to being checked again; running out of a limit does.
fn holds(history: &History, spec: WeakSpec, verdict: &WeakVerdict) -> Result<(), Refusal> {
    match verdict {
        WeakVerdict::Satisfied(order) => replay(history, spec, order),
        WeakVerdict::Local(findings) => {
            kingsnake_certify::refutation::check_findings(history, findings)
        }
        WeakVerdict::Cycle(steps) => check_cycle(history, spec, steps),
        WeakVerdict::EitherWay {
            txn,
            lost,
            took_effect,
        } => {
            holds(&history.with_status(*txn, Status::Aborted), spec, lost)?;
            let history = history.with_status(*txn, Status::Committed);
            holds(&history, spec, took_effect)
        }
        WeakVerdict::Unknown(_) => Ok(()),
    }
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
