//! Lists while a history is built: those of a key that begin with each other share their items.

use super::builder::{HistoryBuilder, Parts};
use super::history::Op;
use super::ids::{ListId, ValueId};
use super::names::Token;

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
        let parts = &mut self.history;
        let mut longest = self.lists.get(&key).copied().unwrap_or(LongestList {
            start: parts.list_items.len(),
            length: 0,
            room: 0,
        });
        let mut values = values.into_iter();
        let (mut length, mut differs) = (0, None);
        for value in values.by_ref() {
            let item = parts.list_items.get(longest.start + length);
            let is_known = length < longest.length
                && item.is_some_and(|item| parts.value_names[item.index()] == value);
            if !is_known {
                differs = Some(value);
                break;
            }
            length += 1;
        }
        let start = longest.start;
        let place = match differs {
            None => (start, length),
            Some(value) => {
                let rest: Vec<ValueId> = std::iter::once(value)
                    .chain(values)
                    .map(|value| self.value(key, value))
                    .collect();
                let continues = length == longest.length;
                let place = self.history.place_list(&mut longest, length, &rest);
                if continues {
                    longest.length = place.1;
                    self.lists.insert(key, longest);
                }
                place
            }
        };
        self.history.lists.push((place.0 as u32, place.1 as u32));
        let list = ListId(self.history.lists.len() as u32 - 1);
        self.push(Op::ReadList { key, list });
    }
}
