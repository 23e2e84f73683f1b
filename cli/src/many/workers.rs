//! The processes that check small histories in sequence; one for each concurrent check.
//!
//! Invariant: their answers are certified verdicts, satisfied or violated. A process that does not answer in time, or
//! ends without an answer, is killed and dropped, and its request stays unanswered.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::serve::END;

/// A longer check gets a process of its own.
const PATIENCE: Duration = Duration::from_millis(500);
/// Interval between two looks at the stop flag.
const EVERY: Duration = Duration::from_millis(20);

/// A request to a process.
#[derive(Clone, Copy)]
pub struct ServedHistory<'a> {
    /// The history; its path is text.
    pub history: &'a Path,
    /// The path of its page.
    pub report: Option<&'a Path>,
}

/// The answer.
pub struct Answered {
    /// The exit status of the check.
    pub status: i32,
    /// Its document.
    pub document: Value,
    /// Its duration.
    pub wall: Duration,
}

/// The idle processes.
#[derive(Default)]
pub struct Workers(Mutex<Vec<ServingProcess>>);

struct ServingProcess {
    child: Child,
    answers: Receiver<(String, i32)>,
}

impl Workers {
    /// Checks a history in a process that was started with this command line.
    pub fn ask(
        &self,
        program: &Path,
        line: &[OsString],
        asked: ServedHistory<'_>,
        stop: &AtomicBool,
    ) -> Option<Answered> {
        let begun = Instant::now();
        let idle = self.idle().pop();
        let mut worker = idle.or_else(|| ServingProcess::start(program, line))?;
        let (text, status) = worker.ask(asked, begun, stop)?;
        let document = serde_json::from_str(&text).ok()?;
        self.idle().push(worker);
        Some(Answered {
            status,
            document,
            wall: begun.elapsed(),
        })
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<ServingProcess>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServingProcess {
    fn start(program: &Path, line: &[OsString]) -> Option<ServingProcess> {
        let mut command = Command::new(program);
        command
            .args(line)
            .args(["--serve", "--leash", "--color", "never"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // A Ctrl-C on the terminal is for this process, which decides what becomes of its children.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().ok()?;
        let stdout = child.stdout.take()?;
        let (sender, answers) = mpsc::channel();
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            while let Some(answer) = next_answer(&mut stdout) {
                if sender.send(answer).is_err() {
                    return;
                }
            }
        });
        Some(ServingProcess { child, answers })
    }

    /// The document and the exit status, if there are any in time.
    fn ask(
        &mut self,
        asked: ServedHistory<'_>,
        begun: Instant,
        stop: &AtomicBool,
    ) -> Option<(String, i32)> {
        let line = json!({"history": asked.history, "report": asked.report});
        let stdin = self.child.stdin.as_mut()?;
        stdin.write_all(format!("{line}\n").as_bytes()).ok()?;
        loop {
            match self.answers.recv_timeout(EVERY) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if stop.load(Ordering::Relaxed) || begun.elapsed() > PATIENCE {
                return None;
            }
        }
    }
}

impl Drop for ServingProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The output of a process up to the end of an answer.
fn next_answer(stdout: &mut BufReader<ChildStdout>) -> Option<(String, i32)> {
    let mut text = String::new();
    loop {
        let start = text.len();
        if stdout.read_line(&mut text).ok()? == 0 {
            return None;
        }
        if let Some(status) = text[start..].strip_prefix(END) {
            let status = status.trim_end().parse().ok()?;
            text.truncate(start);
            return Some((text, status));
        }
    }
}
