//! Keeps a command within its limits: work runs in a thread of its own, which is abandoned if it still runs after the
//! budget has ended.
//!
//! Phases poll the budget and stop by themselves; this is for code deep in a loop, in a foreign library or in a system
//! call (a pipe without a writer). Invariant: an abandoned thread uses nothing that the caller still uses, and the
//! process ends without running exit handlers.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kingsnake_solver::budget::{Budget, StopReason};

use crate::args::BoundArgs;
use crate::voice::complain;
use crate::{interrupt, memory, processor};

/// Longest and shortest interval between two looks at the process.
const SELDOM: Duration = Duration::from_millis(50);
const OFTEN: Duration = Duration::from_micros(250);
/// Assumed growth of a process per second, above the memory bandwidth of a core.
const GROWTH: u64 = 16 << 30;
/// Memory of the process before the work begins, at most.
const FIRST: u64 = 32 << 20;
/// Grace period after the deadline before the work is abandoned. A back end may use half of it.
const GRACE: Duration = Duration::from_secs(1);
/// Share of the time limit, and its minimum, by which printing an answer may exceed it. Without a time limit there is none.
const TELLING: Duration = Duration::from_millis(1_050);
const TELLING_AT_LEAST: Duration = Duration::from_millis(100);
/// Where no limit was typed, so much of the free memory is left to others: one part of these.
const SPARE_PART: u64 = 16;
/// These bytes; 0 where a limit was typed.
static SPARE: AtomicU64 = AtomicU64::new(0);
/// The usual stack size of a main thread.
const STACK: usize = 8 << 20;

static LEFT_BEHIND: AtomicBool = AtomicBool::new(false);

/// The error of a command that reached its limits; exit status 3.
#[derive(Debug)]
pub struct Stopped(pub StopReason);

impl fmt::Display for Stopped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl std::error::Error for Stopped {}

impl From<StopReason> for Stopped {
    fn from(reason: StopReason) -> Self {
        Stopped(reason)
    }
}

/// Whether abandoned work may still run, so that the process must end at once.
pub fn left_behind() -> bool {
    LEFT_BEHIND.load(Ordering::Relaxed)
}

/// The limits as typed, counted from the start of the process, with the flag that Ctrl-C raises.
pub fn budget(bounds: &BoundArgs, start: Instant) -> Result<Budget> {
    let asked = interrupt::listen().context("cannot listen to signals")?;
    let mut budget = Budget::unlimited().with_interrupt(asked);
    if let Some(limit) = bounds.timeout {
        budget = budget.with_timeout(start, limit);
    }
    // Without a limit the command would rather stop than be killed by the system, or have it kill another process.
    if let Some(bytes) = bounds.memory_limit {
        budget = budget.with_memory(bytes);
    } else if let Some(free) = memory::available() {
        let spare = free / SPARE_PART;
        SPARE.store(spare, Ordering::Relaxed);
        budget = budget.with_memory(free - spare);
    }
    Ok(budget)
}

/// The same limits for printing an answer: the time left, plus some grace. If the budget has ended, the answer must
/// still be printed; a second Ctrl-C always ends the process.
fn for_telling(budget: &Budget, bounds: &BoundArgs, start: Instant) -> Budget {
    let late = start.elapsed();
    let left = |limit: Duration| limit.saturating_add(TELLING).saturating_sub(late);
    let left = bounds
        .timeout
        .map(|limit| left(limit).max(TELLING_AT_LEAST));
    match (budget.check(), left) {
        (Ok(()), None) => budget.clone(),
        (Ok(()), Some(left)) => budget.clone().with_timeout(Instant::now(), left),
        (Err(_), left) => Budget::unlimited().with_timeout(Instant::now(), left.unwrap_or(TELLING)),
    }
}

/// The exit status of the certified verdict; [`NO_STATUS`] before.
static CERTIFIED: AtomicU8 = AtomicU8::new(NO_STATUS);
const NO_STATUS: u8 = u8::MAX;

/// Whether this process checks one history after the other.
static SERVES: AtomicBool = AtomicBool::new(false);

/// The next check of several in this process begins.
pub fn begin_next() {
    SERVES.store(true, Ordering::Relaxed);
    CERTIFIED.store(NO_STATUS, Ordering::Relaxed);
    memory::forget_peak();
    processor::forget();
}

/// Drops what the last command was about, unless the process ends here: giving a million transactions back one by one would only take
/// time.
pub fn let_go<T>(last: T) {
    if !SERVES.load(Ordering::Relaxed) {
        std::mem::forget(last);
    }
}

/// Notes that a verdict has been certified: its exit status stands, whatever happens to what is found or told about it.
pub fn certify(status: u8) {
    CERTIFIED.store(status, Ordering::Relaxed);
}

/// The exit status of the certified verdict.
pub fn certified() -> Option<u8> {
    let status = CERTIFIED.load(Ordering::Relaxed);
    (status != NO_STATUS).then_some(status)
}

/// Prints a certified verdict, and returns its exit status. A violation remains one whatever happens while it is
/// printed; so does every verdict whose printing is stopped. Otherwise a failed write is an error.
pub fn tell(
    budget: &Budget,
    bounds: &BoundArgs,
    start: Instant,
    status: u8,
    work: impl FnOnce() -> Result<()> + Send + 'static,
) -> Result<u8> {
    certify(status);
    let told = within_grace(&for_telling(budget, bounds, start), Duration::ZERO, work);
    standing(status, told)
}

/// The exit status of a verdict after it was printed, or was not.
pub fn standing(status: u8, told: Result<()>) -> Result<u8> {
    let Err(error) = told else {
        return Ok(status);
    };
    match stopped(&error) {
        Some(reason) => {
            let why = match reason {
                StopReason::Time(_) => String::new(),
                reason => format!(": {reason}"),
            };
            complain(&format!(
                "exit status {status} is valid, but not everything was written{why}"
            ));
        }
        None if status == 1 => complain(&format!("{error:#}")),
        None => return Err(error),
    }
    Ok(status)
}

