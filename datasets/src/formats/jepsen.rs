//! Jepsen histories in EDN or JSON: events, of which an invocation and its completion make a transaction.
//!
//! This file reads events; [`jepsen_pairs`](super::jepsen_pairs) makes transactions of them.

use std::num::NonZeroU32;

use kingsnake_history::model::{HistoryBuilder, Token};

use super::datum::{Datum, Dialect, pass_ignored, scan};
use super::jepsen_predicates::Asked;
use super::{jepsen_fast, jepsen_pairs};
use crate::cursor::{Cursor, Input};
use crate::error::{InputProblem, ReadError};
use rustc_hash::FxHashSet;

/// What an event says of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
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
    /// A compare-and-set of a register.
    Cas,
    /// A write that its client calls an insert.
    Insert,
    Delete,
    /// A read of all rows that satisfy a predicate, whose place among [`Events::asked`] is the key.
    Predicate,
}

impl Action {
    /// Whether it returns what only its completion knows.
    pub(super) fn is_read(self) -> bool {
        matches!(self, Action::Read | Action::Predicate)
    }
}

/// What a step read or wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// `nil`, or nothing at all.
    Nil,
    One(Token),
    /// A range of [`Events::items`]; of a predicate, the keys and the values that it returned, in turns.
    List(u32, u32),
    /// A value that nobody wrote, which is to be ignored.
    Unwritten,
    /// What a compare-and-set expects, and what it sets.
    Pair(Token, Token),
}

/// One `[:r k v]`, `[:w k v]`, `[:append k v]`, `[:insert k v]`, `[:delete k]` or `[:rp predicate {k v}]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct MicroOp {
    pub(super) action: Action,
    pub(super) key: Token,
    pub(super) content: Content,
}

/// One event of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientEvent {
    pub(super) kind: EventKind,
    pub(super) process: Option<i64>,
    pub(super) time: Stamp,
    pub(super) index: Stamp,
    /// Its number in the file, all events counted.
    pub(super) number: i64,
    /// Where it stands.
    pub(super) at: usize,
    /// Whether it says which steps it has; a completion may leave that to its invocation.
    pub(super) has_steps: bool,
    /// A range of [`Events::steps`].
    pub(super) steps: (u32, u32),
    /// How far behind [`ClientEvent::at`] the steps stand, if they were passed over.
    pub(super) skipped: Option<NonZeroU32>,
}

impl ClientEvent {
    /// Where the steps stand, if they were passed over.
    pub(super) fn skipped_at(&self) -> Option<usize> {
        self.skipped.map(|it| self.at + it.get() as usize)
    }
}

/// A number that may be missing, in eight bytes: large logs have millions. The least number of all counts as missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp(i64);

impl Stamp {
    pub(super) fn new(number: Option<i64>) -> Self {
        Stamp(number.unwrap_or(i64::MIN))
    }

    pub(super) fn get(self) -> Option<i64> {
        (self.0 != i64::MIN).then_some(self.0)
    }
}

/// The events of one file.
#[derive(Default)]
pub(super) struct Events {
    pub(super) all: Vec<ClientEvent>,
    pub(super) steps: Vec<MicroOp>,
    pub(super) items: Vec<Token>,
    /// What predicates ask, each once.
    pub(super) asked: Vec<Asked>,
    /// What `:init` says that keys hold at first.
    pub(super) initial: Vec<(Token, Token)>,
    pub(super) is_json: bool,
    /// Some step is `[:r k v]` or the like, so the history is of transactions.
    pub(super) has_txns: bool,
    /// Events whose steps were passed over and are not of the usual form.
    pub(super) unread: Vec<usize>,
    /// The key of the only register, once there was one.
    only_register: Option<Token>,
    n_nemesis: usize,
    /// Events of operations that are no transactions: how many, and the first one's place and name.
    n_others: usize,
    first_other: Option<(usize, String)>,
}

impl Events {
    /// The steps of an event.
    pub(super) fn steps(&self, event: &ClientEvent) -> &[MicroOp] {
        &self.steps[event.steps.0 as usize..event.steps.1 as usize]
    }
}

/// How events are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Those of the usual form without a tree.
    Fast,
    /// All by the general reader, for tests.
    #[cfg(test)]
    General,
    /// As `Fast`, with a mistake: of two fields of one name the last counts. For tests.
    #[cfg(test)]
    Hasty,
}

