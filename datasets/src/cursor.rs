//! A position in the bytes of one file, with the small scanners that the text formats share.
//!
//! Invariant: the position never passes the end. Line numbers are counted only when an error needs one.

use std::ops::Range;
use std::path::Path;

use kingsnake_history::budget::Budget;
use memmap2::Mmap;

use crate::error::{InputProblem, Place, ReadError};
use crate::source::BYTE_ORDER_MARK;

/// The bytes of one file and its name.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a> {
    pub(crate) file: &'a Path,
    pub(crate) bytes: &'a [u8],
    pub(crate) budget: &'a Budget,
    /// What the bytes are of, where they are not in memory of our own.
    pub(crate) map: Option<&'a Mmap>,
}

/// Polls the budget while a file is read.
pub(crate) struct Polled<'a> {
    input: Input<'a>,
    steps: u32,
}

impl Polled<'_> {
    /// Records between two looks at the clock; a record is a line or so.
    const EVERY: u32 = 64;

    /// Another record; returns whether reading may continue.
    #[inline]
    pub(crate) fn step(&mut self) -> Result<(), ReadError> {
        self.steps += 1;
        if self.steps < Self::EVERY {
            return Ok(());
        }
        self.steps = 0;
        let input = self.input;
        let stopped = input.budget.check();
        stopped.map_err(|reason| input.error(InputProblem::Stopped(reason)))
    }
}

impl<'a> Input<'a> {
    /// Gives the memory of a range back that is not needed any more, where it is the file's; it may still be read.
    pub(crate) fn release(self, range: Range<usize>) {
        #[cfg(unix)]
        if let Some(map) = self.map {
            let start = self.bytes.as_ptr().addr() - map.as_ptr().addr() + range.start;
            // Sound: pages of a mapping that nobody can write come back from the file as they were.
            #[allow(unsafe_code)]
            let _ = unsafe {
                map.unchecked_advise_range(memmap2::UncheckedAdvice::DontNeed, start, range.len())
            };
        }
    }

    /// The start of the bytes.
    pub(crate) fn cursor(self) -> Cursor<'a> {
        Cursor { input: self, at: 0 }
    }

    /// For the loop over the file's records.
    pub(crate) fn polled(self) -> Polled<'a> {
        Polled {
            input: self,
            steps: 0,
        }
    }

    /// An error at a line, found by its byte.
    pub(crate) fn error_in_line(self, at: usize, problem: impl Into<InputProblem>) -> ReadError {
        ReadError::new(self.file, Place::Line(self.line(at)), problem)
    }

    /// An error at a place in a line, found by its byte.
    pub(crate) fn error_in_column(self, at: usize, problem: impl Into<InputProblem>) -> ReadError {
        let before = &self.bytes[..at.min(self.bytes.len())];
        let line = before.rsplit(|&byte| byte == b'\n').next();
        let before = String::from_utf8_lossy(line.unwrap_or(before));
        self.error_in_line(at, problem)
            .in_column(before.chars().count() + 1)
    }

    /// An error at a byte.
    pub(crate) fn error_at(self, at: usize, problem: impl Into<InputProblem>) -> ReadError {
        ReadError::new(self.file, Place::Offset(at), problem)
    }

    /// An error of the whole file.
    pub(crate) fn error(self, problem: impl Into<InputProblem>) -> ReadError {
        ReadError::new(self.file, Place::Whole, problem)
    }

    /// The error of a file that has no bytes.
    pub(crate) fn empty(self) -> ReadError {
        self.error(InputProblem::Syntax {
            found: "an empty file".to_owned(),
            expected: "a history".to_owned(),
        })
    }

    /// The number of the line around a byte, counted from 1.
    pub(crate) fn line(self, at: usize) -> usize {
        let before = &self.bytes[..at.min(self.bytes.len())];
        before.split(|&byte| byte == b'\n').count()
    }

    /// The text at a byte, short enough for a message.
    pub(crate) fn found(self, at: usize) -> String {
        const SHOWN: usize = 24;
        let rest = &self.bytes[at.min(self.bytes.len())..];
        if rest.is_empty() {
            return "the end of the file".to_owned();
        }
        // A line of garbage may be as long as the file.
        let near = &rest[..rest.len().min(SHOWN + 1)];
        let line = near.split(|&byte| byte == b'\n').next().unwrap_or(near);
        if line.is_empty() {
            return "the end of the line".to_owned();
        }
        if line.starts_with(BYTE_ORDER_MARK) {
            return "a byte-order mark in the middle of the file (were two files put together?)"
                .to_owned();
        }
        let shown = &line[..line.len().min(SHOWN)];
        let dots = if line.len() > SHOWN { "…" } else { "" };
        match std::str::from_utf8(shown) {
            Ok(text) => format!("`{}{dots}`", text.trim_end()),
            Err(wrong) if wrong.valid_up_to() > 0 => {
                let text = String::from_utf8_lossy(&shown[..wrong.valid_up_to()]);
                format!("`{text}…`")
            }
            Err(_) => format!("byte 0x{:02x}, which is no UTF-8 text", shown[0]),
        }
    }
}

/// A place in an [`Input`].
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    pub(crate) input: Input<'a>,
    pub(crate) at: usize,
}

impl<'a> Cursor<'a> {
    /// The next byte, or 0 at the end: no text format gives 0 a meaning.
    #[inline]
    pub(crate) fn peek(&self) -> u8 {
        self.input.bytes.get(self.at).copied().unwrap_or(0)
    }

    /// Whether nothing is left.
    #[inline]
    pub(crate) fn done(&self) -> bool {
        self.at >= self.input.bytes.len()
    }

