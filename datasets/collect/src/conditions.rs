//! Conditions over a column: what a transaction asks, and the operations that are recorded for it (docs/formats.md, *Rows and
//! predicates*). The table is `rows`, its only column `number`.

use std::fmt::Write;

use kingsnake_history::rng::Rng;

use crate::adapter::{Aggregate, Chosen, NUMBERS};

/// Numbers between these, both included.
pub(crate) type Numbers = (i64, i64);

/// One operation of a transaction that asks by conditions.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    /// A new row, with a key that no other has.
    Insert(i64),
    Select(Numbers),
    Update(Numbers, i64),
    Delete(Numbers),
    Aggregate(Numbers, Aggregate),
}

impl Asked {
    pub(crate) fn is_read(&self) -> bool {
        matches!(self, Asked::Select(_) | Asked::Aggregate(..))
    }
}

/// How many numbers a condition spans; deletes span one, so that rows remain.
const SPAN: i64 = 10;

/// One to three operations.
pub(crate) fn plan(rng: &mut Rng) -> Vec<Asked> {
    let n_asked = 1 + rng.below(3);
    (0..n_asked).map(|_| one(rng)).collect()
}

fn one(rng: &mut Rng) -> Asked {
    let number = rng.below(NUMBERS as usize) as i64;
    let low = rng.below((NUMBERS - SPAN) as usize) as i64;
    let span = (low, low + SPAN - 1);
    match rng.below(12) {
        0..2 => Asked::Insert(number),
        2..5 => Asked::Select(span),
        5..7 => Asked::Update((low, low + 2), number),
        7 => Asked::Delete((low, low)),
        8 => Asked::Aggregate(span, Aggregate::Count),
        9 => Asked::Aggregate(span, Aggregate::Sum),
        10 => Asked::Aggregate(span, Aggregate::Min),
        _ => Asked::Aggregate(span, Aggregate::Max),
    }
}

/// What stands in the header of a history.
pub(crate) const TABLES: &str = r#"{"rows":["number"]}"#;

/// The columns of a row.
pub(crate) fn row(number: i64) -> String {
    format!("{{\"number\":{number}}}")
}

fn query((low, high): Numbers) -> String {
    format!("{{\"table\":\"rows\",\"where\":[\"between\",\"number\",{low},{high}]}}")
}

fn listed(rows: &[Chosen], one: impl Fn(&Chosen) -> String) -> String {
    let mut text = "[".to_owned();
    for (at, row) in rows.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(text, "{comma}[{}]", one(row));
    }
    text.push(']');
    text
}

/// A select and the rows that it returned.
pub(crate) fn select(numbers: Numbers, rows: &[Chosen]) -> String {
    let rows = listed(rows, |row| format!("{},{}", row.key, row.value));
    format!("[\"select\",{},{rows}]", query(numbers))
}

/// An update and the rows that it changed.
pub(crate) fn update(numbers: Numbers, number: i64, rows: &[Chosen]) -> String {
    let rows = listed(rows, |it| {
        format!("{},{},{}", it.key, it.value, row(number))
    });
    format!("[\"update\",{},{rows}]", query(numbers))
}

/// A delete, the rows that it found, and its tombstone.
pub(crate) fn delete(numbers: Numbers, tombstone: i64, rows: &[Chosen]) -> String {
    let rows = listed(rows, |it| format!("{},{},{tombstone}", it.key, it.value));
    format!("[\"delete\",{},{rows}]", query(numbers))
}

/// A function of the rows and what it returned.
pub(crate) fn aggregate(numbers: Numbers, function: Aggregate, result: Option<i64>) -> String {
    let query = query(numbers);
    let result = result.map_or("null".to_owned(), |it| it.to_string());
    match function {
        Aggregate::Count => format!("[\"aggregate\",{query},\"count\",null,{result}]"),
        Aggregate::Sum => format!("[\"aggregate\",{query},\"sum\",\"number\",{result}]"),
        Aggregate::Min => format!("[\"aggregate\",{query},\"min\",\"key\",{result}]"),
        Aggregate::Max => format!("[\"aggregate\",{query},\"max\",\"key\",{result}]"),
    }
}

/// An operation with the snapshot that it was evaluated on. Transactions that are not of this collection, such as a vacuum,
/// wrote none of its rows, so they are left out.
pub(crate) fn with_snapshot(op: &str, snapshot: &str, is_ours: impl Fn(&str) -> bool) -> String {
    let mut fields = snapshot.splitn(3, ':');
    let mut next = || fields.next().unwrap_or("");
    let (low, high) = (next(), next());
    let open: Vec<&str> = next().split(',').filter(|it| is_ours(it)).collect();
    let rest = op.strip_suffix(']').unwrap_or(op);
    format!("{rest},{{\"pg\":\"{low}:{high}:{}\"}}]", open.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_names_only_transactions_of_the_collection() {
        let op = select((1, 2), &[]);
        let told = with_snapshot(&op, "10:15:10,12", |xid| xid == "12");
        assert!(told.ends_with("[],{\"pg\":\"10:15:12\"}]"), "{told}");
        let told = with_snapshot(&op, "10:10:", |_| true);
        assert!(told.ends_with("[],{\"pg\":\"10:10:\"}]"), "{told}");
    }
}
