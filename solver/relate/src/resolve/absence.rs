//! Keys without a row: which delete may have caused it, and what a range query implies by what it does not return.
//!
//! A key is absent before any transaction, unless it has an initial value, and after each delete. A read that finds no
//! row has one of these for its source where only one can be meant, and candidates where several can.

use rustc_hash::{FxHashMap, FxHashSet};

use super::BUDGET_CHECK;
use super::attribute::Writers;
use super::gaps::{Sorted, between};
use crate::budget::{Budget, StopReason};
use crate::model::{
    History, KeyId, Op, RangeId, RangeQuery, Status, Token, TxnId, ValueId, compare,
};

/// A delete that was its transaction's last write of the key.
#[derive(Clone, Copy, Debug)]
struct Delete {
    txn: TxnId,
    /// Whether its tombstone has a name, by which a client may tell it.
    is_named: bool,
}

/// Everything about absent keys that a history of deletes and range queries needs.
pub(super) struct Absences {
    deletes: FxHashMap<KeyId, Vec<Delete>>,
    /// The keys that can be in gaps: their absence is always that before any transaction.
    pub(super) sorted: Sorted,
    /// The other keys that a range query may find absent, in the order of keys: for clients that do not see deleted rows, and for
    /// those that do.
    others: [Vec<KeyId>; 2],
    /// The keys that were there before any transaction and were not deleted in a way that such a client would miss.
    there: [Vec<KeyId>; 2],
    /// The keys that a transaction whose end is unknown deleted, in the order of keys.
    unsure: Vec<KeyId>,
    /// Of the others, those that hold no lists and that no transaction of unknown end deleted, in the order of keys.
    deleted: Vec<KeyId>,
    is_deleted: Vec<bool>,
    /// Whether there are range queries or named tombstones at all.
    matter: bool,
}

/// How a read found no row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Absence {
    /// Whether the reader would have seen a tombstone with a name.
    pub(super) shows_deleted: bool,
    /// Whether the state before any transaction looks like this.
    pub(super) may_be_initial: bool,
}

impl Absences {
    /// Finds deletes among the last writes.
    pub(super) fn of(
        history: &History,
        writers: &Writers,
        budget: &Budget,
    ) -> Result<Self, StopReason> {
        let mut absences = Absences {
            deletes: FxHashMap::default(),
            sorted: Sorted::default(),
            others: [Vec::new(), Vec::new()],
            there: [Vec::new(), Vec::new()],
            unsure: Vec::new(),
            deleted: Vec::new(),
            is_deleted: Vec::new(),
            matter: history.has_tombstones() || history.n_ranges() > 0,
        };
        if !absences.matter {
            return Ok(absences);
        }
        let mut is_written = vec![false; history.n_keys()];
        let mut unsure: FxHashSet<KeyId> = FxHashSet::default();
        for txn in history.txns() {
            if txn.0.is_multiple_of(BUDGET_CHECK) {
                budget.check()?;
            }
            for write in writers.finals(txn) {
                is_written[write.key.index()] = true;
                if history.is_absence(write.value) {
                    let is_named = history.is_tombstone(write.value);
                    let deletes = absences.deletes.entry(write.key).or_default();
                    deletes.push(Delete { txn, is_named });
                    if history.status(txn) == Status::Unknown {
                        unsure.insert(write.key);
                    }
                }
            }
        }
        if history.n_ranges() > 0 {
            absences.sort(history, &is_written, &unsure);
        }
        Ok(absences)
    }

    /// Whether absence needs more than looking up a value.
    #[inline]
    pub(super) fn matter(&self) -> bool {
        self.matter
    }

    /// Sorts the keys whose state can differ from the absence before any transaction.
    fn sort(&mut self, history: &History, is_written: &[bool], unsure: &FxHashSet<KeyId>) {
        let is_list = lists(history);
        let keys = (0..history.n_keys() as u32).map(KeyId);
        let matters = |key: &KeyId| is_written[key.index()] || history.is_there_initially(*key);
        let mut order: Vec<KeyId> = keys.filter(matters).collect();
        let token = |key: KeyId| history.key_token(key);
        let by_key = |a: &KeyId, b: &KeyId| compare(history.symbols(), token(*a), token(*b));
        order.sort_unstable_by(by_key);
        let ranges = (0..history.n_ranges() as u32).map(RangeId);
        let mut is_asked = [false; 2];
        for range in ranges {
            is_asked[usize::from(history.range(range).shows_deleted)] = true;
        }
        let mut gappy = [Vec::new(), Vec::new()];
        for shows_deleted in [false, true] {
            let kind = usize::from(shows_deleted);
            if !is_asked[kind] {
                continue;
            }
            for &key in &order {
                let is_there = history.is_there_initially(key);
                let absence = Absence {
                    shows_deleted,
                    may_be_initial: !is_there,
                };
                let is_deleted = self.of_key(key, absence).next().is_some();
                if is_deleted || is_list[key.index()] {
                    self.others[kind].push(key);
                } else if is_there {
                    self.there[kind].push(key);
                } else {
                    gappy[kind].push(key);
                }
            }
        }
        self.sorted = Sorted::new(history.n_keys(), gappy);
        let is_sure = |key: &&KeyId| {
            self.deletes.contains_key(key) && !is_list[key.index()] && !unsure.contains(key)
        };
        self.deleted = order.iter().filter(is_sure).copied().collect();
        self.is_deleted = vec![false; history.n_keys()];
        for key in &self.deleted {
            self.is_deleted[key.index()] = true;
        }
        order.retain(|key| unsure.contains(key));
        self.unsure = order;
    }

