//! Writes our own JSON Lines, which can express every history.

use std::io::{self, Write};
use std::ops::Bound;

use kingsnake_history::model::{
    CompareAndSet, CompareOutcome, History, Interval, Op, RangeQuery, SessionId, Status, Token,
    TxnId, ValueId,
};
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
        out.write_all(b",\"values\":[")?;
        for (index, &value) in order.values.iter().enumerate() {
            if index > 0 {
                out.write_all(b",")?;
            }
            let is_named = history.is_tombstone(value);
            out.write_all(if is_named { b"{\"deleted\":" } else { b"" })?;
            show.token(out, show.named(value))?;
            out.write_all(if is_named { b"}" } else { b"" })?;
        }
        out.write_all(b"]}}\n")?;
    }
    Ok(())
}

/// The header, and a line for each key whose initial value is not initial everywhere.
fn write_initial(show: &Show<'_>, out: &mut dyn Write) -> io::Result<()> {
    let history = show.history;
    let is_plain = |value: &ValueId| history.object_row(history.value_key(*value)).is_none();
    let all = || (0..history.n_values() as u32).map(ValueId).filter(is_plain);
    let mut everywhere: FxHashMap<Token, bool> = FxHashMap::default();
    for value in all() {
        let token = history.value_token(value);
        let is = everywhere.entry(token).or_insert(true);
        // Where ranges are queried, a value in the header would give every key a row.
        let may_be =
            !rows_matter(history) || token == Token::Nil || history.initial_of_all() == Some(token);
        *is &= history.is_initial(value) && may_be;
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
    if rows_matter(history)
        && let Some(token) = history.initial_of_all()
        && !tokens.contains(&token)
    {
        tokens.push(token);
    }
    if history.has_objects() && all().next().is_none() {
        tokens.push(Token::Nil);
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
    show.tables(out)?;
    out.write_all(b"}\n")?;
    for value in all().filter(|&value| history.is_initial(value)) {
        let token = show.named(value);
        if many || history.has_row(value) || !everywhere.get(&token).copied().unwrap_or(false) {
            out.write_all(b"{\"initial\":{\"key\":")?;
            show.token(out, history.key_token(history.value_key(value)))?;
            out.write_all(b",\"value\":")?;
            show.token(out, token)?;
            show.row(out, ",\"row\":", value)?;
            out.write_all(b"}}\n")?;
        }
    }
    for event in history.events() {
        write!(out, "{{\"event\":{{\"time\":{},\"what\":", event.time)?;
        show.token(out, event.what)?;
        out.write_all(b"}}\n")?;
    }
    Ok(())
}

/// Whether it matters which keys have a row at first.
fn rows_matter(history: &History) -> bool {
    history.n_ranges() > 0 || !history.tables().is_empty()
}

/// More initial values than this are those of single keys.
const MOST_IN_HEADER: usize = 4;

pub(super) struct Show<'h> {
    pub(super) history: &'h History,
}

impl Show<'_> {
    pub(super) fn token(&self, out: &mut dyn Write, token: Token) -> io::Result<()> {
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
            self.token(out, self.named(value))?;
        }
        out.write_all(b"]")
    }

    /// A value's name: nothing for one that a producer has for it.
    fn named(&self, value: ValueId) -> Token {
        let history = self.history;
        let is_nothing = history.n_ranges() > 0
            && history.is_initial(value)
            && !history.is_there_initially(history.value_key(value));
        if is_nothing {
            return Token::Nil;
        }
        history.value_token(value)
    }

    /// What a collector noted beside a transaction.
    fn note(&self, out: &mut dyn Write, txn: TxnId) -> io::Result<()> {
        let note = self.history.note(txn);
        for (field, token) in [(",\"node\":", note.node), (",\"name\":", note.name)] {
            if token != Token::Nil {
                out.write_all(field.as_bytes())?;
                self.token(out, token)?;
            }
        }
        match note.snapshots {
            // It is the text of an array already.
            Token::Text(text) => {
                write!(out, ",\"snapshots\":{}", self.history.symbols().text(text))
            }
            _ => Ok(()),
        }
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
        self.note(out, txn)?;
        self.stamps(out, txn)?;
        out.write_all(b",\"ops\":[")?;
        let ops = history.ops(txn);
        let mut compares = history.compares(txn).iter().peekable();
        let mut predicates = history.predicates(txn).peekable();
        let (mut index, mut first) = (0, true);
        loop {
            let predicate = predicates.next_if(|it| it.at as usize == index);
            let compare = compares.next_if(|it| predicate.is_none() && it.at as usize == index);
            if predicate.is_none() && compare.is_none() && index == ops.len() {
                break;
            }
            out.write_all(if first { b"" } else { b"," })?;
            first = false;
            if let Some(predicate) = predicate {
                let end = index + predicate.n_ops as usize;
                self.predicate(out, predicate, &ops[index..end])?;
                index = end;
            } else if let Some(compare) = compare {
                self.compare(out, compare)?;
                index += compare.outcome.n_ops();
            } else {
                self.op(out, ops[index], history.is_insert(txn, index))?;
                index += 1;
            }
        }
        out.write_all(b"]}\n")
    }

    fn compare(&self, out: &mut dyn Write, compare: &CompareAndSet) -> io::Result<()> {
        out.write_all(b"[\"cas\",")?;
        self.token(out, self.history.key_token(compare.key))?;
        for value in [compare.expected, compare.new] {
            out.write_all(b",")?;
            self.token(out, self.named(value))?;
        }
        match compare.outcome {
            CompareOutcome::Applied => {}
            CompareOutcome::Refused => out.write_all(b",false")?,
            CompareOutcome::Shown(current) => {
                out.write_all(b",false,")?;
                self.token(out, self.named(current))?;
            }
        }
        out.write_all(b"]")
    }

    fn op(&self, out: &mut dyn Write, op: Op, is_insert: bool) -> io::Result<()> {
        let history = self.history;
        let row = op.key().and_then(|key| history.object_row(key));
        if let Some((kind, name, part)) = row {
            return self.object_write(out, kind, name, part);
        }
        let word = match op {
            Op::Read { .. } => "r",
            Op::Write { value, .. } if history.is_absence(value) => "delete",
            Op::Write { .. } if is_insert => "insert",
            Op::Write { .. } => "w",
            Op::Append { .. } => "a",
            Op::ReadList { .. } => "rl",
            Op::Range { .. } => "range",
        };
        write!(out, "[\"{word}\",")?;
        if let Some(key) = op.key() {
            self.token(out, history.key_token(key))?;
        }
        match op {
            Op::Read { value, .. } if history.is_tombstone(value) => {
                out.write_all(b",null,")?;
                self.token(out, history.value_token(value))?;
            }
            Op::Write { value, .. } if history.is_absence(value) => {
                if history.is_tombstone(value) {
                    out.write_all(b",")?;
                    self.token(out, history.value_token(value))?;
                }
            }
            Op::Read { value, .. } | Op::Write { value, .. } | Op::Append { value, .. } => {
                out.write_all(b",")?;
                self.token(out, self.named(value))?;
                if op.is_write() {
                    self.row(out, ",", value)?;
                }
            }
            Op::ReadList { list, .. } => {
                out.write_all(b",")?;
                self.values(out, history.list(list))?;
            }
            Op::Range { range } => self.range(out, history.range(range))?,
        }
        out.write_all(b"]")
    }

    fn range(&self, out: &mut dyn Write, query: RangeQuery<'_>) -> io::Result<()> {
        self.bound(out, query.span.low(), "after")?;
        out.write_all(b",")?;
        self.bound(out, query.span.high(), "before")?;
        let is_deleted = |row: &ValueId| self.history.is_tombstone(*row);
        let (deleted, live): (Vec<ValueId>, Vec<ValueId>) =
            query.rows.iter().partition(|row| is_deleted(row));
        self.rows(out, &live)?;
        if query.shows_deleted {
            self.rows(out, &deleted)?;
        }
        Ok(())
    }

    fn bound(&self, out: &mut dyn Write, bound: Bound<Token>, word: &str) -> io::Result<()> {
        match bound {
            Bound::Unbounded => out.write_all(b"null"),
            Bound::Included(key) => self.token(out, key),
            Bound::Excluded(key) => {
                write!(out, "{{\"{word}\":")?;
                self.token(out, key)?;
                out.write_all(b"}")
            }
        }
    }

    fn rows(&self, out: &mut dyn Write, rows: &[ValueId]) -> io::Result<()> {
        out.write_all(b",[")?;
        for (index, &row) in rows.iter().enumerate() {
            out.write_all(if index == 0 { b"[" } else { b",[" })?;
            self.token(out, self.history.key_token(self.history.value_key(row)))?;
            out.write_all(b",")?;
            self.token(out, self.history.value_token(row))?;
            out.write_all(b"]")?;
        }
        out.write_all(b"]")
    }
}
