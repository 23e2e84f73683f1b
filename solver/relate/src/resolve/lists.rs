//! Lists: what a read of one reveals, and how it can contradict itself or another.
//!
//! A list shows every append before it, in order. So the lists of a key must each begin with the shorter ones, and the
//! longest is the version order as far as anybody saw it (Elle's observation); so it is where they contradict each other.

use rustc_hash::FxHashMap;

use super::ResolveError;
use super::attribute::ValueOrigin;
use super::reads::{Walk, position_of_write};
use crate::model::{Act, History, KeyId, ListId, Op, Predicate, TxnId, ValueId};
use crate::verdict::LocalAnomaly;

#[derive(Clone, Copy, PartialEq, Eq)]
enum UseOfKey {
    Unused,
    Register,
    List,
}

/// The longest list of a key, and who read it where. Its elements are distinct, each has one writer that did not abort, and
/// the elements of a writer are all there, in order, next to each other.
#[derive(Clone, Copy)]
struct Longest<'h> {
    values: &'h [ValueId],
    reader: TxnId,
    op: usize,
}

/// What the lists of all keys have shown so far.
pub(super) struct ListReads<'h> {
    kinds: Vec<UseOfKey>,
    longest: FxHashMap<KeyId, Longest<'h>>,
    /// Where each value stands in the longest list of its key; empty until a list is read.
    place: Vec<u32>,
}

/// Kept separate from what is done for every operation.
#[cold]
fn mixed(history: &History, txn: TxnId, key: KeyId) -> ResolveError {
    ResolveError::MixedKey {
        key: history.key_name(key),
        txn: history.txn_name(txn),
    }
}

/// The place of a value that no list has shown.
const NOWHERE: u32 = u32::MAX;

impl<'h> ListReads<'h> {
    pub(super) fn new(n_keys: usize) -> Self {
        ListReads {
            kinds: vec![UseOfKey::Unused; n_keys],
            longest: FxHashMap::default(),
            place: Vec::new(),
        }
    }

    /// Whether a key was read or written as a list.
    pub(super) fn is_list(&self, key: KeyId) -> bool {
        self.kinds[key.index()] == UseOfKey::List
    }

    /// Records that a key is a list or a register; it cannot be both.
    #[inline]
    pub(super) fn check_kind(
        &mut self,
        history: &History,
        txn: TxnId,
        key: KeyId,
        is_list: bool,
    ) -> Result<(), ResolveError> {
        let kind = if is_list {
            UseOfKey::List
        } else {
            UseOfKey::Register
        };
        let known = &mut self.kinds[key.index()];
        if *known == UseOfKey::Unused {
            *known = kind;
        }
        if *known == kind {
            return Ok(());
        }
        Err(mixed(history, txn, key))
    }

    /// Aggregates count rows, so no list is in a table that one looks at.
    pub(super) fn check_aggregates(&self, history: &History) -> Result<(), ResolveError> {
        if history.n_predicates() == 0 {
            return Ok(());
        }
        let keys = (0..history.n_keys() as u32).map(KeyId);
        for key in keys.filter(|&key| self.is_list(key)) {
            let table = history.table_of(key);
            let counts = |it: &&(TxnId, Predicate)| {
                let is_aggregate = matches!(it.1.act, Act::Aggregate { .. });
                is_aggregate && Some(history.queries()[it.1.query as usize].table) == table
            };
            if let Some(&(txn, _)) = history.all_predicates().iter().find(counts) {
                return Err(mixed(history, txn, key));
            }
        }
        Ok(())
    }

    /// The longest list of every key that one was read of, by key.
    pub(super) fn longest(&self) -> Vec<(KeyId, &'h [ValueId])> {
        let mut all: Vec<_> = self
            .longest
            .iter()
            .filter(|(_, longest)| !longest.values.is_empty())
            .map(|(&key, longest)| (key, longest.values))
            .collect();
        all.sort_by_key(|&(key, _)| key);
        all
    }

