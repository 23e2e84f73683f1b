//! Histories with aggregates: which versions of the rows did each count, so that it has its result?
//!
//! The search begins without them. The order that it finds is replayed; for each aggregate that has another result there, the rows that
//! it counted become reads that can be of any version, and clauses say that what was read gives the result (`tally`). Then the
//! search begins again. A history that is violated without some of its aggregates is violated.

mod broken;
pub(crate) mod tally;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use crate::budget::Budget;
use crate::context::Context;
use crate::decide::Backend;
use crate::model::{Act, History, Token};
use crate::phases::{self, Check, Exit, Stop};
use crate::relate::Polygraph;
use crate::report::Decider;
use crate::resolve::{CountedAggregate, CountedRow, Node, Resolved, Uncertain, VersionId};
use crate::uncertain::{self, Attention};
use crate::verdict::{Moment, Point};
use broken::broken;
use kingsnake_graph::Literal;
use tally::{Partial, Tally};

/// Up to so many rows, all aggregates are counted once one has another result.
const FEW: usize = 20_000;

/// Whether a history has aggregates.
pub(crate) fn has_aggregates(history: &History) -> bool {
    let mut predicates = history.all_predicates().iter();
    predicates.any(|(_, it)| matches!(it.act, Act::Aggregate { .. }))
}

/// An aggregate whose result has to be explained by what was read.
pub(crate) struct Counting {
    pub(crate) aggregate: CountedAggregate,
    /// The cells that are known, the transaction's own among them.
    known: Vec<Token>,
    /// The rows that can have been read in several versions.
    pub(crate) rows: Vec<CountedRead>,
    /// Cells of these rows that orders gave it and that do not give the result.
    refused: Vec<Vec<Token>>,
}

/// A row that an aggregate counts, and the uncertain read of it.
pub(crate) struct CountedRead {
    pub(crate) read: usize,
    pub(crate) row: CountedRow,
}

/// The aggregates that are counted.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) all: Vec<Counting>,
    /// For each uncertain read, the rows that it is of.
    of_read: FxHashMap<usize, Vec<(usize, usize)>>,
}

impl Counting {
    fn tally<'h>(&self, history: &'h History) -> Tally<'h> {
        Tally::of(history, self.aggregate.function, self.aggregate.result)
    }

    fn start(&self, history: &History) -> Option<Partial> {
        self.tally(history).over(self.known.iter().copied())
    }

    /// Whether some versions of those that the rows can have been read in give the result; yes where that is too much to tell.
    pub(crate) fn is_possible<'v>(
        &self,
        history: &History,
        versions: impl Fn(usize) -> &'v [VersionId],
    ) -> bool {
        let cells = self.rows.iter().enumerate();
        let cells = cells.map(|(at, it)| {
            let cells = versions(at).iter().map(|&version| it.row.cell(version));
            let mut cells: Vec<Token> = cells.collect();
            cells.sort_unstable();
            cells.dedup();
            cells
        });
        let cells: Vec<Vec<Token>> = cells.collect();
        let tally = self.tally(history);
        tally.is_possible(self.start(history), &cells) != Some(false)
    }
}

impl Counted {
    /// The uncertain reads of rows that aggregates count.
    pub(crate) fn reads(&self) -> impl Iterator<Item = usize> {
        self.of_read.keys().copied()
    }

    /// Whether it matters to an aggregate which of two versions was read.
    pub(crate) fn differ(&self, read: usize, one: VersionId, other: VersionId) -> bool {
        let rows = self.of_read.get(&read).into_iter().flatten();
        let mut rows = rows.map(|&(at, row)| &self.all[at].rows[row].row);
        rows.any(|row| row.cell(one) != row.cell(other))
    }

