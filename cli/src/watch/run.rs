//! The loop: lines, batches, figures, and the end. `violation` is what happens at a violation, `limit` at the limit of memory,
//! `certificate` the rolling order.

mod certificate;
mod limit;
mod violation;

use std::fs::File;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use kingsnake_solver::budget::Budget;

use certificate::{certificate_header, open_certificate};

use super::engine::{Engine, watch_level};
use super::feed::{Feed, FeedOptions};
use super::input::{LogInput, Piece, Polled};
use super::page::{self, PageSubject};
use super::state::WatchSnapshot;
use super::status::{Occasion, SharedFigures, StatusTeller, WatchFigures, words};
use super::stubs::StubFile;
use crate::args::{BatchSize, WatchArgs, WatchLevelArg};
use crate::limits::is_stdio;
use crate::voice::{Voice, say};

/// An incomplete batch waits this long for more.
const SHORT: Duration = Duration::from_millis(100);
/// Before the first batch, sessions have this long to appear.
const FIRST: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);
const LEAST_BATCH: usize = 1000;

/// A running watch.
pub struct Watch<'a> {
    args: &'a WatchArgs,
    voice: Voice,
    input: LogInput,
    feed: Feed,
    engine: Option<Engine>,
    teller: StatusTeller,
    keep: Option<BufWriter<File>>,
    stubs: Option<StubFile>,
    certificate: Option<BufWriter<File>>,
    n_certificate: u64,
    n_batches: u64,
    last_batch: Instant,
    last_state: Instant,
    n_violations: u64,
    /// Since when a read of what nothing wrote waits for a session that was not announced.
    unexplained: Option<Instant>,
    /// Raised at a violation, before it is checked again.
    found: Option<&'a AtomicBool>,
}

/// Settings of a watch inside another command.
pub struct WatchWithin<'a> {
    pub input: LogInput,
    /// Raised at the first violation.
    pub found: &'a AtomicBool,
    /// The receiver of the figures.
    pub figures: SharedFigures,
}

/// How a watch ended.
enum Ending {
    Done,
    Violated,
    Interrupted,
}

/// Watches until the log ends, a violation is found or `stop` is raised. Returns the exit status.
pub fn run(
    args: &WatchArgs,
    voice: Voice,
    stop: &AtomicBool,
    within: Option<WatchWithin<'_>>,
) -> Result<u8> {
    let mut watch = Watch::new(args, voice, within)?;
    let ended = watch.follow(stop);
    watch.teller.clear();
    let ending = ended?;
    watch.finish(&ending)
}

fn level_name(level: WatchLevelArg) -> String {
    let value = level.to_possible_value();
    value.map_or_else(String::new, |it| it.get_name().to_owned())
}

