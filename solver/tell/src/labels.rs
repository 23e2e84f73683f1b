//! The names of transactions, sessions, keys and values in a story, shortened if they are long.
//!
//! Invariant: two things of one kind never get the same label within a story; shortened names are listed in a legend.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::FxHashMap;

use crate::model::{
    CompareAndSet, CompareOutcome, History, KeyId, Op, RangeQuery, SessionId, Status, Token, TxnId,
    ValueId,
};

/// Longer numbers are shown as the last digits of their hexadecimal form.
const LONGEST_NUMBER: usize = 9;
/// The middle of longer texts is omitted.
const LONGEST_TEXT: usize = 24;

/// More rows of a range query are counted.
const MOST_ROWS: usize = 8;

/// The label of a long initial value.
pub(super) const INITIAL: &str = "initial";

/// The labels of everything that some transactions touch.
pub struct Labels<'h> {
    history: &'h History,
    txns: FxHashMap<Token, String>,
    sessions: FxHashMap<Token, String>,
    keys: FxHashMap<Token, String>,
    values: FxHashMap<Token, String>,
    /// The legend: label and full name.
    pub legend: Vec<(String, String)>,
}

impl<'h> Labels<'h> {
    /// Labels everything that these transactions touch.
    pub fn new(history: &'h History, txns: &[TxnId]) -> Self {
        let txn_names: BTreeSet<Token> = txns.iter().map(|&txn| history.txn_token(txn)).collect();
        let sessions = txns.iter().map(|&txn| history.session(txn));
        let sessions = sessions.map(|session| history.session_token(session));
        let mut keys = BTreeSet::new();
        let mut values = BTreeSet::new();
        let mut initials = BTreeSet::new();
        let is_initial = |value: ValueId| history.is_initial(value);
        for op in txns.iter().flat_map(|&txn| history.ops(txn)) {
            keys.extend(op.key().map(|key| history.key_token(key)));
            match *op {
                Op::Read { value, .. } if is_initial(value) => {
                    initials.insert(history.value_token(value));
                }
                Op::Read { value, .. } | Op::Write { value, .. } | Op::Append { value, .. } => {
                    values.insert(history.value_token(value));
                }
                Op::ReadList { list, .. } => {
                    values.extend(history.list(list).iter().map(|&it| history.value_token(it)));
                }
                Op::Range { range } => {
                    for &row in history.range(range).rows {
                        keys.insert(history.key_token(history.value_key(row)));
                        let names = if is_initial(row) {
                            &mut initials
                        } else {
                            &mut values
                        };
                        names.insert(history.value_token(row));
                    }
                }
            }
        }
        let mut legend = Vec::new();
        let mut shorten = |names: BTreeSet<Token>| shorten(history, &names, &mut legend);
        let (txns, sessions) = (shorten(txn_names), shorten(sessions.collect()));
        let (keys, mut values) = (shorten(keys), shorten(values));
        let mut untold = Vec::new();
        values.extend(self::shorten(history, &initials, &mut untold));
        Labels {
            history,
            txns,
            sessions,
            keys,
            values,
            legend,
        }
    }

    fn label(&self, labels: &FxHashMap<Token, String>, token: Token) -> String {
        let known = labels.get(&token).cloned();
        known.unwrap_or_else(|| self.history.symbols().spell(token))
    }

    /// A transaction; a number gets a `T` in front.
    pub fn txn(&self, txn: TxnId) -> String {
        let token = self.history.txn_token(txn);
        let label = self.label(&self.txns, token);
        match label.chars().next() {
            Some(first) if first.is_ascii_alphabetic() => label,
            _ => format!("T{label}"),
        }
    }

    /// A session.
    pub fn session(&self, session: SessionId) -> String {
        let token = self.history.session_token(session);
        self.label(&self.sessions, token)
    }

    /// A key; a number gets a `k` in front, so that it does not look like a value.
    pub fn key(&self, key: KeyId) -> String {
        let token = self.history.key_token(key);
        let label = self.label(&self.keys, token);
        match token {
            Token::Int(_) => format!("k{label}"),
            Token::Nil | Token::Text(_) => label,
        }
    }

    /// A value. If a producer marks the initial state by a magic number, it is shown as `initial`.
    pub fn value(&self, value: ValueId) -> String {
        let token = self.history.value_token(value);
        let label = self.label(&self.values, token);
        if self.history.is_initial(value) && label.starts_with('#') {
            return INITIAL.to_owned();
        }
        label
    }

