//! What every counted transaction read: item dependencies, and reads that are wrong by themselves.

use kingsnake_history::adya::Dependency;
use kingsnake_history::model::{History, KeyId, Op, Token, TxnId, ValueId};
use kingsnake_history::verdict::{Finding, LocalAnomaly};
use rustc_hash::FxHashMap;

use crate::error::AdyaError;
use crate::graph::Edges;
use crate::versions::{NOBODY, ValueFate, Versions, place_of_write};

/// Adds ww, wr and rw edges; returns the findings without a cycle.
pub(crate) fn item_edges(
    history: &History,
    versions: &Versions,
    edges: &mut Edges,
) -> Result<Vec<Finding>, AdyaError> {
    for key in (0..history.n_keys() as u32).map(KeyId) {
        for place in versions.of_key(key).skip(2) {
            let (from, to) = (versions.at(place - 1).writer, versions.at(place).writer);
            edges.add(Dependency::Ww, from, to);
        }
    }
    let named = |key: KeyId| (history.key_token(key), key);
    let keys = (0..history.n_keys() as u32).map(KeyId);
    let mut walk = Walk {
        // Only ranges name keys by their tokens.
        keys: keys.filter(|_| history.n_ranges() > 0).map(named).collect(),
        history,
        versions,
        edges,
        own: vec![(NOBODY, ValueId(0)); history.n_keys()],
        appended: Vec::new(),
        findings: versions.findings.clone(),
    };
    for txn in history.txns() {
        if versions.counted[txn.index()] {
            walk.txn(txn)?;
        }
    }
    Ok(walk.findings)
}

struct Walk<'a> {
    history: &'a History,
    keys: FxHashMap<Token, KeyId>,
    versions: &'a Versions,
    edges: &'a mut Edges,
    /// Who wrote each key last, and what; it counts only for the transaction at hand.
    own: Vec<(u32, ValueId)>,
    /// What the transaction at hand appended.
    appended: Vec<(KeyId, ValueId)>,
    findings: Vec<Finding>,
}

