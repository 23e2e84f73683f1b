//! A scanner for the JSON of large files: no tree, texts borrowed from the file unless they hold escapes.

use std::borrow::Cow;

use kingsnake_history::model::{HistoryBuilder, Token};

use crate::cursor::Cursor;
use crate::error::ReadError;

/// Deeper nesting than this is refused, so that no file can exhaust the stack.
const MAX_DEPTH: usize = 64;

impl<'a> Cursor<'a> {
    /// Passes spaces inside a JSON value; a value of JSON Lines stays on its line.
    #[inline]
    pub(crate) fn json_punct(&mut self, byte: u8) -> Result<(), ReadError> {
        self.pass_blanks();
        self.expect(byte)?;
        self.pass_blanks();
        Ok(())
    }

    /// Whether another element follows in an array or object that ends with `close`; passes the comma or the end.
    #[inline]
    pub(crate) fn json_more(&mut self, first: &mut bool, close: u8) -> Result<bool, ReadError> {
        self.pass_blanks();
        if self.pass(close) {
            return Ok(false);
        }
        if !std::mem::take(first) {
            if !self.pass(b',') {
                return Err(self.wrong(&format!("`,` or `{}`", char::from(close))));
            }
            self.pass_blanks();
        }
        Ok(true)
    }

    /// A text.
    #[inline]
    pub(crate) fn json_text(&mut self) -> Result<Cow<'a, str>, ReadError> {
        let start = self.at;
        self.expect(b'"')?;
        let from = self.at;
        loop {
            match self.peek() {
                b'"' => break,
                b'\\' => return self.json_escaped(start),
                0..0x20 => return Err(self.wrong("`\"`, which ends the text")),
                _ => self.at += 1,
            }
        }
        let bytes = &self.input.bytes[from..self.at];
        let Ok(text) = std::str::from_utf8(bytes) else {
            self.at = from;
            return Err(self.wrong("UTF-8 text"));
        };
        self.at += 1;
        Ok(Cow::Borrowed(text))
    }

    #[cold]
    fn json_escaped(&mut self, start: usize) -> Result<Cow<'a, str>, ReadError> {
        self.at = start + 1;
        loop {
            match self.peek() {
                b'"' => break,
                b'\\' => self.at += 2,
                0..0x20 => return Err(self.wrong("`\"`, which ends the text")),
                _ => self.at += 1,
            }
        }
        self.at += 1;
        let Ok(text) = serde_json::from_slice(&self.input.bytes[start..self.at]) else {
            self.at = start;
            return Err(self.wrong("a JSON text"));
        };
        Ok(Cow::Owned(text))
    }

    /// A whole number.
    #[inline]
    pub(crate) fn json_int(&mut self) -> Result<i64, ReadError> {
        let start = self.at;
        let number = self.int()?;
        if matches!(self.peek(), b'.' | b'e' | b'E') {
            self.at = start;
            return Err(self.wrong("a whole number of 64 bits (write others as texts)"));
        }
        Ok(number)
    }

    /// A key, a value or a name: a whole number, a text or `null`.
    #[inline]
    pub(crate) fn json_token(&mut self, builder: &mut HistoryBuilder) -> Result<Token, ReadError> {
        match self.peek() {
            b'-' | b'0'..=b'9' => Ok(Token::Int(self.json_int()?)),
            b'"' => Ok(builder.text(&self.json_text()?)),
            _ if self.rest().starts_with(b"null") => {
                self.at += 4;
                Ok(Token::Nil)
            }
            _ => Err(self.wrong("a whole number, a text or null")),
        }
    }

    /// `true` or `false`.
    pub(crate) fn json_bool(&mut self) -> Result<bool, ReadError> {
        for (word, is) in [("true", true), ("false", false)] {
            if self.rest().starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(is);
            }
        }
        Err(self.wrong("true or false"))
    }

    /// Passes any value.
    pub(crate) fn json_skip(&mut self) -> Result<(), ReadError> {
        self.json_skip_within(MAX_DEPTH)
    }

    fn json_skip_within(&mut self, depth: usize) -> Result<(), ReadError> {
        if depth == 0 {
            return Err(self.wrong("at most 64 levels of nesting"));
        }
        self.pass_blanks();
        match self.peek() {
            b'"' => {
                self.json_text()?;
            }
            open @ (b'[' | b'{') => {
                self.at += 1;
                self.pass_blanks();
                let mut first = true;
                while self.json_more(&mut first, open + 2)? {
                    if open == b'{' {
                        self.json_text()?;
                        self.json_punct(b':')?;
                    }
                    self.json_skip_within(depth - 1)?;
                }
            }
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => {
                while matches!(self.peek(), b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'E') {
                    self.at += 1;
                }
            }
            _ => return Err(self.wrong("a JSON value")),
        }
        Ok(())
    }
}
