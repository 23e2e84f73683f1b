//! Replays an order and finds the aggregates that have another result in it.

use rustc_hash::FxHashMap;

use super::tally::Tally;
use crate::level::Spec;
use crate::model::{Act, History, KeyId, Op, Token};
use crate::relate::reads_at;
use crate::resolve::{CountedAggregate, Node, Resolved, VersionId};
use crate::verdict::{Moment, Point};

/// An aggregate that has another result in an order, and what the rows added to it there.
pub(crate) struct Wrong {
    pub(super) reader: Node,
    pub(super) nth: usize,
    /// Sorted by key.
    pub(super) seen: Vec<(KeyId, Token)>,
}

/// The aggregates that have another result in an order of transactions, or of begins and commits; each reads where its level says. Of
/// weak transactions the order does not tell what they read.
pub(super) fn broken(
    history: &History,
    spec: Spec,
    base: &Resolved,
    order: impl IntoIterator<Item = (Node, Moment)>,
) -> Vec<Wrong> {
    let mut held: FxHashMap<KeyId, VersionId> = FxHashMap::default();
    let mut wrong = Vec::new();
    for (node, moment) in order {
        let txn = base.txn(node);
        let is_weak = spec.model_of(history, txn).is_weak();
        if !is_weak && reads_at(history, spec, Point { txn, moment }) {
            let mut predicates = history.predicates(txn);
            if predicates.any(|it| matches!(it.act, Act::Aggregate { .. })) {
                let aggregates = base.aggregates_of(history, node).into_iter();
                wrong.extend(aggregates.filter_map(|it| judge(history, base, &it, &held)));
            }
        }
        if moment != Moment::Begin {
            for &op in history.ops(txn) {
                if let Op::Write { key, .. } = op
                    && let Some(version) = base.versions().of_writer(key, node)
                {
                    held.insert(key, version);
                }
            }
        }
    }
    wrong
}

fn judge(
    history: &History,
    base: &Resolved,
    aggregate: &CountedAggregate,
    held: &FxHashMap<KeyId, VersionId>,
) -> Option<Wrong> {
    let seen = base.counted_cells(history, aggregate, |key| {
        let version = held.get(&key).copied();
        version.unwrap_or_else(|| base.versions().initial(key))
    });
    let tally = Tally::of(history, aggregate.function, aggregate.result);
    let cells = seen.iter().map(|it| it.1);
    let partial = tally.over(aggregate.own.iter().copied().chain(cells));
    if partial.is_some_and(|it| tally.is_result(it)) {
        return None;
    }
    Some(Wrong {
        reader: aggregate.reader,
        nth: aggregate.nth,
        seen,
    })
}
