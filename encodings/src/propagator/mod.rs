//! `cadical/propagator`: one Boolean a constraint, and acyclicity as an external propagator of `CaDiCaL`.
//!
//! An incremental topological order turns cycles into learned clauses. The order is at any time itself a candidate: only
//! constraints that it violates are decided, and when none is violated it is the witness.

mod anneal;
pub(crate) mod core;
pub(crate) mod cycle;
pub(crate) mod graph;
pub(crate) mod order;
pub(crate) mod phase;
mod ranked;
mod reach;
mod repair;
mod session;
mod solve;
pub(crate) mod start;
mod theory;
mod unmet;
mod watch;

use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::{Progress, ProgressEvent};
use kingsnake_graph::cool::CoolerSource;
use kingsnake_graph::decide::{Backend, DecideError, DecideStats, Decision, Question, Side};
use kingsnake_graph::session::SolverSession;
pub use phase::FirstPhase;
use rustsat::types::Lit;

use self::anneal::{Anneal, Device, Line, effort_by_size};
pub use self::anneal::{AnnealMoment, AnnealTrace, AnnealWay, trace};
use self::core::Refuted;
use self::cycle::CycleSearch;
use self::graph::{Known, Sides, acyclic, side_of};
use self::order::Order;
use self::reach::SideReach;
use self::repair::Repair;
use self::session::KeptPropagator;
use self::solve::{SolveOutcome, SolvePlan, Start, solve};
use self::watch::Watch;
use crate::BackendOptions;
use crate::apart::Apart;
use crate::cadical::search_apart;
use crate::faults::Faults;
use crate::grown::Grown;

pub(crate) const NAME: &str = "cadical/propagator";

/// A question is hard when the given order leads to this many cycles. Counted, not timed, so that runs are reproducible.
const HARD: u64 = 500;
/// The first order of a large question leads to more cycles without being hard: as many again per this many constraints.
const AS_MANY_AGAIN: u64 = 16_000;

/// An order that violates this many constraints per hundred nodes is annealed before anything is repaired: no such
/// order was repaired within [`HARD`] cycles (heavy-write workloads violate about 100, those of half reads up to 30,
/// which are repaired).
const HOPELESS: usize = 60;
/// Small questions are always repaired first.
const SMALL: usize = 1_000;

/// How the next decision is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Decide {
    /// Only constraints that the current order violates, surest first.
    #[default]
    Repair,
    /// All constraints, surest first.
    SurestFirst,
    /// All constraints, from the first place of the start order to the last.
    Position,
    /// The solver's own heuristic.
    Vsids,
}

impl Decide {
    /// All of them, the default first.
    pub const ALL: [Decide; 4] = [
        Decide::Repair,
        Decide::SurestFirst,
        Decide::Position,
        Decide::Vsids,
    ];

    /// The name, as typed and reported.
    pub fn name(self) -> &'static str {
        match self {
            Decide::Repair => "repair",
            Decide::SurestFirst => "surest-first",
            Decide::Position => "position",
            Decide::Vsids => "vsids",
        }
    }
}

/// Options of `cadical/propagator`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PropagatorOptions {
    /// Which side to try first.
    pub phase: FirstPhase,
    /// Which constraint to decide next.
    pub decide: Decide,
    /// Whether to anneal if the first order is hard to repair.
    pub anneal: bool,
    /// Whether a learned cycle has as few decided edges as possible; otherwise it is any short one.
    pub minimise: bool,
    /// Whether to learn in advance which sides a decision makes impossible, by looking at this many nodes in each
    /// direction; 0 is off.
    pub propagate: usize,
}

impl Default for PropagatorOptions {
    fn default() -> Self {
        PropagatorOptions {
            phase: FirstPhase::default(),
            decide: Decide::default(),
            anneal: true,
            minimise: true,
            propagate: 0,
        }
    }
}

/// The back end.
#[derive(Clone, Debug)]
pub struct Propagator {
    seed: u32,
    options: PropagatorOptions,
    hard: u64,
    small: usize,
    faults: Faults,
    /// Sides to try first, while a question with a hint is decided.
    assumed: Vec<Lit>,
    /// The source of a device that cools.
    cooler: Option<CoolerSource>,
    /// Whether to anneal where there are choices too.
    anneals_choices: bool,
}

impl Propagator {
    /// With these options.
    pub fn new(options: &BackendOptions) -> Propagator {
        Propagator {
            seed: options.seed,
            options: options.propagator,
            hard: HARD,
            small: SMALL,
            faults: Faults::default(),
            assumed: Vec::new(),
            cooler: options.cooler.clone(),
            anneals_choices: false,
        }
    }

