//! Which node an edge touches: the one place where the graph asks for a transaction's level.
//!
//! A transaction t has a begin B(t) and a commit C(t), B(t) → C(t). It reads at B under prefix consistency and snapshot
//! isolation, else at C; earlier writers of its keys have committed at B under snapshot isolation (writers of a key do not
//! overlap), else at C. Where no transaction reads or installs at its begin, B and C are one node.

use std::sync::Arc;

use crate::level::{Model, Spec};
use crate::model::History;
use crate::resolve::{Node, Resolved};
use crate::verdict::{Moment, Point};
use crate::visible::TxnModels;

/// Whether a transaction reads at this point of an order: at its begin or at its commit, as its level says.
pub fn reads_at(history: &History, spec: Spec, point: Point) -> bool {
    let at_begin = spec.model_of(history, point.txn).reads_at_begin();
    match point.moment {
        Moment::Whole => true,
        Moment::Begin => at_begin,
        Moment::Commit => !at_begin,
    }
}

/// The nodes of transactions, by their levels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Places {
    model: Model,
    /// Each transaction's own model; empty where all have one.
    each: Arc<[Model]>,
    width: u32,
}

impl Places {
    /// The places of a resolved history at a level.
    pub fn of(history: &History, resolved: &Resolved, spec: Spec) -> Self {
        if spec.model != Model::Mixed {
            return Places::uniform(spec.model);
        }
        let nodes = 0..resolved.n_txns() as Node;
        let each: Arc<[Model]> = nodes
            .map(|node| history.model(resolved.txn(node)))
            .collect();
        Places {
            model: spec.model,
            // Asked of all transactions, aborted ones too, as the reader of an order asks it.
            width: 1 + u32::from(spec.has_begins(history)),
            each,
        }
    }

    /// The same level for all.
    pub fn uniform(model: Model) -> Self {
        Places {
            model,
            each: Arc::new([]),
            width: 1 + u32::from(model.has_begin()),
        }
    }

    /// How many nodes a transaction has.
    #[inline]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The level of a transaction.
    #[inline]
    pub fn model(&self, txn: Node) -> Model {
        self.each.get(txn as usize).copied().unwrap_or(self.model)
    }

    /// The levels of all transactions.
    pub fn models(&self) -> TxnModels<'_> {
        if self.model == Model::Mixed {
            TxnModels::Each(&self.each)
        } else {
            TxnModels::Uniform(self.model)
        }
    }

    /// The node where a transaction begins: where the session's last one must have committed.
    #[inline]
    pub fn begin(&self, txn: Node) -> u32 {
        self.width * txn
    }

    /// The node where a transaction commits: the source of wr and ww edges, the target of rw edges.
    #[inline]
    pub fn commit(&self, txn: Node) -> u32 {
        self.width * txn + self.width - 1
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

    /// Whether that is true of all, because all have one level.
    #[inline]
    pub fn all_read_newest(&self) -> bool {
        self.each.is_empty() && self.model.reads_newest()
    }

    /// Whether a transaction that reads a version and installs the next allows none between.
    #[inline]
    pub fn is_atomic(&self, txn: Node) -> bool {
        self.model(txn).is_atomic()
    }

    /// The transaction of a node, and which moment of it the node is.
    pub fn point(&self, node: u32) -> (Node, Moment) {
        if self.width == 1 {
            (node, Moment::Whole)
        } else if node.is_multiple_of(2) {
            (node / 2, Moment::Begin)
        } else {
            (node / 2, Moment::Commit)
        }
    }

    /// The name of a moment of a transaction with a single node.
    pub fn moment(&self, moment: Moment) -> Moment {
        if self.width == 1 {
            Moment::Whole
        } else {
            moment
        }
    }
}
