//! The operations of each key: what each read, what it left, and when it ran.

use kingsnake_history::model::{CompareOutcome, History, KeyId, Op, Status, TxnId, ValueId};
use thiserror::Error;

use crate::{RegisterOptions, RegisterStats};

/// No value.
pub(crate) const NONE: u32 = u32::MAX;
/// The value of a key before any operation. All names of it are this one.
pub(crate) const INITIAL: u32 = 0;

/// One operation on a register. A compare-and-set reads and writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) txn: TxnId,
    /// What it read, as a number among the values of its key; [`NONE`] if it read nothing.
    pub(crate) read: u32,
    /// What it left.
    pub(crate) write: u32,
    /// What the key did not hold: a refused compare-and-set that says so.
    pub(crate) refused: u32,
    /// It took effect after this.
    pub(crate) begin: i64,
    /// And before this, if it did.
    pub(crate) end: i64,
    /// Whether nobody knows if it took effect.
    pub(crate) is_unknown: bool,
}

impl Operation {
    /// Whether it changes nothing.
    pub(crate) fn is_read(&self) -> bool {
        self.write == NONE
    }
}

/// The operations of one key.
#[derive(Clone, Copy)]
#[allow(clippy::struct_field_names)] // The key's id is its key.
pub(crate) struct Key<'a> {
    pub(crate) key: KeyId,
    pub(crate) ops: &'a [Operation],
    /// How many values it has, the initial one included.
    pub(crate) n_values: usize,
}

/// Every operation, key by key. Aborted ones are left out.
pub(crate) struct Operations {
    ops: Vec<Operation>,
    starts: Vec<u32>,
    n_values: Vec<u32>,
}

/// A history that is not one of registers.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotRegisters {
    /// A transaction touches two keys.
    #[error(
        "transaction {txn} touches keys {one} and {other}, and linearizability is of operations on one key; check transactions with --level strict-ser"
    )]
    TwoKeys {
        /// The transaction.
        txn: String,
        /// A key.
        one: String,
        /// Another.
        other: String,
    },
    /// An operation is none of a register.
    #[error(
        "transaction {txn} has {what}, and linearizability is checked of reads, writes and compare-and-sets; check it with --level strict-ser"
    )]
    Other {
        /// The transaction.
        txn: String,
        /// What it has.
        what: &'static str,
    },
    /// Nothing says when the operations ran.
    #[error(
        "linearizability needs begin and end times, and the history has none; without them --level ser is what can be checked"
    )]
    NoTimes,
}

impl Operations {
    /// Takes every transaction as one operation; refuses those that are none.
    pub(crate) fn of(history: &History, options: RegisterOptions) -> Result<Self, NotRegisters> {
        if !history.has_times() {
            return Err(NotRegisters::NoTimes);
        }
        if history.has_tombstones() {
            let is_delete = |op: &Op| matches!(op, Op::Read { value, .. } | Op::Write { value, .. } if history.is_tombstone(*value));
            let mut txns = history.txns();
            let txn = txns.find(|&txn| history.ops(txn).iter().any(is_delete));
            return Err(NotRegisters::Other {
                txn: txn.map_or_else(String::new, |txn| history.txn_name(txn)),
                what: "a delete that has a name",
            });
        }
        let (numbers, n_values) = number_values(history);
        let mut found: Vec<(KeyId, Operation)> = Vec::with_capacity(history.n_txns());
        for txn in history.txns() {
            let Some((key, mut op)) = operation(history, txn, &numbers, options)? else {
                continue;
            };
            if history.status(txn) == Status::Aborted {
                if op.refused == NONE {
                    continue;
                }
                (op.read, op.write) = (NONE, NONE);
            }
            op.end = op.end.saturating_add_unsigned(options.drift);
            found.push((key, op));
        }
        Ok(by_key(history.n_keys(), &found, n_values))
    }

    /// The number of keys.
    pub(crate) fn n_keys(&self) -> usize {
        self.n_values.len()
    }

