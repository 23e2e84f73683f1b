//! The phases of a check, each a function of the previous result. `export`, `stats` and the benchmarks call the first ones.

use crate::budget::StopReason;
use crate::certify;
use crate::certify::Refusal;
use crate::certify::counterexample::check_counterexample;
use crate::context::Context;
use crate::decide::{Backend, Decision, Side};
use crate::heuristic::{self, Heuristic};
use crate::level::{Model, Spec};
use crate::model::{History, TxnId};
use crate::progress::Phase;
use crate::prune::{Contradiction, Cyclic, Device, Outcome, Pruned, prune_on};
use crate::relate::{Polygraph, construct_within};
use crate::report::{CheckError, Decider};
use crate::resolve::{ResolveError, Resolved, resolve_for, resolve_reads};
use crate::shared::Shared;
use crate::solve;
use crate::techniques::Techniques;
use crate::verdict::{Certificate, Counterexample, Finding, Point, Proof, Verdict};
use crate::witness::witness;
use kingsnake_refute::{NoProof, refute, refute_core};

/// What is checked, and how.
#[derive(Clone, Copy)]
pub struct Check<'a> {
    /// The history.
    pub history: &'a History,
    /// The level.
    pub spec: Spec,
    /// The techniques.
    pub techniques: &'a Techniques,
}

/// Why the line is left before an order is found.
pub enum Exit {
    /// There is no order.
    Refuted(Box<Refuted>),
    /// There is no answer.
    Stop(Stop),
}

/// Why there is no answer.
pub enum Stop {
    /// The budget is used up.
    Budget(StopReason),
    /// The check cannot be carried out.
    Error(CheckError),
}

/// Why there is no order, as the phase that noticed has it.
#[allow(clippy::large_enum_variant)] // There is one a check.
pub enum Refuted {
    /// Some reads cannot be, whatever the order.
    Findings(Vec<Finding>),
    /// The known edges have a cycle.
    Contradiction(Decider, Contradiction),
    /// These constraints cannot all be met.
    Core(Pruned, Vec<u32>),
    /// A proof that is complete.
    Proof(Decider, Proof),
    /// A no whose reasons were not found again.
    NoProof(Decider),
    /// Whether a transaction of unknown end took effect or not, there is no order. Each of the two is to be refuted by itself.
    EitherEnd(TxnId),
}

impl From<Refuted> for Exit {
    fn from(refuted: Refuted) -> Self {
        Exit::Refuted(Box::new(refuted))
    }
}

impl<T: Into<Stop>> From<T> for Exit {
    fn from(stop: T) -> Self {
        Exit::Stop(stop.into())
    }
}

impl From<StopReason> for Stop {
    fn from(reason: StopReason) -> Self {
        Stop::Budget(reason)
    }
}

impl From<ResolveError> for Stop {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Stopped(reason) => Stop::Budget(reason),
            error => Stop::Error(error.into()),
        }
    }
}

impl From<CheckError> for Stop {
    fn from(error: CheckError) -> Self {
        Stop::Error(error)
    }
}

/// An answer that is not checked again yet.
pub enum Evidence {
    /// This order explains the history.
    Order(Certificate),
    /// Nothing does, and this is why.
    Violated(Counterexample),
}

/// What each read means.
pub fn resolve(check: &Check<'_>, context: &mut Context<'_>) -> Result<Resolved, Exit> {
    context.begin(Phase::Resolve)?;
    let resolved = resolve_for(check.history, check.spec, context.budget)?;
    let findings = resolved.broken(check.history, check.spec);
    if !findings.is_empty() {
        return Err(Refuted::Findings(findings).into());
    }
    Ok(resolved)
}

/// The graph of what must come before what.
pub fn relate(
    check: &Check<'_>,
    resolved: Resolved,
    context: &mut Context<'_>,
) -> Result<Polygraph, Exit> {
    context.begin(Phase::Construct)?;
    let (history, shape) = (check.history, check.techniques.shape());
    let polygraph = construct_within(history, resolved, check.spec, shape, context.budget)?;
    note_graph(&polygraph, context);
    Ok(polygraph)
}

/// What checks of one history at several levels have in common.
pub(crate) fn share(history: &History, context: &mut Context<'_>) -> Result<Shared, Stop> {
    context.begin(Phase::Resolve)?;
    Ok(Shared::new(resolve_reads(history, context.budget)?))
}

/// The graph, by what checks at other levels have already made.
pub(crate) fn relate_shared(
    check: &Check<'_>,
    shared: &mut Shared,
    context: &mut Context<'_>,
) -> Result<Polygraph, Exit> {
    context.begin(Phase::Construct)?;
    let shape = check.techniques.shape();
    let polygraph = shared.graph(check.history, check.spec, shape, context.budget)?;
    let polygraph = polygraph.map_err(Refuted::Findings)?;
    note_graph(&polygraph, context);
    Ok(polygraph)
}

