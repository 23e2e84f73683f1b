//! `cadical/{closure,order-unary,order-binary,elimination}`: the question as plain CNF, solved once; if it cannot be met, again
//! with selectors, for a core.

use std::marker::PhantomData;
use std::sync::mpsc::Sender;
use std::time::Instant;

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::{Progress, ProgressEvent};
use kingsnake_graph::decide::{Backend, DecideError, DecideStats, Decision, Question, Side};
use rustsat::solvers::Solve;
use rustsat::types::{Lit, TernaryVal};

use super::core::shrink;
use super::solver::Cadical;
use super::watched::{Said, search_reduced, solve, watch};
use crate::BackendOptions;
use crate::cnf::{Encoding, Meaning, Sink, share, shared_size};
use crate::reduce::Arena;

/// A back end that states the question in one piece.
pub(crate) struct Plain<E> {
    seed: u32,
    encoding: PhantomData<E>,
}

impl<E: Encoding> Plain<E> {
    pub fn new(options: &BackendOptions) -> Plain<E> {
        Plain {
            seed: options.seed,
            encoding: PhantomData,
        }
    }

    fn search(
        &self,
        arena: &Arena,
        started: Instant,
        budget: &Budget,
        events: &Sender<ProgressEvent>,
        stats: &mut DecideStats,
    ) -> Result<Decision, String> {
        let mut solver = Cadical::new(self.seed);
        watch(&mut solver, budget, Some(events), arena.constraints.len());
        let built = E::plan(arena, budget).and_then(|plan| {
            let meaning = Self::build(arena, &plan, false, &mut solver, budget, stats)?;
            Ok((plan, meaning))
        });
        stats.encode = started.elapsed();
        let (plan, meaning) = match built {
            Ok(built) => built,
            Err(reason) => return Ok(Decision::Unknown(reason)),
        };
        let started = Instant::now();
        let decision = match solve(&mut solver, &[], budget, stats)? {
            Said::Sat => Decision::Choices(choices(arena, &meaning, &solver)?),
            Said::Unsat => {
                drop(solver);
                Decision::Core(self.core(arena, &plan, budget, events, stats)?)
            }
            Said::Stopped(reason) => Decision::Unknown(reason),
            Said::GaveUp => return Err("the solver stopped unexpectedly".to_owned()),
        };
        stats.solve = started.elapsed();
        Ok(decision)
    }

    /// Some of the constraints that cannot all be met; all of them if the budget ends before fewer are found.
    fn core(
        &self,
        arena: &Arena,
        plan: &E,
        budget: &Budget,
        events: &Sender<ProgressEvent>,
        stats: &mut DecideStats,
    ) -> Result<Vec<u32>, String> {
        let mut solver = Cadical::new(self.seed);
        watch(&mut solver, budget, Some(events), arena.constraints.len());
        let mut unused = DecideStats::default();
        Ok(
            match Self::build(arena, plan, true, &mut solver, budget, &mut unused) {
                Ok(meaning) => shrink(&mut solver, &meaning.selectors, budget, stats)?
                    .into_iter()
                    .map(|at| arena.constraints[at as usize])
                    .collect(),
                Err(_) => arena.constraints.clone(),
            },
        )
    }

    /// Hands the formula over, if it fits.
    fn build(
        arena: &Arena,
        plan: &E,
        selected: bool,
        solver: &mut Cadical,
        budget: &Budget,
        stats: &mut DecideStats,
    ) -> Result<Meaning, StopReason> {
        let size = shared_size(arena) + plan.size();
        stats.variables = size.variables;
        stats.clauses = size.clauses;
        budget.reserve(E::NAME, size.bytes())?;
        let mut sink = Sink::new(solver, budget);
        let meaning = share(arena, selected, &mut sink)?;
        plan.encode(arena, &meaning.arcs, &mut sink)?;
        debug_assert!(
            selected || sink.size() == size,
            "{:?}, but {size:?} was foreseen",
            sink.size()
        );
        Ok(meaning)
    }
}

/// The sides that the model takes.
fn choices(arena: &Arena, meaning: &Meaning, solver: &Cadical) -> Result<Vec<Side>, String> {
    let holds = |lit: Lit| match solver.lit_val(lit) {
        Ok(value) => Ok(value == TernaryVal::True),
        Err(error) => Err(error.to_string()),
    };
    let chosen = meaning
        .sides
        .iter()
        .map(|sides| {
            Ok(if holds(sides[0])? {
                Side::Either
            } else {
                Side::Or
            })
        })
        .collect::<Result<Vec<Side>, String>>()?;
    Ok(arena.choices(|at| chosen[at as usize]))
}

impl<E: Encoding + Sync> Backend for Plain<E> {
    fn name(&self) -> &str {
        E::NAME
    }

    fn decide(
        &mut self,
        question: Question<'_>,
        budget: &Budget,
        progress: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let this = &*self;
        search_reduced(
            E::NAME,
            &question,
            budget,
            progress,
            move |arena, started, events, stats| this.search(arena, started, budget, events, stats),
        )
    }
}
