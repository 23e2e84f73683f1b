//! `auto` against the oracle at every level, and against checking each level by itself.

#[path = "support/pessimist.rs"]
mod pessimist;

use std::collections::BTreeMap;

use kingsnake_lab::random::{Rng, Wrong, sketch, small, small_predicates};
use kingsnake_lab::{oracle, parallel};
use kingsnake_solver::auto::{auto, holds, levels, strongest};
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::certify::order::replay;
use kingsnake_solver::check::{CheckError, Decider, Engines, Report, Techniques};
use kingsnake_solver::level::{Model, Spec};
use kingsnake_solver::model::History;
use kingsnake_solver::progress::Silent;
use kingsnake_solver::verdict::Verdict;
use pessimist::Pessimist;

/// As each level's name says, or no session order at all.
fn asked_with(session_order: bool) -> Option<bool> {
    (!session_order).then_some(false)
}

fn ask(
    history: &History,
    session_order: bool,
    budget: &Budget,
) -> Result<Vec<Option<Report>>, CheckError> {
    let mut engines = Engines {
        device: None,
        backend: &mut Pessimist,
    };
    auto(
        history,
        &levels(asked_with(session_order)),
        &Techniques::default(),
        &mut engines,
        (budget, None),
        &mut Silent,
    )
}

/// The oracle's answer; `None` at a weak level with more than registers.
fn truth(history: &History, spec: Spec) -> Option<bool> {
    match spec.model {
        Model::Psi => parallel::hold_by_sources(history, spec.session_order),
        model if model.is_weak() => oracle::weak::holds(history, spec),
        _ => oracle::holds(history, spec),
    }
}

#[test]
fn every_answer_is_the_oracles_whether_checked_or_implied() {
    let mut tally: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut n_checked, mut n_implied) = (0, 0);
    for seed in 0..6_000 {
        let history = small(seed);
        for session_order in [true, false] {
            let asked = levels(asked_with(session_order));
            let answers = match ask(&history, session_order, &Budget::unlimited()) {
                Ok(answers) => answers,
                // The stand-in solver returns UNSAT without knowing; this is noticed.
                Err(
                    CheckError::Resolve(_)
                    | CheckError::Uncertified {
                        decider: "backend", ..
                    },
                ) => continue,
                Err(error) => panic!("seed {seed}: {error}\n{}", sketch(&history)),
            };
            assert_eq!(answers.len(), asked.len());
            for (it, answer) in asked.iter().zip(&answers) {
                let Some(answer) = answer else {
                    assert!(!history.has_times());
                    continue;
                };
                match answer.decider {
                    Decider::Implied(_) => n_implied += 1,
                    _ => n_checked += 1,
                }
                if let Verdict::Satisfied(order) = &answer.verdict {
                    assert_eq!(replay(&history, it.spec, order), Ok(()));
                }
                let Some(holds) = answer.verdict.holds() else {
                    continue;
                };
                let Some(truth) = truth(&history, it.spec) else {
                    continue;
                };
                assert_eq!(
                    holds,
                    truth,
                    "seed {seed}, {}\n{}",
                    it.spec,
                    sketch(&history)
                );
            }
            for it in strongest(&asked, &answers) {
                *tally.entry(it.level.name()).or_default() += 1;
            }
        }
    }
    eprintln!("{n_checked} checked, {n_implied} implied; strongest: {tally:?}");
    assert!(n_implied > n_checked);
    assert!(
        tally.len() >= 11,
        "nearly every level is the strongest of some history: {tally:?}"
    );
}

#[test]
fn without_time_left_every_answer_is_unknown() {
    let budget =
        Budget::unlimited().with_timeout(std::time::Instant::now(), std::time::Duration::ZERO);
    let answers = ask(&small(1), true, &budget).expect("stopping is no error");
    for answer in answers {
        let unknown = matches!(
            answer.as_ref().map(|it| &it.verdict),
            None | Some(Verdict::Unknown(StopReason::Time(_)))
        );
        assert!(unknown, "{answer:?}");
    }
}

#[test]
fn conditions_and_aggregates_are_answered_at_every_level() {
    let (mut counts, mut n_proposed) = ([0; 2], 0);
    for seed in 0..1_500 {
        let mut rng = Rng::new(seed);
        let wrong = if rng.chance(40) {
            Wrong::NOT
        } else {
            Wrong::OFTEN
        };
        let mut history = small_predicates(&mut rng, wrong);
        history.retain_versions(|_| false);
        for session_order in [true, false] {
            let asked = levels(asked_with(session_order));
            let answers = match ask(&history, session_order, &Budget::unlimited()) {
                Ok(answers) => answers,
                // The wrong answer of the stand-in solver is noticed.
                Err(CheckError::Uncertified { .. } | CheckError::Decide(_)) => continue,
                Err(error) => panic!("seed {seed}: {error}\n{}", sketch(&history)),
            };
            for (it, answer) in asked.iter().zip(&answers) {
                let answer = answer.as_ref();
                let is_checked =
                    answer.is_some_and(|it| !matches!(it.decider, Decider::Implied(_)));
                n_proposed += usize::from(is_checked && !Model::TIMED.contains(&it.spec.model));
                let (Some(holds), Some(truth)) = (holds(answer), truth(&history, it.spec)) else {
                    continue;
                };
                let told = sketch(&history);
                assert_eq!(holds, truth, "seed {seed}, {}: {answer:?}\n{told}", it.spec);
                counts[usize::from(truth)] += 1;
            }
        }
    }
    println!("{counts:?} violated and satisfied, {n_proposed} by searching reads");
    assert!(counts[0] > 500 && counts[1] > 500 && n_proposed > 100);
}
