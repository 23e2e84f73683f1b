//! Checks answers about linearizability, independently of the engines that found them.
//!
//! [`replay`] runs an order on one machine: every operation at a moment between its start and its end, no moment before the
//! last. [`stuck`] follows the clock forward and keeps every configuration that the operations allow (Lowe's just-in-time
//! linearization), where the engine searches backwards from a failure with a cache.

use rustc_hash::FxHashSet;

use super::Refusal;
use kingsnake_history::model::{
    CompareAndSet, CompareOutcome, History, KeyId, Op, Status, TxnId, ValueId,
};
use kingsnake_history::promise::RegisterOptions;

/// Limit of configurations visited to check a violation.
pub const MOST_CONFIGURATIONS: usize = 4_000_000;

/// An operation and its moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationMoment {
    /// The operation.
    pub txn: TxnId,
    /// When it took effect.
    pub at: i64,
}

/// The moments of operations in this order: each as early as possible.
pub fn moments(history: &History, order: impl IntoIterator<Item = TxnId>) -> Vec<OperationMoment> {
    let mut now = i64::MIN;
    let moment = |txn: TxnId| {
        now = now.max(history.interval(txn).begin);
        OperationMoment { txn, at: now }
    };
    order.into_iter().map(moment).collect()
}

/// When an operation can have taken effect.
fn window(history: &History, demand: RegisterOptions, txn: TxnId) -> (i64, i64) {
    let interval = history.interval(txn);
    let end = interval.commit.saturating_add_unsigned(demand.drift);
    (interval.begin, end)
}

/// Whether a register in this state shows a value; `None` is the initial state.
fn shows(history: &History, state: Option<ValueId>, value: ValueId) -> bool {
    state.map_or(history.is_initial(value), |held| held == value)
}

/// Runs an order. The error says what does not hold.
pub fn replay(
    history: &History,
    demand: RegisterOptions,
    order: &[OperationMoment],
) -> Result<(), Refusal> {
    explain(history, demand, order).map_err(Refusal::Order)
}

fn explain(
    history: &History,
    demand: RegisterOptions,
    order: &[OperationMoment],
) -> Result<(), String> {
    let name = |txn: TxnId| format!("operation {}", history.txn_name(txn));
    let mut store: Vec<Option<ValueId>> = vec![None; history.n_keys()];
    let mut is_there = vec![false; history.n_txns()];
    let mut now = i64::MIN;
    for &OperationMoment { txn, at } in order {
        if txn.index() >= history.n_txns() {
            return Err("the order names an operation that is not in the history".to_owned());
        }
        let is_aborted = history.status(txn) == Status::Aborted;
        if is_aborted && refusals(history, demand, txn).next().is_none() {
            return Err(format!("{} failed, yet it is in the order", name(txn)));
        }
        if std::mem::replace(&mut is_there[txn.index()], true) {
            return Err(format!("{} is in the order twice", name(txn)));
        }
        let (begin, end) = window(history, demand, txn);
        if at < begin || at > end || at < now {
            return Err(format!(
                "{} at {at}: not between its start and its end, or before the last moment",
                name(txn)
            ));
        }
        now = at;
        run(history, demand, txn, &mut store).map_err(|why| format!("{} {why}", name(txn)))?;
    }
    let is_demanded = |&txn: &TxnId| {
        let took_effect = history.status(txn) == Status::Committed && !history.ops(txn).is_empty();
        let is_known = history.status(txn) != Status::Unknown;
        took_effect || is_known && refusals(history, demand, txn).next().is_some()
    };
    let mut demanded = history.txns().filter(is_demanded);
    match demanded.find(|txn| !is_there[txn.index()]) {
        Some(txn) => Err(format!("{} is not in the order", name(txn))),
        None => Ok(()),
    }
}

/// Runs the operations of a transaction. One that aborted leaves nothing, and only what it was told before it did anything counts.
fn run(
    history: &History,
    demand: RegisterOptions,
    txn: TxnId,
    store: &mut [Option<ValueId>],
) -> Result<(), String> {
    let is_aborted = history.status(txn) == Status::Aborted;
    let ops = if is_aborted { &[] } else { history.ops(txn) };
    for at in 0..=ops.len() {
        let mut told = refusals(history, demand, txn).filter(|it| it.at as usize == at);
        if told.any(|it| shows(history, store[it.key.index()], it.expected)) {
            return Err("was refused, though its key held what it expected".to_owned());
        }
        match ops.get(at) {
            Some(&Op::Read { key, value }) if !shows(history, store[key.index()], value) => {
                return Err(format!(
                    "read {}, which its key did not hold then",
                    history.value_name(value)
                ));
            }
            None | Some(Op::Read { .. }) => {}
            Some(&Op::Write { key, value }) => store[key.index()] = Some(value),
            Some(_) => return Err("is none of a register".to_owned()),
        }
    }
    Ok(())
}

