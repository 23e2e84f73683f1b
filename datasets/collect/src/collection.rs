//! A whole collection: creates tables, runs clients, reads the database's log, merges journals into a history, drops tables.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kingsnake_datasets::workloads::WorkloadKind;
use serde_json::{Value, json};
use thiserror::Error;

use crate::adapter::{Database, Failure, VersionLog};
use crate::driver::{self, Clock, CollectRun, Ran, StepTold, Tally};
use crate::journal::journals;
use crate::merge::{self, Merged};
use crate::meta::Meta;
use crate::read::{self, BadJournal};
use crate::sql::Statement;
use crate::timeline::CollectTimeline;
use crate::workload::Load;

/// The name of the history within a collection's directory.
pub const HISTORY: &str = "history.jsonl";
const EVENTS: &str = "events.jsonl";
/// Locked as long as a process is collecting.
const HELD: &str = ".collecting";

/// Why there is no history.
#[derive(Debug, Error)]
pub enum CollectError {
    /// The directory holds a collection already.
    #[error(
        "{0} holds another collection; choose another --out, or merge its journals with --merge"
    )]
    Occupied(PathBuf),
    /// The directory is another command's.
    #[error("{0} holds {1}, which is not of a collection; choose another --out")]
    Foreign(PathBuf, &'static str),
    /// Another process is collecting there.
    #[error("another process is collecting into {0}")]
    Busy(PathBuf),
    /// The directory holds no collection.
    #[error("{0} holds no collection: {1}")]
    NoCollection(PathBuf, io::Error),
    /// The file system says no.
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    /// The database says no, before the first transaction.
    #[error("{0}")]
    Database(String),
    /// A journal cannot be read.
    #[error(transparent)]
    Journal(#[from] BadJournal),
}

/// The result of a collection.
#[derive(Clone, Debug)]
pub struct Collected {
    /// The history.
    pub history: PathBuf,
    /// What was collected.
    pub meta: Meta,
    /// Counts of outcomes.
    pub tally: Tally,
    /// The steps of a script, as they were carried out.
    pub steps: Vec<StepTold>,
    /// The result of merging.
    pub merged: Merged,
    /// Why the clients stopped early, if they did.
    pub ended_early: Option<String>,
    /// Further notes for the user.
    pub notes: Vec<String>,
    /// How long the clients ran.
    pub running: Duration,
    /// How long the log was read and the journals merged.
    pub merging: Duration,
}

/// Records faults and other events as they happen.
pub struct Events {
    file: Mutex<std::fs::File>,
    clock: Clock,
}

impl Events {
    fn create(directory: &Path, clock: Clock) -> io::Result<Self> {
        let file = std::fs::File::create(directory.join(EVENTS))?;
        Ok(Events {
            file: Mutex::new(file),
            clock,
        })
    }

    /// Writes down that this happens now.
    pub fn tell(&self, what: &str) {
        let line = json!({"time": self.clock.now(), "what": what});
        let mut file = self
            .file
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        // An event that cannot be recorded must not stop the clients.
        let _ = writeln!(file, "{line}");
    }
}

/// What to collect.
pub struct CollectRequest<'a> {
    /// The database, as typed.
    pub name: &'a str,
    /// The isolation level, as typed.
    pub isolation: &'a str,
    /// The workload, as typed.
    pub workload: &'a str,
    /// How versions are put in order.
    pub version_order: crate::adapter::OrderBy,
    /// How the workload runs.
    pub run: CollectRun,
    /// Where everything goes.
    pub directory: &'a Path,
    /// Leaves the tables as they are if this is true when the clients have ended.
    pub leaves_tables: Option<&'a AtomicBool>,
}

/// Runs beside the clients, until they have ended.
pub type Beside<'a> = &'a (dyn Fn(&Events, &AtomicBool) + Sync);

