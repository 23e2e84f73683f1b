//! Runs a workload: one thread per session, one monotonic clock, every attempt a transaction of its own.
//!
//! A begin is recorded before the first request and a commit after the last answer, so the true transaction lies between
//! them. Only a connection that is lost while a commit is under way leaves an end unknown; the client then goes on as a
//! new session, because that commit may still take effect after whatever it does next.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

use crate::adapter::{Database, Key};
use crate::journal::{End, Journal, journal_name};
use crate::workload::Load;

mod client;
mod scripted;

use client::Client;
pub use scripted::StepTold;

/// How a workload is run.
#[derive(Clone, Debug)]
pub struct CollectRun {
    /// Number of clients, each with its own connection.
    pub sessions: usize,
    /// Number of transactions to run, including those that abort.
    pub txns: u64,
    /// When to stop even if there are transactions left.
    pub limit: Option<Duration>,
    /// How long a client rests between two operations.
    pub think: Duration,
    /// How often an aborted transaction is tried again, each time as a new one.
    pub retries: u32,
    /// How long a client tries to connect again before the server counts as gone.
    pub patience: Duration,
    /// A step of a script that takes longer is taken for blocked.
    pub moment: Duration,
    /// The seed of the workload; the interleaving depends on the machine.
    pub seed: u64,
    /// After how many transactions of a session one reads and writes the key of fences; every session begins with one.
    pub fence_every: Option<u64>,
}

impl Default for CollectRun {
    fn default() -> Self {
        CollectRun {
            sessions: 8,
            txns: 10_000,
            limit: None,
            think: Duration::ZERO,
            retries: 3,
            patience: Duration::from_secs(20),
            moment: Duration::from_millis(200),
            seed: 0,
            fence_every: None,
        }
    }
}

/// The progress of a collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions whose commit was acknowledged.
    pub committed: u64,
    /// Transactions that did not commit, by reason.
    pub aborted: BTreeMap<&'static str, u64>,
    /// Transactions whose end the client never learnt.
    pub unknown: u64,
    /// Duration so far.
    pub time: Duration,
}

impl Tally {
    /// Transactions that did not commit.
    pub fn n_aborted(&self) -> u64 {
        self.aborted.values().sum()
    }
}

/// The clock that all sessions and faults are recorded by.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Instant);

impl Clock {
    /// Starts at 0.
    pub fn start() -> Self {
        Clock(Instant::now())
    }

    /// Nanoseconds since the start.
    pub fn now(self) -> i64 {
        self.0.elapsed().as_nanos() as i64
    }
}

/// The state that all clients share.
struct Shared<'a> {
    database: &'a dyn Database,
    load: &'a Load,
    run: &'a CollectRun,
    clock: Clock,
    stop: &'a AtomicBool,
    /// Set when one client cannot go on.
    halt: AtomicBool,
    left: AtomicI64,
    next_txn: AtomicI64,
    next_value: AtomicI64,
    next_session: AtomicI64,
    /// Keys of own tables, which have names.
    keys: Mutex<FxHashMap<String, Key>>,
    committed: AtomicU64,
    unknown: AtomicU64,
    aborted: Mutex<BTreeMap<&'static str, u64>>,
    trouble: Mutex<Option<String>>,
}

/// How often progress is reported.
const WATCH: Duration = Duration::from_millis(250);

/// Keys from here on are of rows that were inserted; those below were there at first.
const FIRST_INSERTED: Key = 1 << 32;

/// Why a client stopped before its work was done.
enum Halt {
    Trouble(String),
    Io(io::Error),
}

impl From<io::Error> for Halt {
    fn from(error: io::Error) -> Self {
        Halt::Io(error)
    }
}

/// The results of the clients.
pub struct Ran {
    pub tally: Tally,
    /// Why it ended early, if it did: what was recorded by then is kept.
    pub ended_early: Option<String>,
    /// The steps of a script, as they were carried out.
    pub steps: Vec<StepTold>,
}

