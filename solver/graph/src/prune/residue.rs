//! What is left of the logic, in the language of constraints: every variable is one, whose first side holds if it is true.
//!
//! Neither conjunctions nor clauses need anything but edges. An edge u → v guarded by l₁ ∧ l₂ is a path through a new node:
//! l₁ has u → m, l₂ has m → v. A clause l₁ ∨ … ∨ lₖ is a ring of k new nodes, whose i-th edge the negation of lᵢ has: the ring
//! is a cycle iff all literals are false. So every back end takes problems with choices, without knowing of them.

use rustc_hash::FxHashMap;

use super::Variable;
use crate::decide::{Constraints, Side};
use crate::edge::Edge;
use crate::logic::{Literal, Logic};
use crate::problem::Problem;
use crate::reach::Dag;

/// What a literal came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LiteralValue {
    Settled(bool),
    Open(u32, Side),
}

/// What is left.
pub(super) struct Residue {
    pub(super) constraints: Constraints,
    pub(super) variables: Vec<Variable>,
    /// The known graph with the new nodes.
    pub(super) dag: Dag,
    pub(super) estimate: Vec<f32>,
}

/// Adds the logic to the constraints of the orders. `value` says what is known of a variable, `order` what is known of an
/// order or which side it is, `is_done` which guarded edges say nothing more. `None` if a clause has no literal left.
pub(super) fn residue(
    problem: &Problem,
    orders: &Constraints,
    estimate: Vec<f32>,
    value: &dyn Fn(u32) -> Option<bool>,
    order: &dyn Fn(u32, u32) -> LiteralValue,
    is_done: &dyn Fn(usize) -> bool,
) -> Option<Residue> {
    let logic = &problem.logic;
    let mut next = orders.len() as u32;
    let variables: Vec<Variable> = (0..logic.n_variables() as u32)
        .map(|variable| {
            if let Some(value) = value(variable) {
                Variable::Settled(value)
            } else {
                next += 1;
                Variable::Open(next - 1)
            }
        })
        .collect();
    let mut writer = Writer {
        sides: FxHashMap::default(),
        known: Vec::new(),
        n_nodes: problem.n_nodes as u32,
        estimate,
    };
    let of = |literal| match literal {
        Literal::Order(a, b) => order(a, b),
        Literal::Variable(variable, holds) => match variables[variable as usize] {
            Variable::Settled(value) => LiteralValue::Settled(value == holds),
            Variable::Open(constraint) if holds => LiteralValue::Open(constraint, Side::Either),
            Variable::Open(constraint) => LiteralValue::Open(constraint, Side::Or),
        },
    };
    write(logic, &of, is_done, &mut writer)?;
    let mut constraints = Constraints::default();
    for at in 0..next {
        let [either, or] = [Side::Either, Side::Or].map(|side| {
            let own: &[Edge] = if (at as usize) < orders.len() {
                orders.side(at as usize, side)
            } else {
                &[]
            };
            let more = writer.sides.remove(&(at, side)).unwrap_or_default();
            own.iter().copied().chain(more)
        });
        constraints.push(either, or);
    }
    let known = problem.edges.iter().chain(&writer.known);
    let dag = Dag::new(writer.n_nodes as usize, known).ok()?;
    Some(Residue {
        constraints,
        variables,
        dag,
        estimate: writer.estimate,
    })
}

fn write(
    logic: &Logic,
    of: &dyn Fn(Literal) -> LiteralValue,
    is_done: &dyn Fn(usize) -> bool,
    writer: &mut Writer,
) -> Option<()> {
    for (at, guarded) in logic.guarded().enumerate() {
        if is_done(at) {
            continue;
        }
        let mut open = Vec::new();
        let mut holds = true;
        for &literal in guarded.guard {
            match of(literal) {
                LiteralValue::Settled(value) => holds &= value,
                LiteralValue::Open(constraint, side) => open.push((constraint, side)),
            }
        }
        open.sort_unstable_by_key(|&(constraint, side)| (constraint, side == Side::Or));
        open.dedup();
        // A literal and its negation never hold together.
        if holds && open.windows(2).all(|pair| pair[0].0 != pair[1].0) {
            writer.guarded(guarded.edge, &open);
        }
    }
    for clause in logic.clauses() {
        let mut open = Vec::new();
        let mut holds = false;
        for &literal in clause {
            match of(literal) {
                LiteralValue::Settled(value) => holds |= value,
                LiteralValue::Open(constraint, side) => open.push((constraint, side)),
            }
        }
        open.sort_unstable_by_key(|&(constraint, side)| (constraint, side == Side::Or));
        open.dedup();
        let is_tautology = open.windows(2).any(|pair| pair[0].0 == pair[1].0);
        if holds || is_tautology {
            continue;
        }
        if open.is_empty() {
            return None;
        }
        writer.clause(&open);
    }
    Some(())
}

/// Edges for sides, and the nodes that they need.
struct Writer {
    sides: FxHashMap<(u32, Side), Vec<Edge>>,
    known: Vec<Edge>,
    n_nodes: u32,
    estimate: Vec<f32>,
}

impl Writer {
    fn node(&mut self, estimate: f32) -> u32 {
        self.n_nodes += 1;
        if !self.estimate.is_empty() {
            self.estimate.push(estimate);
        }
        self.n_nodes - 1
    }

    fn push(&mut self, (constraint, side): (u32, Side), edge: Edge) {
        self.sides.entry((constraint, side)).or_default().push(edge);
    }

    /// The edge, as a path that has one step for each literal.
    fn guarded(&mut self, edge: Edge, guard: &[(u32, Side)]) {
        if edge.from == edge.to {
            let negated: Vec<_> = guard.iter().map(|&(at, side)| (at, side.other())).collect();
            if negated.is_empty() {
                self.known.push(edge);
            } else {
                self.clause(&negated);
            }
            return;
        }
        let Some((&last, before)) = guard.split_last() else {
            self.known.push(edge);
            return;
        };
        let place = |node: u32| self.estimate.get(node as usize).copied().unwrap_or(0.0);
        let middle = f32::midpoint(place(edge.from), place(edge.to));
        let mut from = edge.from;
        for &literal in before {
            let to = self.node(middle);
            let reason = edge.reason;
            self.push(literal, Edge { from, to, reason });
            from = to;
        }
        self.push(last, Edge { from, ..edge });
    }

    /// The ring.
    fn clause(&mut self, literals: &[(u32, Side)]) {
        let first = self.node(0.0);
        let mut from = first;
        if literals.len() == 1 {
            from = self.node(0.0);
            self.known.push(Edge::plain(first, from));
        }
        for (at, &(constraint, side)) in literals.iter().enumerate() {
            let to = if at + 1 == literals.len() {
                first
            } else {
                self.node(0.0)
            };
            self.push((constraint, side.other()), Edge::plain(from, to));
            from = to;
        }
    }
}
