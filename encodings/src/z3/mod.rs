//! The back ends `z3/…`: the question as a formula, each in its own theory.
//!
//! Every constraint is required by a Boolean of its own, so that Z3 names those that fail together. Z3's answers are
//! not trusted: choices are sorted topologically, and a core is checked by a solver of our own.

mod asi;
mod difference;
mod gsi;
mod hints;
mod library;
#[cfg(test)]
mod mutants;
mod order;
mod propagator;
mod session;
mod shrink;
mod sides;
mod terms;

use std::thread;
use std::time::Instant;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Progress;
use kingsnake_graph::decide::{
    Backend, DecideError, DecideStats, Decision, Origin, Question, Side,
};
use rustsat::types::Lit;

use self::hints::Hints;
use self::propagator::Connected;
use self::session::{Found, Halt, Z3Session};
use self::shrink::shrink;
use self::terms::Term;
use crate::BackendOptions;
use crate::faults::Z3Faults;
use crate::propagator::graph::{Known, Sides, acyclic};

/// Z3 walks terms by recursion.
const STACK: usize = 64 << 20;
/// Approximate size in Z3 of an assertion about an edge and of a constraint, in bytes.
const BYTES: [u64; 2] = [700, 2000];

/// Z3 takes long to free this many assertions.
const MANY: usize = 50_000;

/// How a question is stated.
pub(crate) struct Z3Encoding {
    pub name: &'static str,
    /// The logic, if Z3 has a solver for it that is better than the general one.
    logic: Option<&'static str>,
    params: &'static [(&'static str, u32)],
    state: fn(&Asked<'_>, &mut Z3Session<'_>) -> Result<Stated, Halt>,
    /// Whether it states the rules of snapshot isolation.
    only_si: bool,
}

pub(crate) const DIFFERENCE: &Z3Encoding = &difference::ENCODING;
pub(crate) const ORDER: &Z3Encoding = &order::ENCODING;
pub(crate) const PROPAGATOR: &Z3Encoding = &propagator::ENCODING;
pub(crate) const GSI: &Z3Encoding = &gsi::ENCODING;
pub(crate) const ASI: &Z3Encoding = &asi::ENCODING;

/// The question: some of the constraints.
pub(crate) struct Asked<'a> {
    pub question: Question<'a>,
    pub chosen: &'a [u32],
    faults: Z3Faults,
}

impl Asked<'_> {
    /// The edges of a side of the constraint at a place, by their ends.
    pub fn side(&self, at: usize, side: Side) -> impl Iterator<Item = (usize, usize)> + '_ {
        let edges = self
            .question
            .constraints
            .side(self.chosen[at] as usize, side);
        let short = usize::from(self.faults.short_side() && side == Side::Either);
        edges[..edges.len().saturating_sub(short)]
            .iter()
            .map(|edge| (edge.from as usize, edge.to as usize))
    }

    /// The known edges, by their ends.
    pub fn known(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let (starts, targets) = (self.question.starts, self.question.targets);
        (0..self.question.n_nodes).flat_map(move |from| {
            let range = starts[from] as usize..starts[from + 1] as usize;
            targets[range].iter().map(move |&to| (from, to as usize))
        })
    }
}

/// A stated question. For each chosen constraint, in their order:
pub(crate) struct Stated {
    /// the Boolean that requires it,
    pub demands: Vec<Term>,
    /// and what is true in a model that takes its first side; else the model takes its second.
    pub either: Vec<Term>,
    /// How many variables there are, the demands left out.
    pub n_variables: u64,
}

/// The back ends.
#[derive(Clone)]
pub(crate) struct Z3 {
    encoding: &'static Z3Encoding,
    seed: u32,
    /// Sides to be tried first.
    assumed: Vec<(u32, Side)>,
    faults: Z3Faults,
}

/// The result of one run.
enum Z3Run {
    Met(Vec<Side>),
    Refuted(Vec<u32>),
}

impl Z3 {
    pub(crate) fn new(encoding: &'static Z3Encoding, options: &BackendOptions) -> Z3 {
        Z3 {
            encoding,
            seed: options.seed,
            assumed: Vec::new(),
            faults: Z3Faults::default(),
        }
    }

    /// Runs in a thread of its own, and so in a Z3 context of its own: what an earlier run left behind changes nothing.
    fn run(
        &self,
        question: Question<'_>,
        chosen: &[u32],
        hinted: &[(u32, Side)],
        budget: &Budget,
        stats: &mut DecideStats,
    ) -> Result<Z3Run, Halt> {
        thread::scope(|scope| {
            thread::Builder::new()
                .stack_size(STACK)
                .spawn_scoped(scope, || {
                    self.solve(question, chosen, hinted, budget, stats)
                })
                .map_err(|error| Halt::Failed(format!("it cannot start a thread: {error}")))?
                .join()
                .unwrap_or_else(|_| Err(Halt::Failed("the search panicked".to_owned())))
        })
    }

