//! Histories in which some read can have been of several versions: which one, and in which order did everything happen?
//!
//! `narrow` rules out candidates by reachability, `relate/choices` makes choices of what is left, any back end settles them, and
//! `prove` explains a no by cases: "T7 read x = 3 from T1, or from T4".
//!
//! The search begins without most of these reads. Those that the order which it finds does not explain are attended to, and it begins
//! again (`missed`). A history that is violated without some of its reads is violated.

mod missed;
mod narrow;
mod prove;
#[cfg(test)]
pub(crate) mod tests;

pub(crate) use narrow::impossible_sources;
use narrow::{Narrowed, State, narrow};

use crate::aggregates::Counted;
use crate::budget::Budget;
use crate::context::Context;
use crate::decide::{Backend, DecideError, Decision, Origin, Side};
use crate::phases::{self, Check, Decided, Exit, Refuted, Stop};
use crate::progress::{Phase, Progress, Silent};
use crate::prune::{Outcome, PruneOptions, PruneStats, Pruned, Variable, prune};
use crate::relate::{Candidates, ChoiceRuns, Polygraph};
use crate::report::{CheckError, Decider};
use crate::resolve::{Resolved, VersionId};
use crate::verdict::Proof;
use crate::witness::witness;
use kingsnake_graph::reach::Reach;

/// What is checked, and within which limits.
#[derive(Clone, Copy)]
struct Scene<'a> {
    check: &'a Check<'a>,
    counted: &'a Counted,
    budget: &'a Budget,
}

/// Which uncertain reads the search begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attention {
    /// All of them, so that every order that the answer leaves explains them.
    All,
    /// Those that aggregates count. Only the order that the answer gives explains the others.
    Needed,
}

/// How many reads the first order that does not explain all of them adds; each further one adds four times as many.
const READS: usize = 64;

/// What the search says of the reads that are left.
#[allow(clippy::large_enum_variant)] // There is one at a time.
enum Found {
    Order(Decided),
    /// No order; the reads with several candidates that a core names.
    No(Decider, Vec<usize>),
}

