//! `ablate watch`: streams generated logs into `kingsnake watch`, and records its rate, lag and memory over time.
//!
//! Each course is a process of its own. A row is written for each of its status lines, one per second; figures and a page follow.

mod page;
mod stream;

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::error::{Context, Result, bail};
use crate::listener::{StudyEvent, StudyListener};
use stream::{StreamShape, stream};

const STDOUT: &str = "cannot write to stdout";
/// Sessions, and operations of each transaction.
const SESSIONS: usize = 20;
const OPS: usize = 8;

/// The parameters.
#[derive(Clone, Debug)]
pub struct WatchStudy {
    /// Output directory for rows, figures and the page.
    pub out: PathBuf,
    /// Transactions of each course.
    pub txns: u64,
    /// Keys that they read and write.
    pub keys: usize,
    /// The courses that run, by their names; all unless given.
    pub only: Option<Vec<String>>,
}

/// A course, before it runs.
struct CourseTemplate {
    name: &'static str,
    level: &'static str,
    fence_every: Option<u64>,
    per_second: Option<u64>,
    /// This course runs one in this many of the study's transactions.
    part: u64,
}

const fn course(name: &'static str, level: &'static str) -> CourseTemplate {
    CourseTemplate {
        name,
        level,
        fence_every: None,
        per_second: None,
        part: 1,
    }
}

const COURSES: [CourseTemplate; 7] = [
    course("strict-ser", "strict-ser"),
    CourseTemplate {
        per_second: Some(50_000),
        ..course("strict-ser-paced", "strict-ser")
    },
    course("strong-si", "strong-si"),
    CourseTemplate {
        fence_every: Some(5),
        ..course("ser-fenced", "ser")
    },
    CourseTemplate {
        fence_every: Some(5),
        ..course("si-fenced", "si")
    },
    // Retained data grow, so few transactions are enough.
    CourseTemplate {
        part: 10,
        ..course("ser", "ser")
    },
    course("timestamps", "timestamps"),
];

/// A line of `rows.csv`: the state of a watch.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WatchedRow {
    course: &'static str,
    seconds: f64,
    transactions: u64,
    per_second: f64,
    processor_seconds: f64,
    /// How long ago the last transaction that was judged had been written.
    lag_seconds: f64,
    retained: u64,
    keys: u64,
    memory_bytes: u64,
    verdict: String,
}

/// A status line of the watch.
#[derive(Deserialize)]
struct Status {
    watch: String,
    #[serde(default)]
    seconds: f64,
    #[serde(default)]
    transactions: u64,
    #[serde(default)]
    per_second: f64,
    #[serde(default)]
    retained: u64,
    #[serde(default)]
    keys: u64,
    #[serde(default)]
    memory_bytes: u64,
    #[serde(default)]
    verdict: String,
}

/// A course that ran.
pub(super) struct WatchedCourse {
    pub(super) name: &'static str,
    pub(super) rows: Vec<WatchedRow>,
}

/// Runs the study.
pub fn watching(
    study: &WatchStudy,
    listener: &mut dyn StudyListener,
    stop: &AtomicBool,
) -> Result<u8> {
    let names = || COURSES.iter().map(|it| it.name);
    let wanted = study.only.iter().flatten();
    if let Some(unknown) = wanted
        .into_iter()
        .find(|it| !names().any(|name| name == **it))
    {
        let names: Vec<&str> = names().collect();
        bail!("no course {unknown}; courses are {}", names.join(", "));
    }
    fs::create_dir_all(&study.out)
        .with_context(|| format!("cannot make the directory {}", study.out.display()))?;
    let path = study.out.join("rows.csv");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let mut csv = csv::Writer::from_writer(file);
    let mut courses = Vec::new();
    let is_wanted = |it: &&CourseTemplate| {
        let only = study.only.as_ref();
        only.is_none_or(|only| only.iter().any(|name| name == it.name))
    };
    for template in COURSES.iter().filter(is_wanted) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let rows = run(template, study, &mut csv)?;
        let text = &told(template.name, &rows);
        let event = StudyEvent::Text { text, always: true };
        listener.event(event).context(STDOUT)?;
        courses.push(WatchedCourse {
            name: template.name,
            rows,
        });
    }
    let page = page::write(&study.out, study, &courses)?;
    let text = &format!("{}\n", page.display());
    let event = StudyEvent::Text { text, always: true };
    listener.event(event).context(STDOUT)?;
    Ok(0)
}

