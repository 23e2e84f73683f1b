//! The operations of each key: what each read, what it left, and when it ran.

use kingsnake_history::model::{CompareOutcome, History, KeyId, Op, Status, TxnId, ValueId};
use thiserror::Error;

use crate::{RegisterOptions, RegisterStats};

/// No value.
pub(crate) const NONE: u32 = u32::MAX;
/// The state of a key before any operation. Every initial value is a name of it.
pub(crate) const INITIAL: u32 = 0;

/// One operation on a register. A compare-and-set reads and writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    pub(crate) txn: TxnId,
    /// What it read, as a number among the values of its key; [`NONE`] if it read nothing.
    pub(crate) read: u32,
    /// Another state that shows the same: an operation may have written a value that is a name of the initial state.
    pub(crate) read_too: u32,
    /// What it left.
    pub(crate) write: u32,
    /// Whether that is a name of the initial state.
    pub(crate) writes_initial: bool,
    /// What the key did not hold, as places among the refusals of all keys: refused compare-and-sets that say so.
    pub(crate) refused: (u32, u32),
    /// Whether its own operations contradict each other, so that it cannot have happened in any state.
    pub(crate) is_broken: bool,
    /// It took effect after this.
    pub(crate) begin: i64,
    /// And before this, if it did.
    pub(crate) end: i64,
    /// Whether it is not known if it took effect.
    pub(crate) is_unknown: bool,
}

impl Operation {
    /// Whether it changes nothing.
    pub(crate) fn is_read(&self) -> bool {
        self.write == NONE
    }

    /// Whether a refusal says something of it.
    pub(crate) fn has_refusals(&self) -> bool {
        self.refused.0 < self.refused.1
    }

    /// What the key holds from its point of view, after those of its operations that were looked at.
    fn held(&self) -> Option<u32> {
        [self.write, self.read].into_iter().find(|&it| it != NONE)
    }
}

/// The operations of one key.
#[derive(Clone, Copy)]
#[allow(clippy::struct_field_names)] // The key's id is its key.
pub(crate) struct Key<'a> {
    pub(crate) key: KeyId,
    pub(crate) ops: &'a [Operation],
    /// What refused compare-and-sets say that keys did not hold.
    pub(crate) refusals: &'a [u32],
    /// Number of states, including the initial one.
    pub(crate) n_values: usize,
}

impl Key<'_> {
    /// Whether a refusal of an operation says that the key was not in this state.
    pub(crate) fn is_refused(&self, op: &Operation, state: u32) -> bool {
        let (from, to) = op.refused;
        self.refusals[from as usize..to as usize].contains(&state)
    }
}

/// Every operation, key by key. Aborted ones are left out.
pub(crate) struct Operations {
    ops: Vec<Operation>,
    starts: Vec<u32>,
    n_values: Vec<u32>,
    refusals: Vec<u32>,
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
    /// An operation that a register does not have.
    #[error(
        "transaction {txn} has {what}, and linearizability is checked of reads, writes and compare-and-sets; check it with --level strict-ser"
    )]
    Other {
        /// The transaction.
        txn: String,
        /// The operation.
        what: &'static str,
    },
    /// The operations have no times.
    #[error(
        "linearizability needs begin and end times, and the history has none; without them --level ser is what can be checked"
    )]
    NoTimes,
}

