//! Writes Jepsen histories in EDN and JSON: an invocation and a completion a transaction, or, where no times are known,
//! completions alone, so that reading them again finds no times either.

use std::io::{self, Write};

use kingsnake_history::model::{CompareOutcome, History, Op, Status, Token, TxnId, ValueId};

use super::limits::Limits;
use crate::error::WriteError;

/// What is written, settled before the first byte.
pub(super) struct JepsenPlan {
    is_json: bool,
    /// Whether every transaction is one read, write or compare-and-set of a register.
    registers: bool,
    /// The events: their times, transactions, and whether they are completions.
    events: Vec<(i64, TxnId, bool)>,
    pub(super) notes: Vec<String>,
}

/// Makes sure that the format can say all that bears on a verdict.
pub(super) fn plan(
    history: &History,
    is_json: bool,
    format: &'static str,
) -> Result<JepsenPlan, WriteError> {
    let limits = Limits { history, format };
    if history.n_txns() == 0 {
        return limits.refuse("an empty history".to_owned());
    }
    limits.no_rows()?;
    limits.no_extras()?;
    let registers = !history.all_compares().is_empty();
    let is_list = |op: &Op| matches!(op, Op::Append { .. } | Op::ReadList { .. });
    let all = || {
        history
            .txns()
            .flat_map(|txn| history.ops(txn).iter().map(move |op| (txn, op)))
    };
    let has_lists = all().any(|(_, op)| is_list(op));
    for (txn, op) in all() {
        let name = || history.txn_name(txn);
        if has_lists && !is_list(op) {
            return limits.refuse(format!(
                "registers beside lists (transaction {} has one)",
                name()
            ));
        }
        match *op {
            Op::Write { value, .. } if history.is_initial(value) => {
                return limits.refuse(format!(
                    "a write of an initial value (transaction {})",
                    name()
                ));
            }
            Op::Read { value, .. }
                if !registers
                    && history.status(txn) == Status::Unknown
                    && shown(history, value) == Token::Nil =>
            {
                let what = "a read of nothing by a transaction whose end is unknown";
                return limits.refuse(format!("{what} (transaction {})", name()));
            }
            _ => {}
        }
    }
    if registers {
        for txn in history.txns() {
            let n_others = history.ops(txn).len() + history.compares(txn).len();
            let is_one = match history.compares(txn) {
                [] => history.ops(txn).len() == 1,
                [one] => match one.outcome {
                    CompareOutcome::Applied => n_others == 3,
                    CompareOutcome::Refused => history.status(txn) == Status::Aborted,
                    CompareOutcome::Shown(_) => false,
                },
                _ => false,
            };
            if !is_one {
                let name = history.txn_name(txn);
                return limits.refuse(format!(
                    "compare-and-sets beside other operations, or that were refused (transaction {name})"
                ));
            }
        }
    }
    let events = events(history, &limits)?;
    Ok(JepsenPlan {
        is_json,
        registers,
        events,
        notes: vec!["transactions are named by the index of their last event".to_owned()],
    })
}

/// The events in the order in which they are written.
fn events(history: &History, limits: &Limits<'_>) -> Result<Vec<(i64, TxnId, bool)>, WriteError> {
    if !history.has_times() {
        return Ok(history.txns().map(|txn| (0, txn, true)).collect());
    }
    let mut events = Vec::with_capacity(2 * history.n_txns());
    for txn in history.txns() {
        let interval = history.interval(txn);
        let is_open = history.status(txn) == Status::Unknown;
        if interval.begin == i64::MIN || (interval.commit == i64::MAX && !is_open) {
            let name = history.txn_name(txn);
            return limits.refuse(format!(
                "times of some transactions only (transaction {name} lacks one)"
            ));
        }
        let next = TxnId(txn.0 + 1);
        let follows =
            next.index() < history.n_txns() && history.session(next) == history.session(txn);
        if follows && (is_open || history.interval(next).begin < interval.commit) {
            let name = history.txn_name(txn);
            return limits.refuse(format!(
                "a session that goes on before a transaction of it has ended (transaction {name})"
            ));
        }
        events.push((interval.begin, txn, false));
        events.push((
            if is_open {
                interval.begin
            } else {
                interval.commit
            },
            txn,
            true,
        ));
    }
    events.sort_unstable();
    Ok(events)
}

/// A value, nothing for an initial one.
fn shown(history: &History, value: ValueId) -> Token {
    if history.is_initial(value) {
        return Token::Nil;
    }
    history.value_token(value)
}

/// Writes the events.
pub(super) fn write(history: &History, plan: &JepsenPlan, out: &mut dyn Write) -> io::Result<()> {
    let show = ShowEdn {
        history,
        is_json: plan.is_json,
        registers: plan.registers,
    };
    out.write_all(if plan.is_json { b"[" } else { b"" })?;
    for (index, &(time, txn, is_end)) in plan.events.iter().enumerate() {
        if index > 0 {
            out.write_all(if plan.is_json { b",\n" } else { b"\n" })?;
        }
        show.event(out, index, time, txn, is_end)?;
    }
    out.write_all(if plan.is_json { b"]\n" } else { b"\n" })
}

struct ShowEdn<'h> {
    history: &'h History,
    is_json: bool,
    registers: bool,
}

