//! Rules out candidates by reachability: a read cannot be of a version that comes after it, nor of one that was overwritten
//! before it. A read with one candidate left is certain, and its edges may rule out more.

use super::results::Counted;
use crate::budget::{Budget, StopReason};
use crate::phases::Check;
use crate::progress::Silent;
use crate::prune::{Contradiction, Outcome, PruneOptions, PruneStats, Pruned, prune};
use crate::relate::{Places, Polygraph, construct};
use crate::resolve::{Resolved, Uncertain, VersionId, Versions};
use kingsnake_graph::reach::Reach;

/// What is checked, and within which limits.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) check: &'a Check<'a>,
    pub(super) counted: &'a Counted,
    pub(super) budget: &'a Budget,
}

/// Rounds after which what is left is left to the search.
const ROUNDS: usize = 16;

/// What is known of the uncertain reads.
#[derive(Clone, Debug)]
pub(super) struct State {
    /// What each can have read; nothing for those that are not attended to.
    pub(super) candidates: Vec<Vec<VersionId>>,
    /// The reads that are taken to be of a version.
    pub(super) taken: Vec<(usize, VersionId)>,
}

impl State {
    /// Nothing is known of the reads that are attended to, and nothing is asked of the others.
    pub(super) fn new(resolved: &Resolved, attended: &[usize]) -> Self {
        let mut candidates = vec![Vec::new(); resolved.uncertain().len()];
        for &read in attended {
            candidates[read].clone_from(&resolved.uncertain()[read].candidates);
        }
        State {
            candidates,
            taken: Vec::new(),
        }
    }

    /// The reads that are to be stated: those with several candidates, and those that rest on whether a transaction took effect.
    pub(super) fn to_state(&self, base: &Resolved) -> Vec<usize> {
        let rests_on_end = |read: usize| {
            let candidates = self.candidates[read].iter();
            let mut writers = candidates.map(|&it| base.versions().writer(it));
            !base.in_doubt().is_empty()
                && (base.is_in_doubt(base.uncertain()[read].reader)
                    || writers.any(|it| base.is_in_doubt(it)))
        };
        let reads = 0..self.candidates.len();
        reads
            .filter(|&read| self.candidates[read].len() > 1 || rests_on_end(read))
            .collect()
    }
}

/// How narrowing ended.
#[allow(clippy::large_enum_variant)] // There is one at a time.
pub(super) enum Narrowed {
    /// The reads that are taken cannot be.
    Contradiction(Contradiction),
    /// A read has no candidate left, or no candidates that are left give an aggregate its result.
    Dead,
    /// The graph of what is taken, which may grow.
    Open(Box<Pruned>),
}

/// Narrows the candidates, and takes reads that have one left. The graph of the certain reads may be there already.
pub(super) fn narrow(
    scene: &Scene<'_>,
    base: &Resolved,
    mut first: Option<Polygraph>,
    state: &mut State,
    stats: &mut PruneStats,
) -> Result<Narrowed, StopReason> {
    for round in 0.. {
        scene.budget.check()?;
        let known = first.take().filter(|_| state.taken.is_empty());
        let polygraph = known.unwrap_or_else(|| related(scene, base, &state.taken));
        let pruned = match pruned(scene, polygraph, stats)? {
            Outcome::Contradiction(found) => return Ok(Narrowed::Contradiction(found)),
            Outcome::Pruned(pruned) => pruned,
        };
        let n_before = state.taken.len();
        if round < ROUNDS
            && let Some(reach) = pruned.reach()
            && !rule_out(scene, base, &pruned, &reach, state)?
        {
            return Ok(Narrowed::Dead);
        }
        if state.taken.len() == n_before {
            return Ok(if are_possible(scene, state)? {
                Narrowed::Open(Box::new(pruned))
            } else {
                Narrowed::Dead
            });
        }
    }
    unreachable!("the last round takes nothing")
}