    fn known(&self, key: KeyId) -> &'h [ValueId] {
        self.longest.get(&key).map_or(&[], |longest| longest.values)
    }

    /// Makes a list that begins with the longest of its key the longest.
    fn extend(&mut self, history: &History, key: KeyId, longest: Longest<'h>) {
        if self.place.is_empty() {
            self.place = vec![NOWHERE; history.n_values()];
        }
        let known = self.known(key).len();
        for (at, value) in longest.values.iter().enumerate().skip(known) {
            self.place[value.index()] = at as u32;
        }
        self.longest.insert(key, longest);
    }

    /// Forgets the places of a list's values: another list says where they stand.
    fn forget(&mut self, values: &[ValueId]) {
        for value in values {
            self.place[value.index()] = NOWHERE;
        }
    }

    fn place(&self, value: ValueId) -> u32 {
        self.place.get(value.index()).copied().unwrap_or(NOWHERE)
    }
}

/// Takes a list that `txn` read: returns the list that the transaction began from, without its own appends, or `None`
/// where the list cannot be, which is then noted.
///
/// Nearly every list begins the longest one or continues it, so that only what is new of it has to be looked at.
pub(super) fn read_list<'h>(
    walk: &mut Walk<'h>,
    txn: TxnId,
    at: usize,
    key: KeyId,
    list: ListId,
) -> Result<Option<&'h [ValueId]>, ResolveError> {
    let (history, items) = (walk.history, walk.history.list(list));
    let before = if walk.state[key.index()].own().is_none() {
        Some(items)
    } else {
        let own = own_appends(history, txn, key, at);
        let is_unique = |value: &ValueId| walk.writers.rivals(*value).is_empty();
        let before = items.strip_suffix(own.as_slice());
        before.filter(|_| own.iter().all(is_unique))
    };
    let Some(before) = before.filter(|before| fits(walk, txn, key, before)) else {
        return read_odd_list(walk, txn, at, key, items);
    };
    if before.len() > walk.lists.known(key).len() || !walk.lists.longest.contains_key(&key) {
        let longest = Longest {
            values: before,
            reader: txn,
            op: at,
        };
        walk.lists.extend(history, key, longest);
    }
    Ok(Some(before))
}

/// Whether a list that a transaction began from begins the longest one of its key or continues it, and can be.
fn fits(walk: &Walk<'_>, reader: TxnId, key: KeyId, list: &[ValueId]) -> bool {
    let known = walk.lists.known(key);
    let shared = list.len().min(known.len());
    let is_same = std::ptr::eq(list.as_ptr(), known.as_ptr()) || list[..shared] == known[..shared];
    let is_final = |value: &ValueId| walk.writers.origin(*value) == ValueOrigin::Candidate;
    is_same
        && list.last().is_none_or(is_final)
        && continues(walk, reader, key, &list[shared..])
        && appends(walk.history, reader, key).all(|own| walk.lists.place(own) >= list.len() as u32)
}

/// Whether elements can follow the longest list: no read has seen them, others appended them, and each transaction's are
/// all there, in order, next to each other.
fn continues(walk: &Walk<'_>, reader: TxnId, key: KeyId, mut items: &[ValueId]) -> bool {
    let writers = walk.writers;
    if items.len() > 1 && has_duplicates(items) {
        return false;
    }
    while let Some(&value) = items.first() {
        let writer = writers.writer(value);
        if writers.origin(value) >= ValueOrigin::Aborted || writer == reader {
            return false;
        }
        for own in appends(walk.history, writer, key) {
            let is_new = writers.rivals(own).is_empty() && walk.lists.place(own) == NOWHERE;
            match items.split_first() {
                Some((&item, rest)) if item == own && is_new => items = rest,
                _ => return false,
            }
        }
    }
    true
}

