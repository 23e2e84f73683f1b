//! The orders of versions that assumptions about keys give: Elle's `linearizable-keys`, `sequential-keys` and `wfr-keys`.
//!
//! A transaction that comes before another (by the clock, or in its session) has a version of a key when it ends; what the other finds
//! first is that version or a newer one. Within a transaction, what is found later is newer. Of the pairs in time only those
//! are kept that no third transaction stands between, so there are at most as many as transactions overlap.

use rustc_hash::{FxHashMap, FxHashSet};
use thiserror::Error;

use crate::model::{
    History, KeyAssumption, KeyId, Op, OrderSource, Shown, Stale, Status, TxnId, ValueId,
    VersionOrder,
};

/// Why an assumption does not apply.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum AssumeError {
    /// It looks at the clock.
    #[error(
        "linearizable keys are ordered by begin and commit times, and the history has none; sequential-keys needs only sessions"
    )]
    NoTimes,
    /// Values do not identify their versions.
    #[error(
        "key {key}: {first} and {second} both wrote {value}, so it is not known which version a read of it found; an assumption \
         about keys needs values that differ"
    )]
    Repeated {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// One writer.
        first: String,
        /// Another, or the initial state.
        second: String,
    },
}

/// What a transaction found or left of a key. The version of a list is its last element.
#[derive(Clone, Copy)]
struct Touch {
    /// `None` is the initial state.
    value: Option<ValueId>,
    op: usize,
    is_write: bool,
}

/// What one transaction found and left of one key: its reads before it wrote the key, and its last write.
struct Visit {
    txn: TxnId,
    touches: Vec<Touch>,
}

impl Visit {
    fn first(&self) -> Touch {
        self.touches[0]
    }

    fn last(&self) -> Touch {
        self.touches[self.touches.len() - 1]
    }
}

/// Adds to a history what assumptions about its keys say of the order of their versions.
pub fn assume_keys(
    history: &mut History,
    assumptions: &[KeyAssumption],
) -> Result<(), AssumeError> {
    if assumptions.contains(&KeyAssumption::Linearizable) && !history.has_times() {
        return Err(AssumeError::NoTimes);
    }
    let writers = writers(history)?;
    let mut visits: FxHashMap<KeyId, Vec<Visit>> = FxHashMap::default();
    for txn in history.txns() {
        if counts(history, txn, &writers) {
            for (key, touches) in touches(history, txn, &writers) {
                visits.entry(key).or_default().push(Visit { txn, touches });
            }
        }
    }
    let mut keys: Vec<KeyId> = visits.keys().copied().collect();
    keys.sort_unstable();
    let (mut orders, mut stale) = (Vec::new(), Vec::new());
    for key in keys {
        let mut pairs = Pairs {
            history,
            key,
            edges: Vec::new(),
            known: FxHashSet::default(),
            stale: Vec::new(),
        };
        for &assumption in assumptions {
            pairs.add(assumption, &visits[&key]);
        }
        stale.append(&mut pairs.stale);
        orders.extend(chains(key, &pairs.edges));
    }
    history.assume_keys(assumptions, orders, stale);
    Ok(())
}

/// Who left each value, and who else read it.
struct AssumedWriters {
    of: FxHashMap<ValueId, TxnId>,
    read: FxHashSet<ValueId>,
}

fn writers(history: &History) -> Result<AssumedWriters, AssumeError> {
    let mut writers = AssumedWriters {
        of: FxHashMap::default(),
        read: FxHashSet::default(),
    };
    let mut own: FxHashMap<KeyId, ValueId> = FxHashMap::default();
    for txn in history.txns() {
        own.clear();
        for &op in history.ops(txn) {
            match op {
                Op::Write { key, value } | Op::Append { key, value } => {
                    own.insert(key, value);
                }
                Op::Read { value, .. } if history.status(txn) == Status::Committed => {
                    writers.read.insert(value);
                }
                // What stands before an element that was read was read with it.
                Op::ReadList { list, .. } if history.status(txn) == Status::Committed => {
                    let items = history.list(list).iter().rev();
                    let _ = items.take_while(|&&item| writers.read.insert(item)).count();
                }
                _ => {}
            }
        }
        if history.status(txn) == Status::Aborted {
            continue;
        }
        for (&key, &value) in &own {
            let other = writers.of.insert(value, txn);
            let second = match other {
                Some(other) => history.txn_name(other),
                None if history.is_initial(value) => "the initial state".to_owned(),
                None => continue,
            };
            return Err(AssumeError::Repeated {
                key: history.key_name(key),
                value: history.value_name(value),
                first: history.txn_name(txn),
                second,
            });
        }
    }
    Ok(writers)
}

