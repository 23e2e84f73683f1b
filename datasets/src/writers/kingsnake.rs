//! Writes our own JSON Lines, which can express every history.

use std::io::{self, Write};

use kingsnake_solver::model::{History, Interval, Op, SessionId, Status, Token, TxnId, ValueId};
use rustc_hash::FxHashMap;

/// Writes a history; returns what is not kept.
pub(super) fn write(history: &History, out: &mut dyn Write) -> io::Result<Vec<String>> {
    let show = Show { history };
    write_initial(&show, out)?;
    write_version_orders(history, out)?;
    for txn in history.txns() {
        show.txn(out, txn)?;
    }
    let is_empty = |session: &usize| history.session_txns(SessionId(*session as u32)).is_empty();
    let n_empty = (0..history.n_sessions()).filter(is_empty).count();
    Ok(match n_empty {
        0 => Vec::new(),
        n => vec![format!("{n} sessions without transactions are left out")],
    })
}

/// Writes the version orders alone.
pub(super) fn write_version_orders(history: &History, out: &mut dyn Write) -> io::Result<()> {
    let show = Show { history };
    for order in history.version_orders() {
        out.write_all(b"{\"version_order\":{\"key\":")?;
        show.token(out, history.key_token(order.key))?;
        out.write_all(b",\"values\":")?;
        show.values(out, &order.values)?;
        out.write_all(b"}}\n")?;
    }
    Ok(())
}

/// The header, and a line for each key whose initial value is not initial everywhere.
fn write_initial(show: &Show<'_>, out: &mut dyn Write) -> io::Result<()> {
    let history = show.history;
    let all = || (0..history.n_values() as u32).map(ValueId);
    let mut everywhere: FxHashMap<Token, bool> = FxHashMap::default();
    for value in all() {
        let is = everywhere.entry(history.value_token(value)).or_insert(true);
        *is &= history.is_initial(value);
    }
    let mut tokens: Vec<Token> = all().map(|value| history.value_token(value)).collect();
    tokens.retain(|token| everywhere.get(token).copied().unwrap_or(false));
    tokens.sort_unstable();
    tokens.dedup();
    // Texts in the order of their symbols, numbers by size: the same history is written the same way.
    let many = tokens.len() > MOST_IN_HEADER;
    if many {
        tokens.clear();
    }
    out.write_all(b"{\"kingsnake\":1,\"initial\":")?;
    if let [token] = tokens[..] {
        show.token(out, token)?;
    } else {
        for (index, &token) in tokens.iter().enumerate() {
            out.write_all(if index == 0 { b"[" } else { b"," })?;
            show.token(out, token)?;
        }
        out.write_all(if tokens.is_empty() { b"[]" } else { b"]" })?;
    }
    out.write_all(b"}\n")?;
    for value in all().filter(|&value| history.is_initial(value)) {
        let token = history.value_token(value);
        if many || !everywhere[&token] {
            out.write_all(b"{\"initial\":{\"key\":")?;
            show.token(out, history.key_token(history.value_key(value)))?;
            out.write_all(b",\"value\":")?;
            show.token(out, token)?;
            out.write_all(b"}}\n")?;
        }
    }
    Ok(())
}

/// More initial values than this are those of single keys.
const MOST_IN_HEADER: usize = 4;

struct Show<'h> {
    history: &'h History,
}

impl Show<'_> {
    fn token(&self, out: &mut dyn Write, token: Token) -> io::Result<()> {
        match token {
            Token::Nil => out.write_all(b"null"),
            Token::Int(number) => write!(out, "{number}"),
            Token::Text(symbol) => Ok(serde_json::to_writer(
                out,
                self.history.symbols().text(symbol),
            )?),
        }
    }

    fn values(&self, out: &mut dyn Write, values: &[ValueId]) -> io::Result<()> {
        out.write_all(b"[")?;
        for (index, &value) in values.iter().enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            self.token(out, self.history.value_token(value))?;
        }
        out.write_all(b"]")
    }

    fn txn(&self, out: &mut dyn Write, txn: TxnId) -> io::Result<()> {
        let history = self.history;
        out.write_all(b"{\"id\":")?;
        self.token(out, history.txn_token(txn))?;
        out.write_all(b",\"session\":")?;
        self.token(out, history.session_token(history.session(txn)))?;
        match history.status(txn) {
            Status::Committed => {}
            Status::Aborted => out.write_all(b",\"status\":\"aborted\"")?,
            Status::Unknown => out.write_all(b",\"status\":\"unknown\"")?,
        }
        let Interval { begin, commit } = history.interval(txn);
        if begin != Interval::UNKNOWN.begin {
            write!(out, ",\"begin\":{begin}")?;
        }
        if commit != Interval::UNKNOWN.commit {
            write!(out, ",\"commit\":{commit}")?;
        }
        if let Some(level) = history.isolation(txn) {
            out.write_all(b",\"isolation\":")?;
            self.token(out, level)?;
        }
        out.write_all(b",\"ops\":[")?;
        for (index, &op) in history.ops(txn).iter().enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            self.op(out, op)?;
        }
        out.write_all(b"]}\n")
    }

    fn op(&self, out: &mut dyn Write, op: Op) -> io::Result<()> {
        let letter = match op {
            Op::Read { .. } => "r",
            Op::Write { .. } => "w",
            Op::Append { .. } => "a",
            Op::ReadList { .. } => "rl",
        };
        write!(out, "[\"{letter}\",")?;
        self.token(out, self.history.key_token(op.key()))?;
        out.write_all(b",")?;
        match op {
            Op::Read { value, .. } | Op::Write { value, .. } | Op::Append { value, .. } => {
                self.token(out, self.history.value_token(value))?;
            }
            Op::ReadList { list, .. } => self.values(out, self.history.list(list))?,
        }
        out.write_all(b"]")
    }
}
