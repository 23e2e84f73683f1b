//! Which node an edge touches: the one place where the graph asks for a transaction's level.
//!
//! A transaction t has a begin B(t) and a commit C(t), B(t) → C(t). It reads at B under snapshot isolation, else at C; it
//! installs its versions at B under snapshot isolation (so that writers of a key do not overlap), else at C. Where all are
//! serializable, B and C are one node.

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
        match self.model {
            Model::Ser => 1,
            Model::Si => 2,
        }
    }

    /// The level of a transaction.
    #[inline]
    pub fn model(&self, _: Node) -> Model {
        self.model
    }

    /// The node where a transaction begins: where the session's last one must have committed.
    #[inline]
    pub fn begin(&self, txn: Node) -> u32 {
        match self.model {
            Model::Ser => txn,
            Model::Si => 2 * txn,
        }
    }

    /// The node where a transaction commits: the source of wr and ww edges, the target of rw edges.
    #[inline]
    pub fn commit(&self, txn: Node) -> u32 {
        match self.model {
            Model::Ser => txn,
            Model::Si => 2 * txn + 1,
        }
    }

    /// The node where a transaction reads: the target of wr edges, the source of rw edges.
    #[inline]
    pub fn snap(&self, txn: Node) -> u32 {
        match self.model(txn) {
            Model::Si => self.begin(txn),
            Model::Ser => self.commit(txn),
        }
    }

    /// The node where a transaction's versions are installed: the target of ww edges.
    #[inline]
    pub fn install(&self, txn: Node) -> u32 {
        match self.model(txn) {
            Model::Si => self.begin(txn),
            Model::Ser => self.commit(txn),
        }
    }

    /// Whether what a transaction reads must be the newest version where it reads: only then has it rw edges.
    #[inline]
    pub fn reads_newest(&self, txn: Node) -> bool {
        match self.model(txn) {
            Model::Ser | Model::Si => true,
        }
    }

    /// Whether a transaction that reads a version and installs the next allows none between.
    #[inline]
    pub fn is_atomic(&self, txn: Node) -> bool {
        match self.model(txn) {
            Model::Ser | Model::Si => true,
        }
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
