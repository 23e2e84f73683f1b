//! Turns lines of the log into transactions of a watcher: keys, sessions and values become numbers, and what concerns a
//! single transaction is judged at once.

use std::hash::{DefaultHasher, Hasher};

use anyhow::{Result, anyhow, bail};
use kingsnake_datasets::{Format, Place, read_bytes};
use kingsnake_history::model::{History, Op, SessionId, Status, Token, TxnId, ValueId};
use kingsnake_watch::{EMPTY_LIST, KeyNumber, ValueName};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// So many bytes of lines are read by two threads.
const LARGE: usize = 1 << 16;

/// A name or a value, as it stands in the log.
#[derive(Clone, Copy)]
enum PlainToken<'a> {
    Nil,
    Int(i64),
    Text(&'a str),
}

impl<'a> PlainToken<'a> {
    fn token(history: &'a History, token: Token) -> Self {
        match token {
            Token::Nil => PlainToken::Nil,
            Token::Int(int) => PlainToken::Int(int),
            Token::Text(symbol) => PlainToken::Text(history.symbols().text(symbol)),
        }
    }

    fn json(value: &'a serde_json::Value) -> Result<Self> {
        Ok(match value {
            serde_json::Value::Null => PlainToken::Nil,
            serde_json::Value::String(text) => PlainToken::Text(text),
            other => {
                let int = other.as_i64();
                PlainToken::Int(
                    int.ok_or_else(|| anyhow!("expected a whole number, a text or null"))?,
                )
            }
        })
    }

    /// Numbers, nothing and short texts as they are, longer texts by a hash of 120 bits.
    fn packed(self) -> ValueName {
        match self {
            PlainToken::Nil => 1 << 120,
            PlainToken::Int(int) => ValueName::from(int as u64),
            PlainToken::Text(text) => packed_text(text),
        }
    }
}

/// Numbers for names, in the order of first use. A number that was given back is used again.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Numbers {
    ints: FxHashMap<i64, u32>,
    texts: FxHashMap<Box<str>, u32>,
    nil: Option<u32>,
    n_names: u32,
    #[serde(skip)]
    free: Vec<u32>,
    /// Names that got numbers since they were last asked for, once numbers were given back.
    #[serde(skip)]
    new: Option<Vec<(ValueName, u32)>>,
}

impl Numbers {
    /// The number of a name, assigned if it is new.
    pub fn number(&mut self, history: &History, name: Token) -> u32 {
        self.of(PlainToken::token(history, name))
    }

    /// The number of a name as JSON.
    pub fn json(&mut self, name: &serde_json::Value) -> Result<u32> {
        Ok(self.of(PlainToken::json(name)?))
    }

    fn of(&mut self, name: PlainToken<'_>) -> u32 {
        let known = match name {
            PlainToken::Nil => self.nil,
            PlainToken::Int(int) => self.ints.get(&int).copied(),
            PlainToken::Text(text) => self.texts.get(text).copied(),
        };
        if let Some(number) = known {
            return number;
        }
        let number = self.free.pop().unwrap_or(self.n_names);
        self.n_names = self.n_names.max(number + 1);
        match name {
            PlainToken::Nil => self.nil = Some(number),
            PlainToken::Int(int) => drop(self.ints.insert(int, number)),
            PlainToken::Text(text) => drop(self.texts.insert(text.into(), number)),
        }
        if let Some(new) = &mut self.new {
            new.push((name.packed(), number));
        }
        number
    }

    /// Forgets the names that are not used, and returns them with their numbers.
    pub fn give_back(&mut self, is_used: impl Fn(u32) -> bool) -> Vec<(ValueName, u32)> {
        let mut gone = Vec::new();
        let mut keeps = |name: PlainToken<'_>, number: u32| {
            let is_used = is_used(number);
            if !is_used {
                gone.push((name.packed(), number));
            }
            is_used
        };
        self.ints
            .retain(|&int, number| keeps(PlainToken::Int(int), *number));
        self.texts
            .retain(|text, number| keeps(PlainToken::Text(text), *number));
        self.ints.shrink_to_fit();
        self.texts.shrink_to_fit();
        self.free.extend(gone.iter().map(|it| it.1));
        self.new.get_or_insert_default();
        gone
    }

    /// The names that got numbers since the last call, once numbers were given back.
    pub fn take_new(&mut self) -> Vec<(ValueName, u32)> {
        self.new.as_mut().map(std::mem::take).unwrap_or_default()
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

    /// How many names have numbers.
    pub fn len(&self) -> usize {
        self.n_names as usize - self.free.len()
    }
}

/// A value's name.
pub fn value_name(history: &History, value: Token) -> ValueName {
    PlainToken::token(history, value).packed()
}

