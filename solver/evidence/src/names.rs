//! Names of transactions, keys and values: numbers, texts or null, as the history has them.

use kingsnake_history::model::{History, KeyId, Op, Token, TxnId, ValueId};
use rustc_hash::FxHashMap;
use serde_json::Value;

use crate::{Read, wrong};

/// A name as its producer wrote it.
pub fn token(history: &History, token: Token) -> Value {
    match token {
        Token::Nil => Value::Null,
        Token::Int(number) => number.into(),
        Token::Text(symbol) => history.symbols().text(symbol).into(),
    }
}

/// The name of a transaction.
pub fn txn_name(history: &History, txn: TxnId) -> Value {
    token(history, history.txn_token(txn))
}

/// The field `name` of a value.
pub(crate) fn field<'v>(value: &'v Value, name: &str) -> Read<&'v Value> {
    let found = value.get(name);
    found.ok_or_else(|| wrong(format!("a counterexample without \"{name}\"")))
}

pub(crate) fn word<'v>(value: &'v Value, name: &str) -> Read<&'v str> {
    let found = field(value, name)?.as_str();
    found.ok_or_else(|| wrong(format!("\"{name}\": expected a word")))
}

pub(crate) fn flag(value: &Value, name: &str) -> Read<bool> {
    let found = field(value, name)?.as_bool();
    found.ok_or_else(|| wrong(format!("\"{name}\": expected true or false")))
}

pub(crate) fn number(value: &Value, name: &str) -> Read<usize> {
    let found = field(value, name)?.as_u64();
    let found = found.and_then(|it| usize::try_from(it).ok());
    found.ok_or_else(|| wrong(format!("\"{name}\": expected a number from 0 on")))
}

pub(crate) fn small_number(value: &Value, name: &str) -> Read<u32> {
    let found = u32::try_from(number(value, name)?);
    found.map_err(|_| wrong(format!("\"{name}\": too large")))
}

pub(crate) fn list<'v>(value: &'v Value, name: &str) -> Read<&'v [Value]> {
    let found = field(value, name)?.as_array();
    let found = found.ok_or_else(|| wrong(format!("\"{name}\": expected a list")))?;
    Ok(found)
}

/// Finds transactions, keys and values of a history by name.
pub(crate) struct NameReader<'h> {
    pub(crate) history: &'h History,
    txns: FxHashMap<Token, TxnId>,
    keys: FxHashMap<Token, KeyId>,
}

impl<'h> NameReader<'h> {
    pub(crate) fn new(history: &'h History) -> Self {
        let txns = history.txns().map(|txn| (history.txn_token(txn), txn));
        let keys = (0..history.n_keys() as u32).map(KeyId);
        NameReader {
            txns: txns.collect(),
            keys: keys.map(|key| (history.key_token(key), key)).collect(),
            history,
        }
    }

    pub(crate) fn token(&self, name: &Value) -> Option<Token> {
        match name {
            Value::Null => Some(Token::Nil),
            Value::Number(number) => number.as_i64().map(Token::Int),
            Value::String(text) => self.history.symbols().find(text).map(Token::Text),
            _ => None,
        }
    }

    pub(crate) fn named_txn(&self, name: &Value) -> Read<TxnId> {
        if matches!(name, Value::Bool(_) | Value::Array(_) | Value::Object(_)) {
            return Err(wrong("expected a transaction's name"));
        }
        let found = self.token(name).and_then(|token| self.txns.get(&token));
        found
            .copied()
            .ok_or_else(|| wrong(format!("the history has no transaction {name}")))
    }

    pub(crate) fn txn(&self, value: &Value, name: &str) -> Read<TxnId> {
        self.named_txn(field(value, name)?)
    }

    pub(crate) fn txns(&self, value: &Value, name: &str) -> Read<Vec<TxnId>> {
        let names = list(value, name)?.iter();
        names.map(|name| self.named_txn(name)).collect()
    }

    /// A transaction, or `null` for the initial state.
    pub(crate) fn writer(&self, value: &Value, name: &str) -> Read<Option<TxnId>> {
        match field(value, name)? {
            Value::Null => Ok(None),
            name => self.named_txn(name).map(Some),
        }
    }

    pub(crate) fn key(&self, value: &Value) -> Read<KeyId> {
        let name = field(value, "key")?;
        let found = self.token(name).and_then(|token| self.keys.get(&token));
        found
            .copied()
            .ok_or_else(|| wrong(format!("the history has no key {name}")))
    }

    /// The value with this name that `to` read from `from`. A delete's name may also be a value's, so one that both
    /// touched is preferred, and then the last, which is what others saw.
    pub(crate) fn read_value(
        &self,
        key: KeyId,
        name: &Value,
        from: TxnId,
        to: TxnId,
    ) -> Read<ValueId> {
        let history = self.history;
        let token = self.token(name);
        let is_named = |value: ValueId| {
            history.value_key(value) == key && Some(history.value_token(value)) == token
        };
        let written = history.ops(from).iter().filter_map(|op| match *op {
            Op::Write { value, .. } | Op::Append { value, .. } => Some(value),
            _ => None,
        });
        let written: Vec<ValueId> = written.filter(|&it| is_named(it)).collect();
        let is_read = |value: &&ValueId| {
            let reads = |op: &Op| matches!(op, Op::Read { value: it, .. } if it == *value);
            history.ops(to).iter().any(reads)
        };
        let found = written.iter().find(is_read).or(written.last());
        found.copied().ok_or_else(|| {
            let (txn, key) = (history.txn_name(from), history.key_name(key));
            wrong(format!(
                "transaction {txn} does not write {name} to key {key}"
            ))
        })
    }
}
