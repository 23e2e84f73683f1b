//! A watch inside a collection: it reads the journals that the clients write, and stops them at the first violation.

use std::io;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kingsnake_collect::{Database, JournalTail};
use kingsnake_watch::WatchLevel;

use super::engine::watch_level;
use super::input::{LogInput, Piece, WAITING};
use super::run::{WatchWithin, run};
use super::status::{SharedFigures, words};
use crate::args::{BatchSize, WatchArgs, WatchLevelArg};
use crate::collecting::REPORT;
use crate::voice::Voice;

/// The file for what the watch judged, within the collection's directory.
pub const WATCHED: &str = "watched.jsonl";

const PAUSE: Duration = Duration::from_millis(5);

/// The watch of a collection.
pub struct CollectWatch<'a> {
    args: WatchArgs,
    directory: &'a Path,
    voice: Voice,
    /// Raised by the user.
    stop: &'a AtomicBool,
    /// Stops the clients.
    halt: AtomicBool,
    found: AtomicBool,
    figures: SharedFigures,
    ended: Mutex<Option<Result<u8>>>,
}

/// Whether a level is watched without real time, so that fences are needed.
pub fn needs_fences(level: WatchLevelArg) -> bool {
    watch_level(level).is_some_and(|it| !it.has_real_time())
}

impl<'a> CollectWatch<'a> {
    pub fn new(
        level: WatchLevelArg,
        fence: i64,
        unknown_limit: Option<Duration>,
        directory: &'a Path,
        voice: Voice,
        stop: &'a AtomicBool,
    ) -> Result<Self> {
        if level == WatchLevelArg::Timestamps {
            bail!(
                "a collection has no timestamps of the database; watch strict-ser, strong-si, ser or si"
            );
        }
        let args = WatchArgs {
            log: None,
            level,
            listen: None,
            finished: false,
            sessions: None,
            fence: needs_fences(level).then(|| fence.to_string()),
            batch: BatchSize::Auto,
            drift: 0,
            unknown_limit,
            memory_limit: None,
            stubs: None,
            on_violation: "stop".to_owned(),
            json: false,
            keep: Some(directory.join(WATCHED)),
            report: Some(directory.join(REPORT)),
            certificate: None,
            state: None,
            state_every: Duration::from_secs(5),
            page: None,
        };
        Ok(CollectWatch {
            args,
            directory,
            voice,
            stop,
            halt: AtomicBool::new(false),
            found: AtomicBool::new(false),
            figures: SharedFigures::default(),
            ended: Mutex::new(None),
        })
    }

    /// What stops the clients.
    pub fn halt(&self) -> &AtomicBool {
        &self.halt
    }

    /// Whether a violation was found.
    pub fn found(&self) -> &AtomicBool {
        &self.found
    }

    /// Watches until the clients are done and everything is judged, or a violation is found.
    pub fn run(&self, database: &dyn Database, done: &AtomicBool) {
        let ended = self.follow(database, done);
        self.halt.store(true, Ordering::Relaxed);
        if let Ok(mut place) = self.ended.lock() {
            *place = Some(ended);
        }
    }

    fn follow(&self, database: &dyn Database, done: &AtomicBool) -> Result<u8> {
        let has_time = watch_level(self.args.level).is_some_and(WatchLevel::has_real_time);
        let tail = JournalTail::open(self.directory, has_time)
            .with_context(|| format!("cannot read {}", self.directory.display()))?;
        let (sender, pieces) = sync_channel(WAITING);
        std::thread::scope(|scope| {
            scope.spawn(move || forward(tail, database, done, &sender));
            let within = WatchWithin {
                input: LogInput::journals(pieces),
                found: &self.halt,
                figures: self.figures.clone(),
            };
            let ended = run(&self.args, self.voice, self.stop, Some(within));
            let is_violated = matches!(ended, Ok(1));
            self.found.store(is_violated, Ordering::Relaxed);
            ended
        })
    }

    /// The progress, in a line.
    pub fn words(&self) -> String {
        let figures = self.figures.lock().ok();
        let last = figures.and_then(|it| it.lately.back().cloned());
        last.map_or_else(String::new, |it| format!("watched: {}", words(&it)))
    }

    /// The exit status, once it has ended.
    pub fn status(&self) -> Result<u8> {
        let ended = self.ended.lock().ok().and_then(|mut it| it.take());
        ended.unwrap_or_else(|| bail!("internal error: the watch did not end"))
    }
}

/// Sends the clients' lines to the watch, until they are done or it has ended.
fn forward(
    mut tail: JournalTail,
    database: &dyn Database,
    done: &AtomicBool,
    sender: &SyncSender<io::Result<Piece>>,
) {
    let mut offsets = vec![0_u64; tail.n_journals()];
    let mut has_header = vec![false; tail.n_journals()];
    loop {
        // Checked first: what is written afterwards is read in the next round.
        let is_over = done.load(Ordering::Relaxed);
        let mut is_idle = true;
        for source in 0..tail.n_journals() {
            let mut bytes = if has_header[source] {
                Vec::new()
            } else {
                tail.header().into_bytes()
            };
            has_header[source] = true;
            match tail.poll(source, database, is_over) {
                Ok(lines) => bytes.extend(lines),
                Err(error) => {
                    let _ = sender.send(Err(io::Error::other(error.to_string())));
                    return;
                }
            }
            if bytes.is_empty() {
                continue;
            }
            is_idle = false;
            let piece = Piece {
                source,
                offset: offsets[source],
                is_last: false,
                bytes,
            };
            offsets[source] += piece.bytes.len() as u64;
            if sender.send(Ok(piece)).is_err() {
                return;
            }
        }
        if is_idle && is_over {
            return;
        }
        if is_idle {
            std::thread::sleep(PAUSE);
        }
    }
}
