//! The rows of a store in the order of their keys, for replaying range queries as a database would answer them.

use std::collections::BTreeMap;
use std::ops::Bound;

use kingsnake_history::model::{History, KeyId, RangeQuery, Token, ValueId};

/// A key's place among all keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Place<'h> {
    Nameless,
    Number(i64),
    Text(&'h str),
}

/// The keys that have been written or were there from the start.
pub(super) struct Table<'h> {
    history: &'h History,
    keys: BTreeMap<Place<'h>, KeyId>,
}

impl<'h> Table<'h> {
    /// The rows before any transaction; `None` where no query will ask for them.
    pub(super) fn new(history: &'h History) -> Option<Self> {
        if history.n_ranges() == 0 {
            return None;
        }
        let mut table = Table {
            history,
            keys: BTreeMap::new(),
        };
        let keys = (0..history.n_keys() as u32).map(KeyId);
        for key in keys.filter(|&key| history.is_there_initially(key)) {
            table.write(key);
        }
        Some(table)
    }

    fn place(&self, token: Token) -> Place<'h> {
        match token {
            Token::Nil => Place::Nameless,
            Token::Int(number) => Place::Number(number),
            Token::Text(symbol) => Place::Text(self.history.symbols().text(symbol)),
        }
    }

    /// Takes note that a key was written.
    pub(super) fn write(&mut self, key: KeyId) {
        let place = self.place(self.history.key_token(key));
        self.keys.insert(place, key);
    }

    /// Whether a query's answer is right. `held` tells what a key holds, `None` for the state before any transaction;
    /// `own` are keys that only the transaction itself has written.
    pub(super) fn answers(
        &self,
        query: RangeQuery<'_>,
        own: impl Iterator<Item = KeyId>,
        held: impl Fn(KeyId) -> Option<ValueId>,
    ) -> Result<(), KeyId> {
        let history = self.history;
        let bounds = self.bounds(query);
        let is_inside = |key: &KeyId| {
            let place = self.place(history.key_token(*key));
            bounds.is_some_and(|bounds| std::ops::RangeBounds::contains(&bounds, &place))
        };
        let stored = bounds.into_iter().flat_map(|it| self.keys.range(it));
        let mut keys: Vec<KeyId> = stored.map(|(_, &key)| key).collect();
        keys.extend(own.filter(is_inside));
        let mut returned: Vec<(KeyId, ValueId)> = Vec::with_capacity(query.rows.len());
        returned.extend(query.rows.iter().map(|&row| (history.value_key(row), row)));
        returned.sort_unstable();
        keys.sort_unstable();
        keys.dedup();
        let mut rest = returned.as_slice();
        for key in keys {
            let n_before = rest.partition_point(|row| row.0 < key);
            if n_before > 0 {
                return Err(rest[0].0);
            }
            let (rows, later) = rest.split_at(rest.partition_point(|row| row.0 == key));
            rest = later;
            let is_right = match held(key) {
                Some(value) if self.is_visible(value, query) => {
                    !rows.is_empty() && rows.iter().all(|row| row.1 == value)
                }
                None if history.is_there_initially(key) => {
                    !rows.is_empty() && rows.iter().all(|row| history.is_initial(row.1))
                }
                _ => rows.is_empty(),
            };
            if !is_right {
                return Err(key);
            }
        }
        rest.first().map_or(Ok(()), |row| Err(row.0))
    }

    fn is_visible(&self, value: ValueId, query: RangeQuery<'_>) -> bool {
        if self.history.is_tombstone(value) {
            return query.shows_deleted;
        }
        self.history.value_token(value) != Token::Nil
    }

    /// The query's ends among all places; `None` where nothing lies between them.
    fn bounds(&self, query: RangeQuery<'_>) -> Option<(Bound<Place<'h>>, Bound<Place<'h>>)> {
        let place = |bound: Bound<Token>| match bound {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(token) => Bound::Included(self.place(token)),
            Bound::Excluded(token) => Bound::Excluded(self.place(token)),
        };
        let ends = match (place(query.span.low()), place(query.span.high())) {
            // A bound of one kind leaves out the keys of the others.
            (Bound::Unbounded, Bound::Unbounded) => (Bound::Unbounded, Bound::Unbounded),
            (Bound::Unbounded, high) => match high {
                Bound::Included(Place::Number(_)) | Bound::Excluded(Place::Number(_)) => {
                    (Bound::Included(Place::Number(i64::MIN)), high)
                }
                _ => (Bound::Included(Place::Text("")), high),
            },
            (low, Bound::Unbounded) => match low {
                Bound::Included(Place::Number(_)) | Bound::Excluded(Place::Number(_)) => {
                    (low, Bound::Included(Place::Number(i64::MAX)))
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
