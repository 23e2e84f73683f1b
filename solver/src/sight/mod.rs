//! What weak readers see, where reads can have been of several versions: an obligation of the loop (`solve`).
//!
//! Each read with several candidates is a choice. What weak readers see is stated beforehand as edges that the choices guard
//! (`relate/sights`), what transactions at pc, si and ser read as rw edges (`relate/choices`). The loop begins without most of these
//! reads: where an order leaves a read a version (`told`), nothing more is asked of it. The others are attended to (`attended`): what is
//! certain now narrows them again, and the rest is stated again. What happened before a transaction at cc depends on what all others read, so the paths that an order breaks become
//! lemmas: edges guarded by the reads on the path (`causal`). A violation is explained by cases of the candidates of reads (`prove`).

mod attended;
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

use attended::{Attended, Searched};
use counting::{counting, of_stated};
use narrow::{Contradicted, Graph, Narrowed, State, narrow, narrow_from, pruned};
use reads::{OpenRead, open_reads, writer};

use crate::budget::{Budget, StopReason};
use crate::context::Context;
use crate::decide::Backend;
use crate::level::{Model, Spec};
use crate::model::KeyId;
use crate::phases::{Check, Exit, Refuted, Stop};
use crate::progress::Phase;
use crate::prune::{Contradiction, PruneStats, Pruned};
use crate::relate::{Places, Polygraph, WrittenKeys};
use crate::report::Decider;
use crate::resolve::{Node, Resolved, VersionId, resolve_reads};
use crate::solve::{Counted, Counting, Ranks, Refutation};
use crate::verdict::{Certificate, OperationSource};

/// How long a stronger level is tried before the level itself is searched, and how long that is searched before the
/// next try; each further turn lasts four times as long.
const TURN: Duration = Duration::from_millis(200);

/// A read that is taken to be of a version, by its number among the open reads.
type Taken = (usize, VersionId);

/// The check, and the reads with several candidates.
struct Scene<'a> {
    check: &'a Check<'a>,
    /// The budget of this turn.
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

/// What a deliberately wrong search leaves out.
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

/// Decides a history whose level must know the writer of every read.
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

/// Why narrowing uncertain reads leaves nothing.
pub(crate) enum Impossible {
    /// The reads that are taken cannot be.
    Contradiction(Box<Contradiction>),
    /// A read has no candidate left, or no candidates that are left give an aggregate its result.
    Dead,
}

/// What narrowing left of uncertain reads.
pub(crate) struct Left {
    /// The candidates of those that were narrowed, in their order.
    pub(crate) candidates: Vec<Vec<VersionId>>,
    /// Which of them are of one version now, by their places.
    pub(crate) taken: Vec<usize>,
    /// The graph of what is certain.
    pub(crate) pruned: Pruned,
}

/// Narrows uncertain reads, by their numbers, for transactions whose reads an order tells. The graph of the certain reads may be there
/// already.
pub(crate) fn narrowed(
    check: &Check<'_>,
    (base, first): (&Resolved, Option<Polygraph>),
    (reads, counted): (&[usize], &Counted),
    stats: &mut PruneStats,
    budget: &Budget,
) -> Result<Result<Left, Impossible>, StopReason> {
    let (mut candidates, mut taken) = (Vec::new(), Vec::new());
    let narrowed = match first {
        Some(polygraph) if reads.is_empty() => match pruned(check, polygraph, stats, budget)? {
            Ok(graph) => Narrowed::Open(graph),
            Err(found) => Narrowed::Contradiction(found),
        },
        first => {
            let scene = Scene::of_uncertain(check, base, reads, counted, budget);
            let all: Vec<usize> = (0..reads.len()).collect();
            let mut state = State::new(&scene, &all);
            let narrowed = narrow_from(&scene, first, &mut state, stats)?;
            taken.extend(state.taken.into_iter().map(|it| it.0));
            candidates = state.candidates;
            narrowed
        }
    };
    Ok(match narrowed {
        Narrowed::Open(Graph::Plain(pruned)) => Ok(Left {
            candidates,
            taken,
            pruned,
        }),
        Narrowed::Contradiction(Contradicted::Plain(found)) => {
            Err(Impossible::Contradiction(Box::new(found)))
        }
        _ => Err(Impossible::Dead),
    })
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
        Scene::of_uncertain(check, base, &stated, &refutation.counted, budget)
    }

    /// Some of the uncertain reads, by their numbers, and aggregates that are counted.
    fn of_uncertain(
        check: &'a Check<'a>,
        base: &'a Resolved,
        stated: &[usize],
        counted: &Counted,
        budget: &Budget,
    ) -> Self {
        let place: FxHashMap<usize, usize> = stated.iter().copied().zip(0..).collect();
        let reads = stated.iter().map(|&it| OpenRead::of(&base.uncertain()[it]));
        let aggregates = counted.all.iter().map(|it| of_stated(it, base, &place));
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
            ranks: Ranks::new(check.history, base),
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
        match attended::find(&stronger, &mut attended, backend, context) {
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

    /// Searches an order that explains all reads, and explains why there is none.
    fn settle(
        &mut self,
        attended: &mut Attended,
        backend: &mut dyn Backend,
        context: &mut Context<'_>,
    ) -> Result<(Decider, Certificate), Exit> {
        match attended::find(self, attended, backend, context)? {
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

    /// The writers of the reads, given the version of each.
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
