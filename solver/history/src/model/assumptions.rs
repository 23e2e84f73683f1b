//! The user's additions to a history: orders of versions from assumptions, orders between transactions, and the meaning of
//! values without a writer.
//!
//! An assumption about keys is kept together with every order that follows from it and the transactions that show it, so that
//! `certify` can derive each again.

use super::history::{History, Interval, Op, Status, TxnRow, VersionOrder};
use super::ids::{KeyId, SessionId, TxnId, ValueId};
use super::names::Token;
use crate::level::Model;

/// An assumption about each key by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyAssumption {
    /// A transaction that begins after another finished sees its version or a newer one.
    Linearizable,
    /// A later transaction of a session sees the session's version or a newer one.
    Sequential,
    /// A transaction that reads a version and writes the key writes a newer version.
    WritesFollowReads,
}

impl KeyAssumption {
    /// All of them.
    pub const ALL: [KeyAssumption; 3] = [
        KeyAssumption::Linearizable,
        KeyAssumption::Sequential,
        KeyAssumption::WritesFollowReads,
    ];

    /// The name that a user types.
    pub fn name(self) -> &'static str {
        match self {
            KeyAssumption::Linearizable => "linearizable-keys",
            KeyAssumption::Sequential => "sequential-keys",
            KeyAssumption::WritesFollowReads => "wfr-keys",
        }
    }
}

/// Where an order of versions comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrderSource {
    /// The database.
    Database,
    /// An order of transactions given by the user.
    Transactions,
    /// Assumptions about keys. For each two neighbours, which one, and the transactions that show it: the earlier had
    /// the older version last, the later found the newer one.
    Keys(Vec<Shown>),
}

/// One transaction had a version of a key, and another, later by an assumption, found a newer one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shown {
    /// Which assumption puts one after the other.
    pub by: KeyAssumption,
    /// The earlier.
    pub earlier: TxnId,
    /// The later; the same for [`KeyAssumption::WritesFollowReads`].
    pub later: TxnId,
}

/// A read of the initial state that an assumption forbids: another transaction had a version of the key before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stale {
    /// The key.
    pub key: KeyId,
    /// Why the reader is later.
    pub shown: Shown,
    /// Which operation of the earlier had the version.
    pub had: usize,
    /// Which operation of the later read the initial state.
    pub found: usize,
}

/// An order between two transactions, given by the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GivenEdge {
    /// The earlier.
    pub from: TxnId,
    /// The later.
    pub to: TxnId,
    /// The user's name for it.
    pub name: String,
}

/// The user's additions.
#[derive(Clone, Debug, Default)]
pub(super) struct Assumptions {
    keys: Vec<KeyAssumption>,
    stale: Vec<Stale>,
    edges: Vec<GivenEdge>,
}

impl History {
    /// The assumptions about every key.
    pub fn key_assumptions(&self) -> &[KeyAssumption] {
        &self.assumptions.keys
    }

    /// The reads of the initial state that the assumptions forbid.
    pub fn stale_reads(&self) -> &[Stale] {
        &self.assumptions.stale
    }

    /// The orders between transactions given by the user.
    pub fn given_edges(&self) -> &[GivenEdge] {
        &self.assumptions.edges
    }

    /// Adds the consequence of an assumption about keys.
    pub fn assume_keys(
        &mut self,
        assumptions: &[KeyAssumption],
        orders: Vec<VersionOrder>,
        stale: Vec<Stale>,
    ) {
        self.assumptions.keys.extend(assumptions);
        self.assumptions.stale.extend(stale);
        self.version_orders.extend(orders);
    }

    /// Adds an order of versions that an order of transactions gives.
    pub fn assume_order(&mut self, key: KeyId, values: Vec<ValueId>) {
        self.version_orders.push(VersionOrder {
            key,
            values,
            source: OrderSource::Transactions,
        });
    }

    /// Adds an order between two transactions.
    pub fn assume_edge(&mut self, edge: GivenEdge) {
        self.assumptions.edges.push(edge);
    }

    /// Calls a value what its key holds before any transaction.
    pub fn assume_initial(&mut self, value: ValueId) {
        let key = self.value_key(value);
        self.value_initial[value.index()] = true;
        if self.is_absence(value) {
            return;
        }
        self.initial_rows.some.insert(key);
        for other in 0..self.value_names.len() {
            if self.value_key[other] == key && self.value_names.get(other) == Token::Nil {
                self.value_initial[other] = false;
            }
        }
    }

    /// Adds a transaction, in its own session, that wrote a value and about which nothing else is known.
    pub fn assume_writer(&mut self, value: ValueId, name: &str) {
        let key = self.value_key(value);
        let name = Token::Text(self.symbols.intern(name));
        let session = SessionId(self.session_names.len() as u32);
        self.session_names.push(name);
        self.txns.push(TxnRow {
            name,
            session,
            status: Status::Committed,
            ops_start: self.ops.len() as u32,
            ops_end: self.ops.len() as u32 + 1,
        });
        self.ops.push(Op::Write { key, value });
        self.session_start.push(self.txns.len() as u32);
        if let Some(intervals) = &mut self.intervals {
            intervals.push(Interval::UNKNOWN);
        }
        if let Some(isolation) = &mut self.isolation {
            isolation.push(Token::Nil);
        }
        if !self.models.is_empty() {
            self.models.push(Model::Ser);
        }
        self.rows.add_txn();
    }
}
