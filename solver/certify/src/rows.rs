//! The checkers' own reading of range queries: the keys that one covers, and what it shows about each.
//!
//! Nothing here is shared with the search, which lists the keys of a range from a sorted array: a key is asked whether it
//! lies between the bounds, one comparison after the other.

use std::ops::Bound;

use kingsnake_history::model::{History, KeyId, Op, RangeQuery, Token, ValueId};

/// What an operation shows about a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sight {
    /// It held this value, or each of these.
    Values(Vec<ValueId>),
    /// It had no row.
    Nothing {
        /// Whether a delete with a name would have been seen.
        shows_deleted: bool,
        /// Whether the state before any transaction looks like this.
        may_be_initial: bool,
    },
}

/// What an operation shows about a register; `None` if it does not read it.
pub(super) fn sight(history: &History, op: Op, key: KeyId) -> Option<Sight> {
    match op {
        Op::Read { key: it, value } if it == key => Some(
            // Without deletes by name and without range queries, nothing is a value like any other.
            if is_nothing(history, value) && (history.has_tombstones() || history.n_ranges() > 0) {
                Sight::Nothing {
                    shows_deleted: false,
                    may_be_initial: history.is_initial(value),
                }
            } else {
                Sight::Values(vec![value])
            },
        ),
        Op::Range { range } => {
            let query = history.range(range);
            let rows = rows_of(history, query, key);
            if !rows.is_empty() {
                return Some(Sight::Values(rows));
            }
            covers(history, query, key).then(|| Sight::Nothing {
                shows_deleted: query.shows_deleted,
                may_be_initial: !history.is_there_initially(key),
            })
        }
        _ => None,
    }
}

/// Whether a value only shows that there is no row.
pub(super) fn is_nothing(history: &History, value: ValueId) -> bool {
    matches!(history.value_token(value), Token::Nil)
}

/// Whether a key with this value appears to have no row.
pub(super) fn is_hidden(history: &History, value: ValueId, shows_deleted: bool) -> bool {
    is_nothing(history, value) || history.is_tombstone(value) && !shows_deleted
}

/// The values that a query returned of a key.
fn rows_of(history: &History, query: RangeQuery<'_>, key: KeyId) -> Vec<ValueId> {
    let rows = query.rows.iter().copied();
    rows.filter(|&row| history.value_key(row) == key).collect()
}

/// Whether a query asked for a key.
pub(super) fn covers(history: &History, query: RangeQuery<'_>, key: KeyId) -> bool {
    let key = history.key_token(key);
    let follows_low = match query.span.low() {
        Bound::Unbounded => true,
        Bound::Included(low) => low == key || is_less(history, low, key),
        Bound::Excluded(low) => is_less(history, low, key),
    };
    let precedes_high = match query.span.high() {
        Bound::Unbounded => true,
        Bound::Included(high) => high == key || is_less(history, key, high),
        Bound::Excluded(high) => is_less(history, key, high),
    };
    follows_low && precedes_high
}

/// Whether one key is less than another of its kind.
fn is_less(history: &History, one: Token, other: Token) -> bool {
    match (one, other) {
        (Token::Int(one), Token::Int(other)) => one < other,
        (Token::Text(one), Token::Text(other)) => {
            let bytes = |symbol| history.symbols().text(symbol).as_bytes();
            bytes(one) < bytes(other)
        }
        _ => false,
    }
}
