//! Finds the reason of an edge of a cycle: the key, the versions, the predicate.

use std::borrow::Cow;

use kingsnake_history::adya::{AdyaStep, Dependency, DependencyReason};
use kingsnake_history::model::{Act, History, KeyId, Op, Predicate, TxnId, ValueId};

use crate::graph::Link;
use crate::query::{Asked, Conditions, Side};
use crate::snapshot::{Snapshots, own_writes};
use crate::versions::{NOBODY, Versions};

/// The data that the edges were made of.
pub(crate) struct Sources<'a> {
    pub(crate) history: &'a History,
    pub(crate) versions: &'a Versions,
    pub(crate) snapshots: &'a Snapshots<'a>,
    pub(crate) conditions: &'a Conditions<'a>,
}

impl Sources<'_> {
    /// A link with its reason.
    pub(crate) fn step(&self, link: Link) -> Option<AdyaStep> {
        let (from, to) = (TxnId(link.0), TxnId(link.1));
        let dependency = Dependency::ALL
            .into_iter()
            .find(|it| link.2 & it.bit() != 0)?;
        let because = match dependency {
            Dependency::Ww => self.ww(from, to)?,
            Dependency::Wr => self.wr(from, to)?,
            Dependency::Rw => self.rw(from, to)?,
            Dependency::PredWr => self.predicate(to, from, dependency)?,
            Dependency::PredRw => self.predicate(from, to, dependency)?,
        };
        Some(AdyaStep {
            from,
            to,
            because: Some(because),
        })
    }

    /// The versions that a transaction installed: key and place.
    fn installed(&self, txn: TxnId) -> impl Iterator<Item = (KeyId, usize)> + '_ {
        let ops = self.history.ops(txn).iter();
        ops.filter_map(|op| match *op {
            Op::Write { key, value } | Op::Append { key, value } => {
                Some((key, self.versions.place(value)?))
            }
            _ => None,
        })
    }

    fn value(&self, place: usize) -> Option<ValueId> {
        let version = self.versions.at(place);
        (version.writer != NOBODY).then_some(ValueId(version.value))
    }

    fn ww(&self, from: TxnId, to: TxnId) -> Option<DependencyReason> {
        let (key, place) = self
            .installed(to)
            .find(|&(_, place)| self.versions.at(place - 1).writer == from.0)?;
        Some(DependencyReason {
            dependency: Dependency::Ww,
            key,
            seen: self.value(place - 1),
            installed: self.value(place)?,
            predicate: None,
        })
    }

    /// The places that a transaction read, with the predicate where an aggregate read them.
    fn reads(&self, txn: TxnId) -> Vec<(KeyId, usize, Option<u32>)> {
        let mut places = Vec::new();
        let ops = self.history.ops(txn);
        for (at, op) in ops.iter().enumerate() {
            match *op {
                Op::Range { range } => {
                    let is_own = |key: KeyId| {
                        let mut before = ops[..at].iter();
                        before.any(|op| op.is_write() && op.key() == Some(key))
                    };
                    let asked = self.history.range(range).untouched_key();
                    let mut keys = (0..self.history.n_keys() as u32).map(KeyId);
                    let key = asked
                        .and_then(|asked| keys.find(|&key| self.history.key_token(key) == asked));
                    if let Some(key) = key.filter(|&key| !is_own(key)) {
                        places.push((key, self.versions.of_key(key).start, None));
                    }
                }
                Op::Read { key, value } => {
                    let place = match self.versions.place(value) {
                        None if self.history.is_initial(value) => {
                            Some(self.versions.of_key(key).start)
                        }
                        place => place,
                    };
                    places.extend(place.map(|place| (key, place, None)));
                }
                Op::ReadList { key, list } => {
                    let list = self.history.list(list).iter().rev();
                    let mut others =
                        list.filter(|&&value| self.versions.writer(value) != Some(txn));
                    let place = match others.next() {
                        None => Some(self.versions.of_key(key).start),
                        Some(&last) => self.versions.place(last),
                    };
                    places.extend(place.map(|place| (key, place, None)));
                }
                _ => {}
            }
        }
        self.aggregated(txn, &mut places);
        places
    }

    fn aggregated(&self, txn: TxnId, places: &mut Vec<(KeyId, usize, Option<u32>)>) {
        let mut own = Vec::new();
        for (number, predicate) in self.history.numbered_predicates(txn) {
            let Some(read) = self.read_by(predicate) else {
                continue;
            };
            let Ok(view) = self.snapshots.view(txn, predicate) else {
                continue;
            };
            own_writes(self.history, txn, predicate.at as usize, &mut own);
            for &key in &self.conditions.tables[read.table as usize].keys {
                let place = self.snapshots.place(&view, key);
                if own.iter().all(|it| it.0 != key) && self.conditions.matches(&read, place) {
                    places.push((key, place, Some(number)));
                }
            }
        }
    }

    /// The condition of the rows that an aggregate reads.
    fn read_by(&self, predicate: &Predicate) -> Option<Cow<'_, Asked>> {
        match (predicate.act.extreme(), predicate.act) {
            (Some(extreme), _) => {
                let query = predicate.query;
                let at = self.conditions.narrowed(query, extreme, Side::At);
                Some(Cow::Owned(at))
            }
            (
                None,
                Act::Aggregate {
                    column: Some(_), ..
                },
            ) => Some(Cow::Borrowed(self.conditions.asked(predicate.query))),
            _ => None,
        }
    }

    fn wr(&self, from: TxnId, to: TxnId) -> Option<DependencyReason> {
        let mut reads = self.reads(to).into_iter();
        let (key, place, predicate) = reads.find(|it| self.versions.at(it.1).writer == from.0)?;
        Some(DependencyReason {
            dependency: Dependency::Wr,
            key,
            seen: self.value(place),
            installed: self.value(place)?,
            predicate,
        })
    }

    fn rw(&self, from: TxnId, to: TxnId) -> Option<DependencyReason> {
        let next = |it: &(KeyId, usize, Option<u32>)| {
            it.1 + 1 < self.versions.of_key(it.0).end && self.versions.at(it.1 + 1).writer == to.0
        };
        let (key, place, predicate) = self.reads(from).into_iter().find(next)?;
        Some(DependencyReason {
            dependency: Dependency::Rw,
            key,
            seen: self.value(place),
            installed: self.value(place + 1)?,
            predicate,
        })
    }

    /// A predicate of `reader` of which a version of `writer` changes what satisfies it, on the side that the kind says.
    fn predicate(
        &self,
        reader: TxnId,
        writer: TxnId,
        dependency: Dependency,
    ) -> Option<DependencyReason> {
        let all = self.history.all_predicates();
        let start = all.partition_point(|it| it.0 < reader);
        let mut own = Vec::new();
        let installed: Vec<(KeyId, usize)> = self.installed(writer).collect();
        for (number, (txn, predicate)) in all.iter().enumerate().skip(start) {
            if *txn != reader {
                break;
            }
            let view = self.snapshots.view(reader, predicate).ok()?;
            own_writes(self.history, reader, predicate.at as usize, &mut own);
            let asked = self.conditions.of(predicate);
            for &(key, place) in &installed {
                if self.history.table_of(key) != Some(asked.table)
                    || own.iter().any(|it| it.0 == key)
                {
                    continue;
                }
                let seen = self.snapshots.place(&view, key);
                let is_side = (place <= seen) == (dependency == Dependency::PredWr);
                let is_change = self.conditions.matches(&asked, place)
                    != self.conditions.matches(&asked, place - 1);
                if is_side && is_change {
                    return Some(DependencyReason {
                        dependency,
                        key,
                        seen: self.value(seen),
                        installed: self.value(place)?,
                        predicate: Some(number as u32),
                    });
                }
            }
        }
        None
    }
}
