//! Makes a proof of a core that any back end found: the cycles among its constraints, and `CaDiCaL`'s LRAT proof that they
//! leave no choice.
//!
//! The cycles are looked for again, by `cadical/lazy` on the core alone, and each is walked in the question's own graph. So the
//! proof is about the question and not about an encoding, and it is the same whichever back end said no.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_graph::decide::{Constraints, Question, Side};
use rustsat::solvers::{ControlSignal, Solve, SolverResult, Terminate};
use rustsat::types::Lit;
use thiserror::Error;

use super::check::{Checked, check, same_question};
use super::instance::{ProofInstance, instance_path};
use super::refusal::ProofRefusal;
use crate::cadical::lazy::{Unrefuted, refute};
use crate::cadical::solver::Cadical;

/// Why there is no proof.
#[derive(Debug, Error)]
pub enum ProofError {
    /// The budget ended.
    #[error("{0}")]
    Stopped(StopReason),
    /// A file cannot be written or read.
    #[error("{}: {error}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// What was written is no proof.
    #[error("internal error: {0}")]
    Refused(#[from] ProofRefusal),
    /// An internal error.
    #[error("internal error: {0}")]
    Internal(String),
}

/// Writes the proof that these constraints cannot all be met, and its instance beside it, and checks both as they were
/// written.
pub fn write(
    question: &Question<'_>,
    core: &[u32],
    about: &[String],
    seed: u32,
    budget: &Budget,
    path: &Path,
) -> Result<Checked, ProofError> {
    let instance = instance(question, core, about, seed, budget)?;
    let beside = instance_path(path);
    std::fs::write(&beside, instance.text()).map_err(io(&beside))?;
    trace(&beside, seed, budget, path)?;
    let proof = std::fs::read_to_string(path).map_err(io(path))?;
    let text = std::fs::read_to_string(&beside).map_err(io(&beside))?;
    let read = ProofInstance::read(&text)?;
    same_question(&read, question)?;
    Ok(check(&read, &proof)?)
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> ProofError {
    let path = path.to_owned();
    move |error| ProofError::Io { path, error }
}

/// The cycles among the core's constraints.
fn instance(
    question: &Question<'_>,
    core: &[u32],
    about: &[String],
    seed: u32,
    budget: &Budget,
) -> Result<ProofInstance, ProofError> {
    let mut alone = Constraints::default();
    for &at in core {
        let side = |side| question.constraints.side(at as usize, side).iter().copied();
        alone.push(side(Side::Either), side(Side::Or));
    }
    let asked = Question {
        constraints: &alone,
        ..*question
    };
    let cycles = refute(&asked, seed, budget).map_err(|unrefuted| match unrefuted {
        Unrefuted::Stopped(reason) => ProofError::Stopped(reason),
        Unrefuted::Failed(what) => ProofError::Internal(what),
    })?;
    let mut instance = ProofInstance {
        about: about.to_vec(),
        constraints: core.to_vec(),
        ..ProofInstance::default()
    };
    let mut walk = Walk::new(&asked);
    let mut seen = BTreeSet::new();
    for sides in cycles {
        budget.check().map_err(ProofError::Stopped)?;
        let steps = walk
            .cycle(&sides)
            .ok_or_else(|| ProofError::Internal("some sides close no cycle".to_owned()))?;
        let mut clause: Vec<i32> = steps
            .iter()
            .filter_map(|step| step.side)
            .map(|lit| (!lit).to_ipasir())
            .collect();
        clause.sort_unstable();
        clause.dedup();
        if !seen.insert(clause.clone()) {
            continue;
        }
        for step in &steps {
            let edge = (step.from, step.to);
            match step.side {
                Some(lit) => instance
                    .sides
                    .entry(lit.to_ipasir())
                    .or_default()
                    .insert(edge),
                None => instance.known.insert(edge),
            };
        }
        let mut nodes: Vec<u32> = steps.iter().map(|step| step.from).collect();
        nodes.extend(steps.last().map(|step| step.to));
        instance.clauses.push(clause);
        instance.cycles.push(nodes);
    }
    Ok(instance)
}

/// An edge of a cycle, and the side that demands it.
#[derive(Clone, Copy)]
struct CycleEdge {
    from: u32,
    to: u32,
    side: Option<Lit>,
}

/// Searches over the known graph and a few sides.
struct Walk<'a> {
    question: &'a Question<'a>,
    came: Vec<Option<CycleEdge>>,
    touched: Vec<u32>,
}

impl Walk<'_> {
    fn new<'a>(question: &'a Question<'a>) -> Walk<'a> {
        Walk {
            question,
            came: vec![None; question.n_nodes],
            touched: Vec::new(),
        }
    }

