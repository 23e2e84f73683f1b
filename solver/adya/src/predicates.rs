//! Predicate dependencies and result-set mismatches, sparsely: of all versions of a row that change what satisfies a condition,
//! only the last one up to the version that was looked at and the first one after it give edges. The others follow by ww edges.

use std::marker::PhantomData;

use kingsnake_history::adya::{Dependency, Difference, Mismatch};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::{
    Act, Extreme, History, KeyId, Op, Predicate, Token, TxnId, ValueId,
};
use rayon::prelude::*;

use crate::error::AdyaError;
use crate::explain::Sources;
use crate::graph::Edges;
use crate::query::{Around, Asked, Conditions, Side, Way};
use crate::reads::read_edges;
use crate::rules::Rules;
use crate::snapshot::{Snapshots, View};
use crate::versions::{NOBODY, Versions};

/// Adds the pred-wr and pred-rw edges of these predicates of counted transactions, and those of the rows that aggregates read;
/// returns what does not fit.
pub(crate) fn predicate_edges<R: Rules>(
    sources: &Sources<'_>,
    numbers: &[u32],
    edges: &mut Edges,
    budget: &Budget,
) -> Result<Vec<Mismatch>, AdyaError> {
    const CHUNK: usize = 1024;
    let Sources {
        history,
        versions,
        snapshots,
        conditions,
    } = *sources;
    let all = history.all_predicates();
    let txn_of = |at: usize| all[numbers[at] as usize].0;
    let mut bounds = vec![0];
    while let Some(&start) = bounds.last()
        && start < numbers.len()
    {
        let mut end = (start + CHUNK).min(numbers.len());
        while end < numbers.len() && txn_of(end) == txn_of(end - 1) {
            end += 1;
        }
        bounds.push(end);
    }
    let none = edges.empty_like();
    let parts: Result<Vec<(Edges, Vec<Mismatch>)>, AdyaError> = bounds
        .par_windows(2)
        .map(|bounds| {
            budget.check()?;
            let mut look = PredicateReader::<R> {
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
                rules: PhantomData,
            };
            for at in bounds[0]..bounds[1] {
                let (txn, predicate) = &all[numbers[at] as usize];
                let before = (at > bounds[0] && txn_of(at - 1) == *txn)
                    .then(|| &all[numbers[at - 1] as usize].1);
                look.predicate(*txn, numbers[at] as usize, predicate, before)?;
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

struct PredicateReader<'a, R> {
    history: &'a History,
    versions: &'a Versions,
    snapshots: &'a Snapshots<'a>,
    conditions: &'a Conditions<'a>,
    edges: Edges,
    mismatches: Vec<Mismatch>,
    own: Vec<(KeyId, ValueId)>,
    returned: Vec<Returned>,
    /// What satisfies the condition, for aggregates.
    chosen: Vec<ValueId>,
    /// The places of a whole table, as long as the next predicate looks at the same.
    places: (u32, Vec<u32>),
    /// Where the edges of the transaction at hand begin.
    since: usize,
    rules: PhantomData<R>,
}

impl<'a, R: Rules> PredicateReader<'a, R> {
    fn predicate(
        &mut self,
        txn: TxnId,
        number: usize,
        predicate: &'a Predicate,
        before: Option<&Predicate>,
    ) -> Result<(), AdyaError> {
        if before.is_none() {
            self.edges.tidy(self.since);
            self.since = self.edges.len();
        }
        if before.is_none_or(|it| it.snapshot != predicate.snapshot) {
            self.places.0 = NOBODY;
        }
        let view = self.snapshots.view(txn, predicate)?;
        R::own_writes(self.history, txn, predicate.at as usize, &mut self.own);
        if let Some(extreme) = R::extreme(predicate.act) {
            return self.extreme(txn, number as u32, predicate, extreme, &view);
        }
        note_returned(self.history, txn, predicate, &mut self.returned);
        self.chosen.clear();
        let at = number as u32;
        let conditions = self.conditions;
        let asked = conditions.asked(predicate.query);
        for (key, value) in self.own_chosen(asked) {
            self.expect(txn, at, predicate, key, value);
        }
        self.rows(asked, &view, |look, key, place, around| {
            look.row(txn, at, predicate, key, place, around);
        });
        self.settle(txn, at, predicate, &view)
    }

    /// A least or greatest value: rows with a value beyond it must not be there, and those that have it are read. Which of several
    /// that have it a database looked at is not known, so all of them are.
    fn extreme(
        &mut self,
        txn: TxnId,
        number: u32,
        predicate: &Predicate,
        extreme: Extreme,
        view: &View<'_>,
    ) -> Result<(), AdyaError> {
        let (history, conditions) = (self.history, self.conditions);
        let mut is_wrong = false;
        let mut is_there = extreme.result == Token::Nil;
        let asked = conditions.asked(predicate.query);
        for (_, value) in self.own_chosen(asked) {
            let cell = history.cell(value, extreme.column);
            let symbols = history.symbols();
            is_wrong |= extreme.function.is_beyond(symbols, cell, extreme.result);
            is_there |= cell == extreme.result;
        }
        let beyond = conditions.narrowed(predicate.query, extreme, Side::Beyond);
        self.rows(&beyond, view, |look, key, place, around| {
            is_wrong |= look.depend(txn, key, place, around) && around.matches;
        });
        let at = conditions.narrowed(predicate.query, extreme, Side::At);
        self.rows(&at, view, |look, key, place, around| {
            if around.matches && !look.is_own(key) {
                is_there = true;
                if R::reads_aggregated() {
                    read_edges(look.versions, &mut look.edges, txn, key, place);
                }
            }
        });
        if !is_wrong && is_there {
            return Ok(());
        }
        self.chosen.clear();
        let own = self.own_chosen(asked);
        self.chosen.extend(own.into_iter().map(|(_, value)| value));
        self.rows(asked, view, |look, key, place, around| {
            if around.matches && !look.is_own(key) {
                look.chosen.push(ValueId(look.versions.at(place).value));
            }
        });
        self.settle(txn, number, predicate, view)
    }

    /// What the transaction wrote itself before, and satisfies the condition.
    fn own_chosen(&self, asked: &Asked) -> Vec<(KeyId, ValueId)> {
        let is_chosen = |it: &&(KeyId, ValueId)| {
            self.history.table_of(it.0) == Some(asked.table)
                && self.history.satisfies(asked.query, it.1)
        };
        self.own.iter().filter(is_chosen).copied().collect()
    }

    /// Visits every row of which a version may satisfy the condition, with the place of the version that is looked at.
    fn rows(
        &mut self,
        asked: &Asked,
        view: &View<'_>,
        mut visit: impl FnMut(&mut Self, KeyId, usize, Around),
    ) {
        let conditions = self.conditions;
        let matching = match conditions.way(asked) {
            Way::Index(matching) => matching,
            way => return self.by_row(asked, view, matches!(way, Way::Known), visit),
        };
        let mut from = 0;
        while from < matching.len() {
            let key = conditions.key_of(matching[from] as usize);
            let end = self.versions.of_key(key).end as u32;
            let to = from + matching[from..].partition_point(|&it| it < end);
            let place = self.snapshots.place(view, key);
            let around = conditions.among(key, place, &matching[from..to]);
            visit(self, key, place, around);
            from = to;
        }
    }

    fn by_row(
        &mut self,
        asked: &Asked,
        view: &View<'_>,
        is_known: bool,
        mut visit: impl FnMut(&mut Self, KeyId, usize, Around),
    ) {
        let conditions = self.conditions;
        let keys = &conditions.tables[asked.table as usize].keys;
        if self.places.0 != asked.table {
            let places = keys
                .iter()
                .map(|&key| self.snapshots.place(view, key) as u32);
            self.places = (asked.table, places.collect());
        }
        for (row, &key) in keys.iter().enumerate() {
            let place = self.places.1[row] as usize;
            let around = if is_known {
                conditions.known(asked, row, place)
            } else {
                conditions.scan(asked, key, place)
            };
            visit(self, key, place, around);
        }
    }

    /// Whether the transaction wrote the row itself before.
    #[inline]
    fn is_own(&self, key: KeyId) -> bool {
        !self.own.is_empty() && self.own.binary_search_by_key(&key, |it| it.0).is_ok()
    }

    /// The edges of one row; false for those that the transaction wrote itself, which are ordered by ww edges already.
    #[inline]
    fn depend(&mut self, txn: TxnId, key: KeyId, place: usize, around: Around) -> bool {
        if self.is_own(key) {
            return false;
        }
        let around = R::depended_on(around, place);
        if let Some(before) = around.before {
            let writer = self.versions.at(before).writer;
            self.edges.add(Dependency::PredWr, writer, txn.0);
        }
        if let Some(after) = around.after {
            let writer = self.versions.at(after).writer;
            self.edges.add(Dependency::PredRw, txn.0, writer);
        }
        true
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
        if self.depend(txn, key, place, around) && around.matches {
            let value = ValueId(self.versions.at(place).value);
            if let Act::Aggregate { column, .. } = predicate.act
                && column.is_some()
                && R::reads_aggregated()
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
            for key in R::extra(&self.returned) {
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

/// What was returned of a key; `None` where only the key is known. And whether it was expected.
pub(crate) type Returned = (KeyId, Option<ValueId>, bool);

/// What a predicate returned, sorted by key.
pub(crate) fn note_returned(
    history: &History,
    txn: TxnId,
    predicate: &Predicate,
    returned: &mut Vec<Returned>,
) {
    returned.clear();
    let start = predicate.at as usize;
    for op in &history.ops(txn)[start..start + predicate.n_ops as usize] {
        match *op {
            Op::Read { key, value } => returned.push((key, Some(value), false)),
            Op::Write { key, .. } if returned.last().is_none_or(|it| it.0 != key) => {
                returned.push((key, None, false));
            }
            _ => {}
        }
    }
    returned.sort_unstable();
}
