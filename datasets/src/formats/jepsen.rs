//! Jepsen histories in EDN or JSON: events, of which an invocation and its completion make a transaction.
//!
//! This file reads events; [`jepsen_pairs`](super::jepsen_pairs) makes transactions of them.

use kingsnake_history::model::{HistoryBuilder, Token};

use super::datum::{Datum, Dialect, pass_ignored, scan};
use super::jepsen_pairs;
use crate::cursor::{Cursor, Input};
use crate::error::{Problem, ReadError};

/// What an event says of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Invoke,
    Ok,
    Fail,
    Info,
}

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Read,
    Write,
    Append,
}

/// What a step read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// `nil`, or nothing at all.
    Nil,
    One(Token),
    /// A range of [`Events::items`].
    List(u32, u32),
}

/// One `[:r k v]`, `[:w k v]` or `[:append k v]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) key: Token,
    pub(super) content: Content,
}

/// One event of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Event {
    pub(super) kind: Kind,
    pub(super) process: Option<i64>,
    pub(super) time: Option<i64>,
    pub(super) index: Option<i64>,
    /// Its number in the file, all events counted.
    pub(super) number: i64,
    /// Where it stands.
    pub(super) at: usize,
    /// Whether it says which steps it has; a completion may leave that to its invocation.
    pub(super) has_steps: bool,
    /// A range of [`Events::steps`].
    pub(super) steps: (u32, u32),
}

/// The events of one file.
#[derive(Default)]
pub(super) struct Events {
    pub(super) all: Vec<Event>,
    pub(super) steps: Vec<Step>,
    pub(super) items: Vec<Token>,
    /// Some step is `[:r k v]` or the like, so the history is of transactions.
    has_txns: bool,
    n_nemesis: usize,
    /// Events of operations that are no transactions: how many, and the first one's place and name.
    n_others: usize,
    first_other: Option<(usize, String)>,
}

impl Events {
    /// The steps of an event.
    pub(super) fn steps(&self, event: &Event) -> &[Step] {
        &self.steps[event.steps.0 as usize..event.steps.1 as usize]
    }
}

/// Reads one file.
pub(crate) fn read(
    input: Input<'_>,
    is_json: bool,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let dialect = if is_json { Dialect::Json } else { Dialect::Edn };
    let mut events = Events::default();
    let mut cursor = input.cursor();
    let mut number = 0;
    let mut close = None;
    let mut polled = input.polled();
    loop {
        polled.step()?;
        pass_ignored(&mut cursor, dialect)?;
        match (cursor.peek(), close) {
            _ if cursor.done() => break,
            (b'[', None) => (close, cursor.at) = (Some(b']'), cursor.at + 1),
            (b'(', None) => (close, cursor.at) = (Some(b')'), cursor.at + 1),
            (byte, Some(end)) if byte == end => (close, cursor.at) = (None, cursor.at + 1),
            _ => {
                events.read_event(&mut cursor, dialect, number, builder)?;
                number += 1;
            }
        }
    }
    if close.is_some() {
        return Err(cursor.wrong("the end of the history's vector or list"));
    }
    if number == 0 {
        return Err(input.empty());
    }
    events.judge_others(input, warnings)?;
    jepsen_pairs::build(input, &events, builder, warnings)
}