impl CollectRequest<'_> {
    /// Collects.
    pub fn collect(
        &self,
        database: &dyn Database,
        load: &Load,
        stop: &AtomicBool,
        beside: Option<Beside<'_>>,
        watch: &mut dyn FnMut(&Tally),
    ) -> Result<Collected, CollectError> {
        let io = |error| CollectError::Io(self.directory.to_owned(), error);
        let was_there = self.directory.exists();
        std::fs::create_dir_all(self.directory).map_err(io)?;
        let _held = hold(self.directory)?;
        let refused = |failure: Failure| {
            if !was_there {
                // Only an empty directory goes.
                let _ = std::fs::remove_file(self.directory.join(HELD));
                let _ = std::fs::remove_dir(self.directory);
            }
            CollectError::Database(match failure {
                // A lost connection means nothing if there was none yet.
                Failure::Lost(words) => words,
                other => other.to_string(),
            })
        };
        let version = database.version().map_err(refused)?;
        database.prepare(load.initially()).map_err(refused)?;
        let (setup, teardown) = load.own_tables();
        if let Err(failure) = state_all(database, setup) {
            let _ = database.clean();
            return Err(refused(failure));
        }
        let meta = self.meta(database, load, version);
        meta.write(self.directory).map_err(io)?;
        let clock = Clock::start();
        let events = Events::create(self.directory, clock).map_err(io)?;
        let done = AtomicBool::new(false);
        let ran = std::thread::scope(|scope| {
            if let Some(beside) = beside {
                let (events, done) = (&events, &done);
                scope.spawn(move || beside(events, done));
            }
            let ran = driver::run(
                database,
                load,
                &self.run,
                self.directory,
                clock,
                stop,
                watch,
            );
            done.store(true, Ordering::Relaxed);
            ran
        });
        let Ran {
            tally,
            ended_early,
            steps,
        } = ran.map_err(io)?;
        // What runs beside the clients may have taken longer.
        let running = tally.time;
        let start = Instant::now();
        let mut notes = Vec::new();
        let patience = match ended_early {
            Some(_) => Duration::ZERO,
            None => self.run.patience,
        };
        let log = patiently(patience, || database.log()).unwrap_or_else(|failure| {
            notes.push(format!(
                "the log cannot be read, so versions are not in order: {failure}"
            ));
            None
        });
        let merged = write(self.directory, &meta, log.as_ref(), Some(database))?;
        let merging = start.elapsed();
        let leaves = self.leaves_tables.map(|it| it.load(Ordering::Relaxed));
        if leaves != Some(true) {
            if let Err(failure) = patiently(patience, || state_all(database, teardown)) {
                notes.push(format!("not all of the teardown was done: {failure}"));
            }
            if let Err(failure) = patiently(patience, || database.clean()) {
                notes.push(format!("the tables are still there: {failure}"));
            }
        }
        Ok(Collected {
            history: self.directory.join(HISTORY),
            meta,
            tally,
            steps,
            merged,
            ended_early,
            notes,
            running,
            merging,
        })
    }

    fn meta(&self, database: &dyn Database, load: &Load, version: String) -> Meta {
        Meta {
            database: self.name.to_owned(),
            version,
            isolation: self.isolation.to_owned(),
            workload: self.workload.to_owned(),
            sessions: self.run.sessions,
            seed: self.run.seed,
            version_order: self.version_order.name().to_owned(),
            initially: load.initially(),
            lists: load.kind() == WorkloadKind::Lists,
            nodes: (0..self.run.sessions).map(|it| database.node(it)).collect(),
            settings: database.settings().into_iter().collect(),
        }
    }
}

/// Runs statements that create or drop tables, one by one. The effects of those before a failed one remain: a table of
/// that name may belong to others.
fn state_all(database: &dyn Database, statements: &[Statement]) -> Result<(), Failure> {
    if statements.is_empty() {
        return Ok(());
    }
    let mut session = database.open(0)?;
    for statement in statements {
        session
            .sql(&statement.text)
            .map_err(|failure| match failure {
                Failure::Lost(why) => Failure::Lost(why),
                other => Failure::Fatal(format!("{}: {other}", statement.place)),
            })?;
    }
    Ok(())
}

/// Files that other commands leave in their directories.
const FOREIGN: [&str; 5] = [
    "batch.json",
    "study.json",
    "rows.jsonl",
    "rows.d",
    "index.html",
];

