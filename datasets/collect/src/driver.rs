//! Runs a workload: a thread a session, one monotonic clock, every attempt a transaction of its own.
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

use kingsnake_datasets::store::TxnStep;
use kingsnake_history::rng::Rng;
use rustc_hash::FxHashMap;

use crate::adapter::{Chosen, Database, DatabaseSession, Failure, Key, StoredCell, Wrote};
use crate::conditions::{self, Asked};
use crate::journal::{End, Journal, journal_name};
use crate::workload::{Load, TxnPlan};

/// How a workload is run.
#[derive(Clone, Debug)]
pub struct CollectRun {
    /// Clients, each with a connection of its own.
    pub sessions: usize,
    /// Transactions to run, those that abort included.
    pub txns: u64,
    /// When to stop even if there are transactions left.
    pub limit: Option<Duration>,
    /// How long a client rests between two operations.
    pub think: Duration,
    /// How often an aborted transaction is tried again, each time as a new one.
    pub retries: u32,
    /// How long a client tries to connect again before the server counts as gone.
    pub patience: Duration,
    /// The seed of what the clients do; how they interleave is up to the machine.
    pub seed: u64,
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
            seed: 0,
        }
    }
}

/// How far a collection is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions whose commit was acknowledged.
    pub committed: u64,
    /// Transactions that did not commit, by reason.
    pub aborted: BTreeMap<&'static str, u64>,
    /// Transactions whose end the client never learnt.
    pub unknown: u64,
    /// How long it took so far.
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

/// What all clients share.
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
    committed: AtomicU64,
    unknown: AtomicU64,
    aborted: Mutex<BTreeMap<&'static str, u64>>,
    trouble: Mutex<Option<String>>,
}

/// How often progress is told.
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

/// Runs the workload to its end. The second result says why it ended early, if it did: what was recorded by then is kept.
pub fn run(
    database: &dyn Database,
    load: &Load,
    run: &CollectRun,
    directory: &Path,
    clock: Clock,
    stop: &AtomicBool,
    watch: &mut dyn FnMut(&Tally),
) -> io::Result<(Tally, Option<String>)> {
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
        committed: AtomicU64::new(0),
        unknown: AtomicU64::new(0),
        aborted: Mutex::default(),
        trouble: Mutex::new(None),
    };
    let journals: Vec<Journal> = (0..run.sessions)
        .map(|number| Journal::create(&directory.join(journal_name(number))))
        .collect::<io::Result<_>>()?;
    let start = Instant::now();
    std::thread::scope(|scope| {
        // Nobody sends: the channel is closed when the last client drops its end, also where it panics.
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
            // A panic of a client is a bug of ours and goes on.
            client
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        }
        io::Result::Ok(())
    })?;
    let tally = shared.tally(start);
    let trouble = shared.trouble.into_inner();
    Ok((tally, trouble.unwrap_or_else(PoisonError::into_inner)))
}

impl Shared<'_> {
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

struct Client<'a> {
    shared: &'a Shared<'a>,
    number: usize,
    /// The session's name in the history.
    name: i64,
    session: Option<Box<dyn DatabaseSession>>,
    journal: Journal,
    rng: Rng,
    /// What was last seen of each key; kept only where the workload compares and sets.
    seen: FxHashMap<Key, i64>,
    /// The database's name of the transaction, once it is recorded.
    has_name: bool,
    /// Since when no request was answered.
    lost_since: Option<Instant>,
}

impl<'a> Client<'a> {
    fn new(shared: &'a Shared<'a>, number: usize, journal: Journal) -> Self {
        // The streams of neighbouring clients must not be each other's, shifted.
        let seed = shared.run.seed ^ (number as u64 + 1).wrapping_mul(0xd134_2543_de82_ef95);
        Client {
            shared,
            number,
            name: number as i64,
            session: None,
            journal,
            rng: Rng::new(Rng::new(seed).number()),
            seen: FxHashMap::default(),
            has_name: false,
            lost_since: None,
        }
    }

