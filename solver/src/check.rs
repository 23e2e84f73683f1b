//! The straight line, from a history to a verdict that has been checked again.

use std::time::{Duration, Instant};

use thiserror::Error;

use crate::budget::{Budget, StopReason};
use crate::certify;
use crate::certify::refutation::{Refusal, check_proof_within};
use crate::decide::{Backend, DecideError, DecideStats, Decision, Origin, Side};
use crate::heuristic::{self, Heuristic, HeuristicStats};
use crate::level::{Model, Spec};
use crate::model::{Act, History};
use crate::progress::{Event, Phase, Progress};
use crate::prune::{
    Contradiction, Cyclic, Dag, Device, Outcome, PruneOptions, PruneStats, Pruned, Reachability,
    prune_on,
};
use crate::psi;
use crate::relate::{Edge, Polygraph, Shape, construct_within};
use crate::resolve::{ResolveError, Resolved, resolve_for};
use crate::shared::Shared;
use crate::uncertain;
use crate::verdict::{Certificate, Counterexample, Finding, Proof, Verdict};
use crate::witness::witness;
use kingsnake_refute::NoProof;

/// Which techniques run. Each can be switched off without changing any verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // Each is a switch of its own.
pub struct Techniques {
    /// `combine`: a transaction that reads and then writes a key follows its version directly (Cobra's write combining).
    pub combine: bool,
    /// `coalesce`: one constraint for two runs of versions, however many readers they have (Cobra's coalescing).
    pub coalesce: bool,
    /// `unread`: no constraint for two versions that nobody read, where any topological order settles them.
    pub unread: bool,
    /// `merge`: one constraint for two transactions, however many keys they share.
    pub merge: bool,
    /// `linear`: where every key is ordered already, one topological sort decides and no reachability is computed.
    pub linear: bool,
    /// `estimate`: guess each transaction's position from its ancestors and descendants, for the witness and the solver.
    pub estimate: bool,
    /// `witness`: try the estimated order as an answer before asking a solver.
    pub witness: bool,
    /// `heuristic`: which sides are assumed before a solver is asked.
    pub heuristic: Heuristic,
    /// How reachability is kept.
    pub reachability: Reachability,
    /// How many pruning rounds at most; `None` is to the fixpoint.
    pub prune_rounds: Option<usize>,
}

impl Techniques {
    /// Which pairs of versions become constraints.
    pub fn shape(&self) -> Shape {
        Shape {
            combine: self.combine,
            unread: self.unread,
        }
    }
}

impl Default for Techniques {
    fn default() -> Self {
        Techniques {
            combine: true,
            coalesce: true,
            unread: true,
            merge: true,
            linear: true,
            estimate: true,
            witness: true,
            heuristic: Heuristic::Off,
            reachability: Reachability::Auto,
            prune_rounds: None,
        }
    }
}

/// Which part of the line gave the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Decider {
    /// Some read cannot have happened at any level.
    Resolve,
    /// One topological sort: every key was ordered.
    Linear,
    /// Pruning left nothing open, or found a contradiction.
    Prune,
    /// The estimated order explained the history.
    Witness,
    /// The back end.
    Backend,
    /// Linearizability, by sorting.
    Zones,
    /// Linearizability, by search.
    Search,
    /// Nothing did: the check stopped.
    Nobody,
}

impl Decider {
    /// The name, as reported.
    pub fn name(self) -> &'static str {
        match self {
            Decider::Resolve => "resolve",
            Decider::Linear => "linear",
            Decider::Prune => "prune",
            Decider::Witness => "witness",
            Decider::Backend => "backend",
            Decider::Zones => "zones",
            Decider::Search => "search",
            Decider::Nobody => "nobody",
        }
    }
}

/// What a check took.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CheckStats {
    /// How long each phase took, in order.
    pub phases: Vec<(&'static str, Duration)>,
    /// Transactions that count.
    pub n_counted: usize,
    /// Transactions of unknown end that count, because somebody observed them.
    pub n_unknown_counted: usize,
    /// Transactions of unknown end that were dropped, because nobody did.
    pub n_unknown_dropped: usize,
    /// Versions, initial ones left out.
    pub n_versions: usize,
    /// Nodes of the polygraph.
    pub n_nodes: usize,
    /// Known edges before pruning.
    pub n_known_edges: usize,
    /// Known edges after pruning.
    pub n_pruned_edges: usize,
    /// Unordered pairs of runs before pruning.
    pub n_pairs: u64,
    /// Constraints that were open after pruning.
    pub n_open: usize,
    /// What pruning did.
    pub prune: PruneStats,
    /// What the heuristic did, if a back end was asked with one.
    pub heuristic: Option<HeuristicStats>,
    /// What deciding did, if a back end was asked.
    pub decide: Option<DecideStats>,
}

