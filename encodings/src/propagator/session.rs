//! A question that grows, on one solver: clauses, cycles and the order are kept from answer to answer.
//!
//! The graph is laid out again before each answer, which is linear; search results are kept.

use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use cadical_sys::CaDiCal;
use kingsnake_context::budget::Budget;
use kingsnake_context::progress::ProgressEvent;
use kingsnake_graph::Edge;
use kingsnake_graph::decide::{DecideStats, Decision, Question};
use kingsnake_graph::reach::Dag;
use kingsnake_graph::session::Growth;
use rustsat::types::Lit;

use super::core::{select, share};
use super::graph::{Known, Sides};
use super::solve::{RunMemory, SolveOutcome, SolvePlan, Start, configured, run};
use super::watch::Watch;
use super::{FirstPhase, NAME, Propagator, phase, reserve, start};
use crate::apart::{Keep, SessionAnswer};
use crate::grown::Grown;

/// What is kept from answer to answer.
pub(super) struct KeptPropagator {
    propagator: Propagator,
    plan: SolvePlan,
    grown: Grown,
    solver: CaDiCal,
    /// How many of the clauses the solver has.
    n_told: usize,
    /// The last order; and all cycles and clauses, of which cores are made.
    memory: RunMemory,
    /// How often the question grew.
    n_added: usize,
}

impl KeptPropagator {
    pub fn new(propagator: Propagator, grown: Grown) -> KeptPropagator {
        let plan = SolvePlan {
            options: propagator.options,
            seed: propagator.seed,
            faults: propagator.faults,
        };
        KeptPropagator {
            solver: configured(&plan),
            propagator,
            plan,
            grown,
            n_told: 0,
            memory: RunMemory::default(),
            n_added: 0,
        }
    }

    /// Nothing but orders so far: decided as where nothing will grow, with annealing where repair is hard.
    fn decide_plain(
        &mut self,
        question: &Question<'_>,
        places: &[u32],
        budget: &Budget,
        events: &Sender<ProgressEvent>,
        stats: &mut DecideStats,
    ) -> Result<Decision, String> {
        let decision = if let Some(sides) = start::choices(question, places) {
            Decision::Choices(sides)
        } else {
            let propagator = &self.propagator;
            propagator.search(question, places, budget, events, stats)?
        };
        if let Decision::Choices(sides) = &decision {
            let chosen = sides.iter().enumerate();
            let chosen = chosen.flat_map(|(at, &side)| question.constraints.side(at, side));
            let edges: Vec<Edge> = self.grown.known.iter().chain(chosen).copied().collect();
            let order = Dag::new(question.n_nodes, edges.iter());
            self.memory.places = order.map_or_else(|_| places.to_vec(), |it| it.places());
        }
        Ok(decision)
    }

    /// The sides, if they meet the clauses; that they close no cycle was seen before.
    fn met(&self, chosen: &[Lit]) -> Result<Decision, String> {
        let clauses = &self.grown.clauses;
        let is_met = |at: usize| {
            let mut clause = clauses.get(at).iter();
            clause.any(|lit| chosen[lit.vidx()] == *lit)
        };
        if (0..clauses.len()).all(is_met) {
            Ok(Decision::Choices(self.grown.choices(chosen)))
        } else {
            Err("the sides it chose do not meet a clause".to_owned())
        }
    }

    /// Constraints that the cycles and clauses leave no choice for.
    fn core(&self, budget: &Budget) -> Vec<u32> {
        let all: Vec<u32> = (0..self.grown.n_variables() as u32).collect();
        let is_constraint = |at: u32| self.grown.is_constraint(at);
        let needed = select(&all, &self.memory.lemmas, is_constraint, &share(budget));
        self.grown.named(&needed)
    }
}

impl Keep for KeptPropagator {
    fn add(&mut self, growth: &Growth) {
        self.n_added += 1;
        if self.plan.faults.forget_growth() && self.n_added.is_multiple_of(2) {
            return;
        }
        self.grown.add(growth);
        for at in self.n_told..self.grown.clauses.len() {
            for lit in self.grown.clauses.get(at) {
                self.memory.lemmas.push(lit.to_ipasir());
                self.solver.add(lit.to_ipasir());
            }
            self.memory.lemmas.push(0);
            self.solver.add(0);
        }
        self.n_told = self.grown.clauses.len();
    }

    fn decide(&mut self, budget: &Budget, events: Sender<ProgressEvent>) -> SessionAnswer {
        let started = Instant::now();
        let mut stats = DecideStats {
            backend: NAME.to_owned(),
            ..DecideStats::default()
        };
        let dag = match Dag::new(self.grown.n_nodes, self.grown.known.iter()) {
            Ok(dag) if !self.grown.is_refuted => dag,
            _ => return Ok((Decision::Core(Vec::new()), stats)),
        };
        let (constraints, estimate) = (self.grown.sides(), self.grown.estimate.clone());
        let question = Question {
            has_choices: !self.grown.is_plain(),
            ..Question::new(&dag, &constraints, &estimate)
        };
        if let Err(reason) = reserve(&question, budget) {
            return Ok((Decision::Unknown(reason), stats));
        }
        // What was an order of fewer edges is the best first guess of one with more.
        let places = if self.memory.places.len() == question.n_nodes {
            start::sort(&question, &self.memory.places)
        } else {
            start::places(&question)
        };
        let places = places.ok_or("the known graph has a cycle")?;
        let is_estimated = self.memory.places.is_empty()
            && question.estimate.len() == question.n_nodes
            && self.plan.options.phase != FirstPhase::Topological;
        if self.grown.is_plain() {
            let decided = self.decide_plain(&question, &places, budget, &events, &mut stats);
            return decided.map(|decision| (decision, stats));
        }
        let known = Rc::new(Known::of(&question));
        let sides = Rc::new(Sides::of(&constraints, 0..constraints.len()));
        let position = |node: u32| {
            if is_estimated {
                f64::from(question.estimate[node as usize])
            } else {
                f64::from(places[node as usize])
            }
        };
        let (options, seed) = (self.plan.options, self.plan.seed);
        let guesses = phase::guess(&sides, position, options.phase, seed);
        stats.variables = self.grown.n_variables() as u64;
        stats.clauses = self.grown.clauses.len() as u64;
        stats.encode = started.elapsed();
        let started = Instant::now();
        let start = Start {
            places,
            guesses,
            lemmas: &[],
            clauses: Rc::new(self.grown.clauses.clone()),
            max_cycles: u64::MAX,
            assumed: &[],
        };
        let watch = Watch::new(budget.clone(), Some(events));
        let outcome = run(
            &mut self.solver,
            &mut self.memory,
            &known,
            &sides,
            start,
            &self.plan,
            &watch,
            &mut stats,
        );
        // Both hold a sender of events, and the caller waits until there is none.
        self.solver.disconnect_external_propagator();
        self.solver.disconnect_terminator();
        let decision = match outcome? {
            SolveOutcome::Met(chosen) => self.met(&chosen)?,
            SolveOutcome::Stopped(reason) => Decision::Unknown(reason),
            SolveOutcome::GaveUp => return Err("it gave up unexpectedly".to_owned()),
            SolveOutcome::Refuted => Decision::Core(self.core(budget)),
        };
        stats.solve = started.elapsed();
        Ok((decision, stats))
    }
}
