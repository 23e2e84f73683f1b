//! Reads any event of a Jepsen log, by way of a tree; [`fast`](super::fast) reads the usual ones without.

use kingsnake_history::model::Token;

use super::datum::{Datum, Dialect, scan};
use super::events::{Action, ClientEvent, Content, EventKind, MicroOp, Part, Stamp};
use crate::cursor::Cursor;
use crate::error::{InputProblem, ReadError};

impl Part {
    /// Reads one event.
    pub(super) fn read_event(
        &mut self,
        cursor: &mut Cursor<'_>,
        dialect: Dialect,
        number: u32,
    ) -> Result<(), ReadError> {
        let at = cursor.at;
        let Datum::Map(fields, _) = scan(cursor, dialect)? else {
            let here = Cursor { at, ..*cursor };
            return Err(here.wrong("an event, which is a map with :type, :process and :value"));
        };
        let here = Cursor { at, ..*cursor };
        let get = |name: &str| {
            let is_named = |(key, _): &&(Datum<'_>, Datum<'_>)| key.word() == Some(name);
            fields.iter().find(is_named).map(|(_, value)| value)
        };
        let kind = match get("type").and_then(Datum::word) {
            Some("invoke") => EventKind::Invoke,
            Some("ok") => EventKind::Ok,
            Some("fail") => EventKind::Fail,
            Some("info") => EventKind::Info,
            other => {
                return Err(here.fail(InputProblem::Syntax {
                    found: other.map_or("an event without :type".to_owned(), |it| {
                        format!(":type {it}")
                    }),
                    expected: ":type :invoke, :ok, :fail or :info".to_owned(),
                }));
            }
        };
        let process = match get("process") {
            None | Some(Datum::Nil) => None,
            Some(Datum::Int(process)) => Some(*process),
            Some(_) => {
                self.n_nemesis += 1;
                return Ok(());
            }
        };
        let int = |name: &str| match get(name) {
            Some(Datum::Int(number)) => Some(*number),
            _ => None,
        };
        let first = self.steps.len() as u32;
        let f = get("f").and_then(Datum::word);
        let value = get("value").unwrap_or(&Datum::Nil);
        if f == Some("init") && (kind != EventKind::Ok || self.read_init(value)) {
            return Ok(());
        }
        let Some(has_steps) = self.read_steps(&here, f, value)? else {
            self.n_others += 1;
            let name = match f {
                Some(f @ ("read" | "write" | "cas")) => format!("{f} of a compound value"),
                f => f.unwrap_or("without :f").to_owned(),
            };
            self.first_other.get_or_insert((at, name));
            return Ok(());
        };
        self.all.push(ClientEvent {
            kind,
            process,
            time: Stamp::new(int("time")),
            index: Stamp::new(int("index")),
            number,
            at,
            has_steps,
            steps: (first, self.steps.len() as u32),
            skipped: None,
        });
        Ok(())
    }

    /// Reads the steps of an event. `None`: the event is none of a transaction; `Some(false)`: it leaves them out.
    pub(super) fn read_steps(
        &mut self,
        here: &Cursor<'_>,
        f: Option<&str>,
        value: &Datum<'_>,
    ) -> Result<Option<bool>, ReadError> {
        if let Some(steps) = value.seq().filter(|steps| are_steps(steps, f)) {
            self.has_txns = true;
            for step in steps {
                let step = self.read_step(here, step.seq().unwrap_or(&[]))?;
                self.steps.push(step);
            }
            return Ok(Some(true));
        }
        if let Some([key, txn]) = value.seq()
            && is_plain(key)
            && let Some(steps) = txn.seq().filter(|steps| are_steps(steps, Some("")))
        {
            // A tuple of jepsen.independent: every key has a history, and so keys, of its own.
            self.has_txns = true;
            let group = shown(key);
            for step in steps {
                let step = self.read_step(here, step.seq().unwrap_or(&[]))?;
                if step.action == Action::Predicate {
                    let words = "a step :rp within a tuple of jepsen.independent is not supported";
                    return Err(here.fail(InputProblem::Unsupported(words.to_owned())));
                }
                let inner = self.symbols.show(step.key);
                let key = self.text(&format!("{group}/{inner}"));
                self.steps.push(MicroOp { key, ..step });
            }
            return Ok(Some(true));
        }
        match (f, value) {
            (Some("txn") | None, Datum::Nil) => return Ok(Some(false)),
            (Some(f @ ("read" | "write" | "cas")), value) => {
                let Some(step) = self.register_step(f, value) else {
                    return Ok(None);
                };
                self.steps.push(step);
            }
            _ => return Ok(None),
        }
        Ok(Some(true))
    }

