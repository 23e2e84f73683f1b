//! One client of a run: begins transactions, runs their steps, records what it saw, reconnects.

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kingsnake_datasets::store::TxnStep;
use kingsnake_history::rng::Rng;
use rustc_hash::FxHashMap;

use super::{FIRST_INSERTED, Halt, Shared};
use crate::adapter::{Chosen, DatabaseSession, Failure, Key, SessionShare, StoredCell, Wrote};
use crate::conditions::{self, Asked};
use crate::journal::{End, Journal};
use crate::workload::TxnPlan;

mod stated;

/// The value of a step, or else the transaction's end.
macro_rules! attempt {
    ($result:expr) => {
        match $result {
            Ok(value) => value,
            Err(failure) => return Ok(Err(failure)),
        }
    };
}

/// The answer to a step.
pub(super) enum StepAnswer {
    /// A read of a register or a row; `None` if there is no row.
    Cell(Option<StoredCell>),
    /// The elements of a list.
    List(Vec<i64>),
    /// Rows: keys and values.
    Rows(Vec<(Key, i64)>),
    /// The value that was written.
    Wrote(i64),
    /// Whether there was a row to delete.
    Deleted(bool),
}

impl StepAnswer {
    /// The number beside the value that was read, by which some workloads go on.
    fn beside(&self) -> i64 {
        match self {
            StepAnswer::Cell(Some(cell)) => cell.beside,
            _ => 0,
        }
    }
}

pub(super) struct Client<'a> {
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
    /// Whether the commit of the transaction was sent.
    is_committing: bool,
    /// What statements of the transaction changed.
    sql_writes: Vec<stated::SqlWrite>,
    /// The time of the first request without an answer.
    lost_since: Option<Instant>,
    /// Transactions of the session since its last fence; `None` if it had none yet.
    since_fence: Option<u64>,
}

