//! Range queries: their keys and their results.
//!
//! Keys of one kind are ordered: numbers by size, texts by their bytes. A bound spans keys of its own kind only, so a
//! range of numbers never holds a text; a range without bounds spans every key.

use std::cmp::Ordering;
use std::ops::Bound;

use super::ids::ValueId;
use super::names::{Symbols, Token};

/// The ends of a range of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    low: Bound<Token>,
    high: Bound<Token>,
}

impl Span {
    /// A range of keys; `None` where the ends are of different kinds, or are no keys that have an order.
    pub fn new(low: Bound<Token>, high: Bound<Token>) -> Option<Self> {
        let kind = |bound: Bound<Token>| match bound {
            Bound::Unbounded => None,
            Bound::Included(token) | Bound::Excluded(token) => Some(kind(token)),
        };
        let fits = match (kind(low), kind(high)) {
            (Some(one), Some(other)) => one == other && one != kind_of_nil(),
            (Some(one), None) | (None, Some(one)) => one != kind_of_nil(),
            (None, None) => true,
        };
        fits.then_some(Span { low, high })
    }

    /// The lower end.
    pub fn low(&self) -> Bound<Token> {
        self.low
    }

    /// The upper end.
    pub fn high(&self) -> Bound<Token> {
        self.high
    }

    /// The key, where the range can hold no other.
    pub fn only_key(&self) -> Option<Token> {
        match (self.low, self.high) {
            (Bound::Included(low), Bound::Included(high)) if low == high => Some(low),
            _ => None,
        }
    }

    /// Where a key lies: before the range, in it, or after it. Keys of another kind than the bounds are never in it.
    pub fn place(&self, symbols: &Symbols, key: Token) -> Ordering {
        let before = match self.low {
            Bound::Unbounded => match self.high {
                Bound::Included(high) | Bound::Excluded(high) => kind(key) < kind(high),
                Bound::Unbounded => false,
            },
            Bound::Included(low) => compare(symbols, key, low).is_lt(),
            Bound::Excluded(low) => compare(symbols, key, low).is_le(),
        };
        let after = match self.high {
            Bound::Unbounded => match self.low {
                Bound::Included(low) | Bound::Excluded(low) => kind(key) > kind(low),
                Bound::Unbounded => false,
            },
            Bound::Included(high) => compare(symbols, key, high).is_gt(),
            Bound::Excluded(high) => compare(symbols, key, high).is_ge(),
        };
        match (before, after) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            _ => Ordering::Equal,
        }
    }

    /// The range in the notation of intervals, such as `[10, 20)`.
    pub fn show(&self, show: impl Fn(Token) -> String) -> String {
        let low = match self.low {
            Bound::Unbounded => "(-∞".to_owned(),
            Bound::Included(low) => format!("[{}", show(low)),
            Bound::Excluded(low) => format!("({}", show(low)),
        };
        let high = match self.high {
            Bound::Unbounded => "∞)".to_owned(),
            Bound::Included(high) => format!("{}]", show(high)),
            Bound::Excluded(high) => format!("{})", show(high)),
        };
        format!("{low}, {high}")
    }
}

/// The order of keys: numbers by size, texts by their bytes; kinds one after the other.
pub fn compare(symbols: &Symbols, one: Token, other: Token) -> Ordering {
    match (one, other) {
        (Token::Int(one), Token::Int(other)) => one.cmp(&other),
        (Token::Text(one), Token::Text(other)) => symbols.text(one).cmp(symbols.text(other)),
        _ => kind(one).cmp(&kind(other)),
    }
}

fn kind(token: Token) -> u8 {
    match token {
        Token::Nil => kind_of_nil(),
        Token::Int(_) => 1,
        Token::Text(_) => 2,
    }
}

const fn kind_of_nil() -> u8 {
    0
}

/// A range query and its answer. Keys of the range that it did not return were absent.
#[derive(Clone, Copy, Debug)]
pub struct RangeQuery<'h> {
    /// Which keys it asked for.
    pub span: Span,
    /// The rows that it returned; a value knows its key. Deleted rows are among them if the client saw them.
    pub rows: &'h [ValueId],
    /// Whether the client sees deleted rows. Then a key that was not returned is as it was before any transaction;
    /// otherwise it may have been deleted as well.
    pub shows_deleted: bool,
}

impl RangeQuery<'_> {
    /// The key of a client that sees deleted rows, asked for one key, and found neither a row nor a delete of a name.
    pub fn untouched_key(&self) -> Option<Token> {
        let key = self.span.only_key().filter(|_| self.shows_deleted);
        key.filter(|_| self.rows.is_empty())
    }
}

/// A range query's row in the history.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeRow {
    pub(super) span: Span,
    pub(super) rows_end: u32,
    pub(super) shows_deleted: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bound::{Excluded, Included, Unbounded};

    fn places(low: Bound<Token>, high: Bound<Token>, symbols: &Symbols, keys: &[Token]) -> String {
        let span = Span::new(low, high).expect("the ends are of one kind");
        let place = |key: &Token| match span.place(symbols, *key) {
            Ordering::Less => '<',
            Ordering::Equal => '=',
            Ordering::Greater => '>',
        };
        keys.iter().map(place).collect()
    }

    #[test]
    fn numbers_are_ordered_by_size_and_texts_by_bytes() {
        let mut symbols = Symbols::default();
        // Interned in another order than they compare.
        let texts = ["b", "a", "aé", "az"].map(|text| Token::Text(symbols.intern(text)));
        let numbers = [-3, 9, 10, 11].map(Token::Int);
        let ten = Token::Int(10);
        assert_eq!(places(Included(ten), Unbounded, &symbols, &numbers), "<<==");
        assert_eq!(places(Excluded(ten), Unbounded, &symbols, &numbers), "<<<=");
        assert_eq!(places(Unbounded, Included(ten), &symbols, &numbers), "===>");
        assert_eq!(places(Unbounded, Excluded(ten), &symbols, &numbers), "==>>");
        let [b, a, _, az] = texts;
        assert_eq!(places(Excluded(a), Excluded(b), &symbols, &texts), "><==");
        assert_eq!(places(Included(az), Included(b), &symbols, &texts), "=<==");
    }

    #[test]
    fn a_bound_spans_keys_of_its_own_kind_only() {
        let mut symbols = Symbols::default();
        let text = Token::Text(symbols.intern("x"));
        let keys = [Token::Nil, Token::Int(7), text];
        let five = Token::Int(5);
        assert_eq!(places(Included(five), Unbounded, &symbols, &keys), "<=>");
        assert_eq!(places(Unbounded, Included(text), &symbols, &keys), "<<=");
        assert_eq!(places(Unbounded, Unbounded, &symbols, &keys), "===");
        assert_eq!(Span::new(Included(five), Included(text)), None);
        assert_eq!(Span::new(Included(Token::Nil), Unbounded), None);
    }
}
