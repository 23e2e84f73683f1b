//! Checks answers about linearizability again, with nothing of the engines that found them.
//!
//! [`replay`] runs an order on one machine: every operation at a moment between its start and its end, no moment before the
//! last. [`stuck`] follows the clock forward and keeps every configuration that the operations allow (Lowe's just-in-time
//! linearization), where the engine searches backwards from a failure with a cache.

use rustc_hash::FxHashSet;

use super::Refusal;
use kingsnake_history::model::{CompareOutcome, History, KeyId, Op, Status, TxnId, ValueId};

/// What is asked of an order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// How far clocks may disagree, in nanoseconds.
    pub drift: u64,
    /// Whether a refused compare-and-set says that the key did not hold what was expected.
    pub refusals_count: bool,
}

/// An operation and its moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationMoment {
    /// The operation.
    pub txn: TxnId,
    /// When it took effect.
    pub at: i64,
}

/// The moments of operations in this order: each as early as can be.
pub fn moments(history: &History, order: impl IntoIterator<Item = TxnId>) -> Vec<OperationMoment> {
    let mut now = i64::MIN;
    let moment = |txn: TxnId| {
        now = now.max(history.interval(txn).begin);
        OperationMoment { txn, at: now }
    };
    order.into_iter().map(moment).collect()
}

/// When an operation can have taken effect.
fn window(history: &History, demand: Demand, txn: TxnId) -> (i64, i64) {
    let interval = history.interval(txn);
    let is_open = history.status(txn) == Status::Unknown;
    let end = if is_open { i64::MAX } else { interval.commit };
    (interval.begin, end.saturating_add_unsigned(demand.drift))
}

/// Whether a register in this state shows a value; `None` is the initial state.
fn shows(history: &History, state: Option<ValueId>, value: ValueId) -> bool {
    state.map_or(history.is_initial(value), |held| held == value)
}

/// Runs an order. The error says what does not hold.
pub fn replay(history: &History, demand: Demand, order: &[OperationMoment]) -> Result<(), Refusal> {
    explain(history, demand, order).map_err(Refusal::Order)
}