impl Events {
    fn read_event(
        &mut self,
        cursor: &mut Cursor<'_>,
        dialect: Dialect,
        number: i64,
        builder: &mut HistoryBuilder,
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
            Some("invoke") => Kind::Invoke,
            Some("ok") => Kind::Ok,
            Some("fail") => Kind::Fail,
            Some("info") => Kind::Info,
            other => {
                return Err(here.fail(Problem::Syntax {
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
        let Some(has_steps) = self.read_steps(&here, f, value, builder)? else {
            self.n_others += 1;
            let name = match f {
                Some(f @ ("read" | "write" | "cas")) => format!("{f} of a compound value"),
                f => f.unwrap_or("without :f").to_owned(),
            };
            self.first_other.get_or_insert((at, name));
            return Ok(());
        };
        self.all.push(Event {
            kind,
            process,
            time: int("time"),
            index: int("index"),
            number,
            at,
            has_steps,
            steps: (first, self.steps.len() as u32),
        });
        Ok(())
    }

    /// Reads the steps of an event. `None`: the event is none of a transaction; `Some(false)`: it leaves them out.
    fn read_steps(
        &mut self,
        here: &Cursor<'_>,
        f: Option<&str>,
        value: &Datum<'_>,
        builder: &mut HistoryBuilder,
    ) -> Result<Option<bool>, ReadError> {
        if let Some(steps) = value.seq().filter(|steps| are_steps(steps, f)) {
            self.has_txns = true;
            for step in steps {
                let step = self.read_step(here, step.seq().unwrap_or(&[]), builder)?;
                self.steps.push(step);
            }
            return Ok(Some(true));
        }
        match (f, value) {
            (Some("txn") | None, Datum::Nil) => return Ok(Some(false)),
            (Some("read"), plain) if is_plain(plain) => {
                let content = self.content(plain, builder);
                self.register(Action::Read, content, builder);
            }
            (Some("write"), plain) if is_plain(plain) => {
                let content = self.content(plain, builder);
                self.register(Action::Write, content, builder);
            }
            (Some("cas"), Datum::Seq(pair, _)) if pair.len() == 2 && pair.iter().all(is_plain) => {
                for (action, plain) in [(Action::Read, &pair[0]), (Action::Write, &pair[1])] {
                    let content = self.content(plain, builder);
                    self.register(action, content, builder);
                }
            }
            _ => return Ok(None),
        }
        Ok(Some(true))
    }

    /// A step of the one register that `:read`, `:write` and `:cas` are about.
    fn register(&mut self, action: Action, content: Content, builder: &mut HistoryBuilder) {
        let key = builder.text("register");
        self.steps.push(Step {
            action,
            key,
            content,
        });
    }

    fn read_step(
        &mut self,
        here: &Cursor<'_>,
        parts: &[Datum<'_>],
        builder: &mut HistoryBuilder,
    ) -> Result<Step, ReadError> {
        let (name, key, content) = match parts {
            [name, key] => (name, key, &Datum::Nil),
            [name, key, content] => (name, key, content),
            _ => {
                return Err(here.fail(Problem::Syntax {
                    found: format!("a step of {} parts", parts.len()),
                    expected: "[:r key value], [:w key value] or [:append key value]".to_owned(),
                }));
            }
        };
        let action = match name.word() {
            Some("r") => Action::Read,
            Some("w") => Action::Write,
            Some("append") => Action::Append,
            other => {
                let name = other.unwrap_or("without a name");
                return Err(here.fail(Problem::Unsupported(format!(
                    "step {name} is not supported yet; :r, :w and :append are"
                ))));
            }
        };
        let key = token(key, builder);
        let content = match action {
            Action::Read => self.content(content, builder),
            Action::Write | Action::Append => Content::One(token(content, builder)),
        };
        Ok(Step {
            action,
            key,
            content,
        })
    }

    fn content(&mut self, datum: &Datum<'_>, builder: &mut HistoryBuilder) -> Content {
        match datum {
            Datum::Nil => Content::Nil,
            Datum::Seq(items, _) => {
                let first = self.items.len() as u32;
                for item in items {
                    let item = token(item, builder);
                    self.items.push(item);
                }
                Content::List(first, self.items.len() as u32)
            }
            plain => Content::One(token(plain, builder)),
        }
    }

    /// Events of other operations: skipped beside transactions, refused where registers could not be judged without.
    fn judge_others(&self, input: Input<'_>, warnings: &mut Vec<String>) -> Result<(), ReadError> {
        if self.n_nemesis > 0 {
            warnings.push(format!(
                "{} events are of no client and were skipped",
                self.n_nemesis
            ));
        }
        let Some((at, name)) = &self.first_other else {
            return Ok(());
        };
        if self.has_txns {
            warnings.push(format!(
                "{} events are of operations such as {name}, which are no transactions, and were skipped",
                self.n_others
            ));
            return Ok(());
        }
        let message = format!(
            "operation {name} is no transaction over keys; supported are transactions of :r, :w and :append, and :read, :write and :cas of a register"
        );
        Err(input.error_in_line(*at, Problem::Unsupported(message)))
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

fn is_plain(datum: &Datum<'_>) -> bool {
    !matches!(datum, Datum::Seq(..) | Datum::Map(..) | Datum::Set(_))
}

/// A key or a value. Keywords keep their colon, and compound values stand for themselves by their source.
fn token(datum: &Datum<'_>, builder: &mut HistoryBuilder) -> Token {
    match datum {
        Datum::Nil => Token::Nil,
        Datum::Int(number) => Token::Int(*number),
        Datum::Text(text) => builder.text(text),
        Datum::Keyword(word) => builder.text(&format!(":{word}")),
        Datum::Other(source)
        | Datum::Seq(_, source)
        | Datum::Map(_, source)
        | Datum::Set(source) => builder.text(source),
    }
}