fn list_keys(history: &History) -> FxHashSet<KeyId> {
    let ops = history.txns().flat_map(|txn| history.ops(txn));
    ops.filter(|op| matches!(op, Op::Append { .. } | Op::ReadList { .. }))
        .filter_map(|op| op.key())
        .collect()
}

/// Whether it is certain that a transaction took effect.
fn counts(history: &History, txn: TxnId, writers: &AssumedWriters) -> bool {
    let is_seen = |op: &Op| match op {
        Op::Write { value, .. } | Op::Append { value, .. } => writers.read.contains(value),
        _ => false,
    };
    match history.status(txn) {
        Status::Committed => true,
        Status::Aborted => false,
        Status::Unknown => history.ops(txn).iter().any(is_seen),
    }
}

fn touches(history: &History, txn: TxnId, writers: &AssumedWriters) -> Vec<(KeyId, Vec<Touch>)> {
    let mut all: Vec<(KeyId, Vec<Touch>)> = Vec::new();
    let mut place: FxHashMap<KeyId, usize> = FxHashMap::default();
    let mut wrote: FxHashSet<KeyId> = FxHashSet::default();
    for (op, &it) in history.ops(txn).iter().enumerate() {
        let (key, value, is_write) = match it {
            Op::Read { key, value } => (key, Some(value), false),
            Op::ReadList { key, list } => (key, history.list(list).last().copied(), false),
            Op::Write { key, value } | Op::Append { key, value } => (key, Some(value), true),
            Op::Range { .. } => continue,
        };
        let writer = value.and_then(|value| writers.of.get(&value));
        let value = value.filter(|&it| writer.is_some() || !history.is_initial(it));
        let is_version = match writer {
            Some(&writer) => !is_write || writer == txn,
            None => !is_write && value.is_none(),
        };
        let is_own = if is_write {
            wrote.insert(key);
            false
        } else {
            wrote.contains(&key)
        };
        if !is_version || is_own {
            continue;
        }
        let at = *place.entry(key).or_insert_with(|| {
            all.push((key, Vec::new()));
            all.len() - 1
        });
        let own = &mut all[at].1;
        if own.last().is_none_or(|last| last.value != value) {
            own.push(Touch {
                value,
                op,
                is_write,
            });
        }
    }
    all
}

/// That one version is older than another, and why.
type Edge = (ValueId, ValueId, Shown);

/// What is known of the versions of one key.
struct Pairs<'h> {
    history: &'h History,
    key: KeyId,
    edges: Vec<Edge>,
    known: FxHashSet<(ValueId, ValueId)>,
    stale: Vec<Stale>,
}

