//! The loop: prune, decide, check the obligations, add their lemmas, until an order meets all of them or there is none.
//!
//! An obligation is a condition on orders that would be too large to state beforehand. The question only grows
//! (`question`): a history that is violated without some of its obligations is violated. Without obligations, the graph
//! is pruned and decided once.

mod absent;
mod broken;
mod fixed;
mod narrow;
mod question;
mod ranks;
mod reads;
mod results;
mod schedule;
pub(crate) mod tally;
#[cfg(test)]
mod tests;

pub(crate) use fixed::pose;
pub(crate) use narrow::{impossible_sources, newest};
pub(crate) use ranks::Ranks;
pub(crate) use results::{Counted, CountedRead, Counting, has_aggregates};

use crate::budget::Budget;
use crate::check::Engines;
use crate::context::Context;
use crate::decide::{Backend, DecideError, Origin, Side};
use crate::model::KeyId;
use crate::phases::{self, Check, Exit, Refuted, Stop};
use crate::progress::{Phase, Progress, Silent};
use crate::prune::{Pruned, Variable};
use crate::relate::{Edge, Polygraph};
use crate::report::{CheckError, CheckStats, Decider};
use crate::resolve::{CountedAggregate, Node, Resolved, Uncertain};
use crate::sight;
use crate::verdict::{Moment, Point, Proof};
use kingsnake_graph::Literal;
use question::{OpenQuestion, Turn};
use reads::Reads;
use results::Wrong;

/// A transaction, and a row that it did not see.
pub(crate) type KeyReader = (Node, KeyId);

/// An order that was found, and what it depends on.
pub(crate) struct Found<'a> {
    check: &'a Check<'a>,
    base: &'a Resolved,
    pruned: &'a Pruned,
    reads: &'a Reads,
    counted: &'a Counted,
    decider: Decider,
    /// The nodes of the graph, in order.
    order: Vec<u32>,
    /// Rows that queries see in it although they did not return them.
    shown: Vec<KeyReader>,
    /// The transactions in doubt that did not take effect, sorted.
    without_effect: Vec<Node>,
    sides: &'a [Side],
}

impl Found<'_> {
    /// The nodes of the graph, in order.
    pub(crate) fn order(&self) -> &[u32] {
        &self.order
    }

    /// What decided.
    pub(crate) fn decider(&self) -> Decider {
        self.decider
    }

    /// Whether a variable of the logic is true.
    pub(crate) fn holds(&self, variable: u32) -> bool {
        match self.pruned.variables[variable as usize] {
            Variable::Settled(value) => value,
            Variable::Open(at) => self.sides[at as usize] == Side::Either,
        }
    }

    /// The transactions, or their begins and commits, in order.
    fn moments(&self) -> impl Iterator<Item = (Node, Moment)> + '_ {
        let polygraph = &self.pruned.problem;
        let nodes = self.order.iter().copied();
        let nodes = nodes.filter(|&it| polygraph.transaction(it).is_some());
        let moments = nodes.map(|it| polygraph.places().point(it));
        moments.filter(|it| self.has_effect(it.0))
    }

    /// Whether a transaction took effect.
    fn has_effect(&self, txn: Node) -> bool {
        self.without_effect.is_empty() || self.without_effect.binary_search(&txn).is_err()
    }
}

