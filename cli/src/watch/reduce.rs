//! Turns lines of the log into transactions of a watcher: keys, sessions and values become numbers, and what concerns a
//! single transaction is judged at once.

use std::hash::{DefaultHasher, Hasher};

use anyhow::{Result, anyhow, bail};
use kingsnake_datasets::{Format, Place, read_bytes};
use kingsnake_history::model::{History, Op, SessionId, Status, Token, TxnId, ValueId};
use kingsnake_watch::{KeyNumber, ValueName};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Numbers for names, in the order of first use.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Numbers {
    ints: FxHashMap<i64, u32>,
    texts: FxHashMap<Box<str>, u32>,
    nil: Option<u32>,
    n_names: u32,
}

impl Numbers {
    /// The number of a name, assigned if it is new.
    pub fn number(&mut self, history: &History, name: Token) -> u32 {
        let next = self.n_names;
        let number = match name {
            Token::Nil => *self.nil.get_or_insert(next),
            Token::Int(int) => *self.ints.entry(int).or_insert(next),
            Token::Text(symbol) => return self.text(history.symbols().text(symbol)),
        };
        self.n_names += u32::from(number == next);
        number
    }

    /// The number of a text.
    pub fn text(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.texts.get(text) {
            return number;
        }
        self.texts.insert(text.into(), self.n_names);
        self.n_names += 1;
        self.n_names - 1
    }

    /// The number of a name as JSON.
    pub fn json(&mut self, name: &serde_json::Value) -> Result<u32> {
        let next = self.n_names;
        let number = match name {
            serde_json::Value::Null => *self.nil.get_or_insert(next),
            serde_json::Value::String(text) => return Ok(self.text(text)),
            other => {
                let int = other.as_i64();
                let int = int.ok_or_else(|| anyhow!("a name is a whole number or a text"))?;
                *self.ints.entry(int).or_insert(next)
            }
        };
        self.n_names += u32::from(number == next);
        Ok(number)
    }

    /// The name of a number, for messages.
    pub fn name(&self, number: u32) -> String {
        let int = self.ints.iter().find(|it| *it.1 == number);
        let text = self.texts.iter().find(|it| *it.1 == number);
        match (int, text) {
            (Some((int, _)), _) => int.to_string(),
            (_, Some((text, _))) => text.to_string(),
            _ => "null".to_owned(),
        }
    }

    /// Number of names.
    pub fn len(&self) -> usize {
        self.n_names as usize
    }
}

/// A value's code: numbers, null and short texts as they are, longer texts by a hash of 120 bits.
pub fn value_name(history: &History, value: Token) -> ValueName {
    match value {
        Token::Nil => 1 << 120,
        Token::Int(int) => ValueName::from(int as u64),
        Token::Text(symbol) => text_name(history.symbols().text(symbol)),
    }
}

/// The same for a value as JSON.
pub fn json_value_name(value: &serde_json::Value) -> Result<ValueName> {
    match value {
        serde_json::Value::Null => Ok(1 << 120),
        serde_json::Value::String(text) => Ok(text_name(text)),
        other => {
            let int = other.as_i64();
            let int = int.ok_or_else(|| anyhow!("a value is a whole number, a text or null"))?;
            Ok(ValueName::from(int as u64))
        }
    }
}

fn text_name(text: &str) -> ValueName {
    let bytes = text.as_bytes();
    if bytes.len() <= 14 {
        let packed = bytes
            .iter()
            .fold(0, |all, &it| all << 8 | ValueName::from(it));
        return ValueName::from(2 + bytes.len() as u8) << 120 | packed;
    }
    let hash = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        hasher.write_u8(salt);
        hasher.write(bytes);
        ValueName::from(hasher.finish())
    };
    0x20 << 120 | (hash(1) << 64 | hash(2)) >> 8
}

/// A transaction's code: small numbers as they are, others by a number in a table.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct TxnNames {
    other: FxHashMap<u64, String>,
    next: u64,
    /// Table size at which unused entries are removed.
    most: usize,
}

const OTHER: u64 = 1 << 63;

impl TxnNames {
    fn id(&mut self, history: &History, txn: TxnId) -> u64 {
        match history.txn_token(txn) {
            Token::Int(int) if int >= 0 => int as u64,
            name => {
                let name = match name {
                    Token::Text(symbol) => {
                        serde_json::Value::from(history.symbols().text(symbol)).to_string()
                    }
                    Token::Int(int) => int.to_string(),
                    Token::Nil => "null".to_owned(),
                };
                self.next += 1;
                self.other.insert(OTHER | self.next, name);
                OTHER | self.next
            }
        }
    }

    /// The name as JSON.
    pub fn json(&self, id: u64) -> String {
        self.other
            .get(&id)
            .cloned()
            .unwrap_or_else(|| id.to_string())
    }

    /// Removes the names of all but these, from time to time.
    pub fn retain(&mut self, kept: impl Fn() -> Vec<u64>) {
        if self.other.len() > self.most.max(10_000) {
            let kept: rustc_hash::FxHashSet<u64> = kept().into_iter().collect();
            self.other.retain(|id, _| kept.contains(id));
            self.most = 2 * self.other.len();
        }
    }
}

