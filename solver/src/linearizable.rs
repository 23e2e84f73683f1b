//! The level `linearizable`: asks the engines of registers, and has their answer checked again.

use kingsnake_certify::linearizable::{Demand, moments, replay, stuck};
use kingsnake_linearizable::{
    RegisterAnswer, RegisterEngine, RegisterOptions, RegisterViolation, check,
};

use crate::budget::{Budget, StopReason};
use crate::certify::Refusal;
use crate::certify::refutation::{check_findings, check_proof};
use crate::context::Context;
use crate::level::Spec;
use crate::model::{History, Status, TxnId};
use crate::progress::{Phase, Progress};
use crate::report::{CheckError, Decider, Report};
use crate::verdict::{Certificate, Counterexample, Moment, Point, Stuck, Verdict};

/// More configurations than this are not visited to check a violation again.
pub const MOST_CONFIGURATIONS: usize = 4_000_000;

/// Checks that a history of operations on registers is linearizable. `refusals_count`: a refused compare-and-set says that
/// the key did not hold what was expected.
pub fn check_linearizable(
    history: &History,
    spec: Spec,
    refusals_count: bool,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Report, CheckError> {
    let drift = spec.real_time.map_or(0, |it| it.drift);
    let options = RegisterOptions {
        drift,
        refusals_count,
    };
    let demand = Demand {
        drift,
        refusals_count,
    };
    let mut context = Context::new(budget, progress);
    context.go_on(Phase::Decide);
    let report = check(history, options, budget)?;
    context.stats.n_counted = report.stats.n_counted;
    context.stats.n_unknown_counted = report.stats.n_unknown_counted;
    context.stats.n_unknown_dropped = report.stats.n_unknown_dropped;
    let mut decider = match report.engine {
        RegisterEngine::Zones => Decider::Zones,
        RegisterEngine::Search => Decider::Search,
    };
    context.go_on(Phase::Certify);
    let verdict = match report.answer {
        RegisterAnswer::Unknown(reason) => Verdict::Unknown(reason),
        RegisterAnswer::Linearizable(order) => {
            let order = moments(history, order);
            let held = replay(history, demand, &order);
            held.map_err(|why| uncertified(decider, "satisfied", why))?;
            let point = |txn| Point {
                txn,
                moment: Moment::Whole,
            };
            let order = order.iter().map(|moment| point(moment.txn));
            Verdict::Satisfied(Certificate::from(order.collect::<Vec<_>>()))
        }
        RegisterAnswer::Violated(violation) => violated(history, spec, demand, decider, violation)?,
    };
    if matches!(verdict, Verdict::Unknown(_)) {
        decider = Decider::Nobody;
    }
    Ok(Report {
        verdict,
        spec,
        decider,
        stats: context.finish(),
    })
}

fn uncertified(decider: Decider, answer: &'static str, why: Refusal) -> CheckError {
    CheckError::Uncertified {
        decider: decider.name(),
        answer,
        why,
    }
}

fn violated(
    history: &History,
    spec: Spec,
    demand: Demand,
    decider: Decider,
    violation: RegisterViolation,
) -> Result<Verdict, CheckError> {
    let counterexample = match violation {
        RegisterViolation::Local(findings) => {
            let held = check_findings(history, &findings);
            held.map(|()| Counterexample::Local(findings))
        }
        RegisterViolation::Cyclic(proof) => {
            let held = check_proof(history, spec, &proof);
            held.map(|()| Counterexample::Cyclic(proof))
        }
        RegisterViolation::Stuck(key, last) => {
            match stuck(history, demand, key, last, MOST_CONFIGURATIONS) {
                Ok(possible) => Ok(Counterexample::Stuck(Stuck {
                    key,
                    last,
                    possible,
                    concurrent: concurrent(history, spec, key, last),
                })),
                Err(why @ Refusal::TooMany(_)) => {
                    let words = format!(
                        "the search finds no order for key {}, but checking that again took {why}",
                        history.key_name(key)
                    );
                    return Ok(Verdict::Unknown(StopReason::Backend(words)));
                }
                Err(why) => Err(why),
            }
        }
    };
    let counterexample = counterexample.map_err(|why| uncertified(decider, "violated", why))?;
    Ok(Verdict::Violated(counterexample))
}

/// The operations on a key that had begun when `last` ended, and had not ended before it began.
fn concurrent(history: &History, spec: Spec, key: crate::model::KeyId, last: TxnId) -> Vec<TxnId> {
    let drift = spec.real_time.map_or(0, |it| it.drift);
    let window = |txn: TxnId| {
        let interval = history.interval(txn);
        let end = interval.commit.saturating_add_unsigned(drift);
        (interval.begin, end)
    };
    let (begin, end) = window(last);
    let is_concurrent = |&txn: &TxnId| {
        let (other_begin, other_end) = window(txn);
        let touches = history.ops(txn).iter().any(|op| op.key() == Some(key));
        txn != last
            && touches
            && history.status(txn) != Status::Aborted
            && other_begin <= end
            && other_end >= begin
    };
    history.txns().filter(is_concurrent).collect()
}
