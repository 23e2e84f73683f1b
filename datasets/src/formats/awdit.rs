//! AWDIT's text: `r key value` or `w key value` a line, `-----` between transactions, `=====` between sessions.
//!
//! There is no initial value: what is read was written by a transaction of the file. Transactions and sessions have no
//! names, so they are numbered from 0 through the file.

use kingsnake_history::model::{HistoryBuilder, SessionId, Status, Token};

use crate::cursor::{Cursor, Input};
use crate::error::ReadError;

/// Reads one file.
pub(crate) fn read(
    input: Input<'_>,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let mut cursor = input.cursor();
    cursor.pass_space();
    if cursor.done() {
        return Err(input.empty());
    }
    builder.reserve_ops(input.bytes.len() / 8);
    let mut session_number = 0;
    let mut session = builder.session(Token::Int(0));
    let mut txn_number = 0;
    let mut is_open = false;
    let mut is_empty = true;
    let mut polled = input.polled();
    while !cursor.done() {
        polled.step()?;
        match cursor.peek() {
            b'r' | b'w' => {
                if !is_open {
                    begin(&cursor, builder, session, txn_number)?;
                    txn_number += 1;
                    (is_open, is_empty) = (true, false);
                }
                read_op(&mut cursor, builder)?;
            }
            b'-' => {
                pass_rule(&mut cursor, b'-')?;
                is_open = false;
            }
            b'=' => {
                pass_rule(&mut cursor, b'=')?;
                warn_if(is_empty, session_number, warnings);
                is_open = false;
                session_number += 1;
                session = builder.session(Token::Int(session_number));
                is_empty = true;
            }
            _ => return Err(cursor.wrong("`r key value`, `w key value`, `-----` or `=====`")),
        }
        cursor.end_line()?;
        cursor.pass_space();
    }
    warn_if(is_empty, session_number, warnings);
    Ok(())
}

fn warn_if(is_empty: bool, session: i64, warnings: &mut Vec<String>) {
    if is_empty {
        warnings.push(format!("session {session} is empty"));
    }
}

fn begin(
    cursor: &Cursor<'_>,
    builder: &mut HistoryBuilder,
    session: SessionId,
    number: i64,
) -> Result<(), ReadError> {
    builder
        .begin(session, Token::Int(number), Status::Committed)
        .map_err(|error| cursor.fail(error))
}

fn read_op(cursor: &mut Cursor<'_>, builder: &mut HistoryBuilder) -> Result<(), ReadError> {
    let is_write = cursor.peek() == b'w';
    cursor.at += 1;
    cursor.expect(b' ')?;
    cursor.pass_blanks();
    let key = Token::Int(cursor.int()?);
    cursor.expect(b' ')?;
    cursor.pass_blanks();
    let value = Token::Int(cursor.int()?);
    if is_write {
        builder.write(key, value);
    } else {
        builder.read(key, value);
    }
    Ok(())
}

/// A line of at least three equal signs.
fn pass_rule(cursor: &mut Cursor<'_>, sign: u8) -> Result<(), ReadError> {
    for _ in 0..3 {
        cursor.expect(sign)?;
    }
    while cursor.pass(sign) {}
    Ok(())
}
