//! Transactions with unknown outcome that matter: each outcome is a literal.
//!
//! Serializability, snapshot isolation and prefix consistency state these literals in their question (`relate/ends`),
//! if plain reads and writes leave the outcomes open. Otherwise, and to explain a violation, the history is checked
//! with one assignment of the open outcomes. An order explains the history. A counterexample is a lemma: the outcomes
//! that it uses cannot all be as assigned. The next assignment satisfies all lemmas; if there is none, the lemmas form
//! a tree of cases, which is the counterexample of the history.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use crate::budget::{Budget, StopReason};
use crate::certify;
use crate::certify::counterexample::check_counterexample;
use crate::check::{CheckError, Engines, Report, check_case};
use crate::level::{Model, Spec};
use crate::model::{History, Status, TxnId};
use crate::phases::Check;
use crate::progress::Progress;
use crate::report::{CheckStats, Decider};
use crate::resolve::resolve_for;
use crate::shared::Shared;
use crate::verdict::{Counterexample, Verdict};

/// Whether transactions took effect.
type Ends = BTreeMap<TxnId, bool>;

/// The answer to a history with some outcomes assigned.
pub(crate) enum CaseAnswer {
    Report(Box<Report>),
    /// It depends on whether this transaction took effect.
    Open(TxnId),
}

/// Checks a history, whatever took effect.
pub(crate) fn check_ends(
    check: &Check<'_>,
    mut shared: Option<&mut Shared>,
    mut engines: Engines<'_>,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Report, CheckError> {
    let mut lemmas = Lemmas {
        check,
        budget,
        open: Vec::new(),
        learned: Vec::new(),
    };
    let mut ends = Ends::new();
    let (mut decider, mut stats) = (Decider::None, CheckStats::default());
    loop {
        let history = &*assigned(check.history, &ends);
        let case = Check { history, ..*check };
        let answer = check_case(&case, shared.take(), engines.lend(), budget, progress)?;
        match answer {
            CaseAnswer::Open(txn) => lemmas.open(history, txn),
            CaseAnswer::Report(report) => match &report.verdict {
                Verdict::Violated(why) if !ends.is_empty() => {
                    lemmas.learn(why, &ends);
                    (decider, stats) = (report.decider, report.stats);
                }
                Verdict::Satisfied(_) if !ends.is_empty() => return explained(check, *report),
                _ => return Ok(*report),
            },
        }
        let verdict = match lemmas.next_case() {
            Ok(Next::Case(next)) => {
                ends = next;
                continue;
            }
            Ok(Next::Refuted(why)) => Verdict::Violated(why),
            Err(reason) => Verdict::Unknown(reason),
        };
        return Ok(Report {
            verdict,
            spec: check.spec,
            decider,
            stats,
        });
    }
}

/// An order of one case, if it explains the history itself.
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

/// The history with these outcomes.
fn assigned<'h>(history: &'h History, ends: &Ends) -> Cow<'h, History> {
    let mut history = Cow::Borrowed(history);
    for (&txn, &took_effect) in ends {
        let status = if took_effect {
            Status::Committed
        } else {
            Status::Aborted
        };
        history.to_mut().set_status(txn, status);
    }
    history
}

/// These outcomes cannot all be, and why.
struct EndLemma {
    ends: Ends,
    why: Counterexample,
}

impl EndLemma {
    /// The open outcomes of a case; `None` if the case contradicts an assigned one.
    fn left(&self, case: &Ends) -> Option<Vec<(TxnId, bool)>> {
        let has_other = |(txn, end): (&TxnId, &bool)| case.get(txn).is_some_and(|it| it != end);
        if self.ends.iter().any(has_other) {
            return None;
        }
        let open = self.ends.iter().filter(|it| !case.contains_key(it.0));
        Some(open.map(|(&txn, &end)| (txn, end)).collect())
    }
}

/// The next check.
enum Next {
    Case(Ends),
    /// No case is left.
    Refuted(Counterexample),
}

/// The lemmas about the outcomes.
struct Lemmas<'a> {
    check: &'a Check<'a>,
    budget: &'a Budget,
    /// The transactions with assigned outcomes.
    open: Vec<TxnId>,
    learned: Vec<EndLemma>,
}

