//! Weak levels where a transaction of unknown end is in doubt: checked as if it had taken effect and as if it had not, as
//! `crate::either_way` does at the other levels.

use super::{WeakSpec, WeakVerdict, certify, certify_prepared, decide_and_prepare, holds};
use crate::budget::Budget;
use crate::check::CheckError;
use crate::model::{Act, History, Status, TxnId};
use crate::resolve::ResolveError;

/// How many counterexamples are kept for other cases.
const KEPT: usize = 64;

/// Checks a history, which may be a case of what took effect in another. What other cases learned is tried first where the
/// history is split.
pub(super) fn check_case(
    history: &History,
    spec: WeakSpec,
    budget: &Budget,
    learned: &mut Vec<WeakVerdict>,
) -> Result<WeakVerdict, CheckError> {
    let (decided, prepared) = decide_and_prepare(history, spec, budget);
    let verdict = match decided {
        Ok(verdict) => verdict,
        Err(ResolveError::Stopped(reason)) => WeakVerdict::Unknown(reason),
        Err(error) => match error.unsettled() {
            Some(txn) => return check_either_way(history, spec, txn, budget, learned),
            None => return Err(error.into()),
        },
    };
    certify_prepared(history, spec, &verdict, prepared.as_ref())?;
    let mut predicates = history.all_predicates().iter();
    let has_aggregates = predicates.any(|(_, it)| matches!(it.act, Act::Aggregate { .. }));
    if has_aggregates && matches!(verdict, WeakVerdict::Satisfied(..)) {
        return Err(CheckError::Aggregates);
    }
    Ok(verdict)
}

/// Checks a history as if a transaction of unknown end had taken effect, and as if it had not.
fn check_either_way(
    history: &History,
    spec: WeakSpec,
    txn: TxnId,
    budget: &Budget,
    learned: &mut Vec<WeakVerdict>,
) -> Result<WeakVerdict, CheckError> {
    let mut check_as = |end| {
        let case = history.with_status(txn, end);
        let known = learned.iter().rev();
        if let Some(known) = known.into_iter().find(|it| holds(&case, spec, it).is_ok()) {
            return Ok(known.clone());
        }
        let verdict = check_case(&case, spec, budget, learned)?;
        if verdict.is_violated() && learned.len() < KEPT {
            learned.push(verdict.clone());
        }
        Ok::<_, CheckError>(verdict)
    };
    let is_answer = |verdict: &WeakVerdict| match verdict {
        WeakVerdict::Unknown(_) => false,
        // An order of a case that is none of the history would be a bug, which `certify` reports.
        WeakVerdict::Satisfied(..) => true,
        _ => holds(history, spec, verdict).is_ok(),
    };
    // What took effect explains reads, so this case holds more often.
    let took_effect = check_as(Status::Committed)?;
    if is_answer(&took_effect) {
        certify(history, spec, &took_effect)?;
        return Ok(took_effect);
    }
    let lost = check_as(Status::Aborted)?;
    if is_answer(&lost) {
        certify(history, spec, &lost)?;
        return Ok(lost);
    }
    Ok(match (lost, took_effect) {
        (stopped @ WeakVerdict::Unknown(_), _) | (_, stopped @ WeakVerdict::Unknown(_)) => stopped,
        (lost, took_effect) => WeakVerdict::EitherWay {
            txn,
            lost: Box::new(lost),
            took_effect: Box::new(took_effect),
        },
    })
}
