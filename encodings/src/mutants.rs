//! Wrong encodings and a wrong `lazy`, each of which the suite of the back ends must notice.

use kingsnake_graph::decide::Backend;
use rustsat::types::Lit;

use crate::cadical::lazy::Forbid;
use crate::cadical::plain::Plain;
use crate::cnf::Encoding;
use crate::cnf::closure::Closure;
use crate::cnf::elimination::Elimination;
use crate::cnf::lossy::Lossy;
use crate::cnf::order_binary::OrderBinary;
use crate::cnf::order_unary::OrderUnary;
use crate::support::suite::small_questions;
use crate::{BackendOptions, Lazy};

/// Whether the suite accepts a back end.
fn passes<B: Backend + 'static>(make: fn(&BackendOptions) -> B) -> bool {
    let boxed = |options: &BackendOptions| -> Box<dyn Backend> { Box::new(make(options)) };
    small_questions(&boxed, 400).is_ok()
}

/// Loses one clause of every 2, 3, 5, 7 or 11, which each time is another part of the formula.
fn lossy_ones_are_noticed<E: Encoding + Sync + 'static>() {
    assert!(passes(Plain::<E>::new));
    assert!(!passes(Plain::<Lossy<E, 2>>::new));
    assert!(!passes(Plain::<Lossy<E, 3>>::new));
    assert!(!passes(Plain::<Lossy<E, 5>>::new));
    assert!(!passes(Plain::<Lossy<E, 7>>::new));
    assert!(!passes(Plain::<Lossy<E, 11>>::new));
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

/// A long cycle's clause misses a literal.
#[derive(Clone, Copy)]
struct ShortCycle;

impl Forbid for ShortCycle {
    fn of(mut cycle: Vec<Lit>) -> Vec<Lit> {
        if cycle.len() > 2 {
            cycle.pop();
        }
        cycle
    }
}

#[test]
fn a_cycle_whose_clause_misses_a_literal_is_noticed() {
    assert!(passes(Lazy::new));
    assert!(!passes(Lazy::<ShortCycle>::forbidding));
}