fn told(name: &str, rows: &[WatchedRow]) -> String {
    let Some(last) = rows.last() else {
        return format!("{name}: no status line\n");
    };
    format!(
        "{name:<18} {:>11} transactions  {:>9.0} per second  {:>9.0} per second of processor time  lag {:.2} s  {:>6} MB  {}\n",
        last.transactions,
        last.transactions as f64 / last.seconds,
        last.transactions as f64 / last.processor_seconds,
        rows.iter().map(|it| it.lag_seconds).fold(0.0, f64::max),
        rows.iter().map(|it| it.memory_bytes).max().unwrap_or(0) >> 20,
        last.verdict
    )
}

/// Runs one course.
fn run(
    template: &CourseTemplate,
    study: &WatchStudy,
    csv: &mut csv::Writer<File>,
) -> Result<Vec<WatchedRow>> {
    let shape = StreamShape {
        txns: (study.txns / template.part).max(1),
        keys: study.keys,
        sessions: SESSIONS,
        ops: OPS,
        has_stamps: template.level == "timestamps",
        fence_every: template.fence_every,
        per_second: template.per_second,
    };
    let program = std::env::current_exe().context("cannot find the executable")?;
    let mut child = Command::new(program)
        .args(["watch", "-", "--json", "--level", template.level])
        .args(
            template
                .fence_every
                .map(|_| format!("--fence={}", study.keys)),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the watch")?;
    let written = AtomicU64::new(0);
    let mut rows = Vec::new();
    let streamed = std::thread::scope(|scope| {
        let pipe = child.stdin.take();
        let lines = child.stdout.take().map(BufReader::new);
        let written = &written;
        let writer = scope.spawn(move || match pipe {
            Some(mut pipe) => stream(&shape, &mut pipe, written),
            None => Ok(()),
        });
        for line in lines.into_iter().flat_map(BufRead::lines) {
            let line = line.context("cannot read from the watch")?;
            let Ok(status) = serde_json::from_str::<Status>(&line) else {
                continue;
            };
            if status.watch != "status" && status.watch != "end" {
                continue;
            }
            let n_written = written.load(Ordering::Relaxed);
            let used = processor_seconds(&child);
            let row = row(template, &status, n_written, used, rows.last());
            csv.serialize(&row).context("cannot write the row")?;
            csv.flush().context("cannot write the row")?;
            rows.push(row);
        }
        Ok::<_, crate::error::Error>(writer.join())
    });
    let ended = child.wait().context("cannot wait for the watch")?;
    if !matches!(streamed?, Ok(Ok(()))) || !ended.success() {
        bail!("{}: the watch ended with {ended}", template.name);
    }
    Ok(rows)
}

fn row(
    template: &CourseTemplate,
    status: &Status,
    n_written: u64,
    used: Option<f64>,
    before: Option<&WatchedRow>,
) -> WatchedRow {
    let rate = template
        .per_second
        .map_or(status.per_second, |it| it as f64);
    let waiting = n_written.saturating_sub(status.transactions) as f64;
    WatchedRow {
        course: template.name,
        seconds: status.seconds,
        transactions: status.transactions,
        per_second: status.per_second,
        processor_seconds: used
            .or(before.map(|it| it.processor_seconds))
            .unwrap_or(0.0),
        lag_seconds: if rate > 0.0 { waiting / rate } else { 0.0 },
        retained: status.retained,
        keys: status.keys,
        memory_bytes: status.memory_bytes,
        verdict: status.verdict.clone(),
    }
}

/// What a process has used so far.
#[cfg(target_os = "linux")]
fn processor_seconds(child: &Child) -> Option<f64> {
    let stat = procfs::process::Process::new(child.id() as i32)
        .ok()?
        .stat()
        .ok()?;
    Some((stat.utime + stat.stime) as f64 / procfs::ticks_per_second() as f64)
}

#[cfg(not(target_os = "linux"))]
fn processor_seconds(_: &Child) -> Option<f64> {
    None
}
