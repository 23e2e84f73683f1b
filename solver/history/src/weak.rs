//! The weak levels, which one topological sort decides, and their verdicts.
//!
//! Each says which transactions *t2* a read *r* of transaction *t3* sees (docs/weak-levels.md). If *r* returned key x as *t1* wrote it,
//! and it sees *t2*, which writes x too, then *t2* commits before *t1*.

use std::fmt;
use std::str::FromStr;

use crate::budget::StopReason;
use crate::level::{Level, Model, UnknownLevel};
use crate::model::{KeyId, TxnId};
use crate::verdict::Finding;

/// A weak level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WeakLevel {
    /// Read committed (as Biswas and Enea, Plume and AWDIT define it): a read sees what earlier reads of its transaction read from.
    Rc,
    /// Read committed as the paper on mixed SQL levels defines it: also what came before in the session.
    RcSo,
    /// Read atomic: a read sees what any read of its transaction read from, and what came before in the session.
    Ra,
    /// Causal consistency: a read sees all that happened before its transaction.
    Cc,
}

impl WeakLevel {
    /// Every weak level, the weakest first: each implies those before it.
    pub const ALL: [WeakLevel; 4] = [WeakLevel::Rc, WeakLevel::RcSo, WeakLevel::Ra, WeakLevel::Cc];

    /// The name, as typed and as reported.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// The name, and others that people type.
    pub fn names(self) -> &'static [&'static str] {
        match self {
            WeakLevel::Rc => &["rc", "read-committed"],
            WeakLevel::RcSo => &["rc-so", "read-committed-so"],
            WeakLevel::Ra => &["ra", "read-atomic"],
            WeakLevel::Cc => &["cc", "causal", "causal-consistency", "tcc"],
        }
    }

    /// Whether a read sees what came before in its session, where session order counts.
    pub fn sees_session(self) -> bool {
        self != WeakLevel::Rc
    }

    /// Whether a finding breaks the level.
    pub fn is_broken_by(self, finding: &Finding) -> bool {
        finding.breaks(self.into())
    }
}

impl From<WeakLevel> for Level {
    fn from(level: WeakLevel) -> Level {
        match level {
            WeakLevel::Rc => Level::Rc,
            WeakLevel::RcSo => Level::RcSo,
            WeakLevel::Ra => Level::Ra,
            WeakLevel::Cc => Level::Cc,
        }
    }
}

impl From<WeakLevel> for Model {
    fn from(level: WeakLevel) -> Model {
        match level {
            WeakLevel::Rc => Model::Rc,
            WeakLevel::RcSo => Model::RcSo,
            WeakLevel::Ra => Model::Ra,
            WeakLevel::Cc => Model::Cc,
        }
    }
}

impl fmt::Display for WeakLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WeakLevel::Rc => "read committed",
            WeakLevel::RcSo => "read committed within sessions",
            WeakLevel::Ra => "read atomic",
            WeakLevel::Cc => "causal consistency",
        })
    }
}

impl FromStr for WeakLevel {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let mut levels = WeakLevel::ALL.into_iter();
        let found = levels.find(|level| level.names().contains(&name));
        found.ok_or_else(|| {
            let names = WeakLevel::ALL.map(WeakLevel::name);
            UnknownLevel::Weak(name.to_owned(), names.join(", "))
        })
    }
}

/// A weak level, and whether sessions keep their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WeakSpec {
    /// The level.
    pub level: WeakLevel,
    /// Whether the order of commits keeps that of sessions, and reads see it as the level says.
    pub session_order: bool,
}

impl fmt::Display for WeakSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sessions = if self.session_order {
            "with"
        } else {
            "without"
        };
        write!(f, "{} {sessions} session order", self.level)
    }
}

/// One step of what happened before: by session order, or because the later read a key from the earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// The earlier transaction.
    pub from: TxnId,
    /// The later one.
    pub to: TxnId,
    /// The key that was read; `None` for session order.
    pub key: Option<KeyId>,
}

/// Why a read saw a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VisibilityReason {
    /// An earlier read of its transaction, or one of the same statement, returned this key as the other wrote it.
    EarlierRead(KeyId),
    /// Some read of its transaction returned this key as the other wrote it.
    Source(KeyId),
    /// The other came before in the session.
    Session,
    /// The other happened before, by these steps.
    Path(Vec<PathStep>),
}

/// Why one transaction commits before another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitReason {
    /// They are in one session, in this order.
    Session,
    /// The user says so, in this one of the orders between transactions.
    Stated(u32),
    /// The later read this key from the earlier.
    Wr(KeyId),
    /// A version order, or a list that was read, has this key's versions in this order.
    Given(KeyId),
    /// `reader` read the key from the later although it saw the earlier, which writes it too.
    Vis {
        /// Who read.
        reader: TxnId,
        /// The key.
        key: KeyId,
        /// Why it saw the earlier one.
        because: VisibilityReason,
    },
}

/// That one transaction commits before another, or before the initial state, which cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitStep {
    /// The earlier one.
    pub from: TxnId,
    /// The later one; `None` is the initial state.
    pub to: Option<TxnId>,
    /// Why.
    pub reason: CommitReason,
}

/// Whom an operation read a key from.
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

/// The answer at a weak level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WeakVerdict {
    /// This order of commits explains the history, where the reads that several transactions can explain are of these.
    Satisfied(Vec<TxnId>, Vec<OperationSource>),
    /// These reads cannot have happened.
    Local(Vec<Finding>),
    /// Commits must be in a circle, or one before the initial state.
    Cycle(Vec<CommitStep>),
    /// An operation can have read a key from several; whichever it was, the level is violated. With no case at all, nobody can have
    /// written what it read.
    Choice {
        /// Who read.
        reader: TxnId,
        /// The operation.
        op: usize,
        /// The key.
        key: KeyId,
        /// Everybody that it can have read from, `None` for the initial state, and why not.
        cases: Vec<(Option<TxnId>, WeakVerdict)>,
    },
    /// Nothing that a transaction can have read gives an aggregate its result.
    Aggregate {
        /// Who asked.
        reader: TxnId,
        /// Which of its predicates, counted from 0.
        nth: usize,
    },
    /// The check stopped before it knew.
    Unknown(StopReason),
    /// Whether a transaction took effect is not known; whether it did or not, the level is violated.
    EitherWay {
        /// The transaction.
        txn: TxnId,
        /// Why, where it did not.
        lost: Box<WeakVerdict>,
        /// Why, where it did.
        took_effect: Box<WeakVerdict>,
    },
}

impl WeakVerdict {
    /// Whether the level is violated.
    pub fn is_violated(&self) -> bool {
        !matches!(self, WeakVerdict::Satisfied(..) | WeakVerdict::Unknown(_))
    }
}
