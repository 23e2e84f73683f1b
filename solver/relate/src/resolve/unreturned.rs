//! Rows that range queries did not return and that were deleted: kept as queries, however many such rows there are.
//!
//! A key that was deleted can be absent for several reasons, so it is in no gap. To say of each query and each such key which version
//! was read would take their product. An order of the transactions tells what every query returns, so the search begins without
//! these reads and adds those that the order it found gets wrong (`kingsnake-solver`, `solve/absent`).

use std::ops::Range;

use rustc_hash::FxHashMap;

use super::Resolved;
use super::candidates::Uncertain;
use super::gaps::between;
use super::reads::Walk;
use super::versions::{Node, VersionId};
use crate::model::{Act, History, KeyId, Op, RangeId, TxnId};

/// A delete of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deleted {
    pub(super) version: VersionId,
    /// Whether clients that see deleted rows see it.
    pub(super) is_named: bool,
}

/// A range query of a transaction.
#[derive(Clone, Copy, Debug)]
pub struct UnreturnedQuery {
    /// Who asked.
    pub reader: Node,
    /// Where it stands in the transaction.
    pub op: u32,
    /// The query.
    pub range: RangeId,
}

/// The queries and the deleted keys that they may have found absent, apart from what their transactions touch otherwise.
#[derive(Clone, Debug, Default)]
pub struct Unreturned {
    /// In the order of keys.
    pub(super) keys: Vec<KeyId>,
    pub(super) deletes: FxHashMap<KeyId, Vec<Deleted>>,
    /// By reader and operation.
    pub(super) asked: Vec<UnreturnedQuery>,
    /// The deleted keys that conditions of a transaction with queries look at.
    pub(super) looked_at: LookedAt,
}

/// Keys that conditions of transactions look at.
pub(super) type LookedAt = FxHashMap<Node, Vec<KeyId>>;

impl Unreturned {
    /// Whether nothing is left out.
    pub fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// The keys, in their order.
    pub fn keys(&self) -> &[KeyId] {
        &self.keys
    }

    /// Where the keys that a query spans stand among the sorted ones.
    pub fn spanned(&self, history: &History, range: RangeId) -> Range<usize> {
        between(&self.keys, history, history.range(range).span)
    }

    /// The queries of a transaction.
    pub fn of(&self, reader: Node) -> &[UnreturnedQuery] {
        let start = self.asked.partition_point(|it| it.reader < reader);
        let length = self.asked[start..].partition_point(|it| it.reader == reader);
        &self.asked[start..start + length]
    }

    /// All queries, by reader.
    pub fn asked(&self) -> &[UnreturnedQuery] {
        &self.asked
    }
}

impl Resolved {
    /// What range queries did not return and nothing else says, apart from gaps.
    pub fn unreturned(&self) -> &Unreturned {
        &self.unreturned
    }

    /// The keys that a transaction reads, writes or was returned, and deleted ones that its conditions look at, sorted.
    pub fn touched(&self, history: &History, node: Node) -> Vec<KeyId> {
        let looked_at = self.unreturned.looked_at.get(&node);
        let looked_at = looked_at.map_or(&[][..], Vec::as_slice);
        touched(history, history.ops(self.txn(node)), looked_at)
    }

    /// Whether the queries of a transaction found a key absent, and nothing else that it does is about the key.
    pub fn is_unreturned(&self, history: &History, reader: Node, key: KeyId) -> bool {
        let token = history.key_token(key);
        let asks = |it: &UnreturnedQuery| {
            let span = history.range(it.range).span;
            span.place(history.symbols(), token).is_eq()
        };
        self.unreturned.deletes.contains_key(&key)
            && self.unreturned.of(reader).iter().any(asks)
            && self.touched(history, reader).binary_search(&key).is_err()
    }

    /// The read of an absent key that the queries of a transaction amount to.
    pub fn unreturned_read(&self, history: &History, reader: Node, key: KeyId) -> Uncertain {
        let token = history.key_token(key);
        let asks = |it: &&UnreturnedQuery| {
            let span = history.range(it.range).span;
            span.place(history.symbols(), token).is_eq()
        };
        let asked = self.unreturned.of(reader).iter().filter(asks);
        let shows_deleted = asked
            .clone()
            .any(|it| history.range(it.range).shows_deleted);
        let deletes = self.unreturned.deletes.get(&key).into_iter().flatten();
        let hidden = deletes.filter(|it| !(shows_deleted && it.is_named));
        let mut candidates: Vec<VersionId> = hidden.map(|it| it.version).collect();
        if !history.is_there_initially(key) {
            candidates.push(self.versions.initial(key));
        }
        candidates.sort_unstable();
        Uncertain {
            reader,
            op: asked.clone().next().map_or(0, |it| it.op),
            key,
            candidates,
        }
    }
}

impl Walk<'_> {
    /// Finds the deleted keys that a transaction with queries touches anywhere. What a condition and a query say of one key is about one
    /// read, so such a key is none of those that stay queries.
    pub(super) fn find_touched(&mut self, node: Node, txn: TxnId) {
        self.touched.clear();
        let ops = self.history.ops(txn);
        if ops.iter().any(|op| matches!(op, Op::Range { .. })) {
            let looked_at = self.looked_at_by(txn);
            self.touched = touched(self.history, ops, &looked_at);
            let is_deleted = |key: &KeyId| self.absences.is_deleted(*key);
            self.touched.retain(is_deleted);
            if !looked_at.is_empty() {
                self.looked_at.insert(node, looked_at);
            }
        }
    }

    /// The deleted keys that the conditions of a transaction choose from, apart from aggregates.
    fn looked_at_by(&self, txn: TxnId) -> Vec<KeyId> {
        let Some(matching) = self.matching else {
            return Vec::new();
        };
        let conditions = self.history.predicates(txn);
        let conditions = conditions.filter(|it| !matches!(it.act, Act::Aggregate { .. }));
        let keys = conditions.flat_map(|it| matching.of_query(it.query));
        let keys = keys.map(|it| it.0);
        keys.filter(|&key| self.absences.is_deleted(key)).collect()
    }

    /// What stays queries.
    pub(super) fn unreturned(&mut self) -> Unreturned {
        if !self.keep_queries {
            return Unreturned::default();
        }
        let keys = self.absences.deleted();
        let deletes = keys.iter().map(|&key| {
            let deletes = self.absences.deletes(key);
            let versions = deletes.filter_map(|(txn, is_named)| {
                let version = self.version_by(key, txn)?;
                Some(Deleted { version, is_named })
            });
            (key, versions.collect())
        });
        Unreturned {
            keys: keys.to_vec(),
            deletes: deletes.collect(),
            asked: std::mem::take(&mut self.asked),
            looked_at: std::mem::take(&mut self.looked_at),
        }
    }
}

/// The keys that a transaction reads, writes or was returned, and these, sorted.
fn touched(history: &History, ops: &[Op], looked_at: &[KeyId]) -> Vec<KeyId> {
    let mut keys: Vec<KeyId> = looked_at.to_vec();
    for op in ops {
        match *op {
            Op::Range { range } => {
                let rows = history.range(range).rows.iter();
                keys.extend(rows.map(|&row| history.value_key(row)));
            }
            _ => keys.extend(op.key()),
        }
    }
    keys.sort_unstable();
    keys.dedup();
    keys
}
