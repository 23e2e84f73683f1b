//! Writes `r(key,value,session,txn)` and `w(key,value,session,txn)`, one operation per line.

use std::io::{self, Write};

use kingsnake_history::model::{History, Op, SessionId, Status, Token, TxnId};

use super::limits::{Limits, number, number_or_zero};
use crate::error::WriteError;

/// How the history will be written.
pub(super) struct TextPlan {
    keeps_names: bool,
    keeps_numbers: bool,
    pub(super) notes: Vec<String>,
}

/// Makes sure that the format can express the history.
pub(super) fn plan(history: &History) -> Result<TextPlan, WriteError> {
    let limits = Limits {
        history,
        format: "text",
    };
    let keeps_numbers = are_plain_numbers(history);
    let mut notes = if keeps_numbers {
        limits.plain_registers()?
    } else {
        limits.any_registers()?
    };
    let is_kept = |txn: TxnId| {
        let is_aborted = history.status(txn) == Status::Aborted;
        let is_write = |op: &Op| matches!(op, Op::Write { .. });
        history
            .ops(txn)
            .iter()
            .any(|op| !is_aborted || is_write(op))
    };
    if !history.txns().any(is_kept) {
        return limits.refuse("a history without operations: the file would be empty".to_owned());
    }
    let is_bare = |txn: &TxnId| history.ops(*txn).is_empty();
    let n_bare = history.txns().filter(is_bare).count();
    if n_bare > 0 {
        notes.push(format!(
            "{n_bare} transactions without operations are left out"
        ));
    }
    let is_aborted = |txn: &TxnId| history.status(*txn) == Status::Aborted;
    if history.txns().any(|txn| is_aborted(&txn)) {
        notes.push("of aborted transactions only the writes are kept, each on its own".to_owned());
    }
    let keeps_names = names_are_numbers(history) && !could_pass_for_initial(history);
    if !keeps_names {
        notes.push(
            "sessions and transactions are numbered from 1; their names are not kept".to_owned(),
        );
    }
    if !keeps_numbers {
        notes.push(
            "keys and values are numbered from 1: AWDIT and Plume read no texts and no negative numbers"
                .to_owned(),
        );
    }
    let is_silent = |session: usize| {
        let mut txns = history.session_txns(SessionId(session as u32)).map(TxnId);
        txns.all(|txn| is_bare(&txn))
    };
    let n_silent = (0..history.n_sessions())
        .filter(|&it| is_silent(it))
        .count();
    if n_silent > 0 {
        notes.push(format!(
            "{n_silent} sessions without operations are left out"
        ));
    }
    Ok(TextPlan {
        keeps_names,
        keeps_numbers,
        notes,
    })
}

/// Whether keys, and values that are not initial, are numbers that every reader of this format takes.
fn are_plain_numbers(history: &History) -> bool {
    let is_plain = |token: Token| matches!(token, Token::Int(0..));
    let mut ops = history.txns().flat_map(|txn| history.ops(txn));
    ops.all(|&op| match op {
        Op::Read { key, value } | Op::Write { key, value } => {
            let token = history.value_token(value);
            // An initial value is written as 0.
            is_plain(history.key_token(key)) && (is_plain(token) || history.is_initial(value))
        }
        _ => true,
    })
}

fn names_are_numbers(history: &History) -> bool {
    let session = |index: usize| history.session_token(SessionId(index as u32));
    let is_number = |token: Token| matches!(token, Token::Int(0..));
    let is_named =
        |txn: TxnId| is_number(history.txn_token(txn)) || history.status(txn) == Status::Aborted;
    (0..history.n_sessions()).all(|index| is_number(session(index))) && history.txns().all(is_named)
}

/// A reader takes a lone transaction 0 of session 0 that only writes for the initial state.
fn could_pass_for_initial(history: &History) -> bool {
    history.txns().any(|txn| {
        history.txn_token(txn) == Token::Int(0)
            && history.session_token(history.session(txn)) == Token::Int(0)
            && history.ops(txn).iter().all(|op| op.is_write())
    })
}

/// Writes a history that was checked.
pub(super) fn write(history: &History, plan: &TextPlan, out: &mut dyn Write) -> io::Result<()> {
    for txn in history.txns() {
        let (session, name) = if plan.keeps_names {
            let session = history.session_token(history.session(txn));
            (number(session), number(history.txn_token(txn)))
        } else {
            (i64::from(history.session(txn).0) + 1, i64::from(txn.0) + 1)
        };
        let is_aborted = history.status(txn) == Status::Aborted;
        let name = if is_aborted { -1 } else { name };
        for &op in history.ops(txn) {
            let (letter, key, value) = match op {
                Op::Read { .. } if is_aborted => continue,
                Op::Read { key, value } => ('r', key, value),
                Op::Write { key, value } => ('w', key, value),
                Op::Append { .. } | Op::ReadList { .. } | Op::Range { .. } => continue,
            };
            let (key, value) = if plan.keeps_numbers {
                (
                    number(history.key_token(key)),
                    number_or_zero(history, value),
                )
            } else if history.is_initial(value) {
                (i64::from(key.0) + 1, 0)
            } else {
                (i64::from(key.0) + 1, i64::from(value.0) + 1)
            };
            writeln!(out, "{letter}({key},{value},{session},{name})")?;
        }
    }
    Ok(())
}
