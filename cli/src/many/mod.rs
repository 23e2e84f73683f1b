//! `kingsnake check` of several histories: each is a cell with a line, a row, and a test case if that is asked for. Small ones are
//! checked by a few processes, one after the other; the others, and those that were not decided there, in a process of their own.
//!
//! Exit status: 1 if a history is violated, else 2 if one could not be checked, else 3 if one is unknown, else 0.

mod annotations;
mod junit;
mod page;
mod row;
mod serve;
mod services;
mod workers;

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{ArgMatches, CommandFactory};
use kingsnake_datasets::{Scan, ScannedHistory};
use kingsnake_solver::budget::Budget;
use kingsnake_studies::{
    Batch, BatchEnded, BatchOptions, ChildEnding, Item, Limits, Mode, StudyEvent, StudyListener,
    batch, fingerprint, fingerprint_within, memory_each, run_process, threads_each,
};
use serde_json::{Value, json};

use crate::args::{AnnotationsArg, CheckManyArgs, Typed};
use crate::limits::{self, Stopped, is_stdio, within};
use crate::output::put;
use crate::study_bar::StudyBar;
use crate::voice::{Voice, complain, count, say, say_as_it_is};
use crate::{interrupt, memory};
pub use row::ManyRow;
pub use serve::serve;
use workers::{ServedHistory, Workers};

/// How often a document is in memory at most: as it was read, in its row, and in what is written of all rows.
const COPIES: u64 = 8;
/// Further files that are not histories are not named.
const MOST_OTHERS: usize = 1_000;

/// Larger files, in bytes, have a process of their own.
const MOST_SERVED: u64 = 1 << 20;

/// Options that the cells are not told: what is written once for all of them.
const OURS: [&str; 17] = [
    "histories",
    "out",
    "junit",
    "annotations",
    "code_quality",
    "sarif",
    "json",
    "jobs",
    "list",
    "prepare",
    "cell",
    "on",
    "cells_per_task",
    "slurm_arg",
    "restart",
    "leash",
    "serve",
];
/// Options of every command, which apply to this process.
const GENERAL: [&str; 3] = ["quiet", "verbose", "color"];

/// The histories on the paths, if there is more than one check. A child process checks its argument as one history.
pub fn asked(args: &CheckManyArgs, is_child: bool, start: Instant) -> Result<Option<Scan>> {
    let many = &args.many;
    let services = [&many.junit, &many.code_quality, &many.sarif];
    let files =
        many.out.is_some() || services.iter().any(|it| it.is_some()) || many.annotations.is_some();
    if is_child && args.histories.len() == 1 && !files && !many.cells.is_asked() {
        return Ok(None);
    }
    let found = if args.histories.iter().any(|it| it.is_dir()) {
        let budget = limits::budget(&args.check.limits.bounds, start)?;
        let paths = args.histories.clone();
        within(&budget.clone(), move || {
            Ok(Scan::of(&paths, &budget).map_err(Stopped)?)
        })?
    } else {
        Scan::of(&args.histories, &Budget::unlimited()).map_err(Stopped)?
    };
    let is_itself = found.histories.iter().map(|it| &it.path);
    let is_several = args.histories.len() > 1 || !is_itself.eq(&args.histories);
    Ok((files || is_several || many.cells.is_asked()).then_some(found))
}

/// Prints how many files of directories are not histories, and with `-v` which.
pub fn tell_others(found: &Scan, voice: Voice) {
    let others = &found.others;
    if voice.verbose {
        for path in others.iter().take(MOST_OTHERS) {
            complain(&format!("{}: skipped: not a history", path.display()));
        }
    }
    if !others.is_empty() {
        let hint = if voice.verbose {
            ""
        } else {
            " (-v names them)"
        };
        let words = "skipped in the directories: not a history";
        voice.warn(&format!("{} {words}{hint}", count(others.len(), "file")));
    }
}

