//! Viper's JSON logs: a directory of `J<n>.log`, one session per file, one committed transaction per line.
//!
//! `{"value":[["r",key,value,is_dead],["w",key,value,success],…]}`; `"isInitial":true` marks the initial transaction.
//! Without one, the one value of a key that was read and never written is the initial value.
//!
//! Viper's clients see deleted rows, each with the value that its delete wrote, so a key that a range query returned
//! neither alive nor dead never had a row.

use std::ops::Bound;

use kingsnake_history::model::{HistoryBuilder, SessionId, Status, Token, ValueId};
use rustc_hash::FxHashSet;

use super::cobra::SessionLog;
use crate::cursor::Cursor;
use crate::error::{InputProblem, ReadError};

/// What Viper's clients log as the hash of no value.
const HASH_OF_NOTHING: Token = Token::Int(0);

/// Reads all logs of one history. Transactions are numbered from 0 through the logs.
pub(crate) fn read(
    logs: &[SessionLog<'_>],
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let mut feed = ViperFeed::default();
    loop {
        let again = match feed.read_all(logs, builder)? {
            ReadingEnd::Read => break,
            // Some line said what it is only after its operations, so every line must be looked at twice.
            ReadingEnd::InitialCameLate => Foreknowledge {
                look_ahead: true,
                ..feed.known
            },
            ReadingEnd::DeletesCameLate => feed.known,
        };
        *builder = HistoryBuilder::new();
        feed = ViperFeed {
            known: again,
            ..ViperFeed::default()
        };
    }
    for log in logs.iter().filter(|log| log.input.bytes.is_empty()) {
        warnings.push(format!("session {} is empty", log.session));
    }
    feed.name_initial_values(builder, warnings);
    Ok(())
}

#[derive(PartialEq, Eq)]
enum ReadingEnd {
    Read,
    InitialCameLate,
    DeletesCameLate,
}

/// What a first reading of the logs may have to tell the second.
#[derive(Clone, Copy, Default)]
struct Foreknowledge {
    /// Whether some line says that it is the initial transaction only after its operations.
    look_ahead: bool,
    /// Whether rows are deleted. Then a read of nothing also says that it met no tombstone.
    has_deletes: bool,
}

#[derive(Default)]
struct ViperFeed {
    known: Foreknowledge,
    /// Whether nothing was read, and that was taken for no more than a value.
    has_read_nothing: bool,
    n_txns: i64,
    has_initial: bool,
    keys_with_initial: FxHashSet<Token>,
    /// Key, value, and whether it is a delete.
    failed_writes: Vec<(Token, Token, bool)>,
    /// For each value of a key: its names, and whether it was written.
    values: Vec<(Token, Token, bool)>,
}

impl ViperFeed {
    fn read_all(
        &mut self,
        logs: &[SessionLog<'_>],
        builder: &mut HistoryBuilder,
    ) -> Result<ReadingEnd, ReadError> {
        let bytes: usize = logs.iter().map(|log| log.input.bytes.len()).sum();
        builder.reserve_ops(bytes / 40);
        for log in logs {
            let session = builder.session(Token::Int(log.session));
            let mut cursor = log.input.cursor();
            let mut polled = log.input.polled();
            loop {
                polled.step()?;
                cursor.pass_space();
                if cursor.done() {
                    break;
                }
                if self.line(&mut cursor, session, builder)? == ReadingEnd::InitialCameLate {
                    return Ok(ReadingEnd::InitialCameLate);
                }
                cursor.end_line()?;
            }
        }
        if self.known.has_deletes && self.has_read_nothing {
            return Ok(ReadingEnd::DeletesCameLate);
        }
        Ok(ReadingEnd::Read)
    }

    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        session: SessionId,
        builder: &mut HistoryBuilder,
    ) -> Result<ReadingEnd, ReadError> {
        let mut is_initial = self.known.look_ahead && says_initial(*cursor)?;
        let mut has_value = false;
        cursor.expect(b'{')?;
        let mut first = true;
        while cursor.json_more(&mut first, b'}')? {
            let name = cursor.json_text()?;
            cursor.json_punct(b':')?;
            match &*name {
                "isInitial" => {
                    let says = cursor.json_bool()?;
                    if says && has_value && !is_initial {
                        return Ok(ReadingEnd::InitialCameLate);
                    }
                    is_initial = says;
                }
                "value" if has_value => {
                    return Err(
                        cursor.fail(InputProblem::Contradiction("two fields `value`".to_owned()))
                    );
                }
                "value" => {
                    has_value = true;
                    self.ops(cursor, session, is_initial, builder)?;
                }
                _ => cursor.json_skip()?,
            }
        }
        if !has_value {
            return Err(cursor.fail(InputProblem::Syntax {
                found: "a transaction without field `value`".to_owned(),
                expected: "its operations".to_owned(),
            }));
        }
        Ok(ReadingEnd::Read)
    }

    fn ops(
        &mut self,
        cursor: &mut Cursor<'_>,
        session: SessionId,
        is_initial: bool,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        if is_initial {
            self.has_initial = true;
        } else {
            begin(
                cursor,
                session,
                Token::Int(self.n_txns),
                Status::Committed,
                builder,
            )?;
            self.n_txns += 1;
        }
        self.failed_writes.clear();
        cursor.json_punct(b'[')?;
        let mut first = true;
        while cursor.json_more(&mut first, b']')? {
            self.op(cursor, is_initial, builder)?;
        }
        if self.failed_writes.is_empty() {
            return Ok(());
        }
        // A value of a failed write must not be read, so it belongs to a transaction that aborted.
        let name = builder.text(&format!("{} (its failed writes)", self.n_txns - 1));
        begin(cursor, session, name, Status::Aborted, builder)?;
        for (key, value, is_delete) in std::mem::take(&mut self.failed_writes) {
            let id = if is_delete {
                builder.delete(key, value)
            } else {
                builder.write(key, value)
            };
            self.note(id, key, value, true);
        }
        Ok(())
    }

    #[inline]
    fn op(
        &mut self,
        cursor: &mut Cursor<'_>,
        is_initial: bool,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        cursor.expect(b'[')?;
        cursor.pass_blanks();
        let name_at = cursor.at;
        let name = cursor.json_text()?;
        match &*name {
            "w" => return self.write(cursor, is_initial, builder),
            "i" | "d" => return self.insert_or_delete(cursor, &name, is_initial, builder),
            "range" if !is_initial => return self.range(cursor, builder),
            "r" | "range" => {}
            _ => {
                cursor.at = name_at;
                return Err(cursor.wrong("an operation: \"r\", \"w\", \"i\", \"d\" or \"range\""));
            }
        }
        if is_initial {
            return Err(cursor.fail(InputProblem::Contradiction(
                "the initial transaction reads".to_owned(),
            )));
        }
        let (key, value) = read_pair(cursor, builder)?;
        let is_dead = read_flag(cursor)?.unwrap_or(false);
        self.read(cursor, key, value, is_dead, builder)
    }

    /// The rest of `["w",key,value,success]`.
    #[inline]
    fn write(
        &mut self,
        cursor: &mut Cursor<'_>,
        is_initial: bool,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        let (key, value) = read_pair(cursor, builder)?;
        let is_done = read_flag(cursor)?.unwrap_or(true);
        if is_initial {
            self.keys_with_initial.insert(key);
            builder.initial(key, value);
        } else if is_done {
            let id = builder.write(key, value);
            self.note(id, key, value, true);
        } else {
            self.failed_writes.push((key, value, false));
        }
        Ok(())
    }

    #[inline]
    fn read(
        &mut self,
        cursor: &Cursor<'_>,
        key: Token,
        value: Token,
        is_dead: bool,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        if value == Token::Nil && self.known.has_deletes && key != Token::Nil {
            let here = Bound::Included(key);
            let answer = builder.range(here, here, &[], Some(&[]));
            return answer.map(drop).map_err(|error| cursor.fail(error));
        }
        self.has_read_nothing |= value == Token::Nil;
        if is_dead && value != Token::Nil {
            // A tombstone has a writer, so it is never an initial value.
            let id = builder.read_tombstone(key, value);
            self.note(id, key, value, true);
        } else {
            let id = builder.read(key, value);
            self.note(id, key, value, false);
        }
        Ok(())
    }

    /// The rest of `["i",key,value,success]`, or of `["i",key,value,read,is_dead,success,…]`, which also tells what was
    /// read before; and so of `"d"`, whose value is the tombstone.
    fn insert_or_delete(
        &mut self,
        cursor: &mut Cursor<'_>,
        name: &str,
        is_initial: bool,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        let is_delete = name == "d";
        self.known.has_deletes |= is_delete;
        let (key, value) = read_pair(cursor, builder)?;
        cursor.pass_blanks();
        let mut is_done = true;
        let mut seen = None;
        if cursor.pass(b',') {
            cursor.pass_blanks();
            if matches!(cursor.peek(), b't' | b'f') {
                is_done = cursor.json_bool()?;
            } else {
                let read = read_value(cursor, builder)?;
                cursor.json_punct(b',')?;
                seen = Some((read, cursor.json_bool()?));
                cursor.json_punct(b',')?;
                is_done = cursor.json_bool()?;
            }
            cursor.pass_blanks();
            // Newer logs continue with the client's intention.
            while cursor.pass(b',') {
                cursor.pass_blanks();
                cursor.json_skip()?;
                cursor.pass_blanks();
            }
        }
        cursor.expect(b']')?;
        if is_initial {
            if is_delete {
                let problem = "the initial transaction deletes".to_owned();
                return Err(cursor.fail(InputProblem::Contradiction(problem)));
            }
            self.keys_with_initial.insert(key);
            builder.initial(key, value);
            return Ok(());
        }
        if let Some((read, is_dead)) = seen {
            self.read(cursor, key, read, is_dead, builder)?;
        }
        if !is_done {
            self.failed_writes.push((key, value, is_delete));
            return Ok(());
        }
        let id = if is_delete {
            builder.delete(key, value)
        } else {
            builder.insert(key, value)
        };
        self.note(id, key, value, true);
        Ok(())
    }

    /// The rest of `["range",low,high,[{"id":key,"val":value},…],[{"id":key,"val":tombstone},…]]`.
    fn range(
        &mut self,
        cursor: &mut Cursor<'_>,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        let mut ends = [Bound::Unbounded; 2];
        for end in &mut ends {
            cursor.json_punct(b',')?;
            if let key @ (Token::Int(_) | Token::Text(_)) = read_value(cursor, builder)? {
                *end = Bound::Included(key);
            }
        }
        let [low, high] = ends;
        cursor.json_punct(b',')?;
        let live = read_rows(cursor, builder)?;
        cursor.pass_blanks();
        let mut dead = Vec::new();
        if cursor.pass(b',') {
            cursor.pass_blanks();
            dead = read_rows(cursor, builder)?;
            cursor.pass_blanks();
            if cursor.pass(b',') {
                cursor.pass_blanks();
                // Whether this is the query that ends the run; it is answered like any other.
                cursor.json_bool()?;
                cursor.pass_blanks();
            }
        }
        cursor.expect(b']')?;
        let answer = builder.range(low, high, &live, Some(&dead));
        let ids = answer.map_err(|error| cursor.fail(error))?.to_vec();
        for (at, (&id, &(key, value))) in ids.iter().zip(live.iter().chain(&dead)).enumerate() {
            self.note(id, key, value, at >= live.len());
        }
        Ok(())
    }

    #[inline]
    fn note(&mut self, id: ValueId, key: Token, value: Token, is_written: bool) {
        // Ids that an initial transaction took have no row of their own yet.
        while self.values.len() <= id.index() {
            self.values.push((Token::Nil, Token::Nil, true));
            if self.values.len() == id.index() + 1 {
                self.values[id.index()] = (key, value, false);
            }
        }
        self.values[id.index()].2 |= is_written;
    }

    /// Declares the values that were there before: those that were read and never written. A key can have only
    /// one; a second such value stays, and is an anomaly.
    fn name_initial_values(&mut self, builder: &mut HistoryBuilder, warnings: &mut Vec<String>) {
        let mut n_found = 0;
        for &(key, value, is_written) in &self.values {
            let is_nothing = value == Token::Nil || value == HASH_OF_NOTHING;
            let may_be_initial = !is_written && (!self.has_initial || is_nothing);
            if may_be_initial && self.keys_with_initial.insert(key) {
                if value == HASH_OF_NOTHING {
                    builder.initial_absence(key, value);
                } else {
                    builder.initial(key, value);
                }
                n_found += 1;
            }
        }
        if !self.has_initial && n_found > 0 {
            warnings.push(format!(
                "the log has no initial transaction: {n_found} values that were never written count as initial"
            ));
        }
    }
}

fn begin(
    cursor: &Cursor<'_>,
    session: SessionId,
    name: Token,
    status: Status,
    builder: &mut HistoryBuilder,
) -> Result<(), ReadError> {
    builder
        .begin(session, name, status)
        .map_err(|error| cursor.fail(error))
}

/// Whether the line says that it is the initial transaction, wherever it says so.
fn says_initial(mut cursor: Cursor<'_>) -> Result<bool, ReadError> {
    cursor.expect(b'{')?;
    let mut first = true;
    while cursor.json_more(&mut first, b'}')? {
        let name = cursor.json_text()?;
        cursor.json_punct(b':')?;
        if name == "isInitial" {
            return cursor.json_bool();
        }
        cursor.json_skip()?;
    }
    Ok(false)
}

/// A value, or `"nil"` where there was none.
#[inline]
fn read_value(cursor: &mut Cursor<'_>, builder: &mut HistoryBuilder) -> Result<Token, ReadError> {
    const NIL: &[u8] = b"\"nil\"";
    if cursor.rest().starts_with(NIL) {
        cursor.at += NIL.len();
        return Ok(Token::Nil);
    }
    cursor.json_token(builder)
}

/// The last element of an operation, where there is one, and the end of the operation.
#[inline]
fn read_flag(cursor: &mut Cursor<'_>) -> Result<Option<bool>, ReadError> {
    cursor.pass_blanks();
    let mut flag = None;
    if cursor.pass(b',') {
        cursor.pass_blanks();
        flag = Some(cursor.json_bool()?);
        cursor.pass_blanks();
    }
    cursor.expect(b']')?;
    Ok(flag)
}

/// `,key,value`
#[inline]
fn read_pair(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
) -> Result<(Token, Token), ReadError> {
    cursor.json_punct(b',')?;
    let key = cursor.json_token(builder)?;
    cursor.json_punct(b',')?;
    Ok((key, read_value(cursor, builder)?))
}

/// `[{"id":key,"val":value},…]`; other fields are ignored.
fn read_rows(
    cursor: &mut Cursor<'_>,
    builder: &mut HistoryBuilder,
) -> Result<Vec<(Token, Token)>, ReadError> {
    let mut rows = Vec::new();
    cursor.json_punct(b'[')?;
    let mut first = true;
    while cursor.json_more(&mut first, b']')? {
        cursor.json_punct(b'{')?;
        let (mut key, mut value) = (None, None);
        let mut first = true;
        while cursor.json_more(&mut first, b'}')? {
            let name = cursor.json_text()?;
            cursor.json_punct(b':')?;
            match &*name {
                "id" => key = Some(cursor.json_token(builder)?),
                "val" => value = Some(cursor.json_token(builder)?),
                _ => cursor.json_skip()?,
            }
        }
        let (Some(key), Some(value)) = (key, value) else {
            return Err(cursor.wrong("a row with `id` and `val`"));
        };
        rows.push((key, value));
    }
    Ok(rows)
}
