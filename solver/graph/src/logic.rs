//! Logic over guarded edges: variables, choices (one of several candidates), edges that hold if a conjunction of literals
//! does, and clauses. Together with acyclicity this is SAT modulo acyclicity, the language of `MonoSAT`'s graph format.

use crate::edge::Edge;

/// A variable or its negation, or the order of two runs of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Literal {
    /// A variable is true (or false).
    Variable(u32, bool),
    /// The first run comes before the second; both by their places among all runs.
    Order(u32, u32),
}

impl std::ops::Not for Literal {
    type Output = Literal;

    fn not(self) -> Literal {
        match self {
            Literal::Variable(variable, value) => Literal::Variable(variable, !value),
            Literal::Order(a, b) => Literal::Order(b, a),
        }
    }
}

/// An edge that holds if all literals of its guard do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarded<'a> {
    /// The edge.
    pub edge: Edge,
    /// The conjunction.
    pub guard: &'a [Literal],
}

/// Variables, guarded edges and clauses.
#[derive(Clone, Debug, Default)]
pub struct Logic {
    n_variables: u32,
    n_choices: usize,
    literals: Vec<Literal>,
    /// Guarded edges, and where the literals of their guards are.
    guarded: Vec<(Edge, u32, u32)>,
    /// Where the literals of the clauses are.
    clauses: Vec<(u32, u32)>,
}

impl Logic {
    /// Whether there is nothing but orders and known edges.
    pub fn is_empty(&self) -> bool {
        self.n_variables == 0 && self.guarded.is_empty() && self.clauses.is_empty()
    }

    /// A new variable.
    pub fn variable(&mut self) -> u32 {
        self.n_variables += 1;
        self.n_variables - 1
    }

    /// A choice of at least one of `n` candidates: a new variable each. Returns the first; the others follow.
    pub fn choice(&mut self, n_candidates: usize) -> u32 {
        let first = self.n_variables;
        self.n_variables += n_candidates as u32;
        let candidates = (first..self.n_variables).map(|it| Literal::Variable(it, true));
        let candidates: Vec<Literal> = candidates.collect();
        self.clause(&candidates);
        self.n_choices += 1;
        first
    }

    /// An edge that holds if all these literals do.
    pub fn guard(&mut self, edge: Edge, literals: &[Literal]) {
        let start = self.literals.len() as u32;
        self.literals.extend_from_slice(literals);
        let end = self.literals.len() as u32;
        self.guarded.push((edge, start, end));
    }

    /// One of these literals must hold.
    pub fn clause(&mut self, literals: &[Literal]) {
        let start = self.literals.len() as u32;
        self.literals.extend_from_slice(literals);
        self.clauses.push((start, self.literals.len() as u32));
    }

    /// Number of variables.
    pub fn n_variables(&self) -> usize {
        self.n_variables as usize
    }

    /// Number of choices.
    pub fn n_choices(&self) -> usize {
        self.n_choices
    }

    /// The guarded edges.
    pub fn guarded(&self) -> impl ExactSizeIterator<Item = Guarded<'_>> + '_ {
        self.guarded.iter().map(|&(edge, start, end)| Guarded {
            edge,
            guard: &self.literals[start as usize..end as usize],
        })
    }

    /// The clauses.
    pub fn clauses(&self) -> impl ExactSizeIterator<Item = &[Literal]> + '_ {
        let of = |&(start, end): &(u32, u32)| &self.literals[start as usize..end as usize];
        self.clauses.iter().map(of)
    }

    /// Every order that some literal is about.
    pub fn orders(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.literals.iter().filter_map(|literal| match *literal {
            Literal::Order(a, b) => Some((a, b)),
            Literal::Variable(..) => None,
        })
    }
}
