//! Engines with one wrong rule each, which the comparison with brute force must notice.

use kingsnake_history::budget::Budget;
use kingsnake_history::rng::Rng;
use kingsnake_lab::random::{Registers, registers};
use kingsnake_lab::registers::is_linearizable;

use crate::operations::{NONE, Operation};
use crate::rules::{ExactRules, Rules};
use crate::zones::Version;
use crate::{RegisterOptions, check_by};

/// Readers of a run are not compared with the clock.
struct NoReaders;

impl Rules for NoReaders {
    fn extremes(version: &Version) -> [(u32, u32); 2] {
        [(NONE, NONE), (version.writer, version.writer)]
    }
}

/// The initial value may come after others.
struct NoInitial;

impl Rules for NoInitial {
    fn initial_is_first() -> bool {
        false
    }
}

/// Only neighbouring zones that go forward are compared.
struct NoBackward;

impl Rules for NoBackward {
    fn collide(one: (i64, i64), other: (i64, i64)) -> bool {
        ExactRules::collide(one, other) && other.0 < other.1
    }
}

/// Operations of unknown end never count.
struct NoUnknown;

impl Rules for NoUnknown {
    fn shows_writer(_: &Operation) -> bool {
        false
    }
}

/// An operation that ends when another starts precedes it.
struct Touching;

impl Rules for Touching {
    fn is_over(end: i64, begin: i64) -> bool {
        end <= begin
    }
}

/// The cache forgets the value of the register.
struct NoState;

impl Rules for NoState {
    fn cached(taken: u128, _: u32) -> (u128, u32) {
        (taken, 0)
    }
}

/// Any read is taken at once.
struct EagerReads;

impl Rules for EagerReads {
    fn allows(state: u32, op: &Operation) -> bool {
        ExactRules::allows(state, op) || op.is_read()
    }
}

/// How many of some random histories brute force answers differently.
fn n_differences<R: Rules>(repeats: bool) -> usize {
    let shape = Registers {
        most_ops: 7,
        n_keys: 1,
        repeats,
        unknown: 15,
        refused: 20,
        lies: 60,
        longer: 20,
    };
    let differs = |seed: &u64| {
        let history = registers(&mut Rng::new(*seed), shape);
        let options = RegisterOptions::default();
        let (verdict, _) = check_by::<R>(&history, options, &Budget::unlimited()).unwrap();
        verdict.holds() != Some(is_linearizable(&history, options))
    };
    (0..4000).filter(differs).count()
}

#[test]
fn every_wrong_rule_is_noticed() {
    assert_eq!(n_differences::<ExactRules>(false), 0);
    assert_eq!(n_differences::<ExactRules>(true), 0);
    assert!(n_differences::<NoReaders>(false) > 0);
    assert!(n_differences::<NoInitial>(false) > 0);
    assert!(n_differences::<NoBackward>(false) > 0);
    assert!(n_differences::<NoUnknown>(false) > 0);
    assert!(n_differences::<Touching>(false) > 0);
    assert!(n_differences::<NoState>(true) > 0);
    assert!(n_differences::<EagerReads>(true) > 0);
}
