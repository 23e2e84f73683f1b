//! `VeriStrong`'s text for list-append: the number of lines, then `session txn R key n a1 … an` or `session txn A key v`.
//!
//! A session's transactions stand in the order of their first lines; lines of different transactions may interleave.

use kingsnake_history::model::{BuildError, HistoryBuilder, Status, Token};

use super::grouping::{Owner, group};
use crate::cursor::{Cursor, Input};
use crate::error::{InputProblem, ReadError};

/// Where the fields after the transaction begin, and whose they are.
struct Head {
    at: usize,
    session: i64,
    txn: i64,
}

/// Reads one file.
pub(crate) fn read(
    input: Input<'_>,
    builder: &mut HistoryBuilder,
    _warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let mut cursor = input.cursor();
    cursor.pass_space();
    if cursor.done() {
        return Err(input.empty());
    }
    let n_expected = cursor.int()?;
    cursor.end_line()?;
    let body = cursor;
    let mut feed = ListFeed::default();
    let mut n_lines = 0;
    let mut polled = input.polled();
    while let Some(head) = next_head(&mut cursor)? {
        polled.step()?;
        n_lines += 1;
        match feed.put(&mut cursor, &head, builder)? {
            Ok(()) => {}
            Err(BuildError::DuplicateTxn { .. }) => {
                return reread_interleaved(body, n_expected, builder);
            }
            Err(error) => return Err(input.error_in_line(head.at, error)),
        }
    }
    check_count(&cursor, n_lines, n_expected)
}

fn reread_interleaved(
    body: Cursor<'_>,
    n_expected: i64,
    builder: &mut HistoryBuilder,
) -> Result<(), ReadError> {
    let places = group(body, |cursor| {
        let Some(Head { at, session, txn }) = next_head(cursor)? else {
            return Ok(None);
        };
        while !matches!(cursor.peek(), b'\n') && !cursor.done() {
            cursor.at += 1;
        }
        Ok(Some(Owner {
            txn: Some(txn),
            session,
            at,
        }))
    })?;
    *builder = HistoryBuilder::new();
    let mut feed = ListFeed::default();
    let mut polled = body.input.polled();
    for &at in &places {
        polled.step()?;
        let mut cursor = Cursor { at, ..body };
        if let Some(head) = next_head(&mut cursor)? {
            feed.put(&mut cursor, &head, builder)?
                .map_err(|error| body.input.error_in_line(at, error))?;
        }
    }
    check_count(&body, places.len() as i64, n_expected)
}

fn check_count(cursor: &Cursor<'_>, n_lines: i64, n_expected: i64) -> Result<(), ReadError> {
    if n_lines == n_expected {
        return Ok(());
    }
    Err(cursor.fail(InputProblem::Syntax {
        found: format!("{n_lines} operations"),
        expected: format!("{n_expected}, as the first line says"),
    }))
}

/// The session and transaction of the next line that is not blank.
fn next_head(cursor: &mut Cursor<'_>) -> Result<Option<Head>, ReadError> {
    cursor.pass_space();
    if cursor.done() {
        return Ok(None);
    }
    let at = cursor.at;
    let session = field(cursor)?;
    let txn = field(cursor)?;
    Ok(Some(Head { at, session, txn }))
}

fn field(cursor: &mut Cursor<'_>) -> Result<i64, ReadError> {
    cursor.pass_blanks();
    let number = cursor.int()?;
    if !matches!(cursor.peek(), b' ' | b'\t' | b'\r' | b'\n') && !cursor.done() {
        return Err(cursor.wrong("a space after a number"));
    }
    Ok(number)
}

#[derive(Default)]
struct ListFeed {
    current: Option<(i64, i64)>,
    list: Vec<Token>,
}

impl ListFeed {
    /// Feeds the line after its head. The inner result is what the builder says of its transaction.
    fn put(
        &mut self,
        cursor: &mut Cursor<'_>,
        head: &Head,
        builder: &mut HistoryBuilder,
    ) -> Result<Result<(), BuildError>, ReadError> {
        let owner = Some((head.session, head.txn));
        if self.current != owner {
            let session = builder.session(Token::Int(head.session));
            let begun = builder.begin(session, Token::Int(head.txn), Status::Committed);
            if begun.is_err() {
                return Ok(begun);
            }
            self.current = owner;
        }
        cursor.pass_blanks();
        let is_read = match cursor.peek() {
            b'R' => true,
            b'A' => false,
            _ => return Err(cursor.wrong("`R key n a1 … an` or `A key value`")),
        };
        cursor.at += 1;
        let key = Token::Int(field(cursor)?);
        if is_read {
            let n_items = field(cursor)?;
            // Each item takes two bytes at least, so a larger number cannot be true.
            let most = (cursor.input.bytes.len() - cursor.at) / 2;
            if usize::try_from(n_items).map_or(true, |n| n > most) {
                return Err(cursor.fail(InputProblem::Syntax {
                    found: format!("a list of {n_items} items"),
                    expected: format!("at most {most}, which the rest of the file could hold"),
                }));
            }
            self.list.clear();
            for _ in 0..n_items {
                self.list.push(Token::Int(field(cursor)?));
            }
            builder.read_list(key, self.list.iter().copied());
        } else {
            builder.append(key, Token::Int(field(cursor)?));
        }
        cursor.end_line()?;
        Ok(Ok(()))
    }
}
