//! The answer as data. Words and pictures are made from it elsewhere.

mod proof;

pub use proof::{Proof, ReadSource, Split, Visit, Visits};

use crate::adya::Refutation;
use crate::budget::StopReason;
use crate::level::Model;
use crate::model::{KeyId, TxnId, ValueId};

/// A moment of a transaction in an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Moment {
    /// All of it (SER).
    Whole,
    /// Its begin (SI).
    Begin,
    /// Its commit (SI).
    Commit,
}

/// A transaction, or its begin or commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Point {
    /// The transaction.
    pub txn: TxnId,
    /// Which moment of it.
    pub moment: Moment,
}

/// Why `before` ≪ `after` in the version order of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fact {
    /// `before` is the initial state, or in the run of read-modify-writes that starts from it.
    Initial,
    /// Both are in one run of read-modify-writes: each read the value that the one before wrote.
    Run,
    /// A version order that came with the history, or a list that a transaction read, shows it.
    Given,
    /// The case under consideration assumes it.
    Assumed,
}

/// Why one point comes before another, down to the operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StepReason {
    /// A transaction begins before it commits.
    Begin,
    /// They are in one session, in this order.
    Session,
    /// By the clock, the one was over before the other could be.
    RealTime,
    /// The user gave this order between transactions.
    Stated {
        /// Its number.
        edge: u32,
    },
    /// The later read what the earlier wrote.
    Wr {
        /// The key.
        key: KeyId,
        /// The value.
        value: ValueId,
    },
    /// Both wrote the key, the earlier first.
    Ww {
        /// The key.
        key: KeyId,
        /// Why the earlier's write came first.
        fact: Fact,
    },
    /// The earlier read a version that the later overwrote.
    Rw {
        /// The key.
        key: KeyId,
        /// Who wrote what was read; `None` is the initial state.
        writer: Option<TxnId>,
        /// Why the version that was read comes before the later's write.
        fact: Fact,
    },
    /// `reader` read the key from the later although it saw the earlier, which writes it too (weak levels). Where both are one
    /// transaction, the reader read the initial state: nothing commits before that.
    Vis {
        /// Who read.
        reader: TxnId,
        /// The key.
        key: KeyId,
    },
}

impl StepReason {
    /// The key that the reason is about, if it is about one.
    pub fn key(self) -> Option<KeyId> {
        match self {
            StepReason::Wr { key, .. }
            | StepReason::Ww { key, .. }
            | StepReason::Rw { key, .. }
            | StepReason::Vis { key, .. } => Some(key),
            StepReason::Begin
            | StepReason::Session
            | StepReason::RealTime
            | StepReason::Stated { .. } => None,
        }
    }
}

/// One step of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// The earlier point.
    pub from: Point,
    /// The later point.
    pub to: Point,
    /// Why.
    pub reason: StepReason,
}

impl Step {
    /// The writer of the value that was read in place of the one seen, in a step of visibility; `None` is the initial state.
    pub fn read_instead(&self) -> Option<TxnId> {
        Some(self.to.txn).filter(|&to| to != self.from.txn)
    }
}

/// An anomaly that one or two transactions show by themselves, without any cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name.
    pub anomaly: LocalAnomaly,
    /// The transaction that saw it.
    pub txn: TxnId,
    /// Which of its operations, counted from 0.
    pub op: usize,
    /// The key that it is about: the operation's, or one of the range that it queried.
    pub key: KeyId,
    /// The other operation that it is about, and whose it is.
    pub other: Option<(TxnId, usize)>,
}

/// The anomalies without a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LocalAnomaly {
    /// A value that was never written was read.
    ThinAirRead,
    /// A value that an aborted transaction wrote was read (Adya's G1a).
    AbortedRead,
    /// A value that its writer itself overwrote was read by another (Adya's G1b).
    IntermediateRead,
    /// A value was read that the transaction itself writes only later.
    FutureRead,
    /// After its own write, a transaction read what another wrote.
    NotMyOwnWrite,
    /// After its own writes, a transaction read one that is not its last.
    NotMyLastWrite,
    /// Two reads of one key, with no write of the transaction between, differ.
    NonRepeatableRead,
    /// A list that a transaction read is not the one that its own earlier reads and appends imply.
    InternalInconsistency,
    /// A list shows one value twice.
    DuplicateElements,
    /// Two lists of one key, neither of which begins with the other, were read.
    IncompatibleOrder,
    /// The version order that came with the history lists the value of an aborted transaction.
    AbortedVersion,
    /// A range query did not return a key that was never removed.
    MissingRow,
    /// The version order that came with the history scatters the appends of one transaction to a list, or reverses them.
    ScatteredAppends,
    /// The initial state was read though, by an assumption about keys, another transaction had a version of the key before.
    CyclicVersions,
    /// Two committed versions of a key have one value (Emme's duplicate write): on recorded versions only.
    DuplicateWrite,
}

