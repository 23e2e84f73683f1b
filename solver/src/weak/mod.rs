//! The weak levels: read committed, read atomic, causal consistency.
//!
//! Each level gives edges between commits that follow from the reads alone (`rc`, `ra`, `cc`; Biswas and Enea's saturation, with
//! AWDIT's bounds). The history satisfies the level iff they form no cycle with session order and reads-from, and any
//! topological order is then the certificate. Nothing is searched, unless reads can have been of several versions (`uncertain`).

pub(crate) mod counting;
mod cycle;
mod either_way;
#[cfg(test)]
mod quick_tests;
#[cfg(test)]
mod tests;
mod uncertain;

pub use kingsnake_certify::weak::replay;
pub use kingsnake_history::weak::{
    CommitReason, CommitStep, OperationSource, PathStep, VisibilityReason, WeakLevel, WeakSpec,
    WeakVerdict,
};

use std::time::Duration;

use kingsnake_certify::Refusal;
use kingsnake_certify::weak_cycle::check_violation;
use kingsnake_certify::weak_plain::Prepared;

use kingsnake_relate::visible::quick::{self, ExactRules, Scanned};
use kingsnake_relate::visible::{Commits, TxnModels, Visible, Why};

use crate::aggregates::has_aggregates;
use crate::budget::{Budget, StopReason};
use crate::check::{CheckError, Techniques};
use crate::decide::Backend;
use crate::level::Spec;
use crate::model::History;
use crate::phases::{Check, Stop};
use crate::progress::Phase;
use crate::proposals;
use crate::resolve::{Node, ResolveError, Resolved, resolve_program};
use crate::verdict::Certificate;

/// Checks a history at a weak level. The answer has been checked again.
pub fn check(
    history: &History,
    spec: WeakSpec,
    budget: &Budget,
) -> Result<WeakVerdict, CheckError> {
    check_timed(history, spec, None, budget).map(|(verdict, _)| verdict)
}

/// The same with a back end, which looks for an order that explains uncertain reads at a stronger level first, and how long each phase
/// took. Where two cores read a history at a time, both are in the first.
pub fn check_timed(
    history: &History,
    spec: WeakSpec,
    backend: Option<&mut dyn Backend>,
    budget: &Budget,
) -> Result<(WeakVerdict, [(Phase, Duration); 2]), CheckError> {
    let mut cases = either_way::Cases {
        spec,
        backend,
        budget,
        learned: Vec::new(),
        decide: Duration::ZERO,
        certify: Duration::ZERO,
    };
    let verdict = either_way::check_case(history, &mut cases)?;
    let phases = [
        (Phase::Decide, cases.decide),
        (Phase::Certify, cases.certify),
    ];
    Ok((verdict, phases))
}

/// What one sort says of a history.
enum Decided {
    Verdict(WeakVerdict),
    /// Some reads can have been of several versions.
    Uncertain(Box<Resolved>),
}

/// Histories of fewer operations than this are decided and read again one after the other.
const ALONE: usize = 20_000;

/// Decides a history, and meanwhile reads it a second time for checking the answer.
fn decide_and_prepare<'h>(
    history: &'h History,
    spec: WeakSpec,
    budget: &Budget,
) -> (Result<Decided, ResolveError>, Option<Prepared<'h>>) {
    if history.n_ops() < ALONE {
        return (decide(history, spec, budget), None);
    }
    // A thread of its own starts sooner than a pool of them, which small histories do not need.
    std::thread::scope(|scope| {
        let prepared = scope.spawn(|| Prepared::of(history, spec));
        let decided = decide(history, spec, budget);
        let prepared = prepared.join();
        let prepared = prepared.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (decided, prepared)
    })
}

/// Checks an answer again.
fn certify(history: &History, spec: WeakSpec, verdict: &WeakVerdict) -> Result<(), CheckError> {
    certify_prepared(history, spec, verdict, None)
}

