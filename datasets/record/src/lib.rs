//! Records what the clients of a database saw, as a history that `kingsnake check` reads: sessions in threads, transactions with
//! begin and commit times, ends that nobody knows, and a file that is whole whenever the process dies.
//!
//! ```
//! use kingsnake_record::Recorder;
//!
//! # fn main() -> std::io::Result<()> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("history.jsonl");
//! let recorder = Recorder::create(&path, 0)?;
//! let mut session = recorder.session("client 1");
//! let mut transaction = session.begin();
//! transaction.read("x", 0);
//! transaction.write("x", 1);
//! let end = transaction.ready()?; // From here on the database may have committed it.
//! end.committed()?; // Or `aborted`; or drop it, where the answer never came.
//! # Ok(())
//! # }
//! ```
//!
//! Invariant: a transaction whose commit may have reached the database is in the file. [`Transaction::ready`] writes its line with an
//! unknown end and room for the true one, which [`Ending`] then fills in. Lines of up to 4,096 bytes are in the file whole or not at
//! all, whenever the process is killed; a longer one that is being written then is cut, and its commit was not sent yet.

mod value;

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

pub use value::Field;

/// Room for the longest end: `"committed","commit":` and a number of 64 bits.
const ROOM: usize = 44;

/// The smallest page of memory in use.
const PAGE: u64 = 4096;

struct Inner {
    file: Mutex<File>,
    next: AtomicU64,
    /// When the recorder was made, by the wall clock in nanoseconds and by a clock that never steps.
    origin: (i64, Instant),
}

impl Inner {
    /// Now, in nanoseconds since 1970; never earlier than what it returned before.
    fn now(&self) -> i64 {
        let since = self.origin.1.elapsed().as_nanos();
        self.origin
            .0
            .saturating_add(i64::try_from(since).unwrap_or(i64::MAX))
    }

    /// Appends a line, whole or not at all.
    fn append(&self, line: &str) -> io::Result<()> {
        let mut file = self.file();
        let start = file.seek(SeekFrom::End(0))?;
        let blank = blank_before(start, line.len());
        file.write_all(format!("{:blank$}{line}", "").as_bytes())
    }

    /// A thread that panicked within a write left at most a line with an unknown end.
    fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file that is being recorded, shared by all threads.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

impl Recorder {
    /// Begins a file. `initial` is the value of every key before the first transaction; [`Field::Null`] if there is none.
    pub fn create(path: impl AsRef<Path>, initial: impl Into<Field>) -> io::Result<Recorder> {
        let mut file = File::create(path)?;
        let header = format!("{{\"kingsnake\":1,\"initial\":{}}}\n", initial.into());
        file.write_all(header.as_bytes())?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |it| i64::try_from(it.as_nanos()).unwrap_or(0));
        Ok(Recorder(Arc::new(Inner {
            file: Mutex::new(file),
            next: AtomicU64::new(1),
            origin: (now, Instant::now()),
        })))
    }

    /// A client that runs one transaction after the other. Give each its own name.
    pub fn session(&self, name: impl Into<Field>) -> Session {
        Session {
            inner: Arc::clone(&self.0),
            name: name.into(),
        }
    }

    /// Tells a watch that the log is complete.
    pub fn close(&self) -> io::Result<()> {
        self.0.append("{\"close\":{}}\n")
    }

    /// Waits until everything is on the disk, which outlives a crash of the machine; a crash of the process needs nothing.
    pub fn sync(&self) -> io::Result<()> {
        self.0.file().sync_data()
    }
}

/// One client.
pub struct Session {
    inner: Arc<Inner>,
    name: Field,
}

impl Session {
    /// Tells a watch that this session exists and begins nothing before now. Call it before any session's first transaction ends.
    pub fn open(&mut self) -> io::Result<()> {
        self.promise("open")
    }

    /// Tells a watch that this session begins nothing before now, while it is idle.
    pub fn heartbeat(&mut self) -> io::Result<()> {
        self.promise("heartbeat")
    }

    /// Tells a watch that this session is over.
    pub fn close(self) -> io::Result<()> {
        let line = format!("{{\"close\":{{\"session\":{}}}}}\n", self.name);
        self.inner.append(&line)
    }

    fn promise(&self, what: &str) -> io::Result<()> {
        let now = self.inner.now();
        let name = &self.name;
        self.inner.append(&format!(
            "{{\"{what}\":{{\"session\":{name},\"time\":{now}}}}}\n"
        ))
    }

