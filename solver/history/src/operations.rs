//! Operations of clients as Jepsen logs them, for workloads that are not transactions over keys: a name, the input, the
//! output, and the times.

use std::fmt;

use crate::model::Status;

/// The input or output of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// Nothing.
    Nil,
    /// A whole number.
    Int(i64),
    /// A text, a keyword with its colon, or anything else as it was written.
    Text(String),
    /// A vector or a list.
    Seq(Vec<Value>),
    /// A set.
    Set(Vec<Value>),
    /// A map.
    Map(Vec<(Value, Value)>),
}

impl Value {
    /// The number, if it is one.
    pub fn int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The items of a sequence or set.
    pub fn items(&self) -> Option<&[Value]> {
        match self {
            Value::Seq(items) | Value::Set(items) => Some(items),
            _ => None,
        }
    }

    /// The value of a key of a map; the key is a text with or without a keyword's colon.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let Value::Map(entries) = self else {
            return None;
        };
        let is_named =
            |key: &Value| matches!(key, Value::Text(text) if text.trim_start_matches(':') == name);
        entries
            .iter()
            .find(|(key, _)| is_named(key))
            .map(|(_, value)| value)
    }

    /// Whether it is neither a sequence nor a set nor a map.
    pub fn is_plain(&self) -> bool {
        matches!(self, Value::Nil | Value::Int(_) | Value::Text(_))
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |out: &mut fmt::Formatter<'_>, items: &[Value]| {
            for (at, item) in items.iter().enumerate() {
                let space = if at == 0 { "" } else { " " };
                write!(out, "{space}{item}")?;
            }
            Ok(())
        };
        match self {
            Value::Nil => out.write_str("nil"),
            Value::Int(number) => write!(out, "{number}"),
            Value::Text(text) => out.write_str(text),
            Value::Seq(items) => {
                out.write_str("[")?;
                list(out, items)?;
                out.write_str("]")
            }
            Value::Set(items) => {
                out.write_str("#{")?;
                list(out, items)?;
                out.write_str("}")
            }
            Value::Map(entries) => {
                out.write_str("{")?;
                for (at, (key, value)) in entries.iter().enumerate() {
                    let comma = if at == 0 { "" } else { ", " };
                    write!(out, "{comma}{key} {value}")?;
                }
                out.write_str("}")
            }
        }
    }
}

/// One operation: its invocation, and its completion if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its number: of its last event.
    pub name: i64,
    /// The process that ran it.
    pub process: Option<i64>,
    /// Its name.
    pub f: String,
    /// Its outcome.
    pub status: Status,
    /// Its input.
    pub input: Value,
    /// Its output; the input if the completion has none.
    pub output: Value,
    /// The place of its invocation among all events.
    pub invoked: usize,
    /// The place of its completion, if it has one.
    pub completed: Option<usize>,
    /// When it was invoked, in nanoseconds, if logged.
    pub begin: Option<i64>,
    /// When it completed.
    pub end: Option<i64>,
}

impl Operation {
    /// Whether it took effect for certain.
    pub fn is_ok(&self) -> bool {
        self.status == Status::Committed
    }

    /// Whether it took no effect for certain.
    pub fn is_failed(&self) -> bool {
        self.status == Status::Aborted
    }

    /// The position of its end; later than all events if unknown.
    pub fn end_place(&self) -> usize {
        self.completed
            .filter(|_| self.status != Status::Unknown)
            .unwrap_or(usize::MAX)
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let process = self
            .process
            .map_or(String::new(), |process| format!(" by process {process}"));
        let mut value = self.output.to_string();
        if value.chars().count() > 200 {
            value = value.chars().take(200).chain(['…']).collect();
        }
        write!(out, "operation {}{process}: {} {value}", self.name, self.f)?;
        if let Some(begin) = self.begin {
            write!(out, " (from {:.6} s", begin as f64 / 1e9)?;
            match self.end.filter(|_| self.status != Status::Unknown) {
                Some(end) => write!(out, " to {:.6} s)", end as f64 / 1e9)?,
                None => write!(out, ", end unknown)")?,
            }
        }
        Ok(())
    }
}