/// Checks an answer again, with what was read for it already.
fn certify_prepared(
    history: &History,
    spec: WeakSpec,
    verdict: &WeakVerdict,
    prepared: Option<&Prepared<'_>>,
) -> Result<(), CheckError> {
    let answer = match verdict {
        WeakVerdict::Unknown(_) => return Ok(()),
        WeakVerdict::Satisfied(..) => "satisfied",
        _ => "violated",
    };
    let held = match (verdict, prepared) {
        (WeakVerdict::Satisfied(order, sources), Some(prepared)) if sources.is_empty() => {
            prepared.replay(order)
        }
        _ => holds(history, spec, verdict),
    };
    held.map_err(|why| CheckError::Uncertified {
        decider: "weak",
        answer,
        why,
    })
}

/// Whether an answer stands up to being checked again; running out of a limit does.
fn holds(history: &History, spec: WeakSpec, verdict: &WeakVerdict) -> Result<(), Refusal> {
    match verdict {
        WeakVerdict::Satisfied(order, sources) => replay(history, spec, order, sources),
        WeakVerdict::Unknown(_) => Ok(()),
        violated => check_violation(history, spec, violated),
    }
}

fn decide(history: &History, spec: WeakSpec, budget: &Budget) -> Result<Decided, ResolveError> {
    let resolved = resolve_program(history, budget)?;
    let n_reads = resolved.reads().choices().len();
    let findings = resolved.broken(history, at_level(spec));
    if !findings.is_empty() {
        return Ok(Decided::Verdict(WeakVerdict::Local(findings)));
    }
    if n_reads > 0 || has_aggregates(history) {
        return Ok(Decided::Uncertain(Box::new(resolved)));
    }
    if let Some(order) = quick_order(history, &resolved, spec, budget)? {
        let order = order.into_iter().map(|node| resolved.txn(node));
        let verdict = WeakVerdict::Satisfied(order.collect(), Vec::new());
        return Ok(Decided::Verdict(verdict));
    }
    let edges = commits(history, &resolved, spec, budget)?;
    Ok(Decided::Verdict(
        match cycle::order(resolved.n_txns(), &edges) {
            Ok(order) => {
                let order = order.into_iter().map(|node| resolved.txn(node));
                WeakVerdict::Satisfied(order.collect(), Vec::new())
            }
            Err(cycle) => WeakVerdict::Cycle(cycle::steps(&resolved, spec, &cycle)),
        },
    ))
}

/// The level as the other engines know it.
fn at_level(spec: WeakSpec) -> Spec {
    Spec {
        model: spec.level.into(),
        session_order: spec.session_order,
        real_time: None,
    }
}

/// Decides a history whose reads can have been of several versions: a back end looks for an order at a stronger level, then versions are
/// proposed.
fn decide_uncertain(
    history: &History,
    resolved: Resolved,
    spec: WeakSpec,
    backend: Option<&mut dyn Backend>,
    budget: &Budget,
) -> Result<WeakVerdict, Stop> {
    if let Some(backend) = backend {
        let techniques = &Techniques::default();
        let check = Check {
            history,
            spec: at_level(spec),
            techniques,
        };
        if let Some(Certificate { order, sources }) = proposals::explain(&check, backend, budget)? {
            let order = order.into_iter().map(|point| point.txn);
            return Ok(WeakVerdict::Satisfied(order.collect(), sources));
        }
    }
    Ok(uncertain::decide(history, resolved, spec, budget)?)
}

/// An order of commits, found without reasons; `None` where there is none, or range queries need more.
fn quick_order(
    history: &History,
    resolved: &Resolved,
    spec: WeakSpec,
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
        spec.level.into(),
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
    spec: WeakSpec,
    budget: &Budget,
) -> Result<Vec<Commits>, StopReason> {
    let models = TxnModels::Uniform(spec.level.into());
    let mut graph = Visible::of(resolved, models, spec.session_order, budget)?;
    for (at, edge) in history.given_edges().iter().enumerate() {
        if let (Some(from), Some(to)) = (resolved.node(edge.from), resolved.node(edge.to)) {
            let why = Why::Stated(at as u32);
            graph.edges.push(Commits { from, to, why });
        }
    }
    Ok(graph.edges)
}
