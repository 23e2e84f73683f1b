//! The versions of every key in their order, the initial one first, and who wrote each value.
//!
//! Only the last value that a counted transaction writes to a key is a version. A transaction counts if it committed, or if its
//! end is unknown and a counted one or a version order shows a value of it.

use kingsnake_history::model::{History, KeyId, Op, Status, TxnId, ValueId};
use kingsnake_history::verdict::{Finding, LocalAnomaly};
use rustc_hash::FxHashMap;

use crate::error::AdyaError;

pub(crate) const NOBODY: u32 = u32::MAX;

/// The fate of a written value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueFate {
    Nobody,
    Aborted,
    Intermediate,
    Version,
}

/// One version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Version {
    /// Its transaction, or [`NOBODY`] for the initial one.
    pub(crate) writer: u32,
    /// Its value, or [`NOBODY`] where the initial state has no row.
    pub(crate) value: u32,
}

pub(crate) struct Versions {
    start: Vec<u32>,
    list: Vec<Version>,
    /// Of each value, its place in `list`, or [`NOBODY`].
    place: Vec<u32>,
    writer: Vec<u32>,
    is_final: Vec<bool>,
    pub(crate) counted: Vec<bool>,
    /// Versions that are impossible by themselves.
    pub(crate) findings: Vec<Finding>,
    /// Keys with deletes, which a read of nothing may have found.
    has_delete: Vec<bool>,
    /// Of each key that is a list, its elements in order.
    pub(crate) elements: FxHashMap<KeyId, Vec<ValueId>>,
}

impl Versions {
    pub(crate) fn new(history: &History) -> Result<Self, AdyaError> {
        let mut writer = vec![NOBODY; history.n_values()];
        let mut is_final = vec![false; history.n_values()];
        attribute(history, &mut writer, &mut is_final)?;
        let counted = counted(history, &writer);
        let mut versions = Versions {
            start: Vec::with_capacity(history.n_keys() + 1),
            list: Vec::new(),
            place: vec![NOBODY; history.n_values()],
            writer,
            is_final,
            counted,
            findings: Vec::new(),
            has_delete: vec![false; history.n_keys()],
            elements: FxHashMap::default(),
        };
        versions.order(history)?;
        Ok(versions)
    }

    pub(crate) fn n_keys(&self) -> usize {
        self.start.len() - 1
    }

    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// The places of a key's versions, the initial one first.
    #[inline]
    pub(crate) fn of_key(&self, key: KeyId) -> std::ops::Range<usize> {
        self.start[key.index()] as usize..self.start[key.index() + 1] as usize
    }

    #[inline]
    pub(crate) fn at(&self, place: usize) -> Version {
        self.list[place]
    }

    pub(crate) fn all(&self) -> &[Version] {
        &self.list
    }

    #[inline]
    pub(crate) fn place(&self, value: ValueId) -> Option<usize> {
        match self.place[value.index()] {
            NOBODY => None,
            place => Some(place as usize),
        }
    }

    #[inline]
    pub(crate) fn writer(&self, value: ValueId) -> Option<TxnId> {
        match self.writer[value.index()] {
            NOBODY => None,
            writer => Some(TxnId(writer)),
        }
    }

    #[inline]
    pub(crate) fn origin(&self, value: ValueId) -> ValueFate {
        match self.writer(value) {
            None => ValueFate::Nobody,
            Some(writer) if !self.counted[writer.index()] => ValueFate::Aborted,
            Some(_) if self.is_final[value.index()] => ValueFate::Version,
            Some(_) => ValueFate::Intermediate,
        }
    }

    pub(crate) fn has_delete(&self, key: KeyId) -> bool {
        self.has_delete[key.index()]
    }