/// A verdict, who gave it, and what it took.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The answer, already checked again by [`certify`].
    pub verdict: Verdict,
    /// What was checked.
    pub spec: Spec,
    /// Who gave the answer.
    pub decider: Decider,
    /// What it took.
    pub stats: CheckStats,
}

/// A check that could not be carried out; this says nothing about the database.
#[derive(Debug, Error)]
pub enum CheckError {
    /// The history does not say enough.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// The level needs times.
    #[error("the level needs begin and commit times, and the history has none")]
    NoTimes,
    /// The history is not one of registers.
    #[error(transparent)]
    NotRegisters(#[from] kingsnake_linearizable::NotRegisters),
    /// Orders explain all reads, and no order that was tried gives every aggregate its result.
    #[error(
        "some order explains every row that was read and every row that was not returned, but whether one also gives all aggregates \
         their results is not decided; aggregates are checked with --certificate-from history or --along, and --no-predicates \
         ignores conditions over rows"
    )]
    Aggregates,
    /// A back end failed.
    #[error(transparent)]
    Decide(#[from] DecideError),
    /// An answer did not stand up to being checked again: a bug of this program. The answer is withheld.
    #[error("internal error: {decider} answered {answer}, which does not hold: {why}")]
    Uncertified {
        /// Who gave it.
        decider: &'static str,
        /// What it was.
        answer: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

/// Checks a history at a level.
pub fn check(
    history: &History,
    spec: Spec,
    techniques: &Techniques,
    backend: &mut dyn Backend,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Report, CheckError> {
    let engines = Engines {
        device: None,
        backend,
    };
    check_on(history, None, spec, techniques, engines, budget, progress)
}

/// Who computes besides this crate.
pub struct Engines<'e> {
    /// Prunes, if it takes the task. If it fails the CPU answers, and the statistics say why.
    pub device: Option<&'e mut dyn Device>,
    /// Decides what pruning leaves open.
    pub backend: &'e mut dyn Backend,
}

/// The line from a graph on, whoever made it: tests damage graphs and see that the line notices.
#[cfg(test)]
pub(crate) fn settle(
    history: &History,
    polygraph: Polygraph,
    techniques: &Techniques,
    backend: &mut dyn Backend,
) -> Result<(Decider, Verdict), CheckError> {
    let (budget, mut silent) = (Budget::unlimited(), crate::progress::Silent);
    let mut line = Line {
        history,
        spec: polygraph.spec(),
        techniques,
        budget: &budget,
        clock: Clock::new(&mut silent),
        stats: CheckStats::default(),
    };
    let device = None;
    match line.settle(polygraph, Engines { device, backend }) {
        Ok(answer) => Ok(answer),
        Err(Stop::Budget(reason)) => Ok((Decider::Nobody, Verdict::Unknown(reason))),
        Err(Stop::Error(error)) => Err(error),
    }
}

/// Checks a history at a level, with all engines. What it has in common with other levels may be there already.
pub fn check_on(
    history: &History,
    shared: Option<&mut Shared>,
    spec: Spec,
    techniques: &Techniques,
    engines: Engines<'_>,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Report, CheckError> {
    if spec.real_time.is_some() && !history.has_times() {
        return Err(CheckError::NoTimes);
    }
    if let Some(what) = engines.backend.refuses(origin(spec)) {
        let what = format!("{what} and cannot decide {spec}; use another back end");
        let backend = engines.backend.name().to_owned();
        return Err(DecideError { backend, what }.into());
    }
    let mut line = Line {
        history,
        spec,
        techniques,
        budget,
        clock: Clock::new(progress),
        stats: CheckStats::default(),
    };
    let (decider, verdict) = match line.run(shared, engines) {
        Ok(answer) => answer,
        Err(Stop::Budget(reason)) => (Decider::Nobody, Verdict::Unknown(reason)),
        Err(Stop::Error(error)) => return Err(error),
    };
    line.stats.phases = line.clock.finish();
    Ok(Report {
        verdict,
        spec,
        decider,
        stats: line.stats,
    })
}

/// Whose rules the question will follow.
pub fn origin(spec: Spec) -> Origin {
    match spec.model {
        Model::Si => Origin::SnapshotIsolation,
        _ => Origin::Other,
    }
}

/// Why the line was left early.
enum Stop {
    Budget(StopReason),
    Error(CheckError),
}

impl From<StopReason> for Stop {
    fn from(reason: StopReason) -> Self {
        Stop::Budget(reason)
    }
}

impl<E: Into<CheckError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Stop::Error(error.into())
    }
}

