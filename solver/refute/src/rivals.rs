//! Two versions that were made of the same version: a lost update, described with the overwritten update first.

use super::world::turn;
use crate::model::{History, TxnId};
use crate::relate::Polygraph;
use crate::resolve::VersionId;
use crate::verdict::{Fact, Point, Step, StepReason};

/// Two rivals in the order in which they are printed: the one that was overwritten first, if that is known.
pub(super) fn told(
    polygraph: &Polygraph,
    history: &History,
    (one, other): (VersionId, VersionId),
) -> (VersionId, VersionId) {
    let resolved = polygraph.resolved();
    let versions = resolved.versions();
    let pair = [one, other].map(|it| resolved.txn(versions.writer(it)));
    let readers = [one, other].map(|it| {
        let readers = versions.readers(it).iter();
        readers.map(|&node| resolved.txn(node)).collect::<Vec<_>>()
    });
    let [a, b] = &readers;
    let is_swapped = match history.overwritten(versions.key(one), pair, [a, b]) {
        Some(first) => first == pair[1],
        None => history.compare_txns(pair[0], pair[1]).is_gt(),
    };
    if is_swapped {
        (other, one)
    } else {
        (one, other)
    }
}

/// A cycle as it is printed: where it is a lost update that can be printed either way, with the update first that was overwritten.
pub(super) fn oriented(polygraph: &Polygraph, history: &History, steps: Vec<Step>) -> Vec<Step> {
    match rivals(polygraph, &steps) {
        Some(pair) if told(polygraph, history, pair) != pair => {
            let [one, other] = [pair.0, pair.1].map(|it| {
                let resolved = polygraph.resolved();
                resolved.txn(resolved.versions().writer(it))
            });
            turn(history, mirrored(&steps, one, other))
        }
        _ => turn(history, steps),
    }
}

/// The versions of a cycle that is a ww and an rw step between two writers who read the same version.
fn rivals(polygraph: &Polygraph, steps: &[Step]) -> Option<(VersionId, VersionId)> {
    let (ww, rw) = match *steps {
        [a, b] if matches!(a.reason, StepReason::Ww { .. }) => (a, b),
        [a, b] => (b, a),
        _ => return None,
    };
    let (StepReason::Ww { key, fact: one }, StepReason::Rw { fact: other, .. }) =
        (ww.reason, rw.reason)
    else {
        return None;
    };
    let is_known = one == Fact::Run && matches!(other, Fact::Run | Fact::Initial);
    if !is_known || rw.reason.key() != Some(key) {
        return None;
    }
    let resolved = polygraph.resolved();
    let versions = resolved.versions();
    let version = |txn: TxnId| versions.of_writer(key, resolved.node(txn)?);
    let (first, second) = (version(ww.from.txn)?, version(ww.to.txn)?);
    let before = versions.predecessor(first)?;
    (versions.predecessor(second) == Some(before)).then_some((first, second))
}

/// The same steps with two transactions exchanged.
fn mirrored(steps: &[Step], one: TxnId, other: TxnId) -> Vec<Step> {
    let swap = |point: Point| Point {
        txn: if point.txn == one { other } else { one },
        ..point
    };
    let swapped = steps.iter().map(|step| Step {
        from: swap(step.from),
        to: swap(step.to),
        reason: step.reason,
    });
    swapped.collect()
}
