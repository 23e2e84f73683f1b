//! The processes that check small histories, one after the other; one for each that is checked at a time.
//!
//! Invariant: what they answer is a certified verdict, satisfied or violated. A process that does not answer in time, or ends in place
//! of an answer, is killed and forgotten, and what it was asked is not answered.

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

/// A check that takes longer has a process of its own.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often somebody may ask to stop.
const EVERY: Duration = Duration::from_millis(20);

/// What a process is asked.
#[derive(Clone, Copy)]
pub struct ServedHistory<'a> {
    /// The history; its path is text.
    pub history: &'a Path,
    /// Where its page goes.
    pub report: Option<&'a Path>,
}

/// What it answers.
pub struct Answered {
    /// The exit status that the check would have had.
    pub status: i32,
    /// Its document.
    pub document: Value,
    /// How long it took.
    pub wall: Duration,
}

/// Those that have nothing to do.
#[derive(Default)]
pub struct Workers(Mutex<Vec<ServingProcess>>);

struct ServingProcess {
    child: Child,
    answers: Receiver<(String, i32)>,
}

impl Workers {
    /// Has a history checked by a process that was started by this line.
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

/// What a process wrote up to the end of an answer.
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
