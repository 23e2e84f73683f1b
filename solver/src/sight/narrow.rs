//! Rules out candidates by reachability: a read cannot be of a version that comes after it, nor of one that what it surely sees comes after.
//! A read with one candidate left is certain, and its edges may rule out more.

use rustc_hash::FxHashSet;

use super::{Scene, Taken};
use crate::budget::{Budget, StopReason};
use crate::level::Model;
use crate::model::KeyId;
use crate::phases::Check;
use crate::progress::Silent;
use crate::prune::{Contradiction, Outcome, PruneOptions, PruneStats, Pruned, prune};
use crate::psi;
use crate::relate::{Edge, Listed, Polygraph, SightRead, construct_within, each_sight, reasons};
use crate::resolve::{NO_NODE, Node, TakenReads, VersionId};
use crate::solve::{impossible_sources, newest};
use kingsnake_graph::reach::{Dag, Reach};

/// Number of rounds; the search handles what is left.
const ROUNDS: usize = 16;

/// The state of the open reads.
#[derive(Clone)]
pub(super) struct State {
    /// The candidates of each; empty for those not attended to.
    pub(super) candidates: Vec<Vec<VersionId>>,
    pub(super) taken: Vec<Taken>,
}

impl State {
    /// Nothing is known of the reads that are attended to but of those that have one candidate, and nothing is asked of the others.
    pub(super) fn new(scene: &Scene<'_>, attended: &[usize]) -> Self {
        let mut candidates = vec![Vec::new(); scene.reads.len()];
        let mut taken = Vec::new();
        for (at, read) in scene.reads.iter().enumerate() {
            let is_sure = !scene.base.is_in_doubt(read.reader);
            if let &[version] = read.candidates.as_slice()
                && is_sure
            {
                taken.push((at, version));
                candidates[at] = vec![version];
            }
        }
        for &at in attended {
            candidates[at].clone_from(&scene.reads[at].candidates);
        }
        State { candidates, taken }
    }

    /// Takes a read to be of a version.
    pub(super) fn take(&mut self, read: usize, version: VersionId) {
        self.candidates[read] = vec![version];
        self.taken.push((read, version));
    }

    /// Whether a read is attended to.
    pub(super) fn attends(&self, read: usize) -> bool {
        !self.candidates[read].is_empty()
    }

    /// The reads with several candidates.
    pub(super) fn open(&self) -> impl Iterator<Item = usize> + '_ {
        let reads = 0..self.candidates.len();
        reads.filter(|&read| self.candidates[read].len() > 1)
    }

    /// The version of a read that is taken.
    pub(super) fn version(&self, read: usize) -> Option<VersionId> {
        match self.candidates[read].as_slice() {
            &[version] => Some(version),
            _ => None,
        }
    }
}

/// The graph of what is taken.
#[allow(clippy::large_enum_variant)] // There is one at a time.
pub(super) enum Graph {
    Plain(Pruned),
    /// At parallel snapshot isolation, with reachability by what happened before.
    Parallel(Polygraph, Reach),
}

/// Why there is no such graph.
#[allow(clippy::large_enum_variant)] // There is one at a time.
pub(super) enum Contradicted {
    Plain(Contradiction),
    Parallel(Polygraph),
}

/// How narrowing ended.
#[allow(clippy::large_enum_variant)] // There is one at a time.
pub(super) enum Narrowed {
    /// The reads that are taken cannot be.
    Contradiction(Contradicted),
    /// A read has no candidate left.
    Dead(usize),
    /// No candidates that are left give an aggregate its result, by its place.
    Impossible(usize),
    Open(Graph),
}

/// Narrows the candidates, and takes reads that have one left.
pub(super) fn narrow(scene: &Scene<'_>, state: &mut State) -> Result<Narrowed, StopReason> {
    narrow_from(scene, None, state, &mut PruneStats::default())
}