/// A transaction as it was logged.
#[derive(Clone, Debug)]
pub struct LoggedTxn {
    pub id: u64,
    pub session: u32,
    pub begin: i64,
    pub commit: Option<i64>,
    pub status: Status,
    pub start_ts: Option<i64>,
    pub commit_ts: Option<i64>,
    /// For each key that it read before writing it, the value.
    pub reads: Vec<(KeyNumber, ValueName)>,
    /// For each key that it wrote, the last value.
    pub writes: Vec<(KeyNumber, ValueName)>,
    /// Whether its own reads contradict each other or its writes.
    pub is_broken: bool,
}

/// All names of a log.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LogNames {
    pub keys: Numbers,
    pub sessions: Numbers,
    pub txns: TxnNames,
}

/// Values of single keys that mean the initial state.
pub type InitialValues = Vec<(KeyNumber, ValueName)>;

impl LogNames {
    /// Reads whole lines. `header` is a line; `line` is the number of the first line after it.
    pub fn read(
        &mut self,
        header: &str,
        lines: &[u8],
        file: &str,
        line: u64,
    ) -> Result<(Vec<LoggedTxn>, InitialValues)> {
        let mut bytes = Vec::with_capacity(header.len() + 1 + lines.len());
        bytes.extend_from_slice(header.as_bytes());
        bytes.push(b'\n');
        bytes.extend_from_slice(lines);
        let parsed = read_bytes(Format::Kingsnake, &bytes, file).map_err(|error| {
            let at = match error.place() {
                Place::Line(at) if at > 1 => line + at as u64 - 2,
                _ => line,
            };
            anyhow!("{file}, line {at}: {}", error.problem())
        })?;
        let history = parsed.history;
        expect_plain(&history, file, line)?;
        let mut keys = vec![u32::MAX; history.n_keys()];
        let mut txns = Vec::with_capacity(history.n_txns());
        for session in 0..history.n_sessions() as u32 {
            let session = SessionId(session);
            let number = self
                .sessions
                .number(&history, history.session_token(session));
            for txn in history.session_txns(session) {
                let txn = TxnId(txn);
                let logged = self.reduce(&history, txn, number, &mut keys)?;
                txns.push(logged);
            }
        }
        let initial = if memchr::memmem::find(lines, b"{\"initial\"").is_some() {
            self.initial_values(&history)
        } else {
            Vec::new()
        };
        Ok((txns, initial))
    }

    /// The values of single keys that mean the initial state.
    fn initial_values(&mut self, history: &History) -> InitialValues {
        let values = (0..history.n_values() as u32).map(ValueId);
        let mut found = Vec::new();
        for value in values.filter(|&it| history.is_initial(it)) {
            let token = history.value_token(value);
            let key = history.key_token(history.value_key(value));
            found.push((self.keys.number(history, key), value_name(history, token)));
        }
        found
    }

    fn reduce(
        &mut self,
        history: &History,
        txn: TxnId,
        session: u32,
        keys: &mut [u32],
    ) -> Result<LoggedTxn> {
        let interval = history.interval(txn);
        let stamps = history.stamps(txn);
        let ops = history.ops(txn);
        let mut logged = LoggedTxn {
            id: self.txns.id(history, txn),
            session,
            begin: interval.begin,
            commit: (interval.commit != i64::MAX).then_some(interval.commit),
            status: history.status(txn),
            start_ts: stamps.start_ts,
            commit_ts: stamps.commit_ts,
            reads: Vec::with_capacity(ops.len()),
            writes: Vec::with_capacity(ops.len()),
            is_broken: false,
        };
        for &op in ops {
            let (Op::Read { key, value } | Op::Write { key, value }) = op else {
                bail!(
                    "transaction {}: lists and range queries are not watched; `kingsnake check` takes them",
                    history.txn_name(txn)
                );
            };
            if op.is_write() && history.is_absence(value) {
                bail!(
                    "transaction {}: deletes are not watched; `kingsnake check` takes them",
                    history.txn_name(txn)
                );
            }
            let number = &mut keys[key.index()];
            if *number == u32::MAX {
                *number = self.keys.number(history, history.key_token(key));
            }
            let at = (*number, value_name(history, history.value_token(value)));
            let own = logged.writes.iter_mut().find(|it| it.0 == at.0);
            match (op.is_write(), own) {
                (true, Some(own)) => own.1 = at.1,
                (true, None) => logged.writes.push(at),
                (false, Some(own)) => logged.is_broken |= own.1 != at.1,
                (false, None) => match logged.reads.iter().find(|it| it.0 == at.0) {
                    Some(read) => logged.is_broken |= read.1 != at.1,
                    None => logged.reads.push(at),
                },
            }
        }
        Ok(logged)
    }
}

fn expect_plain(history: &History, file: &str, line: u64) -> Result<()> {
    let what = if history.n_predicates() > 0 || !history.tables().is_empty() {
        "tables and conditions"
    } else if !history.version_orders().is_empty() {
        "version orders"
    } else if history.n_ranges() > 0 {
        "range queries"
    } else {
        return Ok(());
    };
    bail!("{file}, from line {line}: {what} are not watched; `kingsnake check` takes them")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_differ_have_names_that_differ() {
        let texts = [
            "",
            "\0",
            "a",
            "b",
            "aa",
            "fourteen chars",
            "more than fourteen",
            "more than fourteem",
        ];
        let mut names: Vec<ValueName> = texts.iter().map(|it| text_name(it)).collect();
        names.push(ValueName::from(u64::MAX));
        names.push(1 << 120);
        let n_names = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_names);
    }
}