/// Checks all cells, or the requested ones.
pub fn run(args: &CheckManyArgs, found: Scan, matches: &ArgMatches, voice: Voice) -> Result<u8> {
    expect_one_file_each(args, found.histories.len())?;
    tell_others(&found, voice);
    let n_others = found.others.len();
    let many = Many::new(args, found.histories, words_of(matches));
    let n_before = many.n_rows_before();
    if n_before > 0 && !args.many.cells.restart && !voice.quiet {
        let rows = count(n_before, "row");
        complain(&format!(
            "--out holds {rows} of an earlier run: only what is missing or has changed is checked (--restart checks all again)"
        ));
    }
    let stop = interrupt::listen().context("cannot listen to signals")?;
    let json = args.check.files.json.as_deref();
    let mut lines = Lines {
        bar: StudyBar::new(voice),
        is_silent: json.is_some_and(is_stdio)
            || args.many.annotations.is_some()
            || args.many.writes_stdout(),
    };
    let options = many.options(args, json.is_some());
    match batch(&many, &options, &stop, &mut lines)? {
        BatchEnded::Status(status) => Ok(status),
        BatchEnded::Rows { rows, .. } => {
            let rows: Vec<ManyRow<'_>> = rows.iter().map(ManyRow).collect();
            let status = row::worst(&rows, many.n_cells());
            limits::standing(status, deliver(args, &many, &rows, n_others, voice))
        }
    }
}

/// Output files for one history cannot be written for several.
fn expect_one_file_each(args: &CheckManyArgs, n_histories: usize) -> Result<()> {
    let files = &args.check.files;
    let single = [
        ("--certificate", &files.certificate),
        ("--proof", &files.proof),
        ("--edn", &files.edn),
        ("--directory", &files.directory),
        ("--dot", &files.dot),
        ("--svg", &files.svg),
        ("--report", &files.report),
    ];
    let typed = single.iter().find(|it| it.1.is_some());
    if let Some((name, _)) = typed.filter(|_| n_histories != 1) {
        bail!(
            "{name} is for one history, and these are {}; --out DIR keeps a page of each that is violated",
            row::counted(n_histories)
        );
    }
    if args.histories.iter().any(|path| is_stdio(path)) {
        bail!("- (stdin) can only be checked alone, without --out, --junit or --annotations");
    }
    Ok(())
}

/// The part of the command line that says how each history is checked.
fn words_of(matches: &ArgMatches) -> Vec<OsString> {
    let command = Typed::command();
    let (Some(check), Some(("check", typed))) =
        (command.find_subcommand("check"), matches.subcommand())
    else {
        return Vec::new();
    };
    let mut words = Vec::new();
    for arg in check.get_arguments() {
        let id = arg.get_id().as_str();
        let is_typed = typed.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let (true, Some(long)) = (is_typed, arg.get_long()) else {
            continue;
        };
        if OURS.contains(&id) || GENERAL.contains(&id) {
            continue;
        }
        if arg.get_action().takes_values() {
            let values = typed.get_raw(id).into_iter().flatten();
            words.extend(values.map(|it| {
                let mut word = OsString::from(format!("--{long}="));
                word.push(it);
                word
            }));
        } else {
            words.push(format!("--{long}").into());
        }
    }
    words
}

struct Many {
    histories: Vec<ScannedHistory>,
    /// A fingerprint of each history, if requested. Empty without a directory: nothing is resumed then, and a file that
    /// cannot be read is a cell that fails.
    contents: Vec<OnceLock<String>>,
    /// The position of each history, by its path as text.
    places: HashMap<String, usize>,
    words: Vec<OsString>,
    directory: Option<PathBuf>,
    has_pages: bool,
    limits: Limits,
    /// Bytes of documents that rows hold, and may hold: this process obeys the memory limit, too.
    held: AtomicU64,
    room: u64,
    /// Further arguments of each process, because several run at a time.
    share: Vec<String>,
    workers: Workers,
}

impl Many {
    fn new(args: &CheckManyArgs, histories: Vec<ScannedHistory>, words: Vec<OsString>) -> Many {
        let check = &args.check;
        let jobs = usize::from(args.many.cells.jobs);
        let names = histories.iter().map(|it| spelt(&it.path));
        let places = names.enumerate().map(|(at, name)| (name, at)).collect();
        let mut share = Vec::new();
        let threads = threads_each(jobs).filter(|_| check.limits.threads.is_none());
        share.extend(threads.map(|n| format!("--threads={n}")));
        let bounds = &check.limits.bounds;
        let free = memory_each(jobs).filter(|_| jobs > 1 && bounds.memory_limit.is_none());
        share.extend(free.map(|size| format!("--memory-limit={size}")));
        let memory = bounds.memory_limit.or_else(memory::available);
        Many {
            held: AtomicU64::new(0),
            room: memory.map_or(u64::MAX, |it| it / COPIES),
            contents: histories.iter().map(|_| OnceLock::new()).collect(),
            histories,
            places,
            words,
            directory: args.many.out.clone(),
            // If a page was requested by name, it is the only one.
            has_pages: check.files.report.is_none(),
            limits: Limits {
                timeout: bounds.timeout.unwrap_or(Duration::MAX),
                memory: None,
            },
            share,
            workers: Workers::default(),
        }
    }

