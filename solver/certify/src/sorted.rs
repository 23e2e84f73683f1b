//! A sorted set of keys that supports range queries: the checkers' own tree.

use std::collections::BTreeMap;
use std::ops::Bound;

use kingsnake_history::model::{History, KeyId, RangeQuery, Token};

/// A key's place among all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SortedPlace<'h> {
    Nameless,
    Number(i64),
    Text(&'h str),
}

/// Some keys, in their order.
#[derive(Clone)]
pub(super) struct SortedKeys<'h> {
    history: &'h History,
    keys: BTreeMap<SortedPlace<'h>, KeyId>,
}

impl<'h> SortedKeys<'h> {
    /// No key yet.
    pub(super) fn new(history: &'h History) -> Self {
        SortedKeys {
            history,
            keys: BTreeMap::new(),
        }
    }

    fn place(&self, token: Token) -> SortedPlace<'h> {
        match token {
            Token::Nil => SortedPlace::Nameless,
            Token::Int(number) => SortedPlace::Number(number),
            Token::Text(symbol) => SortedPlace::Text(self.history.symbols().text(symbol)),
        }
    }

    /// Adds a key.
    pub(super) fn insert(&mut self, key: KeyId) {
        let place = self.place(self.history.key_token(key));
        self.keys.insert(place, key);
    }

    /// Takes a key out, if it is there.
    pub(super) fn remove(&mut self, key: KeyId) {
        let place = self.place(self.history.key_token(key));
        self.keys.remove(&place);
    }

    /// Whether a key is there.
    pub(super) fn contains(&self, key: KeyId) -> bool {
        let place = self.place(self.history.key_token(key));
        self.keys.contains_key(&place)
    }

    /// The keys that a query asks for.
    pub(super) fn within(&self, query: RangeQuery<'_>) -> impl Iterator<Item = KeyId> + '_ {
        let bounds = self.bounds(query);
        let keys = bounds.into_iter().flat_map(|it| self.keys.range(it));
        keys.map(|(_, &key)| key)
    }

    /// The query's ends among all places; `None` where nothing lies between them.
    fn bounds(
        &self,
        query: RangeQuery<'_>,
    ) -> Option<(Bound<SortedPlace<'h>>, Bound<SortedPlace<'h>>)> {
        let place = |bound: Bound<Token>| match bound {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(token) => Bound::Included(self.place(token)),
            Bound::Excluded(token) => Bound::Excluded(self.place(token)),
        };
        let ends = match (place(query.span.low()), place(query.span.high())) {
            // A bound of one kind leaves out the keys of the others.
            (Bound::Unbounded, Bound::Unbounded) => (Bound::Unbounded, Bound::Unbounded),
            (Bound::Unbounded, high) => match high {
                Bound::Included(SortedPlace::Number(_))
                | Bound::Excluded(SortedPlace::Number(_)) => {
                    (Bound::Included(SortedPlace::Number(i64::MIN)), high)
                }
                _ => (Bound::Included(SortedPlace::Text("")), high),
            },
            (low, Bound::Unbounded) => match low {
                Bound::Included(SortedPlace::Number(_))
                | Bound::Excluded(SortedPlace::Number(_)) => {
                    (low, Bound::Included(SortedPlace::Number(i64::MAX)))
                }
                _ => (low, Bound::Unbounded),
            },
            both => both,
        };
        let is_empty = match ends {
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (
                Bound::Included(low) | Bound::Excluded(low),
                Bound::Included(high) | Bound::Excluded(high),
            ) => low >= high,
            _ => false,
        };
        (!is_empty).then_some(ends)
    }
}