    /// States the aggregates, given the candidates of each uncertain read and the first variable of those that are open.
    pub(crate) fn state(
        &self,
        history: &History,
        polygraph: &mut Polygraph,
        candidates: &[Vec<VersionId>],
        first: &FxHashMap<usize, u32>,
    ) {
        let logic = &mut polygraph.problem_mut().logic;
        for counting in &self.all {
            let mut known = counting.known.clone();
            let mut rows: Vec<Vec<(Token, Vec<Literal>)>> = Vec::new();
            let mut kept = Vec::new();
            for (at, CountedRead { read, row }) in counting.rows.iter().enumerate() {
                let Some(&first) = first.get(read) else {
                    known.extend(candidates[*read].first().map(|&it| row.cell(it)));
                    continue;
                };
                let mut cells: Vec<(Token, Vec<Literal>)> = Vec::new();
                for (&version, variable) in candidates[*read].iter().zip(first..) {
                    let (cell, literal) = (row.cell(version), Literal::Variable(variable, true));
                    match cells.iter_mut().find(|it| it.0 == cell) {
                        Some(same) => same.1.push(literal),
                        None => cells.push((cell, vec![literal])),
                    }
                }
                rows.push(cells);
                kept.push(at);
            }
            let tally = counting.tally(history);
            let is_said = match tally.over(known) {
                Some(start) if !rows.is_empty() => tally.state(logic, start, &rows),
                _ => true,
            };
            if is_said {
                continue;
            }
            for refused in &counting.refused {
                let rows = rows.iter().zip(&kept);
                let others = rows.flat_map(|(cells, &at)| {
                    let others = cells.iter().filter(move |it| it.0 != refused[at]);
                    others.flat_map(|it| it.1.iter().copied())
                });
                logic.clause(&others.collect::<Vec<Literal>>());
            }
        }
    }

    fn has(&self, reader: Node, nth: usize) -> Option<usize> {
        let is = |it: &Counting| (it.aggregate.reader, it.aggregate.nth) == (reader, nth);
        self.all.iter().position(is)
    }

    /// Counts one more aggregate.
    fn count(
        &mut self,
        history: &History,
        base: &Resolved,
        aggregate: CountedAggregate,
        reads: &mut Reads,
    ) -> Result<(), Stop> {
        base.expect_sure(history, &aggregate)?;
        let mut counting = Counting {
            known: aggregate.own.clone(),
            rows: Vec::new(),
            refused: Vec::new(),
            aggregate,
        };
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
            let read = reads.of(&counting.aggregate, &row);
            let place = (self.all.len(), counting.rows.len());
            self.of_read.entry(read).or_default().push(place);
            counting.rows.push(CountedRead { read, row });
        }
        self.all.push(counting);
        Ok(())
    }
}

/// The uncertain reads, with those that aggregates add.
struct Reads {
    n_before: usize,
    added: Vec<Uncertain>,
    place: FxHashMap<(Node, crate::model::KeyId), usize>,
}

impl Reads {
    fn new(base: &Resolved) -> Self {
        let uncertain = base.uncertain().iter().enumerate();
        let place = uncertain.map(|(at, read)| ((read.reader, read.key), at));
        Reads {
            n_before: base.uncertain().len(),
            added: Vec::new(),
            place: place.collect(),
        }
    }

    /// The read of a row by an aggregate's transaction.
    fn of(&mut self, aggregate: &CountedAggregate, row: &CountedRow) -> usize {
        let next = self.n_before + self.added.len();
        let place = self.place.entry((aggregate.reader, row.key));
        let place = *place.or_insert(next);
        if place == next {
            self.added.push(Uncertain {
                reader: aggregate.reader,
                op: aggregate.at as u32,
                key: row.key,
                candidates: row.cells.iter().map(|it| it.0).collect(),
            });
        }
        place
    }
}

/// From an order that explains everything but perhaps the aggregates to one that explains them too.
pub(crate) fn settle(
    check: &Check<'_>,
    base: &Resolved,
    (mut decider, mut order): (Decider, Vec<Point>),
    backend: &mut dyn Backend,
    context: &mut Context<'_>,
) -> Result<(Decider, Vec<Point>), Exit> {
    let history = check.history;
    let (mut counted, mut reads) = (Counted::default(), Reads::new(base));
    loop {
        context.budget.check()?;
        let nodes = order.iter();
        let nodes = nodes.filter_map(|it| Some((base.node(it.txn)?, it.moment)));
        let wrong = broken(history, check.spec, base, nodes);
        if wrong.is_empty() {
            return Ok((decider, order));
        }
        count_wrong(check, base, &wrong, &mut counted, &mut reads, decider)?;
        let with_reads = base.counting(reads.added.clone());
        let needed = Attention::Needed;
        let decided = uncertain::settle(check, &with_reads, &counted, needed, backend, context)?;
        (decider, order) = (decided.decider, phases::order(&decided)?);
    }
}

