//! One operation per line, `r(key,value,session,txn)` or `w(key,value,session,txn)`: `PolySI`, Plume, `IsoVista`.
//!
//! A session's transactions stand in the order of their first lines; lines of different transactions may interleave.
//! Transaction -1 marks an aborted write. A key holds 0 before any transaction, unless the file says otherwise: where session 0
//! is nothing but one transaction 0 that comes first, reads nothing and writes a key at most once, that transaction *is* the
//! initial state. It must write every key of the file, or the value 0, and no operation may name 0 of a key that it gave another
//! value; otherwise it is a transaction like any other.

use kingsnake_history::model::{BuildError, HistoryBuilder, NumberOp, Status, Token};
use rustc_hash::FxHashMap;

use super::grouping::{Owner, group};
use crate::cursor::{Cursor, Input};
use crate::error::{InputProblem, ReadError};

const ABORTED: i64 = -1;

#[derive(Clone, Copy)]
struct TextLine {
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
    let stated = states_initial(input)?;
    if stated != Stated::Nothing {
        warnings.push(
            "session 0 is one transaction that comes first and only writes: it was taken for the initial state".to_owned(),
        );
    }
    let mut feed = TextFeed::new(input, stated, builder);
    let mut cursor = input.cursor();
    let mut polled = input.polled();
    while let Some(line) = next(&mut cursor)? {
        polled.step()?;
        match feed.put(line) {
            Ok(()) => {}
            Err(BuildError::DuplicateTxn { .. }) => {
                return reread_interleaved(input, stated, builder);
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
    stated: Stated,
    builder: &mut HistoryBuilder,
) -> Result<(), ReadError> {
    let places = group(input.cursor(), |cursor| {
        let owner = |line: TextLine| Owner {
            txn: (line.txn != ABORTED).then_some(line.txn),
            session: line.session,
            at: line.at,
        };
        Ok(next(cursor)?.map(owner))
    })?;
    *builder = HistoryBuilder::new();
    let mut feed = TextFeed::new(input, stated, builder);
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

struct TextFeed<'b> {
    builder: &'b mut HistoryBuilder,
    current: Option<(i64, i64)>,
    stated: Stated,
    n_aborted: usize,
    run: Vec<NumberOp>,
}

impl<'b> TextFeed<'b> {
    fn new(input: Input<'_>, stated: Stated, builder: &'b mut HistoryBuilder) -> Self {
        // The shortest line is `r(1,1,1,1)` and its end.
        builder.reserve_ops(input.bytes.len() / 16);
        if stated != Stated::All {
            builder.initial_everywhere(Token::Int(0));
        }
        TextFeed {
            builder,
            current: None,
            stated,
            n_aborted: 0,
            run: Vec::new(),
        }
    }

    #[inline]
    fn put(&mut self, line: TextLine) -> Result<(), BuildError> {
        if self.current != Some((line.session, line.txn)) || line.txn == ABORTED {
            if self.stated != Stated::Nothing && line.session == 0 {
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

/// What an explicit initial transaction says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stated {
    /// There is none: every key holds 0.
    Nothing,
    /// The values of some keys; the others hold 0.
    Some,
    /// The values of all keys.
    All,
}

/// Looks for an explicit initial transaction (see the head of this file).
fn states_initial(input: Input<'_>) -> Result<Stated, ReadError> {
    let mut written: FxHashMap<i64, i64> = FxHashMap::default();
    let (mut in_first, mut is_all, mut has_zero) = (true, true, false);
    let mut n_others = 0;
    let mut cursor = input.cursor();
    while let Some(line) = next(&mut cursor)? {
        let is_first = (line.session, line.txn) == (0, 0);
        let fits = if is_first {
            has_zero |= line.value == 0;
            in_first && line.is_write && written.insert(line.key, line.value).is_none()
        } else {
            in_first = false;
            n_others += 1;
            let stated = written.get(&line.key);
            is_all &= stated.is_some();
            line.session != 0 && (line.value != 0 || stated.is_none_or(|&value| value == 0))
        };
        if !fits || !in_first && written.is_empty() {
            return Ok(Stated::Nothing);
        }
    }
    Ok(match (is_all, has_zero) {
        _ if written.is_empty() || n_others == 0 => Stated::Nothing,
        (true, _) => Stated::All,
        (false, true) => Stated::Some,
        (false, false) => Stated::Nothing,
    })
}

/// The next line that is not blank.
#[inline]
fn next(cursor: &mut Cursor<'_>) -> Result<Option<TextLine>, ReadError> {
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
        return Err(cursor.fail(InputProblem::Syntax {
            found: format!(
                "transaction {txn} of a {}",
                if is_write { "write" } else { "read" }
            ),
            expected: "a transaction that is not negative, or -1 for an aborted write".to_owned(),
        }));
    }
    cursor.expect(b')')?;
    cursor.end_line()?;
    Ok(Some(TextLine {
        at,
        is_write,
        key,
        value,
        session,
        txn,
    }))
}
