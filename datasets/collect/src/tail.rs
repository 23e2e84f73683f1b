//! Reads the journals of a running collection, as lines of our format in the order in which each client wrote them.
//!
//! A journal's bytes are written once each, from zeros, so what stands before the first zero byte is final. A transaction whose end
//! is unknown is held back while the database is asked what became of it; its client's lines wait with it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustc_hash::FxHashSet;
use serde_json::json;

use crate::adapter::{Database, Resolution};
use crate::journal::journal_name;
use crate::merge;
use crate::meta::Meta;
use crate::read::{BadJournal, JournalReader, KeyNames, Status, Txn};

const PIECE: usize = 1 << 20;
/// How long a database is asked for a transaction's outcome.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time between two such questions.
const PAUSE: Duration = Duration::from_millis(250);

/// The journals of a collection.
pub struct JournalTail {
    directory: PathBuf,
    meta: Meta,
    journals: Vec<TailedJournal>,
    /// Whether a session may appear that begins nothing below the time of its line `open`.
    has_time: bool,
}

#[derive(Default)]
struct TailedJournal {
    file: Option<File>,
    offset: u64,
    reader: JournalReader,
    session: Option<i64>,
    /// The last begin that was told.
    begun: i64,
    unsettled: Option<Unsettled>,
}

struct Unsettled {
    txn: Txn,
    since: Instant,
    asked: Option<Instant>,
}

impl JournalTail {
    /// The journals that clients are writing into this directory. At levels with real time, `has_time`, sessions also say that they
    /// have begun.
    pub fn open(directory: &Path, has_time: bool) -> io::Result<Self> {
        let meta = Meta::read(directory)?;
        Ok(JournalTail {
            directory: directory.to_owned(),
            journals: (0..meta.sessions)
                .map(|_| TailedJournal::default())
                .collect(),
            meta,
            has_time,
        })
    }

    /// How many journals there are.
    pub fn n_journals(&self) -> usize {
        self.journals.len()
    }

    /// The first lines of each journal's history.
    pub fn header(&self) -> String {
        let Meta { sessions, .. } = self.meta;
        let initial = self.meta.initial();
        let mut lines =
            format!("{{\"kingsnake\":1,\"initial\":{initial},\"sessions\":{sessions}}}\n");
        for (key, _) in self.meta.initial_rows() {
            lines += &format!("{{\"initial\":{{\"key\":{key},\"value\":0}}}}\n");
        }
        lines
    }

    /// What a client has written since the last call, as whole lines. Where `is_over`, nothing follows: then ends that the database
    /// has not told yet stay unknown.
    pub fn poll(
        &mut self,
        client: usize,
        database: &dyn Database,
        is_over: bool,
    ) -> Result<Vec<u8>, BadJournal> {
        let path = self.directory.join(journal_name(client));
        let mut lines = Vec::new();
        if !self.settle(client, database, is_over, &mut lines) {
            return Ok(lines);
        }
        let io = |error| BadJournal::Io {
            path: path.clone(),
            error,
        };
        let journal = &mut self.journals[client];
        if journal.file.is_none() && path.is_file() {
            journal.file = Some(File::open(&path).map_err(io)?);
        }
        let Some(file) = &journal.file else {
            return Ok(lines);
        };
        let bytes = written(file, journal.offset).map_err(io)?;
        let mut used = 0;
        while let Some(end) = bytes[used..].iter().position(|&it| it == b'\n') {
            let line = &bytes[used..used + end];
            used += end + 1;
            let journal = &mut self.journals[client];
            journal.offset += end as u64 + 1;
            let ended = journal.reader.take(line, client, &path)?;
            if let Some(txn) = ended {
                self.end(client, txn, &mut lines);
                if !self.settle(client, database, is_over, &mut lines) {
                    return Ok(lines);
                }
            }
            if let Some((session, begin)) = self.journals[client].reader.begun() {
                self.enter(client, session, begin, &mut lines);
            }
        }
        // From time to time is enough: each line that is not a transaction costs the watch as much as many that are.
        self.beat(client, &mut lines);
        if is_over
            && used == 0
            && let Some(txn) = self.journals[client].reader.cut()
        {
            self.end(client, txn, &mut lines);
            self.settle(client, database, is_over, &mut lines);
        }
        Ok(lines)
    }

    /// The client goes on as this session: the one before is over.
    fn enter(&mut self, client: usize, session: i64, begin: i64, lines: &mut Vec<u8>) {
        let before = self.journals[client].session.replace(session);
        if before == Some(session) {
            return;
        }
        if self.has_time {
            let open = json!({"open": {"session": session, "time": begin}});
            push(lines, &open.to_string());
        }
        if let Some(before) = before {
            push(lines, &json!({"close": {"session": before}}).to_string());
        }
    }

    /// The transaction that is under way has begun: its session begins nothing earlier.
    fn beat(&mut self, client: usize, lines: &mut Vec<u8>) {
        let journal = &mut self.journals[client];
        if let Some((session, begin)) = journal.reader.begun()
            && self.has_time
            && begin > journal.begun
        {
            journal.begun = begin;
            let beat = json!({"heartbeat": {"session": session, "time": begin}});
            push(lines, &beat.to_string());
        }
    }

    fn end(&mut self, client: usize, txn: Txn, lines: &mut Vec<u8>) {
        if txn.status == Status::Unknown {
            self.journals[client].unsettled = Some(Unsettled {
                txn,
                since: Instant::now(),
                asked: None,
            });
            return;
        }
        self.push_txn(&txn, lines);
    }

    fn push_txn(&self, txn: &Txn, lines: &mut Vec<u8>) {
        // No snapshot names a transaction here: conditions are not watched.
        // Writing into memory does not fail.
        let _ = merge::write_txn(
            lines,
            &self.meta,
            txn,
            (&FxHashSet::default(), &KeyNames::default()),
        );
    }

    /// Asks for the end of a transaction that is held back; whether none is left.
    fn settle(
        &mut self,
        client: usize,
        database: &dyn Database,
        is_over: bool,
        lines: &mut Vec<u8>,
    ) -> bool {
        let Some(mut held) = self.journals[client].unsettled.take() else {
            return true;
        };
        let resolved = match &held.txn.name {
            Some(_) if !is_over && held.asked.is_some_and(|it| it.elapsed() < PAUSE) => None,
            Some(name) => {
                held.asked = Some(Instant::now());
                Some(database.resolve(name))
            }
            None => Some(Resolution::Unknown),
        };
        held.txn.status = match resolved {
            Some(Resolution::Committed) => Status::Committed,
            Some(Resolution::Aborted) => Status::Aborted,
            _ => Status::Unknown,
        };
        let gives_up = held.txn.name.is_none() || is_over || held.since.elapsed() >= PATIENCE;
        if held.txn.status == Status::Unknown && !gives_up {
            self.journals[client].unsettled = Some(held);
            return false;
        }
        self.push_txn(&held.txn, lines);
        true
    }
}

fn push(lines: &mut Vec<u8>, line: &str) {
    lines.extend_from_slice(line.as_bytes());
    lines.push(b'\n');
}

/// What stands in a journal from a place on, up to its first zero byte.
fn written(file: &File, offset: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PIECE];
    let mut length = 0;
    while length < PIECE {
        match file.read_at(&mut bytes[length..], offset + length as u64) {
            Ok(0) => break,
            Ok(n_bytes) => length += n_bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let zero = bytes[..length].iter().position(|&it| it == 0);
    bytes.truncate(zero.unwrap_or(length));
    Ok(bytes)
}
