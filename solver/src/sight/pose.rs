//! States the reads that are attended to as choices, what they imply, the aggregates and the lemmas; and asks which of them are to blame.

use rustc_hash::{FxHashMap, FxHashSet};

#[cfg(test)]
use super::Skipped;
use super::causal::CausalLemma;
use super::narrow::{Graph, State, sight_reads};
use super::{Scene, Taken};
use crate::budget::StopReason;
use crate::context::Context;
use crate::decide::{Backend, Decision};
use crate::phases::Stop;
use crate::progress::Silent;
use crate::prune::{Outcome, PruneOptions, PruneStats, Pruned, Variable, prune};
use crate::psi::{self, ReadChoice, ReadChoices};
use crate::relate::{
    Candidates, ChoiceRuns, Edge, Implied, Listed, Polygraph, Reason, each_sight, reasons,
};
use crate::report::CheckError;
use crate::resolve::{NO_NODE, Node, VersionId};
use crate::solve;
use kingsnake_graph::reach::Reach;
use kingsnake_graph::{Literal, Logic};

/// An order, and the choices that it rests on.
pub(super) struct FoundOrder {
    /// Where each node is.
    pub(super) place: Vec<u32>,
    /// Which candidates of the open reads that are attended to hold.
    pub(super) holds: FxHashSet<Taken>,
}

/// The question, and the first variable of each open read that is attended to.
pub(super) struct Posed {
    pub(super) polygraph: Polygraph,
    pub(super) first: FxHashMap<usize, u32>,
}

impl Posed {
    fn literal(&self, state: &State, taken: Taken) -> Option<Literal> {
        literal_of(&self.first, state, taken)
    }
}

/// The literal of a candidate of a read that is open, given the first variable of each.
pub(super) fn literal_of(
    first: &FxHashMap<usize, u32>,
    state: &State,
    (read, version): Taken,
) -> Option<Literal> {
    let first = first.get(&read)?;
    let at = state.candidates[read].binary_search(&version).ok()?;
    Some(Literal::Variable(first + at as u32, true))
}

/// Makes choices of the reads with several candidates.
pub(super) fn pose(
    scene: &Scene<'_>,
    state: &State,
    pruned: &Pruned,
    lemmas: &[CausalLemma],
) -> Result<Posed, StopReason> {
    let reach = pruned.reach().expect("a question that grows keeps paths");
    let reach = &*reach;
    let open: Vec<usize> = state.open().collect();
    let mut counted: FxHashMap<usize, Vec<(usize, usize)>> = FxHashMap::default();
    for (at, counting) in scene.aggregates.iter().enumerate() {
        for (row, it) in counting.rows.iter().enumerate() {
            counted.entry(it.read).or_default().push((at, row));
        }
    }
    let differ = open.iter().map(|&read| {
        let rows = counted.get(&read);
        move |one: VersionId, other: VersionId| {
            let mut rows = rows.into_iter().flatten();
            scene.has_causal
                || rows.any(|&(at, row)| {
                    let row = &scene.aggregates[at].rows[row];
                    row.row.cell(one) != row.row.cell(other)
                })
        }
    });
    let differ: Vec<_> = differ.collect();
    let mut polygraph = pruned.problem.clone();
    let reaches = |from: u32, to: u32| reach.reaches(from, to);
    let mut runs = ChoiceRuns::default();
    let mut first: FxHashMap<usize, u32> = FxHashMap::default();
    for (&read, differ) in open.iter().zip(&differ) {
        let it = &scene.reads[read];
        if !scene.places.reads_newest(it.reader) {
            let candidates = &state.candidates[read];
            let variable = add_sources(&mut polygraph, it.reader, candidates, &reaches);
            first.insert(read, variable);
            continue;
        }
        let candidates = Candidates {
            reader: it.reader,
            key: it.key,
            acceptable: &it.candidates,
            open: &state.candidates[read],
            differ,
        };
        let variable = runs.add(&mut polygraph, &candidates, &reaches);
        first.extend(variable.map(|variable| (read, variable)));
    }
    let mut posed = Posed { polygraph, first };
    state_sights(scene, state, reach, &open, &mut posed)?;
    let mut logic = std::mem::take(&mut posed.polygraph.problem_mut().logic);
    let literal = |it: Taken| posed.literal(state, it);
    state_aggregates(scene, state, &posed.first, &mut logic);
    state_lemmas(scene, state, lemmas, &literal, &mut logic);
    posed.polygraph.problem_mut().logic = logic;
    Ok(posed)
}

