//! One question with a fixed set of uncertain reads and aggregates, all of them stated: what `export` writes.

use super::reads::Reads;
use super::results::{Counted, all as all_aggregates};
use super::{Lemma, absent, expect_candidates, has_aggregates};
use crate::budget::Budget;
use crate::context::Context;
use crate::phases::{Check, Exit, Refuted, Stop};
use crate::progress::Phase;
use crate::prune::{PruneStats, Pruned};
use crate::relate::{Candidates, ChoiceRuns, Polygraph};
use crate::report::Decider;
use crate::resolve::{Resolved, VersionId};
use crate::sight::{self, Impossible};
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

/// The graph with a choice for each read that narrowing leaves several candidates: everything that the loop may ask.
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
    let open = base.uncertain().iter().enumerate();
    let open = open.filter(|it| it.1.candidates.len() > 1 || base.is_in_doubt(it.1.reader));
    let open: Vec<usize> = open.map(|it| it.0).collect();
    let (asked, stats) = ((open.as_slice(), counted), &mut PruneStats::default());
    match sight::narrowed(check, (base, None), asked, stats, budget)? {
        Err(Impossible::Contradiction(found)) => {
            Err(Refuted::Contradiction(Decider::Prune, *found).into())
        }
        Err(Impossible::Dead) => Err(Refuted::NoProof(Decider::Prune).into()),
        Ok(left) => {
            let mut candidates = vec![Vec::new(); base.uncertain().len()];
            for (read, left) in open.into_iter().zip(left.candidates) {
                candidates[read] = left;
            }
            Ok(choices(check, base, counted, &candidates, &left.pruned))
        }
    }
}

/// The reads that are to be stated: those with several candidates, and those that rest on whether a transaction took effect.
fn to_state(base: &Resolved, candidates: &[Vec<VersionId>]) -> Vec<usize> {
    let rests_on_end = |read: usize| {
        let mut writers = candidates[read]
            .iter()
            .map(|&it| base.versions().writer(it));
        !base.in_doubt().is_empty()
            && (base.is_in_doubt(base.uncertain()[read].reader)
                || writers.any(|it| base.is_in_doubt(it)))
    };
    let reads = 0..candidates.len();
    reads
        .filter(|&read| candidates[read].len() > 1 || rests_on_end(read))
        .collect()
}

/// Makes choices of the reads that are to be stated.
fn choices(
    check: &Check<'_>,
    base: &Resolved,
    counted: &Counted,
    left: &[Vec<VersionId>],
    pruned: &Pruned,
) -> Polygraph {
    let open = to_state(base, left);
    let differ = open
        .iter()
        .map(|&read| move |one: VersionId, other: VersionId| counted.differ(read, one, other));
    let differ: Vec<_> = differ.collect();
    let reads: Vec<Candidates<'_>> = open
        .iter()
        .zip(&differ)
        .map(|(&read, differ)| Candidates {
            reader: base.uncertain()[read].reader,
            key: base.uncertain()[read].key,
            acceptable: &base.uncertain()[read].candidates,
            open: &left[read],
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
    counted.state(check.history, logic, left, &first);
    polygraph
}