/// The same where the graph of the certain reads may be there already.
pub(super) fn narrow_from(
    scene: &Scene<'_>,
    mut first: Option<Polygraph>,
    state: &mut State,
    stats: &mut PruneStats,
) -> Result<Narrowed, StopReason> {
    for round in 0.. {
        scene.budget.check()?;
        let found = match first.take().filter(|_| state.taken.is_empty()) {
            Some(polygraph) => pruned(scene.check, polygraph, stats, &scene.budget)?,
            None => graph(scene, &state.taken, stats)?,
        };
        let graph = match found {
            Err(found) => return Ok(Narrowed::Contradiction(found)),
            Ok(graph) => graph,
        };
        let grown;
        let reach = match &graph {
            Graph::Parallel(_, reach) => reach,
            Graph::Plain(pruned) => {
                grown = pruned.reach().expect("a question that grows keeps paths");
                &*grown
            }
        };
        let n_before = state.taken.len();
        if round < ROUNDS && state.open().next().is_some() {
            let ruled_out = ruled_out(scene, &graph, reach, state)?;
            for &(read, version) in &ruled_out {
                state.candidates[read].retain(|&it| it != version);
            }
            let mut narrowed: Vec<usize> = ruled_out.iter().map(|it| it.0).collect();
            narrowed.sort_unstable();
            narrowed.dedup();
            let n_cases = |read: &usize| scene.reads[*read].candidates.len();
            let dead = narrowed.iter().copied();
            let dead = dead.filter(|&it| state.candidates[it].is_empty());
            if let Some(dead) = dead.min_by_key(n_cases) {
                return Ok(Narrowed::Dead(dead));
            }
            for read in narrowed {
                let in_doubt = |node: Node| scene.base.is_in_doubt(node);
                if let Some(version) = state.version(read)
                    && !in_doubt(scene.reads[read].reader)
                    && !in_doubt(scene.base.versions().writer(version))
                {
                    state.taken.push((read, version));
                }
            }
        }
        if state.taken.len() == n_before {
            if let Some(at) = impossible(scene, state)? {
                return Ok(Narrowed::Impossible(at));
            }
            return Ok(Narrowed::Open(graph));
        }
    }
    unreachable!("the last round takes nothing")
}