    /// Begins a transaction; call it before the database hears of it.
    pub fn begin(&mut self) -> Transaction<'_> {
        let begin = self.inner.now();
        let id = self.inner.next.fetch_add(1, Ordering::Relaxed);
        Transaction {
            session: self,
            id,
            begin,
            operations: Vec::new(),
        }
    }
}

/// A transaction that is under way. One that is dropped leaves no line: its commit was never sent.
#[must_use = "a transaction that is dropped is not recorded"]
pub struct Transaction<'s> {
    session: &'s mut Session,
    id: u64,
    begin: i64,
    operations: Vec<String>,
}

impl<'s> Transaction<'s> {
    /// The key held this value; [`Field::Null`] if there was no row.
    pub fn read(&mut self, key: impl Into<Field>, value: impl Into<Field>) {
        self.add("r", &[key.into(), value.into()]);
    }

    /// The key was set to this value. Values are best unique for each key.
    pub fn write(&mut self, key: impl Into<Field>, value: impl Into<Field>) {
        self.add("w", &[key.into(), value.into()]);
    }

    /// The key held `expected` and was set to `new`.
    pub fn compare_and_set(
        &mut self,
        key: impl Into<Field>,
        expected: impl Into<Field>,
        new: impl Into<Field>,
    ) {
        self.add("cas", &[key.into(), expected.into(), new.into()]);
    }

    /// The key's row was deleted.
    pub fn delete(&mut self, key: impl Into<Field>) {
        self.add("delete", &[key.into()]);
    }

    /// The value was appended to the key's list.
    pub fn append(&mut self, key: impl Into<Field>, value: impl Into<Field>) {
        self.add("a", &[key.into(), value.into()]);
    }

    /// The key held this list.
    pub fn read_list(
        &mut self,
        key: impl Into<Field>,
        values: impl IntoIterator<Item = impl Into<Field>>,
    ) {
        let values: Vec<String> = values.into_iter().map(|it| it.into().to_string()).collect();
        let words = format!("[\"rl\",{},[{}]]", key.into(), values.join(","));
        self.operations.push(words);
    }

    fn add(&mut self, name: &str, values: &[Field]) {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        self.operations
            .push(format!("[\"{name}\",{}]", values.join(",")));
    }

    /// Writes the transaction with an unknown end. Call it before the commit is sent, so that a crash after that loses nothing.
    pub fn ready(self) -> io::Result<Ending<'s>> {
        let head = format!(
            "{{\"id\":{},\"session\":{},\"begin\":{},\"status\":",
            self.id, self.session.name, self.begin
        );
        let end = pad("\"unknown\"");
        let line = format!("{head}{end},\"ops\":[{}]}}\n", self.operations.join(","));
        let mut file = self.session.inner.file();
        let start = file.seek(SeekFrom::End(0))?;
        let blank = blank_before(start, line.len());
        let place = start + (blank + head.len()) as u64;
        file.write_all(format!("{:blank$}{line}", "").as_bytes())?;
        drop(file);
        Ok(Ending {
            session: self.session,
            place,
        })
    }

    /// Writes the transaction as aborted: the client rolled it back, or the database refused an operation. What it wrote counts, so
    /// that a read of it is found.
    pub fn abort(self) -> io::Result<()> {
        self.ready()?.aborted()
    }
}

/// A transaction whose commit may have been sent. Where nothing is said its end stays unknown.
pub struct Ending<'s> {
    session: &'s mut Session,
    place: u64,
}

impl Ending<'_> {
    /// The database said that it is committed. Call it after the answer: the time is a bound of the true one.
    pub fn committed(self) -> io::Result<()> {
        let now = self.session.inner.now();
        self.fill(&format!("\"committed\",\"commit\":{now}"))
    }

    /// The database said that it is aborted.
    pub fn aborted(self) -> io::Result<()> {
        self.fill("\"aborted\"")
    }

    /// The answer never came, or says neither. The same as dropping it.
    pub fn unknown(self) {}

    fn fill(self, end: &str) -> io::Result<()> {
        let mut file = self.session.inner.file();
        file.seek(SeekFrom::Start(self.place))?;
        file.write_all(pad(end).as_bytes())
    }
}

/// How many spaces go before a line. A process that is killed stops writing at the end of a page, so a line that would cross one
/// begins at it: then it is in the file whole, or not at all.
fn blank_before(start: u64, n_bytes: usize) -> usize {
    let used = (start % PAGE) as usize;
    let left = PAGE as usize - used;
    if used == 0 || n_bytes <= left {
        0
    } else {
        left
    }
}

/// Spaces after a value mean nothing in JSON.
fn pad(end: &str) -> String {
    format!("{end:<ROOM$}")
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/record.md")]
struct TheSnippetOfTheDocument;