impl<'a> Watch<'a> {
    fn new(args: &'a WatchArgs, voice: Voice, within: Option<WatchWithin<'a>>) -> Result<Self> {
        let has_stamps = args.level == WatchLevelArg::Timestamps;
        let has_time =
            watch_level(args.level).is_none_or(kingsnake_watch::WatchLevel::has_real_time);
        ensure!(
            args.certificate.is_none() || !has_stamps,
            "--certificate does not work with timestamps"
        );
        let options = FeedOptions {
            announced: args.sessions,
            has_time,
            has_stamps,
            fence: args.fence.clone(),
            unknown_limit: args.unknown_limit.map(|it| it.as_nanos() as i64),
            is_finished: args.finished,
        };
        let mut feed = Feed::new(&options);
        let said = format!(
            "{:?} {:?} {} {:?} {:?} {}",
            args.log, args.level, args.drift, args.fence, args.unknown_limit, args.finished
        );
        let snapshot = match &args.state {
            Some(path) => WatchSnapshot::read(path, &said)?,
            None => None,
        };
        let (mut engine, mut n_certificate, mut files) = (None, 0, Vec::new());
        let is_resumed = snapshot.is_some();
        if let Some(snapshot) = snapshot {
            feed = snapshot.feed;
            files = snapshot.files;
            n_certificate = snapshot.certificate;
            let fence = feed.fence();
            engine = Some(Engine::restore(&snapshot.watcher, fence, snapshot.n_txns)?);
        }
        let mut teller = StatusTeller::new(voice.quiet || within.is_some(), args.json);
        let (input, found) = match within {
            Some(within) => {
                teller.shared = within.figures;
                (within.input, Some(within.found))
            }
            None => (open_input(args, files, &mut feed, is_resumed)?, None),
        };
        let certificate = match &args.certificate {
            Some(path) => Some(open_certificate(path, n_certificate, args)?),
            None => None,
        };
        let stubs = args.stubs.as_ref().map(|path| {
            ensure!(!has_stamps, "--stubs does not work with timestamps");
            let shown = || format!("cannot write {}", path.display());
            StubFile::create(path).with_context(shown)
        });
        let mut watch = Watch {
            args,
            voice,
            input,
            feed,
            engine,
            teller,
            keep: None,
            stubs: stubs.transpose()?,
            certificate,
            n_certificate,
            n_batches: 0,
            last_batch: Instant::now(),
            last_state: Instant::now(),
            n_violations: 0,
            unexplained: None,
            found,
        };
        if let Some(out) = &mut watch.certificate
            && n_certificate == 0
        {
            let header = certificate_header(args);
            out.write_all(header.as_bytes())?;
            watch.n_certificate = header.len() as u64;
        }
        if let Some(path) = &args.keep {
            ensure!(
                !watch.input.is_on_disk(),
                "--keep is for stdin and clients: a log on disk is read again"
            );
            let file =
                File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
            watch.keep = Some(BufWriter::new(file));
            watch.feed.kept = Some(Vec::new());
        }
        if let Some(address) = &args.page {
            let file = args.log.as_ref().filter(|it| !is_stdio(it));
            let log = file.map(|it| it.display().to_string());
            let subject = PageSubject {
                level: level_name(args.level),
                log: log
                    .or(args.listen.clone())
                    .unwrap_or_else(|| "stdin".to_owned()),
                report: args.report.clone(),
            };
            let address = page::serve(address, watch.teller.shared.clone(), subject)?;
            watch.tell_address("page", "Live page", &address)?;
        }
        if let Some(address) = watch.input.address() {
            watch.tell_address("listen", "Clients connect to", address)?;
        }
        Ok(watch)
    }

    fn tell_address(&self, what: &str, words: &str, address: &str) -> Result<()> {
        if self.args.json {
            let line = serde_json::json!({ "watch": what, "address": address });
            say(&format!("{line}\n"))?;
        } else if !self.voice.quiet {
            say(&format!("{words}: {address}\n"))?;
        }
        Ok(())
    }