impl Operations {
    /// Takes every transaction as one operation; refuses others.
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
        let mut reader = OperationReader {
            history,
            numbers,
            refusals_count: options.refusals_count,
            refusals: Vec::new(),
        };
        for txn in history.txns() {
            let Some((key, mut op)) = reader.operation(txn)? else {
                continue;
            };
            op.end = op.end.saturating_add_unsigned(options.drift);
            found.push((key, op));
        }
        let refusals = reader.refusals;
        Ok(by_key(history.n_keys(), &found, n_values, refusals))
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
            refusals: &self.refusals,
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

/// Numbers the values of each key from 1 on.
fn number_values(history: &History) -> (Vec<u32>, Vec<u32>) {
    let mut n_values = vec![1_u32; history.n_keys()];
    let number = |value: u32| {
        let next = &mut n_values[history.value_key(ValueId(value)).index()];
        *next += 1;
        *next - 1
    };
    let numbers = (0..history.n_values() as u32).map(number).collect();
    (numbers, n_values)
}

/// Takes transactions as operations.
struct OperationReader<'h> {
    history: &'h History,
    /// The number of each value among those of its key.
    numbers: Vec<u32>,
    refusals_count: bool,
    refusals: Vec<u32>,
}

impl OperationReader<'_> {
    /// A transaction as an operation; `None` if it says nothing about any key.
    fn operation(&mut self, txn: TxnId) -> Result<Option<(KeyId, Operation)>, NotRegisters> {
        let history = self.history;
        let is_aborted = history.status(txn) == Status::Aborted;
        let other = |what| NotRegisters::Other {
            txn: history.txn_name(txn),
            what,
        };
        if !is_aborted && history.predicates(txn).len() > 0 {
            return Err(other("a condition over rows"));
        }
        let interval = history.interval(txn);
        let blank = Operation {
            txn,
            read: NONE,
            read_too: NONE,
            write: NONE,
            writes_initial: false,
            refused: (self.refusals.len() as u32, self.refusals.len() as u32),
            is_broken: false,
            begin: interval.begin,
            end: interval.commit,
            is_unknown: history.status(txn) == Status::Unknown,
        };
        let mut found: Option<(KeyId, Operation)> = None;
        let two_keys = |one: KeyId, other: KeyId| NotRegisters::TwoKeys {
            txn: history.txn_name(txn),
            one: history.key_name(one),
            other: history.key_name(other),
        };
        let ops = history.ops(txn);
        let refused = history.compares(txn).iter();
        let refused =
            refused.filter(|it| self.refusals_count && it.outcome == CompareOutcome::Refused);
        let mut refused = refused.peekable();
        for at in 0..=ops.len() {
            while let Some(it) = refused.next_if(|it| it.at as usize == at) {
                let (key, operation) = found.get_or_insert((it.key, blank));
                if *key != it.key {
                    return Err(two_keys(*key, it.key));
                }
                // What the transaction itself left or read is what the compare-and-set found.
                let expected = self.names(it.expected);
                match operation.held() {
                    Some(held) => operation.is_broken |= expected.contains(&held),
                    None => self
                        .refusals
                        .extend(expected.iter().filter(|&&it| it != NONE)),
                }
                operation.refused.1 = self.refusals.len() as u32;
            }
            // Of an aborted transaction, what it was told before it did anything counts.
            let Some(&op) = ops.get(at).filter(|_| !is_aborted) else {
                break;
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
                return Err(two_keys(*first, key));
            }
            let names = self.names(value);
            if is_write {
                operation.write = self.numbers[value.index()];
                operation.writes_initial = history.is_initial(value);
            } else if operation.write != NONE {
                operation.is_broken |= operation.write != self.numbers[value.index()];
            } else if operation.read != NONE {
                operation.is_broken |= operation.read != names[0];
            } else {
                [operation.read, operation.read_too] = names;
            }
        }
        Ok(found)
    }

    /// The states that show a value: the initial one is shown by all of its names.
    fn names(&self, value: ValueId) -> [u32; 2] {
        let number = self.numbers[value.index()];
        if self.history.is_initial(value) {
            [INITIAL, number]
        } else {
            [number, NONE]
        }
    }
}

/// Sorts operations by key; keeps their order inside a key.
fn by_key(
    n_keys: usize,
    found: &[(KeyId, Operation)],
    n_values: Vec<u32>,
    refusals: Vec<u32>,
) -> Operations {
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
        refusals,
    }
}
