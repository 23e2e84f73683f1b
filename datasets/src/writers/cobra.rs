//! Writes Cobra's logs: a directory with one `T<n>.log` per session.
//!
//! A read there names its writer, so writers are looked up first, and every written value needs an id of its own.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use kingsnake_history::model::{History, Interval, Op, SessionId, Status, Token, TxnId, ValueId};
use rustc_hash::FxHashSet;

use super::limits::{Limits, number};
use crate::error::WriteError;
use crate::formats::cobra::{INITIAL, is_reserved};
use crate::whole::Pending;

/// Above every reserved id and every count of values.
const FIRST_NEW_ID: i64 = 1 << 40;

/// How the history will be written.
pub(super) struct CobraPlan {
    /// The transaction that wrote each value.
    writers: Vec<Option<TxnId>>,
    keeps_ids: bool,
    keeps_txns: bool,
    keeps_sessions: bool,
    /// A transaction that is in no log.
    nobody: i64,
    pub(super) notes: Vec<String>,
}

/// Makes sure that the format can express the history.
pub(super) fn plan(history: &History) -> Result<CobraPlan, WriteError> {
    let limits = Limits {
        history,
        format: "cobra",
    };
    if history.n_sessions() == 0 {
        return limits.refuse("a history without sessions: there would be no log".to_owned());
    }
    limits.no_lists()?;
    limits.no_rows()?;
    limits.no_extras()?;
    limits.none_is(Status::Aborted, "aborted transactions")?;
    limits.numbers_only()?;
    check_unknown(&limits)?;
    check_times(&limits)?;
    let writers = find_writers(&limits)?;
    let mut notes = Vec::new();
    let keeps_ids = ids_can_stay(history, &writers);
    if !keeps_ids {
        notes.push(
            "values get new write ids; the values themselves stand in the value field".to_owned(),
        );
    }
    let is_number = |token: Token| matches!(token, Token::Int(_));
    let keeps_txns = history.txns().all(|txn| is_number(history.txn_token(txn)));
    if !keeps_txns {
        notes.push("transactions are numbered from 1; their names are not kept".to_owned());
    }
    let session = |index: usize| history.session_token(SessionId(index as u32));
    let sessions = 0..history.n_sessions();
    let keeps_sessions = sessions
        .clone()
        .all(|index| matches!(session(index), Token::Int(0..)))
        && sessions.map(session).is_sorted();
    if !keeps_sessions {
        notes.push("sessions are numbered from 0; their names are not kept".to_owned());
    }
    let highest = history
        .txns()
        .map(|txn| number(history.txn_token(txn)))
        .max();
    let nobody = highest
        .unwrap_or(0)
        .max(history.n_txns() as i64)
        .saturating_add(1);
    Ok(CobraPlan {
        writers,
        keeps_ids,
        keeps_txns,
        keeps_sessions,
        nobody,
        notes,
    })
}

/// A log that ends within a transaction leaves its end unknown; no other transaction can be left so.
fn check_unknown(limits: &Limits<'_>) -> Result<(), WriteError> {
    let history = limits.history;
    for txn in history.txns() {
        let is_last = history.session_txns(history.session(txn)).end == txn.0 + 1;
        if history.status(txn) == Status::Unknown && !is_last {
            let name = history.txn_name(txn);
            return limits.refuse(format!(
                "transactions whose end is unknown, except a session's last (transaction {name})"
            ));
        }
    }
    Ok(())
}

fn check_times(limits: &Limits<'_>) -> Result<(), WriteError> {
    let history = limits.history;
    if !history.has_times() {
        return Ok(());
    }
    for txn in history.txns() {
        let Interval { begin, commit } = history.interval(txn);
        let is_unknown = history.status(txn) == Status::Unknown;
        let is_whole =
            begin != Interval::UNKNOWN.begin && (commit == Interval::UNKNOWN.commit) == is_unknown;
        if !is_whole {
            let name = history.txn_name(txn);
            return limits.refuse(format!(
                "times of some transactions only (transaction {name} lacks one, or has one too many)"
            ));
        }
    }
    Ok(())
}

