//! The operations of our own format that speak of rows: range queries, inserts, deletes, and reads of deleted rows.

use std::ops::Bound;

use kingsnake_history::model::{CompareOutcome, HistoryBuilder, Installed, Token};

use super::kingsnake_predicates::Predicates;
use crate::cursor::Cursor;
use crate::error::{InputProblem, ReadError};

/// The rows of a range query, as long as they are being read.
#[derive(Default)]
pub(super) struct RowBuffers {
    live: Vec<(Token, Token)>,
    deleted: Vec<(Token, Token)>,
}

/// `,key,value` or `,key,value,row` of an insert.
pub(super) fn read_insert(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    predicates: &mut Predicates,
) -> Result<(), ReadError> {
    cursor.json_punct(b',')?;
    let key = cursor.json_token(builder)?;
    cursor.json_punct(b',')?;
    let at = cursor.at;
    let value = cursor.json_token(builder)?;
    if value == Token::Nil {
        cursor.at = at;
        return Err(cursor.wrong("a value: null means that there is no row"));
    }
    let value = builder.insert(key, value);
    predicates.read_row(cursor, builder, key, value)
}

/// `,key` or `,key,tombstone` of a delete, or a query that chooses what is deleted.
pub(super) fn read_delete(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    predicates: &mut Predicates,
) -> Result<(), ReadError> {
    cursor.json_punct(b',')?;
    if cursor.peek() == b'{' {
        return predicates.read_delete(cursor, builder);
    }
    let key = cursor.json_token(builder)?;
    let tombstone = if next_is_comma(cursor) {
        cursor.json_punct(b',')?;
        cursor.json_token(builder)?
    } else {
        Token::Nil
    };
    builder.delete(key, tombstone);
    Ok(())
}

/// What follows a read's value: the tombstone that was found, where nothing was read.
pub(super) fn read_value(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    key: Token,
    value: Token,
) -> Result<(), ReadError> {
    if !next_is_comma(cursor) {
        builder.read(key, value);
        return Ok(());
    }
    if value != Token::Nil {
        return Err(cursor.wrong("`]`: only a read of null can name a delete"));
    }
    cursor.json_punct(b',')?;
    let at = cursor.at;
    match cursor.json_token(builder)? {
        // A client that sees tombstones and saw none: a range of one key says just that.
        Token::Nil if key == Token::Nil => {
            cursor.at = at;
            Err(cursor.wrong("a tombstone"))
        }
        Token::Nil => {
            let here = Bound::Included(key);
            let answer = builder.range(here, here, &[], Some(&[]));
            answer.map(drop).map_err(|error| cursor.fail(error))
        }
        tombstone => {
            builder.read_tombstone(key, tombstone);
            Ok(())
        }
    }
}

/// `,low,high,[[key,value],…]` or `,low,high,[[key,value],…],[[key,tombstone],…]` of a range query.
pub(super) fn read_range(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    rows: &mut RowBuffers,
) -> Result<(), ReadError> {
    cursor.json_punct(b',')?;
    let low = read_bound(cursor, builder, "after")?;
    cursor.json_punct(b',')?;
    let high = read_bound(cursor, builder, "before")?;
    cursor.json_punct(b',')?;
    read_rows(cursor, builder, &mut rows.live)?;
    let shows_deleted = next_is_comma(cursor);
    rows.deleted.clear();
    if shows_deleted {
        cursor.json_punct(b',')?;
        read_rows(cursor, builder, &mut rows.deleted)?;
    }
    let deleted = shows_deleted.then_some(rows.deleted.as_slice());
    let answer = builder.range(low, high, &rows.live, deleted);
    answer.map(drop).map_err(|error| cursor.fail(error))
}

/// A value, or `{"deleted":tombstone}`, in a version order.
pub(super) fn read_installed(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
) -> Result<Installed, ReadError> {
    cursor.pass_blanks();
    if cursor.peek() != b'{' {
        return Ok(Installed::Value(cursor.json_token(builder)?));
    }
    cursor.json_punct(b'{')?;
    let at = cursor.at;
    if cursor.json_text()? != "deleted" {
        cursor.at = at;
        return Err(cursor.wrong("\"deleted\""));
    }
    cursor.json_punct(b':')?;
    let tombstone = cursor.json_token(builder)?;
    cursor.json_punct(b'}')?;
    Ok(Installed::Tombstone(tombstone))
}

/// A key, which the range includes; `{"after":key}` or `{"before":key}`, which it does not; or `null`: no bound.
fn read_bound(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    word: &str,
) -> Result<Bound<Token>, ReadError> {
    cursor.pass_blanks();
    if cursor.peek() != b'{' {
        return Ok(match cursor.json_token(builder)? {
            Token::Nil => Bound::Unbounded,
            key => Bound::Included(key),
        });
    }
    cursor.json_punct(b'{')?;
    let at = cursor.at;
    if cursor.json_text()? != word {
        cursor.at = at;
        return Err(cursor.wrong(&format!("\"{word}\"")));
    }
    cursor.json_punct(b':')?;
    let key = cursor.json_token(builder)?;
    cursor.json_punct(b'}')?;
    if key == Token::Nil {
        let problem = format!("{{\"{word}\":null}} bounds nothing; write null alone");
        return Err(cursor.fail(InputProblem::Contradiction(problem)));
    }
    Ok(Bound::Excluded(key))
}

/// `[[key,value],…]`
fn read_rows(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    rows: &mut Vec<(Token, Token)>,
) -> Result<(), ReadError> {
    rows.clear();
    cursor.json_punct(b'[')?;
    let mut first = true;
    while cursor.json_more(&mut first, b']')? {
        cursor.json_punct(b'[')?;
        let key = cursor.json_token(builder)?;
        cursor.json_punct(b',')?;
        let value = cursor.json_token(builder)?;
        cursor.json_punct(b']')?;
        rows.push((key, value));
    }
    Ok(())
}

pub(super) fn next_is_comma(cursor: &mut Cursor<'_>) -> bool {
    cursor.pass_blanks();
    cursor.peek() == b','
}

/// `,key,expected,new`, and after them `,false` where it was refused and `,false,current` where it showed what the key held.
pub(super) fn read_cas(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
) -> Result<(), ReadError> {
    let mut parts = [Token::Nil; 3];
    for part in &mut parts {
        cursor.json_punct(b',')?;
        *part = cursor.json_token(builder)?;
    }
    let [key, expected, new] = parts;
    cursor.pass_blanks();
    let mut outcome = CompareOutcome::Applied;
    if cursor.pass(b',') {
        cursor.pass_blanks();
        if cursor.rest().starts_with(b"true") {
            cursor.at += 4;
        } else if cursor.rest().starts_with(b"false") {
            cursor.at += 5;
            outcome = CompareOutcome::Refused;
        } else {
            return Err(cursor.wrong("`true` or `false`, whether the compare-and-set was applied"));
        }
        cursor.pass_blanks();
        if outcome == CompareOutcome::Refused && cursor.pass(b',') {
            cursor.pass_blanks();
            outcome = CompareOutcome::Shown(cursor.json_token(builder)?);
        }
    }
    builder.compare_and_set(key, expected, new, outcome);
    Ok(())
}