fn explain(history: &History, demand: Demand, order: &[OperationMoment]) -> Result<(), String> {
    let name = |txn: TxnId| format!("operation {}", history.txn_name(txn));
    let mut store: Vec<Option<ValueId>> = vec![None; history.n_keys()];
    let mut is_there = vec![false; history.n_txns()];
    let mut now = i64::MIN;
    for &OperationMoment { txn, at } in order {
        if txn.index() >= history.n_txns() {
            return Err("the order names an operation that is not in the history".to_owned());
        }
        let refused = refused(history, demand, txn);
        let is_aborted = history.status(txn) == Status::Aborted;
        if is_aborted && refused.is_none() {
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
        if let Some((key, expected)) = refused
            && shows(history, store[key.index()], expected)
        {
            return Err(format!(
                "{} was refused, though its key held what it expected",
                name(txn)
            ));
        }
        if is_aborted {
            continue;
        }
        run(history, txn, &mut store).map_err(|why| format!("{} {why}", name(txn)))?;
    }
    let is_demanded = |&txn: &TxnId| {
        let took_effect = history.status(txn) == Status::Committed && !history.ops(txn).is_empty();
        took_effect || refused(history, demand, txn).is_some()
    };
    let mut demanded = history.txns().filter(is_demanded);
    match demanded.find(|txn| !is_there[txn.index()]) {
        Some(txn) => Err(format!("{} is not in the order", name(txn))),
        None => Ok(()),
    }
}

fn run(history: &History, txn: TxnId, store: &mut [Option<ValueId>]) -> Result<(), String> {
    for &op in history.ops(txn) {
        match op {
            Op::Read { key, value } if !shows(history, store[key.index()], value) => {
                return Err(format!(
                    "read {}, which its key did not hold then",
                    history.value_name(value)
                ));
            }
            Op::Read { .. } => {}
            Op::Write { key, value } => store[key.index()] = Some(value),
            _ => return Err("is none of a register".to_owned()),
        }
    }
    Ok(())
}

/// What a refused compare-and-set that begins an operation found not to hold, where that counts.
fn refused(history: &History, demand: Demand, txn: TxnId) -> Option<(KeyId, ValueId)> {
    if !demand.refusals_count || history.status(txn) == Status::Unknown {
        return None;
    }
    let first = history.compares(txn).first()?;
    let is_refused = first.outcome == CompareOutcome::Refused && first.at == 0;
    is_refused.then_some((first.key, first.expected))
}

/// What one operation on the key asks and does.
struct Call {
    txn: TxnId,
    begin: i64,
    end: i64,
    is_open: bool,
    reads: Option<ValueId>,
    differs: Option<ValueId>,
    writes: Option<ValueId>,
}

/// A state, and which of the operations under way have taken effect in it.
type Configuration = (Option<ValueId>, Vec<u32>);

/// Checks that no order of the operations on `key` that had begun when `last` ended explains those that had ended by then.
/// Returns what the register can have held just before. The error says what does not hold, or that there were more than
/// `most` configurations.
pub fn stuck(
    history: &History,
    demand: Demand,
    key: KeyId,
    last: TxnId,
    most: usize,
) -> Result<Vec<Option<ValueId>>, Refusal> {
    let wrong = |why: &str| Err(Refusal::Refutation(why.to_owned()));
    let calls = calls(history, demand, key);
    let mut events: Vec<(i64, bool, u32)> = Vec::new();
    for (at, call) in calls.iter().enumerate() {
        events.push((call.begin, false, at as u32));
        if !call.is_open {
            events.push((call.end, true, at as u32));
        }
    }
    events.sort_unstable();
    let mut configurations: FxHashSet<Configuration> = FxHashSet::default();
    configurations.insert((None, Vec::new()));
    let mut under_way: Vec<u32> = Vec::new();
    let mut n_visited = 0;
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
            if done.contains(&call) {
                let rest = done.into_iter().filter(|&it| it != call).collect();
                configurations.insert((state, rest));
                continue;
            }
            for &next in under_way.iter().filter(|next| !done.contains(next)) {
                let Some(state) = after(history, &calls[next as usize], state) else {
                    continue;
                };
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

/// The state after a call, if the state before it gives what it saw.
#[allow(clippy::option_option)] // A state without a value is not a call that cannot happen.
fn after(history: &History, call: &Call, state: Option<ValueId>) -> Option<Option<ValueId>> {
    if call
        .reads
        .is_some_and(|value| !shows(history, state, value))
    {
        return None;
    }
    if call
        .differs
        .is_some_and(|value| shows(history, state, value))
    {
        return None;
    }
    Some(call.writes.or(state))
}

/// The calls on a key. One of unknown end that only reads, or writes what nobody reads, can be left out.
fn calls(history: &History, demand: Demand, key: KeyId) -> Vec<Call> {
    let mut calls = Vec::new();
    let mut is_read: FxHashSet<ValueId> = FxHashSet::default();
    for txn in history.txns() {
        let is_aborted = history.status(txn) == Status::Aborted;
        let ops = if is_aborted { &[] } else { history.ops(txn) };
        let differs = refused(history, demand, txn);
        let differs = differs.filter(|it| it.0 == key).map(|it| it.1);
        if differs.is_none() && !ops.iter().any(|op| op.key() == Some(key)) {
            continue;
        }
        let (begin, end) = window(history, demand, txn);
        let mut call = Call {
            txn,
            begin,
            end,
            is_open: history.status(txn) == Status::Unknown,
            reads: None,
            differs,
            writes: None,
        };
        for &op in ops {
            match op {
                Op::Read { value, .. } if call.writes.is_none() => {
                    call.reads = call.reads.or(Some(value));
                    is_read.insert(value);
                }
                Op::Write { value, .. } => call.writes = Some(value),
                _ => {}
            }
        }
        calls.push(call);
    }
    let has_refusals = calls.iter().any(|call| call.differs.is_some());
    calls.retain(|call| {
        let seen = call.writes.is_some_and(|value| is_read.contains(&value));
        !call.is_open || seen || has_refusals && call.writes.is_some()
    });
    calls
}