/// Runs the workload to its end.
pub fn run(
    database: &dyn Database,
    load: &Load,
    run: &CollectRun,
    directory: &Path,
    clock: Clock,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&Tally),
) -> io::Result<Ran> {
    let shared = Shared {
        database,
        load,
        run,
        clock,
        stop,
        halt: AtomicBool::new(false),
        left: AtomicI64::new(i64::try_from(run.txns).unwrap_or(i64::MAX)),
        next_txn: AtomicI64::new(1),
        next_value: AtomicI64::new(1),
        next_session: AtomicI64::new(run.sessions as i64),
        keys: Mutex::default(),
        committed: AtomicU64::new(0),
        unknown: AtomicU64::new(0),
        aborted: Mutex::default(),
        trouble: Mutex::new(None),
    };
    let journals: Vec<Journal> = (0..run.sessions)
        .map(|number| Journal::create(&directory.join(journal_name(number))))
        .collect::<io::Result<_>>()?;
    let start = Instant::now();
    if let Some(script) = load.script() {
        let steps = scripted::run(&shared, script, journals)?;
        return Ok(shared.ran(start, steps));
    }
    std::thread::scope(|scope| {
        // Nothing is sent: the channel is closed when the last client drops its end, also if it panics.
        let (end, ended) = channel::<()>();
        let clients: Vec<_> = journals
            .into_iter()
            .enumerate()
            .map(|(number, journal)| {
                let client = Client::new(&shared, number, journal);
                let end = end.clone();
                let thread = std::thread::Builder::new().name(format!("session {number}"));
                thread.spawn_scoped(scope, move || {
                    let _end = end;
                    client.work()
                })
            })
            .collect::<io::Result<_>>()?;
        drop(end);
        let mut limit = run.limit;
        loop {
            let left = limit.map_or(WATCH, |limit| limit.saturating_sub(start.elapsed()));
            if ended.recv_timeout(left.min(WATCH)) == Err(RecvTimeoutError::Disconnected) {
                break;
            }
            if limit.is_some_and(|limit| start.elapsed() >= limit) {
                shared.halt.store(true, Ordering::Relaxed);
                limit = None;
            }
            watch(&shared.tally(start));
        }
        for client in clients {
            // A panic of a client is a bug of ours and is passed on.
            client
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        io::Result::Ok(())
    })?;
    Ok(shared.ran(start, Vec::new()))
}

impl Shared<'_> {
    fn ran(self, start: Instant, steps: Vec<StepTold>) -> Ran {
        let tally = self.tally(start);
        let trouble = self.trouble.into_inner();
        Ran {
            tally,
            ended_early: trouble.unwrap_or_else(PoisonError::into_inner),
            steps,
        }
    }

    /// Ends the collection, with a reason.
    fn trouble(&self, why: String) {
        self.halt.store(true, Ordering::Relaxed);
        let mut trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.get_or_insert(why);
    }

    fn tally(&self, start: Instant) -> Tally {
        let aborted = self.aborted.lock().unwrap_or_else(PoisonError::into_inner);
        Tally {
            committed: self.committed.load(Ordering::Relaxed),
            aborted: aborted.clone(),
            unknown: self.unknown.load(Ordering::Relaxed),
            time: start.elapsed(),
        }
    }

    fn gone(&self, why: &str) -> Halt {
        Halt::Trouble(format!(
            "the server is gone, and did not come back in {} s: {why}",
            self.run.patience.as_secs_f64()
        ))
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && !self.halt.load(Ordering::Relaxed)
    }

    fn count(&self, end: End) {
        match end {
            End::Committed => drop(self.committed.fetch_add(1, Ordering::Relaxed)),
            End::Unknown => drop(self.unknown.fetch_add(1, Ordering::Relaxed)),
            End::Aborted(reason) => {
                let mut aborted = self.aborted.lock().unwrap_or_else(PoisonError::into_inner);
                *aborted.entry(reason).or_default() += 1;
            }
        }
    }
}
