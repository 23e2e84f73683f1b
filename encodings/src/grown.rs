//! A question that grew, as sessions on `CaDiCaL` keep it: a variable for each constraint, edges for literals, and clauses.
//!
//! An edge whose guard has several sides belongs to a variable of its own, which they imply. Invariant: variables keep their numbers,
//! and edges and clauses are only added, so that whatever was learned stays true.

use std::collections::BTreeMap;

use kingsnake_graph::Edge;
use kingsnake_graph::decide::{Constraints, Question, Side};
use kingsnake_graph::session::{Growth, SideOf};
use rustsat::types::Lit;

/// Clauses in one array.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clauses {
    literals: Vec<Lit>,
    ends: Vec<u32>,
}

impl Clauses {
    pub fn push(&mut self, clause: impl IntoIterator<Item = Lit>) {
        self.literals.extend(clause);
        self.ends.push(self.literals.len() as u32);
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    pub fn get(&self, at: usize) -> &[Lit] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.literals[start as usize..self.ends[at] as usize]
    }
}

/// The question.
#[derive(Clone, Debug)]
pub(crate) struct Grown {
    pub n_nodes: usize,
    pub known: Vec<Edge>,
    /// An estimate of each node's place, or empty.
    pub estimate: Vec<f32>,
    /// By variable, the edges of its positive and of its negative literal.
    edges: Vec<[Vec<Edge>; 2]>,
    /// By constraint.
    variables: Vec<u32>,
    /// By variable, its constraint; none of a guard's.
    constraints: Vec<Option<u32>>,
    guards: BTreeMap<Vec<Lit>, Lit>,
    pub clauses: Clauses,
    /// Whether a clause is empty.
    pub is_refuted: bool,
    /// How many constraints there were before it grew.
    n_orders: usize,
}

impl Grown {
    /// The question before it grows.
    pub fn new(question: &Question<'_>) -> Grown {
        let mut grown = Grown {
            n_nodes: question.n_nodes,
            known: question.known().collect(),
            estimate: question.estimate.to_vec(),
            edges: Vec::new(),
            variables: Vec::new(),
            constraints: Vec::new(),
            guards: BTreeMap::new(),
            clauses: Clauses::default(),
            is_refuted: false,
            n_orders: question.constraints.len(),
        };
        grown.make_room(question.constraints.len());
        for (at, edges) in grown.edges.iter_mut().enumerate() {
            *edges =
                [Side::Either, Side::Or].map(|side| question.constraints.side(at, side).to_vec());
        }
        grown
    }

    pub fn add(&mut self, growth: &Growth) {
        self.make_room(growth.n_constraints);
        self.known.extend_from_slice(&growth.known);
        for (edge, guard) in growth.guarded() {
            let guard: Vec<Lit> = guard.iter().map(|&side| self.literal(side)).collect();
            let lit = self.guard(guard);
            self.edges[lit.vidx()][usize::from(lit.is_neg())].push(edge);
        }
        for clause in growth.clauses() {
            self.is_refuted |= clause.is_empty();
            let clause: Vec<Lit> = clause.iter().map(|&side| self.literal(side)).collect();
            self.clauses.push(clause);
        }
    }

    /// At least this many constraints.
    fn make_room(&mut self, n_constraints: usize) {
        for constraint in self.variables.len()..n_constraints {
            let variable = self.variable(Some(constraint as u32));
            self.variables.push(variable);
        }
    }

    fn variable(&mut self, constraint: Option<u32>) -> u32 {
        self.edges.push([Vec::new(), Vec::new()]);
        self.constraints.push(constraint);
        self.constraints.len() as u32 - 1
    }

    fn literal(&self, (constraint, side): SideOf) -> Lit {
        Lit::new(self.variables[constraint as usize], side == Side::Or)
    }

    /// A literal that holds if the whole guard does.
    fn guard(&mut self, mut guard: Vec<Lit>) -> Lit {
        if let [lit] = guard[..] {
            return lit;
        }
        guard.sort_unstable();
        if let Some(&lit) = self.guards.get(&guard) {
            return lit;
        }
        let lit = Lit::positive(self.variable(None));
        self.clauses.push(guard.iter().map(|&it| !it).chain([lit]));
        self.guards.insert(guard, lit);
        lit
    }

    /// Whether there are only edges besides what there was before it grew.
    pub fn is_plain(&self) -> bool {
        self.clauses.len() == 0 && self.edges.len() == self.n_orders
    }

    pub fn n_variables(&self) -> usize {
        self.edges.len()
    }

    /// The sides of all variables.
    pub fn sides(&self) -> Constraints {
        let mut sides = Constraints::default();
        for [either, or] in &self.edges {
            sides.push(either.iter().copied(), or.iter().copied());
        }
        sides
    }

    /// The edges of the known graph and of these literals.
    pub fn chosen(&self, literals: &[Lit]) -> Vec<(Edge, Option<Lit>)> {
        let known = self.known.iter().map(|&edge| (edge, None));
        let of = |&lit: &Lit| {
            let edges = &self.edges[lit.vidx()][usize::from(lit.is_neg())];
            edges.iter().map(move |&edge| (edge, Some(lit)))
        };
        known.chain(literals.iter().flat_map(of)).collect()
    }

    /// Whether a variable is one of the question's constraints.
    pub fn is_constraint(&self, variable: u32) -> bool {
        self.constraints[variable as usize].is_some()
    }

    /// A side for each constraint, of a literal for each variable.
    pub fn choices(&self, literals: &[Lit]) -> Vec<Side> {
        let side = |&variable: &u32| {
            if literals[variable as usize].is_pos() {
                Side::Either
            } else {
                Side::Or
            }
        };
        self.variables.iter().map(side).collect()
    }

    /// The constraints of these variables.
    pub fn named(&self, variables: &[u32]) -> Vec<u32> {
        let named = variables
            .iter()
            .filter_map(|&it| self.constraints[it as usize]);
        let mut named: Vec<u32> = named.collect();
        named.sort_unstable();
        named
    }
}