    fn options(&self, args: &CheckManyArgs, json: bool) -> BatchOptions {
        let mut words = vec!["check".to_owned()];
        let names = args.histories.iter().map(|it| plain(it));
        words.extend(names.map(|it| it.to_string_lossy().into_owned()));
        words.extend(self.shown_words());
        words.extend(
            self.directory
                .iter()
                .map(|it| format!("--out={}", it.display())),
        );
        let executable = std::env::current_exe().ok();
        let executable = executable.and_then(|it| fingerprint(&it).ok());
        let limits = &args.check.limits;
        let identity = match &self.directory {
            Some(_) => json!({
                "check": self.shown_words(), "kingsnake": env!("CARGO_PKG_VERSION"), "executable": executable,
            }),
            None => Value::Null,
        };
        BatchOptions {
            name: "check".to_owned(),
            directory: self.directory.clone(),
            identity,
            jobs: usize::from(args.many.cells.jobs),
            mode: match args.many.cells.mode(json) {
                // Without a directory other processes cannot use the rows.
                Mode::Prepare if self.directory.is_none() => Mode::Cells(Vec::new()),
                mode => mode,
            },
            restart: args.many.cells.restart,
            words,
            timeout: limits.bounds.timeout,
            memory: limits.bounds.memory_limit,
            memory_option: "--memory-limit",
            processors: limits.threads.map_or(1, usize::from),
        }
    }

    /// The words as they are listed, and as a script has them.
    fn shown_words(&self) -> Vec<String> {
        let words = self.words.iter();
        words.map(|it| spelt(it.as_ref())).collect()
    }

    /// Whether there is room for one more document of this size, which then is taken.
    fn has_room(&self, size: u64) -> bool {
        let before = self.held.fetch_add(size, Ordering::Relaxed);
        let has_room = before.saturating_add(size) <= self.room;
        if !has_room {
            self.held.fetch_sub(size, Ordering::Relaxed);
        }
        has_room
    }

    /// The command line of a process that checks a history.
    fn line(&self, history: &OsStr, report: Option<&Path>) -> Vec<OsString> {
        let mut line: Vec<OsString> = vec!["check".into(), history.into()];
        line.extend(self.words.iter().cloned());
        line.extend(self.share.iter().map(OsString::from));
        line.extend(["--json", "--quiet"].map(OsString::from));
        if let Some(path) = report {
            let mut word = OsString::from("--report=");
            word.push(path);
            line.push(word);
        }
        line
    }

    /// Whether a history is so small that it does not pay to start a process for it.
    fn is_served(&self, history: &Path) -> bool {
        let meta = std::fs::metadata(history);
        self.histories.len() > 1
            && history.to_str().is_some()
            && meta.is_ok_and(|it| it.is_file() && it.len() <= MOST_SERVED)
    }

    /// How many rows an earlier run left.
    fn n_rows_before(&self) -> usize {
        let rows = self.directory.iter().map(|it| it.join("rows.jsonl"));
        let texts = rows.filter_map(|path| std::fs::read_to_string(path).ok());
        texts.map(|text| text.lines().count()).sum()
    }

    /// Where a history's page is, from the directory.
    fn page_of(item: &Item) -> PathBuf {
        Path::new("cells").join(format!("{}.html", item.id()))
    }
}

/// A path as an argument that cannot be taken for an option.
fn plain(path: &Path) -> OsString {
    let is_option = path.as_os_str().as_encoded_bytes().starts_with(b"-");
    if is_option && !is_stdio(path) {
        return Path::new(".").join(path).into();
    }
    path.into()
}

/// A path as unique text: bytes that are not UTF-8 are escaped.
fn spelt(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    path.to_str()
        .map_or_else(|| bytes.escape_ascii().to_string(), str::to_owned)
}

/// What stands for the content of a file that cannot be read, or not within the time of its check.
fn changed(path: &Path) -> String {
    let there = std::fs::metadata(path);
    let told = there.and_then(|it| Ok(format!("{} bytes, {:?}", it.len(), it.modified()?)));
    told.unwrap_or_default()
}

impl Batch for Many {
    fn n_cells(&self) -> usize {
        self.histories.len()
    }