    /// A shortest cycle through the first edge of these sides that is on one.
    fn cycle(&mut self, sides: &[Lit]) -> Option<Vec<CycleEdge>> {
        let mut steps: BTreeMap<u32, Vec<CycleEdge>> = BTreeMap::new();
        for &lit in sides {
            let side = if lit.is_pos() { Side::Either } else { Side::Or };
            for edge in self.question.constraints.side(lit.vidx(), side) {
                steps.entry(edge.from).or_default().push(CycleEdge {
                    from: edge.from,
                    to: edge.to,
                    side: Some(lit),
                });
            }
        }
        steps
            .values()
            .flatten()
            .find_map(|&first| self.back(first, &steps))
    }

    /// The cycle that starts with this step: breadth-first from its end to its start.
    fn back(
        &mut self,
        first: CycleEdge,
        steps: &BTreeMap<u32, Vec<CycleEdge>>,
    ) -> Option<Vec<CycleEdge>> {
        for node in self.touched.drain(..) {
            self.came[node as usize] = None;
        }
        let mut queue = VecDeque::from([first.to]);
        while let Some(node) = queue.pop_front() {
            if node == first.from {
                let mut cycle = Vec::new();
                let mut at = node;
                while at != first.to {
                    let step = self.came[at as usize]?;
                    cycle.push(step);
                    at = step.from;
                }
                cycle.push(first);
                cycle.reverse();
                return Some(cycle);
            }
            let known = self.question.starts[node as usize] as usize
                ..self.question.starts[node as usize + 1] as usize;
            let known = self.question.targets[known].iter().map(|&to| CycleEdge {
                from: node,
                to,
                side: None,
            });
            let chosen = steps.get(&node).into_iter().flatten().copied();
            for step in known.chain(chosen) {
                if step.to != first.to && self.came[step.to as usize].is_none() {
                    self.came[step.to as usize] = Some(step);
                    self.touched.push(step.to);
                    queue.push_back(step.to);
                }
            }
        }
        None
    }
}

/// Refutes the instance's clauses with the solver, which records the proof.
fn trace(instance: &Path, seed: u32, budget: &Budget, path: &Path) -> Result<(), ProofError> {
    let internal = |error: anyhow::Error| ProofError::Internal(error.to_string());
    let name = |path: &Path| match path.to_str() {
        Some(name) => Ok(name.to_owned()),
        None => Err(ProofError::Internal("a path is not UTF-8".to_owned())),
    };
    let mut solver = Cadical::new(seed);
    solver.trace_lrat(&name(path)?).map_err(internal)?;
    let watched = budget.clone();
    solver.attach_terminator(move || match watched.check() {
        Ok(()) => ControlSignal::Continue,
        Err(_) => ControlSignal::Terminate,
    });
    solver.read_dimacs(&name(instance)?).map_err(internal)?;
    let result = solver.solve().map_err(internal)?;
    solver.close_proof();
    match result {
        SolverResult::Unsat => Ok(()),
        SolverResult::Interrupted => Err(match budget.check() {
            Err(reason) => ProofError::Stopped(reason),
            Ok(()) => ProofError::Internal("the solver stopped unexpectedly".to_owned()),
        }),
        SolverResult::Sat => Err(ProofError::Internal("the cycles leave a choice".to_owned())),
    }
}
