//! The obligation that aggregates have their results: which versions of the rows did each count?
//!
//! An order is replayed. For each aggregate that has another result there, the rows that it counted become reads that can be of any
//! version, and clauses say that what was read gives the result (`tally`).

use rustc_hash::FxHashMap;

pub(super) use super::broken::Wrong;
use super::broken::broken;
use super::reads::Reads;
use super::tally::{Partial, Tally};
use super::{Found, Lemma, Obligation};
use crate::model::{Act, History, Token};
use crate::phases::{self, Check, Stop};
use crate::resolve::{CountedAggregate, CountedRow, Node, Resolved, Uncertain, VersionId};
use kingsnake_graph::{Literal, Logic};

/// Up to this many rows, all aggregates are counted once one has another result.
const FEW: usize = 20_000;

/// Whether a history has aggregates.
pub(crate) fn has_aggregates(history: &History) -> bool {
    let mut predicates = history.all_predicates().iter();
    predicates.any(|(_, it)| matches!(it.act, Act::Aggregate { .. }))
}

/// An aggregate whose result has to be explained by what was read.
#[derive(Clone)]
pub(crate) struct Counting {
    pub(crate) aggregate: CountedAggregate,
    /// The cells that are known, the transaction's own among them.
    pub(crate) known: Vec<Token>,
    /// The rows that can have been read in several versions.
    pub(crate) rows: Vec<CountedRead>,
    /// Whether clauses say that the rows give the result.
    pub(super) is_said: bool,
    /// Cells of these rows that orders gave it and that do not give the result.
    pub(crate) refused: Vec<Vec<Token>>,
}

/// A row that an aggregate counts, and the uncertain read of it.
#[derive(Clone)]
pub(crate) struct CountedRead {
    pub(crate) read: usize,
    pub(crate) row: CountedRow,
}

/// The aggregates that are counted.
#[derive(Clone, Default)]
pub(crate) struct Counted {
    pub(crate) all: Vec<Counting>,
    /// For each uncertain read, the rows that it is of.
    pub(super) of_read: FxHashMap<usize, Vec<(usize, usize)>>,
}

impl Counting {
    /// An aggregate of these rows; other cells are known.
    pub(crate) fn of(
        aggregate: CountedAggregate,
        known: Vec<Token>,
        rows: Vec<CountedRead>,
    ) -> Self {
        Counting {
            aggregate,
            known,
            rows,
            is_said: false,
            refused: Vec::new(),
        }
    }

