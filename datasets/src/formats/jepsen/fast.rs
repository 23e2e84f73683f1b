//! The events that nearly every line of a large Jepsen log has, read without a tree: known fields, whole numbers, steps on
//! plain keys. Whatever else stands there is left to the general reader, so both must mean the same.
//!
//! What an invocation asked is passed over: its completion repeats it, so a mistake there is not noticed. [`skipped`](super::skipped)
//! comes back for those that need it.

use std::num::NonZeroU32;

use kingsnake_history::model::Token;
use memchr::memchr;

use super::Way;
use super::datum::Dialect;
use super::events::{Action, ClientEvent, Content, EventKind, MicroOp, Part, Stamp};
use super::lists::{Known, is_blank};
use crate::cursor::Cursor;

/// What newer versions of Jepsen write before the map of an event.
const RECORD: &[u8] = b"#jepsen.history.Op";

/// What stands after `:value`.
#[derive(Clone, Copy)]
enum FoundField {
    Nothing,
    Int(i64),
    Pair(i64, i64),
    KeyedPair(i64, i64, i64),
    Steps(u32, u32),
    Skipped(usize),
}

/// What `:f` says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum F {
    Txn,
    Read,
    Write,
    Cas,
}

/// Reads one event if it is of the usual form; else the cursor and the events are as before.
pub(super) fn read_event(
    part: &mut Part,
    cursor: &mut Cursor<'_>,
    dialect: Dialect,
    way: Way,
    number: u32,
) -> bool {
    #[cfg(test)]
    if way == Way::General {
        return false;
    }
    let start = cursor.at;
    let n_steps = part.steps.len();
    let mut reader = Reader {
        part,
        cursor,
        dialect,
        way,
    };
    if let Some(event) = reader.event(start, number) {
        reader.part.all.push(event);
        return true;
    }
    // Items stay: the longest list of a key may be among them.
    cursor.at = start;
    part.steps.truncate(n_steps);
    false
}

/// Reads the steps that stand here, if they are of the usual form.
pub(super) fn read_steps(
    part: &mut Part,
    cursor: &mut Cursor<'_>,
    dialect: Dialect,
) -> Option<(u32, u32)> {
    let n_steps = part.steps.len();
    let mut reader = Reader {
        part,
        cursor,
        dialect,
        way: Way::Fast,
    };
    let steps = reader.steps();
    if steps.is_none() {
        part.steps.truncate(n_steps);
    }
    steps
}

struct Reader<'e, 'c, 'a> {
    part: &'e mut Part,
    cursor: &'c mut Cursor<'a>,
    dialect: Dialect,
    way: Way,
}

impl<'a> Reader<'_, '_, 'a> {
    #[inline]
    fn blanks(&mut self) {
        while is_blank(self.cursor.peek()) {
            self.cursor.at += 1;
        }
    }

    /// A keyword, or a text of JSON without escapes.
    #[inline]
    fn word(&mut self) -> Option<&'a [u8]> {
        let opening = if self.dialect == Dialect::Edn {
            b':'
        } else {
            b'"'
        };
        if !self.cursor.pass(opening) {
            return None;
        }
        let rest = self.cursor.rest();
        let ends = |&byte: &u8| !(byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        let length = rest.iter().position(ends)?;
        self.cursor.at += length;
        if self.dialect == Dialect::Json {
            if !self.cursor.pass(b'"') {
                return None;
            }
        } else if !self.is_end() {
            return None;
        }
        (length > 0).then(|| &rest[..length])
    }

    /// Whether a value ends here.
    #[inline]
    fn is_end(&self) -> bool {
        matches!(
            self.cursor.peek(),
            b' ' | b',' | b'\t' | b'\r' | b'\n' | b']' | b'}' | b')'
        )
    }

    #[inline]
    fn int(&mut self) -> Option<i64> {
        if !matches!(self.cursor.peek(), b'-' | b'0'..=b'9') {
            return None;
        }
        let start = self.cursor.at;
        let number = self.cursor.int().ok()?;
        if !self.is_end() {
            self.cursor.at = start;
            return None;
        }
        Some(number)
    }

    #[inline]
    fn nil(&mut self) -> bool {
        let word: &[u8] = if self.dialect == Dialect::Edn {
            b"nil"
        } else {
            b"null"
        };
        if !self.cursor.rest().starts_with(word) {
            return false;
        }
        self.cursor.at += word.len();
        if !self.is_end() {
            self.cursor.at -= word.len();
            return false;
        }
        true
    }

