//! Conjunctions and clauses as edges alone, for back ends that know nothing else.
//!
//! An edge u → v guarded by l₁ ∧ l₂ is a path through a new node: l₁ has u → m, l₂ has m → v. A clause l₁ ∨ … ∨ lₖ is a ring of k
//! new nodes, whose i-th edge the negation of lᵢ has: the ring is a cycle iff all literals are false.

use rustc_hash::FxHashMap;

use crate::decide::{Constraints, Side};
use crate::edge::Edge;
use crate::session::SideOf;

/// Edges for sides, and the nodes that they need.
pub(crate) struct Rings {
    sides: FxHashMap<SideOf, Vec<Edge>>,
    /// Edges that hold.
    pub(crate) known: Vec<Edge>,
    pub(crate) n_nodes: u32,
    /// The position estimate of every node, or empty.
    pub(crate) estimate: Vec<f32>,
}

impl Rings {
    pub(crate) fn new(n_nodes: usize, estimate: Vec<f32>) -> Self {
        Rings {
            sides: FxHashMap::default(),
            known: Vec::new(),
            n_nodes: n_nodes as u32,
            estimate,
        }
    }

    /// This many constraints: the first have edges of their own.
    pub(crate) fn constraints(&mut self, base: &Constraints, n_constraints: u32) -> Constraints {
        let mut constraints = Constraints::default();
        for at in 0..n_constraints {
            let [either, or] = [Side::Either, Side::Or].map(|side| {
                let own: &[Edge] = if (at as usize) < base.len() {
                    base.side(at as usize, side)
                } else {
                    &[]
                };
                let more = self.sides.remove(&(at, side)).unwrap_or_default();
                own.iter().copied().chain(more)
            });
            constraints.push(either, or);
        }
        constraints
    }

    fn node(&mut self, estimate: f32) -> u32 {
        self.n_nodes += 1;
        if !self.estimate.is_empty() {
            self.estimate.push(estimate);
        }
        self.n_nodes - 1
    }

    fn push(&mut self, side: SideOf, edge: Edge) {
        self.sides.entry(side).or_default().push(edge);
    }

    /// The edge, as a path that has one step for each literal.
    pub(crate) fn guarded(&mut self, edge: Edge, guard: &[SideOf]) {
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
    pub(crate) fn clause(&mut self, literals: &[SideOf]) {
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
