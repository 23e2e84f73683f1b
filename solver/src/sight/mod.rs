//! What weak readers see, where reads can have been of several versions: one question for a back end, which grows.
//!
//! Each read with several candidates is a choice. What weak readers see is stated beforehand as edges that the choices guard
//! (`relate/sights`), what transactions at pc, si and ser read as rw edges (`relate/choices`). The search begins without most of these
//! reads: where an order that it finds leaves a read a version (`told`), nothing more is asked of it. The others are attended to, and it
//! begins again. What happened before a transaction at cc depends on what all others read, so the paths that an order breaks become
//! lemmas: edges guarded by the reads on the path (`causal`). A no is explained by cases of what reads were of (`prove`).

mod blame;
mod causal;
mod counting;
mod narrow;
mod pose;
mod prove;
mod reads;
mod stronger;
#[cfg(test)]
mod tests;
mod told;

use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use causal::Lemma;
use counting::{Counting, counting};
use narrow::{Narrowed, State, narrow};
use pose::{Found, search};
use reads::{OpenRead, open_reads, writer};
use told::told;

use crate::budget::{Budget, StopReason};
use crate::context::Context;
use crate::decide::Backend;
use crate::level::{Model, Spec};
use crate::model::{History, KeyId};
use crate::phases::{self, Check, Exit, Refuted, Stop};
use crate::progress::Phase;
use crate::relate::{Places, WrittenKeys};
use crate::report::Decider;
use crate::resolve::{Node, Resolved, VersionId, resolve_reads};
use crate::solve::Refutation;
use crate::verdict::{Certificate, OperationSource};

/// How long a stronger level is tried before the level itself is searched, and how long that is searched before the stronger level is tried
/// again; each further turn lasts four times as long.
const TURN: Duration = Duration::from_millis(200);

/// How many reads the first order that does not explain all of them adds; each further one adds four times as many.
const READS: usize = 64;

/// A read that is taken to be of a version, by its number among the open reads.
type Taken = (usize, VersionId);

/// What is checked, and the reads that can have been of several versions.
struct Scene<'a> {
    check: &'a Check<'a>,
    /// What is left for this turn.
    budget: Budget,
    base: &'a Resolved,
    places: Places,
    written: WrittenKeys,
    reads: Vec<OpenRead>,
    /// The open read that each read in program order belongs to.
    open_of: FxHashMap<usize, usize>,
    /// The open reads of each transaction and key.
    of: FxHashMap<(Node, KeyId), Vec<usize>>,
    /// The open reads of each transaction.
    of_reader: FxHashMap<Node, Vec<usize>>,
    /// The transactions and keys whose reads may differ.
    loose: FxHashSet<(Node, KeyId)>,
    aggregates: Vec<Counting>,
    /// Whether some transaction is at causal consistency.
    has_causal: bool,
    ranks: Ranks,
    /// What tests leave out.
    #[cfg(test)]
    skipped: Skipped,
}

/// What a search that is deliberately wrong leaves out.
#[cfg(test)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Skipped {
    #[default]
    Nothing,
    /// Edges between commits.
    Edges,
    /// That no transaction commits before the initial state.
    Clauses,
    /// What happened before in longer ways.
    Paths,
}

