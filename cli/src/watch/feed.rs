//! Turns lines into ordered transactions: handles headers, session announcements, and outcomes that may still be filled in.
//!
//! A line with an unknown outcome in a growing file is held back until its session continues: recorders write it before
//! the commit is sent and fill in the outcome later.

mod held;
mod lines;

use anyhow::{Context, Result, anyhow, bail, ensure};
use kingsnake_history::model::Status;
use kingsnake_watch::{BrokenPromise, KeyNumber, Sessions, ValueName};
use memchr::memmem::Finder;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use held::HeldLine;
use lines::{ControlLine, LogHeader, is_control};

use super::input::{LogInput, Piece};
use super::reduce::{LogNames, LoggedTxn, json_value_name};

/// The state of a source.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct LogSource {
    header: Option<String>,
    n_lines: u64,
    sessions: FxHashSet<u32>,
    is_closed: bool,
}

/// Reads pieces.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Feed {
    pub names: LogNames,
    pub sessions: Sessions,
    sources: Vec<LogSource>,
    held: FxHashMap<u32, HeldLine>,
    /// Number of remaining transactions of each session, if the log is finished.
    left: Option<FxHashMap<u32, u64>>,
    #[serde(skip)]
    is_counting: bool,
    has_stamps: bool,
    fence: Option<KeyNumber>,
    unknown_limit: Option<i64>,
    /// Values that mean the initial state, once a header was read.
    pub initial: Option<Vec<ValueName>>,
    pub initial_of: Vec<(KeyNumber, ValueName)>,
    /// Transactions that are ready to be judged.
    #[serde(skip)]
    pub ready: Vec<LoggedTxn>,
    pub latest: i64,
    pub is_ended: bool,
    /// Final lines, as a history, if requested.
    #[serde(skip)]
    pub kept: Option<Vec<u8>>,
}

/// The settings of a feed.
pub struct FeedOptions {
    pub announced: Option<usize>,
    pub has_time: bool,
    pub has_stamps: bool,
    pub fence: Option<String>,
    pub unknown_limit: Option<i64>,
    pub is_finished: bool,
}

impl Feed {
    pub fn new(options: &FeedOptions) -> Self {
        let mut names = LogNames::default();
        let fence = options.fence.as_ref().map(|key| {
            let number = key.parse::<i64>().map(Value::from);
            let key = number.unwrap_or_else(|_| Value::from(key.as_str()));
            names.keys.json(&key).unwrap_or_default()
        });
        Feed {
            names,
            sessions: Sessions::new(options.announced, options.has_time, fence),
            sources: Vec::new(),
            held: FxHashMap::default(),
            left: options.is_finished.then(FxHashMap::default),
            is_counting: false,
            has_stamps: options.has_stamps,
            fence,
            unknown_limit: options.unknown_limit,
            initial: None,
            initial_of: Vec::new(),
            ready: Vec::new(),
            latest: i64::MIN,
            is_ended: false,
            kept: None,
        }
    }

    /// Reads a finished log once, to learn its sessions and how long each is.
    pub fn count(&mut self, input: &mut LogInput) -> Result<()> {
        self.is_counting = true;
        while let super::input::Polled::Piece(piece) = input.poll()? {
            self.take(&piece, input)?;
        }
        self.is_counting = false;
        let n_sessions = self.left.as_ref().map_or(0, FxHashMap::len);
        self.sessions.announce(n_sessions);
        self.sources.clear();
        self.initial_of.clear();
        Ok(())
    }

