//! Lists as a log spells them: nearly every list of a key begins the longest one seen before, or continues it, so their texts
//! are compared, and only what is new is read and stored.

use kingsnake_history::model::Token;
use rustc_hash::FxHashMap;

/// The longest list of a key so far.
#[derive(Clone, Copy, Default)]
struct Longest {
    /// Its text between the brackets: where it begins and how many bytes it has.
    text: (usize, usize),
    /// Where its items begin, and how many there are.
    first: u32,
    length: u32,
    /// Where the ends of its items begin among all ends.
    ends: u32,
    /// How many items there is room for, and as many ends.
    room: u32,
}

/// The longest list of each key.
#[derive(Default)]
pub(super) struct SharedLists {
    longest: FxHashMap<Token, Longest>,
    /// Where the items of the longest lists end, counted from the beginning of the text.
    ends: Vec<u32>,
}

/// A list that was found among what is known, as a range of items, or what is left to read.
pub(super) enum Known {
    /// All of it.
    Whole(u32, u32),
    /// The first this many bytes are the longest list.
    Begin(usize),
    /// Nothing.
    No,
}

/// Whether a byte stands between items.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b',' | b'\t' | b'\r' | b'\n')
}

/// Whether the first `length` bytes of a text end where an item ends.
fn ends_item(text: &[u8], length: usize) -> bool {
    length == text.len() || length == 0 || is_blank(text[length]) || is_blank(text[length - 1])
}

impl SharedLists {
    /// Looks for a list by its text. `bytes` is the whole file.
    pub(super) fn find(&mut self, key: Token, text: &[u8], bytes: &[u8]) -> Known {
        let longest = *self.longest.entry(key).or_default();
        let (start, length) = longest.text;
        let known = &bytes[start..start + length];
        if known.starts_with(text) && ends_item(known, text.len()) {
            let ends = longest.ends as usize;
            let ends = &self.ends[ends..ends + longest.length as usize];
            let n_items = ends.partition_point(|&end| end as usize <= text.len());
            return Known::Whole(longest.first, longest.first + n_items as u32);
        }
        if text.starts_with(known) && ends_item(text, length) {
            return Known::Begin(length);
        }
        Known::No
    }

    /// Keeps a list that continues the longest of its key: where its text begins and how long it is, the new items, and where
    /// each of them ends. Returns it as a range of items.
    pub(super) fn continue_longest(
        &mut self,
        key: Token,
        text: (usize, usize),
        new: &[(Token, u32)],
        items: &mut Vec<Token>,
    ) -> (u32, u32) {
        let mut longest = self.longest.get(&key).copied().unwrap_or_default();
        let length = longest.length as usize + new.len();
        if length > longest.room as usize {
            let room = (2 * length).max(4);
            longest.first = relocate(items, longest.first, longest.length, room, Token::Nil);
            longest.ends = relocate(&mut self.ends, longest.ends, longest.length, room, 0);
            longest.room = room as u32;
        }
        let first = (longest.first + longest.length) as usize;
        let ends = (longest.ends + longest.length) as usize;
        for (at, &(item, end)) in new.iter().enumerate() {
            items[first + at] = item;
            self.ends[ends + at] = end;
        }
        longest.length = length as u32;
        longest.text = text;
        self.longest.insert(key, longest);
        (longest.first, longest.first + longest.length)
    }
}

/// Copies a range to the end, with more room behind it. Returns where it is.
fn relocate<T: Copy>(all: &mut Vec<T>, first: u32, length: u32, room: usize, filler: T) -> u32 {
    let (from, to) = (first as usize, all.len());
    all.extend_from_within(from..from + length as usize);
    all.resize(to + room, filler);
    to as u32
}
