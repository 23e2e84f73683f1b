//! Appends to the open question what was appended to the problem after it was pruned, without pruning again.
//!
//! An order that no constraint is about yet, because any order of the two runs would do, becomes one once a literal is about it.

use super::Pruned;
use super::judge::Reaches;
use super::open::Placed;
use super::residue::{LiteralValue, number, write};
use crate::decide::Side;
use crate::logic::Literal;
use crate::orders::Orders;
use crate::problem::Problem;
use crate::reach::Reach;
use crate::session::Growth;
use std::sync::Arc;

impl Reaches for Reach {
    #[inline]
    fn reaches(&self, from: u32, to: u32) -> bool {
        Reach::reaches(self, from, to)
    }
}

/// What a question that grows keeps of pruning.
#[derive(Clone, Debug, Default)]
pub(super) struct Open {
    /// The constraint of each pair of runs that has one.
    pub(super) placed: Placed,
    /// Paths of the known graph as it was pruned; there may be more by now.
    pub(super) reach: Option<Arc<Reach>>,
    /// What was appended: first what pruning left of the logic.
    pub(super) grown: Vec<Growth>,
    /// How much of the problem's edges, guarded edges and clauses the question has.
    pub(super) n_said: (usize, usize, usize),
}

impl<P: AsRef<Problem>> Pruned<P> {
    /// Paths of the known graph as it was pruned, where the question may grow.
    pub fn reach(&self) -> Option<Arc<Reach>> {
        self.open.reach.clone()
    }

    /// Estimates the places of the nodes, where pruning did not.
    pub fn estimate_places(&mut self) {
        if let Some(reach) = &self.open.reach {
            self.estimate = reach.estimate(&self.dag);
        }
    }

    /// What was appended to the question so far; first comes what pruning left of the logic.
    pub fn grown(&self) -> &[Growth] {
        &self.open.grown
    }

    /// Appends what was appended to the problem meanwhile: variables, known edges, guarded edges and clauses.
    pub fn grow(&mut self) -> &Growth {
        let problem = self.problem.as_ref();
        let logic = &problem.logic;
        let (n_edges, n_guarded, n_clauses) = self.open.n_said;
        let before = self.open.grown.last().map_or(0, |it| it.n_constraints);
        let mut next = before.max(self.constraints.len()) as u32;
        let new = self.variables.len() as u32..logic.n_variables() as u32;
        self.variables.extend(number(new, |_| None, &mut next));
        let mut growth = Growth::new(0, problem.edges[n_edges..].to_vec());
        let named = logic.guarded().skip(n_guarded).map(|it| it.guard);
        let named = named.chain(logic.clauses().skip(n_clauses)).flatten();
        for &literal in named {
            if let Literal::Order(a, b) = literal {
                let placed = &mut self.open.placed;
                let reach = self.open.reach.as_deref();
                place(
                    &problem.orders,
                    (a.min(b), a.max(b)),
                    placed,
                    reach,
                    &mut next,
                    &mut growth,
                );
            }
        }
        growth.n_constraints = next as usize;
        let (placed, reach) = (&self.open.placed, self.open.reach.as_deref());
        let of = |literal| match literal {
            Literal::Variable(variable, holds) => self.variables[variable as usize].literal(holds),
            Literal::Order(a, b) => order(&problem.orders, (a, b), placed, reach),
        };
        let done = (n_guarded, n_clauses);
        write(logic, done, &of, &|_| false, &mut growth);
        self.open.n_said = (
            problem.edges.len(),
            logic.guarded().len(),
            logic.clauses().len(),
        );
        self.open.grown.push(growth);
        &self.open.grown[self.open.grown.len() - 1]
    }
}

/// Gives a pair of runs a constraint, unless it has one or paths order it.
fn place(
    orders: &Orders,
    (a, b): (u32, u32),
    placed: &mut Placed,
    reach: Option<&Reach>,
    next: &mut u32,
    growth: &mut Growth,
) {
    if placed.contains_key(&(a, b)) || settled(orders, (a, b), reach).is_some() {
        return;
    }
    placed.insert((a, b), (*next, Side::Either));
    for (side, edges) in [
        (Side::Either, orders.edges(a, b)),
        (Side::Or, orders.edges(b, a)),
    ] {
        for edge in edges {
            if !reach.is_some_and(|it| it.reaches(edge.from, edge.to)) {
                growth.guard(edge, &[(*next, side)]);
            }
        }
    }
    *next += 1;
}

/// Whether paths put the first run before the second, or the second before the first.
fn settled(orders: &Orders, (a, b): (u32, u32), reach: Option<&Reach>) -> Option<bool> {
    let reach = reach?;
    let is_impossible = |a: u32, b: u32| {
        let (first, next) = (orders.run(a), orders.run(b));
        let mut readers = orders.readers(a).iter();
        reach.reaches(next.install, first.last_commit)
            || readers.any(|&reader| reach.reaches(next.commit, reader))
    };
    if is_impossible(b, a) {
        Some(true)
    } else if is_impossible(a, b) {
        Some(false)
    } else {
        None
    }
}

fn order(
    orders: &Orders,
    (a, b): (u32, u32),
    placed: &Placed,
    reach: Option<&Reach>,
) -> LiteralValue {
    match placed.get(&(a.min(b), a.max(b))) {
        Some(&(constraint, side)) if a < b => LiteralValue::Open(constraint, side),
        Some(&(constraint, side)) => LiteralValue::Open(constraint, side.other()),
        None => LiteralValue::Settled(settled(orders, (a, b), reach).unwrap_or(true)),
    }
}
