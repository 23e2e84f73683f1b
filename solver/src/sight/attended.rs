//! The obligation that the open reads are explained. It begins with none of them. The reads that an order leaves no version are attended
//! to: they are narrowed, and what is left of them is stated beforehand in a graph that takes the place of the one that was asked.

use rustc_hash::{FxHashMap, FxHashSet};

use super::causal::CausalLemma;
use super::narrow::{Graph, Narrowed, State, narrow};
use super::pose::{FoundOrder, Posed, literal_of, pose};
use super::told::{Told, told};
use super::{Scene, Taken};
use crate::context::Context;
use crate::decide::Backend;
use crate::level::Model;
use crate::phases::{self, Stop};
use crate::psi;
use crate::relate::Polygraph;
use crate::report::Decider;
use crate::resolve::VersionId;
use crate::solve::{self, AskedOrder, Ended, Obligation};
use crate::verdict::{Certificate, Point};
use kingsnake_graph::Literal;
use kingsnake_graph::reach::places;

/// Number of reads added for the first order that does not explain all of them; each further one adds four times as many.
const READS: usize = 64;

/// The state of the search.
pub(super) struct Attended {
    /// The reads that are attended to.
    reads: Vec<usize>,
    /// The lemmas.
    pub(super) lemmas: Vec<CausalLemma>,
    /// Number of reads added for the next order that does not explain all of them.
    n_more: usize,
}

/// How a search ended.
#[allow(clippy::large_enum_variant)] // There is one at a time.
pub(super) enum Searched {
    Order(Decider, Certificate),
    /// There is no order: what is known of the reads, and how narrowing them ended.
    No(State, Narrowed),
}