/// Takes a directory for this process only, as long as the file is open.
fn hold(directory: &Path) -> Result<std::fs::File, CollectError> {
    use rustix::fs::{FlockOperation, flock};
    let io = |error| CollectError::Io(directory.to_owned(), error);
    if let Some(name) = FOREIGN.iter().find(|it| directory.join(it).exists()) {
        return Err(CollectError::Foreign(directory.to_owned(), name));
    }
    if !journals(directory).map_err(io)?.is_empty() {
        return Err(CollectError::Occupied(directory.to_owned()));
    }
    let held = std::fs::File::create(directory.join(HELD)).map_err(io)?;
    // On a file system without locks only this check is lost.
    if flock(&held, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
    {
        return Err(CollectError::Busy(directory.to_owned()));
    }
    Ok(held)
}

/// Whether a process is collecting into a directory.
pub fn is_held(directory: &Path) -> bool {
    use rustix::fs::{FlockOperation, flock};
    let Ok(held) = std::fs::File::open(directory.join(HELD)) else {
        return false;
    };
    flock(&held, FlockOperation::NonBlockingLockExclusive) == Err(rustix::io::Errno::WOULDBLOCK)
}

/// Tries again while the connection is lost: the last fault may have been a crash.
fn patiently<T>(
    patience: Duration,
    mut attempt: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let since = Instant::now();
    loop {
        match attempt() {
            Err(Failure::Lost(_)) if since.elapsed() < patience => {
                std::thread::sleep(Duration::from_millis(50));
            }
            other => return other,
        }
    }
}

/// Runs the clients and keeps their journals, without merging them: for measuring the cost of recording.
pub fn run_only(
    database: &dyn Database,
    load: &Load,
    run: &CollectRun,
    directory: &Path,
    stop: &AtomicBool,
) -> io::Result<Tally> {
    let clock = Clock::start();
    driver::run(database, load, run, directory, clock, stop, &mut |_| {}).map(|ran| ran.tally)
}

/// Merges the journals that a collector left behind, without its database: unknown ends stay unknown, and only ranks put
/// versions in order.
pub fn merge(directory: &Path) -> Result<(Meta, Merged), CollectError> {
    let meta = Meta::read(directory)
        .map_err(|error| CollectError::NoCollection(directory.to_owned(), error))?;
    let merged = write(directory, &meta, None, None)?;
    Ok((meta, merged))
}

fn write(
    directory: &Path,
    meta: &Meta,
    log: Option<&VersionLog>,
    database: Option<&dyn Database>,
) -> Result<Merged, CollectError> {
    let (mut txns, names) = read::read(directory)?;
    let mut merged = Merged::default();
    merge::settle(&mut txns, log, database, &mut merged);
    if let Some(log) = log {
        merged.findings = merge::findings(&txns, log, meta.lists);
    }
    let orders = if meta.lists {
        // Reads of lists say it themselves.
        merge::Orders::default()
    } else {
        merge::orders(&txns, log, &mut merged.findings)
    };
    merged.n_txns = txns.len();
    merged.n_ops = txns.iter().map(|txn| txn.ops.len()).sum();
    merged.n_ordered = orders.len();
    let path = directory.join(HISTORY);
    let events = events(directory)?;
    merged.timeline = CollectTimeline::new(&txns, &events);
    let written = merge::write(&path, meta, (&txns, &names), &orders, &events);
    written.map_err(|error| CollectError::Io(path, error))?;
    Ok(merged)
}

/// The most bytes of events: a fault every millisecond for a quarter of an hour.
const MOST_EVENTS: u64 = 64 << 20;

/// The events recorded by [`Events`]; an incomplete line is dropped.
fn events(directory: &Path) -> Result<Vec<Value>, CollectError> {
    let path = directory.join(EVENTS);
    let text = match kingsnake_datasets::bounded::read_regular(&path, MOST_EVENTS) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(CollectError::Io(path, error)),
    };
    let lines = text.lines().map(serde_json::from_str::<Value>);
    Ok(lines.filter_map(Result::ok).collect())
}
