//! Histories in which some read can have been of several versions: which one, and in which order did everything happen?
//!
//! `narrow` rules out candidates by reachability, `relate/choices` makes choices of what is left, any back end settles them, and
//! `prove` explains a no by cases: "T7 read x = 3 from T1, or from T4".

mod narrow;
mod prove;
#[cfg(test)]
mod tests;

use narrow::{Narrowed, Reach, State, narrow};

use crate::budget::{Budget, StopReason};
use crate::check::{CheckError, Decider, chosen_order};
use crate::decide::{Backend, Decision, Side};
use crate::level::Spec;
use crate::model::History;
use crate::progress::{Progress, Silent};
use crate::prune::{Outcome, PruneOptions, PruneStats, Pruned, Variable, prune};
use crate::relate::{Candidates, Shape, add_choices};
use crate::resolve::Resolved;
use crate::verdict::{Point, Proof};
use crate::witness::witness;
use kingsnake_refute::NoProof;

/// What is checked, and how.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) history: &'a History,
    pub(crate) spec: Spec,
    pub(crate) shape: Shape,
    pub(crate) options: PruneOptions,
    pub(crate) witness: bool,
    pub(crate) budget: &'a Budget,
}

/// The answer.
pub(crate) enum Answer {
    /// An order that explains the history.
    Order(Decider, Vec<Point>),
    /// None does.
    Proof(Decider, Proof),
}

/// Why there is none.
pub(crate) enum Stop {
    Budget(StopReason),
    Error(CheckError),
    NoProof(Decider),
}

impl From<StopReason> for Stop {
    fn from(reason: StopReason) -> Self {
        Stop::Budget(reason)
    }
}

/// What the search says of the reads that are left.
enum Found {
    Order(Decider, Vec<Point>),
    /// No order; the reads with several candidates that a core names.
    No(Decider, Vec<usize>),
}

/// Settles a history with uncertain reads.
pub(crate) fn settle(
    scene: &Scene<'_>,
    base: &Resolved,
    backend: &mut dyn Backend,
    progress: &mut dyn Progress,
) -> Result<Answer, Stop> {
    let mut uncertain = base.uncertain().iter();
    if let Some(read) = uncertain.find(|read| read.candidates.is_empty()) {
        let proof = Proof::Choice {
            reader: base.txn(read.reader),
            key: read.key,
            cases: Vec::new(),
        };
        return Ok(Answer::Proof(Decider::Resolve, proof));
    }
    let mut state = State::new(base);
    let narrowed = narrow(scene, base, &mut state)?;
    let decider = match &narrowed {
        Narrowed::Contradiction(_) | Narrowed::Dead(_) => Decider::Prune,
        Narrowed::Open(pruned, reach) => {
            match search(scene, base, &state, (pruned, reach), backend, progress)? {
                Found::Order(decider, order) => return Ok(Answer::Order(decider, order)),
                Found::No(decider, _) => decider,
            }
        }
    };
    match prove::prove(scene, base, &state, narrowed, backend) {
        Ok(proof) => Ok(Answer::Proof(decider, proof)),
        Err(prove::Failed::No(NoProof::Stopped(reason))) => Err(Stop::Budget(reason)),
        Err(prove::Failed::No(NoProof::NotFound)) => Err(Stop::NoProof(decider)),
        Err(prove::Failed::Error(error)) => Err(Stop::Error(error)),
    }
}

/// Makes choices of the reads with several candidates, and settles them.
fn search(
    scene: &Scene<'_>,
    base: &Resolved,
    state: &State,
    (pruned, reach): (&Pruned, &Reach),
    backend: &mut dyn Backend,
    progress: &mut dyn Progress,
) -> Result<Found, Stop> {
    let open: Vec<usize> = state.open().collect();
    let reads: Vec<Candidates<'_>> = open
        .iter()
        .map(|&read| Candidates {
            reader: base.uncertain()[read].reader,
            key: base.uncertain()[read].key,
            acceptable: &base.uncertain()[read].candidates,
            open: &state.candidates[read],
        })
        .collect();
    let mut polygraph = pruned.polygraph.clone();
    let reaches = |from: u32, to: u32| reach.reaches(from, to);
    let first = add_choices(&mut polygraph, &reads, &reaches);
    let mut stats = PruneStats::default();
    let (options, budget) = (scene.options, scene.budget);
    let outcome = prune(polygraph.clone(), options, &mut stats, budget, progress)?;
    let (pruned, decider) = match outcome {
        Outcome::Pruned(pruned) => (pruned, Decider::Prune),
        Outcome::Contradiction(_) => {
            // Which choices are to blame is asked of the back end.
            let options = PruneOptions {
                rounds: Some(0),
                ..options
            };
            match prune(polygraph, options, &mut stats, budget, progress)? {
                Outcome::Pruned(pruned) => (pruned, Decider::Backend),
                Outcome::Contradiction(_) => return Ok(Found::No(Decider::Prune, open)),
            }
        }
    };
    if pruned.constraints.is_empty() {
        return Ok(Found::Order(decider, points(&pruned, &[])?));
    }
    if scene.witness
        && let Some(sides) = witness(pruned.question())
    {
        return Ok(Found::Order(Decider::Witness, points(&pruned, &sides)?));
    }
    budget.check()?;
    let (decision, _) = decide(backend, &pruned, budget, progress)?;
    match decision {
        Decision::Choices(sides) => Ok(Found::Order(Decider::Backend, points(&pruned, &sides)?)),
        Decision::Core(core) => {
            let is_blamed = |variable: u32| match pruned.variables[variable as usize] {
                Variable::Open(constraint) => core.contains(&constraint),
                Variable::Settled(_) => false,
            };
            let blamed = open.iter().zip(&first).filter(|&(&read, &first)| {
                let n = state.candidates[read].len() as u32;
                (first..first + n).any(is_blamed)
            });
            let blamed = blamed.map(|it| *it.0).collect();
            Ok(Found::No(Decider::Backend, blamed))
        }
        Decision::Unknown(reason) => Err(Stop::Budget(reason)),
    }
}

type Decided = (Decision, crate::decide::DecideStats);

fn decide(
    backend: &mut dyn Backend,
    pruned: &Pruned,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Decided, Stop> {
    let decided = backend.decide(pruned.question(), budget, progress);
    decided.map_err(|error| Stop::Error(error.into()))
}

/// The order that sides of the constraints leave. A cycle is a mistake of whoever chose them.
fn points(pruned: &Pruned, sides: &[Side]) -> Result<Vec<Point>, Stop> {
    let order = chosen_order(pruned, sides).map_err(|_| {
        Stop::Error(CheckError::Uncertified {
            decider: Decider::Backend.name(),
            answer: "satisfied",
            why: "the choices have a cycle".to_owned(),
        })
    })?;
    let points = order.into_iter();
    Ok(points
        .filter_map(|node| pruned.polygraph.point(node))
        .collect())
}

/// Asks a back end without telling anybody of its progress.
fn decide_silently(
    backend: &mut dyn Backend,
    pruned: &Pruned,
    budget: &Budget,
) -> Result<Decision, Stop> {
    decide(backend, pruned, budget, &mut Silent).map(|it| it.0)
}
