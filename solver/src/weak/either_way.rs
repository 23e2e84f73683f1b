//! Weak levels where a transaction of unknown end is in doubt: checked as if it had taken effect and as if it had not, as
//! `crate::either_way` does at the other levels.

use std::time::{Duration, Instant};

use super::{
    Decided, WeakSpec, WeakVerdict, certify, certify_prepared, decide_and_prepare,
    decide_uncertain, holds,
};
use crate::budget::Budget;
use crate::check::CheckError;
use crate::decide::Backend;
use crate::model::{History, Status, TxnId};
use crate::phases::Stop;
use crate::resolve::ResolveError;

/// How many counterexamples are kept for other cases.
const KEPT: usize = 64;

/// What the cases of a history share.
pub(super) struct Cases<'a, 'b> {
    pub(super) spec: WeakSpec,
    pub(super) backend: Option<&'a mut (dyn Backend + 'b)>,
    pub(super) budget: &'a Budget,
    /// What other cases learned, which is tried first where the history is split.
    pub(super) learned: Vec<WeakVerdict>,
    /// How long deciding took, and checking again.
    pub(super) decide: Duration,
    pub(super) certify: Duration,
}

/// Checks a history, which may be a case of what took effect in another.
pub(super) fn check_case(
    history: &History,
    cases: &mut Cases<'_, '_>,
) -> Result<WeakVerdict, CheckError> {
    let (spec, budget) = (cases.spec, cases.budget);
    let start = Instant::now();
    let (decided, prepared) = decide_and_prepare(history, spec, budget);
    let decided = match decided {
        Ok(Decided::Verdict(verdict)) => Ok(verdict),
        Ok(Decided::Uncertain(resolved)) => {
            let backend = cases
                .backend
                .as_mut()
                .map(|it| &mut **it as &mut dyn Backend);
            decide_uncertain(history, *resolved, spec, backend, budget)
        }
        Err(ResolveError::Stopped(reason)) => Err(reason.into()),
        Err(error) => Err(CheckError::from(error).into()),
    };
    cases.decide += start.elapsed();
    let verdict = match decided {
        Ok(verdict) => verdict,
        Err(Stop::Budget(reason)) => WeakVerdict::Unknown(reason),
        Err(Stop::Error(CheckError::Resolve(error))) if let Some(txn) = error.unsettled() => {
            return check_either_way(history, txn, cases);
        }
        Err(Stop::Error(error)) => return Err(error),
    };
    let start = Instant::now();
    certify_prepared(history, spec, &verdict, prepared.as_ref())?;
    cases.certify += start.elapsed();
    Ok(verdict)
}

/// Checks a history as if a transaction of unknown end had taken effect, and as if it had not.
fn check_either_way(
    history: &History,
    txn: TxnId,
    cases: &mut Cases<'_, '_>,
) -> Result<WeakVerdict, CheckError> {
    let spec = cases.spec;
    let mut check_as = |end| {
        let case = history.with_status(txn, end);
        let known = cases.learned.iter().rev();
        if let Some(known) = known.into_iter().find(|it| holds(&case, spec, it).is_ok()) {
            return Ok(known.clone());
        }
        let verdict = check_case(&case, cases)?;
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