impl Attended {
    pub(super) fn new(scene: &Scene<'_>) -> Self {
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

    /// Takes lemmas that are new, and returns them.
    fn learn(&mut self, told: Vec<CausalLemma>) -> Vec<CausalLemma> {
        let known: FxHashSet<&CausalLemma> = self.lemmas.iter().collect();
        let mut new = told;
        new.retain(|it| !known.contains(it));
        self.lemmas.extend(new.iter().cloned());
        new
    }

    /// Attends to some of the reads that an order missed. Whether some are new.
    fn attend(&mut self, mut missed: Vec<usize>) -> bool {
        missed.truncate(self.n_more);
        self.n_more = self.n_more.saturating_mul(4);
        let n_before = self.reads.len();
        self.reads.extend(missed);
        self.reads.sort_unstable();
        self.reads.dedup();
        self.reads.len() > n_before
    }
}

/// Looks for an order that explains all reads.
pub(super) fn find(
    scene: &Scene<'_>,
    attended: &mut Attended,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<Searched, Stop> {
    let mut sight = Sight::new(scene, attended)?;
    if let Narrowed::Open(Graph::Parallel(..)) = &sight.narrowed {
        return sight.find_parallel(backend, context);
    }
    let Some(polygraph) = sight.stated()? else {
        return Ok(Searched::No(sight.state, sight.narrowed));
    };
    let base = polygraph.resolved().clone();
    let asked = AskedOrder {
        check: scene.check,
        base: &base,
        ranks: Some(&scene.ranks),
        polygraph,
        obligations: vec![Box::new(&mut sight)],
    };
    let (stats, progress) = (&mut context.stats, &mut *context.progress);
    let ended = solve::run(asked, backend, stats, &scene.budget, progress)?;
    Ok(match ended {
        Ended::No(_) => Searched::No(sight.state, sight.narrowed),
        Ended::Order(decider, order) => {
            let point = |(node, moment)| Point {
                txn: base.txn(node),
                moment,
            };
            sight.explained(decider, order.into_iter().map(point).collect())
        }
    })
}

/// The obligation.
struct Sight<'s, 'a> {
    scene: &'s Scene<'a>,
    attended: &'s mut Attended,
    /// What is known of the reads that are attended to.
    state: State,
    /// How narrowing them ended.
    narrowed: Narrowed,
    /// The first variable of each that is stated.
    first: FxHashMap<usize, u32>,
    /// What the reads are of in the last order.
    versions: Vec<Option<VersionId>>,
}

impl<'s, 'a> Sight<'s, 'a> {
    fn new(scene: &'s Scene<'a>, attended: &'s mut Attended) -> Result<Self, Stop> {
        let mut state = State::new(scene, &attended.reads);
        let narrowed = narrow(scene, &mut state)?;
        Ok(Sight {
            scene,
            attended,
            state,
            narrowed,
            first: FxHashMap::default(),
            versions: Vec::new(),
        })
    }

    /// The graph of what narrowing left, with what is stated beforehand; `None` where it left a contradiction.
    fn stated(&mut self) -> Result<Option<Polygraph>, Stop> {
        let Narrowed::Open(Graph::Plain(pruned)) = &self.narrowed else {
            return Ok(None);
        };
        let posed = pose(self.scene, &self.state, pruned, &self.attended.lemmas)?;
        let Posed { polygraph, first } = posed;
        self.first = first;
        Ok(Some(polygraph))
    }

    /// The candidates that hold in an order.
    fn held(&self, holds: impl Fn(u32) -> bool) -> FxHashSet<Taken> {
        let first = self.first.iter();
        let held = first.flat_map(|(&read, &first)| {
            let candidates = self.state.candidates[read].iter().zip(first..);
            candidates.map(move |(&version, variable)| ((read, version), variable))
        });
        let held = held.filter(|it| holds(it.1));
        held.map(|it| it.0).collect()
    }

    /// What an order does not meet; what it tells where it meets all.
    fn told(&mut self, decider: Decider, found: &FoundOrder) -> Result<Told, Stop> {
        let mut told = told(self.scene, &self.state, found)?;
        let is_met = told.lemmas.is_empty() && told.missed.is_empty();
        told.lemmas = self.attended.learn(told.lemmas);
        if told.lemmas.is_empty() && told.missed.is_empty() && !is_met {
            return Err(phases::cyclic(decider).into());
        }
        self.versions = std::mem::take(&mut told.versions);
        Ok(told)
    }

    fn explained(&self, decider: Decider, order: Vec<Point>) -> Searched {
        let sources = self.scene.sources(|read| self.versions[read]);
        Searched::Order(decider, Certificate { order, sources })
    }

    /// The same at parallel snapshot isolation, where all reads are attended to.
    fn find_parallel(
        mut self,
        backend: &mut dyn Backend,
        context: &mut Context<'_>,
    ) -> Result<Searched, Stop> {
        loop {
            let Narrowed::Open(Graph::Parallel(polygraph, _)) = &self.narrowed else {
                return Ok(Searched::No(self.state, self.narrowed));
            };
            let lemmas = &self.attended.lemmas;
            let asked = super::pose::ask_parallel(
                self.scene,
                &self.state,
                polygraph,
                lemmas,
                backend,
                context,
            )?;
            let psi::FoundForks::Order(nodes, held) = asked else {
                return Ok(Searched::No(self.state, self.narrowed));
            };
            let points = nodes.iter().filter_map(|&it| polygraph.point(it)).collect();
            let found = FoundOrder {
                place: places(&nodes),
                holds: self.state.open().zip(held).collect(),
            };
            if self.told(Decider::Backend, &found)?.lemmas.is_empty() {
                return Ok(self.explained(Decider::Backend, points));
            }
        }
    }
}

impl Obligation for &mut Sight<'_, '_> {
    fn check(&mut self, found: &solve::Found<'_>) -> Result<Vec<solve::Lemma>, Stop> {
        let order = FoundOrder {
            place: places(found.order()),
            holds: self.held(|variable| found.holds(variable)),
        };
        let Told { lemmas, missed, .. } = self.told(found.decider(), &order)?;
        if missed.is_empty() {
            let literal = |it: Taken| literal_of(&self.first, &self.state, it);
            let lemmas = lemmas.iter();
            let stated = lemmas.filter_map(|it| it.stated(self.scene, &self.state, &literal));
            return Ok(stated.collect());
        }
        if !self.attended.attend(missed) {
            return Err(phases::cyclic(found.decider()).into());
        }
        self.state = State::new(self.scene, &self.attended.reads);
        self.narrowed = narrow(self.scene, &mut self.state)?;
        Ok(vec![match self.stated()? {
            Some(polygraph) => solve::Lemma::Anew(Box::new(polygraph)),
            None => solve::Lemma::Conflict(Vec::<Literal>::new()),
        }])
    }
}
