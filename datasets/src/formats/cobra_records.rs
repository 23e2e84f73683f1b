//! The records of Cobra's logs, and whether S and C carry a time.
//!
//! Nothing in a log announces times, so both readings are tried: one must fit every log to its last byte, the other must
//! not. Invariant: what [`walk`] visits is transactions one after the other, the last one perhaps without its end.

use super::cobra::SessionLog;
use crate::cursor::Input;
use crate::error::{InputProblem, ReadError};

/// Whether S and C carry a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    timed: bool,
}

#[derive(Clone, Copy)]
pub(super) enum CobraRecord {
    Start {
        txn: i64,
        begin: Option<i64>,
    },
    Commit {
        times: Option<(i64, i64)>,
    },
    Write {
        id: i64,
        key: i64,
        value: i64,
    },
    Read {
        writer: i64,
        id: i64,
        key: i64,
        value: i64,
    },
}

/// Reads the logs in the one layout that fits every log to its end.
pub(super) fn in_layout<T>(
    logs: &[SessionLog<'_>],
    read: impl FnOnce(Layout) -> Result<T, ReadError>,
) -> Result<T, ReadError> {
    if fit(logs, true).is_ok() {
        return read(find_layout(logs)?);
    }
    // Only the layout without times is left, so reading tells whether it fits. Where it does not, what is wrong with the layout
    // goes before what is wrong with the content.
    read(Layout { timed: false }).map_err(|error| find_layout(logs).err().unwrap_or(error))
}

/// Whether a layout fits every log to its end; if not, after how many records it does not.
fn fit(logs: &[SessionLog<'_>], timed: bool) -> Result<Layout, (usize, ReadError)> {
    let mut n_records = 0;
    for log in logs {
        walk(log.input, Layout { timed }, |_, _| {
            n_records += 1;
            Ok(())
        })
        .map_err(|error| (n_records, error))?;
    }
    Ok(Layout { timed })
}

fn find_layout(logs: &[SessionLog<'_>]) -> Result<Layout, ReadError> {
    match (fit(logs, false), fit(logs, true)) {
        (Ok(plain), Err(_)) => Ok(plain),
        (Err(_), Ok(timed)) => Ok(timed),
        // The reading that came further is the likelier one.
        (Err((n_plain, plain)), Err((n_timed, timed))) => {
            Err(if n_timed > n_plain { timed } else { plain })
        }
        (Ok(plain), Ok(_)) => match logs.iter().find(|log| !log.input.bytes.is_empty()) {
            None => Ok(plain),
            Some(log) => Err(log.input.error(InputProblem::Unrecognised(
                "the log can be read with and without times, so its meaning is not certain"
                    .to_owned(),
            ))),
        },
    }
}

/// Visits the records of a log in order and checks that each stands where it may.
#[inline]
pub(super) fn walk(
    input: Input<'_>,
    layout: Layout,
    mut visit: impl FnMut(CobraRecord, usize) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let bytes = input.bytes;
    let mark = if layout.timed { 17 } else { 9 };
    let mut at = 0;
    let mut open = None;
    let mut begin = 0;
    let mut polled = input.polled();
    while at < bytes.len() {
        polled.step()?;
        let length = match bytes[at] {
            b'S' | b'C' => mark,
            b'W' => 25,
            b'R' => 33,
            _ => return Err(unexpected(input, at, open)),
        };
        let Some(record) = bytes.get(at + 1..at + length) else {
            return Err(truncated(input, at, length));
        };
        let record = match (bytes[at], open) {
            (b'W', Some(_)) => CobraRecord::Write {
                id: field(record, 0),
                key: field(record, 1),
                value: field(record, 2),
            },
            (b'R', Some(_)) => CobraRecord::Read {
                writer: field(record, 0),
                id: field(record, 1),
                key: field(record, 2),
                value: field(record, 3),
            },
            (b'S', None) => {
                let txn = field(record, 0);
                begin = if layout.timed { field(record, 1) } else { 0 };
                open = Some(txn);
                CobraRecord::Start {
                    txn,
                    begin: layout.timed.then_some(begin),
                }
            }
            (b'C', Some(txn)) if txn == field(record, 0) => {
                open = None;
                let times = layout.timed.then(|| (begin, field(record, 1)));
                CobraRecord::Commit { times }
            }
            _ => return Err(unexpected(input, at, open)),
        };
        visit(record, at)?;
        at += length;
    }
    Ok(())
}

#[inline]
fn field(record: &[u8], index: usize) -> i64 {
    let (fields, _) = record.as_chunks();
    i64::from_be_bytes(fields[index])
}

#[cold]
fn truncated(input: Input<'_>, at: usize, length: usize) -> ReadError {
    let left = input.bytes.len() - at;
    let letter = char::from(input.bytes[at]);
    let problem = InputProblem::Syntax {
        found: format!("a record {letter} cut off after {left} bytes"),
        expected: format!("{length} bytes"),
    };
    input.error_at(at, problem)
}

#[cold]
fn unexpected(input: Input<'_>, at: usize, open: Option<i64>) -> ReadError {
    let byte = input.bytes[at];
    let found = match byte {
        b'C' if open.is_some() => "the commit of another transaction".to_owned(),
        b'S' | b'C' | b'R' | b'W' => format!("a record {}", char::from(byte)),
        _ => format!("byte 0x{byte:02x}"),
    };
    let expected = match open {
        None => "a record S, which starts a transaction".to_owned(),
        Some(txn) => format!("a record R or W, or C that commits transaction {txn}"),
    };
    input.error_at(at, InputProblem::Syntax { found, expected })
}
