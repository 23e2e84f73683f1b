//! The operations of a transaction in our own format; reads and writes of numbers without blanks take a short cut.

use kingsnake_history::model::{HistoryBuilder, NumberOp, Token};

use super::super::kingsnake_predicates::Predicates;
use super::super::kingsnake_rows::{
    next_is_comma, read_cas, read_delete, read_insert, read_range, read_value,
};
use super::Buffers;
use super::objects::read_object;
use crate::cursor::Cursor;
use crate::error::ReadError;

pub(super) fn feed_ops(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    buffers: &mut Buffers,
) -> Result<(), ReadError> {
    let Buffers {
        run,
        list,
        rows,
        predicates,
        savepoints,
    } = buffers;
    run.clear();
    savepoints.clear();
    // A write to a table with columns needs its row.
    let is_compact = !builder.has_columns();
    cursor.json_punct(b'[')?;
    let mut first = true;
    while cursor.json_more(&mut first, b']')? {
        let may_be_compact = is_compact || !cursor.rest().starts_with(b"[\"w\"");
        if may_be_compact && let Some(op) = compact_op(cursor) {
            run.push(op);
            continue;
        }
        builder.extend(run);
        run.clear();
        cursor.json_punct(b'[')?;
        let name_at = cursor.at;
        let name = cursor.json_text()?;
        match name.as_bytes() {
            b"r" | b"a" | b"rl" => read_key_op(cursor, builder, &name, list)?,
            b"w" => read_write(cursor, builder, predicates)?,
            b"range" => read_range(cursor, builder, rows)?,
            b"insert" => read_insert(cursor, builder, predicates)?,
            b"delete" => read_delete(cursor, builder, predicates)?,
            b"select" => predicates.read_select(cursor, builder)?,
            b"update" => predicates.read_update(cursor, builder)?,
            b"aggregate" => predicates.read_aggregate(cursor, builder)?,
            b"cas" => read_cas(cursor, builder)?,
            b"add" | b"rs" | b"inc" | b"rc" => read_object(cursor, builder, &name, list)?,
            b"savepoint" | b"rollback-to" | b"release" => {
                savepoints.read(cursor, builder, &name)?;
            }
            _ => {
                cursor.at = name_at;
                return Err(cursor.wrong(
                    "an operation: \"r\", \"w\", \"a\", \"rl\", \"range\", \"insert\", \"delete\", \"select\", \"update\", \"aggregate\", \"cas\", \"add\", \"rs\", \"inc\", \"rc\", \"savepoint\", \"rollback-to\" or \"release\"",
                ));
            }
        }
        cursor.json_punct(b']')?;
    }
    builder.extend(run);
    Ok(())
}

/// `,key,` of an operation on one key, which a value must follow.
fn read_key(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    name: &str,
) -> Result<Token, ReadError> {
    let next = |cursor: &mut Cursor<'_>| {
        cursor.pass_blanks();
        if cursor.peek() == b',' {
            return cursor.json_punct(b',');
        }
        let needs = match name {
            "r" => "a read needs a key and a value, as in [\"r\",\"x\",1], or null for no value",
            "w" => "a write needs a key and a value, as in [\"w\",\"x\",1]",
            "a" => "an append needs a key and a value, as in [\"a\",\"x\",1]",
            _ => "a read of a list needs a key and a list, as in [\"rl\",\"x\",[1,2]]",
        };
        Err(cursor.wrong(&format!("`,`: {needs}")))
    };
    next(cursor)?;
    let key = cursor.json_token(builder)?;
    next(cursor)?;
    Ok(key)
}

/// `,key,value` of the operations on one key.
fn read_key_op(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    name: &str,
    list: &mut Vec<Token>,
) -> Result<(), ReadError> {
    let key = read_key(cursor, builder, name)?;
    if name == "rl" {
        read_list(cursor, builder, list)?;
        builder.read_list(key, list.iter().copied());
        return Ok(());
    }
    let value = cursor.json_token(builder)?;
    match name {
        "r" => read_value(cursor, builder, key, value)?,
        _ => drop(builder.append(key, value)),
    }
    Ok(())
}

/// `,key,value` or `,key,value,row` of a write.
fn read_write(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    predicates: &mut Predicates,
) -> Result<(), ReadError> {
    let key = read_key(cursor, builder, "w")?;
    let name = cursor.json_token(builder)?;
    let value = builder.write(key, name);
    // A write of null deletes the row.
    if name == Token::Nil && !next_is_comma(cursor) {
        return Ok(());
    }
    predicates.read_row(cursor, builder, key, value)
}

/// A read or write of numbers without blanks, which is nearly every operation of a large file.
#[inline]
fn compact_op(cursor: &mut Cursor<'_>) -> Option<NumberOp> {
    let [b'[', b'"', letter @ (b'r' | b'w'), b'"', b',', first, ..] = *cursor.rest() else {
        return None;
    };
    let mut ahead = Cursor {
        at: cursor.at + 5,
        ..*cursor
    };
    if first != b'-' && !first.is_ascii_digit() {
        return None;
    }
    let key = ahead.int().ok()?;
    if !ahead.pass(b',') || !matches!(ahead.peek(), b'-' | b'0'..=b'9') {
        return None;
    }
    let value = ahead.int().ok()?;
    if !ahead.pass(b']') {
        return None;
    }
    *cursor = ahead;
    Some(NumberOp {
        is_write: letter == b'w',
        key,
        value,
    })
}

pub(super) fn read_list(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
    list: &mut Vec<Token>,
) -> Result<(), ReadError> {
    list.clear();
    cursor.json_punct(b'[')?;
    let mut first = true;
    while cursor.json_more(&mut first, b']')? {
        list.push(cursor.json_token(builder)?);
    }
    Ok(())
}
