//! Histories in which a read may have been of a transaction whose end is unknown, or of another: checked twice, as if that transaction
//! had not taken effect and as if it had.
//!
//! Only a transaction that such a read leaves in doubt is split on; every other one of unknown end is counted or dropped by the
//! rule of `resolve`. An order of either case explains the history.

use crate::budget::Budget;
use crate::certify;
use crate::check::{CheckError, Engines, Report, check_on};
use crate::model::{Status, TxnId};
use crate::phases::Check;
use crate::progress::Progress;
use crate::verdict::{Counterexample, Verdict};

/// Checks a history both ways.
pub(crate) fn check_either_way(
    check: &Check<'_>,
    txn: TxnId,
    mut engines: Engines<'_>,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Report, CheckError> {
    let mut case = |status: Status| {
        let lent = engines.lend();
        let history = check.history.with_status(txn, status);
        check_on(
            &history,
            None,
            check.spec,
            check.techniques,
            lent,
            budget,
            progress,
        )
    };
    let lost = case(Status::Aborted)?;
    if let Verdict::Satisfied(_) = lost.verdict {
        return explained(check, lost);
    }
    let took_effect = case(Status::Committed)?;
    match (lost.verdict, took_effect.verdict) {
        (_, verdict @ Verdict::Satisfied(_)) => explained(
            check,
            Report {
                verdict,
                ..took_effect
            },
        ),
        (Verdict::Violated(lost), Verdict::Violated(other)) => Ok(Report {
            verdict: Verdict::Violated(Counterexample::EitherWay {
                txn,
                lost: Box::new(lost),
                took_effect: Box::new(other),
            }),
            ..took_effect
        }),
        (verdict @ Verdict::Unknown(_), _) | (_, verdict) => Ok(Report { verdict, ..lost }),
    }
}

/// An order of one case, once it is seen to explain the history itself.
fn explained(check: &Check<'_>, report: Report) -> Result<Report, CheckError> {
    if let Verdict::Satisfied(order) = &report.verdict {
        let holds = certify::order::replay_without_aggregates(check.history, check.spec, order);
        holds.map_err(|why| CheckError::Uncertified {
            decider: report.decider.name(),
            answer: "satisfied",
            why,
        })?;
    }
    Ok(report)
}