    /// Anneals after this many cycles, so that tests can use it on small questions.
    #[doc(hidden)]
    #[must_use]
    pub fn hard_after(mut self, n_cycles: u64) -> Propagator {
        self.hard = n_cycles.max(1);
        self
    }

    /// Small questions, too, are annealed before they are repaired, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn anneal_small(mut self) -> Propagator {
        self.small = 1;
        self
    }

    /// Questions with choices are annealed as well, for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn anneal_choices(mut self) -> Propagator {
        self.anneals_choices = true;
        self
    }

    /// With deliberate mistakes, in builds for tests.
    #[cfg(any(test, feature = "faults"))]
    #[doc(hidden)]
    #[must_use]
    pub fn with_faults(mut self, faults: Faults) -> Propagator {
        self.faults = faults;
        self
    }

    /// The whole search; it runs in a thread of its own, so that the caller's thread can report its progress.
    fn search(
        &self,
        question: &Question<'_>,
        places: &[u32],
        budget: &Budget,
        events: &Sender<ProgressEvent>,
        stats: &mut DecideStats,
    ) -> Result<Decision, String> {
        let started = Instant::now();
        let known = Rc::new(Known::of(question));
        let sides = Rc::new(Sides::of(
            question.constraints,
            0..question.constraints.len(),
        ));
        let plan = SolvePlan {
            options: self.options,
            seed: self.seed,
            faults: self.faults,
        };
        stats.variables = sides.n_constraints() as u64;
        stats.encode += started.elapsed();
        let started = Instant::now();
        let (outcome, lemmas) = self.attempt(
            question, &known, &sides, places, &plan, budget, events, stats,
        )?;
        let decision = match outcome {
            SolveOutcome::Met(chosen) => {
                Decision::Choices(chosen.into_iter().map(side_of).collect())
            }
            SolveOutcome::Stopped(reason) => Decision::Unknown(reason),
            SolveOutcome::GaveUp => return Err("it gave up unexpectedly".to_owned()),
            SolveOutcome::Refuted => {
                let refuted = Refuted {
                    known: &known,
                    constraints: question.constraints,
                    places,
                    plan: &plan,
                    budget,
                };
                Decision::Core(refuted.shrink(lemmas, stats)?)
            }
        };
        stats.solve = started.elapsed();
        Ok(decision)
    }

    /// Solves from the given order; whenever that is hard, anneals, and solves again from there with all the cycles found
    /// so far. Both get more effort each time, so that the search stays complete.
    #[allow(clippy::too_many_arguments)]
    fn attempt(
        &self,
        question: &Question<'_>,
        known: &Rc<Known>,
        sides: &Rc<Sides>,
        places: &[u32],
        plan: &SolvePlan,
        budget: &Budget,
        events: &Sender<ProgressEvent>,
        stats: &mut DecideStats,
    ) -> Result<(SolveOutcome, Vec<i32>), String> {
        // If there are choices, no order meets all constraints by itself, and cooling would not end.
        let anneals = self.options.anneal
            && (self.anneals_choices || !question.has_choices)
            && self.options.decide == Decide::Repair
            && budget
                .reserve("annealing", Line::bytes(known, sides))
                .is_ok();
        let mut estimated = question.estimate.len() == question.n_nodes
            && self.options.phase != FirstPhase::Topological;
        let guess = |places: &[u32], estimated: bool| {
            let position = |node: u32| {
                if estimated {
                    f64::from(question.estimate[node as usize])
                } else {
                    f64::from(places[node as usize])
                }
            };
            phase::guess(sides, position, self.options.phase, self.seed)
        };
        let mut start_places = places.to_vec();
        let mut lemmas = Vec::new();
        let mut max_cycles = if anneals { self.hard } else { u64::MAX };
        // Repairing the given order may take longer, because annealing would take longer still.
        let mut patience = 1 + sides.n_constraints() as u64 / AS_MANY_AGAIN;
        let mut line = None;
        let mut cooler = None;
        let mut effort = 1.0;
        let n_violated = n_violated(sides, places);
        let mut is_hopeless = anneals
            && self.assumed.is_empty()
            && n_violated >= self.small
            && 100 * n_violated > HOPELESS * known.n_nodes();
        loop {
            if !is_hopeless {
                let watch = Watch::new(budget.clone(), Some(events.clone()));
                stats.clauses = lemmas.iter().filter(|&&lit| lit == 0).count() as u64;
                let start = Start {
                    guesses: guess(&start_places, estimated),
                    places: start_places,
                    lemmas: &lemmas,
                    clauses: Rc::default(),
                    max_cycles: max_cycles.saturating_mul(patience),
                    assumed: &self.assumed,
                };
                let (outcome, more) = solve(known, sides, start, plan, &watch, stats)?;
                lemmas.extend(more);
                if !matches!(outcome, SolveOutcome::GaveUp) {
                    return Ok((outcome, lemmas));
                }
                max_cycles *= 2;
            }
            is_hopeless = false;
            patience = 1;
            let line =
                line.get_or_insert_with(|| Line::new(known, sides, places, self.seed.into()));
            if cooler.is_none() {
                cooler = self.cooler.as_ref().map(CoolerSource::make);
            }
            let (best, taken) = Anneal {
                line,
                watch: &Watch::new(budget.clone(), Some(events.clone())),
                n_cycles: stats.cycles,
                device: cooler.as_mut().map(|cooler| Device {
                    cooler: &mut **cooler,
                    stats: &mut stats.device,
                }),
                is_serial: false,
                notes: None,
            }
            .run(effort);
            stats.moves = line.n_moves();
            // Nothing is left to repair.
            if let Some(chosen) = forward(sides, &best)
                && acyclic(known, sides, &chosen, &best)
            {
                return Ok((SolveOutcome::Met(chosen), lemmas));
            }
            start_places = best;
            estimated = false;
            effort = (2.0 * taken).max(effort_by_size(known.n_nodes()));
        }
    }

    fn error(what: String) -> DecideError {
        DecideError {
            backend: NAME.to_owned(),
            what,
        }
    }
}

