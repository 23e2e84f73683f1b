//! States the reads that are attended to as choices, what they imply, the aggregates and the lemmas, and asks for an order.

use rustc_hash::{FxHashMap, FxHashSet};

#[cfg(test)]
use super::Skipped;
use super::causal::Lemma;
use super::narrow::{Graph, State, sight_reads};
use super::{Scene, Taken};
use crate::budget::StopReason;
use crate::context::Context;
use crate::decide::{Backend, Decision, Side};
use crate::phases::Stop;
use crate::prune::{Outcome, PruneOptions, PruneStats, Pruned, Variable, prune};
use crate::psi::{self, ReadChoice, ReadChoices};
use crate::relate::{
    Candidates, ChoiceRuns, Edge, Implied, Listed, Polygraph, Reason, each_sight, reasons,
};
use crate::report::{CheckError, Decider};
use crate::resolve::{NO_NODE, Node, VersionId};
use crate::verdict::Point;
use crate::witness::witness;
use kingsnake_graph::reach::{Reach, places};
use kingsnake_graph::{Literal, Logic};

/// What the search says of the reads that are left.
#[allow(clippy::large_enum_variant)] // There is one at a time.
pub(super) enum Found {
    Order(FoundOrder),
    /// No order; the reads with several candidates that a core names.
    No(Vec<usize>),
}

/// An order, and the choices that it rests on.
pub(super) struct FoundOrder {
    pub(super) decider: Decider,
    /// The points.
    pub(super) order: Vec<Point>,
    /// Where each node is.
    pub(super) place: Vec<u32>,
    /// Which candidates of the open reads that are attended to hold.
    pub(super) holds: FxHashSet<Taken>,
}

/// The question, and the first variable of each open read that is attended to.
struct Posed {
    polygraph: Polygraph,
    first: FxHashMap<usize, u32>,
}

impl Posed {
    fn literal(&self, state: &State, (read, version): Taken) -> Option<Literal> {
        let first = self.first.get(&read)?;
        let at = state.candidates[read].binary_search(&version).ok()?;
        Some(Literal::Variable(first + at as u32, true))
    }
}

/// Makes choices of the reads with several candidates.
fn pose(
    scene: &Scene<'_>,
    state: &State,
    (pruned, reach): (&Pruned, &Reach),
    lemmas: &[Lemma],
) -> Result<Posed, StopReason> {
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
                    row.cell(one) != row.cell(other)
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
    state_aggregates(scene, state, &literal, &mut logic);
    for lemma in lemmas {
        state_lemma(scene, state, lemma, &literal, &mut logic);
    }
    posed.polygraph.problem_mut().logic = logic;
    Ok(posed)
}

/// A choice of whom a weak transaction read from; returns its first variable.
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
type LiteralOf<'l> = dyn Fn(Taken) -> Option<Literal> + 'l;

/// States the aggregates all of whose rows are attended to.
fn state_aggregates(scene: &Scene<'_>, state: &State, literal: &LiteralOf<'_>, logic: &mut Logic) {
    for counting in &scene.aggregates {
        if counting.rows.iter().all(|it| state.attends(it.read)) {
            let candidates = |read: usize| state.candidates[read].as_slice();
            counting.state(scene.check.history, candidates, literal, logic);
        }
    }
}