/// The same for a value as JSON.
pub fn json_value_name(value: &serde_json::Value) -> Result<ValueName> {
    Ok(PlainToken::json(value)?.packed())
}

fn packed_text(text: &str) -> ValueName {
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
    /// For each list that it read before it appended to it, all elements; `reads` has the last one.
    pub lists: Vec<(KeyNumber, Vec<ValueName>)>,
    /// For each list that it appended to, the elements; `writes` has the last one.
    pub appends: Vec<(KeyNumber, Vec<ValueName>)>,
    /// Whether its own reads contradict each other or its writes.
    pub is_broken: bool,
}

impl LoggedTxn {
    fn append(&mut self, key: KeyNumber, element: ValueName) -> (KeyNumber, ValueName) {
        match self.appends.iter_mut().find(|it| it.0 == key) {
            Some(own) => own.1.push(element),
            None => self.appends.push((key, vec![element])),
        }
        (key, element)
    }

    /// What it appended itself stands at the end; the rest was there before.
    fn read_list(&mut self, key: KeyNumber, mut elements: Vec<ValueName>) {
        if let Some(own) = self.appends.iter().find(|it| it.0 == key) {
            self.is_broken |= !elements.ends_with(&own.1);
            elements.truncate(elements.len().saturating_sub(own.1.len()));
        }
        if let Some(read) = self.lists.iter().find(|it| it.0 == key) {
            self.is_broken |= read.1 != elements;
        } else {
            let last = elements.last().copied().unwrap_or(EMPTY_LIST);
            self.reads.push((key, last));
            self.lists.push((key, elements));
        }
    }
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
        let (mut txns, mut initial) = (Vec::new(), Vec::new());
        let has_initial = memchr::memmem::find(lines, b"{\"initial\"").is_some();
        for history in parse(header, lines, file, line)? {
            expect_plain(&history, file, line)?;
            self.reduce_all(&history, &mut txns)?;
            if has_initial {
                initial.extend(self.initial_values(&history));
            }
        }
        Ok((txns, initial))
    }

    fn reduce_all(&mut self, history: &History, txns: &mut Vec<LoggedTxn>) -> Result<()> {
        let mut keys = vec![u32::MAX; history.n_keys()];
        for session in 0..history.n_sessions() as u32 {
            let session = SessionId(session);
            let name = history.session_token(session);
            let number = self.sessions.number(history, name);
            for txn in history.session_txns(session) {
                txns.push(self.reduce(history, TxnId(txn), number, &mut keys)?);
            }
        }
        Ok(())
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
            lists: Vec::new(),
            appends: Vec::new(),
            is_broken: false,
        };
        let name = |value| value_name(history, history.value_token(value));
        for &op in ops {
            let refused = |what: &str| {
                let txn = history.txn_name(txn);
                anyhow!("transaction {txn}: {what} are not watched; `kingsnake check` takes them")
            };
            let key = op.key().ok_or_else(|| refused("range queries"))?;
            let number = &mut keys[key.index()];
            if *number == u32::MAX {
                *number = self.keys.number(history, history.key_token(key));
            }
            let number = *number;
            let at = match op {
                Op::Write { value, .. } if history.is_absence(value) => {
                    return Err(refused("deletes"));
                }
                Op::Read { value, .. } | Op::Write { value, .. } => (number, name(value)),
                Op::Append { value, .. } => logged.append(number, name(value)),
                Op::ReadList { list, .. } => {
                    let elements = history.list(list).iter().map(|&it| name(it));
                    logged.read_list(number, elements.collect());
                    continue;
                }
                Op::Range { .. } => return Err(refused("range queries")),
            };
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

/// Reads lines; two halves at the same time where there are many.
fn parse(header: &str, lines: &[u8], file: &str, line: u64) -> Result<Vec<History>> {
    if lines.len() < LARGE {
        return Ok(vec![parse_part(header, lines, file, line)?]);
    }
    let middle = lines.len() / 2;
    let end = memchr::memchr(b'\n', &lines[middle..]).map_or(lines.len(), |it| middle + it + 1);
    let (first, second) = lines.split_at(end);
    let (first, second) = rayon::join(
        || parse_part(header, first, file, line),
        || {
            let n_before = memchr::memchr_iter(b'\n', first).count() as u64;
            parse_part(header, second, file, line + n_before)
        },
    );
    Ok(vec![first?, second?])
}

fn parse_part(header: &str, lines: &[u8], file: &str, line: u64) -> Result<History> {
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
    Ok(parsed.history)
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
        let mut names: Vec<ValueName> = texts.iter().map(|it| packed_text(it)).collect();
        names.push(ValueName::from(u64::MAX));
        names.push(1 << 120);
        let n_names = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), n_names);
    }
}
