//! dbcop's bincode: little-endian 64-bit counts around events of 18 bytes.
//!
//! Every count is checked against the bytes that are left before anything is made of it.

use kingsnake_history::model::{HistoryBuilder, NumberOp, Status, Token};

use crate::cursor::Input;
use crate::error::{InputProblem, ReadError};

const EVENT: usize = 18;

struct DbcopReader<'a> {
    input: Input<'a>,
    at: usize,
    /// The operations of the transaction at hand.
    run: Vec<NumberOp>,
}

impl<'a> DbcopReader<'a> {
    fn new(input: Input<'a>) -> Self {
        DbcopReader {
            input,
            at: 0,
            run: Vec::new(),
        }
    }
}

/// Reads one file. Transactions are numbered from 0 through all sessions, sessions from 0.
pub(crate) fn read(
    input: Input<'_>,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let mut reader = DbcopReader::new(input);
    reader.header()?;
    builder.initial_everywhere(Token::Int(0));
    builder.reserve_ops(reader.left() / EVENT);
    let mut failed_writes = Vec::new();
    let mut number = 0;
    let n_sessions = reader.count("sessions", 8)?;
    let mut polled = input.polled();
    for session_number in 0..n_sessions {
        let session = builder.session(Token::Int(session_number as i64));
        let n_txns = reader.count("transactions", 9)?;
        if n_txns == 0 {
            warnings.push(format!("session {session_number} is empty"));
        }
        for _ in 0..n_txns {
            polled.step()?;
            let at = reader.at;
            builder
                .begin(session, Token::Int(number), Status::Committed)
                .map_err(|error| input.error_at(at, error))?;
            failed_writes.clear();
            reader.events(builder, &mut failed_writes)?;
            if !reader.flag("whether the transaction succeeded")? {
                builder.status(Status::Aborted);
                for &(key, value) in &failed_writes {
                    builder.write(key, value);
                }
            } else if !failed_writes.is_empty() {
                // A value of a failed write must not be read, so it belongs to a transaction that aborted.
                let name = builder.text(&format!("{number} (its failed writes)"));
                builder
                    .begin(session, name, Status::Aborted)
                    .map_err(|error| input.error_at(at, error))?;
                for &(key, value) in &failed_writes {
                    builder.write(key, value);
                }
            }
            number += 1;
        }
    }
    if reader.left() > 0 {
        let found = format!("{} bytes after the last session", reader.left());
        return Err(reader.wrong(found, "the end of the file"));
    }
    Ok(())
}

/// Whether a file begins as dbcop's files do.
pub(crate) fn fits(input: Input<'_>) -> bool {
    let mut reader = DbcopReader::new(input);
    reader.header().is_ok() && reader.count("sessions", 8).is_ok()
}

/// Whether the beginning of a file may be that of one of dbcop's.
pub(crate) fn has_header(input: Input<'_>) -> bool {
    DbcopReader::new(input).header().is_ok()
}

impl DbcopReader<'_> {
    fn left(&self) -> usize {
        self.input.bytes.len() - self.at
    }

    /// Five settings of the generator, then three texts; none of them affects a verdict.
    fn header(&mut self) -> Result<(), ReadError> {
        if self.input.bytes.is_empty() {
            return Err(self.input.empty());
        }
        for name in ["id", "n_sessions", "n_keys", "n_txns", "n_events"] {
            let number = self.int(name)?;
            if number < 0 {
                self.at -= 8;
                return Err(self.wrong(
                    format!("{number}"),
                    &format!("{name}, which is not negative"),
                ));
            }
        }
        for name in ["info", "start", "end"] {
            let length = self.count(name, 1)?;
            let text = &self.input.bytes[self.at..self.at + length];
            if std::str::from_utf8(text).is_err() {
                return Err(self.wrong("bytes that are no UTF-8".to_owned(), name));
            }
            self.at += length;
        }
        Ok(())
    }

    fn events(
        &mut self,
        builder: &mut HistoryBuilder,
        failed_writes: &mut Vec<(Token, Token)>,
    ) -> Result<(), ReadError> {
        let n_events = self.count("events", EVENT)?;
        let bytes = self.input.bytes;
        self.run.clear();
        for event in bytes[self.at..self.at + n_events * EVENT].chunks_exact(EVENT) {
            let (key, value) = (le(&event[1..9]), le(&event[9..17]));
            match (event[0], event[17]) {
                (is_write @ (0 | 1), 1) => self.run.push(NumberOp {
                    is_write: is_write == 1,
                    key,
                    value,
                }),
                (0, 0) => {}
                (1, 0) => failed_writes.push((Token::Int(key), Token::Int(value))),
                (kind, success) => {
                    let found = format!("{kind} and {success}");
                    return Err(self.wrong(found, "0 or 1 for is_write and for success"));
                }
            }
            self.at += EVENT;
        }
        builder.extend(&self.run);
        Ok(())
    }

    fn int(&mut self, what: &str) -> Result<i64, ReadError> {
        match self.input.bytes.get(self.at..self.at + 8) {
            Some(bytes) => {
                self.at += 8;
                Ok(le(bytes))
            }
            None => Err(self.wrong(
                format!("{} bytes", self.left()),
                &format!("8 bytes: {what}"),
            )),
        }
    }

    /// A number of things of at least this many bytes each.
    fn count(&mut self, what: &str, size: usize) -> Result<usize, ReadError> {
        let number = self.int(what)?;
        let most = self.left() / size;
        match usize::try_from(number) {
            Ok(count) if count <= most => Ok(count),
            _ => {
                self.at -= 8;
                let expected =
                    format!("the number of {what}, at most {most} in the bytes that are left");
                Err(self.wrong(format!("{number}"), &expected))
            }
        }
    }

    fn flag(&mut self, what: &str) -> Result<bool, ReadError> {
        match self.input.bytes.get(self.at) {
            Some(&byte @ (0 | 1)) => {
                self.at += 1;
                Ok(byte == 1)
            }
            Some(byte) => Err(self.wrong(format!("{byte}"), &format!("0 or 1: {what}"))),
            None => Err(self.wrong("the end of the file".to_owned(), what)),
        }
    }

    #[cold]
    fn wrong(&self, found: String, expected: &str) -> ReadError {
        let expected = expected.to_owned();
        self.input
            .error_at(self.at, InputProblem::Syntax { found, expected })
    }
}

#[inline]
fn le(bytes: &[u8]) -> i64 {
    let mut word = [0; 8];
    word.copy_from_slice(bytes);
    i64::from_le_bytes(word)
}
