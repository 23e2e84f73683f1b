//! Finds the lines of a file that some transactions come from, and the events that stand between them.
//!
//! Readers keep no positions, because a check needs none; to show a few transactions the file is read again.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;

use crate::ReadOptions;
use crate::error::ReadError;
use crate::format::Format;
use crate::source;

/// Longer lines are cut.
const LONGEST: usize = 2_000;
/// More events than this are not kept.
const MOST_EVENTS: usize = 200;

/// A line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file.
    pub file: PathBuf,
    /// The number of the line, counted from 1.
    pub number: usize,
    /// What it says; a long line is cut.
    pub text: String,
}

/// Something that happened beside the transactions, such as a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceEvent {
    /// When, in nanoseconds of the transactions' clock.
    pub time: i64,
    /// What.
    pub what: String,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Located {
    /// A line for each of the transactions, where one was found.
    pub lines: Vec<Option<SourceLine>>,
    /// The events, in order of the file.
    pub events: Vec<SourceEvent>,
}

/// Finds transactions by the names of their session and their own. Formats without lines give none.
pub fn locate(
    path: &Path,
    format: Format,
    wanted: &[(String, String)],
    options: &ReadOptions,
) -> Result<Located, ReadError> {
    let mut found = Located {
        lines: vec![None; wanted.len()],
        events: Vec::new(),
    };
    let name_of: fn(&str) -> Option<Named> = match format {
        Format::Kingsnake => name_in_kingsnake,
        Format::Text => name_in_text,
        Format::JepsenEdn => name_in_edn,
        Format::JepsenJson => name_in_jepsen_json,
        _ => return Ok(found),
    };
    if !path.is_file() {
        return Ok(found);
    }
    let mut places: FxHashMap<(Option<&str>, &str), usize> = FxHashMap::default();
    for (at, (session, txn)) in wanted.iter().enumerate() {
        let session = has_sessions(format).then_some(session.as_str());
        places.insert((session, txn), at);
    }
    let bytes = source::load(path, u64::MAX, options)?;
    let bytes = source::text(path, &bytes)?;
    for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let Ok(line) = std::str::from_utf8(line) else {
            continue;
        };
        match name_of(line) {
            Some(Named::Txn { session, txn }) => {
                let Some(&at) = places.get(&(session.as_deref(), txn.as_str())) else {
                    continue;
                };
                found.lines[at].get_or_insert_with(|| SourceLine {
                    file: path.to_owned(),
                    number: number + 1,
                    text: cut(line),
                });
            }
            Some(Named::Event(event)) if found.events.len() < MOST_EVENTS => {
                found.events.push(event);
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The subject of a line.
enum Named {
    Txn {
        session: Option<String>,
        txn: String,
    },
    Event(SourceEvent),
}

/// Whether a name belongs to one session only.
fn has_sessions(format: Format) -> bool {
    format == Format::Text
}

fn cut(line: &str) -> String {
    let line = line.trim_end();
    match line.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    }
}

#[derive(Deserialize)]
struct LineHead {
    id: Option<Value>,
    event: Option<LocatedEvent>,
}

#[derive(Deserialize)]
struct LocatedEvent {
    time: i64,
    what: String,
}

fn name_in_kingsnake(line: &str) -> Option<Named> {
    let head: LineHead = serde_json::from_str(line).ok()?;
    if let Some(LocatedEvent { time, what }) = head.event {
        return Some(Named::Event(SourceEvent { time, what }));
    }
    let txn = shown(&head.id?)?;
    Some(Named::Txn { session: None, txn })
}

/// A name as a history shows it.
fn shown(value: &Value) -> Option<String> {
    match value {
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(text.clone()),
        _ => None,
    }
}

/// `r(key,value,session,txn)`.
fn name_in_text(line: &str) -> Option<Named> {
    let (_, fields) = line.trim().strip_suffix(')')?.split_once('(')?;
    let fields: Vec<&str> = fields.split(',').map(str::trim).collect();
    let &[_, _, session, txn] = fields.as_slice() else {
        return None;
    };
    Some(Named::Txn {
        session: Some(session.to_owned()),
        txn: txn.to_owned(),
    })
}

fn name_in_edn(line: &str) -> Option<Named> {
    number_after(line, ":index ")
}

fn name_in_jepsen_json(line: &str) -> Option<Named> {
    number_after(line, "\"index\":")
}

/// Operations are named by their index, where they have one.
fn number_after(line: &str, word: &str) -> Option<Named> {
    let (_, rest) = line.split_once(word)?;
    let rest = rest.trim_start();
    let end = rest.find(|it: char| !it.is_ascii_digit());
    let txn = rest[..end.unwrap_or(rest.len())].to_owned();
    (!txn.is_empty()).then_some(Named::Txn { session: None, txn })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn located(name: &str, text: &str, format: Format, wanted: &[(&str, &str)]) -> Located {
        let directory = tempfile::tempdir().expect("there is room");
        let path = directory.path().join(name);
        std::fs::write(&path, text).expect("written");
        let wanted: Vec<(String, String)> = wanted
            .iter()
            .map(|(session, txn)| ((*session).to_owned(), (*txn).to_owned()))
            .collect();
        locate(&path, format, &wanted, &ReadOptions::default()).expect("it reads")
    }

    #[test]
    fn transactions_are_found_by_name_in_every_format_with_lines() {
        for (text, format, session, txn, line) in [
            (
                "{\"kingsnake\":1}\n{\"id\":\"a\",\"session\":1,\"ops\":[]}\n{\"id\":2,\"session\":1,\"ops\":[]}\n",
                Format::Kingsnake,
                "1",
                "2",
                3,
            ),
            (
                "w(1,1,0,7)\nr(1,1,1,7)\nr(2,1,1,7)\n",
                Format::Text,
                "1",
                "7",
                2,
            ),
            (
                "{:type :invoke, :index 0}\n{:type :ok, :index 1}\n",
                Format::JepsenEdn,
                "0",
                "1",
                2,
            ),
            (
                "{\"type\":\"invoke\",\"index\":0}\n{\"type\":\"ok\",\"index\":1}\n",
                Format::JepsenJson,
                "0",
                "1",
                2,
            ),
        ] {
            let found = located("h", text, format, &[(session, txn), (session, "99")]);
            let lines: Vec<_> = found
                .lines
                .iter()
                .map(|it| it.as_ref().map(|it| it.number))
                .collect();
            assert_eq!(lines, [Some(line), None], "{format}");
        }
    }

    #[test]
    fn events_are_read_with_their_times_and_long_lines_are_cut() {
        let long = "x".repeat(5_000);
        let text = format!(
            "{{\"kingsnake\":1}}\n{{\"event\":{{\"time\":5,\"what\":\"kill node 1\"}}}}\n{{\"id\":1,\"session\":\"{long}\",\"ops\":[]}}\n"
        );
        let found = located("h", &text, Format::Kingsnake, &[("1", "1")]);
        assert_eq!(
            found.events,
            [SourceEvent {
                time: 5,
                what: "kill node 1".to_owned()
            }]
        );
        let line = found.lines[0].as_ref().expect("it is there");
        assert_eq!(line.text.chars().count(), LONGEST + 1);
    }
}
