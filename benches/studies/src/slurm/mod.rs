//! Runs the cells of a study on a Slurm cluster: an array of tasks, each a few cells, whose rows come back as files.
//!
//! Row files are the truth. The queue is asked only whether a job is still alive, accounting is not needed, and a second
//! call attaches to the job of the first. A cell that left no row is submitted again, three times in all.

mod queue;
mod script;
pub mod submissions;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::error::{Context, Result, bail};
use queue::{Alive, Queue};
use script::JobScript;
use submissions::{Submission, Submissions};

/// How often a cell is submitted before it counts as failed.
const MOST_SUBMISSIONS: usize = 3;
/// Maximum number of tasks, unless the number of cells per task is given: a task costs the scheduler about 0.3 s.
const MOST_TASKS: usize = 200;
/// Cells that are submitted together at most; the others follow when these have their rows.
pub const MOST_CELLS: usize = 100_000;
/// Interval between two polls of the queue.
const EVERY: Duration = Duration::from_secs(1);
/// How long a row may take to become visible after its job has ended: file systems on a network keep old listings.
const SETTLING: Duration = Duration::from_secs(3);
/// How long the queue may give no answer before that is an error.
const PATIENCE: Duration = Duration::from_secs(600);

/// How cells are packed, and further options for the scheduler.
#[derive(Clone, Debug, Default)]
pub struct Slurm {
    /// Cells per task; by default as few as make at most 200 tasks.
    pub cells_per_task: Option<usize>,
    /// Arguments of sbatch, such as `--partition=gpu`.
    pub arguments: Vec<String>,
}

/// The needs of the tasks, as settled for the study.
#[derive(Clone, Debug)]
pub struct Needs {
    /// The study's name.
    pub study: String,
    /// The limits of one cell, if there are any.
    pub timeout: Option<Duration>,
    /// How large its process may become, in bytes.
    pub memory: u64,
    /// Processors of a task.
    pub processors: usize,
    /// The command that runs cells, to which `--cell IDS` is added.
    pub command: Vec<String>,
}

/// Rows as they come back.
pub trait Returned {
    /// Whether the cell of this name has its row.
    fn has(&self, cell: &str) -> bool;
    /// Takes in the rows that other processes wrote as files, each cell's first one, and returns the names of the new ones' cells.
    fn merge(&mut self) -> Result<Vec<String>>;
}

/// A cell that waits.
#[derive(Clone, Debug)]
pub struct Waiting {
    /// Its short name.
    pub id: String,
    /// Its name.
    pub cell: String,
}

/// The events meanwhile.
pub enum News {
    /// A row has come back, of the cell of this name.
    Row(String),
    /// Something to show.
    Doing(String),
    /// Something that the user should know.
    Warning(String),
}

/// Why the loop ended.
pub enum End {
    /// All cells have rows but these, each with the reason.
    Done(Vec<(Waiting, String)>),
    /// The user wants to stop; the job goes on.
    Left(String),
}

/// Runs the waiting cells; rows go to the ledger as they come.
pub fn drive<L: Returned>(
    directory: &Path,
    options: &Slurm,
    needs: &Needs,
    waiting: Vec<Waiting>,
    ledger: &mut L,
    stop: &AtomicBool,
    news: &mut dyn FnMut(&L, News) -> Result<()>,
) -> Result<End> {
    let queue = Queue::find()?;
    let place = directory.join("slurm");
    fs::create_dir_all(place.join("out"))
        .with_context(|| format!("cannot make {}", place.display()))?;
    let mut all = Submissions::open(&place)?;
    let mut waiting = waiting;
    loop {
        waiting.retain(|it| !ledger.has(&it.cell));
        if waiting.is_empty() {
            return Ok(End::Done(Vec::new()));
        }
        if let Some(job) = all.last().map(|it| it.job.clone())
            && queue.alive(&job)?.is_some()
        {
            news(ledger, News::Doing(format!("attached to job {job}")))?;
            if watch(&queue, &job, &waiting, ledger, stop, news)? {
                return Ok(End::Left(job));
            }
            continue;
        }
        let (again, hopeless): (Vec<Waiting>, Vec<Waiting>) = waiting
            .iter()
            .cloned()
            .partition(|it| all.times(&it.id) < MOST_SUBMISSIONS);
        if again.is_empty() {
            let explained = hopeless.into_iter().map(|it| {
                let why = all.why(&place, &it.id);
                (it, why)
            });
            return Ok(End::Done(explained.collect()));
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(End::Left(String::new()));
        }
        let retries = again.iter().filter(|it| all.times(&it.id) > 0).count();
        if retries > 0 {
            let words = format!("{retries} cells left no row and are submitted again");
            news(ledger, News::Warning(words))?;
        }
        let job = submit(&queue, &place, options, needs, &again, &mut all)?;
        let words = format!("submitted job {job}: {}", place.join("job.sh").display());
        news(ledger, News::Doing(words))?;
        if watch(&queue, &job, &again, ledger, stop, news)? {
            return Ok(End::Left(job));
        }
    }
}

