//! The rows of a store in the order of their keys, for replaying range queries as a database would answer them.

use rustc_hash::FxHashSet;

use super::rows::covers;
use super::sorted::SortedKeys;
use kingsnake_history::model::{History, KeyId, RangeQuery, Token, ValueId};

/// The keys that have a row now, and those whose row was deleted by name.
pub(super) struct LiveRows<'h> {
    history: &'h History,
    rows: SortedKeys<'h>,
    deleted: SortedKeys<'h>,
}

impl<'h> LiveRows<'h> {
    /// The rows before any transaction; `None` where no query will ask for them.
    pub(super) fn new(history: &'h History) -> Option<Self> {
        if history.n_ranges() == 0 {
            return None;
        }
        let mut rows = SortedKeys::new(history);
        let keys = (0..history.n_keys() as u32).map(KeyId);
        for key in keys.filter(|&key| history.is_there_initially(key)) {
            rows.insert(key);
        }
        Some(LiveRows {
            history,
            rows,
            deleted: SortedKeys::new(history),
        })
    }

    /// Records the current value of a key.
    pub(super) fn write(&mut self, key: KeyId, value: ValueId) {
        self.rows.remove(key);
        self.deleted.remove(key);
        if self.history.is_tombstone(value) {
            self.deleted.insert(key);
        } else if self.history.value_token(value) != Token::Nil {
            self.rows.insert(key);
        }
    }

    /// Whether a query's answer is right. `held` returns the value of a key, `None` for the state before any transaction;
    /// `own` are keys that the transaction itself has written. The error is a key whose row is missing, or wrong.
    pub(super) fn answers(
        &self,
        query: RangeQuery<'_>,
        own: impl Iterator<Item = KeyId>,
        held: impl Fn(KeyId) -> Option<ValueId>,
    ) -> Result<(), KeyId> {
        let history = self.history;
        let mut returned: FxHashSet<KeyId> = FxHashSet::default();
        for &row in query.rows {
            let key = history.value_key(row);
            returned.insert(key);
            let is_right = covers(history, query, key)
                && match held(key) {
                    Some(value) => self.is_visible(value, query) && row == value,
                    None => history.is_there_initially(key) && history.is_initial(row),
                };
            if !is_right {
                return Err(key);
            }
        }
        let deleted = query.shows_deleted.then(|| self.deleted.within(query));
        let stored = self.rows.within(query).chain(deleted.into_iter().flatten());
        let own = own.filter(|&key| covers(history, query, key));
        let is_missing = |key: &KeyId| {
            let has_row = match held(*key) {
                Some(value) => self.is_visible(value, query),
                None => history.is_there_initially(*key),
            };
            has_row && !returned.contains(key)
        };
        stored.chain(own).find(is_missing).map_or(Ok(()), Err)
    }

    fn is_visible(&self, value: ValueId, query: RangeQuery<'_>) -> bool {
        if self.history.is_tombstone(value) {
            return query.shows_deleted;
        }
        self.history.value_token(value) != Token::Nil
    }
}