impl Walk<'_> {
    fn txn(&mut self, txn: TxnId) -> Result<(), AdyaError> {
        self.appended.clear();
        for (at, &op) in self.history.ops(txn).iter().enumerate() {
            match op {
                Op::Write { key, value } => self.own[key.index()] = (txn.0, value),
                Op::Append { key, value } => {
                    self.own[key.index()] = (txn.0, value);
                    self.appended.push((key, value));
                }
                Op::Read { key, value } => self.read(txn, at, key, value)?,
                Op::ReadList { key, list } => {
                    self.read_list(txn, at, key, self.history.list(list));
                }
                Op::Range { range } => {
                    let key = self.history.range(range).untouched_key();
                    if let Some(&key) = key.and_then(|it| self.keys.get(&it)) {
                        self.untouched(txn, at, key)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn find(
        &mut self,
        anomaly: LocalAnomaly,
        txn: TxnId,
        op: usize,
        key: KeyId,
        value: Option<ValueId>,
    ) {
        let other = value.and_then(|value| {
            let writer = self.versions.writer(value)?;
            Some((writer, place_of_write(self.history, writer, value)))
        });
        self.findings.push(Finding {
            anomaly,
            txn,
            op,
            key,
            other,
        });
    }

    fn read(&mut self, txn: TxnId, at: usize, key: KeyId, value: ValueId) -> Result<(), AdyaError> {
        let own = self.own[key.index()];
        if own.0 == txn.0 {
            if own.1 != value {
                let anomaly = match self.versions.writer(value) {
                    Some(writer) if writer == txn => {
                        if place_of_write(self.history, txn, value) < at {
                            LocalAnomaly::NotMyLastWrite
                        } else {
                            LocalAnomaly::FutureRead
                        }
                    }
                    _ => LocalAnomaly::NotMyOwnWrite,
                };
                self.find(anomaly, txn, at, key, Some(own.1));
            }
            return Ok(());
        }
        let place = match self.versions.origin(value) {
            ValueFate::Nobody if self.history.is_initial(value) => {
                if self.history.is_absence(value) && self.versions.has_delete(key) {
                    return Err(AdyaError::AmbiguousAbsence {
                        key: self.history.key_name(key),
                        txn: self.history.txn_name(txn),
                    });
                }
                self.versions.of_key(key).start
            }
            ValueFate::Nobody => {
                self.find(LocalAnomaly::ThinAirRead, txn, at, key, None);
                return Ok(());
            }
            _ if self.versions.writer(value) == Some(txn) => {
                self.find(LocalAnomaly::FutureRead, txn, at, key, Some(value));
                return Ok(());
            }
            ValueFate::Aborted => {
                self.find(LocalAnomaly::AbortedRead, txn, at, key, Some(value));
                return Ok(());
            }
            ValueFate::Intermediate => {
                self.find(LocalAnomaly::IntermediateRead, txn, at, key, Some(value));
                return Ok(());
            }
            ValueFate::Version => match self.versions.place(value) {
                Some(_) if self.history.is_initial(value) && self.history.is_absence(value) => {
                    return Err(AdyaError::AmbiguousAbsence {
                        key: self.history.key_name(key),
                        txn: self.history.txn_name(txn),
                    });
                }
                Some(place) => place,
                None => return Ok(()),
            },
        };
        read_edges(self.versions, self.edges, txn, key, place);
        Ok(())
    }

    /// A read of a key that showed neither a row nor a delete of a name.
    fn untouched(&mut self, txn: TxnId, at: usize, key: KeyId) -> Result<(), AdyaError> {
        let history = self.history;
        let is_nameless =
            |value: ValueId| history.is_absence(value) && !history.is_tombstone(value);
        let own = self.own[key.index()];
        if own.0 == txn.0 {
            if !is_nameless(own.1) {
                self.find(LocalAnomaly::NotMyOwnWrite, txn, at, key, Some(own.1));
            }
            return Ok(());
        }
        let versions = &self.versions.all()[self.versions.of_key(key)];
        let mut written = versions.iter().skip(1);
        if written.any(|version| is_nameless(ValueId(version.value))) {
            return Err(AdyaError::AmbiguousAbsence {
                key: history.key_name(key),
                txn: history.txn_name(txn),
            });
        }
        if history.is_there_initially(key) {
            self.find(LocalAnomaly::MissingRow, txn, at, key, None);
            return Ok(());
        }
        let place = self.versions.of_key(key).start;
        read_edges(self.versions, self.edges, txn, key, place);
        Ok(())
    }

    fn read_list(&mut self, txn: TxnId, at: usize, key: KeyId, list: &[ValueId]) {
        let own = self.appended.iter().filter(|it| it.0 == key);
        let own: Vec<ValueId> = own.map(|it| it.1).collect();
        let Some(base) = list.strip_suffix(&own[..]) else {
            self.find(LocalAnomaly::InternalInconsistency, txn, at, key, None);
            return;
        };
        let mut seen = rustc_hash::FxHashSet::default();
        for &value in base {
            let anomaly = match self.versions.origin(value) {
                ValueFate::Nobody => LocalAnomaly::ThinAirRead,
                ValueFate::Aborted => LocalAnomaly::AbortedRead,
                _ if self.versions.writer(value) == Some(txn) => LocalAnomaly::FutureRead,
                _ if !seen.insert(value) => LocalAnomaly::DuplicateElements,
                _ => continue,
            };
            self.find(anomaly, txn, at, key, Some(value));
            return;
        }
        let elements = self.versions.elements.get(&key);
        let elements = elements.map_or(&[][..], |it| &it[..]);
        if !elements.starts_with(base) {
            self.find(LocalAnomaly::IncompatibleOrder, txn, at, key, None);
            return;
        }
        let place = match base.last() {
            None => self.versions.of_key(key).start,
            Some(&last) => {
                let Some(place) = self.versions.place(last) else {
                    self.find(LocalAnomaly::IntermediateRead, txn, at, key, Some(last));
                    return;
                };
                place
            }
        };
        read_edges(self.versions, self.edges, txn, key, place);
    }
}

/// The dependencies of reading a version.
pub(crate) fn read_edges(
    versions: &Versions,
    edges: &mut Edges,
    txn: TxnId,
    key: KeyId,
    place: usize,
) {
    edges.add(Dependency::Wr, versions.at(place).writer, txn.0);
    if place + 1 < versions.of_key(key).end {
        edges.add(Dependency::Rw, txn.0, versions.at(place + 1).writer);
    }
}