fn submit(
    queue: &Queue,
    place: &Path,
    options: &Slurm,
    needs: &Needs,
    waiting: &[Waiting],
    all: &mut Submissions,
) -> Result<String> {
    let each = options
        .cells_per_task
        .unwrap_or(waiting.len().div_ceil(MOST_TASKS))
        .max(1);
    let tasks: Vec<Vec<String>> = waiting
        .chunks(each)
        .map(|cells| cells.iter().map(|it| it.id.clone()).collect())
        .collect();
    let number = all.len() + 1;
    let script = JobScript {
        place,
        number,
        needs,
        each,
        n_tasks: tasks.len(),
        arguments: &options.arguments,
    };
    let path = script.write(&tasks)?;
    let job = queue.submit(&path)?;
    all.add(Submission {
        job: job.clone(),
        tasks,
    })?;
    Ok(job)
}

/// Collects rows until all are there or the job is gone. Whether the user wants to stop instead.
fn watch<L: Returned>(
    queue: &Queue,
    job: &str,
    waiting: &[Waiting],
    ledger: &mut L,
    stop: &AtomicBool,
    news: &mut dyn FnMut(&L, News) -> Result<()>,
) -> Result<bool> {
    let mut last_answer = Instant::now();
    let mut gone_since: Option<Instant> = None;
    let missing = |ledger: &L| -> BTreeSet<String> {
        let names = waiting.iter().map(|it| it.cell.clone());
        names.filter(|cell| !ledger.has(cell)).collect()
    };
    loop {
        for cell in ledger.merge()? {
            news(ledger, News::Row(cell))?;
        }
        if missing(ledger).is_empty() {
            return Ok(false);
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(true);
        }
        match queue.alive(job) {
            Ok(Some(alive)) => {
                last_answer = Instant::now();
                gone_since = None;
                news(ledger, News::Doing(told(job, &alive)))?;
            }
            Ok(None) => {
                last_answer = Instant::now();
                let since = *gone_since.get_or_insert_with(Instant::now);
                if since.elapsed() > SETTLING {
                    return Ok(false);
                }
            }
            // A restarting controller does not answer; the tasks continue.
            Err(error) if last_answer.elapsed() < PATIENCE => {
                news(ledger, News::Doing(format!("job {job}: {error}")))?;
            }
            Err(error) => return Err(error),
        }
        std::thread::sleep(EVERY);
    }
}

fn told(job: &str, alive: &Alive) -> String {
    let why = if alive.reason.is_empty() || alive.running > 0 {
        String::new()
    } else {
        format!(" ({})", alive.reason)
    };
    format!(
        "job {job}: {} running, {} waiting{why}",
        alive.running, alive.waiting
    )
}

/// Expects what must be there before anything is written: Slurm's commands, and a memory limit.
pub fn expect(limit: Option<u64>, option: &str) -> Result<()> {
    memory(limit, option)?;
    Queue::find().map(|_| ())
}

/// The memory limit, which the scheduler needs; `option` gives it.
pub fn memory(limit: Option<u64>, option: &str) -> Result<u64> {
    match limit {
        Some(limit) => Ok(limit),
        None => {
            bail!("--on slurm needs {option}, which becomes the tasks' --mem; such as {option} 4G")
        }
    }
}

/// The message when a driver leaves its job.
pub fn goes_on(job: &str) -> String {
    format!("job {job} goes on; the same command attaches to it, and scancel {job} ends it")
}
