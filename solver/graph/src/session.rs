//! A question that only grows: constraints, known edges, guarded edges and clauses are appended and never removed, so a
//! back end may keep its lemmas between two answers.
//!
//! A back end without memory gets the whole question again ([`Afresh`]), with conjunctions and clauses written as edges (`rings`).

use crate::decide::{Backend, Constraints, DecideError, DecideStats, Decision, Question, Side};
use crate::edge::Edge;
use crate::reach::Dag;
use crate::rings::Rings;
use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Progress;

/// A side of a constraint, as a literal. A variable is a constraint whose sides have no edges of their own.
pub type SideOf = (u32, Side);

/// Additions to a question.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    /// The number of constraints from now on; earlier ones keep their numbers.
    pub n_constraints: usize,
    /// Edges that hold.
    pub known: Vec<Edge>,
    literals: Vec<SideOf>,
    /// Guarded edges, and where the literals of their guards are.
    guarded: Vec<(Edge, u32, u32)>,
    /// Where the literals of the clauses are.
    clauses: Vec<(u32, u32)>,
}

impl Growth {
    /// This many constraints and these known edges only.
    pub fn new(n_constraints: usize, known: Vec<Edge>) -> Self {
        Growth {
            n_constraints,
            known,
            ..Growth::default()
        }
    }

    /// Adds an edge that holds if all these sides are chosen.
    pub fn guard(&mut self, edge: Edge, guard: &[SideOf]) {
        let (start, end) = self.keep(guard);
        self.guarded.push((edge, start, end));
    }

    /// Adds that one of these sides is chosen.
    pub fn clause(&mut self, sides: &[SideOf]) {
        let of = self.keep(sides);
        self.clauses.push(of);
    }

    fn keep(&mut self, sides: &[SideOf]) -> (u32, u32) {
        let start = self.literals.len() as u32;
        self.literals.extend_from_slice(sides);
        (start, self.literals.len() as u32)
    }

    /// The guarded edges, each with its guard: never empty, and no two sides of one constraint.
    pub fn guarded(&self) -> impl ExactSizeIterator<Item = (Edge, &[SideOf])> + '_ {
        let of = |&(edge, start, end): &(Edge, u32, u32)| (edge, self.sides((start, end)));
        self.guarded.iter().map(of)
    }

    /// The clauses: an empty one cannot be met.
    pub fn clauses(&self) -> impl ExactSizeIterator<Item = &[SideOf]> + '_ {
        self.clauses.iter().map(|&of| self.sides(of))
    }

    fn sides(&self, (start, end): (u32, u32)) -> &[SideOf] {
        &self.literals[start as usize..end as usize]
    }

    /// The edges that hold where these sides are chosen.
    pub fn edges<'a>(&'a self, sides: &'a [Side]) -> impl Iterator<Item = &'a Edge> + Clone + 'a {
        let holds = |&(at, side): &SideOf| sides[at as usize] == side;
        let guarded = self.guarded.iter().filter(move |&&(_, start, end)| {
            let mut guard = self.sides((start, end)).iter();
            guard.all(holds)
        });
        self.known.iter().chain(guarded.map(|it| &it.0))
    }
}

/// A question with its additions, held by a back end.
pub trait SolverSession {
    /// Appends to the question.
    fn add(&mut self, growth: &Growth);

    /// Answers the question as it is now: a side for each constraint, or constraints that cannot all be met. The constraints of a core
    /// are to blame together with the known edges, the guarded edges and the clauses.
    fn decide(
        &mut self,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError>;
}

/// Gives a back end the whole question each time.
pub struct Afresh<'b, B: ?Sized> {
    backend: &'b mut B,
    n_nodes: usize,
    known: Vec<Edge>,
    base: Constraints,
    estimate: Vec<f32>,
    grown: Vec<Growth>,
}

impl<'b, B: Backend + ?Sized> Afresh<'b, B> {
    /// A session over a question.
    pub fn new(backend: &'b mut B, question: Question<'_>) -> Self {
        Afresh {
            backend,
            n_nodes: question.n_nodes,
            known: question.known().collect(),
            base: question.constraints.clone(),
            estimate: question.estimate.to_vec(),
            grown: Vec::new(),
        }
    }

    /// The constraints with everything written as edges, the known graph, and the estimate; `None` if the known graph is cyclic or a
    /// clause is empty.
    fn written(&self) -> Option<(Constraints, Dag, Vec<f32>)> {
        let mut rings = Rings::new(self.n_nodes, self.estimate.clone());
        for growth in &self.grown {
            rings.known.extend_from_slice(&growth.known);
            for (edge, guard) in growth.guarded() {
                rings.guarded(edge, guard);
            }
            for clause in growth.clauses() {
                if clause.is_empty() {
                    return None;
                }
                rings.clause(clause);
            }
        }
        let n_constraints = self.grown.last().map_or(0, |it| it.n_constraints);
        let n_constraints = n_constraints.max(self.base.len()) as u32;
        let constraints = rings.constraints(&self.base, n_constraints);
        let known = self.known.iter().chain(&rings.known);
        let dag = Dag::new(rings.n_nodes as usize, known).ok()?;
        Some((constraints, dag, rings.estimate))
    }
}

impl<B: Backend + ?Sized> SolverSession for Afresh<'_, B> {
    fn add(&mut self, growth: &Growth) {
        self.grown.push(growth.clone());
    }

    fn decide(
        &mut self,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let Some((constraints, dag, estimate)) = self.written() else {
            return Ok((Decision::Core(Vec::new()), DecideStats::default()));
        };
        let question = Question {
            has_choices: !self.grown.is_empty(),
            ..Question::new(&dag, &constraints, &estimate)
        };
        self.backend.decide(question, budget, progress)
    }
}
