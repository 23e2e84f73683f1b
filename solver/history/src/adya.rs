//! Adya's levels, dependencies and phenomena, and the evidence against them on a given version certificate.

use std::fmt;

use crate::level::Level;
use crate::model::{KeyId, Token, TxnId, ValueId};
use crate::verdict::Finding;

/// A level of Adya, Liskov and O'Neil (2000), judged on a version order that is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PlLevel {
    /// No cycle of ww (G0).
    Pl1,
    /// Nor aborted, intermediate or garbage reads, nor a cycle of ww and wr (G1): read committed.
    Pl2,
    /// Nor a cycle with exactly one rw (G-single): consistent view.
    Pl2Plus,
    /// G1, and no cycle of item dependencies (G2-item): repeatable read.
    Pl299,
    /// G1, and the database's own times make it snapshot isolation (G-SI).
    PlSi,
    /// G1, and no cycle at all (G2): serializability.
    Pl3,
}

impl PlLevel {
    /// Every level, weakest first.
    pub const ALL: [PlLevel; 6] = [
        PlLevel::Pl1,
        PlLevel::Pl2,
        PlLevel::Pl2Plus,
        PlLevel::Pl299,
        PlLevel::PlSi,
        PlLevel::Pl3,
    ];

    /// The name, as typed and as reported.
    pub fn name(self) -> &'static str {
        Level::Pl(self).name()
    }

    /// Whether the level forbids G1.
    pub fn forbids_g1(self) -> bool {
        self != PlLevel::Pl1
    }
}

impl fmt::Display for PlLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How one transaction depends on another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dependency {
    /// The later installed the next version.
    Ww,
    /// The later read a version of the earlier.
    Wr,
    /// The earlier read a version, and the later installed the next.
    Rw,
    /// The earlier changed which rows satisfy a condition, and the later's predicate was evaluated on that version or a newer one.
    PredWr,
    /// The earlier's predicate was evaluated on a version, and a newer one of the later changes which rows satisfy it.
    PredRw,
}

impl Dependency {
    /// Every kind.
    pub const ALL: [Dependency; 5] = [
        Dependency::Ww,
        Dependency::Wr,
        Dependency::Rw,
        Dependency::PredWr,
        Dependency::PredRw,
    ];

    /// The name, as reported.
    pub fn name(self) -> &'static str {
        match self {
            Dependency::Ww => "ww",
            Dependency::Wr => "wr",
            Dependency::Rw => "rw",
            Dependency::PredWr => "pred-wr",
            Dependency::PredRw => "pred-rw",
        }
    }

    /// A bit of a mask.
    pub fn bit(self) -> u8 {
        1 << self as u8
    }

    /// Whether it is an anti-dependency.
    pub fn is_rw(self) -> bool {
        matches!(self, Dependency::Rw | Dependency::PredRw)
    }
}

/// One step of a cycle, down to the versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AdyaStep {
    /// The earlier transaction.
    pub from: TxnId,
    /// The later transaction.
    pub to: TxnId,
    /// Why it is later; `None` if the database's own times show it.
    pub because: Option<DependencyReason>,
}

/// The versions of a dependency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DependencyReason {
    /// Its kind.
    pub dependency: Dependency,
    /// The key.
    pub key: KeyId,
    /// The version that was installed before or read: `None` is the initial one. For predicates, the version that was looked at.
    pub seen: Option<ValueId>,
    /// The version that `to` (ww, rw) or `from` (wr, pred-wr) installed.
    pub installed: ValueId,
    /// Which of all predicates of the history, for predicate dependencies.
    pub predicate: Option<u32>,
}

/// The name of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phenomenon {
    /// Write cycle.
    G0,
    /// Circular information flow.
    G1c,
    /// Exactly one anti-dependency.
    GSingle,
    /// Item anti-dependencies and no predicate anti-dependency.
    G2Item,
    /// A dependency on a transaction that had not committed at the start.
    GSia,
    /// Exactly one anti-dependency, against the start order.
    GSib,
    /// Anti-dependencies, some of predicates.
    G2,
}

impl Phenomenon {
    /// The name, after Adya.
    pub fn name(self) -> &'static str {
        match self {
            Phenomenon::G0 => "G0",
            Phenomenon::G1c => "G1c",
            Phenomenon::GSingle => "G-single",
            Phenomenon::G2Item => "G2-item",
            Phenomenon::GSia => "G-SIa",
            Phenomenon::GSib => "G-SIb",
            Phenomenon::G2 => "G2",
        }
    }

    /// The name in words.
    pub fn words(self) -> &'static str {
        match self {
            Phenomenon::G0 => "write cycle",
            Phenomenon::G1c => "circular information flow",
            Phenomenon::GSingle => "single anti-dependency cycle",
            Phenomenon::G2Item => "item anti-dependency cycle",
            Phenomenon::GSia => "interference: a dependency against the start order",
            Phenomenon::GSib => "missed effects: an anti-dependency against the start order",
            Phenomenon::G2 => "anti-dependency cycle",
        }
    }
}

/// A predicate did not return what its version set implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mismatch {
    /// The transaction.
    pub txn: TxnId,
    /// Which of all predicates of the history.
    pub predicate: u32,
    /// What is wrong.
    pub what: Difference,
}

/// How a result differs from the one that the version set implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Difference {
    /// This version satisfies the condition, and its row was not returned.
    Missing(ValueId),
    /// The row was returned, and the version of it in the version set (`None`: there is no row) does not satisfy the condition.
    Extra(KeyId, Option<ValueId>),
    /// The row was returned with another version than the one in the version set.
    Other {
        /// What was returned.
        returned: ValueId,
        /// What the version set has.
        visible: ValueId,
    },
    /// The aggregate of the version set is this.
    Aggregate(Token),
}

/// Why the database's record does not keep the promise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refutation {
    /// Reads and versions that are wrong by themselves.
    Findings(Vec<Finding>),
    /// Predicates that did not return what their version sets imply.
    Mismatches(Vec<Mismatch>),
    /// A forbidden cycle; each step begins where the last one ended.
    Cycle(Phenomenon, Vec<AdyaStep>),
    /// An expected order does not explain the history.
    Order {
        /// The order, up to the transaction that does not fit.
        order: Vec<TxnId>,
        /// The mismatch.
        found: Disagreement,
    },
}

/// The first operation that does not fit an expected order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The transaction.
    pub txn: TxnId,
    /// Its place in the order, counted from 0.
    pub place: usize,
    /// Which of its operations, counted from 0; for a predicate, its place among them.
    pub op: usize,
    /// What it read, and what the order implies.
    pub what: Mismatched,
}

/// What was read along an order, and what the state contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatched {
    /// A read; `None` is the initial state.
    Read {
        /// The key.
        key: KeyId,
        /// What was read.
        read: ValueId,
        /// What the key has at that point.
        expected: Option<ValueId>,
    },
    /// A read of a list.
    List {
        /// The key.
        key: KeyId,
        /// How many elements agree.
        n_agree: usize,
        /// How many elements the list has at that point.
        n_expected: usize,
    },
    /// A row of a range query; `None` is no row.
    Row {
        /// The key.
        key: KeyId,
        /// What was returned.
        returned: Option<ValueId>,
        /// What the key has at that point.
        expected: Option<ValueId>,
    },
    /// A predicate.
    Predicate(Mismatch),
}
