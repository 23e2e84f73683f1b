//! One question with a fixed set of uncertain reads and aggregates, all of them stated: what `export` writes, and what the cases of a proof
//! are asked.

use super::narrow::{Narrowed, Scene, State, narrow};
use super::reads::Reads;
use super::results::{Counted, all as all_aggregates};
use super::{Lemma, absent, expect_candidates, has_aggregates};
use crate::budget::Budget;
use crate::context::Context;
use crate::decide::{Backend, Decision};
use crate::phases::{Check, Exit, Refuted, Stop};
use crate::progress::{Phase, Progress};
use crate::prune::{Outcome, PruneOptions, PruneStats, Pruned, Variable, prune};
use crate::relate::{Candidates, ChoiceRuns, Polygraph};
use crate::report::{CheckError, Decider};
use crate::resolve::{Resolved, VersionId};
use rustc_hash::FxHashMap;

/// The history with every read that an obligation can ask for, and the aggregates.
pub(super) fn everything(check: &Check<'_>, base: &Resolved) -> Result<(Resolved, Counted), Stop> {
    let (mut reads, mut counted) = (Reads::new(base), Counted::default());
    for (reader, key) in absent::all(check, base) {
        reads.number(base.unreturned_read(check.history, reader, key));
    }
    if has_aggregates(check.history) {
        let with_absent = reads.view(base);
        for lemma in all_aggregates(check, base) {
            if let Lemma::Count(aggregate) = lemma {
                counted.count(check.history, &with_absent, aggregate, &mut reads)?;
            }
        }
    }
    Ok((reads.view(base), counted))
}

/// The graph with a choice for each read that narrowing leaves several candidates: all that the loop can come to ask.
pub(crate) fn pose(
    check: &Check<'_>,
    polygraph: Polygraph,
    context: &mut Context<'_>,
) -> Result<Polygraph, Exit> {
    if !super::is_obliged(check, polygraph.resolved()) {
        return Ok(polygraph);
    }
    context.begin(Phase::Construct)?;
    let (base, counted) = everything(check, polygraph.resolved())?;
    pose_counted(check, &base, &counted, context.budget)
}

/// The same of these reads and aggregates.
pub(super) fn pose_counted(
    check: &Check<'_>,
    base: &Resolved,
    counted: &Counted,
    budget: &Budget,
) -> Result<Polygraph, Exit> {
    expect_candidates(base)?;
    let scene = Scene {
        check,
        counted,
        budget,
    };
    let open = base.uncertain().iter().enumerate();
    let open = open.filter(|it| it.1.candidates.len() > 1 || base.is_in_doubt(it.1.reader));
    let open = open.map(|it| it.0);
    let open: Vec<usize> = open.collect();
    let mut state = State::new(base, &open);
    let stats = &mut PruneStats::default();
    match narrow(&scene, base, None, &mut state, stats)? {
        Narrowed::Contradiction(found) => Err(Refuted::Contradiction(Decider::Prune, found).into()),
        Narrowed::Dead(_) | Narrowed::Impossible(_) => Err(Refuted::NoProof(Decider::Prune).into()),
        Narrowed::Open(pruned) => Ok(choices(&scene, base, &state, &pruned).0),
    }
}

/// Makes choices of the reads that are to be stated; returns the first variable of each that is open as well.
fn choices(
    scene: &Scene<'_>,
    base: &Resolved,
    state: &State,
    pruned: &Pruned,
) -> (Polygraph, FxHashMap<usize, u32>) {
    let open = state.to_state(base);
    let differ = open.iter().map(|&read| {
        move |one: VersionId, other: VersionId| scene.counted.differ(read, one, other)
    });
    let differ: Vec<_> = differ.collect();
    let reads: Vec<Candidates<'_>> = open
        .iter()
        .zip(&differ)
        .map(|(&read, differ)| Candidates {
            reader: base.uncertain()[read].reader,
            key: base.uncertain()[read].key,
            acceptable: &base.uncertain()[read].candidates,
            open: &state.candidates[read],
            differ,
        })
        .collect();
    let (mut polygraph, reach) = (pruned.problem.clone(), pruned.reach());
    let reaches = |from: u32, to: u32| reach.as_ref().is_some_and(|it| it.reaches(from, to));
    let mut runs = ChoiceRuns::default();
    let mut first = FxHashMap::default();
    for (&read, candidates) in open.iter().zip(&reads) {
        let variable = runs.add(&mut polygraph, candidates, &reaches);
        first.extend(variable.map(|it| (read, it)));
    }
    let logic = &mut polygraph.problem_mut().logic;
    let history = scene.check.history;
    scene
        .counted
        .state(history, logic, &state.candidates, &first);
    (polygraph, first)
}

/// What a search says of the reads that are left.
pub(super) enum Blamed {
    /// There is an order.
    Nothing,
    /// There is none; the reads with several candidates that a core names.
    Reads(Vec<usize>),
}

/// Makes choices of the reads with several candidates, and settles them.
pub(super) fn search(
    scene: &Scene<'_>,
    base: &Resolved,
    state: &State,
    pruned: &Pruned,
    backend: &mut dyn Backend,
    progress: &mut dyn Progress,
) -> Result<Blamed, Stop> {
    let open: Vec<usize> = state.open().collect();
    let (polygraph, first) = choices(scene, base, state, pruned);
    let mut stats = PruneStats::default();
    let (options, budget) = (scene.check.techniques.prune_options(), scene.budget);
    let outcome = prune(polygraph.clone(), options, &mut stats, budget, progress)?;
    let pruned = match outcome {
        Outcome::Pruned(pruned) => pruned,
        Outcome::Contradiction(_) => {
            // Which choices are to blame is asked of the back end.
            backend.conclude();
            let options = PruneOptions {
                rounds: Some(0),
                ..options
            };
            match prune(polygraph, options, &mut stats, budget, progress)? {
                Outcome::Pruned(pruned) => pruned,
                Outcome::Contradiction(_) => return Ok(Blamed::Reads(open)),
            }
        }
    };
    if pruned.constraints.is_empty() {
        return Ok(Blamed::Nothing);
    }
    budget.check()?;
    match decide(backend, &pruned, budget, progress)? {
        Decision::Choices(_) => Ok(Blamed::Nothing),
        Decision::Core(core) => {
            let is_blamed = |variable: u32| match pruned.variables[variable as usize] {
                Variable::Open(constraint) => core.contains(&constraint),
                Variable::Settled(_) => false,
            };
            let blamed = open.into_iter().filter(|read| {
                let n = state.candidates[*read].len() as u32;
                let first = first.get(read);
                first.is_some_and(|&first| (first..first + n).any(is_blamed))
            });
            Ok(Blamed::Reads(blamed.collect()))
        }
        Decision::Unknown(reason) => Err(Stop::Budget(reason)),
    }
}

/// Asks a back end.
pub(super) fn decide(
    backend: &mut dyn Backend,
    pruned: &Pruned,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Decision, Stop> {
    let decided = backend.decide(pruned.question(), budget, progress);
    let (decision, _) = decided.map_err(CheckError::from)?;
    Ok(decision)
}