/// Whether every aggregate can still have its result.
fn are_possible(scene: &Scene<'_>, state: &State) -> Result<bool, StopReason> {
    let mut poll = scene.budget.poll();
    for counting in &scene.counted.all {
        poll.step()?;
        let versions = |row: usize| state.candidates[counting.rows[row].read].as_slice();
        if !counting.is_possible(scene.check.history, versions) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The graph of the history where these reads are of these versions, and nothing is known of the other uncertain reads.
fn related(scene: &Scene<'_>, base: &Resolved, assumed: &[(usize, VersionId)]) -> Polygraph {
    let check = scene.check;
    let shape = check.techniques.shape();
    construct(check.history, base.assuming(assumed), check.spec, shape)
}

fn pruned(
    scene: &Scene<'_>,
    polygraph: Polygraph,
    stats: &mut PruneStats,
) -> Result<Outcome, StopReason> {
    let options = PruneOptions {
        rounds: None,
        estimate: false,
        grows: true,
        ..scene.check.techniques.prune_options()
    };
    prune(polygraph, options, stats, scene.budget, &mut Silent)
}

/// Rules out candidates. Whether every read has one left.
fn rule_out(
    scene: &Scene<'_>,
    base: &Resolved,
    pruned: &Pruned,
    reach: &Reach,
    state: &mut State,
) -> Result<bool, StopReason> {
    let places = pruned.problem.places();
    let State { candidates, taken } = state;
    let mut poll = scene.budget.poll();
    let open = candidates.iter_mut().enumerate();
    for (read, left) in open.filter(|it| it.1.len() > 1) {
        poll.step()?;
        Rules::new(base, places, reach, &base.uncertain()[read]).narrow(left);
        match left.as_slice() {
            [] => return Ok(false),
            &[version] if !base.is_in_doubt(base.versions().writer(version)) => {
                taken.push((read, version));
            }
            _ => {}
        }
    }
    Ok(true)
}

/// The candidates of a read that reachability rules out.
pub(crate) fn impossible_sources(
    base: &Resolved,
    places: &Places,
    reach: &Reach,
    read: &Uncertain,
) -> Vec<VersionId> {
    let mut left = read.candidates.clone();
    Rules::new(base, places, reach, read).narrow(&mut left);
    let all = read.candidates.iter().copied();
    all.filter(|it| !left.contains(it)).collect()
}

/// What rules out candidates of a read.
pub(super) struct Rules<'a> {
    base: &'a Resolved,
    versions: &'a Versions,
    places: &'a Places,
    reach: &'a Reach,
    read: &'a Uncertain,
}

impl<'a> Rules<'a> {
    pub(super) fn new(
        base: &'a Resolved,
        places: &'a Places,
        reach: &'a Reach,
        read: &'a Uncertain,
    ) -> Self {
        Rules {
            base,
            versions: base.versions(),
            places,
            reach,
            read,
        }
    }

    /// Leaves the candidates that can have been read.
    pub(super) fn narrow(&self, candidates: &mut Vec<VersionId>) {
        let (versions, places) = (self.versions, self.places);
        let reader = self.read.reader;
        let snap = places.snap(reader);
        candidates.retain(|&version| {
            versions.is_initial(version) || {
                let commit = places.commit(versions.writer(version));
                !self.reach.reaches(snap, commit)
            }
        });
        if !places.reads_newest(reader) {
            return;
        }
        // The versions that are there when the transaction reads.
        let there: Vec<VersionId> = versions
            .of_key(self.read.key)
            .skip(1)
            .map(VersionId)
            .filter(|&version| {
                let writer = versions.writer(version);
                writer != reader
                    && !self.base.is_in_doubt(writer)
                    && self.reach.reaches(places.commit(writer), snap)
            })
            .collect();
        candidates.retain(|&version| !there.iter().any(|&other| self.precedes(version, other)));
    }

    /// Whether one version is known to come before another.
    fn precedes(&self, version: VersionId, other: VersionId) -> bool {
        if version == other {
            return false;
        }
        let versions = self.versions;
        versions.is_initial(version) || {
            let from = self.places.commit(versions.writer(version));
            let to = self.places.install(versions.writer(other));
            self.reach.reaches(from, to)
        }
    }
}
