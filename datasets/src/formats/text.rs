//! One operation a line, `r(key,value,session,txn)` or `w(key,value,session,txn)`: `PolySI`, Plume, `IsoVista`.
//!
//! A session's transactions stand in the order of their first lines; lines of different transactions may interleave.
//! Transaction -1 marks an aborted write. A file whose session 0 is nothing but one transaction 0 that comes first,
//! writes every key of the file once and reads none, while nobody names the value 0, states the initial values.

use kingsnake_history::model::{BuildError, HistoryBuilder, NumberOp, Status, Token};
use rustc_hash::FxHashSet;

use super::grouping::{Owner, group};
use crate::cursor::{Cursor, Input};
use crate::error::{Problem, ReadError};

const ABORTED: i64 = -1;

#[derive(Clone, Copy)]
struct Line {
    at: usize,
    is_write: bool,
    key: i64,
    value: i64,
    session: i64,
    txn: i64,
}

/// Reads one file.
pub(crate) fn read(
    input: Input<'_>,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let mut cursor = input.cursor();
    if next(&mut cursor)?.is_none() {
        return Err(input.empty());
    }
    let states_initial = states_initial(input)?;
    if states_initial {
        warnings.push(
            "session 0 is one transaction that writes every key first: it was taken for the initial state".to_owned(),
        );
    }
    let mut feed = Feed::new(input, states_initial, builder);
    let mut cursor = input.cursor();
    let mut polled = input.polled();
    while let Some(line) = next(&mut cursor)? {
        polled.step()?;
        match feed.put(line) {
            Ok(()) => {}
            Err(BuildError::DuplicateTxn { .. }) => {
                return reread_interleaved(input, states_initial, builder);
            }
            Err(error) => return Err(input.error_in_line(line.at, error)),
        }
    }
    feed.flush();
    Ok(())
}

/// Groups the lines by transaction and reads them in that order.
fn reread_interleaved(
    input: Input<'_>,
    states_initial: bool,
    builder: &mut HistoryBuilder,
) -> Result<(), ReadError> {
    let places = group(input.cursor(), |cursor| {
        let owner = |line: Line| Owner {
            txn: (line.txn != ABORTED).then_some(line.txn),
            session: line.session,
            at: line.at,
        };
        Ok(next(cursor)?.map(owner))
    })?;
    *builder = HistoryBuilder::new();
    let mut feed = Feed::new(input, states_initial, builder);
    let mut polled = input.polled();
    for at in places {
        polled.step()?;
        let mut cursor = Cursor { input, at };
        if let Some(line) = next(&mut cursor)? {
            feed.put(line)
                .map_err(|error| input.error_in_line(at, error))?;
        }
    }
    feed.flush();
    Ok(())
}

struct Feed<'b> {
    builder: &'b mut HistoryBuilder,
    current: Option<(i64, i64)>,
    states_initial: bool,
    n_aborted: usize,
    run: Vec<NumberOp>,
}

impl<'b> Feed<'b> {
    fn new(input: Input<'_>, states_initial: bool, builder: &'b mut HistoryBuilder) -> Self {
        // The shortest line is `r(1,1,1,1)` and its end.
        builder.reserve_ops(input.bytes.len() / 16);
        if !states_initial {
            builder.initial_everywhere(Token::Int(0));
        }
        Feed {
            builder,
            current: None,
            states_initial,
            n_aborted: 0,
            run: Vec::new(),
        }
    }

    #[inline]
    fn put(&mut self, line: Line) -> Result<(), BuildError> {
        if self.current != Some((line.session, line.txn)) || line.txn == ABORTED {
            if self.states_initial && line.session == 0 {
                self.builder
                    .initial(Token::Int(line.key), Token::Int(line.value));
                return Ok(());
            }
            self.flush();
            let session = self.builder.session(Token::Int(line.session));
            let (name, status) = self.name(line.txn);
            self.builder.begin(session, name, status)?;
            self.current = Some((line.session, line.txn));
        }
        self.run.push(NumberOp {
            is_write: line.is_write,
            key: line.key,
            value: line.value,
        });
        Ok(())
    }

    /// Hands the operations of the open transaction to the builder.
    fn flush(&mut self) {
        if !self.run.is_empty() {
            self.builder.extend(&self.run);
            self.run.clear();
        }
    }

    fn name(&mut self, txn: i64) -> (Token, Status) {
        if txn != ABORTED {
            return (Token::Int(txn), Status::Committed);
        }
        self.n_aborted += 1;
        let name = format!("aborted {}", self.n_aborted);
        (self.builder.text(&name), Status::Aborted)
    }
}

/// Whether session 0 is an explicit initial transaction (see the head of this file).
fn states_initial(input: Input<'_>) -> Result<bool, ReadError> {
    let mut written = FxHashSet::default();
    let mut in_first = true;
    let mut n_others = 0;
    let mut cursor = input.cursor();
    while let Some(line) = next(&mut cursor)? {
        let is_first = (line.session, line.txn) == (0, 0);
        let fits = match (is_first, in_first) {
            (true, true) => line.is_write && line.value != 0 && written.insert(line.key),
            (true, false) => false,
            (false, _) => {
                in_first = false;
                n_others += 1;
                line.session != 0 && line.value != 0 && written.contains(&line.key)
            }
        };
        if !fits {
            return Ok(false);
        }
    }
    Ok(!written.is_empty() && n_others > 0)
}

/// The next line that is not blank.
#[inline]
fn next(cursor: &mut Cursor<'_>) -> Result<Option<Line>, ReadError> {
    cursor.pass_space();
    if cursor.done() {
        return Ok(None);
    }
    let at = cursor.at;
    let is_write = match cursor.peek() {
        b'w' => true,
        b'r' => false,
        _ => return Err(cursor.wrong("`r(key,value,session,txn)` or `w(key,value,session,txn)`")),
    };
    cursor.at += 1;
    cursor.expect(b'(')?;
    let key = cursor.int()?;
    cursor.expect(b',')?;
    let value = cursor.int()?;
    cursor.expect(b',')?;
    let session = cursor.int()?;
    cursor.expect(b',')?;
    let txn = cursor.int()?;
    if txn < ABORTED || (txn == ABORTED && !is_write) {
        return Err(cursor.fail(Problem::Syntax {
            found: format!(
                "transaction {txn} of a {}",
                if is_write { "write" } else { "read" }
            ),
            expected: "a transaction that is not negative, or -1 for an aborted write".to_owned(),
        }));
    }
    cursor.expect(b')')?;
    cursor.end_line()?;
    Ok(Some(Line {
        at,
        is_write,
        key,
        value,
        session,
        txn,
    }))
}