impl Lemmas<'_> {
    /// Assigns the outcome of a transaction from now on, and of all others in doubt.
    fn open(&mut self, case: &History, txn: TxnId) {
        let spec = Spec {
            model: Model::Ser,
            ..self.check.spec
        };
        if let Ok(resolved) = resolve_for(case, spec, self.budget) {
            let in_doubt = resolved.in_doubt().iter();
            self.open.extend(in_doubt.map(|&node| resolved.txn(node)));
        }
        if !self.open.contains(&txn) {
            self.open.push(txn);
        }
    }

    /// Whether a counterexample holds with some outcomes assigned.
    fn holds(&self, why: &Counterexample, ends: &Ends) -> bool {
        let history = assigned(self.check.history, ends);
        check_counterexample(&history, self.check.spec, why, self.budget).is_ok()
    }

    /// Learns from the counterexample of a case. Findings are lemmas of their own.
    fn learn(&mut self, why: &Counterexample, case: &Ends) {
        match why {
            Counterexample::Local(findings) => {
                for finding in findings {
                    let alone = Counterexample::Local(vec![finding.clone()]);
                    self.learn_one(&alone, case);
                }
            }
            why => self.learn_one(why, case),
        }
    }

    /// Leaves out outcomes that a counterexample does not need, many at a time.
    fn learn_one(&mut self, why: &Counterexample, case: &Ends) {
        let mut ends = case.clone();
        let mut n_left_out = ends.len();
        while n_left_out > 0 && !ends.is_empty() {
            let all: Vec<TxnId> = ends.keys().copied().collect();
            for some in all.chunks(n_left_out) {
                let mut fewer = ends.clone();
                fewer.retain(|txn, _| !some.contains(txn));
                if self.holds(why, &fewer) {
                    ends = fewer;
                }
            }
            n_left_out /= 2;
        }
        let why = why.clone();
        self.learned.push(EndLemma { ends, why });
    }

    /// A case that no lemma refutes, or the tree of all cases. A lemma whose counterexample names versions absent from
    /// a case does not apply to it, which is noticed when the tree is built.
    fn next_case(&self) -> Result<Next, StopReason> {
        let mut case = Ends::new();
        for is_checked in [false, true] {
            match self.refute(&mut case, is_checked)? {
                None => return Ok(Next::Case(case)),
                Some((why, _)) if is_checked => return Ok(Next::Refuted(why)),
                Some(_) => {}
            }
        }
        unreachable!("the second time it returns")
    }

    /// Refutes a case by lemmas, and returns the outcomes used; `None` if it can be completed, which it then is.
    fn refute(
        &self,
        case: &mut Ends,
        is_checked: bool,
    ) -> Result<Option<(Counterexample, FxHashSet<TxnId>)>, StopReason> {
        self.budget.check()?;
        let lemmas = self
            .learned
            .iter()
            .filter_map(|it| Some((it, it.left(case)?)));
        let mut lemmas: Vec<(&EndLemma, Vec<(TxnId, bool)>)> = lemmas.collect();
        lemmas.retain(|(lemma, left)| {
            !is_checked || !left.is_empty() || self.holds(&lemma.why, case)
        });
        // The fewest open outcomes first: a single one is implied.
        lemmas.sort_by_key(|it| it.1.len());
        let (txn, first) = match lemmas.first() {
            Some((lemma, left)) => match left.as_slice() {
                [] => {
                    let ends = lemma.ends.keys().copied().collect();
                    return Ok(Some((lemma.why.clone(), ends)));
                }
                &[(txn, end)] => (txn, !end),
                [(txn, _), ..] => (*txn, true),
            },
            // Tried first because a transaction that took effect explains more reads.
            None => match self.open.iter().find(|it| !case.contains_key(it)) {
                Some(&txn) => (txn, true),
                None => return Ok(None),
            },
        };
        let mut cases = Vec::new();
        let mut rests_on = FxHashSet::default();
        for end in [first, !first] {
            case.insert(txn, end);
            let Some((why, ends)) = self.refute(case, is_checked)? else {
                return Ok(None);
            };
            case.remove(&txn);
            if !ends.contains(&txn) {
                return Ok(Some((why, ends)));
            }
            rests_on.extend(ends);
            cases.push(Box::new(why));
        }
        rests_on.remove(&txn);
        let [second, one] = [cases.pop(), cases.pop()].map(|it| it.expect("there are two"));
        let (took_effect, lost) = if first { (one, second) } else { (second, one) };
        let whole = Counterexample::EitherWay {
            txn,
            lost,
            took_effect,
        };
        Ok(Some((whole, rests_on)))
    }
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