    fn order(&mut self, history: &History) -> Result<(), AdyaError> {
        let mut of_key: Vec<Vec<ValueId>> = vec![Vec::new(); history.n_keys()];
        let mut is_list = vec![false; history.n_keys()];
        for txn in history.txns().filter(|txn| self.counted[txn.index()]) {
            for op in history.ops(txn) {
                let (Op::Write { key, value } | Op::Append { key, value }) = *op else {
                    continue;
                };
                is_list[key.index()] |= matches!(op, Op::Append { .. });
                self.has_delete[key.index()] |= history.is_absence(value);
                if self.is_final[value.index()] {
                    of_key[key.index()].push(value);
                }
            }
        }
        let mut initial = vec![NOBODY; history.n_keys()];
        for value in (0..history.n_values() as u32).map(ValueId) {
            if history.is_initial(value) && !history.is_absence(value) {
                initial[history.value_key(value).index()] = value.0;
            }
        }
        let mut given: FxHashMap<KeyId, Vec<ValueId>> = FxHashMap::default();
        for order in history.version_orders() {
            let listed = self.listed(history, order.key, &order.values)?;
            given.insert(order.key, listed);
        }
        let revealed = longest_lists(history, &self.counted);
        for key in (0..history.n_keys() as u32).map(KeyId) {
            let written = std::mem::take(&mut of_key[key.index()]);
            let mut ordered = match (given.remove(&key), revealed.get(&key)) {
                (Some(ordered), _) => ordered,
                (None, Some(list)) => self.revealed(list),
                (None, None) => Vec::new(),
            };
            self.complete(history, key, &written, &mut ordered, is_list[key.index()])?;
            self.start.push(self.list.len() as u32);
            self.list.push(Version {
                writer: NOBODY,
                value: initial[key.index()],
            });
            for value in &ordered {
                self.place[value.index()] = self.list.len() as u32;
                self.list.push(Version {
                    writer: self.writer[value.index()],
                    value: value.0,
                });
            }
            if is_list[key.index()] || revealed.contains_key(&key) {
                let elements = self.elements_of(history, key, &ordered);
                self.elements.insert(key, elements);
            }
        }
        self.start.push(self.list.len() as u32);
        Ok(())
    }

    /// The versions that a given order names.
    fn listed(
        &mut self,
        history: &History,
        key: KeyId,
        values: &[ValueId],
    ) -> Result<Vec<ValueId>, AdyaError> {
        let mut listed = Vec::with_capacity(values.len());
        for (at, &value) in values.iter().enumerate() {
            match self.origin(value) {
                ValueFate::Version => listed.push(value),
                ValueFate::Intermediate => {}
                ValueFate::Nobody if at == 0 && history.is_initial(value) => {}
                ValueFate::Nobody => {
                    return Err(AdyaError::UnknownVersion {
                        key: history.key_name(key),
                        value: history.value_name(value),
                    });
                }
                ValueFate::Aborted => {
                    let txn = TxnId(self.writer[value.index()]);
                    self.findings.push(Finding {
                        anomaly: LocalAnomaly::AbortedVersion,
                        txn,
                        op: place_of_write(history, txn, value),
                        key,
                        other: None,
                    });
                }
            }
        }
        Ok(listed)
    }

    /// The versions that a list shows, each by its last element.
    fn revealed(&self, list: &[ValueId]) -> Vec<ValueId> {
        let mut seen = rustc_hash::FxHashSet::default();
        let versions = list.iter().copied();
        versions
            .filter(|&value| self.origin(value) == ValueFate::Version && seen.insert(value))
            .collect()
    }

    /// Checks that every version has its place. If no order is given, the commit timestamps of the writers give it;
    /// appends that were never read come after those that a list shows.
    fn complete(
        &self,
        history: &History,
        key: KeyId,
        written: &[ValueId],
        ordered: &mut Vec<ValueId>,
        is_list: bool,
    ) -> Result<(), AdyaError> {
        if written.len() == ordered.len() {
            return Ok(());
        }
        let missing: Vec<ValueId> = if ordered.is_empty() {
            written.to_vec()
        } else {
            let listed: rustc_hash::FxHashSet<ValueId> = ordered.iter().copied().collect();
            let missing = written.iter().copied();
            missing.filter(|value| !listed.contains(value)).collect()
        };
        if (ordered.is_empty() || is_list)
            && let Some(stamped) = self.by_commit_ts(history, &missing)
        {
            ordered.extend(stamped);
            return Ok(());
        }
        let Some(&value) = missing.first() else {
            return Ok(());
        };
        Err(AdyaError::Partial {
            key: history.key_name(key),
            n: missing.len(),
            of: written.len(),
            value: history.value_name(value),
            txn: history.txn_name(TxnId(self.writer[value.index()])),
        })
    }

    /// Versions in the order of their writers' `commit_ts`, where all differ; one version needs none.
    fn by_commit_ts(&self, history: &History, versions: &[ValueId]) -> Option<Vec<ValueId>> {
        if versions.len() <= 1 {
            return Some(versions.to_vec());
        }
        let stamped = versions.iter().map(|&value| {
            let writer = TxnId(self.writer[value.index()]);
            Some((history.stamps(writer).commit_ts?, value))
        });
        let mut stamped: Vec<(i64, ValueId)> = stamped.collect::<Option<_>>()?;
        stamped.sort_unstable_by_key(|it| it.0);
        let is_order = stamped.windows(2).all(|pair| pair[0].0 < pair[1].0);
        is_order.then(|| stamped.into_iter().map(|it| it.1).collect())
    }