    /// Takes whole lines.
    pub fn take(&mut self, piece: &Piece, input: &LogInput) -> Result<()> {
        let Piece { source, bytes, .. } = piece;
        if self.sources.len() <= *source {
            self.sources.resize_with(source + 1, LogSource::default);
        }
        let file = input.name(*source);
        let unknown = Finder::new(b"\"unknown\"");
        let mut plain = (0, 0, 0);
        let mut at = 0;
        while at < bytes.len() {
            let end = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |it| at + it + 1);
            let line = bytes[at..end].trim_ascii();
            let number = self.sources[*source].n_lines + 1;
            self.sources[*source].n_lines = number;
            let is_plain = self.sources[*source].header.is_some()
                && !is_control(line)
                && (self.left.is_some() || unknown.find(line).is_none());
            if is_plain {
                if plain.0 == plain.1 {
                    plain = (at, at, number);
                }
                plain.1 = end;
                at = end;
                continue;
            }
            self.plain(input, *source, &bytes[plain.0..plain.1], plain.2)?;
            plain = (end, end, 0);
            if !line.is_empty() {
                let text = std::str::from_utf8(line)
                    .with_context(|| format!("{file}, line {number}: not UTF-8"))?;
                // Recorders write blanks before a line that would cross a block.
                let n_blanks = end - at - bytes[at..end].trim_ascii_start().len();
                let offset = piece.offset + (at + n_blanks) as u64;
                self.special(input, *source, text, offset, number)
                    .with_context(|| format!("{file}, line {number}"))?;
            }
            at = end;
        }
        self.plain(input, *source, &bytes[plain.0..plain.1], plain.2)?;
        if piece.is_last {
            self.close_source(*source, input)?;
        }
        Ok(())
    }

    fn plain(&mut self, input: &LogInput, source: usize, lines: &[u8], line: u64) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let file = &input.name(source);
        let header = self.sources[source].header.clone().unwrap_or_default();
        let (txns, initial) = self.names.read(&header, lines, file, line)?;
        self.keep(lines);
        self.initial_of.extend(initial);
        for txn in txns {
            self.deliver(source, txn, input)
                .with_context(|| format!("{file}, from line {line}"))?;
        }
        Ok(())
    }

    fn special(
        &mut self,
        input: &LogInput,
        source: usize,
        line: &str,
        offset: u64,
        number: u64,
    ) -> Result<()> {
        if self.sources[source].header.is_none() {
            return self.header(source, line);
        }
        if is_control(line.as_bytes()) {
            let control: ControlLine = serde_json::from_str(line)
                .context("expected heartbeat, open or close with session, time or ts, or end with session, status and commit")?;
            if let ControlLine::End(end) = &control {
                return self.fill(end, input);
            }
            self.keep(line.as_bytes());
            return self.control(source, &control, input);
        }
        let header = self.sources[source].header.clone().unwrap_or_default();
        let file = input.name(source);
        let (txns, _) = self.names.read(&header, line.as_bytes(), &file, number)?;
        for txn in txns {
            if txn.status != Status::Unknown || self.is_counting {
                self.keep(line.as_bytes());
                self.deliver(source, txn, input)?;
                continue;
            }
            let (session, begin) = (txn.session, txn.begin);
            self.go_on(session, input)?;
            self.promise(&txn)?;
            self.sources[source].sessions.insert(session);
            let held = HeldLine {
                source,
                offset,
                line: number,
                text: line.to_owned(),
                begin,
                is_given_up: false,
            };
            self.held.insert(session, held);
        }
        Ok(())
    }

    fn header(&mut self, source: usize, line: &str) -> Result<()> {
        let header: LogHeader = serde_json::from_str(line)
            .context("expected a first line like {\"kingsnake\":1,\"initial\":0}")?;
        ensure!(header.kingsnake == 1, "expected version 1 of the format");
        ensure!(
            header.tables.is_none(),
            "tables and conditions are not watched; `kingsnake check` takes them"
        );
        if let Some(n_sessions) = header.sessions {
            self.sessions.announce(n_sessions);
        }
        let values = match header.initial {
            Value::Array(values) => values,
            value => vec![value],
        };
        let values: Vec<ValueName> = values.iter().map(json_value_name).collect::<Result<_>>()?;
        if self.initial.as_ref().is_some_and(|it| *it != values) {
            bail!("another initial value than in the other logs");
        }
        if self.initial.is_none() {
            // A history has one header, though every client sends one.
            self.keep(line.as_bytes());
        }
        self.initial = Some(values);
        self.sources[source].header = Some(line.to_owned());
        Ok(())
    }

    fn control(&mut self, source: usize, control: &ControlLine, input: &LogInput) -> Result<()> {
        if self.is_counting {
            return Ok(());
        }
        let (ControlLine::Heartbeat(fields)
        | ControlLine::Open(fields)
        | ControlLine::Close(fields)) = control
        else {
            return Ok(());
        };
        let time = if self.has_stamps {
            fields.ts
        } else {
            fields.time
        };
        let session = match &fields.session {
            Some(name) => Some(self.names.sessions.json(name)?),
            None => None,
        };
        match (control, session) {
            (ControlLine::Heartbeat(_), session) => {
                // The outcome of a held line is open, but it has begun.
                if let Some(time) = time {
                    let promised = self.sessions.promise(session, time);
                    return self.named(promised, session.unwrap_or_default());
                }
            }
            (ControlLine::Open(_), Some(session)) => {
                self.sources[source].sessions.insert(session);
                let opened = self.sessions.open(session, time.unwrap_or(i64::MIN));
                return self.named(opened, session);
            }
            (ControlLine::Open(_), None) => bail!("open without a session"),
            (ControlLine::Close(_), Some(session)) => {
                self.go_on(session, input)?;
                self.sessions.close(session);
            }
            (ControlLine::Close(_), None) => self.close_source(source, input)?,
            (ControlLine::End(_), _) => {}
        }
        Ok(())
    }

    /// Notes a final line.
    fn keep(&mut self, lines: &[u8]) {
        if let Some(kept) = &mut self.kept {
            kept.extend_from_slice(lines);
            if !lines.ends_with(b"\n") {
                kept.push(b'\n');
            }
        }
    }

    /// The source delivers nothing more.
    fn close_source(&mut self, source: usize, input: &LogInput) -> Result<()> {
        let mut sessions: Vec<u32> = self.sources[source].sessions.iter().copied().collect();
        sessions.sort_unstable();
        for session in sessions {
            self.go_on(session, input)?;
            self.sessions.close(session);
        }
        self.sources[source].is_closed = true;
        // Files that were not read yet are not closed.
        let is_complete = self.sources.len() == input.log_files().len();
        self.is_ended |= is_complete && self.sources.iter().all(|it| it.is_closed);
        Ok(())
    }

    /// Nothing arrives any more.
    pub fn end(&mut self, input: &LogInput) -> Result<()> {
        let has_header = self.sources.iter().any(|it| it.header.is_some());
        ensure!(has_header, "the log is empty: it has not even a header");
        let sessions: Vec<u32> = self.held.keys().copied().collect();
        for session in sessions {
            self.go_on(session, input)?;
        }
        self.sessions.end();
        self.is_ended = true;
        Ok(())
    }

    fn named<T>(&self, result: Result<T, BrokenPromise>, session: u32) -> Result<T> {
        result.map_err(|broken| {
            let name = self.names.sessions.name(session);
            let hint = match broken {
                BrokenPromise::Early { .. } | BrokenPromise::Unannounced => {
                    " (announce sessions in the header, by `open` lines or with --sessions; --finished reads them from a log that is complete)"
                }
                _ => "",
            };
            anyhow!("protocol error: session {name} {broken}{hint}")
        })
    }

    /// Whether the session may begin this transaction; called when it is committed.
    fn promise(&mut self, txn: &LoggedTxn) -> Result<()> {
        let (begin, commit) = if self.has_stamps {
            (txn.start_ts.unwrap_or(i64::MIN), None)
        } else {
            (txn.begin, txn.commit)
        };
        // Transactions that did not commit need no timestamps.
        if self.has_stamps && txn.status != Status::Committed {
            return Ok(());
        }
        self.latest = self.latest.max(begin).max(commit.unwrap_or(i64::MIN));
        let promised = self.sessions.deliver(txn.session, begin, commit);
        self.named(promised, txn.session)
    }

    fn deliver(&mut self, source: usize, txn: LoggedTxn, input: &LogInput) -> Result<()> {
        let session = txn.session;
        if self.is_counting {
            if let Some(left) = &mut self.left {
                *left.entry(session).or_default() += 1;
            }
            return Ok(());
        }
        if self.held.contains_key(&session) {
            self.go_on(session, input)?;
        }
        self.promise(&txn)?;
        self.sources[source].sessions.insert(session);
        self.push(txn)?;
        if let Some(left) = self.left.as_mut().and_then(|it| it.get_mut(&session)) {
            *left -= 1;
            if *left == 0 {
                self.sessions.close(session);
            }
        }
        Ok(())
    }

    fn push(&mut self, mut txn: LoggedTxn) -> Result<()> {
        if txn.status == Status::Unknown && txn.commit.is_none() && txn.begin != i64::MIN {
            let limit = self.unknown_limit;
            txn.commit = limit.map(|limit| txn.begin.saturating_add(limit));
        }
        // Aborted transactions, and uncommitted ones that contradict themselves, had no effect.
        let is_without_effect =
            txn.status == Status::Aborted || txn.is_broken && txn.status == Status::Unknown;
        if is_without_effect {
            return Ok(());
        }
        let is_fence = self.fence.is_some_and(|key| {
            let has = |ops: &[(KeyNumber, ValueName)]| ops.iter().any(|it| it.0 == key);
            has(&txn.reads) && has(&txn.writes)
        });
        // A fence of unknown outcome is in the chain if it counts, and admits no other session otherwise.
        if txn.status == Status::Committed || !is_fence {
            let counted = self.sessions.count(txn.session, is_fence);
            self.named(counted, txn.session)?;
        }
        self.ready.push(txn);
        Ok(())
    }

    /// The fence's key.
    pub fn fence(&self) -> Option<KeyNumber> {
        self.fence
    }

    /// The headers of the sources.
    pub fn first_header(&self) -> &str {
        let headers = self.sources.iter().filter_map(|it| it.header.as_deref());
        headers.into_iter().next().unwrap_or("{\"kingsnake\":1}")
    }

    /// Whether every announced session appeared and was closed.
    pub fn is_done(&self) -> bool {
        self.is_ended || self.sessions.is_done()
    }
}