/// A condition on orders.
pub(crate) trait Obligation {
    /// What an order does not meet, as lemmas that exclude all orders with the same mistakes; empty if it meets all.
    fn check(&mut self, found: &Found<'_>) -> Result<Vec<Lemma>, Stop>;
}

/// An addition to the question. Each is its own justification.
pub(crate) enum Lemma {
    /// An uncertain read, by its number, is of one of its candidates.
    Read(usize),
    /// A transaction read an absent row that its queries did not return.
    Absent(KeyReader),
    /// The rows that an aggregate counted give its result.
    Count(CountedAggregate),
    /// An aggregate did not count these cells of its rows.
    Refuse(Wrong),
    /// These cannot all hold.
    Conflict(Vec<Literal>),
    /// An edge of the orders in which these hold.
    Guarded(Edge, Vec<Literal>),
    /// The graph in which more is certain, and what is stated in it beforehand. It takes the place of the one that was asked.
    Anew(Box<Polygraph>),
}

/// The question: a graph, the obligations, and the likely positions of its nodes.
pub(crate) struct AskedOrder<'a, 'o> {
    pub(crate) check: &'a Check<'a>,
    pub(crate) base: &'a Resolved,
    pub(crate) ranks: Option<&'a Ranks>,
    pub(crate) polygraph: Polygraph,
    pub(crate) obligations: Vec<Box<dyn Obligation + 'o>>,
}

/// How the loop ended.
pub(crate) enum Ended {
    Order(Decider, Vec<(Node, Moment)>),
    No(Box<Refutation>),
}

/// Why there is no order: what was stated.
pub(crate) struct Refutation {
    /// With all reads that were added.
    pub(crate) base: Resolved,
    /// The reads that were stated, or taken to be of one version.
    pub(crate) stated: Vec<usize>,
    pub(crate) counted: Counted,
    pub(crate) decider: Decider,
    /// A transaction in doubt: whether it took effect or not, there is none.
    blamed: Option<Node>,
    /// The variables that a back end blames.
    pub(crate) variables: Vec<u32>,
}

/// Whether an order has to meet more than the graph says.
fn is_obliged(check: &Check<'_>, base: &Resolved) -> bool {
    !base.uncertain().is_empty()
        || !base.in_doubt().is_empty()
        || !base.unreturned().is_empty()
        || has_aggregates(check.history)
}

/// From the graph to an order that tells what was read.
pub(crate) fn settle(
    check: &Check<'_>,
    polygraph: Polygraph,
    engines: Engines<'_>,
    context: &mut Context<'_>,
) -> Result<(Decider, Vec<Point>), Exit> {
    if !is_obliged(check, polygraph.resolved()) {
        let pruned = phases::prune(check, polygraph, engines.device, context)?;
        let decided = phases::decide(check, pruned, engines.backend, context)?;
        return Ok((decided.decider, phases::order(&decided)?));
    }
    context.go_on(Phase::Decide);
    let base = polygraph.resolved().clone();
    let backend = engines.backend;
    expect_taken(backend)?;
    expect_candidates(&base)?;
    let (budget, progress) = (context.budget, &mut *context.progress);
    let stats = &mut context.stats;
    let asked = AskedOrder::of(check, &base, polygraph);
    let refutation = match run(asked, backend, stats, budget, progress)? {
        Ended::Order(decider, order) => {
            let point = |(node, moment)| Point {
                txn: base.txn(node),
                moment,
            };
            return Ok((decider, order.into_iter().map(point).collect()));
        }
        Ended::No(no) => *no,
    };
    if let Some(node) = refutation.blamed {
        return Err(Refuted::EitherEnd(base.txn(node)).into());
    }
    expect_candidates(&refutation.base)?;
    backend.conclude();
    Err(sight::refuted(check, &refutation, backend, budget)?)
}

/// Searches an order that explains the uncertain reads and the aggregates, without explaining why there is none. The
/// nodes may be parts of
/// transactions.
pub(crate) fn find(
    check: &Check<'_>,
    base: &Resolved,
    backend: &mut dyn Backend,
    budget: &Budget,
) -> Result<Option<Vec<(Node, Moment)>>, Stop> {
    let shape = check.techniques.shape();
    let polygraph =
        crate::relate::construct_within(check.history, base.clone(), check.spec, shape, budget)?;
    let (stats, asked) = (
        &mut CheckStats::default(),
        AskedOrder::of(check, base, polygraph),
    );
    Ok(match run(asked, backend, stats, budget, &mut Silent)? {
        Ended::Order(_, order) => Some(order),
        Ended::No(_) => None,
    })
}

impl<'a> AskedOrder<'a, '_> {
    /// The graph of a history, with all obligations.
    fn of(check: &'a Check<'a>, base: &'a Resolved, polygraph: Polygraph) -> Self {
        AskedOrder {
            check,
            base,
            ranks: None,
            polygraph,
            obligations: obligations(check, base),
        }
    }
}

/// The obligations of a history.
fn obligations(check: &Check<'_>, base: &Resolved) -> Vec<Box<dyn Obligation>> {
    let mut obligations: Vec<Box<dyn Obligation>> = vec![Box::new(reads::Explained::default())];
    if !base.unreturned().is_empty() {
        obligations.push(Box::new(absent::Absent::new(check, base)));
    }
    if has_aggregates(check.history) {
        obligations.push(Box::new(results::Results::default()));
    }
    obligations
}

/// The loop.
pub(crate) fn run(
    asked: AskedOrder<'_, '_>,
    backend: &mut dyn Backend,
    stats: &mut CheckStats,
    budget: &Budget,
    progress: &mut dyn Progress,
) -> Result<Ended, Stop> {
    let AskedOrder {
        check,
        base,
        ranks,
        mut polygraph,
        mut obligations,
    } = asked;
    loop {
        let question = OpenQuestion::new((check, base, ranks), polygraph, budget, stats)?;
        let mut question = match question {
            Ok(question) => question,
            Err(refutation) => return Ok(Ended::No(refutation)),
        };
        polygraph = loop {
            match question.turn(&mut obligations, backend, stats, progress)? {
                Turn::Grown => {
                    if let Err(decider) = question.prune_again(stats, progress)? {
                        return Ok(Ended::No(question.refutation(decider)));
                    }
                }
                Turn::Anew(polygraph) => break *polygraph,
                Turn::Order(decider, order) => return Ok(Ended::Order(decider, order)),
                Turn::No(decider) => return Ok(Ended::No(question.refutation(decider))),
            }
        };
    }
}

/// Refuses a back end that states the rules of snapshot isolation: they say nothing of what a read may choose.
fn expect_taken(backend: &dyn Backend) -> Result<(), Stop> {
    let Some(what) = backend.refuses(Origin::Other) else {
        return Ok(());
    };
    let what =
        format!("{what} and cannot decide reads of several possible writers; use another back end");
    let backend = backend.name().to_owned();
    Err(CheckError::from(DecideError { backend, what }).into())
}

/// A read that nothing explains refutes the history.
fn expect_candidates(base: &Resolved) -> Result<(), Exit> {
    let is_dead = |it: &&Uncertain| it.candidates.is_empty() && !base.is_in_doubt(it.reader);
    match base.uncertain().iter().find(is_dead) {
        None => Ok(()),
        Some(read) => {
            let proof = Proof::Choice {
                reader: base.txn(read.reader),
                op: None,
                key: read.key,
                cases: Vec::new(),
            };
            Err(Refuted::Proof(Decider::Resolve, proof).into())
        }
    }
}