    fn event(&mut self, start: usize, number: u32) -> Option<ClientEvent> {
        if self.dialect == Dialect::Edn && self.cursor.rest().starts_with(RECORD) {
            self.cursor.at += RECORD.len();
        }
        if !self.cursor.pass(b'{') {
            return None;
        }
        let (mut kind, mut f, mut process) = (None, None, None);
        let (mut time, mut index) = (None, None);
        let mut value = FoundField::Nothing;
        let mut n_seen = 0_u32;
        loop {
            self.blanks();
            if self.cursor.pass(b'}') {
                break;
            }
            let key = self.word()?;
            if self.dialect == Dialect::Json {
                self.blanks();
                if !self.cursor.pass(b':') {
                    return None;
                }
            }
            self.blanks();
            let bit = match key {
                b"type" => {
                    kind = Some(match self.word()? {
                        b"invoke" => EventKind::Invoke,
                        b"ok" => EventKind::Ok,
                        b"fail" => EventKind::Fail,
                        b"info" => EventKind::Info,
                        _ => return None,
                    });
                    1
                }
                b"f" => {
                    f = Some(match self.word()? {
                        b"txn" => F::Txn,
                        b"read" => F::Read,
                        b"write" => F::Write,
                        b"cas" => F::Cas,
                        _ => return None,
                    });
                    2
                }
                b"process" => {
                    process = Some(self.int()?);
                    4
                }
                b"time" => {
                    time = Some(self.int()?);
                    8
                }
                b"index" => {
                    index = Some(self.int()?);
                    16
                }
                b"value" => {
                    value = self.value(kind)?;
                    32
                }
                _ => return None,
            };
            // The general reader takes the first of two fields of one name.
            if n_seen & bit != 0 && !self.way.is_hasty() {
                return None;
            }
            n_seen |= bit;
        }
        let (has_steps, steps, skipped) = self.steps_of(f, value)?;
        let skipped = match skipped {
            None => None,
            Some(at) => Some(NonZeroU32::new(u32::try_from(at - start).ok()?)?),
        };
        Some(ClientEvent {
            kind: kind?,
            process: Some(process?),
            time: Stamp::new(time),
            index: Stamp::new(index),
            number,
            at: start,
            has_steps,
            steps,
            skipped,
        })
    }

    fn value(&mut self, kind: Option<EventKind>) -> Option<FoundField> {
        if self.nil() {
            return Some(FoundField::Nothing);
        }
        if !self.cursor.rest().starts_with(b"[") {
            return self.int().map(FoundField::Int);
        }
        let value_at = self.cursor.at;
        self.cursor.at += 1;
        self.blanks();
        if matches!(self.cursor.peek(), b'[' | b']') {
            let is_step = self.begins_step();
            self.cursor.at = value_at;
            if kind == Some(EventKind::Invoke) && is_step && self.skip() {
                return Some(FoundField::Skipped(value_at));
            }
            self.cursor.at = value_at;
            return self
                .steps()
                .map(|(first, end)| FoundField::Steps(first, end));
        }
        let one = self.int()?;
        self.blanks();
        let found = if self.cursor.pass(b'[') {
            self.blanks();
            let expected = self.int()?;
            self.blanks();
            let new = self.int()?;
            self.blanks();
            if !self.cursor.pass(b']') {
                return None;
            }
            FoundField::KeyedPair(one, expected, new)
        } else {
            FoundField::Pair(one, self.int()?)
        };
        self.blanks();
        self.cursor.pass(b']').then_some(found)
    }

    /// Whether a step begins here: a vector that begins with a word.
    fn begins_step(&mut self) -> bool {
        let passes = self.cursor.pass(b'[');
        self.blanks();
        passes
            && matches!(
                (self.cursor.peek(), self.dialect),
                (b':', Dialect::Edn) | (b'"', Dialect::Json)
            )
    }

    /// Passes steps of plain keys and values; false if something else stands there.
    fn skip(&mut self) -> bool {
        let mut depth = 0_u32;
        let mut in_text = false;
        for (at, &byte) in self.cursor.rest().iter().enumerate() {
            match byte {
                b'\\' => return false,
                b'"' if self.dialect == Dialect::Json => in_text = !in_text,
                _ if in_text => {}
                b'[' => depth += 1,
                b']' => {
                    depth -= 1;
                    if depth == 0 {
                        self.cursor.at += at + 1;
                        return true;
                    }
                }
                b'{' | b'}' | b'(' | b')' | b'#' | b';' | b'^' => return false,
                b'"' if self.dialect == Dialect::Edn => return false,
                _ => {}
            }
        }
        false
    }

    /// `[[:r 1 nil] [:append 2 3]]`
    fn steps(&mut self) -> Option<(u32, u32)> {
        let first = self.part.steps.len() as u32;
        if !self.cursor.pass(b'[') {
            return None;
        }
        loop {
            self.blanks();
            if self.cursor.pass(b']') {
                return Some((first, self.part.steps.len() as u32));
            }
            let step = self.step()?;
            self.part.steps.push(step);
        }
    }

