//! The engines against brute force on small random histories; every answer is checked again by code that shares nothing.
//!
//! `KINGSNAKE_LONG=1` runs fifty times as many: `make long`.

#![allow(clippy::unwrap_used)] // A test may fail in this way.

use kingsnake_certify::{refute, verify};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::History;
use kingsnake_history::promise::{Promise, RegisterOptions};
use kingsnake_history::rng::Rng;
use kingsnake_history::verdict::Verdict;
use kingsnake_lab::random::{Registers, registers};
use kingsnake_lab::registers::is_linearizable;
use kingsnake_linearizable::{RegisterEngine, check};

const SHAPE: Registers = Registers {
    most_ops: 7,
    n_keys: 1,
    repeats: false,
    unknown: 15,
    refused: 30,
    lies: 60,
    longer: 25,
};

fn n_histories(share: u64) -> u64 {
    if std::env::var_os("KINGSNAKE_LONG").is_some() {
        share * 50
    } else {
        share
    }
}

/// Checks one history against brute force, and its answer against the checkers. Returns the verdict and the engine.
fn agree(history: &History, options: RegisterOptions) -> (bool, RegisterEngine) {
    let (verdict, stats) = check(history, options, &Budget::unlimited()).unwrap();
    let expected = is_linearizable(history, options);
    assert_eq!(verdict.holds(), Some(expected), "{history:#?}");
    let promise = Promise::Linearizable(options);
    match verdict {
        Verdict::Satisfied(order) => verify(history, &promise, &order).unwrap(),
        Verdict::Violated(why) => {
            refute(history, &promise, &why, &Budget::unlimited()).unwrap();
        }
        Verdict::Unknown(reason) => panic!("{reason}"),
    }
    (expected, stats.engine)
}

fn sweep(shape: Registers, options: RegisterOptions, share: u64, seed: u64) -> [u64; 2] {
    let mut counts = [0, 0];
    for number in 0..n_histories(share) {
        let mut rng = Rng::new(seed << 32 | number);
        let history = registers(&mut rng, shape);
        let (found, _) = agree(&history, options);
        counts[usize::from(found)] += 1;
    }
    assert!(
        counts[0] * 10 > counts[1] && counts[1] * 10 > counts[0],
        "{counts:?}"
    );
    counts
}

#[test]
fn zones_agrees_with_brute_force() {
    sweep(SHAPE, RegisterOptions::default(), 6000, 1);
}

#[test]
fn zones_agrees_with_brute_force_on_two_keys() {
    let shape = Registers { n_keys: 2, ..SHAPE };
    sweep(shape, RegisterOptions::default(), 3000, 2);
}

#[test]
fn search_agrees_with_brute_force() {
    let shape = Registers {
        repeats: true,
        ..SHAPE
    };
    sweep(shape, RegisterOptions::default(), 6000, 3);
}

#[test]
fn refusals_agree_with_brute_force_where_they_count() {
    let options = RegisterOptions {
        refusals_count: true,
        ..RegisterOptions::default()
    };
    let shape = Registers {
        refused: 60,
        ..SHAPE
    };
    sweep(shape, options, 3000, 4);
    let shape = Registers {
        repeats: true,
        ..shape
    };
    sweep(shape, options, 3000, 5);
}

#[test]
fn clocks_that_disagree_are_believed_that_much_less() {
    for drift in [1, 3, 9] {
        let options = RegisterOptions {
            drift,
            ..RegisterOptions::default()
        };
        sweep(SHAPE, options, 1500, 6 + drift);
    }
}

#[test]
fn both_engines_are_used() {
    let mut engines = [0, 0];
    for number in 0..200 {
        let mut rng = Rng::new(number);
        let shape = Registers {
            repeats: number % 2 == 0,
            ..SHAPE
        };
        let (_, engine) = agree(&registers(&mut rng, shape), RegisterOptions::default());
        engines[usize::from(engine == RegisterEngine::Search)] += 1;
    }
    assert!(engines[0] > 30 && engines[1] > 30, "{engines:?}");
}