    /// A step of a register: of the only one, or, in a tuple of jepsen.independent, of the one that the tuple names.
    fn register_step(&mut self, f: &str, value: &Datum<'_>) -> Option<MicroOp> {
        let pair = value.seq().filter(|pair| pair.len() == 2);
        let (key, value) = match (f, pair) {
            ("cas", Some([key, inner])) if inner.seq().is_some() && is_plain(key) => {
                (self.token(key), inner)
            }
            ("read" | "write", Some([key, inner])) if is_plain(key) && is_plain(inner) => {
                (self.token(key), inner)
            }
            _ => (self.register(), value),
        };
        let (action, content) = match (f, value.seq()) {
            ("cas", Some([expected, new])) if is_plain(expected) && is_plain(new) => {
                let pair = Content::Pair(self.token(expected), self.token(new));
                (Action::Cas, pair)
            }
            ("read", None) if is_plain(value) => (Action::Read, self.content(value)),
            ("write", None) if is_plain(value) => (Action::Write, self.content(value)),
            _ => return None,
        };
        Some(MicroOp {
            action,
            key,
            content,
        })
    }

    fn read_step(&mut self, here: &Cursor<'_>, parts: &[Datum<'_>]) -> Result<MicroOp, ReadError> {
        if parts.first().and_then(Datum::word) == Some("rp") {
            return self.read_predicate(here, parts);
        }
        let (name, key, content) = match parts {
            [name, key] => (name, key, &Datum::Nil),
            [name, key, content] => (name, key, content),
            _ => {
                return Err(here.fail(InputProblem::Syntax {
                    found: format!("a step of {} parts", parts.len()),
                    expected: "[:r key value], [:w key value], [:append key value], [:insert key value], [:delete key], [:add key element], [:inc key number] or [:rp predicate rows]".to_owned(),
                }));
            }
        };
        let action = match name.word() {
            Some("r") => Action::Read,
            Some("w") => Action::Write,
            Some("append") => Action::Append,
            Some("insert") => Action::Insert,
            Some("delete") => Action::Delete,
            Some("add") => Action::Add,
            Some("inc") => Action::Increment,
            other => {
                let name = other.unwrap_or("without a name");
                return Err(here.fail(InputProblem::Unsupported(format!(
                    "step {name} is not supported; :r, :w, :append, :insert, :delete, :add, :inc and :rp are"
                ))));
            }
        };
        let key = self.token(key);
        self.has_objects |= matches!(action, Action::Add | Action::Increment);
        let content = match action {
            Action::Read => self.content(content),
            Action::Delete => Content::Nil,
            Action::Increment => match content {
                Datum::Nil => Content::One(Token::Int(1)),
                Datum::Int(by) => Content::One(Token::Int(*by)),
                _ => {
                    return Err(here.fail(InputProblem::Syntax {
                        found: "a step :inc by something else".to_owned(),
                        expected: "[:inc key] or [:inc key number]".to_owned(),
                    }));
                }
            },
            _ => Content::One(self.token(content)),
        };
        Ok(MicroOp {
            action,
            key,
            content,
        })
    }

    /// A key or a value. Keywords keep their colon, and compound values stand for themselves by their source.
    pub(super) fn token(&mut self, datum: &Datum<'_>) -> Token {
        match datum {
            Datum::Nil => Token::Nil,
            Datum::Int(number) => Token::Int(*number),
            Datum::Text(text) => self.text(text),
            other => self.text(&shown(other)),
        }
    }

    fn content(&mut self, datum: &Datum<'_>) -> Content {
        match datum {
            Datum::Nil => Content::Nil,
            Datum::Seq(items, _) | Datum::Set(items, _) => {
                let first = self.items.len() as u32;
                for item in items {
                    let item = self.token(item);
                    self.items.push(item);
                }
                let end = self.items.len() as u32;
                if matches!(datum, Datum::Seq(..)) {
                    return Content::List(first, end);
                }
                self.has_objects = true;
                // Where the key turns out to be a register, the set is one value.
                let whole = self.token(datum);
                self.items.push(whole);
                Content::Set(first, end)
            }
            plain => Content::One(self.token(plain)),
        }
    }
}

/// Whether a value is a sequence of steps: each a sequence that begins with a word.
fn are_steps(steps: &[Datum<'_>], f: Option<&str>) -> bool {
    if steps.is_empty() {
        return matches!(f, None | Some("txn"));
    }
    let is_step = |step: &Datum<'_>| {
        let first = step.seq().and_then(<[Datum<'_>]>::first);
        first.is_some_and(|first| first.word().is_some())
    };
    steps.iter().all(is_step)
}

/// A key, as it stands in the names of keys of its own history.
fn shown(datum: &Datum<'_>) -> String {
    match datum {
        Datum::Nil => "nil".to_owned(),
        Datum::Int(number) => number.to_string(),
        Datum::Text(text) => text.to_string(),
        Datum::Keyword(word) => format!(":{word}"),
        Datum::Other(source)
        | Datum::Seq(_, source)
        | Datum::Map(_, source)
        | Datum::Set(_, source) => (*source).to_owned(),
    }
}

fn is_plain(datum: &Datum<'_>) -> bool {
    !matches!(datum, Datum::Seq(..) | Datum::Map(..) | Datum::Set(..))
}