impl<'a> Client<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, number: usize, journal: Journal) -> Self {
        // The streams of neighbouring clients must not be shifted copies of each other.
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
            is_committing: false,
            sql_writes: Vec::new(),
            lost_since: None,
            since_fence: None,
        }
    }

    pub(super) fn work(mut self) -> io::Result<()> {
        match self.all() {
            Ok(()) => Ok(()),
            Err(halt) => match halt {
                Halt::Io(error) => {
                    self.shared.halt.store(true, Ordering::Relaxed);
                    Err(error)
                }
                Halt::Trouble(why) => {
                    self.shared.trouble(why);
                    Ok(())
                }
            },
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
                let runs = self.shared.database.runs(self.number);
                let is_fence = self.is_fence_due();
                let plan = if is_fence {
                    Some(self.shared.load.fence(runs))
                } else {
                    self.shared.load.plan_for(runs, &mut from.clone())
                };
                let Some(plan) = plan else {
                    return Err(Halt::Trouble(format!(
                        "this workload has no transactions that {}; choose another, or --reads primary",
                        if runs == SessionShare::Readers {
                            "read"
                        } else {
                            "write"
                        }
                    )));
                };
                let end = self.attempt(plan)?;
                self.count_fence(is_fence, end);
                if end == End::Committed || !self.shared.goes_on() {
                    break;
                }
            }
        }
        Ok(())
    }

    fn is_fence_due(&self) -> bool {
        let every = self.shared.run.fence_every;
        every.is_some_and(|every| self.since_fence.is_none_or(|since| since >= every))
    }

    fn count_fence(&mut self, is_fence: bool, end: End) {
        if end == End::Committed {
            let since = self.since_fence.map(|it| it + 1);
            self.since_fence = if is_fence { Some(0) } else { since };
        }
    }

    /// Runs one transaction to its end, whatever that is.
    fn attempt(&mut self, plan: TxnPlan) -> Result<End, Halt> {
        if !self.connect()? {
            return Ok(End::Aborted("stopped"));
        }
        self.enter()?;
        let outcome = match self.act(plan) {
            Err(Halt::Io(error)) => return Err(Halt::Io(error)),
            Err(Halt::Trouble(why)) => Err(Failure::Fatal(why)),
            Ok(outcome) => outcome,
        };
        self.leave(&outcome)
    }

    /// Records that a transaction begins, before the first request.
    pub(super) fn enter(&mut self) -> io::Result<()> {
        let id = self.shared.next_txn.fetch_add(1, Ordering::Relaxed);
        self.has_name = false;
        self.is_committing = false;
        self.sql_writes.clear();
        self.journal.begin(id, self.name, self.shared.clock.now())
    }

    /// Records how a transaction ended; rolls back or drops the connection where it failed.
    pub(super) fn leave(&mut self, outcome: &Result<(), Failure>) -> Result<End, Halt> {
        let shared = self.shared;
        let end = match outcome {
            Ok(()) => End::Committed,
            Err(Failure::Aborted(reason)) => End::Aborted(reason),
            Err(Failure::Lost(_) | Failure::Fatal(_)) if self.is_committing => End::Unknown,
            Err(Failure::Lost(_)) => End::Aborted("connection lost"),
            Err(Failure::Fatal(_)) => End::Aborted("error"),
        };
        self.journal.end(end, shared.clock.now())?;
        shared.count(end);
        match outcome {
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
        // A transaction that only read has no effect that could come later.
        if end == End::Unknown && shared.database.runs(self.number) != SessionShare::Readers {
            self.name = shared.next_session.fetch_add(1, Ordering::Relaxed);
            self.seen.clear();
            self.since_fence = None;
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

    pub(super) fn roll_back(&mut self) {
        let rolled_back = self.session.as_mut().map(|session| session.abort());
        if matches!(rolled_back, Some(Err(_))) {
            self.session = None;
        }
    }

    /// Connects where there is no connection; false where the collection was stopped meanwhile.
    pub(super) fn connect(&mut self) -> Result<bool, Halt> {
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

    /// Lends the connection out. The outer error ends the collection, the inner one the transaction.
    pub(super) fn with<T>(
        &mut self,
        act: impl FnOnce(&mut Self, &mut dyn DatabaseSession) -> io::Result<Result<T, Failure>>,
    ) -> Result<Result<T, Failure>, Halt> {
        let Some(mut session) = self.session.take() else {
            return Err(Halt::Trouble("internal error: no connection".to_owned()));
        };
        let outcome = act(self, &mut *session);
        self.session = Some(session);
        Ok(outcome?)
    }

    pub(super) fn begin(
        &mut self,
        session: &mut dyn DatabaseSession,
    ) -> io::Result<Result<(), Failure>> {
        if let Err(failure) = session.begin() {
            return Ok(Err(failure));
        }
        self.named(session.name().as_deref())?;
        Ok(Ok(()))
    }

    pub(super) fn commit(
        &mut self,
        session: &mut dyn DatabaseSession,
    ) -> io::Result<Result<(), Failure>> {
        attempt!(self.expect_shown());
        self.journal.committing()?;
        self.is_committing = true;
        match session.commit() {
            Ok(name) => self.named(name.as_deref()).map(Ok),
            Err(failure) => Ok(Err(failure)),
        }
    }

    /// Begin, steps, commit.
    fn act(&mut self, plan: TxnPlan) -> Result<Result<(), Failure>, Halt> {
        self.with(|this, session| {
            attempt!(this.begin(session)?);
            match plan {
                TxnPlan::Steps(mut transaction) => {
                    let mut read = 0;
                    while let Some(step) = transaction.next(read) {
                        read = attempt!(this.step(session, step)?).beside();
                        this.rest();
                    }
                }
                TxnPlan::Known(steps) => {
                    for step in steps {
                        attempt!(this.step(session, step)?);
                        this.rest();
                    }
                }
                TxnPlan::Stated(statements) => {
                    for statement in &statements {
                        attempt!(this.state(session, statement)?);
                        this.rest();
                    }
                }
                TxnPlan::Cas(key) => attempt!(this.cas(session, key)?),
                TxnPlan::Asked(all) => {
                    for asked in all {
                        attempt!(this.ask(session, asked)?);
                        this.rest();
                    }
                }
            }
            this.commit(session)
        })
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
        if let Some(rank) = wrote.rank
            && !self.shared.load.makes_rows_again()
        {
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

    /// One operation.
    pub(super) fn step(
        &mut self,
        session: &mut dyn DatabaseSession,
        step: TxnStep,
    ) -> io::Result<Result<StepAnswer, Failure>> {
        let answer = match step {
            TxnStep::Read(key) | TxnStep::ReadRow(key) => {
                let cell = attempt!(session.read(key));
                self.journal.read(key, cell.map(|cell| cell.value))?;
                self.snapshot(session)?;
                self.sees(key, cell.map_or(0, |cell| cell.value));
                StepAnswer::Cell(cell)
            }
            TxnStep::Write(key, beside) => {
                let value = self.value();
                self.journal.write("w", key, value)?;
                let wrote = attempt!(session.write(key, StoredCell { value, beside }));
                self.wrote(&wrote)?;
                self.sees(key, value);
                StepAnswer::Wrote(value)
            }
            TxnStep::Insert(key) => {
                let value = self.value();
                self.journal.write("insert", key, value)?;
                let wrote = attempt!(session.write(key, StoredCell { value, beside: 0 }));
                self.wrote(&wrote)?;
                StepAnswer::Wrote(value)
            }
            TxnStep::ReadList(key) => {
                let list = attempt!(session.read_list(key));
                self.journal.read_list(key, &list)?;
                self.snapshot(session)?;
                StepAnswer::List(list)
            }
            TxnStep::Append(key) => {
                let value = self.value();
                self.journal.write("a", key, value)?;
                let wrote = attempt!(session.append(key, value));
                self.wrote(&wrote)?;
                StepAnswer::Wrote(value)
            }
            TxnStep::Range(low, high) => {
                let rows = attempt!(session.range(low, high));
                self.journal.range(low, high, &rows)?;
                self.snapshot(session)?;
                StepAnswer::Rows(rows)
            }
            TxnStep::Delete(key) => {
                let tombstone = self.value();
                self.journal.write("delete", key, tombstone)?;
                let wrote = attempt!(session.delete(key));
                let found = wrote.is_some();
                self.journal.found(found)?;
                self.wrote(&wrote.unwrap_or_default())?;
                StepAnswer::Deleted(found)
            }
            other => {
                let why = format!("this workload needs {other:?}, which is not collected");
                return Ok(Err(Failure::Fatal(why)));
            }
        };
        Ok(Ok(answer))
    }

    /// One operation that asks by a condition.
    fn ask(
        &mut self,
        session: &mut dyn DatabaseSession,
        asked: Asked,
    ) -> io::Result<Result<(), Failure>> {
        match asked {
            Asked::Insert(number) => {
                let value = self.value();
                // No other client has this key.
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
