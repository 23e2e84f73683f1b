//! Aggregates: which of the open reads each one counts, and clauses that say what they give.
//!
//! At the weak levels each aggregate is a statement of its own, so its rows are reads of their own.

use super::Taken;
use crate::model::{Function, History, KeyId, Token};
use crate::resolve::{CountedRow, Node, Resolved, VersionId};
use crate::solve::tally::Tally;
use crate::solve::{CountedRead, Counting as StatedCounting, has_aggregates};
use kingsnake_graph::{Literal, Logic};
use rustc_hash::FxHashMap;

/// An aggregate, and the open reads that it counts.
pub(super) struct Counting {
    pub(super) reader: Node,
    pub(super) nth: usize,
    function: Function,
    result: Token,
    own: Vec<Token>,
    pub(super) rows: Vec<CountedOpen>,
    /// Cells of the rows that do not give the result.
    refused: Vec<Vec<Token>>,
}

/// A row that an aggregate counts.
pub(super) struct CountedOpen {
    pub(super) read: usize,
    row: CountedRow,
}

/// Every aggregate of a history, and the open reads that it counts; `place` is the open read of a transaction's read of a key, by the read's
/// name.
pub(super) fn counting(
    history: &History,
    resolved: &Resolved,
    place: impl Fn((Node, usize, KeyId)) -> Option<usize>,
) -> Vec<Counting> {
    if !has_aggregates(history) {
        return Vec::new();
    }
    let mut all = Vec::new();
    for reader in 0..resolved.n_txns() as Node {
        let statements = history.statements(resolved.txn(reader));
        for aggregate in resolved.aggregates_of(history, reader) {
            let op = statements.read_by(aggregate.nth);
            let rows = resolved.counted_rows(history, &aggregate).into_iter();
            let rows = rows.filter_map(|row| {
                let read = place((reader, op, row.key))?;
                Some(CountedOpen { read, row })
            });
            all.push(Counting {
                reader,
                nth: aggregate.nth,
                function: aggregate.function,
                result: aggregate.result,
                rows: rows.collect(),
                own: aggregate.own,
                refused: Vec::new(),
            });
        }
    }
    all
}

impl CountedOpen {
    /// What a version adds.
    pub(super) fn cell(&self, version: VersionId) -> Token {
        self.row.cell(version)
    }
}

impl Counting {
    /// The same of an aggregate that the loop counted; `place` is where its reads are among the open ones. The others are certain.
    pub(super) fn of_stated(
        counted: &StatedCounting,
        base: &Resolved,
        place: &FxHashMap<usize, usize>,
    ) -> Self {
        let mut own = counted.known.clone();
        let mut rows = Vec::new();
        let mut refused = vec![Vec::new(); counted.refused.len()];
        for (at, CountedRead { read, row }) in counted.rows.iter().enumerate() {
            if let Some(&read) = place.get(read) {
                let row = row.clone();
                rows.push(CountedOpen { read, row });
                let cells = counted.refused.iter().map(|it| it[at]);
                refused.iter_mut().zip(cells).for_each(|it| it.0.push(it.1));
            } else if let &[version] = base.uncertain()[*read].candidates.as_slice() {
                own.push(row.cell(version));
            }
        }
        Counting {
            reader: counted.aggregate.reader,
            nth: counted.aggregate.nth,
            function: counted.aggregate.function,
            result: counted.aggregate.result,
            own,
            rows,
            refused,
        }
    }

    fn tally<'h>(&self, history: &'h History) -> Tally<'h> {
        Tally::of(history, self.function, self.result)
    }

    /// Whether some versions of those that the rows can have been read in give the result; yes where that is too much to tell.
    pub(super) fn is_possible<'v>(
        &self,
        history: &History,
        versions: impl Fn(usize) -> &'v [VersionId],
    ) -> bool {
        let tally = self.tally(history);
        let rows = self.rows.iter().map(|it| {
            let cells = versions(it.read).iter().map(|&version| it.cell(version));
            let mut cells: Vec<Token> = cells.collect();
            cells.sort_unstable();
            cells.dedup();
            cells
        });
        let rows: Vec<Vec<Token>> = rows.collect();
        tally.is_possible(tally.over(self.own.iter().copied()), &rows) != Some(false)
    }

    /// Whether these versions give the result.
    pub(super) fn is_given(&self, history: &History, version: impl Fn(usize) -> VersionId) -> bool {
        let tally = self.tally(history);
        let rows = self.rows.iter().map(|it| it.cell(version(it.read)));
        let partial = tally.over(self.own.iter().copied().chain(rows));
        partial.is_some_and(|it| tally.is_result(it))
    }

    /// States the result, where there are not too many partial results. The reads have these candidates, and literals where they are open.
    pub(super) fn state<'c>(
        &self,
        history: &History,
        candidates: impl Fn(usize) -> &'c [VersionId],
        literal: impl Fn(Taken) -> Option<Literal>,
        logic: &mut Logic,
    ) {
        let tally = self.tally(history);
        let mut known = self.own.clone();
        let mut rows: Vec<Vec<(Token, Vec<Literal>)>> = Vec::new();
        for it in &self.rows {
            let mut cells: Vec<(Token, Vec<Literal>)> = Vec::new();
            for &version in candidates(it.read) {
                let cell = it.cell(version);
                let Some(literal) = literal((it.read, version)) else {
                    known.push(cell);
                    continue;
                };
                match cells.iter_mut().find(|it| it.0 == cell) {
                    Some(same) => same.1.push(literal),
                    None => cells.push((cell, vec![literal])),
                }
            }
            if !cells.is_empty() {
                rows.push(cells);
            }
        }
        if let Some(start) = tally.over(known)
            && !rows.is_empty()
        {
            tally.state(logic, start, &rows);
        }
        for refused in &self.refused {
            let mut others = Vec::new();
            let mut is_other = false;
            for (row, &cell) in self.rows.iter().zip(refused) {
                let versions = candidates(row.read).iter().copied();
                for version in versions.filter(|&it| row.cell(it) != cell) {
                    let literal = literal((row.read, version));
                    is_other |= literal.is_none();
                    others.extend(literal);
                }
            }
            if !is_other {
                logic.clause(&others);
            }
        }
    }
}