impl ShowEdn<'_> {
    fn event(
        &self,
        out: &mut dyn Write,
        index: usize,
        time: i64,
        txn: TxnId,
        is_end: bool,
    ) -> io::Result<()> {
        let kind = match (is_end, self.history.status(txn)) {
            (false, _) => "invoke",
            (true, Status::Committed) => "ok",
            (true, Status::Aborted) => "fail",
            (true, Status::Unknown) => "info",
        };
        let session = self.history.session(txn);
        let process = match self.history.session_token(session) {
            Token::Int(number) if self.are_numbers() => number,
            _ => i64::from(session.0),
        };
        if self.is_json {
            write!(out, "{{\"type\":\"{kind}\",\"process\":{process}")?;
        } else {
            write!(out, "{{:type :{kind}, :process {process}")?;
        }
        if self.history.has_times() {
            self.field(out, "time")?;
            write!(out, "{time}")?;
        }
        self.field(out, "index")?;
        write!(out, "{index}")?;
        self.field(out, "f")?;
        self.word(out, self.f(txn))?;
        self.field(out, "value")?;
        if self.registers {
            self.register(out, txn, is_end)?;
        } else {
            self.steps(out, txn, is_end)?;
        }
        out.write_all(b"}")
    }

    /// Whether every session's name is a number, so that names can be kept.
    fn are_numbers(&self) -> bool {
        let sessions =
            (0..self.history.n_sessions() as u32).map(kingsnake_history::model::SessionId);
        let mut names = sessions.map(|it| self.history.session_token(it));
        names.all(|name| matches!(name, Token::Int(_)))
    }

    fn field(&self, out: &mut dyn Write, name: &str) -> io::Result<()> {
        if self.is_json {
            write!(out, ",\"{name}\":")
        } else {
            write!(out, ", :{name} ")
        }
    }

    fn word(&self, out: &mut dyn Write, word: &str) -> io::Result<()> {
        if self.is_json {
            write!(out, "\"{word}\"")
        } else {
            write!(out, ":{word}")
        }
    }

    fn space(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if self.is_json { b"," } else { b" " })
    }

    fn token(&self, out: &mut dyn Write, token: Token) -> io::Result<()> {
        match token {
            Token::Nil if self.is_json => out.write_all(b"null"),
            Token::Nil => out.write_all(b"nil"),
            Token::Int(number) => write!(out, "{number}"),
            // A text of JSON is one of EDN.
            Token::Text(symbol) => Ok(serde_json::to_writer(
                out,
                self.history.symbols().text(symbol),
            )?),
        }
    }

    fn f(&self, txn: TxnId) -> &'static str {
        if !self.registers {
            return "txn";
        }
        match (self.history.compares(txn), self.history.ops(txn)) {
            ([], [Op::Read { .. }]) => "read",
            ([], _) => "write",
            _ => "cas",
        }
    }

    /// `[key value]` or `[key [expected new]]`
    fn register(&self, out: &mut dyn Write, txn: TxnId, is_end: bool) -> io::Result<()> {
        let history = self.history;
        out.write_all(b"[")?;
        if let Some(compare) = history.compares(txn).first() {
            self.token(out, history.key_token(compare.key))?;
            self.space(out)?;
            out.write_all(b"[")?;
            self.token(out, shown(history, compare.expected))?;
            self.space(out)?;
            self.token(out, shown(history, compare.new))?;
            return out.write_all(b"]]");
        }
        if let Some(&(Op::Read { key, value } | Op::Write { key, value })) =
            history.ops(txn).first()
        {
            let is_read = matches!(history.ops(txn)[0], Op::Read { .. });
            self.token(out, history.key_token(key))?;
            self.space(out)?;
            let hidden = is_read && !is_end;
            self.token(
                out,
                if hidden {
                    Token::Nil
                } else {
                    shown(history, value)
                },
            )?;
        }
        out.write_all(b"]")
    }

    fn steps(&self, out: &mut dyn Write, txn: TxnId, is_end: bool) -> io::Result<()> {
        out.write_all(b"[")?;
        for (at, &op) in self.history.ops(txn).iter().enumerate() {
            if at > 0 {
                self.space(out)?;
            }
            out.write_all(b"[")?;
            self.step(out, op, is_end)?;
            out.write_all(b"]")?;
        }
        out.write_all(b"]")
    }

    fn step(&self, out: &mut dyn Write, op: Op, is_end: bool) -> io::Result<()> {
        let history = self.history;
        let (word, key) = match op {
            Op::Read { key, .. } | Op::ReadList { key, .. } => ("r", Some(key)),
            Op::Write { key, .. } => ("w", Some(key)),
            Op::Append { key, .. } => ("append", Some(key)),
            Op::Range { .. } => ("r", None),
        };
        self.word(out, word)?;
        self.space(out)?;
        self.token(out, key.map_or(Token::Nil, |key| history.key_token(key)))?;
        self.space(out)?;
        match op {
            Op::Read { .. } | Op::ReadList { .. } if !is_end => self.token(out, Token::Nil),
            Op::Read { value, .. } => self.token(out, shown(history, value)),
            Op::Write { value, .. } | Op::Append { value, .. } => {
                self.token(out, history.value_token(value))
            }
            Op::ReadList { list, .. } => {
                out.write_all(b"[")?;
                for (at, &item) in history.list(list).iter().enumerate() {
                    if at > 0 {
                        self.space(out)?;
                    }
                    self.token(out, history.value_token(item))?;
                }
                out.write_all(b"]")
            }
            Op::Range { .. } => Ok(()),
        }
    }
}
