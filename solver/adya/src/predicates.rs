//! Predicate dependencies and result-set mismatches, sparsely: of all versions of a row that change what satisfies a condition,
//! only the last one up to the version that was looked at and the first one after it give edges. The others follow by ww edges.

use kingsnake_history::adya::{Dependency, Difference, Mismatch};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::{Act, History, KeyId, Op, Predicate, Token, TxnId, ValueId};
use rayon::prelude::*;

use crate::error::AdyaError;
#[cfg(test)]
use crate::fault::AdyaFault;
use crate::graph::Edges;
use crate::query::{Around, Conditions, Way};
use crate::reads::read_edges;
use crate::snapshot::{Snapshots, View, own_writes};
use crate::versions::{NOBODY, Versions};

/// Adds pred-wr and pred-rw edges, and those of the rows that aggregates read; returns what does not fit.
pub(crate) fn predicate_edges(
    history: &History,
    versions: &Versions,
    snapshots: &Snapshots<'_>,
    conditions: &Conditions<'_>,
    edges: &mut Edges,
    budget: &Budget,
) -> Result<Vec<Mismatch>, AdyaError> {
    const CHUNK: usize = 1024;
    let all = history.all_predicates();
    let mut bounds = vec![0];
    while let Some(&start) = bounds.last()
        && start < all.len()
    {
        let mut end = (start + CHUNK).min(all.len());
        while end < all.len() && all[end].0 == all[end - 1].0 {
            end += 1;
        }
        bounds.push(end);
    }
    let none = edges.empty_like();
    let parts: Result<Vec<(Edges, Vec<Mismatch>)>, AdyaError> = bounds
        .par_windows(2)
        .map(|bounds| {
            budget.check()?;
            let mut look = PredicateReader {
                history,
                versions,
                snapshots,
                conditions,
                edges: none.clone(),
                mismatches: Vec::new(),
                own: Vec::new(),
                returned: Vec::new(),
                chosen: Vec::new(),
                places: (NOBODY, Vec::new()),
                since: 0,
            };
            for number in bounds[0]..bounds[1] {
                let (txn, predicate) = &all[number];
                if versions.counted[txn.index()] {
                    let is_first = number == bounds[0] || all[number - 1].0 != *txn;
                    look.predicate(*txn, number, predicate, is_first)?;
                }
            }
            look.edges.tidy(look.since);
            Ok((look.edges, look.mismatches))
        })
        .collect();
    let mut mismatches = Vec::new();
    for (found, wrong) in parts? {
        edges.append(found);
        mismatches.extend(wrong);
    }
    Ok(mismatches)
}

struct PredicateReader<'a> {
    history: &'a History,
    versions: &'a Versions,
    snapshots: &'a Snapshots<'a>,
    conditions: &'a Conditions<'a>,
    edges: Edges,
    mismatches: Vec<Mismatch>,
    own: Vec<(KeyId, ValueId)>,
    /// What was returned, sorted by key; `None` where only the key is known. And whether it was expected.
    returned: Vec<(KeyId, Option<ValueId>, bool)>,
    /// What satisfies the condition, for aggregates.
    chosen: Vec<ValueId>,
    /// The places of a whole table, as long as the next predicate looks at the same.
    places: (u32, Vec<u32>),
    /// Where the edges of the transaction at hand begin.
    since: usize,
}

impl<'a> PredicateReader<'a> {
    fn predicate(
        &mut self,
        txn: TxnId,
        number: usize,
        predicate: &'a Predicate,
        is_first: bool,
    ) -> Result<(), AdyaError> {
        let all = self.history.all_predicates();
        if is_first {
            self.edges.tidy(self.since);
            self.since = self.edges.len();
        }
        let is_same = !is_first && all[number - 1].1.snapshot == predicate.snapshot;
        if !is_same {
            self.places.0 = NOBODY;
        }
        let view = self.snapshots.view(txn, predicate)?;
        own_writes(self.history, txn, predicate.at as usize, &mut self.own);
        #[cfg(test)]
        if AdyaFault::NoOwn.is_on() {
            self.own.clear();
        }
        self.note_returned(txn, predicate);
        self.chosen.clear();
        let at = number as u32;
        let table = self.conditions.table(predicate.query);
        for index in 0..self.own.len() {
            let (key, value) = self.own[index];
            if self.history.table_of(key) == Some(table)
                && self.history.satisfies(predicate.query, value)
            {
                self.expect(txn, at, predicate, key, value);
            }
        }
        match self.conditions.way(predicate.query) {
            Way::Index(matching) => self.by_index(txn, at, predicate, &view, &matching),
            way => self.by_row(txn, at, predicate, &view, matches!(way, Way::Known)),
        }
        self.settle(txn, at, predicate, &view)
    }

    fn note_returned(&mut self, txn: TxnId, predicate: &Predicate) {
        self.returned.clear();
        let start = predicate.at as usize;
        for op in &self.history.ops(txn)[start..start + predicate.n_ops as usize] {
            match *op {
                Op::Read { key, value } => self.returned.push((key, Some(value), false)),
                Op::Write { key, .. } if self.returned.last().is_none_or(|it| it.0 != key) => {
                    self.returned.push((key, None, false));
                }
                _ => {}
            }
        }
        self.returned.sort_unstable();
    }