/// How many constraints these places violate.
fn n_violated(sides: &Sides, places: &[u32]) -> usize {
    let all = 0..sides.n_constraints() as u32;
    all.filter(|&at| sides.is_violated(at, places)).count()
}

/// A side of every constraint that runs forward in these places, if each has one.
fn forward(sides: &Sides, places: &[u32]) -> Option<Vec<Lit>> {
    let all = 0..sides.n_constraints() as u32;
    all.map(|constraint| {
        let either = Lit::positive(constraint);
        [either, !either]
            .into_iter()
            .find(|&lit| sides.forward(lit, places))
    })
    .collect()
}

/// Refuses what would not fit.
fn reserve(question: &Question<'_>, budget: &Budget) -> Result<(), StopReason> {
    let (n_nodes, n_constraints) = (question.n_nodes, question.constraints.len());
    let n_edges = question.constraints.n_edges();
    let sides = 12 * n_edges as u64 + 8 * n_constraints as u64;
    // What CaDiCaL keeps for a variable, roughly: tables, queues, watches, and some clauses.
    let solver = 500 * n_constraints as u64;
    budget.reserve(
        "the propagator",
        Known::bytes(question)
            + sides
            + Order::bytes(n_nodes, n_edges)
            + CycleSearch::bytes(n_nodes)
            + Repair::bytes(n_nodes, n_edges)
            + SideReach::bytes(n_nodes, n_edges)
            + solver,
    )?;
    budget.check()
}

impl Backend for Propagator {
    fn name(&self) -> &str {
        NAME
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let started = Instant::now();
        let mut stats = DecideStats {
            backend: NAME.to_owned(),
            ..DecideStats::default()
        };
        if let Err(reason) = reserve(&question, budget) {
            return Ok((Decision::Unknown(reason), stats));
        }
        let places = start::places(&question)
            .ok_or_else(|| Self::error("the known graph has a cycle".to_owned()))?;
        let choices = start::choices(&question, &places);
        stats.encode = started.elapsed();
        if let Some(choices) = choices {
            stats.variables = choices.len() as u64;
            return Ok((Decision::Choices(choices), stats));
        }
        let this = &*self;
        search_apart(stats, progress, move |events, stats| {
            this.search(&question, &places, budget, events, stats)
        })
    }

    fn session<'s>(&'s mut self, question: Question<'_>) -> Box<dyn SolverSession + 's> {
        let (this, grown) = (self.clone(), Grown::new(&question));
        Box::new(Apart::new(NAME, move || KeptPropagator::new(this, grown)))
    }

    fn decide_assuming(
        &mut self,
        question: Question<'_>,
        assumed: &[(u32, Side)],
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Option<Result<(Decision, DecideStats), DecideError>> {
        let literal = |&(constraint, side): &(u32, Side)| match side {
            Side::Either => Lit::positive(constraint),
            Side::Or => Lit::negative(constraint),
        };
        self.assumed = assumed.iter().map(literal).collect();
        let answer = self.decide(question, budget, progress);
        self.assumed.clear();
        Some(answer)
    }
}