    /// The operations of a key.
    pub(crate) fn key(&self, at: usize) -> Key<'_> {
        Key {
            key: KeyId(at as u32),
            ops: &self.ops[self.starts[at] as usize..self.starts[at + 1] as usize],
            n_values: self.n_values[at] as usize,
        }
    }

    /// Counts operations of unknown end that are in an order, and those that are not.
    pub(crate) fn count_unknown(
        &self,
        history: &History,
        order: &[TxnId],
        stats: &mut RegisterStats,
    ) {
        let is_unknown = |&&txn: &&TxnId| history.status(txn) == Status::Unknown;
        stats.n_unknown_counted = order.iter().filter(is_unknown).count();
        let n_unknown = self.ops.iter().filter(|op| op.is_unknown).count();
        stats.n_unknown_dropped = n_unknown.saturating_sub(stats.n_unknown_counted);
    }
}

/// Numbers the values of each key from 1 on; initial ones are 0.
fn number_values(history: &History) -> (Vec<u32>, Vec<u32>) {
    let mut n_values = vec![1_u32; history.n_keys()];
    let number = |value: u32| {
        let value = ValueId(value);
        if history.is_initial(value) {
            return INITIAL;
        }
        let next = &mut n_values[history.value_key(value).index()];
        *next += 1;
        *next - 1
    };
    let numbers = (0..history.n_values() as u32).map(number).collect();
    (numbers, n_values)
}

/// A transaction as an operation; `None` if it does nothing.
fn operation(
    history: &History,
    txn: TxnId,
    numbers: &[u32],
    options: RegisterOptions,
) -> Result<Option<(KeyId, Operation)>, NotRegisters> {
    let interval = history.interval(txn);
    let is_unknown = history.status(txn) == Status::Unknown;
    let blank = Operation {
        txn,
        read: NONE,
        write: NONE,
        refused: NONE,
        begin: interval.begin,
        end: if is_unknown {
            i64::MAX
        } else {
            interval.commit
        },
        is_unknown,
    };
    let mut found: Option<(KeyId, Operation)> = None;
    if options.refusals_count
        && !is_unknown
        && let Some(first) = history.compares(txn).first()
        && (first.outcome, first.at) == (CompareOutcome::Refused, 0)
    {
        let refused = numbers[first.expected.index()];
        found = Some((first.key, Operation { refused, ..blank }));
    }
    for &op in history.ops(txn) {
        let other = |what| NotRegisters::Other {
            txn: history.txn_name(txn),
            what,
        };
        let (key, value, is_write) = match op {
            Op::Read { key, value } => (key, value, false),
            Op::Write { key, value } => (key, value, true),
            Op::Append { .. } => return Err(other("an append to a list")),
            Op::ReadList { .. } => return Err(other("a read of a list")),
            Op::Range { .. } => return Err(other("a range query")),
        };
        let (first, operation) = found.get_or_insert((key, blank));
        if *first != key {
            return Err(NotRegisters::TwoKeys {
                txn: history.txn_name(txn),
                one: history.key_name(*first),
                other: history.key_name(key),
            });
        }
        let value = numbers[value.index()];
        if is_write {
            operation.write = value;
        } else if operation.write == NONE && operation.read == NONE {
            operation.read = value;
        }
    }
    Ok(found)
}

/// Sorts operations by key; keeps their order inside a key.
fn by_key(n_keys: usize, found: &[(KeyId, Operation)], n_values: Vec<u32>) -> Operations {
    let mut starts = vec![0_u32; n_keys + 1];
    for (key, _) in found {
        starts[key.index() + 1] += 1;
    }
    for key in 0..n_keys {
        starts[key + 1] += starts[key];
    }
    let mut next = starts.clone();
    let mut places = vec![0_u32; found.len()];
    for (at, (key, _)) in found.iter().enumerate() {
        places[next[key.index()] as usize] = at as u32;
        next[key.index()] += 1;
    }
    let ops = places.iter().map(|&at| found[at as usize].1).collect();
    Operations {
        ops,
        starts,
        n_values,
    }
}
