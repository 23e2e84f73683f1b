//! Viper's JSON logs: a directory of `J<n>.log`, one session a file, one committed transaction a line.
//!
//! `{"value":[["r",key,value,is_dead],["w",key,value,success],…]}`; `"isInitial":true` marks the initial transaction.
//! Without one, the one value of a key that was read and never written is the initial value.

use kingsnake_solver::model::{HistoryBuilder, SessionId, Status, Token, ValueId};
use rustc_hash::FxHashSet;

use super::cobra::SessionLog;
use crate::cursor::Cursor;
use crate::error::{Problem, ReadError};

/// Reads all logs of one history. Transactions are numbered from 0 through the logs.
pub(crate) fn read(
    logs: &[SessionLog<'_>],
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let mut feed = Feed::default();
    if feed.read_all(logs, builder)? == Outcome::InitialCameLate {
        // Some line said what it is only after its operations, so every line must be looked at twice.
        *builder = HistoryBuilder::new();
        feed = Feed {
            look_ahead: true,
            ..Feed::default()
        };
        feed.read_all(logs, builder)?;
    }
    for log in logs.iter().filter(|log| log.input.bytes.is_empty()) {
        warnings.push(format!("session {} is empty", log.session));
    }
    feed.name_initial_values(builder, warnings);
    Ok(())
}

#[derive(PartialEq, Eq)]
enum Outcome {
    Read,
    InitialCameLate,
}

#[derive(Default)]
struct Feed {
    look_ahead: bool,
    n_txns: i64,
    has_initial: bool,
    keys_with_initial: FxHashSet<Token>,
    failed_writes: Vec<(Token, Token)>,
    /// For each value of a key: its names, and whether somebody wrote it.
    values: Vec<(Token, Token, bool)>,
}

impl Feed {
    fn read_all(
        &mut self,
        logs: &[SessionLog<'_>],
        builder: &mut HistoryBuilder,
    ) -> Result<Outcome, ReadError> {
        let bytes: usize = logs.iter().map(|log| log.input.bytes.len()).sum();
        builder.reserve_ops(bytes / 40);
        for log in logs {
            let session = builder.session(Token::Int(log.session));
            let mut cursor = log.input.cursor();
            loop {
                cursor.pass_space();
                if cursor.done() {
                    break;
                }
                if self.line(&mut cursor, session, builder)? == Outcome::InitialCameLate {
                    return Ok(Outcome::InitialCameLate);
                }
                cursor.end_line()?;
            }
        }
        Ok(Outcome::Read)
    }

    fn line(
        &mut self,
        cursor: &mut Cursor<'_>,
        session: SessionId,
        builder: &mut HistoryBuilder,
    ) -> Result<Outcome, ReadError> {
        let mut is_initial = self.look_ahead && says_initial(*cursor)?;
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
                        return Ok(Outcome::InitialCameLate);
                    }
                    is_initial = says;
                }
                "value" if has_value => {
                    return Err(
                        cursor.fail(Problem::Contradiction("two fields `value`".to_owned()))
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
            return Err(cursor.fail(Problem::Syntax {
                found: "a transaction without field `value`".to_owned(),
                expected: "its operations".to_owned(),
            }));
        }
        Ok(Outcome::Read)
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
        // A value of a failed write must not be read by anyone, so it belongs to a transaction that aborted.
        let name = builder.text(&format!("{} (its failed writes)", self.n_txns - 1));
        begin(cursor, session, name, Status::Aborted, builder)?;
        for (key, value) in std::mem::take(&mut self.failed_writes) {
            let id = builder.write(key, value);
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
        let is_write = match &*name {
            "r" => false,
            "w" | "i" => true,
            "range" => return Err(unsupported(cursor, "range queries")),
            "d" => return Err(unsupported(cursor, "deletes")),
            _ => {
                cursor.at = name_at;
                return Err(cursor.wrong("an operation: \"r\", \"w\", \"i\", \"d\" or \"range\""));
            }
        };
        cursor.json_punct(b',')?;
        let key = cursor.json_token(builder)?;
        cursor.json_punct(b',')?;
        let value = read_value(cursor, builder)?;
        let flag = read_flag(cursor)?;
        if is_initial {
            if !is_write {
                return Err(cursor.fail(Problem::Contradiction(
                    "the initial transaction reads".to_owned(),
                )));
            }
            self.keys_with_initial.insert(key);
            builder.initial(key, value);
        } else if !is_write {
            if flag.unwrap_or(false) && value != Token::Nil {
                return Err(unsupported(cursor, "reads of deleted rows"));
            }
            let id = builder.read(key, value);
            self.note(id, key, value, false);
        } else if flag.unwrap_or(true) {
            let id = builder.write(key, value);
            self.note(id, key, value, true);
        } else {
            self.failed_writes.push((key, value));
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

    /// Declares the values that were there before: those that were read and that nobody wrote. A key can have only
    /// one; a second such value stays, and is an anomaly.
    fn name_initial_values(&mut self, builder: &mut HistoryBuilder, warnings: &mut Vec<String>) {
        let mut n_found = 0;
        for &(key, value, is_written) in &self.values {
            let may_be_initial = !is_written && (!self.has_initial || value == Token::Nil);
            if may_be_initial && self.keys_with_initial.insert(key) {
                builder.initial(key, value);
                n_found += 1;
            }
        }
        if !self.has_initial && n_found > 0 {
            warnings.push(format!(
                "the log has no initial transaction: {n_found} values that nobody wrote count as initial"
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

#[cold]
fn unsupported(cursor: &Cursor<'_>, what: &str) -> ReadError {
    cursor.fail(Problem::Unsupported(format!(
        "{what} are not supported yet"
    )))
}