    fn cell(&self, at: usize) -> Item {
        let path = &self.histories[at].path;
        let name = spelt(path);
        let content = self.contents[at].get_or_init(|| match &self.directory {
            Some(_) => {
                fingerprint_within(path, self.limits.timeout).unwrap_or_else(|_| changed(path))
            }
            None => String::new(),
        });
        let mut argv = vec!["check".to_owned(), name.clone()];
        argv.extend(self.shown_words());
        Item {
            key: format!("{name} {content}"),
            name,
            argv,
            history: path.clone(),
        }
    }

    fn place(&self, row: &Value) -> Option<usize> {
        let &at = self.places.get(row["cell"].as_str()?)?;
        // Rows that were in the file before belong to no cell.
        (row["id"] == self.cell(at).id()).then_some(at)
    }

    fn run(&self, at: usize, stop: &AtomicBool) -> Result<Option<Value>, String> {
        let item = &self.cell(at);
        if let Some(words) = &self.histories[at].problem {
            return Ok(Some(row::lost(item, words)));
        }
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        let mut page = None;
        if let Some(directory) = self.directory.as_ref().filter(|_| self.has_pages) {
            let path = directory.join(Many::page_of(item));
            let parent = directory.join("cells");
            std::fs::create_dir_all(&parent)
                .map_err(|error| format!("cannot make {}: {error}", parent.display()))?;
            page = Some(path);
        }
        let asked = ServedHistory {
            history: &item.history,
            report: page.as_deref(),
        };
        let answered = self.is_served(&item.history).then(|| {
            let line = self.line("-".as_ref(), None);
            self.workers.ask(&program, &line, asked, stop)
        });
        let mut row = if let Some(answer) = answered.flatten() {
            row::answered(item, &answer)
        } else {
            let line = self.line(&plain(&item.history), page.as_deref());
            let ended = run_process(&program, &line, self.limits, stop);
            let ended = ended.map_err(|error| format!("cannot start kingsnake check: {error}"))?;
            if matches!(ended.ending, ChildEnding::Stopped) {
                return Ok(None);
            }
            let has_room = self.has_room(ended.stdout.len() as u64);
            row::of(item, &ended, has_room)
        };
        if let Some(path) = page {
            if row["verdict"] == "violated" {
                row["page"] = Many::page_of(item).display().to_string().into();
            } else {
                let _ = std::fs::remove_file(path);
            }
        }
        Ok(Some(row))
    }

    fn lost(&self, at: usize, reason: &str) -> Value {
        row::lost(&self.cell(at), reason)
    }

    fn words(&self, row: &Value) -> String {
        ManyRow(row).line()
    }
}

/// Prints lines at every verbosity: they are the answer.
struct Lines {
    bar: StudyBar,
    is_silent: bool,
}

impl StudyListener for Lines {
    fn event(&mut self, event: StudyEvent<'_>) -> io::Result<()> {
        match event {
            StudyEvent::Text { always: false, .. } if self.is_silent => Ok(()),
            StudyEvent::Text { text, .. } => {
                self.bar.event(StudyEvent::Text { text, always: true })
            }
            event => self.bar.event(event),
        }
    }
}

/// Writes the requested files.
fn deliver(
    args: &CheckManyArgs,
    many: &Many,
    rows: &[ManyRow<'_>],
    n_others: usize,
    voice: Voice,
) -> Result<()> {
    let json = args.check.files.json.as_deref();
    if let Some(path) = json {
        let documents: Vec<String> = rows.iter().map(|row| row.document().to_string()).collect();
        put(path, &format!("[{}]\n", documents.join(",\n ")))?;
    }
    let documents = [
        (
            &args.many.junit,
            junit::write as fn(&[ManyRow<'_>]) -> String,
        ),
        (&args.many.code_quality, services::code_quality),
        (&args.many.sarif, services::sarif),
    ];
    for (path, write) in documents {
        if let Some(path) = path {
            put(path, &write(rows))?;
        }
    }
    if args.many.annotations == Some(AnnotationsArg::Github) {
        say_as_it_is(&annotations::github(rows)).context("cannot write to stdout")?;
    }
    if let Some(directory) = &many.directory {
        put(&directory.join("report.html"), &page::write(rows))?;
    }
    let writes_stdout = json.is_some_and(is_stdio) || args.many.writes_stdout();
    if !voice.quiet && !writes_stdout {
        let mut words = row::summary(rows, many.n_cells());
        if n_others > 0 {
            words = format!(
                "{}; {} left out\n",
                words.trim_end(),
                count(n_others, "other file")
            );
        }
        say(&words).context("cannot write to stdout")?;
    }
    Ok(())
}