    /// The keys that an order of the transactions tells of, so that their absence needs no read of its own, in their order.
    pub(super) fn deleted(&self) -> &[KeyId] {
        &self.deleted
    }

    /// Whether a key is one of them.
    pub(super) fn is_deleted(&self, key: KeyId) -> bool {
        self.is_deleted.get(key.index()).is_some_and(|&it| it)
    }

    /// Keeps the reads of the other keys alone.
    pub(super) fn leave_out_deleted(&mut self) {
        for kind in 0..2 {
            let mut others = std::mem::take(&mut self.others[kind]);
            others.retain(|&key| !self.is_deleted(key));
            self.others[kind] = others;
        }
    }

    /// The deletes of a key: who, and whether clients that see deleted rows see it.
    pub(super) fn deletes(&self, key: KeyId) -> impl Iterator<Item = (TxnId, bool)> + '_ {
        let deletes = self.deletes.get(&key).into_iter().flatten();
        deletes.map(|it| (it.txn, it.is_named))
    }

    /// The keys of a range that can be absent for other reasons than that they were not written yet, in their order.
    pub(super) fn others(&self, history: &History, query: RangeQuery<'_>) -> &[KeyId] {
        let others = &self.others[usize::from(query.shows_deleted)];
        &others[between(others, history, query.span)]
    }

    /// The keys of a range that no query can have found absent, in their order.
    pub(super) fn there(&self, history: &History, query: RangeQuery<'_>) -> &[KeyId] {
        let there = &self.there[usize::from(query.shows_deleted)];
        &there[between(there, history, query.span)]
    }

    /// Whether a delete of a transaction can be what a read found.
    pub(super) fn is_delete(&self, key: KeyId, txn: TxnId, absence: Absence) -> bool {
        self.of_key(key, absence).any(|delete| delete == txn)
    }

    /// The transactions whose delete can be what a read found.
    pub(super) fn of_key(&self, key: KeyId, absence: Absence) -> impl Iterator<Item = TxnId> + '_ {
        let deletes = self.deletes.get(&key).into_iter().flatten();
        deletes
            .filter(move |delete| !(absence.shows_deleted && delete.is_named))
            .map(|delete| delete.txn)
    }

    /// What left a key without a row, as `reader` found it.
    pub(super) fn origin(&self, key: KeyId, reader: TxnId, absence: Absence) -> AbsenceOrigin {
        let mut others = self.of_key(key, absence).filter(|&txn| txn != reader);
        match (absence.may_be_initial, others.next(), others.next()) {
            (true, None, _) => AbsenceOrigin::Initial,
            (false, Some(txn), None) => AbsenceOrigin::Deleted(txn),
            (false, None, _) => AbsenceOrigin::Nobody,
            (true, Some(_), _) | (false, Some(_), Some(_)) => AbsenceOrigin::Several,
        }
    }

    /// The transaction of unknown end, if any, whose delete a read that found no row shows to have taken effect.
    pub(super) fn shown_by_read(
        &self,
        key: KeyId,
        reader: TxnId,
        is_initial: bool,
    ) -> Option<TxnId> {
        match self.origin(key, reader, read_nothing(is_initial)) {
            AbsenceOrigin::Deleted(txn) => Some(txn),
            _ => None,
        }
    }

    /// The transactions whose deletes a range query shows to have taken effect, among those of unknown end.
    pub(super) fn shown_by_range(
        &self,
        history: &History,
        reader: TxnId,
        query: RangeQuery<'_>,
        own: &FxHashSet<KeyId>,
    ) -> Vec<TxnId> {
        let unsure = &self.unsure[between(&self.unsure, history, query.span)];
        if unsure.is_empty() {
            return Vec::new();
        }
        let rows = query.rows.iter().map(|&row| history.value_key(row));
        let returned: FxHashSet<KeyId> = rows.collect();
        let missed = unsure
            .iter()
            .filter(|key| !returned.contains(key) && !own.contains(key));
        let origins = missed.map(|&key| self.origin(key, reader, missing(history, key, query)));
        origins
            .filter_map(|origin| match origin {
                AbsenceOrigin::Deleted(txn) => Some(txn),
                _ => None,
            })
            .collect()
    }
}

/// Which keys hold lists.
fn lists(history: &History) -> Vec<bool> {
    let mut is_list = vec![false; history.n_keys()];
    for op in history.txns().flat_map(|txn| history.ops(txn)) {
        if let Op::Append { key, .. } | Op::ReadList { key, .. } = op {
            is_list[key.index()] = true;
        }
    }
    is_list
}

/// Whether a value says that there is no row, and not which delete left it so.
#[inline]
pub(super) fn is_nothing(history: &History, value: ValueId) -> bool {
    history.value_token(value) == Token::Nil
}

/// The meaning of a range query not returning a key.
pub(super) fn missing(history: &History, key: KeyId, query: RangeQuery<'_>) -> Absence {
    Absence {
        shows_deleted: query.shows_deleted,
        may_be_initial: !history.is_there_initially(key),
    }
}

/// The meaning of a read of one key returning nothing.
pub(super) fn read_nothing(is_initial: bool) -> Absence {
    Absence {
        shows_deleted: false,
        may_be_initial: is_initial,
    }
}

/// What left a key without a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AbsenceOrigin {
    /// It never had one.
    Initial,
    /// This transaction deleted it.
    Deleted(TxnId),
    /// Several transactions may have, or one and the initial state.
    Several,
    /// Nothing can have.
    Nobody,
}
