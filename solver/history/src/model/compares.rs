//! Compare-and-sets: which operations of a transaction belong to one, and which were refused.
//!
//! For a level of transactions an applied one is a read and a write, and one that was refused and showed the current
//! value is a read. These rows state that, and keep the information of a refusal without a value: the key did not hold
//! the expected value.

use super::ids::{KeyId, TxnId, ValueId};

/// How a compare-and-set ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CompareOutcome<V> {
    /// The key held what was expected, and was set.
    Applied,
    /// It did not; its value is unknown.
    Refused,
    /// It held this.
    Shown(V),
}

impl<V> CompareOutcome<V> {
    /// How many operations of its transaction it is.
    pub fn n_ops(&self) -> usize {
        match self {
            CompareOutcome::Applied => 2,
            CompareOutcome::Shown(_) => 1,
            CompareOutcome::Refused => 0,
        }
    }
}

/// One compare-and-set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareAndSet {
    /// Its transaction.
    pub txn: TxnId,
    /// How many operations of the transaction come before it.
    pub at: u32,
    /// The key.
    pub key: KeyId,
    /// What the key must hold.
    pub expected: ValueId,
    /// What it is set to.
    pub new: ValueId,
    /// How it ended.
    pub outcome: CompareOutcome<ValueId>,
}