/// Looks for an order that explains the uncertain reads and the aggregates, without explaining why there is none. The nodes may be parts of
/// transactions.
pub(crate) fn find(
    check: &Check<'_>,
    base: &Resolved,
    backend: &mut dyn Backend,
    budget: &Budget,
) -> Result<Option<Vec<(Node, Moment)>>, Stop> {
    let history = check.history;
    let (mut counted, mut reads) = (Counted::default(), Reads::new(base));
    loop {
        budget.check()?;
        let with_reads = base.counting(reads.added.clone());
        let found = uncertain::find(check, &with_reads, &counted, backend, budget)?;
        let Some(decided) = found else {
            return Ok(None);
        };
        let order = phases::node_order(&decided)?;
        let wrong = broken(history, check.spec, base, order.iter().copied());
        if wrong.is_empty() {
            return Ok(Some(order));
        }
        let decider = decided.decider;
        count_wrong(check, base, &wrong, &mut counted, &mut reads, decider)?;
    }
}

/// Counts the aggregates that have another result in an order, and after the second order all of them.
fn count_wrong(
    check: &Check<'_>,
    base: &Resolved,
    wrong: &[broken::Wrong],
    counted: &mut Counted,
    reads: &mut Reads,
    decider: Decider,
) -> Result<(), Stop> {
    let n_before = counted.all.len();
    for wrong in wrong {
        if counted.has(wrong.reader, wrong.nth).is_none() {
            let aggregates = base.aggregates_of(check.history, wrong.reader);
            if let Some(it) = aggregates.into_iter().find(|it| it.nth == wrong.nth) {
                counted.count(check.history, base, it, reads)?;
            }
        }
    }
    if counted.all.len() == n_before {
        refuse(counted, wrong, decider)?;
    } else if n_before > 0 && reads.added.len() <= FEW {
        count_all(check, base, counted, reads)?;
    }
    Ok(())
}

/// Counts every aggregate of a history, besides those of weak transactions.
fn count_all(
    check: &Check<'_>,
    base: &Resolved,
    counted: &mut Counted,
    reads: &mut Reads,
) -> Result<(), Stop> {
    let history = check.history;
    let is_weak = |node: Node| check.spec.model_of(history, base.txn(node)).is_weak();
    for reader in (0..base.n_txns() as Node).filter(|&it| !is_weak(it)) {
        for aggregate in base.aggregates_of(history, reader) {
            if counted.has(reader, aggregate.nth).is_none() {
                counted.count(history, base, aggregate, reads)?;
            }
        }
    }
    Ok(())
}

/// Refuses what an order gave aggregates that could not be stated.
fn refuse(counted: &mut Counted, wrong: &[broken::Wrong], decider: Decider) -> Result<(), Stop> {
    for wrong in wrong {
        let Some(at) = counted.has(wrong.reader, wrong.nth) else {
            continue;
        };
        let counting = &mut counted.all[at];
        let rows = counting.rows.iter();
        let cells = rows.map(|it| {
            let at = wrong.seen.binary_search_by_key(&it.row.key, |seen| seen.0);
            at.map_or(Token::Nil, |at| wrong.seen[at].1)
        });
        let cells: Vec<Token> = cells.collect();
        if counting.refused.contains(&cells) {
            return Err(phases::cyclic(decider).into());
        }
        counting.refused.push(cells);
    }
    Ok(())
}

/// The graph of a history with all of its aggregates: what a back end is asked.
pub(crate) fn pose(
    check: &Check<'_>,
    base: &Resolved,
    context: &mut Context<'_>,
) -> Result<Polygraph, Exit> {
    let (mut counted, mut reads) = (Counted::default(), Reads::new(base));
    count_all(check, base, &mut counted, &mut reads)?;
    let with_reads = base.counting(reads.added);
    uncertain::pose(check, &with_reads, &counted, context)
}
