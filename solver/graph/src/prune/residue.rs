//! What is left of the logic, in the language of constraints: every variable is one, whose first side holds if it is true.
//! A question that will grow takes conjunctions and clauses as they are; for others they become edges (`rings`), so every back
//! end takes problems with choices.

use super::Variable;
use crate::decide::{Constraints, Side};
use crate::logic::{Literal, Logic};
use crate::problem::Problem;
use crate::reach::Dag;
use crate::rings::Rings;
use crate::session::{Growth, SideOf};

/// The state of a literal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiteralValue {
    Settled(bool),
    Open(u32, Side),
}

impl Variable {
    /// The state of a literal of this variable.
    pub(super) fn literal(self, holds: bool) -> LiteralValue {
        match self {
            Variable::Settled(value) => LiteralValue::Settled(value == holds),
            Variable::Open(constraint) if holds => LiteralValue::Open(constraint, Side::Either),
            Variable::Open(constraint) => LiteralValue::Open(constraint, Side::Or),
        }
    }
}

/// What is left, as edges.
pub(super) struct Residue {
    pub(super) constraints: Constraints,
    /// The known graph with the new nodes.
    pub(super) dag: Dag,
    pub(super) estimate: Vec<f32>,
}

/// Writes what is left as edges. `None` if a clause has no literal left.
pub(super) fn residue(
    problem: &Problem,
    orders: &Constraints,
    estimate: Vec<f32>,
    left: &Growth,
) -> Option<Residue> {
    let mut rings = Rings::new(problem.n_nodes, estimate);
    rings.known.extend_from_slice(&left.known);
    for (edge, guard) in left.guarded() {
        rings.guarded(edge, guard);
    }
    for clause in left.clauses() {
        if clause.is_empty() {
            return None;
        }
        rings.clause(clause);
    }
    let constraints = rings.constraints(orders, left.n_constraints as u32);
    let known = problem.edges.iter().chain(&rings.known);
    let dag = Dag::new(rings.n_nodes as usize, known).ok()?;
    Some(Residue {
        constraints,
        dag,
        estimate: rings.estimate,
    })
}

/// A constraint for each variable that is not settled, from this number on.
pub(super) fn number(
    variables: std::ops::Range<u32>,
    value: impl Fn(u32) -> Option<bool>,
    next: &mut u32,
) -> Vec<Variable> {
    let of = |variable| {
        if let Some(value) = value(variable) {
            return Variable::Settled(value);
        }
        *next += 1;
        Variable::Open(*next - 1)
    };
    variables.map(of).collect()
}

/// Writes guarded edges and clauses from these on in terms of constraints. `of` returns the state of a literal,
/// `is_done` which guarded edges are irrelevant.
pub(super) fn write(
    logic: &Logic,
    (first_guarded, first_clause): (usize, usize),
    of: &dyn Fn(Literal) -> LiteralValue,
    is_done: &dyn Fn(usize) -> bool,
    growth: &mut Growth,
) {
    let mut open: Vec<SideOf> = Vec::new();
    for (at, guarded) in logic.guarded().enumerate().skip(first_guarded) {
        if is_done(at) {
            continue;
        }
        open.clear();
        let mut holds = true;
        for &literal in guarded.guard {
            match of(literal) {
                LiteralValue::Settled(value) => holds &= value,
                LiteralValue::Open(constraint, side) => open.push((constraint, side)),
            }
        }
        // A literal and its negation never hold together.
        if !holds || has_both(&mut open) {
            continue;
        }
        let edge = guarded.edge;
        if open.is_empty() {
            growth.known.push(edge);
        } else if edge.from == edge.to {
            let negated: Vec<SideOf> = open.iter().map(|it| (it.0, it.1.other())).collect();
            growth.clause(&negated);
        } else {
            growth.guard(edge, &open);
        }
    }
    for clause in logic.clauses().skip(first_clause) {
        open.clear();
        let mut holds = false;
        for &literal in clause {
            match of(literal) {
                LiteralValue::Settled(value) => holds |= value,
                LiteralValue::Open(constraint, side) => open.push((constraint, side)),
            }
        }
        if !has_both(&mut open) && !holds {
            growth.clause(&open);
        }
    }
}

/// Sorts literals; whether one and its negation are among them.
fn has_both(open: &mut Vec<SideOf>) -> bool {
    open.sort_unstable_by_key(|&(constraint, side)| (constraint, side == Side::Or));
    open.dedup();
    open.windows(2).any(|pair| pair[0].0 == pair[1].0)
}
