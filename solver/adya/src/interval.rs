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
    let is_exact = collect(condition, &mut found);
    (is_exact && !found.is_empty()).then_some(found)
}

/// Intervals in which columns lie wherever a condition holds, whatever else it asks.
pub(crate) fn necessary(condition: &Condition) -> Vec<Interval> {
    let mut found = Vec::new();
    collect(condition, &mut found);
    found
}

fn collect(condition: &Condition, found: &mut Vec<Interval>) -> bool {
    let number = |operand: &Operand| match operand {
        Operand::Literal(Token::Int(number)) => Some(*number),
        _ => None,
    };
    let interval = match condition {
        Condition::And(parts) => {
            let mut is_exact = true;
            for part in parts {
                is_exact &= collect(part, found);
            }
            return is_exact;
        }
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
        Condition::In(column, list) => {
            found.extend(hull(*column, list));
            return false;
        }
        _ => None,
    };
    found.extend(interval);
    interval.is_some()
}

/// The interval from the least to the greatest number of a list that has numbers only.
fn hull(column: Column, list: &[Token]) -> Option<Interval> {
    let number = |token: &Token| match token {
        Token::Int(number) => Some(*number),
        _ => None,
    };
    let numbers: Option<Vec<i64>> = list.iter().map(number).collect();
    let numbers = numbers?;
    let (low, high) = (*numbers.iter().min()?, *numbers.iter().max()?);
    Some(Interval { column, low, high })
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