fn find_writers(limits: &Limits<'_>) -> Result<Vec<Option<TxnId>>, WriteError> {
    let history = limits.history;
    let mut writers = vec![None; history.n_values()];
    for txn in history.txns() {
        for &op in history.ops(txn) {
            let Op::Write { value, .. } = op else {
                continue;
            };
            let before = writers[value.index()].replace(txn);
            if before.is_some() || history.is_initial(value) {
                let key = history.key_name(history.value_key(value));
                let value = history.value_name(value);
                return limits.refuse(format!("repeated values (value {value} of key {key})"));
            }
        }
    }
    Ok(writers)
}

/// Whether the values can be the write ids: numbers that differ over all keys and mean nothing else.
fn ids_can_stay(history: &History, writers: &[Option<TxnId>]) -> bool {
    let mut seen = FxHashSet::default();
    (0..writers.len()).all(|index| {
        let value = ValueId(index as u32);
        match history.value_token(value) {
            _ if history.is_initial(value) => true,
            Token::Int(id) => !is_reserved(id) && seen.insert(id),
            Token::Nil | Token::Text(_) => false,
        }
    })
}

/// Writes a history that was checked.
pub(super) fn write(history: &History, plan: &CobraPlan, directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if crate::source::log_number(&path, 'T').is_some() {
            let message = format!(
                "{} is already there, and would be read as a session",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
    }
    let mut logs = Vec::with_capacity(history.n_sessions());
    for session in 0..history.n_sessions() {
        let id = SessionId(session as u32);
        let name = if plan.keeps_sessions {
            number(history.session_token(id))
        } else {
            session as i64
        };
        let (log, file) = Pending::new(&directory.join(format!("T{name}.log")))?;
        let mut out = BufWriter::new(file);
        for txn in history.session_txns(id).map(TxnId) {
            write_txn(history, plan, txn, &mut out)?;
        }
        out.flush()?;
        logs.push(log);
    }
    // No log is there before all are.
    logs.into_iter().try_for_each(Pending::commit)
}

fn write_txn(
    history: &History,
    plan: &CobraPlan,
    txn: TxnId,
    out: &mut impl Write,
) -> io::Result<()> {
    let times = history.has_times().then(|| history.interval(txn));
    let mut begin = vec![plan.txn(history, txn)];
    begin.extend(times.map(|it| it.begin));
    put(out, b'S', &begin)?;
    for &op in history.ops(txn) {
        let number_of = |key| number(history.key_token(key));
        match op {
            Op::Write { key, value } => {
                let key = number_of(key);
                let stored = number(history.value_token(value));
                put(out, b'W', &[plan.id(history, value), key, stored])?;
            }
            Op::Read { key, value } => {
                let key = number_of(key);
                let stored = number(history.value_token(value));
                let id = plan.id(history, value);
                put(out, b'R', &[plan.writer(history, value), id, key, stored])?;
            }
            Op::Append { .. } | Op::ReadList { .. } | Op::Range { .. } => {}
        }
    }
    if history.status(txn) == Status::Unknown {
        return Ok(());
    }
    let mut commit = vec![plan.txn(history, txn)];
    commit.extend(times.map(|it| it.commit));
    put(out, b'C', &commit)
}

fn put(out: &mut impl Write, letter: u8, fields: &[i64]) -> io::Result<()> {
    out.write_all(&[letter])?;
    for field in fields {
        out.write_all(&field.to_be_bytes())?;
    }
    Ok(())
}

impl CobraPlan {
    fn txn(&self, history: &History, txn: TxnId) -> i64 {
        if self.keeps_txns {
            return number(history.txn_token(txn));
        }
        i64::from(txn.0) + 1
    }

    /// The write id of a value.
    fn id(&self, history: &History, value: ValueId) -> i64 {
        match history.value_token(value) {
            Token::Int(id) if history.is_initial(value) && is_reserved(id) => id,
            _ if history.is_initial(value) => INITIAL,
            Token::Int(id) if self.keeps_ids => id,
            _ => FIRST_NEW_ID + i64::from(value.0),
        }
    }

    /// The transaction that a read of this value names.
    fn writer(&self, history: &History, value: ValueId) -> i64 {
        if history.is_initial(value) {
            return self.id(history, value);
        }
        match self.writers[value.index()] {
            Some(txn) => self.txn(history, txn),
            None => self.nobody,
        }
    }
}