impl Pairs<'_> {
    fn add(&mut self, assumption: KeyAssumption, visits: &[Visit]) {
        for visit in visits {
            for pair in visit.touches.windows(2) {
                if assumption != KeyAssumption::WritesFollowReads || pair[1].is_write {
                    self.pair((visit.txn, pair[0]), (visit.txn, pair[1]), assumption);
                }
            }
        }
        match assumption {
            KeyAssumption::WritesFollowReads => {}
            // Transactions are numbered session by session.
            KeyAssumption::Sequential => {
                for pair in visits.windows(2) {
                    let [one, two] = [&pair[0], &pair[1]];
                    if self.history.session(one.txn) == self.history.session(two.txn) {
                        self.pair((one.txn, one.last()), (two.txn, two.first()), assumption);
                    }
                }
            }
            KeyAssumption::Linearizable => self.add_in_time(visits),
        }
    }

    /// Pairs in time that no third transaction stands between.
    fn add_in_time(&mut self, visits: &[Visit]) {
        let interval = |visit: &Visit| self.history.interval(visit.txn);
        let mut ended: Vec<&Visit> = visits.iter().collect();
        ended.sort_by_key(|visit| interval(visit).commit);
        // The latest begin among those that ended first.
        let mut latest = Vec::with_capacity(ended.len());
        let mut begin = i64::MIN;
        for visit in &ended {
            begin = begin.max(interval(visit).begin);
            latest.push(begin);
        }
        for later in visits {
            let begin = interval(later).begin;
            let n_before = ended.partition_point(|it| interval(it).commit < begin);
            if n_before == 0 {
                continue;
            }
            let between = latest[n_before - 1];
            let first = ended.partition_point(|it| interval(it).commit < between);
            for earlier in &ended[first..n_before] {
                let (one, two) = ((earlier.txn, earlier.last()), (later.txn, later.first()));
                self.pair(one, two, KeyAssumption::Linearizable);
            }
        }
    }

    fn pair(&mut self, one: (TxnId, Touch), two: (TxnId, Touch), by: KeyAssumption) {
        let (older, newer) = (one.1.value, two.1.value);
        let shown = Shown {
            by,
            earlier: one.0,
            later: two.0,
        };
        let (Some(older), true) = (older, older != newer) else {
            return;
        };
        let Some(newer) = newer else {
            self.stale.push(Stale {
                key: self.key,
                shown,
                had: one.1.op,
                found: two.1.op,
            });
            return;
        };
        if self.known.insert((older, newer)) {
            self.edges.push((older, newer, shown));
        }
    }
}

/// The pairs as few long orders; each pair is in one of them.
fn chains(key: KeyId, edges: &[Edge]) -> Vec<VersionOrder> {
    let mut out: FxHashMap<ValueId, Vec<usize>> = FxHashMap::default();
    for (at, edge) in edges.iter().enumerate().rev() {
        out.entry(edge.0).or_default().push(at);
    }
    let mut is_used = vec![false; edges.len()];
    let mut orders = Vec::new();
    for first in 0..edges.len() {
        if is_used[first] {
            continue;
        }
        let mut values = vec![edges[first].0];
        let mut shown = Vec::new();
        let mut seen: FxHashSet<ValueId> = values.iter().copied().collect();
        let mut next = Some(first);
        while let Some(at) = next.take() {
            let (_, newer, why) = edges[at];
            if !seen.insert(newer) {
                break;
            }
            is_used[at] = true;
            values.push(newer);
            shown.push(why);
            let Some(left) = out.get_mut(&newer) else {
                break;
            };
            while left.last().is_some_and(|&at| is_used[at]) {
                left.pop();
            }
            next = left.last().copied();
        }
        orders.push(VersionOrder {
            key,
            values,
            source: OrderSource::Keys(shown),
        });
    }
    orders
}

/// Orders the versions of every key as their writers are numbered. Transactions without a number are left out, and so is what may not have
/// taken effect.
pub fn assume_transaction_order(history: &mut History, numbers: &[(TxnId, i64)]) {
    let mut numbers = numbers.to_vec();
    numbers.sort_by_key(|it| it.1);
    let mut read: FxHashSet<ValueId> = FxHashSet::default();
    for txn in history.txns() {
        read.extend(values_read(history, txn));
    }
    let mut keys: Vec<KeyId> = Vec::new();
    let mut orders: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
    for (txn, _) in numbers {
        let is_read = |op: &Op| match op {
            Op::Write { value, .. } | Op::Append { value, .. } => read.contains(value),
            _ => false,
        };
        let took_effect = match history.status(txn) {
            Status::Committed => true,
            Status::Aborted => false,
            Status::Unknown => history.ops(txn).iter().any(is_read),
        };
        if !took_effect {
            continue;
        }
        let mut last: FxHashMap<KeyId, usize> = FxHashMap::default();
        for &op in history.ops(txn) {
            let (key, value, is_append) = match op {
                Op::Write { key, value } => (key, value, false),
                Op::Append { key, value } => (key, value, true),
                _ => continue,
            };
            let order = orders.entry(key).or_insert_with(|| {
                keys.push(key);
                Vec::new()
            });
            match last.get(&key) {
                // A value that the transaction overwrites itself is not a version.
                Some(&at) if !is_append => order[at] = value,
                _ => {
                    last.insert(key, order.len());
                    order.push(value);
                }
            }
        }
    }
    for key in keys {
        if let Some(values) = orders.remove(&key) {
            history.assume_order(key, values);
        }
    }
}