/// A choice of the transaction that a weak one read from; returns its first variable.
fn add_sources(
    polygraph: &mut Polygraph,
    reader: Node,
    candidates: &[VersionId],
    reaches: &dyn Fn(u32, u32) -> bool,
) -> u32 {
    let to = polygraph.places().commit(reader);
    let writers = candidates.iter().map(|&version| {
        let versions = polygraph.resolved().versions();
        let writer = versions.writer(version);
        (!versions.is_initial(version)).then(|| polygraph.places().commit(writer))
    });
    let writers: Vec<Option<u32>> = writers.collect();
    let logic = &mut polygraph.problem_mut().logic;
    let first = logic.choice(candidates.len());
    for ((from, &version), variable) in writers.into_iter().zip(candidates).zip(first..) {
        if let Some(from) = from.filter(|&from| !reaches(from, to)) {
            let reason = reasons::wr(version);
            logic.guard(
                Edge { from, to, reason },
                &[Literal::Variable(variable, true)],
            );
        }
    }
    first
}

/// The literal of a candidate of a read that is open.
pub(super) type LiteralOf<'l> = dyn Fn(Taken) -> Option<Literal> + 'l;

/// States the aggregates all of whose rows are attended to.
fn state_aggregates(
    scene: &Scene<'_>,
    state: &State,
    first: &FxHashMap<usize, u32>,
    logic: &mut Logic,
) {
    let left = |read: usize| state.candidates[read].as_slice();
    let first = |read: usize| first.get(&read).copied();
    for counting in &scene.aggregates {
        if counting.rows.iter().all(|it| state.attends(it.read)) {
            counting.state(scene.check.history, logic, left, first);
            for refused in &counting.refused {
                counting.forbid(logic, refused, left, first);
            }
        }
    }
}

/// States what weak readers see.
fn state_sights(
    scene: &Scene<'_>,
    state: &State,
    reach: &Reach,
    open: &[usize],
    posed: &mut Posed,
) -> Result<(), StopReason> {
    let readers = open.iter().map(|&read| scene.reads[read].reader);
    let mut readers: Vec<Node> = readers.filter(|&it| scene.model(it).is_weak()).collect();
    readers.sort_unstable();
    readers.dedup();
    let mut logic = std::mem::take(&mut posed.polygraph.problem_mut().logic);
    let mut poll = scene.budget.poll();
    for reader in readers {
        poll.step()?;
        let reads = sight_reads(scene, state, reader);
        let history = (scene.base, &scene.written);
        let own = (reader, scene.model(reader));
        let session_order = scene.check.spec.session_order;
        let mut said: FxHashSet<Implied<Taken>> = FxHashSet::default();
        each_sight(history, own, session_order, &reads, Listed::All, |it| {
            if !said.insert(it) {
                return;
            }
            #[cfg(test)]
            match scene.skipped {
                Skipped::Edges if it.before != NO_NODE => return,
                Skipped::Clauses if it.before == NO_NODE => return,
                _ => {}
            }
            let literals = it.marks.into_iter().flatten();
            let literals = literals.filter_map(|it| posed.literal(state, it));
            let guard: Vec<Literal> = literals.collect();
            let to = it.before;
            if to == NO_NODE {
                let negated: Vec<Literal> = guard.iter().map(|&it| !it).collect();
                logic.clause(&negated);
                return;
            }
            let edge = commits(scene, it.seen, to);
            if !reach.reaches(edge.from, edge.to) {
                logic.guard(edge, &guard);
            }
        });
    }
    posed.polygraph.problem_mut().logic = logic;
    Ok(())
}

fn commits(scene: &Scene<'_>, from: Node, to: Node) -> Edge {
    Edge {
        from: scene.places.commit(from),
        to: scene.places.commit(to),
        reason: Reason::NONE,
    }
}

impl CausalLemma {
    /// What is added to the question; nothing where a read that the lemma rests on is of another version.
    pub(super) fn stated(
        &self,
        scene: &Scene<'_>,
        state: &State,
        literal: &LiteralOf<'_>,
    ) -> Option<solve::Lemma> {
        let mut guard: Vec<Literal> = Vec::new();
        for &(read, version) in &self.guard {
            match literal((read, version)) {
                Some(literal) => guard.push(literal),
                None if state.version(read) == Some(version) => {}
                None => return None,
            }
        }
        Some(match self.commits {
            Some((from, to)) => solve::Lemma::Guarded(commits(scene, from, to), guard),
            None => solve::Lemma::Conflict(guard),
        })
    }
}

