//! Explains why no order of versions explains a history at parallel snapshot isolation: a tree of cases, whose leaves are cycles with at most
//! one rw step.
//!
//! Every order that was forced is a case of its own whose opposite closes a cycle, but only where a leaf rests on it.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::known::{Forced, Known, Link, Pair};
use crate::budget::Budget;
use crate::model::{History, KeyId};
use crate::resolve::VersionId;
use crate::verdict::{Fact, Proof, Split, Step, StepReason};
use kingsnake_refute::{NoProof, Steps};

/// The orders that a proof assumes from outside.
type Used = BTreeSet<Pair>;

pub(super) struct ForkProver<'a> {
    pub(super) steps: Steps<'a>,
    /// How often each order was in a conflict: split on the most frequent first.
    pub(super) blamed: FxHashMap<Pair, usize>,
    pub(super) budget: &'a Budget,
}

/// Proves that nothing explains what is known.
pub(super) fn prove(
    known: Known<'_>,
    history: &History,
    blamed: FxHashMap<Pair, usize>,
    budget: &Budget,
) -> Result<Proof, NoProof> {
    let steps = Steps::new(known.polygraph(), history);
    let mut prover = ForkProver {
        steps,
        blamed,
        budget,
    };
    match prover.refute(known.clone()) {
        Err(NoProof::NotFound) => {}
        found => return found.map(|it| it.0),
    }
    // Edges that rest on versions that were made of each other in a circle, or on lists that contradict each other, have no fact of
    // their own; every order that can be read off takes their place.
    let mut readable = known;
    readable.retain(|edge| {
        let step = prover.steps.step(edge);
        step.is_some_and(|step| !is_assumed(step.reason))
    });
    readable.extend(prover.steps.read_off());
    prover.refute(readable).map(|it| it.0)
}

impl ForkProver<'_> {
    fn refute(&mut self, mut known: Known<'_>) -> Result<(Proof, Used), NoProof> {
        let before = known.forced.len();
        let (proof, used) = if known.prune(None, self.budget)? {
            self.split(&known)?
        } else {
            let cycle = known.cycle(self.budget)?.ok_or(NoProof::NotFound)?;
            self.leaf(&known, &cycle).ok_or(NoProof::NotFound)?
        };
        self.wrap(&known, before, proof, used)
    }

    /// Both orders of a pair.
    fn split(&mut self, known: &Known<'_>) -> Result<(Proof, Used), NoProof> {
        let blame = |&(a, b): &Pair| {
            let of = |pair: &Pair| self.blamed.get(pair).copied().unwrap_or(0);
            of(&(a, b)) + of(&(b, a))
        };
        let pair = known.open.iter().copied().max_by_key(blame);
        let (a, b) = pair.ok_or(NoProof::NotFound)?;
        let mut cases = Vec::new();
        let mut all = Used::new();
        for pair in [(a, b), (b, a)] {
            let mut child = known.clone();
            child.assume(pair);
            let (proof, mut used) = self.refute(child)?;
            if !used.remove(&pair) {
                return Ok((proof, used));
            }
            cases.push(proof);
            all.extend(used);
        }
        let second = cases.pop().ok_or(NoProof::NotFound)?;
        let first = cases.pop().ok_or(NoProof::NotFound)?;
        Ok((Proof::split(writers(known, (a, b)), first, second), all))
    }

    /// A cycle as a proof. An order whose opposite can be read off was forced by a cycle that is one, too.
    fn leaf(&mut self, known: &Known<'_>, cycle: &[Link]) -> Option<(Proof, Used)> {
        let mut cycle = cycle.to_vec();
        for _ in 0..=known.forced.len() {
            if let Some(found) = self.steps_of(&cycle) {
                return Some(found);
            }
            let contrary = cycle
                .iter()
                .find(|link| self.steps.step(link.0).is_none())?;
            let forced = forced(known, contrary.1?)?;
            cycle = known.closes(turned(forced.pair), forced.end)?;
        }
        None
    }

    fn steps_of(&mut self, cycle: &[Link]) -> Option<(Proof, Used)> {
        let mut used = Used::new();
        let mut steps: Vec<Step> = Vec::new();
        for &(edge, pair) in cycle {
            let step = self.steps.step(edge)?;
            if is_assumed(step.reason) {
                used.insert(pair?);
            }
            steps.push(step);
        }
        Some((Proof::Cycle(self.steps.told(steps)), used))
    }

    /// Puts around a proof the cases of the orders that were forced since, the latest first.
    fn wrap(
        &mut self,
        known: &Known<'_>,
        before: usize,
        mut proof: Proof,
        mut used: Used,
    ) -> Result<(Proof, Used), NoProof> {
        for &Forced { pair, end } in known.forced[before..].iter().rev() {
            self.budget.check()?;
            if !used.remove(&pair) {
                continue;
            }
            let cycle = known.closes(turned(pair), end).ok_or(NoProof::NotFound)?;
            let (opposite, mut others) = self.steps_of(&cycle).ok_or(NoProof::NotFound)?;
            if !others.remove(&turned(pair)) {
                // The reason of the order is a contradiction by itself.
                (proof, used) = (opposite, others);
                continue;
            }
            used.extend(others);
            proof = Proof::split(writers(known, pair), proof, opposite);
        }
        Ok((proof, used))
    }
}

fn turned((a, b): Pair) -> Pair {
    (b, a)
}

fn forced(known: &Known<'_>, pair: Pair) -> Option<Forced> {
    known.forced.iter().copied().find(|it| it.pair == pair)
}

fn is_assumed(reason: StepReason) -> bool {
    matches!(
        reason,
        StepReason::Ww {
            fact: Fact::Assumed,
            ..
        } | StepReason::Rw {
            fact: Fact::Assumed,
            ..
        }
    )
}

/// The last writer of the first run, and the first of the second.
fn writers(known: &Known<'_>, (a, b): Pair) -> Split {
    let resolved = known.polygraph().resolved();
    let versions = resolved.versions();
    let orders = known.orders();
    let (before, after) = (orders.run(a).last, orders.run(b).head);
    let writer = |version| resolved.txn(versions.writer(VersionId(version)));
    let key: KeyId = versions.key(VersionId(before));
    Split {
        key,
        one: writer(before),
        other: writer(after),
    }
}
