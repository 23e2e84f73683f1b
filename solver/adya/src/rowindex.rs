//! The rows of a state by the numbers in the columns that conditions bound, so that a condition asks for few of them.

use std::collections::BTreeSet;
use std::collections::btree_set::Range;

use kingsnake_history::model::KeyId;

/// Of each table and column that some condition bounds, the keys by their numbers now. `C` names a column.
#[derive(Clone)]
pub(crate) struct RowIndex<C> {
    /// By table.
    columns: Vec<Vec<(C, Rows)>>,
}

type Rows = BTreeSet<(i64, KeyId)>;

/// A part of an index.
type Span<'a> = Range<'a, (i64, KeyId)>;

impl<C: Copy + PartialEq> RowIndex<C> {
    pub(crate) fn new(n_tables: usize) -> Self {
        RowIndex {
            columns: (0..n_tables).map(|_| Vec::new()).collect(),
        }
    }

    /// From now on keeps the rows of a table by this column.
    pub(crate) fn keep(&mut self, table: u32, column: C) {
        let columns = &mut self.columns[table as usize];
        if columns.iter().all(|it| it.0 != column) {
            columns.push((column, Rows::new()));
        }
    }

    /// A key's row changes: its numbers by column before and after, `None` where there is no number.
    pub(crate) fn change(
        &mut self,
        table: u32,
        key: KeyId,
        before: impl Fn(C) -> Option<i64>,
        after: impl Fn(C) -> Option<i64>,
    ) {
        for (column, rows) in &mut self.columns[table as usize] {
            let (old, new) = (before(*column), after(*column));
            if old == new {
                continue;
            }
            if let Some(number) = old {
                rows.remove(&(number, key));
            }
            if let Some(number) = new {
                rows.insert((number, key));
            }
        }
    }

    /// The keys whose numbers lie in one of the intervals, of which every row that is asked for lies in all: the interval with the
    /// fewest. `None` where no interval has an index.
    pub(crate) fn within(
        &self,
        table: u32,
        bounds: impl Iterator<Item = (C, i64, i64)>,
    ) -> Option<impl Iterator<Item = KeyId>> {
        let columns = &self.columns[table as usize];
        let mut spans: Vec<Span<'_>> = Vec::new();
        for (column, low, high) in bounds {
            if low > high {
                spans = vec![Range::default()];
                break;
            }
            if let Some((_, rows)) = columns.iter().find(|it| it.0 == column) {
                spans.push(rows.range((low, KeyId(0))..=(high, KeyId(u32::MAX))));
            }
        }
        Some(narrowest(&spans)?.map(|it| it.1))
    }
}

/// The part that ends first, found by walking all of them at the same pace.
fn narrowest<'a>(spans: &[Span<'a>]) -> Option<Span<'a>> {
    let mut walking = spans.to_vec();
    while walking.len() > 1 {
        for (at, span) in walking.iter_mut().enumerate() {
            if span.next().is_none() {
                return Some(spans[at].clone());
            }
        }
    }
    spans.first().cloned()
}
