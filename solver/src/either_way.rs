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

#[cfg(test)]
mod tests {
    use kingsnake_lab::oracle;
    use kingsnake_lab::random::small_repeats;

    use super::*;
    use crate::agreement::Exhaustive;
    use crate::certify::counterexample::check_counterexample;
    use crate::check::{Techniques, check};
    use crate::level::{Level, Spec};
    use crate::model::History;
    use crate::progress::Silent;
    use crate::resolve::resolve;

    fn verdict(history: &History, spec: Spec) -> Verdict {
        let (budget, backend) = (Budget::unlimited(), &mut Exhaustive::default());
        let all = Techniques::default();
        let report = check(history, spec, &all, backend, &budget, &mut Silent);
        report.expect("it can be checked").verdict
    }

    fn spec() -> Spec {
        Level::Ser.spec(None).expect("it needs nothing more")
    }

    /// The histories with a transaction in doubt, and that transaction.
    fn doubtful() -> impl Iterator<Item = (History, TxnId)> {
        (0..20_000).map(small_repeats).filter_map(|history| {
            let error = resolve(&history, &Budget::unlimited()).err()?;
            Some((history, error.unsettled()?))
        })
    }

    #[test]
    fn trying_one_case_alone_is_caught() {
        for end in [Status::Aborted, Status::Committed] {
            let mut histories = doubtful();
            let caught = histories.any(|(history, txn)| {
                let said = verdict(&history.with_status(txn, end), spec());
                let said = matches!(said, Verdict::Satisfied(_));
                oracle::holds(&history, spec()) != Some(said)
            });
            assert!(caught, "{end:?} alone");
        }
    }

    #[test]
    fn a_counterexample_needs_both_cases() {
        let (mut n_checked, mut n_swapped) = (0, 0);
        let budget = Budget::unlimited();
        for (history, _) in doubtful().take(2_000) {
            let Verdict::Violated(whole) = verdict(&history, spec()) else {
                continue;
            };
            let holds =
                |it: &Counterexample| check_counterexample(&history, spec(), it, &budget).is_ok();
            assert!(holds(&whole));
            let Counterexample::EitherWay {
                txn,
                lost,
                took_effect,
            } = whole
            else {
                continue;
            };
            n_checked += 1;
            let swapped = Counterexample::EitherWay {
                txn,
                lost: took_effect,
                took_effect: lost,
            };
            n_swapped += usize::from(!holds(&swapped));
        }
        println!("{n_checked} with cases, {n_swapped} rejected with the cases swapped");
        assert!(n_checked > 10 && n_swapped > 0);
    }
}
