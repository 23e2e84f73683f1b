//! The aggregates of a history, and the open reads that each one counts.
//!
//! At the weak levels each aggregate is a statement of its own, so its rows are reads of their own.

use crate::model::{History, KeyId};
use crate::resolve::{Node, Resolved};
use crate::solve::{CountedRead, Counting, has_aggregates};
use rustc_hash::FxHashMap;

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
                Some(CountedRead { read, row })
            });
            let (rows, known) = (rows.collect(), aggregate.own.clone());
            all.push(Counting::of(aggregate, known, rows));
        }
    }
    all
}

/// The same of an aggregate that the loop counted; `place` is where its reads are among the open ones. The others are certain.
pub(super) fn of_stated(
    counted: &Counting,
    base: &Resolved,
    place: &FxHashMap<usize, usize>,
) -> Counting {
    let mut known = counted.known.clone();
    let mut rows = Vec::new();
    let mut refused = vec![Vec::new(); counted.refused.len()];
    for (at, CountedRead { read, row }) in counted.rows.iter().enumerate() {
        if let Some(&read) = place.get(read) {
            let row = row.clone();
            rows.push(CountedRead { read, row });
            let cells = counted.refused.iter().map(|it| it[at]);
            refused.iter_mut().zip(cells).for_each(|it| it.0.push(it.1));
        } else if let &[version] = base.uncertain()[*read].candidates.as_slice() {
            known.push(row.cell(version));
        }
    }
    let mut stated = Counting::of(counted.aggregate.clone(), known, rows);
    stated.refused = refused;
    stated
}