/// After so many events the rest is guessed to be like them.
const SAMPLE: i64 = 4096;

/// Reads one file.
pub(crate) fn read(
    input: Input<'_>,
    is_json: bool,
    ignore_unwritten: bool,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    read_by(
        Way::Fast,
        input,
        is_json,
        ignore_unwritten,
        builder,
        warnings,
    )
}

pub(super) fn read_by(
    way: Way,
    input: Input<'_>,
    is_json: bool,
    ignore_unwritten: bool,
    builder: &mut HistoryBuilder,
    warnings: &mut Vec<String>,
) -> Result<(), ReadError> {
    let dialect = if is_json { Dialect::Json } else { Dialect::Edn };
    let mut events = Events {
        is_json,
        ..Events::default()
    };
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
                let fast = jepsen_fast::read_event;
                if !fast(&mut events, &mut cursor, dialect, way, number, builder) {
                    events.read_event(&mut cursor, dialect, number, builder)?;
                }
                number += 1;
                if number == SAMPLE {
                    events.reserve(cursor.at, cursor.rest().len());
                }
            }
        }
    }
    if close.is_some() {
        return Err(cursor.wrong("the end of the history's vector or list"));
    }
    if number == 0 {
        return Err(input.empty());
    }
    events.read_skipped(input, dialect, builder)?;
    events.judge_others(input, warnings)?;
    if ignore_unwritten {
        events.drop_unwritten(warnings);
    }
    jepsen_pairs::build(input, &events, builder, warnings)
}

