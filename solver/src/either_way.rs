//! Histories in which a read may have been of a transaction whose end is unknown, or of another: checked as if that transaction had
//! taken effect, and as if it had not.
//!
//! Only a transaction that such a read leaves in doubt is split on; every other one of unknown end is counted or dropped by the
//! rule of `resolve`. An order of either case explains the history. A counterexample of one case that does not rest on the case
//! is one of the history, so independent doubts are not multiplied: *n* of them take about *n* checks, not 2ⁿ. What was learned in one
//! case is tried in the others before anything is searched there.

use crate::budget::Budget;
use crate::certify;
use crate::certify::counterexample::check_counterexample;
use crate::check::{CheckError, Engines, Report, check_case};
use crate::level::Spec;
use crate::model::{History, Status, TxnId};
use crate::phases::Check;
use crate::progress::Progress;
use crate::report::{CheckStats, Decider};
use crate::verdict::{Counterexample, Verdict};

/// How many counterexamples are kept for other cases.
const KEPT: usize = 64;

/// What the cases of one check have in common.
pub(crate) struct Cases<'a> {
    pub(crate) budget: &'a Budget,
    pub(crate) progress: &'a mut dyn Progress,
    /// Counterexamples of cases so far.
    learned: Vec<Counterexample>,
}

impl<'a> Cases<'a> {
    pub(crate) fn new(budget: &'a Budget, progress: &'a mut dyn Progress) -> Self {
        Cases {
            budget,
            progress,
            learned: Vec::new(),
        }
    }

    /// A counterexample that was found in another case and is one of this history too.
    fn recall(&self, history: &History, spec: Spec) -> Option<&Counterexample> {
        let mut learned = self.learned.iter().rev();
        learned.find(|it| holds(history, spec, it, self.budget))
    }

    fn learn(&mut self, counterexample: &Counterexample) {
        if self.learned.len() < KEPT && !self.learned.contains(counterexample) {
            self.learned.push(counterexample.clone());
        }
    }
}

fn holds(history: &History, spec: Spec, counterexample: &Counterexample, budget: &Budget) -> bool {
    check_counterexample(history, spec, counterexample, budget).is_ok()
}

/// Checks a history both ways.
pub(crate) fn check_either_way(
    check: &Check<'_>,
    txn: TxnId,
    mut engines: Engines<'_>,
    cases: &mut Cases<'_>,
) -> Result<Report, CheckError> {
    // What took effect explains reads, so this case holds more often.
    let took_effect = check_as(check, txn, Status::Committed, engines.lend(), cases)?;
    if is_answer(check, &took_effect, cases) {
        return explained(check, took_effect);
    }
    let lost = check_as(check, txn, Status::Aborted, engines, cases)?;
    if is_answer(check, &lost, cases) {
        return explained(check, lost);
    }
    match (lost.verdict, took_effect.verdict) {
        (Verdict::Violated(lost), Verdict::Violated(other)) => Ok(Report {
            verdict: Verdict::Violated(Counterexample::EitherWay {
                txn,
                lost: Box::new(lost),
                took_effect: Box::new(other),
            }),
            ..took_effect
        }),
        (verdict @ Verdict::Unknown(_), _) | (_, verdict) => Ok(Report {
            verdict,
            ..took_effect
        }),
    }
}

/// Checks the history where the transaction ended so.
fn check_as(
    check: &Check<'_>,
    txn: TxnId,
    end: Status,
    engines: Engines<'_>,
    cases: &mut Cases<'_>,
) -> Result<Report, CheckError> {
    let history = &check.history.with_status(txn, end);
    if let Some(known) = cases.recall(history, check.spec) {
        return Ok(Report {
            verdict: Verdict::Violated(known.clone()),
            spec: check.spec,
            decider: Decider::Resolve,
            stats: CheckStats::default(),
        });
    }
    let report = check_case(&Check { history, ..*check }, None, engines, cases)?;
    if let Verdict::Violated(counterexample) = &report.verdict {
        cases.learn(counterexample);
    }
    Ok(report)
}

/// Whether the answer of one case is one of the history.
fn is_answer(check: &Check<'_>, report: &Report, cases: &Cases<'_>) -> bool {
    match &report.verdict {
        Verdict::Satisfied(_) => true,
        Verdict::Violated(it) => holds(check.history, check.spec, it, cases.budget),
        Verdict::Unknown(_) => false,
    }
}

/// An order of one case, once it is seen to explain the history itself.
fn explained(check: &Check<'_>, report: Report) -> Result<Report, CheckError> {
    if let Verdict::Satisfied(order) = &report.verdict {
        let holds = certify::order::replay(check.history, check.spec, order);
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
