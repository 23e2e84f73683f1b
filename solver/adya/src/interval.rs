//! Conditions that are conjunctions of comparisons of columns with numbers, as intervals that an index can answer.

use kingsnake_history::model::{Column, Comparison, Condition, Operand, Token};

/// A column lies between two numbers, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) column: Column,
    pub(crate) low: i64,
    pub(crate) high: i64,
}

/// The intervals that a condition is the conjunction of; `None` where it is something else.
pub(crate) fn intervals(condition: &Condition) -> Option<Vec<Interval>> {
    let mut found = Vec::new();
    (collect(condition, &mut found) && !found.is_empty()).then_some(found)
}

fn collect(condition: &Condition, found: &mut Vec<Interval>) -> bool {
    let number = |operand: &Operand| match operand {
        Operand::Literal(Token::Int(number)) => Some(*number),
        _ => None,
    };
    let interval = match condition {
        Condition::And(parts) => return parts.iter().all(|part| collect(part, found)),
        Condition::Compare(comparison, column, with) => {
            number(with).and_then(|with| compared(*comparison, *column, with))
        }
        Condition::Between(column, low, high) => match (number(low), number(high)) {
            (Some(low), Some(high)) => Some(Interval {
                column: *column,
                low,
                high,
            }),
            _ => None,
        },
        _ => None,
    };
    found.extend(interval);
    interval.is_some()
}

fn compared(comparison: Comparison, column: Column, with: i64) -> Option<Interval> {
    let (low, high) = match comparison {
        Comparison::Eq => (with, with),
        Comparison::Lt => (i64::MIN, with.checked_sub(1)?),
        Comparison::Le => (i64::MIN, with),
        Comparison::Gt => (with.checked_add(1)?, i64::MAX),
        Comparison::Ge => (with, i64::MAX),
        Comparison::Ne => return None,
    };
    Some(Interval { column, low, high })
}
