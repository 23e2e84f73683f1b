//! Lists while a history is built: those of a key that begin with each other share their items.

use super::builder::{HistoryBuilder, Parts};
use super::history::Op;
use super::ids::{KeyId, ListId, ValueId};
use super::names::Token;

/// Where a list lies among all items.
#[derive(Clone, Copy, Debug)]
pub struct ListPlace {
    start: usize,
    length: usize,
}

/// Where the longest list of a key lies among all items.
#[derive(Clone, Copy, Debug)]
pub(super) struct LongestList {
    start: usize,
    length: usize,
    /// How many items there is room for.
    room: usize,
}

impl Parts {
    /// Stores a list that has its first `shared` items in common with the longest of its key, and then `rest`: behind the
    /// longest if it continues it, with room for more, and in a place of its own otherwise. Returns its start and length.
    fn place_list(
        &mut self,
        longest: &mut LongestList,
        shared: usize,
        rest: &[ValueId],
    ) -> (usize, usize) {
        let length = shared + rest.len();
        let continues = shared == longest.length;
        if continues && length <= longest.room {
            let from = longest.start + shared;
            self.list_items[from..from + rest.len()].copy_from_slice(rest);
            return (longest.start, length);
        }
        let start = self.list_items.len();
        self.list_items
            .extend_from_within(longest.start..longest.start + shared);
        self.list_items.extend_from_slice(rest);
        if continues {
            let room = (2 * length).max(4);
            self.list_items.resize(start + room, ValueId(0));
            *longest = LongestList {
                start,
                length,
                room,
            };
        }
        (start, length)
    }
}

impl HistoryBuilder {
    /// The transaction begun last read this list. Most lists of a key begin with each other, so a list that begins the
    /// longest one so far, or continues it, shares its place.
    pub fn read_list(&mut self, key: Token, values: impl IntoIterator<Item = Token>) {
        let key = self.key(key);
        let place = self.place(key, 0, values.into_iter());
        self.push_list(key, place);
    }

    /// The same, of a list of which the caller knows that it begins the list at `known`, or continues it: that much is not
    /// compared. Returns a place for the next such list of the key: the longer of the two.
    pub fn read_list_like(
        &mut self,
        key: Token,
        values: &[Token],
        known: Option<ListPlace>,
    ) -> ListPlace {
        let key = self.key(key);
        if let Some(known) = known
            && values.len() <= known.length
        {
            let length = values.len();
            self.push_list(key, ListPlace { length, ..known });
            return known;
        }
        let longest = self.longest(key);
        let n_known = known.filter(|it| it.start == longest.start);
        let n_known = n_known.map_or(0, |it| it.length.min(longest.length));
        let place = self.place(key, n_known, values[n_known..].iter().copied());
        self.push_list(key, place);
        place
    }

    fn push_list(&mut self, key: KeyId, place: ListPlace) {
        let lists = &mut self.history.lists;
        lists.push((place.start as u32, place.length as u32));
        let list = ListId(lists.len() as u32 - 1);
        self.push(Op::ReadList { key, list });
    }

    fn longest(&self, key: KeyId) -> LongestList {
        self.lists.get(&key).copied().unwrap_or(LongestList {
            start: self.history.list_items.len(),
            length: 0,
            room: 0,
        })
    }

    /// Finds or makes a place for a list that begins with the first `n_known` items of the longest of its key; `values` are
    /// the others.
    fn place(
        &mut self,
        key: KeyId,
        n_known: usize,
        mut values: impl Iterator<Item = Token>,
    ) -> ListPlace {
        let mut longest = self.longest(key);
        let parts = &self.history;
        let (mut length, mut differs) = (n_known, None);
        for value in values.by_ref() {
            let item = parts.list_items.get(longest.start + length);
            let is_known = length < longest.length
                && item.is_some_and(|item| parts.value_names.get(item.index()) == value);
            if !is_known {
                differs = Some(value);
                break;
            }
            length += 1;
        }
        let start = longest.start;
        let Some(value) = differs else {
            return ListPlace { start, length };
        };
        let rest: Vec<ValueId> = std::iter::once(value)
            .chain(values)
            .map(|value| self.value(key, value))
            .collect();
        let continues = length == longest.length;
        let (start, length) = self.history.place_list(&mut longest, length, &rest);
        if continues {
            longest.length = length;
            self.lists.insert(key, longest);
        }
        ListPlace { start, length }
    }
}