    /// An operation of a transaction: `read x = 1`, `wrote x = 1`, `inserted x = 1`, `deleted x`, `appended 1 to x`,
    /// `read x = [1, 2]`, `queried [1, 9]: k3 = 1`. Of a query's long answer, these keys are shown.
    pub fn operation(&self, txn: TxnId, at: usize, op: Op, keys: &[KeyId]) -> String {
        if let Some(refused) = self.refused(txn, at) {
            return format!(
                "compare-and-set of {} from {} to {}, which failed",
                self.key(refused.key),
                self.value(refused.expected),
                self.value(refused.new)
            );
        }
        match op {
            Op::Read { value, .. } if self.history.is_tombstone(value) => {
                format!("found {}", self.row(value))
            }
            Op::Read { value, .. } => format!("read {}", self.row(value)),
            Op::Write { key, value } if self.history.is_absence(value) => {
                format!("deleted {}", self.key(key))
            }
            Op::Write { value, .. } if self.history.is_insert(txn, at) => {
                format!("inserted {}", self.row(value))
            }
            Op::Write { value, .. } => format!("wrote {}", self.row(value)),
            Op::Append { key, value } => {
                format!("appended {} to {}", self.value(value), self.key(key))
            }
            Op::ReadList { key, list } => {
                let list = self.list(self.history.list(list));
                format!("read {} = {list}", self.key(key))
            }
            Op::Range { range } => self.range(self.history.range(range), keys),
        }
    }

    /// The failed compare-and-set that would have written here.
    pub(super) fn refused(&self, txn: TxnId, at: usize) -> Option<&CompareAndSet> {
        if self.history.status(txn) != Status::Aborted {
            return None;
        }
        let is_here =
            |it: &&CompareAndSet| it.outcome == CompareOutcome::Refused && it.at as usize == at;
        self.history.compares(txn).iter().find(is_here)
    }

    /// A key with its value, or that it is deleted, and by which delete if that is known.
    pub fn row(&self, value: ValueId) -> String {
        let key = self.key(self.history.value_key(value));
        if self.history.is_tombstone(value) {
            return format!("{key} deleted ({})", self.value(value));
        }
        format!("{key} = {}", self.value(value))
    }

    /// A range query with its answer; of a long one only the rows of these keys.
    pub fn range(&self, query: RangeQuery<'_>, keys: &[KeyId]) -> String {
        let span = self.span(query);
        let is_kept = |row: &ValueId| keys.contains(&self.history.value_key(*row));
        let room = MOST_ROWS.saturating_sub(query.rows.iter().filter(|row| is_kept(row)).count());
        let mut n_others = 0;
        let mut shown: Vec<String> = Vec::new();
        for &row in query.rows {
            n_others += usize::from(!is_kept(&row));
            if is_kept(&row) || n_others <= room {
                shown.push(self.row(row));
            }
        }
        if n_others > room {
            shown.push(format!("{} more", n_others - room));
        }
        if shown.is_empty() {
            return format!("queried {span}: nothing");
        }
        format!("queried {span}: {}", shown.join(", "))
    }

    /// The queried keys, as an interval.
    pub fn span(&self, query: RangeQuery<'_>) -> String {
        query.span.show(|token| self.label(&self.keys, token))
    }

    /// A list; a long one keeps its end, where lists differ.
    pub fn list(&self, values: &[ValueId]) -> String {
        let hidden = if values.len() > 8 {
            values.len() - 6
        } else {
            0
        };
        let mut shown: Vec<String> = values[hidden..].iter().map(|&it| self.value(it)).collect();
        if hidden > 0 {
            shown.insert(0, format!("… {hidden} more …"));
        }
        format!("[{}]", shown.join(", "))
    }
}

/// Labels names of one kind; what is shortened goes to the legend.
fn shorten(
    history: &History,
    names: &BTreeSet<Token>,
    legend: &mut Vec<(String, String)>,
) -> FxHashMap<Token, String> {
    let full = |token: Token| history.symbols().spell(token);
    for n_digits in [6, 8, 10, 12, 16] {
        let mut taken: BTreeMap<String, Token> = BTreeMap::new();
        let labels: FxHashMap<Token, String> = names
            .iter()
            .map(|&token| (token, short(token, &full(token), n_digits)))
            .collect();
        let clash = labels
            .iter()
            .any(|(&token, label)| taken.insert(label.clone(), token).is_some());
        if clash {
            continue;
        }
        let shortened = taken.into_iter().map(|(label, token)| (label, full(token)));
        legend.extend(shortened.filter(|(label, full)| label != full));
        return labels;
    }
    numbered(history, names)
}

/// Names as shown; shortened names that would be equal are kept longer, or numbered if they are still equal.
fn numbered(history: &History, names: &BTreeSet<Token>) -> FxHashMap<Token, String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut labels = FxHashMap::default();
    for &token in names {
        let mut label = history.symbols().spell(token);
        let n_alike = seen.entry(label.clone()).or_default();
        *n_alike += 1;
        if *n_alike > 1 {
            label = format!("{label} no. {n_alike}");
        }
        labels.insert(token, label);
    }
    labels
}

fn short(token: Token, full: &str, n_digits: usize) -> String {
    match token {
        Token::Int(number) if full.len() > LONGEST_NUMBER => {
            let hex = format!("{number:016x}");
            format!("#{}", &hex[16 - n_digits..])
        }
        Token::Text(_) if full.chars().count() > LONGEST_TEXT => {
            let head: String = full.chars().take(n_digits + 4).collect();
            let tail: Vec<char> = full.chars().rev().take(6).collect();
            let tail: String = tail.into_iter().rev().collect();
            format!("{head}…{tail}")
        }
        _ => full.to_owned(),
    }
}