    fn work(mut self) -> io::Result<()> {
        match self.all() {
            Ok(()) => Ok(()),
            Err(halt) => {
                self.shared.halt.store(true, Ordering::Relaxed);
                match halt {
                    Halt::Io(error) => Err(error),
                    Halt::Trouble(why) => {
                        let trouble = &self.shared.trouble;
                        let mut trouble = trouble.lock().unwrap_or_else(PoisonError::into_inner);
                        trouble.get_or_insert(why);
                        Ok(())
                    }
                }
            }
        }
    }

    fn all(&mut self) -> Result<(), Halt> {
        while self.shared.goes_on() {
            let from = Rng::new(self.rng.number());
            for retry in 0..=self.shared.run.retries {
                // Without a pause, clients would only meet the lock that they have just failed at.
                if retry > 0 {
                    std::thread::sleep(Duration::from_micros(100) * 4_u32.pow(retry.min(4) - 1));
                }
                if self.shared.left.fetch_sub(1, Ordering::Relaxed) <= 0 {
                    return Ok(());
                }
                let plan = self.shared.load.plan(&mut from.clone());
                if self.attempt(plan)? == End::Committed || !self.shared.goes_on() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Runs one transaction to its end, whatever that is.
    fn attempt(&mut self, plan: TxnPlan) -> Result<End, Halt> {
        if !self.connect()? {
            return Ok(End::Aborted("stopped"));
        }
        let shared = self.shared;
        let id = shared.next_txn.fetch_add(1, Ordering::Relaxed);
        self.has_name = false;
        self.journal.begin(id, self.name, shared.clock.now())?;
        let mut committing = false;
        let outcome = match self.act(plan, &mut committing) {
            Err(Halt::Io(error)) => return Err(Halt::Io(error)),
            Err(Halt::Trouble(why)) => Err(Failure::Fatal(why)),
            Ok(outcome) => outcome,
        };
        let end = match &outcome {
            Ok(()) => End::Committed,
            Err(Failure::Aborted(reason)) => End::Aborted(reason),
            Err(Failure::Lost(_) | Failure::Fatal(_)) if committing => End::Unknown,
            Err(Failure::Lost(_)) => End::Aborted("connection lost"),
            Err(Failure::Fatal(_)) => End::Aborted("error"),
        };
        self.journal.end(end, shared.clock.now())?;
        shared.count(end);
        match &outcome {
            Ok(()) => {}
            Err(Failure::Aborted(_)) => self.roll_back(),
            Err(Failure::Lost(why)) => {
                self.session = None;
                self.lost(why)?;
            }
            Err(Failure::Fatal(why)) => return Err(Halt::Trouble(why.clone())),
        }
        if !matches!(outcome, Err(Failure::Lost(_))) {
            self.lost_since = None;
        }
        if end == End::Unknown {
            self.name = shared.next_session.fetch_add(1, Ordering::Relaxed);
            self.seen.clear();
        }
        Ok(end)
    }

    /// A connection that is made without asking the server anything is only known to be lost at the first request.
    fn lost(&mut self, why: &str) -> Result<(), Halt> {
        let since = *self.lost_since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.shared.run.patience {
            return Err(self.shared.gone(why));
        }
        std::thread::sleep(Duration::from_millis(5));
        Ok(())
    }

    fn roll_back(&mut self) {
        let rolled_back = self.session.as_mut().map(|session| session.abort());
        if matches!(rolled_back, Some(Err(_))) {
            self.session = None;
        }
    }

    /// Connects where there is no connection; false where the collection was stopped meanwhile.
    fn connect(&mut self) -> Result<bool, Halt> {
        if self.session.is_some() {
            return Ok(true);
        }
        let since = Instant::now();
        while self.session.is_none() {
            match self.shared.database.open(self.number) {
                Ok(session) => self.session = Some(session),
                Err(Failure::Fatal(why)) => return Err(Halt::Trouble(why)),
                Err(_) if !self.shared.goes_on() => return Ok(false),
                Err(failure) if since.elapsed() >= self.shared.run.patience => {
                    return Err(self.shared.gone(&failure.to_string()));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(20)),
            }
        }
        Ok(true)
    }

    /// Begin, steps, commit. The outer error ends the collection, the inner one the transaction.
    fn act(&mut self, plan: TxnPlan, committing: &mut bool) -> Result<Result<(), Failure>, Halt> {
        macro_rules! attempt {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(failure) => return Ok(Err(failure)),
                }
            };
        }
        let Some(mut session) = self.session.take() else {
            return Err(Halt::Trouble("internal error: no connection".to_owned()));
        };
        // Put back before anything can return.
        let outcome = (|| -> Result<Result<(), Failure>, Halt> {
            attempt!(session.begin());
            self.named(session.name().as_deref())?;
            match plan {
                TxnPlan::Steps(mut transaction) => {
                    let mut read = 0;
                    while let Some(step) = transaction.next(read) {
                        read = attempt!(self.step(&mut *session, step)?);
                        self.rest();
                    }
                }
                TxnPlan::Cas(key) => attempt!(self.cas(&mut *session, key)?),
                TxnPlan::Asked(all) => {
                    for asked in all {
                        attempt!(self.ask(&mut *session, asked)?);
                        self.rest();
                    }
                }
            }
            self.journal.committing()?;
            *committing = true;
            let name = attempt!(session.commit());
            self.named(name.as_deref())?;
            Ok(Ok(()))
        })();
        self.session = Some(session);
        outcome
    }

    fn rest(&self) {
        let think = self.shared.run.think;
        if !think.is_zero() {
            std::thread::sleep(think);
        }
    }

    fn named(&mut self, name: Option<&str>) -> io::Result<()> {
        if let Some(name) = name
            && !self.has_name
        {
            self.has_name = true;
            self.journal.text("name", name)?;
        }
        Ok(())
    }

    fn wrote(&mut self, wrote: &Wrote) -> io::Result<()> {
        if let Some(rank) = wrote.rank {
            self.journal.rank(rank)?;
        }
        self.named(wrote.txn.as_deref())
    }

    fn snapshot(&mut self, session: &mut dyn DatabaseSession) -> io::Result<()> {
        if let Some(snapshot) = session.snapshot() {
            self.journal.text("snapshot", &snapshot)?;
        }
        Ok(())
    }

    fn sees(&mut self, key: Key, value: i64) {
        if self.shared.load.compares_and_sets() {
            self.seen.insert(key, value);
        }
    }

    fn value(&self) -> i64 {
        self.shared.next_value.fetch_add(1, Ordering::Relaxed)
    }

    /// One operation; the number beside what it read.
    fn step(
        &mut self,
        session: &mut dyn DatabaseSession,
        step: TxnStep,
    ) -> io::Result<Result<i64, Failure>> {
        macro_rules! attempt {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(failure) => return Ok(Err(failure)),
                }
            };
        }
        match step {
            TxnStep::Read(key) | TxnStep::ReadRow(key) => {
                let cell = attempt!(session.read(key));
                self.journal.read(key, cell.map(|cell| cell.value))?;
                self.snapshot(session)?;
                self.sees(key, cell.map_or(0, |cell| cell.value));
                return Ok(Ok(cell.map_or(0, |cell| cell.beside)));
            }
            TxnStep::Write(key, beside) => {
                let value = self.value();
                self.journal.write("w", key, value)?;
                let wrote = attempt!(session.write(key, StoredCell { value, beside }));
                self.wrote(&wrote)?;
                self.sees(key, value);
            }
            TxnStep::Insert(key) => {
                let value = self.value();
                self.journal.write("insert", key, value)?;
                let wrote = attempt!(session.write(key, StoredCell { value, beside: 0 }));
                self.wrote(&wrote)?;
            }
            TxnStep::ReadList(key) => {
                let list = attempt!(session.read_list(key));
                self.journal.read_list(key, &list)?;
                self.snapshot(session)?;
            }
            TxnStep::Append(key) => {
                let value = self.value();
                self.journal.write("a", key, value)?;
                let wrote = attempt!(session.append(key, value));
                self.wrote(&wrote)?;
            }
            TxnStep::Range(low, high) => {
                let rows = attempt!(session.range(low, high));
                self.journal.range(low, high, &rows)?;
                self.snapshot(session)?;
            }
            TxnStep::Delete(key) => {
                let tombstone = self.value();
                self.journal.write("delete", key, tombstone)?;
                let wrote = attempt!(session.delete(key));
                self.journal.found(wrote.is_some())?;
                self.wrote(&wrote.unwrap_or_default())?;
            }
            other => {
                let why = format!("this workload needs {other:?}, which is not collected");
                return Ok(Err(Failure::Fatal(why)));
            }
        }
        Ok(Ok(0))
    }

    /// One operation that asks by a condition.
    fn ask(
        &mut self,
        session: &mut dyn DatabaseSession,
        asked: Asked,
    ) -> io::Result<Result<(), Failure>> {
        macro_rules! attempt {
            ($result:expr) => {
                match $result {
                    Ok(value) => value,
                    Err(failure) => return Ok(Err(failure)),
                }
            };
        }
        match asked {
            Asked::Insert(number) => {
                let value = self.value();
                // Nobody else has this key.
                let key = FIRST_INSERTED + value;
                let row = conditions::row(number);
                self.journal
                    .op(&format!("[\"insert\",{key},{value},{row}]"))?;
                let cell = StoredCell {
                    value,
                    beside: number,
                };
                let wrote = attempt!(session.write(key, cell));
                self.wrote(&wrote)?;
                return Ok(Ok(()));
            }
            Asked::Select(numbers) => {
                let rows = attempt!(session.select(numbers));
                self.journal.op(&conditions::select(numbers, &rows))?;
            }
            Asked::Update(numbers, number) => {
                let value = self.value();
                let cell = StoredCell {
                    value,
                    beside: number,
                };
                let rows = attempt!(session.update_where(numbers, cell));
                self.journal
                    .op(&conditions::update(numbers, number, &rows))?;
                self.ranks(&rows)?;
            }
            Asked::Delete(numbers) => {
                let tombstone = self.value();
                let rows = attempt!(session.delete_where(numbers));
                self.journal
                    .op(&conditions::delete(numbers, tombstone, &rows))?;
                self.ranks(&rows)?;
            }
            Asked::Aggregate(numbers, function) => {
                let result = attempt!(session.aggregate(numbers, function));
                self.journal
                    .op(&conditions::aggregate(numbers, function, result))?;
            }
        }
        self.snapshot(session)?;
        Ok(Ok(()))
    }

    fn ranks(&mut self, rows: &[Chosen]) -> io::Result<()> {
        let ranks: Option<Vec<i64>> = rows.iter().map(|it| it.rank).collect();
        match ranks {
            Some(ranks) if !ranks.is_empty() => self.journal.ranks(&ranks),
            _ => Ok(()),
        }
    }

    fn cas(
        &mut self,
        session: &mut dyn DatabaseSession,
        key: Key,
    ) -> io::Result<Result<(), Failure>> {
        let value = self.value();
        let old = self.seen.get(&key).copied().unwrap_or(0);
        self.journal.write("cas", key, value)?;
        let held = match session.cas(key, old, StoredCell { value, beside: 0 }) {
            Ok(held) => held.map(|cell| cell.value),
            Err(failure) => return Ok(Err(failure)),
        };
        let has_written = held.unwrap_or(0) == old;
        self.journal.held(held, has_written)?;
        let now = if has_written {
            value
        } else {
            held.unwrap_or(0)
        };
        self.seen.insert(key, now);
        Ok(Ok(()))
    }
}