    /// What is left.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.input.bytes[self.at..]
    }

    /// Passes one byte if it is this one.
    #[inline]
    pub(crate) fn pass(&mut self, byte: u8) -> bool {
        let is = self.peek() == byte && !self.done();
        self.at += usize::from(is);
        is
    }

    /// Passes one byte, which must be this one.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), ReadError> {
        if self.pass(byte) {
            return Ok(());
        }
        Err(self.wrong(&format!("`{}`", char::from(byte))))
    }

    /// Passes spaces, tabs and carriage returns.
    #[inline]
    pub(crate) fn pass_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.at += 1;
        }
    }

    /// Passes blanks and ends of lines.
    #[inline]
    pub(crate) fn pass_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
    }

    /// Passes the end of a line (or of the file), which must come next.
    pub(crate) fn end_line(&mut self) -> Result<(), ReadError> {
        self.pass_blanks();
        if self.pass(b'\n') || self.done() {
            return Ok(());
        }
        Err(self.wrong("the end of the line"))
    }

    /// A decimal number with an optional minus.
    #[inline]
    pub(crate) fn int(&mut self) -> Result<i64, ReadError> {
        let start = self.at;
        let negative = self.pass(b'-');
        let first = self.at;
        let mut number: u64 = 0;
        let mut rest = self.rest();
        // Sixteen digits cannot overflow, so they are taken eight at a time, unchecked.
        for _ in 0..2 {
            let Some((eight, after)) = rest.split_first_chunk() else {
                break;
            };
            let Some(digits) = eight_digits(*eight) else {
                break;
            };
            number = number * 100_000_000 + digits;
            rest = after;
        }
        while let Some((&digit @ b'0'..=b'9', after)) = rest.split_first() {
            let next = number.checked_mul(10);
            let next = next.and_then(|it| it.checked_add(u64::from(digit - b'0')));
            number = next.unwrap_or(u64::MAX);
            rest = after;
        }
        self.at = self.input.bytes.len() - rest.len();
        let bound = i64::MAX as u64 + u64::from(negative);
        if self.at == first || number > bound {
            self.at = start;
            return Err(self.wrong("a whole number of 64 bits"));
        }
        Ok(if negative {
            (number as i64).wrapping_neg()
        } else {
            number as i64
        })
    }

    /// The error that something else was expected here.
    #[cold]
    pub(crate) fn wrong(&self, expected: &str) -> ReadError {
        let found = self.input.found(self.at);
        self.input.error_in_column(
            self.at,
            InputProblem::Syntax {
                found,
                expected: expected.to_owned(),
            },
        )
    }

    /// An error in the line here.
    #[cold]
    pub(crate) fn fail(&self, problem: impl Into<InputProblem>) -> ReadError {
        self.input.error_in_line(self.at, problem)
    }
}

/// The number that eight bytes spell, if all are digits.
#[inline]
fn eight_digits(bytes: [u8; 8]) -> Option<u64> {
    const HIGH_BITS: u64 = 0x8080_8080_8080_8080;
    let word = u64::from_le_bytes(bytes);
    // A byte below `0` borrows into its high bit, one above `9` carries into it.
    let below = word.wrapping_sub(0x3030_3030_3030_3030);
    let above = word.wrapping_add(0x4646_4646_4646_4646);
    if (below | above) & HIGH_BITS != 0 {
        return None;
    }
    let pairs = (below * 10 + (below >> 8)) & 0x00ff_00ff_00ff_00ff;
    let fours = (pairs * 100 + (pairs >> 16)) & 0x0000_ffff_0000_ffff;
    Some((fours * 10_000 + (fours >> 32)) & 0xffff_ffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_digits_are_read_at_once_and_nothing_else() {
        assert_eq!(eight_digits(*b"12345678"), Some(12_345_678));
        assert_eq!(eight_digits(*b"00000000"), Some(0));
        assert_eq!(eight_digits(*b"99999999"), Some(99_999_999));
        for place in 0..8 {
            for byte in 0..=255_u8 {
                let mut bytes = *b"90909090";
                bytes[place] = byte;
                let text = std::str::from_utf8(&bytes).ok();
                let plain = text.filter(|it| it.bytes().all(|it| it.is_ascii_digit()));
                assert_eq!(eight_digits(bytes), plain.and_then(|it| it.parse().ok()));
            }
        }
    }

    fn int(text: &str) -> Option<i64> {
        let input = Input {
            file: Path::new("x"),
            bytes: text.as_bytes(),
            budget: &Budget::unlimited(),
            map: None,
        };
        let mut cursor = input.cursor();
        cursor.int().ok().filter(|_| cursor.done())
    }

    #[test]
    fn numbers_of_64_bits_are_read_and_larger_ones_refused() {
        assert_eq!(int("0"), Some(0));
        assert_eq!(int("-17"), Some(-17));
        assert_eq!(int("123456789012345678"), Some(123_456_789_012_345_678));
        assert_eq!(int("9223372036854775807"), Some(i64::MAX));
        assert_eq!(int("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(int("9223372036854775808"), None);
        assert_eq!(int("99999999999999999999999"), None);
        assert_eq!(int("-"), None);
        assert_eq!(int(""), None);
    }

    #[test]
    fn a_zero_byte_is_not_the_end() {
        let input = Input {
            file: Path::new("x"),
            bytes: &[0, 1],
            budget: &Budget::unlimited(),
            map: None,
        };
        let mut cursor = input.cursor();
        assert!(!cursor.pass(b'a'));
        assert!(cursor.pass(0));
        assert_eq!(cursor.rest(), &[1]);
    }
}
