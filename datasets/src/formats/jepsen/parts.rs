//! Reads the events of a log in parts, one thread per part.
//!
//! Where a part begins is a guess: a line or a map that looks like an event. A part's events count only if the part before
//! ended exactly there, outside of any event and within the same brackets; else what the guess missed is read again from where
//! the part before ended. So the result is that of one reader from the first byte to the last.

use std::ops::Range;

use rayon::prelude::*;

use super::datum::{Dialect, pass_ignored};
use super::events::Part;
use super::{Reading, fast};
use crate::cursor::Cursor;
use crate::error::ReadError;
use crate::split;

/// After this many events the rest of a part is assumed to be similar.
const SAMPLE: u32 = 4096;

/// Between two events: a place, and the bracket that is to end the history, if one was opened.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Between {
    at: usize,
    close: Option<u8>,
}

/// A part as it was read, and where that began and ended.
struct ReadPart {
    range: Range<usize>,
    start: Between,
    end: Result<Between, ReadError>,
    part: Part,
}

/// Reads all events.
pub(super) fn read(reading: Reading<'_>) -> Result<Vec<Part>, ReadError> {
    let bytes = reading.input.bytes;
    let begins = |at: usize| next_event(bytes, at, reading.dialect);
    let ranges = split::split(bytes.len(), reading.part_size, begins);
    let guess = |range: Range<usize>| {
        let start = Between {
            at: range.start,
            close: if range.start == 0 {
                None
            } else {
                opened(reading)
            },
        };
        read_part(reading, start, range)
    };
    let read: Vec<ReadPart> = if ranges.len() == 1 {
        ranges.into_iter().map(guess).collect()
    } else {
        ranges.into_par_iter().map(guess).collect()
    };
    let (parts, end) = join(reading, read)?;
    if end.close.is_some() {
        let cursor = Cursor {
            at: end.at,
            input: reading.input,
        };
        return Err(cursor.wrong("the end of the history's vector or list"));
    }
    Ok(parts)
}

/// Keeps the parts that begin where the one before ended, and reads the others again.
fn join(reading: Reading<'_>, read: Vec<ReadPart>) -> Result<(Vec<Part>, Between), ReadError> {
    let mut reached = Between { at: 0, close: None };
    let mut parts = Vec::with_capacity(read.len());
    for mut it in read {
        if reached.at >= it.range.end && !it.range.is_empty() {
            continue;
        }
        if it.start != reached && !reading.way.is_trusting() {
            it = read_part(reading, reached, it.range);
        }
        reached = it.end?;
        parts.push(it.part);
    }
    Ok((parts, reached))
}

/// The bracket that ends the history, if the file begins with one.
fn opened(reading: Reading<'_>) -> Option<u8> {
    let mut cursor = reading.input.cursor();
    pass_ignored(&mut cursor, reading.dialect).ok()?;
    match cursor.peek() {
        b'[' => Some(b']'),
        b'(' => Some(b')'),
        _ => None,
    }
}

/// Where an event may begin, at or after a place: at the first map of a line, or, in a file of one line, behind a map.
fn next_event(bytes: &[u8], at: usize, dialect: Dialect) -> Option<usize> {
    let is_begin = |at: usize| {
        let before = bytes[..at].iter().rev();
        let mut before = before.skip_while(|it| matches!(it, b' ' | b',' | b'\t' | b'\r'));
        let may_begin = bytes[at] == b'{' || bytes[at] == b'#' && dialect == Dialect::Edn;
        may_begin && matches!(before.next(), Some(b'\n' | b'}'))
    };
    (at..bytes.len()).find(|&at| is_begin(at))
}

/// Reads the events that begin within a range.
fn read_part(reading: Reading<'_>, start: Between, range: Range<usize>) -> ReadPart {
    let mut part = Part {
        is_json: reading.dialect == Dialect::Json,
        ..Part::default()
    };
    let end = read_events(reading, start, range.end, &mut part);
    ReadPart {
        range,
        start,
        end,
        part,
    }
}

fn read_events(
    reading: Reading<'_>,
    start: Between,
    end: usize,
    part: &mut Part,
) -> Result<Between, ReadError> {
    let Reading {
        input,
        dialect,
        way,
        ..
    } = reading;
    let mut cursor = Cursor {
        at: start.at,
        input,
    };
    let mut close = start.close;
    let mut polled = input.polled();
    loop {
        polled.step()?;
        pass_ignored(&mut cursor, dialect)?;
        match (cursor.peek(), close) {
            _ if cursor.at >= end => break,
            (b'[', None) => (close, cursor.at) = (Some(b']'), cursor.at + 1),
            (b'(', None) => (close, cursor.at) = (Some(b')'), cursor.at + 1),
            (byte, Some(end)) if byte == end => (close, cursor.at) = (None, cursor.at + 1),
            _ => {
                let number = part.n_events;
                if !fast::read_event(part, &mut cursor, dialect, way, number) {
                    part.read_event(&mut cursor, dialect, number)?;
                }
                part.n_events += 1;
                if part.n_events == SAMPLE {
                    part.reserve(cursor.at - start.at, end.saturating_sub(cursor.at));
                }
            }
        }
    }
    Ok(Between {
        at: cursor.at,
        close,
    })
}

impl Part {
    /// Makes room for this many bytes of events, judging by those so far: arrays of millions that grow are copied, and the
    /// system clears every page of each copy. Room that is not used costs nothing.
    fn reserve(&mut self, n_read: usize, n_left: usize) {
        let more = |length: usize| {
            let expected = length as f64 * n_left as f64 / n_read.max(1) as f64;
            (expected * 1.05) as usize + 16
        };
        self.all.reserve(more(self.all.len()));
        self.steps.reserve(more(self.steps.len()));
        self.items.reserve(more(self.items.len()));
    }
}