/// Takes down how much of the history counts.
pub(crate) fn note_resolved(resolved: &Resolved, context: &mut Context<'_>) {
    let (versions, stats) = (resolved.versions(), &mut context.stats);
    stats.n_counted = resolved.n_txns();
    stats.n_unknown_counted = resolved.n_unknown_counted();
    stats.n_unknown_dropped = resolved.n_unknown_dropped();
    stats.n_versions = versions.len() - versions.n_keys();
}

fn note_graph(polygraph: &Polygraph, context: &mut Context<'_>) {
    note_resolved(polygraph.resolved(), context);
    let stats = &mut context.stats;
    stats.n_nodes = polygraph.n_nodes();
    stats.n_known_edges = polygraph.edges().len();
    stats.n_pairs = polygraph.runs().n_pairs();
}

/// Whether what others see depends on what reads can have been of, or an order does not tell it (`sight`).
pub(crate) fn needs_sight(check: &Check<'_>, resolved: &Resolved) -> bool {
    let is_certain = n_uncertain(resolved) == 0 && check.history.n_predicates() == 0;
    !is_certain
        && match check.spec.model {
            Model::Ser | Model::Si | Model::Pc => false,
            Model::Mixed => !reads_newest(check.history, resolved),
            _ => true,
        }
}

/// How many reads can have been of several versions. Weak transactions may read a key several times: each read counts.
fn n_uncertain(resolved: &Resolved) -> usize {
    let first = resolved.uncertain().len();
    first.max(resolved.reads().choices().len())
}

/// Whether all uncertain reads of a history of mixed levels are of transactions that read the newest version, and matter to no other's
/// reads: what a causal transaction sees depends on what others read.
fn reads_newest(history: &History, resolved: &Resolved) -> bool {
    let has_causal = history.models().contains(&Model::Cc);
    let is_weak = |txn: TxnId| history.model(txn).is_weak();
    let mut asked = history.all_predicates().iter();
    let (reads, choices) = (resolved.reads(), resolved.reads().choices());
    let mut weak = (0..resolved.n_txns() as u32).filter(|&node| is_weak(resolved.txn(node)));
    let is_open = |node: u32| {
        let of = reads.of(node);
        let first = choices.partition_point(|it| (it.0 as usize) < of.start);
        let first = choices.get(first);
        first.is_some_and(|it| (it.0 as usize) < of.end)
    };
    !has_causal && !asked.any(|it| is_weak(it.0)) && !weak.any(is_open)
}

/// Uncertain reads and conditions over rows are one question only where an order tells what was read.
fn expect_question(check: &Check<'_>, polygraph: &Polygraph) -> Result<(), Exit> {
    let resolved = polygraph.resolved();
    if needs_sight(check, resolved) {
        let n_reads = n_uncertain(resolved);
        return Err(ResolveError::Uncertain { n_reads }.into());
    }
    Ok(())
}

/// Settles what reachability settles.
pub fn prune(
    check: &Check<'_>,
    polygraph: Polygraph,
    device: Option<&mut dyn Device>,
    context: &mut Context<'_>,
) -> Result<Pruned, Exit> {
    context.begin(Phase::Prune)?;
    let decider = by_pruning(check, &polygraph);
    let options = check.techniques.prune_options();
    let stats = &mut context.stats.prune;
    let (budget, progress) = (context.budget, &mut *context.progress);
    match prune_on(device, polygraph, options, stats, budget, progress)? {
        Outcome::Contradiction(found) => {
            context.stats.n_pruned_edges = found.problem.edges().len();
            Err(Refuted::Contradiction(decider, found).into())
        }
        Outcome::Pruned(pruned) => {
            context.stats.n_pruned_edges = pruned.problem.edges().len();
            context.stats.n_open = pruned.constraints.len();
            Ok(pruned)
        }
    }
}

/// Decider to credit when pruning answers.
fn by_pruning(check: &Check<'_>, polygraph: &Polygraph) -> Decider {
    if polygraph.problem().is_settled() && check.techniques.linear {
        Decider::Linear
    } else {
        Decider::Prune
    }
}

/// The question that a back end is asked about a history: the line up to there.
pub fn pose(check: &Check<'_>, context: &mut Context<'_>) -> Result<Pruned, Exit> {
    let polygraph = relate(check, resolve(check, context)?, context)?;
    expect_question(check, &polygraph)?;
    let polygraph = solve::pose(check, polygraph, context)?;
    prune(check, polygraph, None, context)
}

/// A pruned graph with a side for everything that was open.
pub struct Decided {
    /// Who decided.
    pub decider: Decider,
    /// The graph.
    pub pruned: Pruned,
    /// The sides.
    pub sides: Vec<Side>,
}