/// The compare-and-sets of an operation that found something else than expected, where they count.
fn refusals(
    history: &History,
    demand: RegisterOptions,
    txn: TxnId,
) -> impl Iterator<Item = &CompareAndSet> {
    let is_aborted = history.status(txn) == Status::Aborted;
    let compares = history.compares(txn).iter();
    compares.filter(move |it| {
        demand.refusals_count
            && it.outcome == CompareOutcome::Refused
            && (it.at == 0 || !is_aborted)
    })
}

/// One operation on the key.
struct Call {
    txn: TxnId,
    begin: i64,
    end: i64,
    /// Whether it may not have happened.
    is_open: bool,
}

/// A state, and which of the operations under way have taken effect in it.
type Configuration = (Option<ValueId>, Vec<u32>);

/// Checks that no order of the operations on `key` that had begun when `last` ended explains those that had ended by then.
/// Returns what the register can have held just before. The error says what does not hold, or that there were more than
/// `most` configurations.
pub fn stuck(
    history: &History,
    demand: RegisterOptions,
    key: KeyId,
    last: TxnId,
    most: usize,
) -> Result<Vec<Option<ValueId>>, Refusal> {
    let wrong = |why: &str| Err(Refusal::Refutation(why.to_owned()));
    let calls = calls(history, demand, key);
    let is_elsewhere = |op: &Op| op.key() != Some(key);
    if calls
        .iter()
        .any(|it| history.ops(it.txn).iter().any(is_elsewhere))
    {
        return wrong("an operation touches another key");
    }
    let mut events: Vec<(i64, bool, u32)> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        events.push((call.begin, false, at as u32));
        if !call.is_open || call.end < i64::MAX {
            events.push((call.end, true, at as u32));
        }
    }
    events.sort_unstable();
    let mut configurations: FxHashSet<Configuration> = FxHashSet::default();
    configurations.insert((None, Vec::new()));
    let mut under_way: Vec<u32> = Vec::new();
    let mut n_visited = 0;
    let mut store = vec![None; history.n_keys()];
    for (_, is_end, call) in events {
        if !is_end {
            under_way.push(call);
            continue;
        }
        let before = configurations;
        configurations = FxHashSet::default();
        let mut reached: FxHashSet<Configuration> = before.clone();
        let mut fresh: Vec<Configuration> = before.into_iter().collect();
        while let Some((state, done)) = fresh.pop() {
            n_visited += 1;
            if n_visited > most {
                return Err(Refusal::TooMany(most));
            }
            // What may not have happened is over, whether it did or not.
            let is_open = calls[call as usize].is_open;
            if done.contains(&call) || is_open {
                let rest = done.iter().copied().filter(|&it| it != call).collect();
                configurations.insert((state, rest));
            }
            if done.contains(&call) {
                continue;
            }
            for &next in under_way.iter().filter(|next| !done.contains(next)) {
                store[key.index()] = state;
                if run(history, demand, calls[next as usize].txn, &mut store).is_err() {
                    continue;
                }
                let state = store[key.index()];
                let mut done = done.clone();
                done.push(next);
                done.sort_unstable();
                if reached.insert((state, done.clone())) {
                    fresh.push((state, done));
                }
            }
        }
        under_way.retain(|&it| it != call);
        if configurations.is_empty() {
            if calls[call as usize].txn != last {
                return wrong("an earlier operation is the one that no order reaches");
            }
            let mut states: Vec<Option<ValueId>> =
                reached.into_iter().map(|(state, _)| state).collect();
            states.sort_unstable();
            states.dedup();
            return Ok(states);
        }
        if calls[call as usize].txn == last {
            return wrong("an order explains all that had ended by then");
        }
    }
    wrong("the operation is none of that key, or never ended")
}

/// The operations on a key. One of unknown end that only reads, or writes what is never read, can be left out.
fn calls(history: &History, demand: RegisterOptions, key: KeyId) -> Vec<Call> {
    let touching = |&txn: &TxnId| {
        let is_aborted = history.status(txn) == Status::Aborted;
        let ops = if is_aborted { &[] } else { history.ops(txn) };
        ops.iter().any(|op| op.key() == Some(key))
            || refusals(history, demand, txn).any(|it| it.key == key)
    };
    let txns: Vec<TxnId> = history.txns().filter(touching).collect();
    let ops = |txn: &TxnId| history.ops(*txn).iter();
    let read = txns.iter().flat_map(ops).filter_map(|op| match *op {
        Op::Read { value, .. } => Some(value),
        _ => None,
    });
    let read: FxHashSet<ValueId> = read.collect();
    let mut all = txns.iter();
    let has_refusals = all.any(|&txn| refusals(history, demand, txn).next().is_some());
    let matters = |txn: &TxnId| {
        let wrote = |op: &Op| match *op {
            Op::Write { value, .. } => has_refusals || read.contains(&value),
            _ => false,
        };
        history.status(*txn) != Status::Unknown || ops(txn).any(wrote)
    };
    let call = |&txn: &TxnId| {
        let (begin, end) = window(history, demand, txn);
        Call {
            txn,
            begin,
            end,
            is_open: history.status(txn) == Status::Unknown,
        }
    };
    txns.iter().filter(|it| matters(it)).map(call).collect()
}