    fn tally<'h>(&self, history: &'h History) -> Tally<'h> {
        Tally::of(history, self.aggregate.function, self.aggregate.result)
    }

    fn start(&self, history: &History) -> Option<Partial> {
        self.tally(history).over(self.known.iter().copied())
    }

    /// Whether some versions of those that the rows can have been read in give the result; true if that is too
    /// expensive to find out.
    pub(crate) fn is_possible<'v>(
        &self,
        history: &History,
        versions: impl Fn(usize) -> &'v [VersionId],
    ) -> bool {
        let cells = self.rows.iter().map(|it| {
            let cells = versions(it.read)
                .iter()
                .map(|&version| it.row.cell(version));
            let mut cells: Vec<Token> = cells.collect();
            cells.sort_unstable();
            cells.dedup();
            cells
        });
        let cells: Vec<Vec<Token>> = cells.collect();
        let tally = self.tally(history);
        tally.is_possible(self.start(history), &cells) != Some(false)
    }

    /// Whether these versions give the result.
    pub(crate) fn is_given(&self, history: &History, version: impl Fn(usize) -> VersionId) -> bool {
        let tally = self.tally(history);
        let rows = self.rows.iter().map(|it| it.row.cell(version(it.read)));
        let partial = tally.over(self.known.iter().copied().chain(rows));
        partial.is_some_and(|it| tally.is_result(it))
    }

    /// States the result, given what is left of the candidates of each read and the first variable of those that are open. Whether it
    /// is said.
    pub(crate) fn state<'v>(
        &self,
        history: &History,
        logic: &mut Logic,
        left: impl Fn(usize) -> &'v [VersionId],
        first: impl Fn(usize) -> Option<u32>,
    ) -> bool {
        let mut known = self.known.clone();
        let mut rows: Vec<Vec<(Token, Vec<Literal>)>> = Vec::new();
        for CountedRead { read, row } in &self.rows {
            let Some(first) = first(*read) else {
                known.extend(left(*read).first().map(|&it| row.cell(it)));
                continue;
            };
            let mut cells: Vec<(Token, Vec<Literal>)> = Vec::new();
            for (&version, variable) in left(*read).iter().zip(first..) {
                let (cell, literal) = (row.cell(version), Literal::Variable(variable, true));
                match cells.iter_mut().find(|it| it.0 == cell) {
                    Some(same) => same.1.push(literal),
                    None => cells.push((cell, vec![literal])),
                }
            }
            rows.push(cells);
        }
        let tally = self.tally(history);
        match tally.over(known) {
            Some(start) if !rows.is_empty() => tally.state(logic, start, &rows),
            Some(start) => {
                if !tally.is_result(start) {
                    logic.clause(&[]);
                }
                true
            }
            None => {
                logic.clause(&[]);
                true
            }
        }
    }

    /// What an order gave the rows.
    pub(super) fn cells(&self, wrong: &Wrong) -> Vec<Token> {
        let cells = self.rows.iter().map(|it| {
            let at = wrong.seen.binary_search_by_key(&it.row.key, |seen| seen.0);
            at.map_or(Token::Nil, |at| wrong.seen[at].1)
        });
        cells.collect()
    }

    /// Forbids these cells of the rows.
    pub(crate) fn forbid<'v>(
        &self,
        logic: &mut Logic,
        cells: &[Token],
        left: impl Fn(usize) -> &'v [VersionId],
        first: impl Fn(usize) -> Option<u32>,
    ) {
        let mut others = Vec::new();
        for (CountedRead { read, row }, &refused) in self.rows.iter().zip(cells) {
            let Some(first) = first(*read) else {
                if left(*read)
                    .first()
                    .is_some_and(|&it| row.cell(it) != refused)
                {
                    return;
                }
                continue;
            };
            let versions = left(*read).iter().zip(first..);
            let others_of = versions.filter(|it| row.cell(*it.0) != refused);
            others.extend(others_of.map(|it| Literal::Variable(it.1, true)));
        }
        logic.clause(&others);
    }
}

impl Counted {
    /// Whether it matters to an aggregate which of two versions was read.
    pub(crate) fn differ(&self, read: usize, one: VersionId, other: VersionId) -> bool {
        let mut rows = self.of_read.get(&read).into_iter().flatten();
        rows.any(|&row| self.differ_in(row, one, other))
    }

    /// Whether two versions add different cells to a row.
    pub(super) fn differ_in(
        &self,
        (at, row): (usize, usize),
        one: VersionId,
        other: VersionId,
    ) -> bool {
        let row = &self.all[at].rows[row].row;
        row.cell(one) != row.cell(other)
    }

    /// Whether some other row of the read tells the versions apart.
    pub(super) fn differ_but(
        &self,
        but: (usize, usize),
        read: usize,
        one: VersionId,
        other: VersionId,
    ) -> bool {
        let rows = self.of_read.get(&read).into_iter().flatten();
        let mut others = rows.filter(|&&row| row != but);
        others.any(|&row| self.differ_in(row, one, other))
    }

    /// States all aggregates, given the candidates of each uncertain read and the first variable of those that are open.
    pub(crate) fn state(
        &self,
        history: &History,
        logic: &mut Logic,
        candidates: &[Vec<VersionId>],
        first: &FxHashMap<usize, u32>,
    ) {
        for counting in &self.all {
            let left = |read: usize| candidates[read].as_slice();
            let first = |read: usize| first.get(&read).copied();
            if !counting.state(history, logic, left, first) {
                for refused in &counting.refused {
                    counting.forbid(logic, refused, left, first);
                }
            }
        }
    }