/// Runs a whole command within limits.
pub fn command(
    bounds: &BoundArgs,
    start: Instant,
    work: impl FnOnce(&Budget) -> Result<u8> + Send + 'static,
) -> Result<u8> {
    let budget = budget(bounds, start)?;
    within(&budget.clone(), move || work(&budget))
}

/// Does the work unless the budget ends first; then the error is [`Stopped`].
pub fn within<T: Send + 'static>(
    budget: &Budget,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    within_grace(budget, GRACE, work)
}

fn within_grace<T: Send + 'static>(
    budget: &Budget,
    grace: Duration,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    budget.check().map_err(Stopped)?;
    let (sender, receiver) = mpsc::channel();
    let worker = Worker::idle_or_new()?;
    worker.begin(Box::new(move || {
        // The caller may have stopped waiting; the answer is then dropped.
        let _ = sender.send(work());
    }))?;
    let mut ended: Option<(Instant, StopReason)> = None;
    let mut size = budget.memory().map(|limit| Size::of(FIRST, limit));
    let mut looked = Instant::now();
    loop {
        match receiver.recv_timeout(size.map_or(SELDOM, Size::pause)) {
            Ok(done) => {
                worker.rest();
                return done;
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                bail!("internal error: the work ended without an answer")
            }
        }
        size = watch_memory(budget);
        if looked.elapsed() >= SELDOM {
            looked = Instant::now();
            size = size.map(|size| watch_others(budget, size));
        }
        let is_far_over = size == Some(Size::FarOver);
        match &ended {
            None => ended = budget.check().err().map(|reason| (Instant::now(), reason)),
            Some((since, reason)) if is_far_over || since.elapsed() >= grace => {
                LEFT_BEHIND.store(true, Ordering::Relaxed);
                return Err(Stopped(reason.clone()).into());
            }
            Some(_) => {}
        }
    }
}

type Work = Box<dyn FnOnce() + Send>;

/// A worker thread of [`within`]; it runs one piece of work after another.
struct Worker(Sender<Work>);

/// The idle thread, if there is one: a command first finds an answer and then prints it.
static IDLE: Mutex<Option<Worker>> = Mutex::new(None);

impl Worker {
    fn idle_or_new() -> Result<Worker> {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).take();
        idle.map_or_else(Worker::new, Ok)
    }

    fn new() -> Result<Worker> {
        let (sender, receiver) = mpsc::channel::<Work>();
        std::thread::Builder::new()
            .name("work".to_owned())
            .stack_size(STACK)
            .spawn(move || receiver.into_iter().for_each(|work| work()))
            .context("cannot start a thread")?;
        Ok(Worker(sender))
    }

    fn begin(&self, work: Work) -> Result<()> {
        let begun = self.0.send(work).ok();
        begun.context("internal error: the thread that works has ended")
    }

    /// Its work is done.
    fn rest(self) {
        *IDLE.lock().unwrap_or_else(PoisonError::into_inner) = Some(self);
    }
}

/// Resident size of the process.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Size {
    /// Bytes left below the limit.
    Within(u64),
    Over,
    /// So far over the limit that the process ends at once.
    FarOver,
}

impl Size {
    fn of(resident: u64, limit: u64) -> Size {
        if resident > limit.saturating_add(limit / 20) {
            Size::FarOver
        } else if resident > limit {
            Size::Over
        } else {
            Size::Within(limit - resident)
        }
    }

    /// Time during which the process cannot exceed the limit.
    fn pause(self) -> Duration {
        match self {
            Size::Within(left) => {
                let nanos = u128::from(left) * 1_000_000_000 / u128::from(GROWTH);
                let pause = Duration::from_nanos(nanos.try_into().unwrap_or(u64::MAX));
                pause.clamp(OFTEN, SELDOM)
            }
            Size::Over | Size::FarOver => OFTEN,
        }
    }
}

/// Stops the work if the process is over its limit; returns its size, if there is a limit.
fn watch_memory(budget: &Budget) -> Option<Size> {
    let (limit, resident) = (budget.memory()?, memory::resident()?);
    if resident > limit {
        budget.exhaust(resident);
    }
    Some(Size::of(resident, limit))
}

/// Stops the work where no limit was typed and others have meanwhile taken most of what was to be left to them.
fn watch_others(budget: &Budget, size: Size) -> Size {
    let spare = SPARE.load(Ordering::Relaxed);
    let is_left = || memory::available().is_none_or(|free| free >= spare / 2);
    match memory::resident() {
        // A small process would give nothing back.
        Some(resident) if spare > 0 && resident > spare && !is_left() => {
            budget.exhaust(resident);
            Size::FarOver
        }
        _ => size,
    }
}

/// Ends the process at once, without exit handlers, which would free what abandoned work still uses; temporary files
/// are removed, and memory is not freed piece by piece.
pub fn end(status: u8) -> ! {
    if left_behind() || kingsnake_encodings::left_behind() {
        kingsnake_datasets::discard_pending();
    }
    // An error here cannot be reported any more.
    let _ = std::io::stdout().flush();
    signal_hook::low_level::exit(status.into())
}

/// The message of a command that reached its limits, if it did.
pub fn stopped(error: &anyhow::Error) -> Option<&StopReason> {
    error
        .downcast_ref::<Stopped>()
        .map(|Stopped(reason)| reason)
}

/// Whether a path is stdin or stdout.
pub fn is_stdio(path: &Path) -> bool {
    path == Path::new("-")
}