    fn elements_of(&self, history: &History, key: KeyId, ordered: &[ValueId]) -> Vec<ValueId> {
        let mut elements = Vec::new();
        for value in ordered {
            let txn = TxnId(self.writer[value.index()]);
            elements.extend(history.ops(txn).iter().filter_map(|op| match *op {
                Op::Append { key: it, value } if it == key => Some(value),
                _ => None,
            }));
        }
        elements
    }
}

/// Where a transaction wrote a value.
pub(crate) fn place_of_write(history: &History, txn: TxnId, value: ValueId) -> usize {
    let mut ops = history.ops(txn).iter();
    let is = |op: &Op| matches!(*op, Op::Write { value: it, .. } | Op::Append { value: it, .. } if it == value);
    ops.position(is).unwrap_or(0)
}

/// Values that two committed writes gave to one key (Emme's duplicate write).
pub(crate) fn duplicate_writes(history: &History) -> Vec<Finding> {
    let mut first: FxHashMap<ValueId, (TxnId, usize)> = FxHashMap::default();
    let mut found = Vec::new();
    for txn in history.txns() {
        if history.status(txn) != Status::Committed {
            continue;
        }
        for (op, it) in history.ops(txn).iter().enumerate() {
            let (Op::Write { key, value } | Op::Append { key, value }) = *it else {
                continue;
            };
            if let Some(&other) = first.get(&value) {
                found.push(Finding {
                    anomaly: LocalAnomaly::DuplicateWrite,
                    txn,
                    op,
                    key,
                    other: Some(other),
                });
            } else {
                first.insert(value, (txn, op));
            }
        }
    }
    found
}

fn attribute(
    history: &History,
    writer: &mut [u32],
    is_final: &mut [bool],
) -> Result<(), AdyaError> {
    // The last write of a transaction to each key, by the key: a stamp says whose entry it is.
    let mut last = vec![(NOBODY, ValueId(0)); history.n_keys()];
    for txn in history.txns() {
        for op in history.ops(txn) {
            if let Op::Range { range } = *op
                && history.range(range).untouched_key().is_none()
            {
                let txn = history.txn_name(txn);
                return Err(AdyaError::Range { txn });
            }
            let (Op::Write { key, value } | Op::Append { key, value }) = *op else {
                continue;
            };
            if writer[value.index()] != NOBODY {
                return Err(AdyaError::DuplicateValue {
                    key: history.key_name(key),
                    value: history.value_name(value),
                    first: history.txn_name(TxnId(writer[value.index()])),
                    second: history.txn_name(txn),
                });
            }
            writer[value.index()] = txn.0;
            let earlier = &mut last[key.index()];
            if earlier.0 == txn.0 {
                is_final[earlier.1.index()] = false;
            }
            *earlier = (txn.0, value);
            is_final[value.index()] = true;
        }
    }
    Ok(())
}

fn counted(history: &History, writer: &[u32]) -> Vec<bool> {
    let status = |txn| history.status(txn);
    let mut counted: Vec<bool> = history
        .txns()
        .map(|txn| status(txn) == Status::Committed)
        .collect();
    if history.txns().all(|txn| status(txn) != Status::Unknown) {
        return counted;
    }
    let mut fresh: Vec<TxnId> = Vec::new();
    let show = |value: ValueId, counted: &mut Vec<bool>, fresh: &mut Vec<TxnId>| {
        let txn = TxnId(writer[value.index()]);
        if txn.0 != NOBODY && !counted[txn.index()] && status(txn) == Status::Unknown {
            counted[txn.index()] = true;
            fresh.push(txn);
        }
    };
    for order in history.version_orders() {
        for &value in &order.values {
            show(value, &mut counted, &mut fresh);
        }
    }
    fresh.extend(
        history
            .txns()
            .filter(|&txn| status(txn) == Status::Committed),
    );
    while let Some(txn) = fresh.pop() {
        for op in history.ops(txn) {
            match *op {
                Op::Read { value, .. } => show(value, &mut counted, &mut fresh),
                Op::ReadList { list, .. } => {
                    for &value in history.list(list) {
                        show(value, &mut counted, &mut fresh);
                    }
                }
                _ => {}
            }
        }
    }
    counted
}

/// The longest list that a counted transaction read of each key.
fn longest_lists<'h>(history: &'h History, counted: &[bool]) -> FxHashMap<KeyId, &'h [ValueId]> {
    let mut longest: FxHashMap<KeyId, &[ValueId]> = FxHashMap::default();
    for txn in history.txns().filter(|txn| counted[txn.index()]) {
        for op in history.ops(txn) {
            if let Op::ReadList { key, list } = *op {
                let list = history.list(list);
                let known = longest.entry(key).or_default();
                if list.len() > known.len() {
                    *known = list;
                }
            }
        }
    }
    longest
}