    fn step(&mut self) -> Option<MicroOp> {
        if !self.cursor.pass(b'[') {
            return None;
        }
        self.blanks();
        let action = match self.word()? {
            b"r" => Action::Read,
            b"w" => Action::Write,
            b"append" => Action::Append,
            b"add" => Action::Add,
            _ => return None,
        };
        self.blanks();
        let key = self.plain()?;
        self.blanks();
        let content = if self.nil() {
            match action {
                Action::Read => Content::Nil,
                _ => Content::One(Token::Nil),
            }
        } else if action == Action::Read && self.cursor.pass(b'[') {
            self.list(key)?
        } else {
            Content::One(self.plain()?)
        };
        self.part.has_objects |= action == Action::Add;
        self.blanks();
        self.cursor.pass(b']').then_some(MicroOp {
            action,
            key,
            content,
        })
    }

    /// The items of a list and its end.
    fn list(&mut self, key: Token) -> Option<Content> {
        let start = self.cursor.at;
        let length = memchr(b']', self.cursor.rest())?;
        let bytes = self.cursor.input.bytes;
        let text = &bytes[start..start + length];
        let (first, end) = match self.part.lists.find(key, text, bytes) {
            Known::Whole(first, end) => (first, end),
            Known::Begin(n_known) => {
                self.cursor.at += n_known;
                let new = self.items(start)?;
                let (lists, items) = (&mut self.part.lists, &mut self.part.items);
                lists.continue_longest(key, (start, length), &new, items)
            }
            Known::No => {
                let new = self.items(start)?;
                let first = self.part.items.len() as u32;
                self.part.items.extend(new.iter().map(|it| it.0));
                (first, self.part.items.len() as u32)
            }
        };
        self.cursor.at = start + length + 1;
        Some(Content::List(first, end))
    }

    /// The items up to the end of a list that began at `start`, each with its end.
    fn items(&mut self, start: usize) -> Option<Vec<(Token, u32)>> {
        let mut items = Vec::new();
        loop {
            self.blanks();
            if self.cursor.peek() == b']' {
                return Some(items);
            }
            let item = Token::Int(self.int()?);
            items.push((item, u32::try_from(self.cursor.at - start).ok()?));
        }
    }

    /// A whole number, a keyword, or a text of JSON.
    #[inline]
    fn plain(&mut self) -> Option<Token> {
        if let Some(number) = self.int() {
            return Some(Token::Int(number));
        }
        let start = self.cursor.at;
        let word = self.word()?;
        // Keywords keep their colon.
        let text = match self.dialect {
            Dialect::Edn => &self.cursor.input.bytes[start..self.cursor.at],
            Dialect::Json => word,
        };
        Some(self.part.text(std::str::from_utf8(text).ok()?))
    }

    /// Whether the event says which steps it has, and which.
    #[allow(clippy::type_complexity)] // Three fields of an event.
    fn steps_of(
        &mut self,
        f: Option<F>,
        value: FoundField,
    ) -> Option<(bool, (u32, u32), Option<usize>)> {
        let first = self.part.steps.len() as u32;
        let (key, action, content) = match (f, value) {
            (None | Some(F::Txn), FoundField::Nothing) => {
                return Some((false, (first, first), None));
            }
            (_, FoundField::Steps(start, end)) => {
                // An empty value is one of steps only for transactions.
                if start == end && !matches!(f, None | Some(F::Txn)) {
                    return None;
                }
                self.part.has_txns = true;
                return Some((true, (start, end), None));
            }
            (None | Some(F::Txn), FoundField::Skipped(at)) => {
                self.part.has_txns = true;
                return Some((true, (first, first), Some(at)));
            }
            (Some(F::Read), FoundField::Nothing) => (None, Action::Read, Content::Nil),
            (Some(F::Read), FoundField::Int(value)) => (None, Action::Read, one(value)),
            (Some(F::Write), FoundField::Int(value)) => (None, Action::Write, one(value)),
            (Some(F::Read), FoundField::Pair(key, value)) => (Some(key), Action::Read, one(value)),
            (Some(F::Write), FoundField::Pair(key, value)) => {
                (Some(key), Action::Write, one(value))
            }
            (Some(F::Cas), FoundField::Pair(expected, new)) => {
                (None, Action::Cas, pair(expected, new))
            }
            (Some(F::Cas), FoundField::KeyedPair(key, expected, new)) => {
                (Some(key), Action::Cas, pair(expected, new))
            }
            _ => return None,
        };
        let key = match key {
            Some(key) => Token::Int(key),
            None => self.part.register(),
        };
        self.part.steps.push(MicroOp {
            action,
            key,
            content,
        });
        Some((true, (first, first + 1), None))
    }
}

fn one(value: i64) -> Content {
    Content::One(Token::Int(value))
}

fn pair(expected: i64, new: i64) -> Content {
    Content::Pair(Token::Int(expected), Token::Int(new))
}
