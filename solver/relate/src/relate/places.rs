//! Which node an edge touches: the one place where the graph asks for a transaction's level.
//!
//! A transaction t has a begin B(t) and a commit C(t), B(t) → C(t). It reads at B under prefix consistency and snapshot
//! isolation, else at C; earlier writers of its keys have committed at B under snapshot isolation (writers of a key do not
//! overlap), else at C. Where no transaction reads or installs at its begin, B and C are one node.

use crate::level::Model;
use crate::resolve::Node;
use crate::verdict::Moment;

/// The nodes of transactions, by their levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Places {
    model: Model,
}

impl Places {
    /// The same level for all.
    pub fn uniform(model: Model) -> Self {
        Places { model }
    }

    /// How many nodes a transaction has.
    pub fn width(&self) -> u32 {
        1 + u32::from(self.model.has_begin())
    }

    /// The level of a transaction.
    #[inline]
    pub fn model(&self, _: Node) -> Model {
        self.model
    }

    /// The node where a transaction begins: where the session's last one must have committed.
    #[inline]
    pub fn begin(&self, txn: Node) -> u32 {
        if self.model.has_begin() { 2 * txn } else { txn }
    }

    /// The node where a transaction commits: the source of wr and ww edges, the target of rw edges.
    #[inline]
    pub fn commit(&self, txn: Node) -> u32 {
        if self.model.has_begin() {
            2 * txn + 1
        } else {
            txn
        }
    }

    /// The node where a transaction reads: the target of wr edges, the source of rw edges.
    #[inline]
    pub fn snap(&self, txn: Node) -> u32 {
        if self.model(txn).reads_at_begin() {
            self.begin(txn)
        } else {
            self.commit(txn)
        }
    }

    /// The node where a transaction's versions are installed: the target of ww edges.
    #[inline]
    pub fn install(&self, txn: Node) -> u32 {
        if self.model(txn).installs_at_begin() {
            self.begin(txn)
        } else {
            self.commit(txn)
        }
    }

    /// Whether what a transaction reads must be the newest version where it reads: only then has it rw edges.
    #[inline]
    pub fn reads_newest(&self, txn: Node) -> bool {
        self.model(txn).reads_newest()
    }

    /// Whether a transaction that reads a version and installs the next allows none between.
    #[inline]
    pub fn is_atomic(&self, txn: Node) -> bool {
        self.model(txn).is_atomic()
    }

    /// The transaction of a node, and which moment of it the node is.
    pub fn point(&self, node: u32) -> (Node, Moment) {
        if self.width() == 1 {
            (node, Moment::Whole)
        } else if node.is_multiple_of(2) {
            (node / 2, Moment::Begin)
        } else {
            (node / 2, Moment::Commit)
        }
    }
}