    /// The place of a counted aggregate.
    pub(super) fn has(&self, reader: Node, nth: usize) -> Option<usize> {
        let is = |it: &Counting| (it.aggregate.reader, it.aggregate.nth) == (reader, nth);
        self.all.iter().position(is)
    }

    /// Counts one more aggregate; returns its place.
    pub(super) fn count(
        &mut self,
        history: &History,
        base: &Resolved,
        aggregate: CountedAggregate,
        reads: &mut Reads,
    ) -> Result<usize, Stop> {
        base.expect_sure(history, &aggregate)?;
        let known = aggregate.own.clone();
        let mut counting = Counting::of(aggregate, known, Vec::new());
        let reader = counting.aggregate.reader;
        for row in base.counted_rows(history, &counting.aggregate) {
            if let Some(version) = base.certain_read(reader, row.key) {
                counting.known.push(row.cell(version));
                continue;
            }
            let cell = row.cells.first().map_or(Token::Nil, |it| it.1);
            if row.cells.iter().all(|it| it.1 == cell) {
                counting.known.push(cell);
                continue;
            }
            let read = reads.number(read_of(history, base, &counting.aggregate, &row));
            let place = (self.all.len(), counting.rows.len());
            self.of_read.entry(read).or_default().push(place);
            counting.rows.push(CountedRead { read, row });
        }
        self.all.push(counting);
        Ok(self.all.len() - 1)
    }
}

/// The read of a row by an aggregate's transaction: of any version, unless its queries found the row absent.
fn read_of(
    history: &History,
    base: &Resolved,
    aggregate: &CountedAggregate,
    row: &CountedRow,
) -> Uncertain {
    if base.is_unreturned(history, aggregate.reader, row.key) {
        return base.unreturned_read(history, aggregate.reader, row.key);
    }
    Uncertain {
        reader: aggregate.reader,
        op: aggregate.at as u32,
        key: row.key,
        candidates: row.cells.iter().map(|it| it.0).collect(),
    }
}

/// Every aggregate has its result.
#[derive(Default)]
pub(super) struct Results {
    n_orders: usize,
}

impl Obligation for Results {
    fn check(&mut self, found: &Found<'_>) -> Result<Vec<Lemma>, Stop> {
        let (check, base, counted) = (found.check, found.base, found.counted);
        let wrong = broken(check.history, check.spec, base, found.moments());
        if wrong.is_empty() {
            return Ok(Vec::new());
        }
        self.n_orders += 1;
        let mut lemmas = Vec::new();
        for wrong in &wrong {
            if counted.has(wrong.reader, wrong.nth).is_none() {
                let aggregates = base.aggregates_of(check.history, wrong.reader);
                let counts = aggregates.into_iter().find(|it| it.nth == wrong.nth);
                lemmas.extend(counts.map(Lemma::Count));
            }
        }
        if lemmas.is_empty() {
            for wrong in wrong {
                if let Some(at) = counted.has(wrong.reader, wrong.nth) {
                    let counting = &counted.all[at];
                    if counting.is_said || counting.refused.contains(&counting.cells(&wrong)) {
                        return Err(phases::cyclic(found.decider).into());
                    }
                }
                lemmas.push(Lemma::Refuse(wrong));
            }
        } else if self.n_orders > 1 && counted.of_read.len() <= FEW {
            lemmas = all(check, base);
            lemmas.retain(|it| match it {
                Lemma::Count(it) => counted.has(it.reader, it.nth).is_none(),
                _ => true,
            });
        }
        Ok(lemmas)
    }
}

/// Every aggregate of a history, besides those of weak transactions.
pub(super) fn all(check: &Check<'_>, base: &Resolved) -> Vec<Lemma> {
    let history = check.history;
    let is_weak = |node: Node| check.spec.model_of(history, base.txn(node)).is_weak();
    let readers = (0..base.n_txns() as Node).filter(|&it| !is_weak(it));
    let aggregates = readers.flat_map(|reader| base.aggregates_of(history, reader));
    aggregates.map(Lemma::Count).collect()
}
