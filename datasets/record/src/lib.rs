//! Records what the clients of a database saw, as a history that `kingsnake check` reads: sessions in threads, transactions with
//! begin and commit times, unknown ends, and a file that is whole whenever the process dies.
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
//! all, whenever the process is killed; a longer one that is being written then is cut, and its commit was not sent yet. A watch that is
//! connected ([`Recorder::connect`]) gets the line and its end as two messages, in the same order.

mod sink;
mod value;

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sink::Sink;
pub use value::Field;

struct Inner {
    sink: Mutex<Sink>,
    next: AtomicU64,
    /// The key of fences, and how many transactions of a session go between two.
    fences: Option<(Field, u64)>,
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
        self.sink().append(line).map(|_| ())
    }

    /// A thread that panicked within a write left at most a line with an unknown end.
    fn sink(&self) -> MutexGuard<'_, Sink> {
        self.sink.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is being recorded, shared by all threads.
#[derive(Clone)]
pub struct Recorder(Arc<Inner>);

impl Recorder {
    /// Begins a file. `initial` is the value of every key before the first transaction; [`Field::Null`] if there is none.
    pub fn create(path: impl AsRef<Path>, initial: impl Into<Field>) -> io::Result<Recorder> {
        Self::begin(Sink::file(File::create(path)?), &initial.into(), |_| 1)
    }

    /// Sends to a watch that listens (`kingsnake watch --listen ADDRESS`), at `unix:PATH` or `HOST:PORT`. Where the process dies, its
    /// sessions are closed, and what it was committing has an unknown end.
    pub fn connect(address: &str, initial: impl Into<Field>) -> io::Result<Recorder> {
        // Several recorders may send to one watch, so each counts from a number of its own.
        Self::begin(Sink::connect(address)?, &initial.into(), |now| now)
    }

    fn begin(mut sink: Sink, initial: &Field, first: fn(i64) -> i64) -> io::Result<Recorder> {
        sink.append(&format!("{{\"kingsnake\":1,\"initial\":{initial}}}\n"))?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_or(0, |it| i64::try_from(it.as_nanos()).unwrap_or(0));
        Ok(Recorder(Arc::new(Inner {
            sink: Mutex::new(sink),
            next: AtomicU64::new(first(now).unsigned_abs()),
            fences: None,
            origin: (now, Instant::now()),
        })))
    }

    /// Offers fences to a watch at `ser` or `si` (`--fence KEY`): [`Session::owes_fence`] is true for a session's first transaction and
    /// again after `every` of them. Call it before the recorder is shared.
    #[must_use]
    pub fn with_fences(mut self, key: impl Into<Field>, every: u64) -> Recorder {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.fences = Some((key.into(), every));
        }
        self
    }

    /// A client that runs one transaction after the other. Give each its own name.
    pub fn session(&self, name: impl Into<Field>) -> Session {
        Session {
            inner: Arc::clone(&self.0),
            name: name.into(),
            since_fence: None,
        }
    }

    /// Tells a watch that the log is complete.
    pub fn close(&self) -> io::Result<()> {
        self.0.append("{\"close\":{}}\n")
    }

    /// Waits until everything is on the disk, which outlives a crash of the machine; a crash of the process needs nothing.
    pub fn sync(&self) -> io::Result<()> {
        self.0.sink().sync()
    }
}

/// One client.
pub struct Session {
    inner: Arc<Inner>,
    name: Field,
    /// Transactions that committed since the last fence; `None` before the first one.
    since_fence: Option<u64>,
}

impl Session {
    /// Whether the next transaction should read and write the key of fences ([`Recorder::with_fences`]) and nothing else. It stays
    /// true until such a transaction commits.
    pub fn owes_fence(&self) -> bool {
        let fences = self.inner.fences.as_ref();
        fences.is_some_and(|(_, every)| self.since_fence.is_none_or(|it| it >= *every))
    }

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
            fence: [false; 2],
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
    /// Whether it read, and whether it wrote, the key of fences.
    fence: [bool; 2],
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
        if let Some((key, _)) = &self.session.inner.fences
            && values.first() == Some(key)
        {
            self.fence[0] |= name == "r";
            self.fence[1] |= name == "w";
        }
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
        let tail = format!(",\"ops\":[{}]}}\n", self.operations.join(","));
        let place = self.session.inner.sink().append_open(&head, &tail)?;
        Ok(Ending {
            is_fence: self.fence == [true; 2],
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

/// A transaction whose commit may have been sent. Without a call its outcome stays unknown.
pub struct Ending<'s> {
    session: &'s mut Session,
    place: u64,
    is_fence: bool,
}

impl Ending<'_> {
    /// The database said that it is committed. Call it after the answer: the time is a bound of the true one.
    pub fn committed(self) -> io::Result<()> {
        let now = self.session.inner.now();
        let since = self.session.since_fence.map(|it| it + 1);
        self.session.since_fence = if self.is_fence { Some(0) } else { since };
        self.fill(&format!("\"committed\",\"commit\":{now}"))
    }

    /// The database said that it is aborted.
    pub fn aborted(self) -> io::Result<()> {
        self.fill("\"aborted\"")
    }

    /// The answer never came, or is unclear. The same as dropping it.
    pub fn unknown(self) {}

    fn fill(self, end: &str) -> io::Result<()> {
        let name = &self.session.name;
        self.session.inner.sink().fill(self.place, name, end)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/record.md")]
struct TheSnippetOfTheDocument;
