//! The components of the cycles found: cycles that share transactions, each with all their steps.

use std::collections::BTreeMap;

use kingsnake_solver::model::TxnId;
use kingsnake_solver::verdict::{Counterexample, Moment, Point, Step};

use crate::anomalies::FoundAnomalies;

/// Transactions connected by cycles.
pub struct Component {
    /// Number of transactions.
    pub n_txns: usize,
    /// The first of them, in session order.
    pub txns: Vec<TxnId>,
    /// The steps between these, one per pair.
    pub steps: Vec<Step>,
}

/// A picture of more transactions is unreadable.
const MOST_TXNS: usize = 40;

/// The components of all cycles that were found, the largest first.
pub fn components(found: &FoundAnomalies) -> Vec<Component> {
    let examples = found.anomalies.classes.iter().flat_map(|it| &it.examples);
    let cycles = examples.filter_map(|example| match example {
        Counterexample::Cyclic(proof) => Some(proof.steps().copied().collect::<Vec<Step>>()),
        _ => None,
    });
    let cycles: Vec<Vec<Step>> = cycles.collect();
    let mut root: BTreeMap<TxnId, TxnId> = BTreeMap::new();
    for steps in &cycles {
        for step in steps {
            let (one, other) = (find(&mut root, step.from.txn), find(&mut root, step.to.txn));
            root.insert(one.max(other), one.min(other));
        }
    }
    let mut parts: BTreeMap<TxnId, (Vec<TxnId>, Vec<Step>)> = BTreeMap::new();
    let txns: Vec<TxnId> = root.keys().copied().collect();
    for txn in txns {
        let of = find(&mut root, txn);
        parts.entry(of).or_default().0.push(txn);
    }
    for step in cycles.into_iter().flatten() {
        let of = find(&mut root, step.from.txn);
        let step = whole(step);
        let steps = &mut parts.entry(of).or_default().1;
        // The worst classes come first, so the first step between two transactions is the one to keep.
        let is_known = |it: &Step| (it.from, it.to) == (step.from, step.to);
        if step.from != step.to
            && steps.len() < MOST_TXNS * MOST_TXNS
            && !steps.iter().any(is_known)
        {
            steps.push(step);
        }
    }
    let parts = parts.into_values().map(|(mut txns, mut steps)| {
        let n_txns = txns.len();
        txns.truncate(MOST_TXNS);
        steps.retain(|step| {
            let is_there = |txn: &TxnId| txns.binary_search(txn).is_ok();
            is_there(&step.from.txn) && is_there(&step.to.txn)
        });
        Component {
            n_txns,
            txns,
            steps,
        }
    });
    let mut parts: Vec<Component> = parts.collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.n_txns));
    parts
}

/// A step between transactions, whichever of their begins and commits it connects.
fn whole(step: Step) -> Step {
    let point = |point: Point| Point {
        txn: point.txn,
        moment: Moment::Whole,
    };
    Step {
        from: point(step.from),
        to: point(step.to),
        reason: step.reason,
    }
}

/// The smallest transaction known to be in the same component.
fn find(root: &mut BTreeMap<TxnId, TxnId>, txn: TxnId) -> TxnId {
    let mut at = txn;
    loop {
        let next = *root.entry(at).or_insert(at);
        if next == at {
            break;
        }
        at = next;
    }
    root.insert(txn, at);
    at
}