    fn solve(
        &self,
        question: Question<'_>,
        chosen: &[u32],
        hinted: &[(u32, Side)],
        budget: &Budget,
        stats: &mut DecideStats,
    ) -> Result<Z3Run, Halt> {
        let started = Instant::now();
        let mut params = self.encoding.params.to_vec();
        params.push(("random_seed", self.seed));
        if self.faults.unknown_parameter() {
            params.push(("no_such_parameter", 1));
        }
        let mut session = Z3Session::new(self.encoding.logic, &params, budget)?;
        let asked = Asked {
            question,
            chosen,
            faults: self.faults,
        };
        let put = (self.encoding.state)(&asked, &mut session).and_then(|stated| {
            let hints = Hints::new(hinted, &stated, &session)?;
            Ok((stated, hints))
        });
        let (stated, hints) = match put {
            Ok(put) => put,
            Err(halt) => {
                session.abandon();
                return Err(halt);
            }
        };
        stats.encode += started.elapsed();
        stats.variables = stats.variables.max(stated.n_variables);
        stats.clauses = stats.clauses.max(session.n_sent() as u64);
        let started = Instant::now();
        let run = hints
            .check(
                &stated,
                &session,
                self.faults.trust_assumed(),
                budget,
                stats,
            )
            .map(|found| match found {
                Found::Met(values) => Z3Run::Met(values.into_iter().map(side_of).collect()),
                Found::Refuted(failed) => {
                    let core = shrink(&session, &stated.demands, failed, budget);
                    Z3Run::Refuted(core.into_iter().map(|at| chosen[at]).collect())
                }
            });
        session.count(stats);
        stats.cycles += session.theory().map_or(0, Connected::n_cycles);
        if run.is_err() || session.n_sent() > MANY {
            session.abandon();
        }
        stats.solve += started.elapsed();
        run
    }

    fn search(
        &self,
        question: Question<'_>,
        budget: &Budget,
        stats: &mut DecideStats,
    ) -> Result<Decision, Halt> {
        let all: Vec<u32> = (0..question.constraints.len() as u32).collect();
        let mut core = match self.run(question, &all, &self.assumed, budget, stats)? {
            Z3Run::Met(sides) => {
                if !self.faults.credulous() {
                    expect_acyclic(&question, &sides)?;
                }
                return Ok(Decision::Choices(sides));
            }
            Z3Run::Refuted(core) => core,
        };
        if self.faults.short_core() {
            core.pop();
        }
        if self.faults.credulous() || core.len() == all.len() {
            return Ok(Decision::Core(core));
        }
        match self.run(question, &core, &[], budget, stats) {
            Ok(Z3Run::Refuted(_)) => Ok(Decision::Core(core)),
            Ok(Z3Run::Met(_)) => Err(Halt::Failed("a core it found can be met".to_owned())),
            // Not refuted on its own in time: all of them together were.
            Err(Halt::Stopped(_)) => Ok(Decision::Core(all)),
            Err(halt) => Err(halt),
        }
    }
}

fn side_of(either: bool) -> Side {
    if either { Side::Either } else { Side::Or }
}

fn expect_acyclic(question: &Question<'_>, sides: &[Side]) -> Result<(), Halt> {
    let constraints = 0..question.constraints.len();
    let edges = Sides::of(question.constraints, constraints);
    let chosen: Vec<Lit> = sides
        .iter()
        .enumerate()
        .map(|(at, &side)| Lit::new(at as u32, side == Side::Or))
        .collect();
    if acyclic(&Known::of(question), &edges, &chosen, &[]) {
        return Ok(());
    }
    Err(Halt::Failed("the chosen sides close a cycle".to_owned()))
}

impl Backend for Z3 {
    fn name(&self) -> &str {
        self.encoding.name
    }

    fn refuses(&self, origin: Origin) -> Option<String> {
        let refuses = self.encoding.only_si && origin != Origin::SnapshotIsolation;
        refuses.then(|| "it states the rules of snapshot isolation".to_owned())
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        _: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let mut stats = DecideStats {
            backend: self.encoding.name.to_owned(),
            ..DecideStats::default()
        };
        let n_edges = question.targets.len() + question.constraints.n_edges();
        let needed = BYTES[0] * n_edges as u64 + BYTES[1] * question.constraints.len() as u64;
        let decided = budget
            .reserve("the formula", needed)
            .map_err(Halt::Stopped)
            .and_then(|()| self.search(question, budget, &mut stats));
        match decided {
            Ok(decision) => Ok((decision, stats)),
            Err(Halt::Stopped(reason)) => Ok((Decision::Unknown(reason), stats)),
            Err(Halt::Failed(what)) => Err(DecideError {
                backend: self.encoding.name.to_owned(),
                what,
            }),
        }
    }

    fn decide_assuming(
        &mut self,
        question: Question<'_>,
        assumed: &[(u32, Side)],
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Option<Result<(Decision, DecideStats), DecideError>> {
        self.assumed = assumed.to_vec();
        let answer = self.decide(question, budget, progress);
        self.assumed.clear();
        Some(answer)
    }
}
