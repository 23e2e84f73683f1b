//! Runs one command in a process of its own, within a time and a memory limit, and measures how large it becomes.
//!
//! A child gets the same limits and nearly always answers `unknown` by itself; the watcher here is for those that do
//! not. Invariant: no child outlives this process. It is on a leash: its stdin is a pipe that closes when this process
//! ends, however it ends, and a child that was started with `--leash` ends then too.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::error::{Context, Result};
use crate::machine;

/// Interval between two looks at a child.
const EVERY: Duration = Duration::from_millis(20);

/// The limits of a child.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The wall time that it may take, as it was given.
    pub timeout: Duration,
    /// The resident size that it may reach, in bytes, where the system tells it.
    pub memory: Option<u64>,
}

/// How a child ended.
#[derive(Debug)]
pub enum ChildEnding {
    /// By itself.
    Exited(ExitStatus),
    /// Killed: it took longer than it may.
    Late,
    /// Killed: it became too large.
    Large,
    /// The study or the child was asked to stop.
    Stopped,
}

/// A child that has ended.
#[derive(Debug)]
pub struct EndedChild {
    /// How.
    pub ending: ChildEnding,
    /// Its output.
    pub stdout: String,
    /// Its error output.
    pub stderr: String,
    /// From its start to its end.
    pub wall: Duration,
    /// The largest resident size seen, in bytes.
    pub peak: Option<u64>,
}

/// Messages of a process whose machine had no room, or whose disk failed: full, over quota, broken, gone, out of memory
/// or of files.
const PASSING: [&str; 8] = [
    "(os error 5)",
    "(os error 12)",
    "(os error 23)",
    "(os error 24)",
    "(os error 28)",
    "(os error 116)",
    "(os error 122)",
    "disk is full",
];

/// Whether a process failed for a reason that says nothing of its work and may have passed: a signal that another sent, or what
/// the machine lacked. Its cell is tried again.
pub fn is_passing(status: ExitStatus, stderr: &str) -> bool {
    match status.code() {
        None => true,
        Some(0 | 1) => false,
        Some(_) => PASSING.iter().any(|it| stderr.contains(it)),
    }
}

impl EndedChild {
    /// Whether it failed for a reason that may have passed.
    pub fn is_passing(&self) -> bool {
        match self.ending {
            ChildEnding::Exited(status) => is_passing(status, &self.stderr),
            ChildEnding::Late | ChildEnding::Large | ChildEnding::Stopped => false,
        }
    }
}

/// This program, which runs its own cells.
pub fn this_program() -> Result<PathBuf> {
    std::env::current_exe().context("cannot find the executable")
}

/// Runs the executable with these arguments to its end, or to its limits.
pub fn run(
    executable: &Path,
    line: &[impl AsRef<OsStr>],
    limits: Limits,
    stop: &AtomicBool,
) -> io::Result<EndedChild> {
    let mut command = Command::new(executable);
    command
        .args(line)
        .args(["--leash", "--color", "never"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A Ctrl-C on the terminal is for the study, which decides what becomes of its children.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let begun = Instant::now();
    let mut child = command.spawn()?;
    let (closed, ended) = mpsc::channel();
    let stdout = drain(child.stdout.take(), Some(closed));
    let stderr = drain(child.stderr.take(), None);
    let (ending, peak) = watch(&mut child, begun, limits, stop, &ended)?;
    let wall = begun.elapsed();
    Ok(EndedChild {
        ending,
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
        wall,
        peak,
    })
}

fn drain(
    from: Option<impl Read + Send + 'static>,
    closed: Option<mpsc::Sender<()>>,
) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            // What cannot be read is not there; the exit status tells the rest.
            let _ = from.read_to_end(&mut bytes);
        }
        drop(closed);
        String::from_utf8(bytes)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    })
}

fn watch(
    child: &mut Child,
    begun: Instant,
    limits: Limits,
    stop: &AtomicBool,
    ended: &mpsc::Receiver<()>,
) -> io::Result<(ChildEnding, Option<u64>)> {
    // A child with a limit needs a moment to stop and to write its answer.
    let grace = (limits.timeout / 10).clamp(Duration::from_secs(5), Duration::from_secs(30));
    let mut peak = None;
    loop {
        let closed = ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Disconnected);
        if closed {
            std::thread::sleep(Duration::from_millis(1));
        }
        if let Some(status) = child.try_wait()? {
            let ending = if was_asked_to_stop(status) {
                ChildEnding::Stopped
            } else {
                ChildEnding::Exited(status)
            };
            return Ok((ending, peak));
        }
        peak = peak.max(machine::peak_of(child.id()));
        let ending = if stop.load(Ordering::Relaxed) {
            ChildEnding::Stopped
        } else if begun.elapsed() > limits.timeout.saturating_add(grace) {
            ChildEnding::Late
        } else if limits
            .memory
            .is_some_and(|most| peak.is_some_and(|it| it > most))
        {
            ChildEnding::Large
        } else {
            continue;
        };
        child.kill()?;
        child.wait()?;
        return Ok((ending, peak));
    }
}

/// Whether a signal from outside ended it; such a child has nothing to answer and must run again.
#[cfg(unix)]
fn was_asked_to_stop(status: ExitStatus) -> bool {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use std::os::unix::process::ExitStatusExt;
    let signal = status.signal();
    signal.is_some_and(|signal| [SIGHUP, SIGINT, SIGTERM].contains(&signal))
}

#[cfg(not(unix))]
fn was_asked_to_stop(_: ExitStatus) -> bool {
    false
}

/// Ends this process when its stdin closes: its parent is gone. It ends at once, with nothing written or undone any more: whatever
/// started its parent again may be working on the same database. Private servers die with it.
pub fn stay_on_leash() {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        signal_hook::low_level::exit(3);
    });
}
