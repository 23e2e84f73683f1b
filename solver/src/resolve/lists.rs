//! Lists: what a read of one reveals, and how it can contradict itself or another.
//!
//! A list shows every append before it, in order. So the lists of a key must each begin with the shorter ones, and the
//! longest is the version order as far as anybody saw it (Elle's observation).

use rustc_hash::FxHashMap;

use super::ResolveError;
use super::attribute::Origin;
use super::reads::{Walk, position_of_write};
use crate::model::{History, KeyId, ListId, Op, TxnId, ValueId};
use crate::verdict::LocalAnomaly;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Unused,
    Register,
    List,
}

/// The longest list of a key, and who read it where.
struct Longest {
    values: Vec<ValueId>,
    reader: TxnId,
    op: usize,
}

/// What the lists of all keys have shown so far.
pub(super) struct ListReads {
    kinds: Vec<Kind>,
    longest: FxHashMap<KeyId, Longest>,
}

impl ListReads {
    pub(super) fn new(n_keys: usize) -> Self {
        ListReads {
            kinds: vec![Kind::Unused; n_keys],
            longest: FxHashMap::default(),
        }
    }

    /// Takes note that a key is a list or a register; it cannot be both.
    #[inline]
    pub(super) fn check_kind(
        &mut self,
        history: &History,
        txn: TxnId,
        key: KeyId,
        is_list: bool,
    ) -> Result<(), ResolveError> {
        let kind = if is_list { Kind::List } else { Kind::Register };
        let known = &mut self.kinds[key.index()];
        if *known == Kind::Unused {
            *known = kind;
        }
        if *known == kind {
            return Ok(());
        }
        Err(ResolveError::MixedKey {
            key: history.key_name(key),
            txn: history.txn_name(txn),
        })
    }

    /// The longest list of every key that one was read of, by key.
    pub(super) fn longest(&self) -> Vec<(KeyId, &[ValueId])> {
        let mut all: Vec<_> = self
            .longest
            .iter()
            .filter(|(_, longest)| !longest.values.is_empty())
            .map(|(&key, longest)| (key, longest.values.as_slice()))
            .collect();
        all.sort_by_key(|&(key, _)| key);
        all
    }

    /// Compares a list with the longest so far; the reader of the other one where neither begins with the other.
    fn compare(
        &mut self,
        key: KeyId,
        values: &[ValueId],
        reader: TxnId,
        op: usize,
    ) -> Option<(TxnId, usize)> {
        let Some(longest) = self.longest.get_mut(&key) else {
            let values = values.to_vec();
            self.longest.insert(key, Longest { values, reader, op });
            return None;
        };
        let shared = values.len().min(longest.values.len());
        if values[..shared] != longest.values[..shared] {
            return Some((longest.reader, longest.op));
        }
        if values.len() > shared {
            longest.values.extend_from_slice(&values[shared..]);
            (longest.reader, longest.op) = (reader, op);
        }
        None
    }
}

/// Takes a list that `txn` read: returns the list that the transaction began from, without its own appends, or `None`
/// where the list cannot be, which is then noted.
pub(super) fn read_list<'h>(
    walk: &mut Walk<'h>,
    txn: TxnId,
    at: usize,
    key: KeyId,
    list: ListId,
) -> Result<Option<&'h [ValueId]>, ResolveError> {
    let history = walk.history;
    let items = history.list(list);
    let is_repeated = |value: &&ValueId| !walk.writers.rivals(**value).is_empty();
    if let Some(&value) = items.iter().find(is_repeated) {
        return Err(ambiguous(walk, txn, key, value));
    }
    if has_duplicates(items) {
        walk.find(LocalAnomaly::DuplicateElements, txn, at, key, None);
        return Ok(None);
    }
    let own = own_appends(history, txn, key, at);
    if !items.ends_with(&own) {
        let other = own
            .first()
            .and_then(|&value| position_of_write(history, txn, value));
        let other = other.map(|op| (txn, op));
        walk.find(LocalAnomaly::InternalInconsistency, txn, at, key, other);
        return Ok(None);
    }
    let before = &items[..items.len() - own.len()];
    if let Some((anomaly, other)) = impossible(walk, txn, key, before) {
        walk.find(anomaly, txn, at, key, other);
        return Ok(None);
    }
    if let Some(other) = walk.lists.compare(key, before, txn, at) {
        walk.find(LocalAnomaly::IncompatibleOrder, txn, at, key, Some(other));
        return Ok(None);
    }
    Ok(Some(before))
}

fn has_duplicates(items: &[ValueId]) -> bool {
    let mut sorted = items.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// What a transaction appended to a key before its operation `end`.
fn own_appends(history: &History, txn: TxnId, key: KeyId, end: usize) -> Vec<ValueId> {
    let ops = history.ops(txn)[..end].iter();
    ops.filter_map(|&op| match op {
        Op::Append { key: k, value } if k == key => Some(value),
        _ => None,
    })
    .collect()
}

type Problem = (LocalAnomaly, Option<(TxnId, usize)>);

/// The first thing wrong with what others appended. A transaction's appends must all be there, in order, next to each other.
fn impossible(walk: &Walk<'_>, reader: TxnId, key: KeyId, items: &[ValueId]) -> Option<Problem> {
    let history = walk.history;
    let mut at = 0;
    while at < items.len() {
        let value = items[at];
        let writer = walk.writers.writer(value);
        let place = || position_of_write(history, writer, value).map(|op| (writer, op));
        match walk.writers.origin(value) {
            Origin::Nobody => return Some((LocalAnomaly::ThinAirRead, None)),
            Origin::Aborted => return Some((LocalAnomaly::AbortedRead, place())),
            _ if writer == reader => return Some((LocalAnomaly::FutureRead, place())),
            Origin::Candidate | Origin::Intermediate => {}
        }
        let all = own_appends(history, writer, key, history.ops(writer).len());
        if !items[at..].starts_with(&all) {
            return Some((LocalAnomaly::IntermediateRead, place()));
        }
        at += all.len();
    }
    None
}

fn ambiguous(walk: &Walk<'_>, reader: TxnId, key: KeyId, value: ValueId) -> ResolveError {
    let name = |txn: TxnId| format!("transaction {}", walk.history.txn_name(txn));
    ResolveError::AmbiguousRead {
        reader: walk.history.txn_name(reader),
        key: walk.history.key_name(key),
        value: walk.history.value_name(value),
        first: name(walk.writers.writer(value)),
        second: name(walk.writers.rivals(value)[0]),
    }
}
