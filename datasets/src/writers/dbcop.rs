//! Writes dbcop's bincode. Sessions and transactions have no names there, only places.

use std::io::{self, Write};

use kingsnake_history::model::{History, Op, SessionId, Status, Token, TxnId};

use super::limits::{Limits, number, number_or_zero};
use crate::error::WriteError;

/// Makes sure that the format can express the history; returns what it does not keep.
pub(super) fn check(history: &History) -> Result<Vec<String>, WriteError> {
    let limits = Limits {
        history,
        format: "dbcop",
    };
    let mut notes = limits.plain_registers()?;
    let mut names = (0..).map(Token::Int);
    let mut keeps = |name: Token| names.next() == Some(name);
    if !history.txns().all(|txn| keeps(history.txn_token(txn))) {
        notes.push("transactions are numbered from 0; their names are not kept".to_owned());
    }
    let session = |index: usize| history.session_token(SessionId(index as u32));
    if !(0..history.n_sessions()).all(|index| session(index) == Token::Int(index as i64)) {
        notes.push("sessions are numbered from 0; their names are not kept".to_owned());
    }
    Ok(notes)
}

/// Writes a history that was checked.
pub(super) fn write(history: &History, out: &mut dyn Write) -> io::Result<()> {
    let n_most = |count: &dyn Fn(usize) -> usize, n: usize| (0..n).map(count).max().unwrap_or(0);
    let n_txns = n_most(
        &|index| history.session_txns(SessionId(index as u32)).len(),
        history.n_sessions(),
    );
    let n_events = n_most(
        &|index| history.ops(TxnId(index as u32)).len(),
        history.n_txns(),
    );
    for setting in [0, history.n_sessions(), history.n_keys(), n_txns, n_events] {
        put(out, setting as i64)?;
    }
    for text in ["written by kingsnake", "", ""] {
        put(out, text.len() as i64)?;
        out.write_all(text.as_bytes())?;
    }
    put(out, history.n_sessions() as i64)?;
    for session in 0..history.n_sessions() {
        let txns = history.session_txns(SessionId(session as u32));
        put(out, txns.len() as i64)?;
        for txn in txns.map(TxnId) {
            put(out, history.ops(txn).len() as i64)?;
            for &op in history.ops(txn) {
                let (is_write, key, value) = match op {
                    Op::Read { key, value } => (0, key, value),
                    Op::Write { key, value } => (1, key, value),
                    Op::Append { .. } | Op::ReadList { .. } | Op::Range { .. } => continue,
                };
                out.write_all(&[is_write])?;
                put(out, number(history.key_token(key)))?;
                put(out, number_or_zero(history, value))?;
                out.write_all(&[1])?;
            }
            let succeeded = history.status(txn) == Status::Committed;
            out.write_all(&[u8::from(succeeded)])?;
        }
    }
    Ok(())
}

fn put(out: &mut dyn Write, number: i64) -> io::Result<()> {
    out.write_all(&number.to_le_bytes())
}