/// Settles a history whose level needs to know what every read is of.
pub(crate) fn settle(
    check: &Check<'_>,
    resolved: &Resolved,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<(Decider, Certificate), Exit> {
    context.begin(Phase::Decide)?;
    let with_program;
    let base = if resolved.reads().n_reads() == 0 {
        with_program = resolve_reads(check.history, context.budget)?;
        &with_program
    } else {
        resolved
    };
    let mut scene = Scene::new(check, base, context.budget)?;
    let mut attended = Attended::new(&scene);
    if check.techniques.witness {
        if let Some(found) = scene.in_turns(&mut attended, backend, context)? {
            return Ok(found);
        }
        scene.budget = context.budget.clone();
    }
    scene.settle(&mut attended, backend, context)
}

/// Why nothing explains the reads and the aggregates that the loop stated.
pub(crate) fn refuted(
    check: &Check<'_>,
    refutation: &Refutation,
    backend: &mut dyn Backend,
    budget: &Budget,
) -> Result<Exit, Stop> {
    let scene = Scene::of_stated(check, refutation, budget);
    let stated: Vec<usize> = (0..scene.reads.len()).collect();
    let mut state = State::new(&scene, &stated);
    let narrowed = narrow(&scene, &mut state)?;
    let how = (&state, narrowed, refutation.decider);
    prove::refuted(&scene, how, &[], backend)
}

/// How far the search has come.
struct Attended {
    /// The reads that are attended to.
    reads: Vec<usize>,
    /// What was learned.
    lemmas: Vec<Lemma>,
    /// How many reads the next order adds that does not explain all of them.
    n_more: usize,
}

/// How a search ended.
#[allow(clippy::large_enum_variant)] // There is one at a time.
enum Searched {
    Order(Decider, Certificate),
    /// There is no order: what is known of the reads, and how narrowing them ended.
    No(State, Narrowed),
}

impl Attended {
    fn new(scene: &Scene<'_>) -> Self {
        Attended {
            // At parallel snapshot isolation an order does not tell what was read.
            reads: match scene.check.spec.model {
                Model::Psi => (0..scene.reads.len()).collect(),
                _ => Vec::new(),
            },
            lemmas: Vec::new(),
            n_more: READS,
        }
    }
}

impl<'a> Scene<'a> {
    fn new(check: &'a Check<'a>, base: &'a Resolved, budget: &Budget) -> Result<Self, Exit> {
        let reads = open_reads(check, base);
        if let Some(dead) = reads.iter().find(|it| it.candidates.is_empty()) {
            let proof = dead.choice(base, Vec::new());
            return Err(Refuted::Proof(Decider::Resolve, proof).into());
        }
        let read_of = reads::places(base, &reads);
        let aggregates = counting(check.history, base, |read| read_of.get(&read).copied());
        Ok(Scene::of_reads(check, base, reads, aggregates, budget))
    }

    /// The reads that the loop stated, and the aggregates that it counted.
    fn of_stated(check: &'a Check<'a>, refutation: &'a Refutation, budget: &Budget) -> Self {
        let base = &refutation.base;
        let stated = refutation.stated.iter().copied();
        let stated = stated.filter(|&it| base.uncertain()[it].candidates.len() != 1);
        let stated: Vec<usize> = stated.collect();
        let place: FxHashMap<usize, usize> = stated.iter().copied().zip(0..).collect();
        let reads = stated.iter().map(|&it| OpenRead::of(&base.uncertain()[it]));
        let counted = refutation.counted.all.iter();
        let aggregates = counted.map(|it| Counting::of_stated(it, base, &place));
        Scene::of_reads(check, base, reads.collect(), aggregates.collect(), budget)
    }

    fn of_reads(
        check: &'a Check<'a>,
        base: &'a Resolved,
        reads: Vec<OpenRead>,
        aggregates: Vec<Counting>,
        budget: &Budget,
    ) -> Self {
        let places = Places::of(check.history, base, check.spec);
        let open_of = reads::by_program(&reads);
        Scene {
            check,
            budget: budget.clone(),
            base,
            written: WrittenKeys::of(base),
            open_of,
            of: reads::by_key(&reads),
            of_reader: reads::by_reader(&reads),
            loose: reads::loose(&reads),
            aggregates,
            has_causal: places.models().any(|it| it == Model::Cc),
            places,
            reads,
            ranks: Ranks::of(check.history, base),
            #[cfg(test)]
            skipped: Skipped::default(),
        }
    }

    fn model(&self, node: Node) -> Model {
        self.places.model(node)
    }

    /// An order that keeps to session order, where the level does not ask for that; `None` if there is none, or it takes long.
    fn by_sessions(
        &self,
        backend: &mut dyn Backend,
        context: &mut Context<'_>,
    ) -> Result<Option<(Decider, Certificate)>, Exit> {
        let check = Check {
            spec: Spec {
                session_order: true,
                ..self.check.spec
            },
            ..*self.check
        };
        let budget = context.budget.within(TURN);
        let stronger = match Scene::new(&check, self.base, &budget) {
            Ok(scene) => scene,
            Err(Exit::Refuted(_)) => return Ok(None),
            Err(stop) => return Err(stop),
        };
        let mut attended = Attended::new(&stronger);
        match stronger.find(&mut attended, backend, context) {
            Ok(Searched::Order(decider, order)) => Ok(Some((decider, order))),
            Ok(Searched::No(..)) => Ok(None),
            Err(Stop::Budget(StopReason::Time(_))) => {
                context.budget.check()?;
                Ok(None)
            }
            Err(stop) => Err(stop.into()),
        }
    }

    /// Tries a stronger level and searches the level itself in turn; nothing once the stronger level is violated.
    fn in_turns(
        &mut self,
        attended: &mut Attended,
        backend: &mut dyn Backend,
        context: &mut Context<'_>,
    ) -> Result<Option<(Decider, Certificate)>, Exit> {
        if !self.check.spec.session_order
            && let Some(found) = self.by_sessions(backend, context)?
        {
            return Ok(Some(found));
        }
        let mut turn = TURN;
        loop {
            self.budget = context.budget.within(turn);
            let found = self.by_stronger_level(backend);
            match found {
                Err(Exit::Stop(Stop::Budget(StopReason::Time(_)))) => context.budget.check()?,
                found => return found,
            }
            self.budget = context.budget.within(turn);
            match self.settle(attended, backend, context) {
                Err(Exit::Stop(Stop::Budget(StopReason::Time(_)))) => context.budget.check()?,
                found => return found.map(Some),
            }
            turn = turn.saturating_mul(4);
        }
    }

    /// Looks for an order that explains all reads, and explains why there is none.
    fn settle(
        &mut self,
        attended: &mut Attended,
        backend: &mut dyn Backend,
        context: &mut Context<'_>,
    ) -> Result<(Decider, Certificate), Exit> {
        match self.find(attended, backend, context)? {
            Searched::Order(decider, order) => Ok((decider, order)),
            Searched::No(state, narrowed) => {
                let decider = match narrowed {
                    Narrowed::Open(_) => Decider::Backend,
                    _ => Decider::Prune,
                };
                backend.conclude();
                context.go_on(Phase::Explain);
                self.budget = context.budget.clone();
                let how = (&state, narrowed, decider);
                Err(prove::refuted(self, how, &attended.lemmas, backend)?)
            }
        }
    }

    /// Attends to more reads until there is an order that explains all, or there is none for these.
    fn find(
        &self,
        attended: &mut Attended,
        backend: &mut dyn Backend,
        context: &mut Context<'_>,
    ) -> Result<Searched, Stop> {
        let mut decider;
        loop {
            let mut state = State::new(self, &attended.reads);
            let narrowed = narrow(self, &mut state)?;
            let told = loop {
                self.budget.check()?;
                let Narrowed::Open(graph) = &narrowed else {
                    return Ok(Searched::No(state, narrowed));
                };
                let lemmas = &mut attended.lemmas;
                let found = match search(self, &state, graph, lemmas, backend, context)? {
                    Found::Order(found) => found,
                    Found::No(_) => return Ok(Searched::No(state, narrowed)),
                };
                decider = found.decider;
                let told = told(self, &state, &found)?;
                let known: FxHashSet<&Lemma> = lemmas.iter().collect();
                let new = told.lemmas.iter().filter(|it| !known.contains(it));
                let new: Vec<Lemma> = new.cloned().collect();
                let is_new = !new.is_empty();
                lemmas.extend(new);
                if !told.missed.is_empty() {
                    break told;
                }
                if told.lemmas.is_empty() {
                    let order = found.order;
                    let sources = self.sources(|read| told.versions[read]);
                    return Ok(Searched::Order(decider, Certificate { order, sources }));
                }
                if !is_new {
                    return Err(phases::cyclic(decider).into());
                }
            };
            let mut missed = told.missed;
            missed.truncate(attended.n_more);
            attended.n_more = attended.n_more.saturating_mul(4);
            let n_before = attended.reads.len();
            attended.reads.extend(missed);
            attended.reads.sort_unstable();
            attended.reads.dedup();
            if attended.reads.len() == n_before {
                return Err(phases::cyclic(decider).into());
            }
        }
    }

    /// Whom the reads are of, given the version of each.
    fn sources(&self, version: impl Fn(usize) -> Option<VersionId>) -> Vec<OperationSource> {
        let program = self.base.reads();
        let mut sources = Vec::new();
        for (at, read) in self.reads.iter().enumerate() {
            let Some(version) = version(at) else { continue };
            sources.extend(read.reads.iter().map(|&it| OperationSource {
                reader: self.base.txn(read.reader),
                op: program.op(it) as usize,
                key: read.key,
                writer: writer(self.base, version),
            }));
        }
        sources
    }
}

/// Where transactions are likely to come: by when they committed, if that was recorded, else by their places in their sessions.
struct Ranks {
    of: Vec<u64>,
    /// Whether they were recorded.
    are_recorded: bool,
}

impl Ranks {
    fn of(history: &History, base: &Resolved) -> Self {
        let txns = || (0..base.n_txns() as Node).map(|it| base.txn(it));
        let stamps = txns().map(|it| history.stamps(it).commit_ts);
        let stamped: Option<Vec<i64>> = stamps.collect();
        let (likely, are_recorded) = match stamped {
            Some(stamps) => (stamps, true),
            None if history.has_times() => {
                let times = txns().map(|it| history.interval(it).commit);
                (times.collect(), true)
            }
            None => {
                let places = base.sessions().iter().flat_map(|it| 0..it.len() as i64);
                (places.collect(), false)
            }
        };
        let least = likely.iter().copied().min().unwrap_or(0);
        let rank = |it: i64| it.abs_diff(least).saturating_add(1);
        Ranks {
            of: likely.into_iter().map(rank).collect(),
            are_recorded,
        }
    }
}
