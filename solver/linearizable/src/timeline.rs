//! Gives every operation its moment, and puts the operations of all keys into one order by their moments.

use kingsnake_history::model::TxnId;

use crate::operations::Operation;

/// The moments of a key's operations in this order: each as early as its start and the moments before it allow.
///
/// In an order that fits the clock nothing that comes earlier started after the end of what comes later, so a moment is
/// never after the operation's end.
pub(crate) fn moments(ops: &[Operation], order: &[u32]) -> Vec<(i64, TxnId)> {
    let mut now = i64::MIN;
    let moment = |&at: &u32| {
        let op = &ops[at as usize];
        now = now.max(op.begin);
        (now, op.txn)
    };
    order.iter().map(moment).collect()
}

/// One order of all operations, by their moments; that of each key is kept.
pub(crate) fn merge(keys: Vec<Vec<(i64, TxnId)>>) -> Vec<TxnId> {
    let mut keys = keys;
    if keys.len() == 1 {
        return keys.remove(0).into_iter().map(|(_, txn)| txn).collect();
    }
    let mut all = keys.concat();
    // The sort is stable, and finds the runs that are in order already.
    all.sort_by_key(|&(moment, _)| moment);
    all.into_iter().map(|(_, txn)| txn).collect()
}