/// Settles what pruning left open.
pub fn decide(
    check: &Check<'_>,
    pruned: Pruned,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<Decided, Exit> {
    let by = |decider, pruned, sides| {
        Ok(Decided {
            decider,
            pruned,
            sides,
        })
    };
    if pruned.constraints.is_empty() {
        return by(by_pruning(check, &pruned.problem), pruned, Vec::new());
    }
    context.begin(Phase::Decide)?;
    if check.techniques.witness
        && let Some(sides) = witness(pruned.question())
    {
        return by(Decider::Witness, pruned, sides);
    }
    match ask(check, &pruned, backend, context)? {
        Decision::Choices(sides) => by(Decider::Backend, pruned, sides),
        Decision::Core(core) => Err(Refuted::Core(pruned, core).into()),
        Decision::Unknown(reason) => Err(reason.into()),
    }
}

/// Asks the back end.
fn ask(
    check: &Check<'_>,
    pruned: &Pruned,
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<Decision, Exit> {
    context.budget.check()?;
    let (budget, progress) = (context.budget, &mut *context.progress);
    let question = pruned.question();
    let (decision, stats) = match check.techniques.heuristic {
        Heuristic::Off => backend.decide(question, budget, progress),
        heuristic => {
            let chains = pruned.problem.sessions();
            heuristic::decide(heuristic, question, &chains, backend, budget, progress).map(
                |(decision, stats, assumed)| {
                    context.stats.heuristic = Some(assumed);
                    (decision, stats)
                },
            )
        }
    }
    .map_err(CheckError::from)?;
    context.stats.decide = Some(stats);
    Ok(decision)
}

/// The order that the sides leave.
pub fn order(decided: &Decided) -> Result<Vec<Point>, CheckError> {
    let nodes = sorted(decided)?.into_iter();
    let polygraph = &decided.pruned.problem;
    Ok(nodes.filter_map(|node| polygraph.point(node)).collect())
}

/// The same as nodes of the graph.
pub(crate) fn sorted(decided: &Decided) -> Result<Vec<u32>, CheckError> {
    let order = decided.pruned.order(&decided.sides);
    order.map_err(|Cyclic| cyclic(decided.decider))
}

/// The decider's sides form a cycle.
pub fn cyclic(decider: Decider) -> CheckError {
    let why = Refusal::Order("the choices have a cycle".to_owned());
    uncertified(decider, "satisfied", why)
}

/// What was found, with a proof in place of the reasons of the phase that refuted.
pub fn explain(
    check: &Check<'_>,
    found: Result<(Decider, Certificate), Exit>,
    context: &mut Context<'_>,
) -> Result<(Decider, Evidence), Stop> {
    let refuted = match found {
        Ok((decider, order)) => return Ok((decider, Evidence::Order(order))),
        Err(Exit::Refuted(refuted)) => *refuted,
        Err(Exit::Stop(stop)) => return Err(stop),
    };
    let (history, budget) = (check.history, context.budget);
    let (decider, proof) = match refuted {
        Refuted::Findings(findings) => {
            let evidence = Evidence::Violated(Counterexample::Local(findings));
            return Ok((Decider::Resolve, evidence));
        }
        Refuted::Proof(decider, proof) => (decider, Ok(proof)),
        Refuted::NoProof(decider) => (decider, Err(NoProof::NotFound)),
        Refuted::EitherEnd(_) => (Decider::Backend, Err(NoProof::NotFound)),
        Refuted::Contradiction(decider, found) => {
            context.go_on(Phase::Explain);
            (decider, refute(&found, history, budget))
        }
        Refuted::Core(pruned, core) => {
            context.go_on(Phase::Explain);
            let proof = refute_core(&pruned, &core, history, budget);
            (Decider::Backend, proof)
        }
    };
    match proof {
        Ok(proof) => Ok((decider, Evidence::Violated(Counterexample::Cyclic(proof)))),
        Err(NoProof::Stopped(reason)) => Err(reason.into()),
        Err(NoProof::NotFound) => {
            let why = Refusal::Refutation("its reasons cannot be found again".to_owned());
            Err(uncertified(decider, "violated", why).into())
        }
    }
}

/// Checks an answer again, by code that shares nothing with what found it.
pub fn certify(
    check: &Check<'_>,
    decider: Decider,
    evidence: Evidence,
    context: &mut Context<'_>,
) -> Result<Verdict, Stop> {
    context.go_on(Phase::Certify);
    match evidence {
        Evidence::Order(order) => replay(check, decider, order),
        Evidence::Violated(counterexample) => {
            let (history, spec) = (check.history, check.spec);
            match check_counterexample(history, spec, &counterexample, context.budget) {
                Ok(()) => Ok(Verdict::Violated(counterexample)),
                Err(Refusal::Stopped(reason)) => Err(reason.into()),
                Err(why) => Err(uncertified(decider, "violated", why).into()),
            }
        }
    }
}

fn replay(check: &Check<'_>, decider: Decider, order: Certificate) -> Result<Verdict, Stop> {
    let (history, spec) = (check.history, check.spec);
    certify::order::replay(history, spec, &order)
        .map_err(|why| uncertified(decider, "satisfied", why))?;
    Ok(Verdict::Satisfied(order))
}

fn uncertified(decider: Decider, answer: &'static str, why: Refusal) -> CheckError {
    CheckError::Uncertified {
        decider: decider.name(),
        answer,
        why,
    }
}