/// Takes a list that does not fit: finds out why.
fn read_odd_list<'h>(
    walk: &mut Walk<'h>,
    txn: TxnId,
    at: usize,
    key: KeyId,
    items: &'h [ValueId],
) -> Result<Option<&'h [ValueId]>, ResolveError> {
    let history = walk.history;
    let is_repeated = |value: &&ValueId| !walk.writers.rivals(**value).is_empty();
    if let Some(&value) = items.iter().find(is_repeated) {
        return Err(ambiguous(walk, txn, key, value));
    }
    if has_duplicates(items) {
        walk.find(LocalAnomaly::DuplicateElements, txn, at, key, None);
        reveal(walk, txn, at, key, until_duplicate(items));
        return Ok(None);
    }
    let own = own_appends(history, txn, key, at);
    let Some(before) = items.strip_suffix(own.as_slice()) else {
        let other = own
            .first()
            .and_then(|&value| position_of_write(history, txn, value));
        let other = other.map(|op| (txn, op));
        walk.find(LocalAnomaly::InternalInconsistency, txn, at, key, other);
        return Ok(None);
    };
    if let Some((anomaly, other)) = impossible(walk, txn, key, before) {
        walk.find(anomaly, txn, at, key, other);
        return Ok(None);
    }
    let Some(&longest) = walk.lists.longest.get(&key) else {
        return Ok(Some(before));
    };
    let shared = before.len().min(longest.values.len());
    if before[..shared] != longest.values[..shared] {
        let other = Some((longest.reader, longest.op));
        walk.find(LocalAnomaly::IncompatibleOrder, txn, at, key, other);
        if before.len() > longest.values.len() {
            walk.lists.forget(longest.values);
            let longest = Longest {
                values: before,
                reader: txn,
                op: at,
            };
            walk.lists.longest.remove(&key);
            walk.lists.extend(history, key, longest);
        }
        return Ok(None);
    }
    Ok(Some(before))
}

/// Takes a list for the order of its versions alone, where it can be one: the reader's own read is an anomaly.
fn reveal<'h>(walk: &mut Walk<'h>, txn: TxnId, at: usize, key: KeyId, items: &'h [ValueId]) {
    let known = walk.lists.known(key).len();
    if items.len() > known && fits(walk, txn, key, items) {
        let longest = Longest {
            values: items,
            reader: txn,
            op: at,
        };
        walk.lists.extend(walk.history, key, longest);
    }
}

/// A list up to where an element comes a second time.
fn until_duplicate(items: &[ValueId]) -> &[ValueId] {
    let is_second = |&at: &usize| items[..at].contains(&items[at]);
    let end = (0..items.len()).find(is_second);
    &items[..end.unwrap_or(items.len())]
}

fn has_duplicates(items: &[ValueId]) -> bool {
    let mut sorted = items.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether two reads of a list by a transaction show the same of what others appended.
pub(super) fn shows_same(
    history: &History,
    txn: TxnId,
    (one, other): (usize, usize),
    key: KeyId,
) -> bool {
    let of_others = |at: usize| match history.ops(txn)[at] {
        Op::ReadList { list, .. } => {
            let own = own_appends(history, txn, key, at);
            history.list(list).strip_suffix(own.as_slice())
        }
        _ => None,
    };
    of_others(one).is_some_and(|it| of_others(other) == Some(it))
}

/// What a transaction appended to a key before its operation `end`.
fn own_appends(history: &History, txn: TxnId, key: KeyId, end: usize) -> Vec<ValueId> {
    appends_among(&history.ops(txn)[..end], key).collect()
}

/// All that a transaction appended to a key.
fn appends(history: &History, txn: TxnId, key: KeyId) -> impl Iterator<Item = ValueId> + '_ {
    appends_among(history.ops(txn), key)
}

fn appends_among(ops: &[Op], key: KeyId) -> impl Iterator<Item = ValueId> + '_ {
    ops.iter().filter_map(move |&op| match op {
        Op::Append { key: k, value } if k == key => Some(value),
        _ => None,
    })
}

type ListProblem = (LocalAnomaly, Option<(TxnId, usize)>);

/// The first thing wrong with what others appended. A transaction's appends must all be there, in order, next to each other.
fn impossible(
    walk: &Walk<'_>,
    reader: TxnId,
    key: KeyId,
    items: &[ValueId],
) -> Option<ListProblem> {
    let history = walk.history;
    let mut at = 0;
    while at < items.len() {
        let value = items[at];
        let writer = walk.writers.writer(value);
        let place = || position_of_write(history, writer, value).map(|op| (writer, op));
        match walk.writers.origin(value) {
            ValueOrigin::Nobody => return Some((LocalAnomaly::ThinAirRead, None)),
            ValueOrigin::Aborted => return Some((LocalAnomaly::AbortedRead, place())),
            _ if writer == reader => return Some((LocalAnomaly::FutureRead, place())),
            ValueOrigin::Candidate | ValueOrigin::Intermediate => {}
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