/// The meaning of values that were read and never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwritten {
    /// They existed before any transaction.
    Initial,
    /// Each was written by a transaction of which nothing else is known.
    Unseen,
}

/// Why values without a writer cannot have that meaning.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum UnwrittenError {
    /// A key has one initial state.
    #[error(
        "key {key}: {first} and {second} were both read and never written, so not both can have been there initially; with \
         --unwritten unseen each has a writer of its own"
    )]
    Several {
        /// The key.
        key: String,
        /// One value.
        first: String,
        /// The other.
        second: String,
    },
}

/// Sets the meaning of values that were read and never written. Elements of lists are not considered.
pub fn assume_unwritten(history: &mut History, meaning: Unwritten) -> Result<(), UnwrittenError> {
    let mut written: FxHashSet<ValueId> = FxHashSet::default();
    for txn in history.txns() {
        written.extend(history.ops(txn).iter().filter_map(|op| match op {
            Op::Write { value, .. } | Op::Append { value, .. } => Some(*value),
            _ => None,
        }));
    }
    let lists = list_keys(history);
    let mut unwritten: Vec<ValueId> = Vec::new();
    let mut initial: FxHashMap<KeyId, ValueId> = FxHashMap::default();
    for txn in history
        .txns()
        .filter(|&txn| history.status(txn) != Status::Aborted)
    {
        for value in values_read(history, txn) {
            if lists.contains(&history.value_key(value)) {
                continue;
            }
            if history.is_initial(value) {
                initial.entry(history.value_key(value)).or_insert(value);
            } else if !written.contains(&value) && !history.is_absence(value) {
                unwritten.push(value);
            }
        }
    }
    unwritten.sort_unstable();
    unwritten.dedup();
    for value in unwritten {
        let key = history.value_key(value);
        let (key_name, name) = (history.key_name(key), history.value_name(value));
        match meaning {
            Unwritten::Unseen => {
                history.assume_writer(value, &format!("unseen writer of {key_name} = {name}"));
            }
            Unwritten::Initial => {
                if let Some(first) = initial.insert(key, value) {
                    return Err(UnwrittenError::Several {
                        key: key_name,
                        first: history.value_name(first),
                        second: name,
                    });
                }
                history.assume_initial(value);
            }
        }
    }
    Ok(())
}

/// The values of registers that a transaction read, be it as rows of a range.
fn values_read(history: &History, txn: TxnId) -> Vec<ValueId> {
    let mut values = Vec::new();
    for &op in history.ops(txn) {
        match op {
            Op::Read { value, .. } => values.push(value),
            Op::Range { range } => values.extend(history.range(range).rows),
            Op::ReadList { list, .. } => values.extend(history.list(list)),
            Op::Write { .. } | Op::Append { .. } => {}
        }
    }
    values
}

/// Two transactions wrote one value of a key, or one wrote what was there initially.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "key {key}: {first} and {second} both wrote {value}; values must differ within a key, so that a read says whose it was"
)]
pub struct RepeatedValue {
    key: String,
    value: String,
    first: String,
    second: String,
}

/// Refuses the first value that two transactions wrote, or that one wrote and that was there initially.
pub fn expect_unique_values(history: &History) -> Result<(), RepeatedValue> {
    let mut writers: FxHashMap<ValueId, TxnId> = FxHashMap::default();
    for txn in history.txns() {
        for &op in history.ops(txn) {
            let (Op::Write { key, value } | Op::Append { key, value }) = op else {
                continue;
            };
            let other = writers.insert(value, txn).filter(|&other| other != txn);
            let first = match other {
                Some(other) => format!("transaction {}", history.txn_name(other)),
                None if history.is_initial(value) && matches!(op, Op::Write { .. }) => {
                    "the initial state".to_owned()
                }
                None => continue,
            };
            return Err(RepeatedValue {
                key: history.key_name(key),
                value: history.value_name(value),
                first,
                second: format!("transaction {}", history.txn_name(txn)),
            });
        }
    }
    Ok(())
}
