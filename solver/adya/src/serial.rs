//! Whether any serial order at all explains what the clients saw, for small histories: prefixes are tried one transaction at a
//! time, as long as every read and predicate fits.

use kingsnake_certify::along as certify;
use kingsnake_history::budget::Budget;
use kingsnake_history::model::{History, Op, TxnId};
use rustc_hash::FxHashSet;

use crate::along::Replay;
use crate::error::AdyaError;

/// What the search found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Serial {
    /// This order explains everything.
    Order(Vec<TxnId>),
    /// None does.
    None,
    /// The search was given up.
    TooLarge,
}

/// The most transactions, so that a set of them is a number.
const MOST: usize = 64;
/// The most prefixes that are tried.
const PREFIXES: usize = 50_000;

/// Searches a serial order.
pub fn serial_order(history: &History, budget: &Budget) -> Result<Serial, AdyaError> {
    let counted = certify::counted(history);
    let is_list = |op: &Op| matches!(op, Op::Append { .. });
    let mut ops = history.txns().flat_map(|txn| history.ops(txn));
    // What is remembered of a prefix does not hold lists.
    if counted.len() > MOST || ops.any(is_list) {
        return Ok(Serial::TooLarge);
    }
    let mut seen: FxHashSet<(u64, Vec<u32>)> = FxHashSet::default();
    let mut stack = vec![(0_u64, Vec::new(), Replay::new(history))];
    while let Some((done, order, replay)) = stack.pop() {
        if order.len() == counted.len() {
            return Ok(Serial::Order(order));
        }
        if seen.len() >= PREFIXES {
            return Ok(Serial::TooLarge);
        }
        if seen.len().is_multiple_of(256) {
            budget.check()?;
        }
        for (bit, &txn) in counted.iter().enumerate().rev() {
            if done & (1 << bit) != 0 {
                continue;
            }
            let mut next = replay.clone();
            if next.txn(txn)?.is_some() {
                continue;
            }
            let done = done | (1 << bit);
            if seen.insert((done, next.state.clone())) {
                let mut order = order.clone();
                order.push(txn);
                stack.push((done, order, next));
            }
        }
    }
    Ok(Serial::None)
}
