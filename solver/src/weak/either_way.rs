//! Weak levels where a transaction of unknown end is in doubt: checked as if it had taken effect and as if it had not, as
//! `crate::either_way` does at the other levels.

use std::time::{Duration, Instant};

use super::{WeakSpec, WeakVerdict, certify, certify_prepared, decide_and_prepare, holds};
use crate::budget::Budget;
use crate::check::CheckError;
use crate::model::{History, Status, TxnId};
use crate::resolve::ResolveError;

/// How many counterexamples are kept for other cases.
const KEPT: usize = 64;

/// What the cases of a history have in common.
#[derive(Default)]
pub(super) struct Cases {
    /// Counterexamples that may hold in another case.
    learned: Vec<WeakVerdict>,
    /// How long deciding took, and checking again.
    pub(super) decide: Duration,
    pub(super) certify: Duration,
}

/// Checks a history, which may be a case of what took effect in another. What other cases learned is tried first where the
/// history is split.
pub(super) fn check_case(
    history: &History,
    spec: WeakSpec,
    budget: &Budget,
    cases: &mut Cases,
) -> Result<WeakVerdict, CheckError> {
    let start = Instant::now();
    let (decided, prepared) = decide_and_prepare(history, spec, budget);
    cases.decide += start.elapsed();
    let verdict = match decided {
        Ok(verdict) => verdict,
        Err(ResolveError::Stopped(reason)) => WeakVerdict::Unknown(reason),
        Err(error) => match error.unsettled() {
            Some(txn) => return check_either_way(history, spec, txn, budget, cases),
            None => return Err(error.into()),
        },
    };
    let start = Instant::now();
    certify_prepared(history, spec, &verdict, prepared.as_ref())?;
    cases.certify += start.elapsed();
    Ok(verdict)
}

/// Checks a history as if a transaction of unknown end had taken effect, and as if it had not.
fn check_either_way(
    history: &History,
    spec: WeakSpec,
    txn: TxnId,
    budget: &Budget,
    cases: &mut Cases,
) -> Result<WeakVerdict, CheckError> {
    let mut check_as = |end| {
        let case = history.with_status(txn, end);
        let known = cases.learned.iter().rev();
        if let Some(known) = known.into_iter().find(|it| holds(&case, spec, it).is_ok()) {
            return Ok(known.clone());
        }
        let verdict = check_case(&case, spec, budget, cases)?;
        if verdict.is_violated() && cases.learned.len() < KEPT {
            cases.learned.push(verdict.clone());
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