/// An aggregate that can no longer have its result. One of whose rows not all are attended to can.
fn impossible(scene: &Scene<'_>, state: &State) -> Result<Option<usize>, StopReason> {
    let mut poll = scene.budget.poll();
    for (at, counting) in scene.aggregates.iter().enumerate() {
        poll.step()?;
        let is_attended = counting.rows.iter().all(|it| state.attends(it.read));
        let versions = |read: usize| state.candidates[read].as_slice();
        if is_attended && !counting.is_possible(scene.check.history, versions) {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// The graph of the history where these reads are of these versions, and nothing is known of the other open reads.
pub(super) fn graph(
    scene: &Scene<'_>,
    taken: &[Taken],
    stats: &mut PruneStats,
) -> Result<Result<Graph, Contradicted>, StopReason> {
    let mut reads = TakenReads {
        loose: scene.loose.clone(),
        ..TakenReads::default()
    };
    for &(at, version) in taken {
        let read = &scene.reads[at];
        let program = read.reads.iter().map(|&it| (it, version));
        reads.program.extend(program);
        if read.op.is_none() && read.known.is_none() {
            reads.first.push((version, read.reader));
        }
    }
    let check = scene.check;
    let resolved = scene.base.taking(reads, Vec::new());
    let (history, shape) = (check.history, check.techniques.shape());
    let polygraph = construct_within(history, resolved, check.spec, shape, &scene.budget)?;
    if check.spec.model == Model::Psi {
        return Ok(match psi::reach(&polygraph, &scene.budget)? {
            Some(reach) => Ok(Graph::Parallel(polygraph, reach)),
            None => Err(Contradicted::Parallel(polygraph)),
        });
    }
    pruned(check, polygraph, stats, &scene.budget)
}

pub(super) fn pruned(
    check: &Check<'_>,
    polygraph: Polygraph,
    stats: &mut PruneStats,
    budget: &Budget,
) -> Result<Result<Graph, Contradicted>, StopReason> {
    let options = PruneOptions {
        rounds: None,
        estimate: false,
        grows: true,
        ..check.techniques.prune_options()
    };
    let outcome = prune(polygraph, options, stats, budget, &mut Silent)?;
    Ok(match outcome {
        Outcome::Pruned(pruned) => Ok(Graph::Plain(pruned)),
        Outcome::Contradiction(found) => Err(Contradicted::Plain(found)),
    })
}

/// The candidates that cannot be.
fn ruled_out(
    scene: &Scene<'_>,
    graph: &Graph,
    reach: &Reach,
    state: &State,
) -> Result<Vec<Taken>, StopReason> {
    let (versions, places) = (scene.base.versions(), &scene.places);
    let mut out: FxHashSet<Taken> = FxHashSet::default();
    let past = match graph {
        Graph::Plain(pruned) if scene.has_causal => Some(happened_before(scene, pruned)?),
        _ => None,
    };
    let mut poll = scene.budget.poll();
    let mut weak: Vec<Node> = Vec::new();
    for read in state.open() {
        poll.step()?;
        let open = &scene.reads[read];
        let mut uncertain = open.uncertain();
        uncertain.candidates.clone_from(&state.candidates[read]);
        let impossible = impossible_sources(scene.base, places, reach, &uncertain);
        out.extend(impossible.into_iter().map(|it| (read, it)));
        let reader = open.reader;
        if !scene.model(reader).is_weak() {
            continue;
        }
        if weak.last() != Some(&reader) {
            weak.push(reader);
        }
        if scene.model(reader) == Model::Cc
            && let Some(past) = &past
        {
            let commit = places.commit(reader);
            let writers = versions.of_key(open.key).skip(1);
            let writers = writers.map(|it| versions.writer(VersionId(it)));
            let seen =
                writers.filter(|&it| it != reader && past.reaches(places.commit(it), commit));
            let seen = seen.map(|it| places.commit(it));
            for seen in newest(seen, |one, other| reach.reaches(one, other)) {
                let is_out = |&version: &VersionId| {
                    versions.is_initial(version)
                        || reach.reaches(places.commit(versions.writer(version)), seen)
                };
                let candidates = state.candidates[read].iter().copied();
                out.extend(candidates.filter(is_out).map(|it| (read, it)));
            }
        }
    }
    weak.sort_unstable();
    weak.dedup();
    for reader in weak {
        poll.step()?;
        let reads = sight_reads(scene, state, reader);
        let history = (scene.base, &scene.written);
        let own = (reader, scene.model(reader));
        let session_order = scene.check.spec.session_order;
        each_sight(history, own, session_order, &reads, Listed::Single, |it| {
            let commit = |node: Node| places.commit(node);
            let is_out = it.before == NO_NODE || reach.reaches(commit(it.before), commit(it.seen));
            if is_out {
                out.extend(it.marks.into_iter().flatten());
            }
        });
    }
    let mut out: Vec<Taken> = out.into_iter().collect();
    out.sort_unstable();
    Ok(out)
}

/// The reads of a weak transaction that are certain or attended to, in program order; those with several candidates are marked.
pub(super) fn sight_reads(scene: &Scene<'_>, state: &State, reader: Node) -> Vec<SightRead<Taken>> {
    let program = scene.base.reads();
    let may_differ = scene.model(reader).reads_may_differ();
    let mut keys: FxHashSet<KeyId> = FxHashSet::default();
    let mut reads = Vec::new();
    for read in program.of(reader) {
        let version = program.version(read);
        let key = scene.base.versions().key(version);
        if !may_differ && keys.contains(&key) {
            continue;
        }
        let sources = match scene.open_of.get(&read) {
            None => vec![(version, None)],
            Some(&open) => match state.candidates[open].as_slice() {
                [] => continue,
                &[version] => vec![(version, None)],
                several => {
                    let marked = several.iter().map(|&it| (it, Some((open, it))));
                    marked.collect()
                }
            },
        };
        keys.insert(key);
        reads.push(SightRead {
            statement: program.statement(read),
            key,
            sources,
        });
    }
    reads
}

/// Reachability by session order and what was read alone.
fn happened_before(scene: &Scene<'_>, pruned: &Pruned) -> Result<Reach, StopReason> {
    let polygraph = &pruned.problem;
    let is_of = |edge: &&Edge| {
        edge.reason == reasons::BEGIN
            || edge.reason == reasons::SESSION
            || reasons::is_wr(edge.reason)
    };
    let edges = polygraph.edges().iter().filter(is_of);
    let n_nodes = polygraph.n_nodes();
    let dag = Dag::new(n_nodes, edges).expect("a part of a graph without cycles has none");
    Reach::new(&dag, &polygraph.problem().chains, &scene.budget)
}