/// Settles a history with uncertain reads, and the aggregates that are counted: a graph whose orders explain it.
pub(crate) fn settle(
    check: &Check<'_>,
    base: &Resolved,
    counted: &Counted,
    attention: Attention,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<Decided, Exit> {
    context.go_on(Phase::Decide);
    expect_taken(backend)?;
    expect_candidates(base)?;
    let (budget, progress) = (context.budget, &mut *context.progress);
    let scene = Scene {
        check,
        counted,
        budget,
    };
    let attempt = match attempt(&scene, base, attention, backend, progress)? {
        Attempt::Order(decided) => return Ok(decided),
        Attempt::No(no) => no,
    };
    backend.conclude();
    let Refutation {
        base,
        state,
        narrowed,
        decider,
    } = *attempt;
    let refuted = match prove::prove(&scene, &base, &state, narrowed, backend) {
        Ok(proof) => Refuted::Proof(decider, proof),
        Err(prove::Failed::NotFound) => Refuted::NoProof(decider),
        Err(prove::Failed::Stop(stop)) => return Err(stop.into()),
    };
    Err(refuted.into())
}

/// How looking for an order ended.
#[allow(clippy::large_enum_variant)] // There is one at a time.
enum Attempt {
    Order(Decided),
    No(Box<Refutation>),
}

/// Why there is no order: what was attended to, and how narrowing it ended.
struct Refutation {
    base: Resolved,
    state: State,
    narrowed: Narrowed,
    decider: Decider,
}

/// Looks for an order that explains all reads; attends to more of them until there is one, or there is none for these.
fn attempt(
    scene: &Scene<'_>,
    base: &Resolved,
    attention: Attention,
    backend: &mut dyn Backend,
    progress: &mut dyn Progress,
) -> Result<Attempt, Stop> {
    let mut attended = match attention {
        Attention::All => (0..base.uncertain().len()).collect(),
        Attention::Needed => missed::needed(scene, base),
    };
    let mut n_more = READS;
    loop {
        let base = base.attending(&attended);
        let mut state = State::new(&base, &attended);
        let narrowed = narrow(scene, &base, &mut state)?;
        let (decider, decided) = match &narrowed {
            Narrowed::Open(pruned, reach) => {
                match search(scene, &base, &state, (pruned, reach), backend, progress)? {
                    Found::Order(decided) => (decided.decider, Some(decided)),
                    Found::No(decider, _) => (decider, None),
                }
            }
            _ => (Decider::Prune, None),
        };
        let Some(decided) = decided else {
            return Ok(Attempt::No(Box::new(Refutation {
                base,
                state,
                narrowed,
                decider,
            })));
        };
        let mut missed = missed::missed(&base, &decided)?;
        if missed.is_empty() {
            return Ok(Attempt::Order(decided));
        }
        missed.truncate(n_more);
        n_more = n_more.saturating_mul(4);
        let n_before = attended.len();
        attended.extend(missed);
        attended.sort_unstable();
        attended.dedup();
        if attended.len() == n_before {
            return Err(phases::cyclic(decider).into());
        }
    }
}

/// Looks for an order of a history with uncertain reads and the aggregates that are counted, without explaining why there is none.
pub(crate) fn find(
    check: &Check<'_>,
    base: &Resolved,
    counted: &Counted,
    backend: &mut dyn Backend,
    budget: &Budget,
) -> Result<Option<Decided>, Stop> {
    let scene = Scene {
        check,
        counted,
        budget,
    };
    let attempt = attempt(&scene, base, Attention::Needed, backend, &mut Silent)?;
    Ok(match attempt {
        Attempt::Order(decided) => Some(decided),
        Attempt::No(_) => None,
    })
}

/// Refuses a back end that states the rules of snapshot isolation: they say nothing of what a read may choose.
fn expect_taken(backend: &dyn Backend) -> Result<(), Stop> {
    let Some(what) = backend.refuses(Origin::Other) else {
        return Ok(());
    };
    let what =
        format!("{what} and cannot decide reads of several possible writers; use another back end");
    let backend = backend.name().to_owned();
    Err(CheckError::from(DecideError { backend, what }).into())
}

/// The graph with a choice for each read that narrowing leaves several candidates: what [`settle`] prunes and asks.
pub(crate) fn pose(
    check: &Check<'_>,
    base: &Resolved,
    counted: &Counted,
    context: &mut Context<'_>,
) -> Result<Polygraph, Exit> {
    context.begin(Phase::Construct)?;
    expect_candidates(base)?;
    let budget = context.budget;
    let scene = Scene {
        check,
        counted,
        budget,
    };
    let all: Vec<usize> = (0..base.uncertain().len()).collect();
    let mut state = State::new(base, &all);
    match narrow(&scene, base, &mut state)? {
        Narrowed::Contradiction(found) => Err(Refuted::Contradiction(Decider::Prune, found).into()),
        Narrowed::Dead(_) | Narrowed::Impossible(_) => Err(Refuted::NoProof(Decider::Prune).into()),
        Narrowed::Open(pruned, reach) => Ok(choices(&scene, base, &state, (&pruned, &reach)).0),
    }
}

/// A read that nothing explains refutes the history.
fn expect_candidates(base: &Resolved) -> Result<(), Exit> {
    let mut uncertain = base.uncertain().iter();
    match uncertain.find(|read| read.candidates.is_empty()) {
        None => Ok(()),
        Some(read) => {
            let proof = Proof::Choice {
                reader: base.txn(read.reader),
                op: None,
                key: read.key,
                cases: Vec::new(),
            };
            Err(Refuted::Proof(Decider::Resolve, proof).into())
        }
    }
}

/// Makes choices of the reads with several candidates; returns the first variable of each as well.
fn choices(
    scene: &Scene<'_>,
    base: &Resolved,
    state: &State,
    (pruned, reach): (&Pruned, &Reach),
) -> (Polygraph, Vec<u32>) {
    let open: Vec<usize> = state.open().collect();
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
    let mut polygraph = pruned.problem.clone();
    let reaches = |from: u32, to: u32| reach.reaches(from, to);
    let mut runs = ChoiceRuns::default();
    let first = reads
        .iter()
        .filter_map(|read| runs.add(&mut polygraph, read, &reaches));
    let first: Vec<u32> = first.collect();
    let of_read = open.iter().copied().zip(first.iter().copied()).collect();
    let history = scene.check.history;
    let counted = scene.counted;
    counted.state(history, &mut polygraph, &state.candidates, &of_read);
    (polygraph, first)
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
    let (polygraph, first) = choices(scene, base, state, (pruned, reach));
    let mut stats = PruneStats::default();
    let (options, budget) = (scene.check.techniques.prune_options(), scene.budget);
    let outcome = prune(polygraph.clone(), options, &mut stats, budget, progress)?;
    let (pruned, decider) = match outcome {
        Outcome::Pruned(pruned) => (pruned, Decider::Prune),
        Outcome::Contradiction(_) => {
            // Which choices are to blame is asked of the back end.
            backend.conclude();
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
        return Ok(found(decider, pruned, Vec::new()));
    }
    if scene.check.techniques.witness
        && let Some(sides) = witness(pruned.question())
    {
        return Ok(found(Decider::Witness, pruned, sides));
    }
    budget.check()?;
    match decide(backend, &pruned, budget, progress)? {
        Decision::Choices(sides) => Ok(found(Decider::Backend, pruned, sides)),
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

fn decide(
    backend: &mut dyn Backend,
    pruned: &Pruned,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Decision, Stop> {
    let decided = backend.decide(pruned.question(), budget, progress);
    let (decision, _) = decided.map_err(CheckError::from)?;
    Ok(decision)
}

/// Sides of the constraints that leave an order.
fn found(decider: Decider, pruned: Pruned, sides: Vec<Side>) -> Found {
    Found::Order(Decided {
        decider,
        pruned,
        sides,
    })
}
