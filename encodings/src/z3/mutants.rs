//! Deliberate mistakes in the statements to Z3 and in what is trusted of its answers; each must be noticed.

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_graph::decide::{Backend, DecideError, Decision, Side};

use super::{ASI, DIFFERENCE, GSI, ORDER, PROPAGATOR, Z3, Z3Encoding};
use crate::BackendOptions;
use crate::faults::Z3Faults;
use crate::support::suite::{small_histories, small_questions};
use crate::support::{Owned, Rng, small};

const ALL: [&Z3Encoding; 5] = [DIFFERENCE, ORDER, PROPAGATOR, GSI, ASI];

fn judged(encoding: &'static Z3Encoding, faults: Z3Faults) -> Result<[usize; 2], String> {
    let make = |options: &BackendOptions| -> Box<dyn Backend> {
        let mut backend = Z3::new(encoding, options);
        backend.faults = faults;
        Box::new(backend)
    };
    small_questions(&make, 100)
}

#[test]
fn without_mistakes_nothing_is_rejected() {
    for encoding in ALL {
        assert!(judged(encoding, Z3Faults::default()).is_ok());
    }
}

#[test]
fn an_edge_that_is_not_stated_is_noticed_by_the_back_end_and_by_the_suite() {
    for encoding in [DIFFERENCE, ORDER, GSI, ASI] {
        for (credulous, who) in [(false, "close a cycle"), (true, "can")] {
            let faults = Z3Faults {
                short_side: true,
                credulous,
                ..Z3Faults::default()
            };
            let noticed = judged(encoding, faults).expect_err(encoding.name);
            assert!(
                noticed.contains(who) || noticed.contains("cycle"),
                "{noticed}"
            );
        }
    }
}

#[test]
fn a_reader_that_the_rules_of_snapshot_isolation_forget_is_noticed() {
    for encoding in [GSI, ASI] {
        let judged = |short_side| {
            let make = |options: &BackendOptions| -> Box<dyn Backend> {
                let mut backend = Z3::new(encoding, options);
                backend.faults.short_side = short_side;
                Box::new(backend)
            };
            small_histories(&make, 400)
        };
        assert!(judged(false).is_ok());
        let noticed = judged(true).expect_err(encoding.name);
        assert!(noticed.contains("close a cycle"), "{noticed}");
    }
}

#[test]
fn a_cycle_that_is_not_told_is_noticed() {
    let faults = Z3Faults {
        silent_cycles: true,
        ..Z3Faults::default()
    };
    let noticed = judged(PROPAGATOR, faults).expect_err("cycles were not told");
    assert!(noticed.contains("close a cycle"), "{noticed}");
}

#[test]
fn a_core_that_misses_a_constraint_is_noticed_by_the_back_end_and_by_the_suite() {
    for encoding in ALL {
        for (credulous, who) in [
            (false, "a core it found can be met"),
            (true, "its core can be met"),
        ] {
            let faults = Z3Faults {
                short_core: true,
                credulous,
                ..Z3Faults::default()
            };
            let noticed = judged(encoding, faults).expect_err(encoding.name);
            assert!(noticed.contains(who), "{noticed}");
        }
    }
}

#[test]
fn a_no_that_needs_a_hint_is_noticed_by_the_back_end_and_by_who_asks_again() {
    for encoding in ALL {
        for credulous in [false, true] {
            let faults = Z3Faults {
                trust_assumed: true,
                credulous,
                ..Z3Faults::default()
            };
            let noticed = (0..200).any(|seed| {
                let owned = small(&mut Rng::new(seed));
                let question = owned.question();
                let mut backend = Z3::new(encoding, &BackendOptions::default());
                let plain = backend.decide(question, &Budget::unlimited(), &mut Silent);
                let Ok((Decision::Choices(choices), _)) = plain else {
                    return false;
                };
                let wrong_side = |(at, side): (usize, &Side)| {
                    let other = match side {
                        Side::Either => Side::Or,
                        Side::Or => Side::Either,
                    };
                    (at as u32, other)
                };
                let hints: Vec<(u32, Side)> = choices.iter().enumerate().map(wrong_side).collect();
                backend.faults = faults;
                let budget = Budget::unlimited();
                let hinted = backend.decide_assuming(question, &hints, &budget, &mut Silent);
                match hinted.expect("it takes hints") {
                    Ok((decision, _)) => credulous && matches!(decision, Decision::Core(_)),
                    Err(error) => error.what.contains("a core it found can be met"),
                }
            });
            assert!(noticed, "{}, credulous: {credulous}", encoding.name);
        }
    }
}

fn decide(owned: &Owned, faults: Z3Faults) -> Result<Decision, DecideError> {
    let mut backend = Z3::new(DIFFERENCE, &BackendOptions::default());
    backend.faults = faults;
    let decided = backend.decide(owned.question(), &Budget::unlimited(), &mut Silent);
    decided.map(|(decision, _)| decision)
}

#[test]
fn a_parameter_that_z3_does_not_know_is_an_error_and_no_answer() {
    let faults = Z3Faults {
        unknown_parameter: true,
        ..Z3Faults::default()
    };
    let mut random = Rng::new(1);
    for _ in 0..20 {
        let owned = small(&mut random);
        assert!(decide(&owned, Z3Faults::default()).is_ok());
        let error = decide(&owned, faults).expect_err("the parameter is unknown");
        assert!(error.what.contains("Z3"), "{error}");
    }
}

#[test]
fn sizes_are_as_the_document_says() {
    let mut random = Rng::new(6);
    for _ in 0..20 {
        let owned = small(&mut random);
        let question = owned.question();
        let (n, m) = (question.n_nodes, question.targets.len());
        let (c, e) = (question.constraints.len(), question.constraints.n_edges());
        for (encoding, variables, assertions) in [
            (DIFFERENCE, n + 2 * c, m + c + e),
            (ORDER, n + 2 * c, 2 * m + c + 2 * e),
            (PROPAGATOR, 2 * c, c),
        ] {
            let mut backend = Z3::new(encoding, &BackendOptions::default());
            let decided = backend.decide(question, &Budget::unlimited(), &mut Silent);
            let (_, stats) = decided.expect("no failure");
            let said = (stats.variables, stats.clauses);
            assert_eq!(
                said,
                (variables as u64, assertions as u64),
                "{}",
                encoding.name
            );
        }
    }
}