    fn by_row(
        &mut self,
        txn: TxnId,
        number: u32,
        predicate: &Predicate,
        view: &View<'_>,
        is_known: bool,
    ) {
        let conditions = self.conditions;
        let table = conditions.table(predicate.query);
        let keys = &conditions.tables[table as usize].keys;
        if self.places.0 != table {
            let places = keys
                .iter()
                .map(|&key| self.snapshots.place(view, key) as u32);
            self.places = (table, places.collect());
        }
        for (row, &key) in keys.iter().enumerate() {
            let place = self.places.1[row] as usize;
            let around = if is_known {
                conditions.known(predicate.query, row, place)
            } else {
                conditions.scan(predicate.query, key, place)
            };
            self.row(txn, number, predicate, key, place, around);
        }
    }

    fn by_index(
        &mut self,
        txn: TxnId,
        number: u32,
        predicate: &Predicate,
        view: &View<'_>,
        matching: &[u32],
    ) {
        let mut from = 0;
        while from < matching.len() {
            let key = self.conditions.key_of(matching[from] as usize);
            let end = self.versions.of_key(key).end as u32;
            let to = from + matching[from..].partition_point(|&it| it < end);
            let place = self.snapshots.place(view, key);
            let around = self.conditions.among(key, place, &matching[from..to]);
            self.row(txn, number, predicate, key, place, around);
            from = to;
        }
    }

    #[inline]
    fn row(
        &mut self,
        txn: TxnId,
        number: u32,
        predicate: &Predicate,
        key: KeyId,
        place: usize,
        around: Around,
    ) {
        // Rows that the transaction wrote itself are ordered by ww edges already.
        if !self.own.is_empty() && self.own.binary_search_by_key(&key, |it| it.0).is_ok() {
            return;
        }
        #[cfg(test)]
        let around = faulty(around, place);
        if let Some(before) = around.before {
            let writer = self.versions.at(before).writer;
            self.edges.add(Dependency::PredWr, writer, txn.0);
        }
        if let Some(after) = around.after {
            let writer = self.versions.at(after).writer;
            self.edges.add(Dependency::PredRw, txn.0, writer);
        }
        if around.matches {
            let value = ValueId(self.versions.at(place).value);
            if let Act::Aggregate { column, .. } = predicate.act
                && column.is_some()
                && !forgets_aggregates()
            {
                read_edges(self.versions, &mut self.edges, txn, key, place);
            }
            self.expect(txn, number, predicate, key, value);
        }
    }

    /// This version satisfies the condition, so it should be among what was returned.
    fn expect(
        &mut self,
        txn: TxnId,
        number: u32,
        predicate: &Predicate,
        key: KeyId,
        value: ValueId,
    ) {
        if let Act::Aggregate { .. } = predicate.act {
            self.chosen.push(value);
            return;
        }
        let what = match self.returned.binary_search_by_key(&key, |it| it.0) {
            Err(_) => Difference::Missing(value),
            Ok(at) => {
                self.returned[at].2 = true;
                match self.returned[at].1 {
                    Some(returned) if returned != value => Difference::Other {
                        returned,
                        visible: value,
                    },
                    _ => return,
                }
            }
        };
        self.mismatches.push(Mismatch {
            txn,
            predicate: number,
            what,
        });
    }

    /// Rows that should not have been returned, and aggregates.
    fn settle(
        &mut self,
        txn: TxnId,
        number: u32,
        predicate: &Predicate,
        view: &View<'_>,
    ) -> Result<(), AdyaError> {
        let mut wrong = |what| {
            self.mismatches.push(Mismatch {
                txn,
                predicate: number,
                what,
            });
        };
        let Act::Aggregate {
            function,
            column,
            result,
        } = predicate.act
        else {
            #[cfg(test)]
            if AdyaFault::NoExtra.is_on() {
                return Ok(());
            }
            for &(key, _, _) in self.returned.iter().filter(|it| !it.2) {
                let own = self.own.binary_search_by_key(&key, |it| it.0);
                let visible = match own {
                    Ok(at) => self.own[at].1.0,
                    Err(_) => self.versions.at(self.snapshots.place(view, key)).value,
                };
                let is_there = visible != NOBODY && !self.history.is_absence(ValueId(visible));
                wrong(Difference::Extra(key, is_there.then_some(ValueId(visible))));
            }
            return Ok(());
        };
        let values = self.chosen.iter().map(|&value| match column {
            None => Token::Int(1),
            Some(column) => self.history.cell(value, column),
        });
        match function.apply(self.history.symbols(), values) {
            None => {
                let txn = self.history.txn_name(txn);
                return Err(AdyaError::NoSum { txn });
            }
            Some(expected) if expected != result => wrong(Difference::Aggregate(expected)),
            Some(_) => {}
        }
        Ok(())
    }
}

/// A deliberate mistake: what aggregates read is not noticed.
#[cfg(test)]
fn forgets_aggregates() -> bool {
    AdyaFault::NoAggregate.is_on()
}

#[cfg(not(test))]
#[inline]
fn forgets_aggregates() -> bool {
    false
}

#[cfg(test)]
fn faulty(mut around: Around, place: usize) -> Around {
    if AdyaFault::NoPredWr.is_on() {
        around.before = None;
    }
    if AdyaFault::NoPredRw.is_on() {
        around.after = None;
    }
    if AdyaFault::LateChange.is_on() && around.before == Some(place) {
        around.after = around.before.take();
    }
    around
}
