//! The size formulas of docs/encodings.md against the written formulas.

use kingsnake_context::budget::Budget;
use kingsnake_graph::decide::Constraints;
use rustsat::instances::Cnf;

use super::closure::Closure;
use super::elimination::Elimination;
use super::order_binary::OrderBinary;
use super::order_unary::OrderUnary;
use super::{Encoding, Sink, Size, share, shared_size};
use crate::reduce::{Arena, reduce};
use crate::support::{Owned, Rng, edge, planted, small};

fn arena(owned: &Owned) -> Arena {
    let reduced = reduce(&owned.question(), &Budget::unlimited());
    reduced.ok().expect("an acyclic known graph and no limit")
}

/// What is foreseen, after comparing it with what is written.
fn size<E: Encoding>(arena: &Arena) -> Size {
    let budget = Budget::unlimited();
    let plan = E::plan(arena, &budget).expect("no limit");
    let foreseen = shared_size(arena) + plan.size();
    let mut cnf = Cnf::new();
    let mut sink = Sink::new(&mut cnf, &budget);
    let meaning = share(arena, false, &mut sink).expect("no limit");
    plan.encode(arena, &meaning.arcs, &mut sink)
        .expect("no limit");
    let counted = sink.size();
    assert_eq!(counted, foreseen, "{}", E::NAME);
    assert_eq!(cnf.len() as u64, foreseen.clauses, "{}", E::NAME);
    let literals: usize = cnf.iter().map(|clause| clause.len()).sum();
    assert_eq!(literals as u64, foreseen.literals, "{}", E::NAME);
    let variables = cnf
        .iter()
        .flat_map(|clause| clause.iter())
        .map(|lit| lit.vidx());
    let highest = variables.max().map_or(0, |highest| highest as u64 + 1);
    assert!(highest <= foreseen.variables, "{}", E::NAME);
    foreseen
}

fn all(arena: &Arena) -> [Size; 4] {
    [
        size::<Closure>(arena),
        size::<OrderUnary>(arena),
        size::<OrderBinary>(arena),
        size::<Elimination>(arena),
    ]
}

#[test]
fn every_formula_has_the_size_that_was_foreseen() {
    let mut random = Rng::new(21);
    let mut largest = [0; 4];
    for round in 0..600 {
        let owned = if round % 10 == 0 {
            planted(
                30 + round / 10,
                40 + round / 5,
                round % 20 == 0,
                &mut random,
            )
        } else {
            small(&mut random)
        };
        for (largest, size) in largest.iter_mut().zip(all(&arena(&owned))) {
            *largest = size.clauses.max(*largest);
        }
    }
    println!("up to {largest:?} clauses");
    assert!(largest.iter().all(|&clauses| clauses > 400), "{largest:?}");
}

/// n nodes of which nothing is known, and a constraint for each pair.
fn complete(n: u32) -> Owned {
    let mut constraints = Constraints::default();
    for i in 0..n {
        for j in 0..i {
            constraints.push([edge(i, j)], [edge(j, i)]);
        }
    }
    Owned::new(&[], (0..n).collect(), constraints)
}

#[test]
fn where_nothing_is_known_the_sizes_are_the_textbook_ones() {
    for n in 2..12 {
        let [closure, unary, binary, elimination] = all(&arena(&complete(n)));
        let n = u64::from(n);
        let (arcs, pairs) = (n * (n - 1), n * (n - 1) / 2);
        let bits = u64::from((n - 1).ilog2() + 1);
        let sizes = |size: Size| (size.variables - pairs - arcs, size.clauses - arcs);
        assert_eq!(sizes(closure), (n * (n - 1), n * arcs));
        assert_eq!(sizes(unary), (n * (n - 1), n * (n - 2) + n * arcs));
        assert_eq!(
            sizes(binary),
            (n * bits + (bits - 1) * arcs, (3 * bits - 1) * arcs)
        );
        assert_eq!(sizes(elimination), (0, (n - 1) * n * (2 * n - 1) / 6));
    }
}
