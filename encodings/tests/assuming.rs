//! Sides that are assumed are a hint: whatever they are, the answer is that of the question without them; and a back
//! end that trusts UNSAT under assumptions is caught.

mod support;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_encodings::{BackendOptions, Faults, Propagator};
use kingsnake_graph::decide::{Backend, DecideError, DecideStats, Decision, Side};
use support::{Owned, Rng, planted, small};

/// A random side of about half of the constraints.
fn hints(question: &Owned, random: &mut Rng) -> Vec<(u32, Side)> {
    let constraints = question.all().into_iter();
    let mut hinted = Vec::new();
    for constraint in constraints {
        match random.below(4) {
            0 => hinted.push((constraint, Side::Either)),
            1 => hinted.push((constraint, Side::Or)),
            _ => {}
        }
    }
    hinted
}

fn ask(
    backend: &mut dyn Backend,
    question: &Owned,
    hinted: &[(u32, Side)],
) -> Result<(Decision, DecideStats), DecideError> {
    let budget = Budget::unlimited();
    let answer = backend.decide_assuming(question.question(), hinted, &budget, &mut Silent);
    answer.expect("it takes hints")
}

/// What is wrong with an answer, if anything.
fn wrong(question: &Owned, answer: Result<(Decision, DecideStats), DecideError>) -> Option<String> {
    match answer {
        Err(error) => Some(error.to_string()),
        Ok((Decision::Choices(choices), _)) => {
            let chosen = choices.iter().copied().enumerate();
            (!question.acyclic(chosen)).then(|| "the choices have a cycle".to_owned())
        }
        Ok((Decision::Core(core), _)) => question
            .can_meet(&core)
            .then(|| "the core can be met".to_owned()),
        Ok((Decision::Unknown(reason), _)) => Some(reason.to_string()),
    }
}

#[test]
fn bad_hints_change_no_answer() {
    let (mut n_met, mut n_refuted, mut n_rejects) = (0, 0, 0);
    for seed in 0..6_000 {
        let random = &mut Rng::new(seed);
        let question = small(random);
        let hinted = hints(&question, random);
        let mut backend = Propagator::new(&BackendOptions::default());
        let answer = ask(&mut backend, &question, &hinted);
        if let Ok((decision, stats)) = &answer {
            n_rejects += u64::from(stats.rejects > 0);
            match decision {
                Decision::Choices(_) => n_met += 1,
                _ => n_refuted += 1,
            }
        }
        assert_eq!(wrong(&question, answer), None, "seed {seed}");
        // The hint is forgotten afterwards.
        let answer = backend.decide(question.question(), &Budget::unlimited(), &mut Silent);
        assert_eq!(wrong(&question, answer), None, "seed {seed}");
    }
    eprintln!("{n_met} met, {n_refuted} refuted, {n_rejects} with rejects");
    assert!(n_met > 500 && n_refuted > 500 && n_rejects > 500);
}

#[test]
fn bad_hints_change_no_answer_of_z3() {
    for name in ["difference", "order", "propagator", "gsi", "asi"] {
        let name = format!("z3/{name}");
        let (mut n_met, mut n_refuted, mut n_rejects) = (0, 0, 0);
        for seed in 0..120 {
            let random = &mut Rng::new(seed);
            let question = small(random);
            let hinted = hints(&question, random);
            let mut backend = kingsnake_encodings::backend(&name, &BackendOptions::default())
                .expect("a back end");
            let answer = ask(&mut *backend, &question, &hinted);
            if let Ok((decision, stats)) = &answer {
                n_rejects += u64::from(stats.rejects > 0);
                match decision {
                    Decision::Choices(_) => n_met += 1,
                    _ => n_refuted += 1,
                }
            }
            assert_eq!(wrong(&question, answer), None, "{name}, seed {seed}");
        }
        eprintln!("{name}: {n_met} met, {n_refuted} refuted, {n_rejects} with rejects");
        assert!(n_met > 10 && n_refuted > 10 && n_rejects > 10, "{name}");
    }
}

#[test]
fn larger_questions_survive_bad_hints() {
    for seed in 0..30 {
        let random = &mut Rng::new(seed);
        let question = planted(60, 400, seed % 3 == 0, random);
        let hinted = hints(&question, random);
        let hinted_answer = ask(
            &mut Propagator::new(&BackendOptions::default()),
            &question,
            &hinted,
        );
        let plain = Propagator::new(&BackendOptions::default()).decide(
            question.question(),
            &Budget::unlimited(),
            &mut Silent,
        );
        let is_met = |answer: Result<(Decision, DecideStats), DecideError>| {
            matches!(answer, Ok((Decision::Choices(_), _)))
        };
        assert_eq!(is_met(hinted_answer), is_met(plain), "seed {seed}");
    }
}

#[test]
fn who_believes_an_assumed_no_is_caught() {
    let faults = Faults {
        trust_assumed: true,
        ..Faults::default()
    };
    let caught = (0..500).find(|&seed| {
        let random = &mut Rng::new(seed);
        let question = small(random);
        let hinted = hints(&question, random);
        let mut backend = Propagator::new(&BackendOptions::default()).with_faults(faults);
        wrong(&question, ask(&mut backend, &question, &hinted)).is_some()
    });
    assert!(caught.is_some());
}