/// States what was learned.
fn state_lemmas(
    scene: &Scene<'_>,
    state: &State,
    lemmas: &[CausalLemma],
    literal: &LiteralOf<'_>,
    logic: &mut Logic,
) {
    let stated = lemmas.iter();
    for lemma in stated.filter_map(|it| it.stated(scene, state, literal)) {
        match lemma {
            solve::Lemma::Guarded(edge, guard) => logic.guard(edge, &guard),
            solve::Lemma::Conflict(guard) => {
                let negated: Vec<Literal> = guard.iter().map(|&it| !it).collect();
                logic.clause(&negated);
            }
            _ => unreachable!("a lemma about reads is one of the two"),
        }
    }
}

/// Asks a back end which of the open reads are to blame that there is no order; `None` if there is one.
pub(super) fn blamed(
    scene: &Scene<'_>,
    state: &State,
    graph: &Graph,
    lemmas: &[CausalLemma],
    backend: &mut dyn Backend,
) -> Result<Option<Vec<usize>>, Stop> {
    let (budget, mut silent) = (&scene.budget, Silent);
    let pruned = match graph {
        Graph::Plain(pruned) => pruned,
        Graph::Parallel(polygraph, _) => {
            let mut context = Context::new(budget, &mut silent);
            let asked = ask_parallel(scene, state, polygraph, lemmas, backend, &mut context)?;
            return Ok(match asked {
                psi::FoundForks::Order(..) => None,
                psi::FoundForks::No(blamed) => {
                    let open: Vec<usize> = state.open().collect();
                    Some(blamed.choices.into_iter().map(|it| open[it]).collect())
                }
            });
        }
    };
    let Posed { polygraph, first } = pose(scene, state, pruned, lemmas)?;
    let mut stats = PruneStats::default();
    let options = scene.check.techniques.prune_options();
    let mut outcome = prune(polygraph.clone(), options, &mut stats, budget, &mut silent)?;
    if let Outcome::Contradiction(_) = outcome {
        // Which choices are to blame is asked of the back end.
        let options = PruneOptions {
            rounds: Some(0),
            ..options
        };
        outcome = prune(polygraph, options, &mut stats, budget, &mut silent)?;
    }
    let Outcome::Pruned(pruned) = outcome else {
        return Ok(Some(Vec::new()));
    };
    if pruned.constraints.is_empty() {
        return Ok(None);
    }
    let decided = backend.decide(pruned.question(), budget, &mut silent);
    match decided.map_err(CheckError::from)?.0 {
        Decision::Choices(_) => Ok(None),
        Decision::Core(core) => {
            let is_blamed = |variable: u32| match pruned.variables[variable as usize] {
                Variable::Open(constraint) => core.contains(&constraint),
                Variable::Settled(_) => false,
            };
            let blamed = first.iter().filter(|&(&read, &first)| {
                let n = state.candidates[read].len() as u32;
                (first..first + n).any(is_blamed)
            });
            Ok(Some(blamed.map(|it| *it.0).collect()))
        }
        Decision::Unknown(reason) => Err(Stop::Budget(reason)),
    }
}

/// Asks for an order at parallel snapshot isolation.
pub(super) fn ask_parallel(
    scene: &Scene<'_>,
    state: &State,
    polygraph: &Polygraph,
    lemmas: &[CausalLemma],
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<psi::FoundForks, Stop> {
    let open: Vec<usize> = state.open().collect();
    let clauses = |logic: &mut Logic, first: &[u32]| {
        let first: FxHashMap<usize, u32> =
            open.iter().copied().zip(first.iter().copied()).collect();
        let literal = |it: Taken| literal_of(&first, state, it);
        state_aggregates(scene, state, &first, logic);
        state_lemmas(scene, state, lemmas, &literal, logic);
    };
    let reads = open.iter().map(|&read| ReadChoice {
        reader: scene.reads[read].reader,
        candidates: state.candidates[read].clone(),
    });
    let choices = ReadChoices {
        reads: reads.collect(),
        clauses: Some(&clauses),
    };
    let mut own = Context::new(&scene.budget, &mut *context.progress);
    own.stats.decide = context.stats.decide.take();
    let asked = psi::ask(scene.check, polygraph, &choices, backend, &mut own);
    context.stats.decide = own.finish().decide;
    asked
}