    fn follow(&mut self, stop: &AtomicBool) -> Result<Ending> {
        loop {
            if stop.load(Ordering::Relaxed) {
                return Ok(Ending::Interrupted);
            }
            let is_idle = match self.input.poll()? {
                Polled::Piece(piece) => {
                    if !self.take(piece)? {
                        return Ok(Ending::Violated);
                    }
                    false
                }
                Polled::Nothing => true,
                Polled::Ended => {
                    self.feed.end(&self.input)?;
                    true
                }
            };
            self.feed.give_up(&self.input)?;
            if self.feed.is_done() {
                // A file may still have lines of sessions that are not announced: they would be an error.
                self.feed.end(&self.input)?;
            }
            let is_done = self.feed.is_ended;
            let wait = if self.n_batches == 0 { FIRST } else { SHORT };
            // Until the first batch, sessions that are not known yet may appear.
            let is_settled = is_idle || self.n_batches > 0 && !self.input.has_unread();
            let is_due = is_settled && self.last_batch.elapsed() >= wait;
            let is_full = self.feed.ready.len() >= self.batch_size() && !self.input.has_unread();
            if (is_done || is_due || is_full) && !self.judge(is_done)? {
                return Ok(Ending::Violated);
            }
            self.tell(Occasion::Due, "so_far")?;
            self.store(false)?;
            if is_done {
                return Ok(Ending::Done);
            }
            if is_idle {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Takes lines, and judges them batch by batch; returns whether the watch continues.
    fn take(&mut self, mut piece: Piece) -> Result<bool> {
        let mut waiting = std::mem::take(&mut piece.bytes);
        let is_last = piece.is_last;
        loop {
            let wanted = self.batch_size().saturating_sub(self.feed.ready.len());
            let end = memchr::memchr_iter(b'\n', &waiting).nth(wanted.max(1) - 1);
            let end = end.map_or(waiting.len(), |it| it + 1);
            let rest = waiting.split_off(end);
            piece.bytes = std::mem::replace(&mut waiting, rest);
            piece.is_last = is_last && waiting.is_empty();
            self.take_lines(&piece)?;
            piece.offset += piece.bytes.len() as u64;
            // A file that was not read yet may have sessions that hold others back.
            let is_full = self.feed.ready.len() >= self.batch_size() && !self.input.has_unread();
            if is_full && !self.feed.is_done() && !self.judge(false)? {
                return Ok(false);
            }
            if waiting.is_empty() {
                return Ok(true);
            }
            if is_full && self.is_state_due() {
                // A snapshot says how far the file was judged: the rest is read again.
                self.input.put_back(piece.source, piece.offset);
                return Ok(true);
            }
        }
    }

    fn take_lines(&mut self, piece: &Piece) -> Result<()> {
        let taken = self.feed.take(piece, &self.input);
        self.write_kept()?;
        taken
    }

    /// Writes the lines that became final.
    fn write_kept(&mut self) -> Result<()> {
        if let (Some(out), Some(kept)) = (&mut self.keep, &mut self.feed.kept) {
            out.write_all(kept).context("cannot write the kept log")?;
            kept.clear();
        }
        Ok(())
    }

    fn batch_size(&self) -> usize {
        let kept = self.engine.as_ref().map_or(0, |it| it.n_kept);
        match self.args.batch {
            BatchSize::Txns(n_txns) => n_txns,
            BatchSize::Auto => kept.max(LEAST_BATCH),
        }
    }

    fn engine(&mut self) -> Result<&mut Engine> {
        if self.engine.is_none() {
            let initial = self.feed.initial.clone();
            let initial = initial.unwrap_or_else(|| vec![1 << 120]);
            let drift = i64::try_from(self.args.drift)?;
            let keeps_order = self.args.certificate.is_some();
            let fence = self.feed.fence();
            let engine = Engine::new(self.args.level, drift, keeps_order, initial, fence)?;
            self.engine = Some(engine);
        }
        self.engine.as_mut().context("no engine")
    }

    /// Judges what arrived, in batches; returns whether the watch continues.
    fn judge(&mut self, is_done: bool) -> Result<bool> {
        let all = std::mem::take(&mut self.feed.ready);
        let mut initial = std::mem::take(&mut self.feed.initial_of);
        self.n_batches += 1;
        self.last_batch = Instant::now();
        let horizon = self.feed.sessions.horizon();
        if all.is_empty() && !is_done && self.engine.is_none() {
            return Ok(true);
        }
        self.engine()?.initial(&mut initial);
        self.recall_stubs()?;
        let engine = self.engine()?;
        let found = engine.batch(all, &horizon, &Budget::unlimited())?;
        self.append_order()?;
        let kept = || {
            self.engine
                .as_ref()
                .map(Engine::kept_ids)
                .unwrap_or_default()
        };
        self.feed.names.txns.retain(kept);
        if let Some(violation) = found {
            return if self.awaits_writer() {
                Ok(true)
            } else {
                self.violated(violation)
            };
        }
        self.hold_limit()?;
        Ok(true)
    }

    fn tell(&mut self, occasion: Occasion, verdict: &'static str) -> Result<()> {
        let (feed, engine, n_violations) = (&self.feed, &self.engine, self.n_violations);
        let has_stamps = self.args.level == WatchLevelArg::Timestamps;
        let n_spilled = self.stubs.as_ref().map_or(0, StubFile::len);
        self.teller.tell(occasion, || {
            let watermark = feed.sessions.watermark();
            let lag = feed.latest.saturating_sub(watermark).max(0) as f64 / 1e9;
            let is_known = watermark != i64::MIN && watermark != i64::MAX && !has_stamps;
            let is_partial = engine.as_ref().is_some_and(Engine::is_partial);
            WatchFigures {
                transactions: engine.as_ref().map_or(0, |it| it.n_txns),
                lag_seconds: if is_known { lag } else { 0.0 },
                retained: engine.as_ref().map_or(0, |it| it.n_kept),
                open: engine.as_ref().map_or(0, |it| it.n_open),
                keys: n_spilled + feed.names.keys.len(),
                final_up_to: (watermark != i64::MIN && watermark != i64::MAX).then_some(watermark),
                verdict: match verdict {
                    "so_far" if n_violations > 0 => "violated",
                    "so_far" if is_partial => "unknown",
                    _ => verdict,
                },
                is_partial,
                ..WatchFigures::default()
            }
        })?;
        Ok(())
    }

    fn is_state_due(&self) -> bool {
        self.args.state.is_some() && self.last_state.elapsed() >= self.args.state_every
    }

    fn store(&mut self, is_last: bool) -> Result<()> {
        let Some(path) = &self.args.state else {
            return Ok(());
        };
        let is_due = self.is_state_due() || is_last;
        // Between batches only the files still hold lines.
        if !is_due || !self.feed.ready.is_empty() {
            return Ok(());
        }
        let Some(engine) = &self.engine else {
            return Ok(());
        };
        if let Some(out) = &mut self.certificate {
            out.flush()?;
        }
        let args = self.args;
        let said = format!(
            "{:?} {:?} {} {:?} {:?} {}",
            args.log, args.level, args.drift, args.fence, args.unknown_limit, args.finished
        );
        let files = self.input.log_files();
        WatchSnapshot::write(path, &said, &self.feed, files, engine, self.n_certificate)?;
        self.last_state = Instant::now();
        Ok(())
    }

    fn finish(mut self, ending: &Ending) -> Result<u8> {
        if let Some(out) = &mut self.certificate {
            out.flush()?;
        }
        self.write_kept()?;
        if let Some(keep) = &mut self.keep {
            keep.flush()?;
        }
        let is_partial = self.engine.as_ref().is_some_and(Engine::is_partial);
        let level = level_name(self.args.level);
        let (status, verdict, words_of_end) = match ending {
            _ if self.n_violations > 0 => (1, "violated", None),
            Ending::Violated => (1, "violated", None),
            Ending::Interrupted => {
                self.store(true)?;
                (
                    3,
                    "unknown",
                    Some(format!("Stopped: no violation of {level} so far")),
                )
            }
            Ending::Done if is_partial => (
                3,
                "unknown",
                Some(format!(
                    "Unknown: no violation of {level} found, but not everything was judged"
                )),
            ),
            Ending::Done => (0, "satisfied", Some(format!("Satisfied: {level}"))),
        };
        self.tell(Occasion::End, verdict)?;
        if let Some(said) = words_of_end
            && !self.args.json
        {
            let shared = self.teller.shared.lock();
            let figures = shared
                .ok()
                .and_then(|it| it.lately.back().cloned())
                .unwrap_or_default();
            let rest = if self.voice.quiet {
                String::new()
            } else {
                format!("; {}", words(&figures))
            };
            say(&format!("{said}{rest}\n"))?;
        }
        if self.args.page.is_some() {
            page::linger(&self.teller.shared);
        }
        Ok(status)
    }
}

fn open_input(
    args: &WatchArgs,
    files: Vec<super::input::LogFile>,
    feed: &mut Feed,
    is_resumed: bool,
) -> Result<LogInput> {
    if let Some(address) = &args.listen {
        return LogInput::listen(address);
    }
    let Some(log) = &args.log else {
        bail!("no log");
    };
    if is_stdio(log) {
        ensure!(
            args.state.is_none(),
            "--state needs a log on disk, which is read again"
        );
        ensure!(
            !args.finished,
            "--finished needs a log on disk, which is read twice"
        );
        return Ok(LogInput::stdin());
    }
    if args.finished && !is_resumed {
        feed.count(&mut LogInput::files(log, Vec::new(), true)?)?;
    }
    LogInput::files(log, files, args.finished)
}
