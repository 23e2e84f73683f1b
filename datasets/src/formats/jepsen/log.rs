//! A Jepsen log as operations, for workloads that are no transactions over keys.
//!
//! An invocation and the next completion of its process make one operation; events of no client (a nemesis) are left out.

use kingsnake_history::model::Status;
use kingsnake_history::operations::{Operation, Value};
use rustc_hash::FxHashMap;

use super::datum::{Datum, Dialect, pass_ignored, scan};
use crate::cursor::{Cursor, Input};
use crate::error::{InputProblem, ReadError};

/// One event.
struct LogEvent {
    kind: String,
    f: String,
    process: Option<i64>,
    time: Option<i64>,
    index: Option<i64>,
    value: Option<Value>,
}

/// Reads a log.
pub(crate) fn read(input: Input<'_>, is_json: bool) -> Result<Vec<Operation>, ReadError> {
    let dialect = if is_json { Dialect::Json } else { Dialect::Edn };
    let mut cursor = input.cursor();
    let mut close = None;
    let mut log = OperationLog::default();
    let mut place = 0;
    loop {
        pass_ignored(&mut cursor, dialect)?;
        match (cursor.peek(), close) {
            _ if cursor.done() => break,
            (b'[', None) => (close, cursor.at) = (Some(b']'), cursor.at + 1),
            (b'(', None) => (close, cursor.at) = (Some(b')'), cursor.at + 1),
            (byte, Some(end)) if byte == end => (close, cursor.at) = (None, cursor.at + 1),
            _ => {
                if let Some(event) = read_event(&mut cursor, dialect)? {
                    log.take(event, place);
                }
                place += 1;
            }
        }
    }
    if close.is_some() {
        return Err(cursor.wrong("the end of the history's vector or list"));
    }
    if place == 0 {
        return Err(input.empty());
    }
    Ok(log.operations)
}

fn read_event(cursor: &mut Cursor<'_>, dialect: Dialect) -> Result<Option<LogEvent>, ReadError> {
    let at = cursor.at;
    let datum = scan(cursor, dialect)?;
    let here = Cursor { at, ..*cursor };
    let Datum::Map(fields, _) = datum else {
        return Err(here.wrong("an event, which is a map with :type, :process and :value"));
    };
    let get = |name: &str| {
        let is_named = |(key, _): &&(Datum<'_>, Datum<'_>)| key.word() == Some(name);
        fields.iter().find(is_named).map(|(_, value)| value)
    };
    let int = |name: &str| match get(name) {
        Some(Datum::Int(number)) => Some(*number),
        _ => None,
    };
    let kind = match get("type").and_then(Datum::word) {
        Some(kind @ ("invoke" | "ok" | "fail" | "info")) => kind.to_owned(),
        other => {
            return Err(here.fail(InputProblem::Syntax {
                found: other.map_or("an event without :type".to_owned(), |it| {
                    format!(":type {it}")
                }),
                expected: ":type :invoke, :ok, :fail or :info".to_owned(),
            }));
        }
    };
    if !matches!(get("process"), None | Some(Datum::Nil | Datum::Int(_))) {
        return Ok(None);
    }
    Ok(Some(LogEvent {
        kind,
        f: get("f").and_then(Datum::word).unwrap_or("").to_owned(),
        process: int("process"),
        time: int("time"),
        index: int("index"),
        value: get("value").map(value),
    }))
}

/// A value without its source.
fn value(datum: &Datum<'_>) -> Value {
    match datum {
        Datum::Nil => Value::Nil,
        Datum::Int(number) => Value::Int(*number),
        Datum::Text(text) => Value::Text(text.to_string()),
        Datum::Keyword(word) => Value::Text(format!(":{word}")),
        Datum::Other(source) => Value::Text((*source).to_owned()),
        Datum::Seq(items, _) => Value::Seq(items.iter().map(value).collect()),
        Datum::Set(items, _) => Value::Set(items.iter().map(value).collect()),
        Datum::Map(entries, _) => {
            let entry = |(key, it): &(Datum<'_>, Datum<'_>)| (value(key), value(it));
            Value::Map(entries.iter().map(entry).collect())
        }
    }
}

/// Operations, and which of them have not completed.
#[derive(Default)]
struct OperationLog {
    operations: Vec<Operation>,
    open: FxHashMap<Option<i64>, Vec<usize>>,
}

impl OperationLog {
    fn take(&mut self, event: LogEvent, place: usize) {
        let name = event.index.unwrap_or(place as i64);
        if event.kind == "invoke" {
            let input = event.value.unwrap_or(Value::Nil);
            let open = self.open.entry(event.process).or_default();
            open.push(self.operations.len());
            self.operations.push(Operation {
                name,
                process: event.process,
                f: event.f,
                status: Status::Unknown,
                output: input.clone(),
                input,
                invoked: place,
                completed: None,
                begin: event.time,
                end: None,
            });
            return;
        }
        let status = match event.kind.as_str() {
            "ok" => Status::Committed,
            "fail" => Status::Aborted,
            _ => Status::Unknown,
        };
        let open = self.open.entry(event.process).or_default();
        // Where the process is not given, the oldest invocation that fits is meant.
        let fits = |&at: &usize| {
            let op = &self.operations[at];
            let same = event.value.as_ref().is_none_or(|value| *value == op.input);
            op.f == event.f && (op.f == "read" || event.process.is_some() || same)
        };
        let Some(at) = open.iter().position(fits).map(|found| open.remove(found)) else {
            let output = event.value.unwrap_or(Value::Nil);
            self.operations.push(Operation {
                name,
                process: event.process,
                f: event.f,
                status,
                input: output.clone(),
                output,
                invoked: place,
                completed: Some(place),
                begin: event.time,
                end: event.time,
            });
            return;
        };
        let op = &mut self.operations[at];
        op.name = name;
        op.status = status;
        op.completed = Some(place);
        op.end = event.time;
        if let Some(value) = event.value {
            op.output = value;
        }
    }
}