impl Scene<'_> {
    /// Where a node is likely to come; a helper comes as soon as it can.
    fn rank(&self, polygraph: &Polygraph, node: u32) -> u64 {
        let txn = polygraph.transaction(node);
        txn.map_or(0, |it| self.ranks.of[it as usize])
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

/// States a lemma, unless a read that it rests on is of another version.
fn state_lemma(
    scene: &Scene<'_>,
    state: &State,
    lemma: &Lemma,
    literal: &LiteralOf<'_>,
    logic: &mut Logic,
) {
    let mut guard: Vec<Literal> = Vec::new();
    for &(read, version) in &lemma.guard {
        match literal((read, version)) {
            Some(literal) => guard.push(literal),
            None if state.version(read) == Some(version) => {}
            None => return,
        }
    }
    if let Some((from, to)) = lemma.commits {
        logic.guard(commits(scene, from, to), &guard);
    } else {
        let negated: Vec<Literal> = guard.iter().map(|&it| !it).collect();
        logic.clause(&negated);
    }
}

/// Makes choices of the reads with several candidates, and settles them.
pub(super) fn search(
    scene: &Scene<'_>,
    state: &State,
    graph: &Graph,
    lemmas: &[Lemma],
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<Found, Stop> {
    let pruned = match graph {
        Graph::Plain(pruned) => pruned,
        Graph::Parallel(polygraph, _) => {
            return search_parallel(scene, state, polygraph, lemmas, backend, context);
        }
    };
    let chains = &pruned.problem.problem().chains;
    let reach = Reach::new(&pruned.dag, chains, &scene.budget)?;
    let posed = pose(scene, state, (pruned, &reach), lemmas)?;
    let mut stats = PruneStats::default();
    let (budget, progress) = (&scene.budget, &mut *context.progress);
    let options = scene.check.techniques.prune_options();
    let polygraph = posed.polygraph.clone();
    let outcome = prune(polygraph, options, &mut stats, budget, progress)?;
    let (pruned, decider) = match outcome {
        Outcome::Pruned(pruned) => (pruned, Decider::Prune),
        Outcome::Contradiction(_) => {
            // Which choices are to blame is asked of the back end.
            backend.conclude();
            let options = PruneOptions {
                rounds: Some(0),
                ..options
            };
            match prune(
                posed.polygraph.clone(),
                options,
                &mut stats,
                budget,
                progress,
            )? {
                Outcome::Pruned(pruned) => (pruned, Decider::Backend),
                Outcome::Contradiction(_) => return Ok(Found::No(Vec::new())),
            }
        }
    };
    if pruned.constraints.is_empty() {
        return found(scene, state, &posed, decider, &pruned, &[]);
    }
    let mut pruned = pruned;
    if scene.ranks.are_recorded && scene.check.techniques.estimate {
        let problem = &pruned.problem;
        let likely = pruned.dag.order_by(|node| scene.rank(problem, node));
        pruned.estimate = places(&likely).into_iter().map(|it| it as f32).collect();
    }
    if scene.check.techniques.witness
        && let Some(sides) = witness(pruned.question())
    {
        return found(scene, state, &posed, Decider::Witness, &pruned, &sides);
    }
    budget.check()?;
    let decided = backend.decide(pruned.question(), budget, progress);
    let (decision, stats) = decided.map_err(CheckError::from)?;
    context.stats.decide = Some(stats);
    match decision {
        Decision::Choices(sides) => found(scene, state, &posed, Decider::Backend, &pruned, &sides),
        Decision::Core(core) => {
            let is_blamed = |variable: u32| match pruned.variables[variable as usize] {
                Variable::Open(constraint) => core.contains(&constraint),
                Variable::Settled(_) => false,
            };
            let blamed = posed.first.iter().filter(|&(&read, &first)| {
                let n = state.candidates[read].len() as u32;
                (first..first + n).any(is_blamed)
            });
            Ok(Found::No(blamed.map(|it| *it.0).collect()))
        }
        Decision::Unknown(reason) => Err(Stop::Budget(reason)),
    }
}

fn found(
    scene: &Scene<'_>,
    state: &State,
    posed: &Posed,
    decider: Decider,
    pruned: &Pruned,
    sides: &[Side],
) -> Result<Found, Stop> {
    let problem = &pruned.problem;
    let nodes = pruned.order_by(sides, |node| scene.rank(problem, node));
    let nodes = nodes.map_err(|_| crate::phases::cyclic(decider))?;
    let holds = |variable: u32| match pruned.variables[variable as usize] {
        Variable::Settled(value) => value,
        Variable::Open(constraint) => sides[constraint as usize] == Side::Either,
    };
    let mut chosen: FxHashSet<Taken> = FxHashSet::default();
    for (&read, &first) in &posed.first {
        for (&version, variable) in state.candidates[read].iter().zip(first..) {
            if holds(variable) {
                chosen.insert((read, version));
            }
        }
    }
    let points = nodes.iter().filter_map(|&it| problem.point(it));
    Ok(Found::Order(FoundOrder {
        decider,
        order: points.collect(),
        place: places(&nodes),
        holds: chosen,
    }))
}

/// The same at parallel snapshot isolation.
fn search_parallel(
    scene: &Scene<'_>,
    state: &State,
    polygraph: &Polygraph,
    lemmas: &[Lemma],
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<Found, Stop> {
    let open: Vec<usize> = state.open().collect();
    let place: FxHashMap<usize, usize> = open.iter().copied().zip(0..).collect();
    let clauses = |logic: &mut Logic, first: &[u32]| {
        let literal = |(read, version): Taken| {
            let first = first[*place.get(&read)?];
            let at = state.candidates[read].binary_search(&version).ok()?;
            Some(Literal::Variable(first + at as u32, true))
        };
        state_aggregates(scene, state, &literal, logic);
        for lemma in lemmas {
            state_lemma(scene, state, lemma, &literal, logic);
        }
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
    Ok(match asked? {
        psi::Found::Order(nodes, held) => {
            let points = nodes.iter().filter_map(|&it| polygraph.point(it));
            Found::Order(FoundOrder {
                decider: Decider::Backend,
                order: points.collect(),
                place: places(&nodes),
                holds: open.into_iter().zip(held).collect(),
            })
        }
        psi::Found::No(blamed) => {
            let reads = blamed.choices.into_iter().map(|it| open[it]);
            Found::No(reads.collect())
        }
    })
}