impl LocalAnomaly {
    /// All of them.
    pub const ALL: [LocalAnomaly; 15] = [
        LocalAnomaly::ThinAirRead,
        LocalAnomaly::AbortedRead,
        LocalAnomaly::IntermediateRead,
        LocalAnomaly::FutureRead,
        LocalAnomaly::NotMyOwnWrite,
        LocalAnomaly::NotMyLastWrite,
        LocalAnomaly::NonRepeatableRead,
        LocalAnomaly::InternalInconsistency,
        LocalAnomaly::DuplicateElements,
        LocalAnomaly::IncompatibleOrder,
        LocalAnomaly::AbortedVersion,
        LocalAnomaly::MissingRow,
        LocalAnomaly::ScatteredAppends,
        LocalAnomaly::CyclicVersions,
        LocalAnomaly::DuplicateWrite,
    ];
}

impl Finding {
    /// The weakest level that it breaks; so it breaks all stronger ones. Read committed allows two statements of a
    /// transaction to read a key differently; one statement is atomic even there.
    pub fn weakest_broken(&self) -> Model {
        let is_one_statement = self.other == Some((self.txn, self.op));
        if self.anomaly == LocalAnomaly::NonRepeatableRead && !is_one_statement {
            Model::Ra
        } else {
            Model::Rc
        }
    }

    /// Whether it breaks a level.
    pub fn breaks(&self, model: Model) -> bool {
        model.implies(self.weakest_broken())
    }
}

/// Why the history breaks the level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Counterexample {
    /// Anomalies without a cycle; at least one.
    Local(Vec<Finding>),
    /// A cycle, or cases that all end in one.
    Cyclic(Proof),
    /// An operation on a register that no order reaches.
    Stuck(Stuck),
    /// The database's record does not keep the promise: a version order and snapshots, or an expected order.
    Recorded(Refutation),
    /// It is unknown whether a transaction took effect; in both cases there is a contradiction.
    EitherWay {
        /// The transaction.
        txn: TxnId,
        /// Why the history breaks the level if it did not.
        lost: Box<Counterexample>,
        /// And if it did.
        took_effect: Box<Counterexample>,
    },
}

impl Counterexample {
    /// The counterexamples at the ends of the cases of what took effect.
    pub fn leaves(&self) -> Vec<&Counterexample> {
        match self {
            Counterexample::EitherWay {
                lost, took_effect, ..
            } => [lost.leaves(), took_effect.leaves()].concat(),
            leaf => vec![leaf],
        }
    }
}

/// No order of the operations on a register that had begun when `last` ended explains all of them that had ended by
/// then, though some order explains all that had ended before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The register.
    pub key: KeyId,
    /// The operation.
    pub last: TxnId,
    /// The possible values of the register when `last` ended, over all possible orders; `None` is the initial state.
    pub possible: Vec<Option<ValueId>>,
    /// The operations that had begun when `last` ended and had not ended before.
    pub concurrent: Vec<TxnId>,
}

/// The transaction from which an operation read a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OperationSource {
    /// Who read.
    pub reader: TxnId,
    /// The operation, or a condition that did not return the key, as [`crate::model::Statements`] names them.
    pub op: usize,
    /// The key.
    pub key: KeyId,
    /// Who wrote what it read; `None` is the initial state.
    pub writer: Option<TxnId>,
}

/// An order that explains the history: of transactions, or of their begins and commits where the level tells them apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    /// The points, earliest first. Every counted transaction is there.
    pub order: Vec<Point>,
    /// The writers of reads with several candidates, if the order does not determine them.
    pub sources: Vec<OperationSource>,
}

impl From<Vec<Point>> for Certificate {
    /// An order that determines the writer of every read.
    fn from(order: Vec<Point>) -> Self {
        Certificate {
            order,
            sources: Vec::new(),
        }
    }
}

impl Certificate {
    /// An order of whole transactions.
    pub fn of_txns(order: impl IntoIterator<Item = TxnId>) -> Self {
        let whole = |txn| Point {
            txn,
            moment: Moment::Whole,
        };
        Certificate::from(order.into_iter().map(whole).collect::<Vec<_>>())
    }

    /// The transactions in the order of their commits.
    pub fn commits(&self) -> impl Iterator<Item = TxnId> + '_ {
        let commits = self.order.iter().filter(|it| it.moment != Moment::Begin);
        commits.map(|point| point.txn)
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Some order explains the history.
    Satisfied(Certificate),
    /// None does.
    Violated(Counterexample),
    /// The check stopped without an answer.
    Unknown(StopReason),
}

impl Verdict {
    /// Whether the level holds, if known.
    pub fn holds(&self) -> Option<bool> {
        match self {
            Verdict::Satisfied(_) => Some(true),
            Verdict::Violated(_) => Some(false),
            Verdict::Unknown(_) => None,
        }
    }

    /// The answer in one word.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Satisfied(_) => "satisfied",
            Verdict::Violated(_) => "violated",
            Verdict::Unknown(_) => "unknown",
        }
    }

    /// Whether the level is violated.
    pub fn is_violated(&self) -> bool {
        matches!(self, Verdict::Violated(_))
    }
}