impl Events {
    /// Makes room for events of so many bytes, as these have taken so many: arrays of millions that grow are copied, and the
    /// system clears every page of each copy. Room that is not used costs nothing.
    fn reserve(&mut self, n_read: usize, n_left: usize) {
        let more = |length: usize| {
            let expected = length as f64 * n_left as f64 / n_read.max(1) as f64;
            (expected * 1.05) as usize + 16
        };
        self.all.reserve(more(self.all.len()));
        self.steps.reserve(more(self.steps.len()));
        self.items.reserve(more(self.items.len()));
    }

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
        if f == Some("init") && (kind != EventKind::Ok || self.read_init(value, builder)) {
            return Ok(());
        }
        let Some(has_steps) = self.read_steps(&here, f, value, builder)? else {
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

    /// Reads the steps of invocations that were passed over and are needed.
    fn read_skipped(
        &mut self,
        input: Input<'_>,
        dialect: Dialect,
        builder: &mut HistoryBuilder,
    ) -> Result<(), ReadError> {
        jepsen_fast::read_skipped(self, input.cursor(), dialect, builder);
        for at in std::mem::take(&mut self.unread) {
            let mut cursor = input.cursor();
            cursor.at = self.all[at].skipped_at().unwrap_or(0);
            self.all[at].skipped = None;
            let here = Cursor {
                at: self.all[at].at,
                ..cursor
            };
            let value = scan(&mut cursor, dialect)?;
            let first = self.steps.len() as u32;
            self.read_steps(&here, Some("txn"), &value, builder)?;
            self.all[at].steps = (first, self.steps.len() as u32);
        }
        Ok(())
    }

    /// The key of the only register.
    pub(super) fn register(&mut self, builder: &mut HistoryBuilder) -> Token {
        *self
            .only_register
            .get_or_insert_with(|| builder.text("register"))
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
        if let Some([key, txn]) = value.seq()
            && is_plain(key)
            && let Some(steps) = txn.seq().filter(|steps| are_steps(steps, Some("")))
        {
            // A tuple of jepsen.independent: every key has a history, and so keys, of its own.
            self.has_txns = true;
            let group = shown(key);
            for step in steps {
                let step = self.read_step(here, step.seq().unwrap_or(&[]), builder)?;
                if step.action == Action::Predicate {
                    let words = "a step :rp within a tuple of jepsen.independent is not supported";
                    return Err(here.fail(InputProblem::Unsupported(words.to_owned())));
                }
                let inner = builder.show(step.key);
                let key = builder.text(&format!("{group}/{inner}"));
                self.steps.push(MicroOp { key, ..step });
            }
            return Ok(Some(true));
        }
        match (f, value) {
            (Some("txn") | None, Datum::Nil) => return Ok(Some(false)),
            (Some(f @ ("read" | "write" | "cas")), value) => {
                let Some(step) = self.register_step(f, value, builder) else {
                    return Ok(None);
                };
                self.steps.push(step);
            }
            _ => return Ok(None),
        }
        Ok(Some(true))
    }

    /// A step of a register: of the only one, or, in a tuple of jepsen.independent, of the one that the tuple names.
    fn register_step(
        &mut self,
        f: &str,
        value: &Datum<'_>,
        builder: &mut HistoryBuilder,
    ) -> Option<MicroOp> {
        let pair = value.seq().filter(|pair| pair.len() == 2);
        let (key, value) = match (f, pair) {
            ("cas", Some([key, inner])) if inner.seq().is_some() && is_plain(key) => {
                (token(key, builder), inner)
            }
            ("read" | "write", Some([key, inner])) if is_plain(key) && is_plain(inner) => {
                (token(key, builder), inner)
            }
            _ => (self.register(builder), value),
        };
        let (action, content) = match (f, value.seq()) {
            ("cas", Some([expected, new])) if is_plain(expected) && is_plain(new) => {
                let pair = Content::Pair(token(expected, builder), token(new, builder));
                (Action::Cas, pair)
            }
            ("read", None) if is_plain(value) => (Action::Read, self.content(value, builder)),
            ("write", None) if is_plain(value) => (Action::Write, self.content(value, builder)),
            _ => return None,
        };
        Some(MicroOp {
            action,
            key,
            content,
        })
    }

    fn read_step(
        &mut self,
        here: &Cursor<'_>,
        parts: &[Datum<'_>],
        builder: &mut HistoryBuilder,
    ) -> Result<MicroOp, ReadError> {
        if parts.first().and_then(Datum::word) == Some("rp") {
            return self.read_predicate(here, parts, builder);
        }
        let (name, key, content) = match parts {
            [name, key] => (name, key, &Datum::Nil),
            [name, key, content] => (name, key, content),
            _ => {
                return Err(here.fail(InputProblem::Syntax {
                    found: format!("a step of {} parts", parts.len()),
                    expected: "[:r key value], [:w key value], [:append key value], [:insert key value], [:delete key] or [:rp predicate rows]".to_owned(),
                }));
            }
        };
        let action = match name.word() {
            Some("r") => Action::Read,
            Some("w") => Action::Write,
            Some("append") => Action::Append,
            Some("insert") => Action::Insert,
            Some("delete") => Action::Delete,
            other => {
                let name = other.unwrap_or("without a name");
                return Err(here.fail(InputProblem::Unsupported(format!(
                    "step {name} is not supported; :r, :w, :append, :insert, :delete and :rp are"
                ))));
            }
        };
        let key = token(key, builder);
        let content = match action {
            Action::Read => self.content(content, builder),
            Action::Delete => Content::Nil,
            _ => Content::One(token(content, builder)),
        };
        Ok(MicroOp {
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

    /// Makes reads of values that no event writes reads of nothing known.
    fn drop_unwritten(&mut self, warnings: &mut Vec<String>) {
        let written: FxHashSet<(Token, Token)> = self
            .steps
            .iter()
            .filter_map(|step| match (step.action, step.content) {
                (Action::Write | Action::Insert, Content::One(value)) => Some((step.key, value)),
                (Action::Cas, Content::Pair(_, new)) => Some((step.key, new)),
                _ => None,
            })
            .chain(self.initial.iter().copied())
            .collect();
        let mut n_dropped = 0;
        for step in &mut self.steps {
            if let (Action::Read, Content::One(value)) = (step.action, step.content)
                && !written.contains(&(step.key, value))
            {
                step.content = Content::Unwritten;
                n_dropped += 1;
            }
        }
        if n_dropped > 0 {
            warnings.push(format!(
                "{n_dropped} reads of values that nobody wrote were ignored"
            ));
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
            "operation {name} is no transaction over keys; supported are transactions of :r, :w, :append, :insert, :delete and :rp, and :read, :write and :cas of registers; for other workloads of Jepsen say which by --workload"
        );
        Err(input.error_in_line(*at, InputProblem::Unsupported(message)))
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

/// A key or a value. Keywords keep their colon, and compound values stand for themselves by their source.
pub(super) fn token(datum: &Datum<'_>, builder: &mut HistoryBuilder) -> Token {
    match datum {
        Datum::Nil => Token::Nil,
        Datum::Int(number) => Token::Int(*number),
        Datum::Text(text) => builder.text(text),
        other => builder.text(&shown(other)),
    }
}
