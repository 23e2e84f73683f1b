//! Deliberate mistakes in the plain encodings and in `lazy`, each of which the suite of the back ends must notice.

use kingsnake_graph::decide::Backend;

use crate::cadical::plain::Plain;
use crate::cnf::Encoding;
use crate::cnf::closure::Closure;
use crate::cnf::elimination::Elimination;
use crate::cnf::order_binary::OrderBinary;
use crate::cnf::order_unary::OrderUnary;
use crate::support::suite::small_questions;
use crate::{BackendOptions, Lazy};

/// Loses one clause of every 2, 3, 5, 7 or 11, which each time is another part of the formula.
fn lossy_ones_are_noticed<E: Encoding + Sync + 'static>() {
    let judged = |lost| {
        small_questions(
            &|options: &BackendOptions| -> Box<dyn Backend> {
                let mut plain = Plain::<E>::new(options);
                plain.lost = lost;
                Box::new(plain)
            },
            400,
        )
    };
    assert!(judged(None).is_ok());
    for of in [2, 3, 5, 7, 11] {
        assert!(
            judged(Some(of)).is_err(),
            "{} without one of {of} clauses",
            E::NAME
        );
    }
}

#[test]
fn a_closure_that_loses_clauses_is_noticed() {
    lossy_ones_are_noticed::<Closure>();
}

#[test]
fn unary_numbers_that_lose_clauses_are_noticed() {
    lossy_ones_are_noticed::<OrderUnary>();
}

#[test]
fn binary_numbers_that_lose_clauses_are_noticed() {
    lossy_ones_are_noticed::<OrderBinary>();
}

#[test]
fn an_elimination_that_loses_clauses_is_noticed() {
    lossy_ones_are_noticed::<Elimination>();
}

#[test]
fn a_cycle_whose_clause_misses_a_literal_is_noticed() {
    let judged = |short| {
        small_questions(
            &|options: &BackendOptions| -> Box<dyn Backend> {
                let mut lazy = Lazy::new(options);
                lazy.short = short;
                Box::new(lazy)
            },
            400,
        )
    };
    assert!(judged(false).is_ok());
    assert!(judged(true).is_err());
}