/// Times the phases and announces them.
struct Clock<'a> {
    progress: &'a mut dyn Progress,
    phases: Vec<(&'static str, Duration)>,
    current: Option<(Phase, Instant)>,
}

impl<'a> Clock<'a> {
    fn new(progress: &'a mut dyn Progress) -> Self {
        Clock {
            progress,
            phases: Vec::new(),
            current: None,
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.leave();
        self.current = Some((phase, Instant::now()));
        self.progress.event(Event::Phase(phase));
    }

    fn leave(&mut self) {
        if let Some((phase, start)) = self.current.take() {
            self.phases.push((phase.name(), start.elapsed()));
        }
    }

    fn finish(&mut self) -> Vec<(&'static str, Duration)> {
        self.leave();
        std::mem::take(&mut self.phases)
    }
}

struct Line<'a> {
    history: &'a History,
    spec: Spec,
    techniques: &'a Techniques,
    budget: &'a Budget,
    clock: Clock<'a>,
    stats: CheckStats,
}

type Answer = (Decider, Verdict);

impl Line<'_> {
    fn run(&mut self, shared: Option<&mut Shared>, engines: Engines<'_>) -> Result<Answer, Stop> {
        self.budget.check()?;
        let graph = match shared {
            Some(shared) => self.shared_graph(shared)?,
            None => self.own_graph()?,
        };
        match graph {
            Ok(polygraph) => self.settle(polygraph, engines),
            Err(findings) => self.local(findings),
        }
    }

    /// The line from the graph on.
    fn settle(&mut self, polygraph: Polygraph, engines: Engines<'_>) -> Result<Answer, Stop> {
        self.note_resolved(polygraph.resolved());
        self.stats.n_nodes = polygraph.n_nodes();
        self.stats.n_known_edges = polygraph.edges().len();
        self.stats.n_pairs = polygraph.runs().n_pairs();
        let n_reads = polygraph.resolved().uncertain().len();
        let is_searched = matches!(self.spec.model, Model::Ser | Model::Si | Model::Pc);
        if !is_searched && (n_reads > 0 || self.history.n_predicates() > 0) {
            return Err(ResolveError::Uncertain { n_reads }.into());
        }
        if n_reads > 0 {
            return self.uncertain(&polygraph, engines.backend);
        }
        if self.spec.model == Model::Psi {
            return self.parallel(&polygraph, engines.backend);
        }
        let settled = polygraph.problem().is_settled() && self.techniques.linear;
        let decider = if settled {
            Decider::Linear
        } else {
            Decider::Prune
        };
        self.budget.check()?;
        self.clock.enter(Phase::Prune);
        match self.prune(engines.device, polygraph)? {
            Outcome::Contradiction(contradiction) => self.contradicted(decider, &contradiction),
            Outcome::Pruned(pruned) => self.decide(decider, &pruned, engines.backend),
        }
    }

    /// The line from the graph on, where some read can have been of several versions.
    fn uncertain(
        &mut self,
        polygraph: &Polygraph,
        backend: &mut dyn Backend,
    ) -> Result<Answer, Stop> {
        self.clock.enter(Phase::Decide);
        let scene = uncertain::Scene {
            history: self.history,
            spec: self.spec,
            shape: self.techniques.shape(),
            options: self.prune_options(),
            witness: self.techniques.witness,
            budget: self.budget,
        };
        let progress = &mut *self.clock.progress;
        match uncertain::settle(&scene, polygraph.resolved(), backend, progress) {
            Ok(uncertain::Answer::Order(decider, order)) => {
                self.explained(decider, Ok(Certificate { order }))
            }
            Ok(uncertain::Answer::Proof(decider, proof)) => self.violated(decider, proof),
            Err(uncertain::Stop::Budget(reason)) => Err(reason.into()),
            Err(uncertain::Stop::Error(error)) => Err(Stop::Error(error)),
            Err(uncertain::Stop::NoProof(decider)) => self.proved(decider, Err(NoProof::NotFound)),
        }
    }

    /// The line from the graph on at parallel snapshot isolation, which is more than the absence of cycles.
    fn parallel(
        &mut self,
        polygraph: &Polygraph,
        backend: &mut dyn Backend,
    ) -> Result<Answer, Stop> {
        self.clock.enter(Phase::Decide);
        let scene = psi::Scene {
            history: self.history,
            shape: self.techniques.shape(),
            options: self.prune_options(),
            witness: self.techniques.witness,
            budget: self.budget,
        };
        let answer = match psi::settle(&scene, polygraph, backend, &mut *self.clock.progress) {
            Ok(answer) => answer,
            Err(psi::Stop::Budget(reason)) => return Err(reason.into()),
            Err(psi::Stop::Error(error)) => return Err(Stop::Error(error)),
            Err(psi::Stop::NoProof(decider)) => {
                return self.proved(decider, Err(NoProof::NotFound));
            }
        };
        self.stats.n_open = answer.n_open;
        self.stats.decide = answer.decide;
        match answer.found {
            Ok(order) => self.explained(answer.decider, Ok(Certificate { order })),
            Err(proof) => self.violated(answer.decider, proof),
        }
    }

    /// The graph of this history alone, or what cannot be at any level.
    fn own_graph(&mut self) -> Result<Result<Polygraph, Vec<Finding>>, Stop> {
        self.clock.enter(Phase::Resolve);
        let resolved = match resolve_for(self.history, self.spec, self.budget) {
            Ok(resolved) => resolved,
            Err(ResolveError::Stopped(reason)) => return Err(reason.into()),
            Err(error) => return Err(error.into()),
        };
        let findings = resolved.broken(self.history, self.spec);
        if !findings.is_empty() {
            return Ok(Err(findings));
        }
        self.budget.check()?;
        self.clock.enter(Phase::Construct);
        let shape = self.techniques.shape();
        let graph = construct_within(self.history, resolved, self.spec, shape, self.budget)?;
        Ok(Ok(graph))
    }

    fn shared_graph(
        &mut self,
        shared: &mut Shared,
    ) -> Result<Result<Polygraph, Vec<Finding>>, Stop> {
        self.clock.enter(Phase::Construct);
        let shape = self.techniques.shape();
        Ok(shared.graph(self.history, self.spec, shape, self.budget)?)
    }

    fn note_resolved(&mut self, resolved: &Resolved) {
        let versions = resolved.versions();
        self.stats.n_counted = resolved.n_txns();
        self.stats.n_unknown_counted = resolved.n_unknown_counted();
        self.stats.n_unknown_dropped = resolved.n_unknown_dropped();
        self.stats.n_versions = versions.len() - versions.n_keys();
    }

    fn prune_options(&self) -> PruneOptions {
        PruneOptions {
            reachability: self.techniques.reachability,
            rounds: self.techniques.prune_rounds,
            linear: self.techniques.linear,
            estimate: self.techniques.estimate,
            coalesce: self.techniques.coalesce,
            merge: self.techniques.merge,
        }
    }

    fn prune(
        &mut self,
        device: Option<&mut dyn Device>,
        polygraph: Polygraph,
    ) -> Result<Outcome, Stop> {
        let options = self.prune_options();
        let stats = &mut self.stats.prune;
        let (budget, progress) = (self.budget, &mut *self.clock.progress);
        let outcome = prune_on(device, polygraph, options, stats, budget, progress)?;
        let edges = match &outcome {
            Outcome::Contradiction(contradiction) => contradiction.polygraph.edges(),
            Outcome::Pruned(pruned) => pruned.polygraph.edges(),
        };
        self.stats.n_pruned_edges = edges.len();
        Ok(outcome)
    }

    fn local(&mut self, findings: Vec<Finding>) -> Result<Answer, Stop> {
        self.clock.enter(Phase::Certify);
        let holds = certify::refutation::check_findings(self.history, &findings);
        certified(Decider::Resolve, "violated", holds)?;
        let verdict = Verdict::Violated(Counterexample::Local(findings));
        Ok((Decider::Resolve, verdict))
    }

    fn contradicted(&mut self, decider: Decider, found: &Contradiction) -> Result<Answer, Stop> {
        self.clock.enter(Phase::Explain);
        let proof = kingsnake_refute::refute(found, self.history, self.budget);
        self.proved(decider, proof)
    }

    /// Goes on with a proof, if there is one.
    fn proved(&mut self, decider: Decider, proof: Result<Proof, NoProof>) -> Result<Answer, Stop> {
        match proof {
            Ok(proof) => self.violated(decider, proof),
            Err(NoProof::Stopped(reason)) => Err(reason.into()),
            Err(NoProof::NotFound) => {
                let holds = Err("its reasons cannot be found again".to_owned());
                Ok(certified(decider, "violated", holds)?)
            }
        }
    }

    fn violated(&mut self, decider: Decider, proof: Proof) -> Result<Answer, Stop> {
        self.clock.enter(Phase::Certify);
        let (history, spec, budget) = (self.history, self.spec, self.budget);
        let holds = match check_proof_within(history, spec, &proof, budget) {
            Err(Refusal::Stopped(reason)) => return Err(reason.into()),
            Err(Refusal::Wrong(why)) => Err(why),
            Ok(()) => Ok(()),
        };
        certified(decider, "violated", holds)?;
        let verdict = Verdict::Violated(Counterexample::Cyclic(proof));
        Ok((decider, verdict))
    }

    fn decide(
        &mut self,
        decider: Decider,
        pruned: &Pruned,
        backend: &mut dyn Backend,
    ) -> Result<Answer, Stop> {
        self.stats.n_open = pruned.constraints.len();
        if pruned.constraints.is_empty() {
            return self.satisfied(decider, pruned, &[]);
        }
        self.clock.enter(Phase::Decide);
        if self.techniques.witness
            && let Some(choices) = witness(pruned.question())
        {
            return self.satisfied(Decider::Witness, pruned, &choices);
        }
        self.budget.check()?;
        let chains = pruned.polygraph.sessions();
        let (budget, progress) = (self.budget, &mut *self.clock.progress);
        let (decision, stats) = match self.techniques.heuristic {
            Heuristic::Off => backend.decide(pruned.question(), budget, progress)?,
            heuristic => {
                let (decision, stats, assumed) = heuristic::decide(
                    heuristic,
                    pruned.question(),
                    &chains,
                    backend,
                    budget,
                    progress,
                )?;
                self.stats.heuristic = Some(assumed);
                (decision, stats)
            }
        };
        self.stats.decide = Some(stats);
        match decision {
            Decision::Choices(choices) => self.satisfied(Decider::Backend, pruned, &choices),
            Decision::Core(core) => self.refuted(pruned, &core),
            Decision::Unknown(reason) => Err(Stop::Budget(reason)),
        }
    }

    fn refuted(&mut self, pruned: &Pruned, core: &[u32]) -> Result<Answer, Stop> {
        self.clock.enter(Phase::Explain);
        let proof = kingsnake_refute::refute_core(pruned, core, self.history, self.budget);
        self.proved(Decider::Backend, proof)
    }

    /// Turns choices into an order, and replays it.
    fn satisfied(
        &mut self,
        decider: Decider,
        pruned: &Pruned,
        choices: &[Side],
    ) -> Result<Answer, Stop> {
        let polygraph = &pruned.polygraph;
        let order = if choices.is_empty() {
            Ok(pruned.dag.order().to_vec())
        } else {
            chosen_order(pruned, choices).map_err(|Cyclic| "the choices have a cycle".to_owned())
        };
        let certificate = order.map(|order| Certificate {
            order: order
                .into_iter()
                .filter_map(|node| polygraph.point(node))
                .collect(),
        });
        self.explained(decider, certificate)
    }

    fn has_aggregates(&self) -> bool {
        let mut predicates = self.history.all_predicates().iter();
        predicates.any(|(_, it)| matches!(it.act, Act::Aggregate { .. }))
    }

    /// Replays an order.
    fn explained(
        &mut self,
        decider: Decider,
        certificate: Result<Certificate, String>,
    ) -> Result<Answer, Stop> {
        self.clock.enter(Phase::Certify);
        let holds = certificate.and_then(|certificate| {
            let (history, spec) = (self.history, self.spec);
            let holds = certify::order::replay_without_aggregates(history, spec, &certificate);
            holds.map(|()| certificate)
        });
        let certificate = certified(decider, "satisfied", holds)?;
        // An order that gives every aggregate its result is an answer; that this one does not is none.
        if self.has_aggregates()
            && certify::order::replay(self.history, self.spec, &certificate).is_err()
        {
            return Err(CheckError::Aggregates.into());
        }
        Ok((decider, Verdict::Satisfied(certificate)))
    }
}

/// The order that sides of the constraints leave.
pub(crate) fn chosen_order(pruned: &Pruned, choices: &[Side]) -> Result<Vec<u32>, Cyclic> {
    let constraints = &pruned.constraints;
    let chosen = choices.iter().enumerate();
    let chosen = chosen.flat_map(|(at, &side)| constraints.side(at, side));
    let edges: Vec<Edge> = pruned.question().known().chain(chosen.copied()).collect();
    Dag::new(pruned.dag.n_nodes(), edges.iter()).map(|dag| dag.order().to_vec())
}

fn certified<T>(
    decider: Decider,
    answer: &'static str,
    holds: Result<T, String>,
) -> Result<T, CheckError> {
    holds.map_err(|why| CheckError::Uncertified {
        decider: decider.name(),
        answer,
        why,
    })
}
