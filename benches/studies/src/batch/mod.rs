//! Runs independent cells that are not a study: many histories to check, a hunt over real databases. They have the same
//! operations as a study: list, prepare, run some without a lock, merge, and run on a cluster.
//!
//! Invariant: `rows.jsonl` has exactly one line per finished cell, however the process ended.

mod ledger;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

use kingsnake_text::count;
use serde_json::{Value, json};

use crate::cells::found;
use crate::conduct::tell;
use crate::error::{Result, bail};
use crate::listener::{StudyEvent, StudyListener, array, list};
use crate::rowfiles;
use crate::slurm::{self, End, Needs, News, Waiting};
use crate::start::Mode;
use ledger::LedgerRows;

/// One cell of a batch.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its name for people.
    pub name: String,
    /// Its unique name, of which its short name is made.
    pub key: String,
    /// The command that it runs first.
    pub argv: Vec<String>,
    /// The history that it reads or makes.
    pub history: PathBuf,
}

impl Item {
    /// The cell's short name.
    pub fn id(&self) -> String {
        rowfiles::id(&self.key)
    }
}

/// The cells of a batch and how to run them.
pub trait Batch: Sync {
    /// Number of cells.
    fn n_cells(&self) -> usize;
    /// A cell by its number, in the order of the list. Made on demand.
    fn cell(&self, at: usize) -> Item;
    /// The number of a row's cell; `None` for a row that is of no cell here.
    fn place(&self, row: &Value) -> Option<usize>;
    /// Removes what killed cells left. Called by the process that holds the directory, before the first cell runs here and after the
    /// last one has come back from elsewhere.
    fn clear(&self) {}
    /// Runs one to its row, a JSON object; `None` if it was stopped, so that it has to run again.
    fn run(&self, at: usize, stop: &AtomicBool) -> std::result::Result<Option<Value>, String>;
    /// The row of a cell that never came back.
    fn lost(&self, at: usize, reason: &str) -> Value;
    /// A row in one line.
    fn words(&self, row: &Value) -> String;
}

/// The parameters of a batch.
#[derive(Clone, Debug)]
pub struct BatchOptions {
    /// The job's name.
    pub name: String,
    /// Where rows go; nowhere unless given.
    pub directory: Option<PathBuf>,
    /// What makes rows comparable.
    pub identity: Value,
    /// Cells at a time.
    pub jobs: usize,
    /// What is done with the cells.
    pub mode: Mode,
    /// Forget the rows that are there.
    pub restart: bool,
    /// The command line that asks for the same cells, without the program.
    pub words: Vec<String>,
    /// The limits of one cell, if there are any.
    pub timeout: Option<Duration>,
    /// The memory limit of its process, in bytes.
    pub memory: Option<u64>,
    /// The option that gives this limit.
    pub memory_option: &'static str,
    /// Processors of a cell.
    pub processors: usize,
}

/// How a batch ended.
#[derive(Debug)]
pub enum BatchEnded {
    /// With an exit status: what was asked for were no rows.
    Status(u8),
    /// With the rows that are there, in the order of the cells, and how many cells have none because it was stopped.
    Rows {
        /// The rows.
        rows: Vec<Value>,
        /// The cells without one.
        n_left: usize,
    },
}

/// Runs the batch, or what of it was asked for.
pub fn batch(
    batch: &dyn Batch,
    options: &BatchOptions,
    stop: &AtomicBool,
    listener: &mut dyn StudyListener,
) -> Result<BatchEnded> {
    let runner = BatchRunner { batch, options };
    match &options.mode {
        Mode::List { json } => return runner.list(*json, listener).map(BatchEnded::Status),
        Mode::Cells(ids) => {
            return runner
                .run_cells(ids, stop, listener)
                .map(BatchEnded::Status);
        }
        Mode::Slurm(_) => slurm::expect(options.memory, options.memory_option)?,
        Mode::Local | Mode::Prepare => {}
    }
    let directory = options.directory.as_deref();
    let mut rows = LedgerRows::open(directory, &options.identity, options.restart)?;
    if let Some(words) = rows.again().words() {
        tell(listener, StudyEvent::Warning(&words))?;
    }
    match &options.mode {
        Mode::Prepare => {
            let n_left = batch.n_cells() - runner.in_order(&rows).len();
            let text = &format!("prepared: {} to run\n", count(n_left, "cell"));
            let always = false;
            tell(listener, StudyEvent::Text { text, always })?;
            return Ok(BatchEnded::Status(0));
        }
        Mode::Slurm(cluster) => runner.run_on_slurm(cluster, &mut rows, stop, listener)?,
        _ => {
            batch.clear();
            runner.run_here(&mut rows, stop, listener)?;
        }
    }
    let rows = runner.in_order(&rows);
    let n_left = batch.n_cells() - rows.len();
    Ok(BatchEnded::Rows { rows, n_left })
}

struct BatchRunner<'a> {
    batch: &'a dyn Batch,
    options: &'a BatchOptions,
}

impl<'a> BatchRunner<'a> {
    fn directory(&self) -> Result<&'a std::path::Path> {
        match self.options.directory.as_deref() {
            Some(directory) => Ok(directory),
            None => bail!("cells need a directory for their rows; name one by --out DIR"),
        }
    }

    /// Every cell, by its number.
    fn cells(&self) -> impl Iterator<Item = (usize, Item)> + use<'a> {
        let batch = self.batch;
        (0..batch.n_cells()).map(move |at| (at, batch.cell(at)))
    }

    /// The rows of these cells, in their order.
    fn in_order(&self, rows: &LedgerRows) -> Vec<Value> {
        let placed = rows
            .all()
            .filter_map(|row| Some((self.batch.place(row)?, row)));
        let placed: BTreeMap<usize, &Value> = placed.collect();
        placed.into_values().cloned().collect()
    }

    fn list(&self, json: bool, listener: &mut dyn StudyListener) -> Result<u8> {
        let cells = self.cells().map(|it| it.1);
        if !json {
            list(cells.map(|item| item.name + "\n"), listener)?;
            return Ok(0);
        }
        let directory = self.directory()?;
        let done = ledger::done_in(directory)?;
        let line = |item: Item| {
            let id = item.id();
            let row = rowfiles::place(directory, &id).display().to_string();
            let argv = std::iter::once("kingsnake").chain(item.argv.iter().map(String::as_str));
            json!({
                "id": id, "cell": item.name, "argv": argv.collect::<Vec<_>>(),
                "history": item.history.display().to_string(), "row": row, "done": done.contains(&id),
            })
        };
        list(array(cells.map(line)), listener)?;
        Ok(0)
    }

    /// Runs these cells, one after the other, but for those that have rows. Takes no lock.
    fn run_cells(
        &self,
        ids: &[String],
        stop: &AtomicBool,
        listener: &mut dyn StudyListener,
    ) -> Result<u8> {
        let directory = self.directory()?;
        let wanted = found(ids, self.cells().map(|it| (it.1.id(), it)))?;
        ledger::expect_prepared(directory, &self.options.identity)?;
        let done = ledger::done_in(directory)?;
        for (at, item) in wanted {
            if done.contains(&item.id()) {
                continue;
            }
            let Some(mut row) = self.run(at, &item, stop)? else {
                return Ok(3);
            };
            if let Some(attempt @ 1..) = row["attempt"].as_u64() {
                let before = ledger::attempts_in(directory, &item.id())?;
                row["attempt"] = (attempt + u64::from(before)).into();
            }
            rowfiles::put(directory, &item.id(), &row)?;
            self.tell_row(&row, listener)?;
        }
        Ok(0)
    }

    /// One cell to its row, which says which cell it is of and where it ran.
    fn run(&self, at: usize, item: &Item, stop: &AtomicBool) -> Result<Option<Value>> {
        match self.batch.run(at, stop) {
            Ok(Some(row)) if !stop.load(Ordering::Relaxed) => Ok(Some(ledger::headed(row, item))),
            Ok(_) => Ok(None),
            Err(why) => bail!("{}: {why}", item.name),
        }
    }

    fn tell_row(&self, row: &Value, listener: &mut dyn StudyListener) -> Result<()> {
        let text = &format!("{}\n", self.batch.words(row));
        let always = false;
        tell(listener, StudyEvent::Text { text, always })
    }

    /// Several at a time; told in the order of the cells.
    fn run_here(
        &self,
        rows: &mut LedgerRows,
        stop: &AtomicBool,
        listener: &mut dyn StudyListener,
    ) -> Result<()> {
        let done = rows.ids();
        let waiting = self.cells().filter(|(_, item)| !done.contains(&item.id()));
        let queue = Mutex::new(waiting.enumerate());
        std::thread::scope(|scope| {
            let (finished, results) = mpsc::channel();
            for _ in 0..self.options.jobs.clamp(1, self.batch.n_cells().max(1)) {
                let (finished, queue) = (finished.clone(), &queue);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some((turn, (at, item))) = next else {
                            return;
                        };
                        if finished.send((turn, self.run(at, &item, stop))).is_err() {
                            return;
                        }
                    }
                });
            }
            drop(finished);
            let mut untold: BTreeMap<usize, Value> = BTreeMap::new();
            let mut next = 0;
            for (turn, ended) in results {
                let told = ended.and_then(|row| {
                    let Some(row) = row else { return Ok(()) };
                    rows.add(row.clone())?;
                    untold.insert(turn, row);
                    while let Some(row) = untold.remove(&next) {
                        self.tell_row(&row, listener)?;
                        next += 1;
                    }
                    Ok(())
                });
                if let Err(error) = told {
                    // The disk is full, or the executable is gone: no further cell would fare better.
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            untold
                .values()
                .try_for_each(|row| self.tell_row(row, listener))
        })
    }

    fn run_on_slurm(
        &self,
        cluster: &slurm::Slurm,
        rows: &mut LedgerRows,
        stop: &AtomicBool,
        listener: &mut dyn StudyListener,
    ) -> Result<()> {
        let directory = self.directory()?;
        let executable = crate::process::this_program()?.display().to_string();
        let command = std::iter::once(executable).chain(self.options.words.iter().cloned());
        let needs = Needs {
            study: self.options.name.clone(),
            timeout: self.options.timeout,
            memory: slurm::memory(self.options.memory, self.options.memory_option)?,
            processors: self.options.processors,
            command: command.collect(),
        };
        let n_left = self.batch.n_cells() - self.in_order(rows).len();
        tell(listener, StudyEvent::Begin(n_left))?;
        let mut cells = self.cells();
        loop {
            let waiting = cells.by_ref().filter(|it| rows.get(&it.1.id()).is_none());
            let waiting: Vec<(usize, Item)> = waiting.take(slurm::MOST_CELLS).collect();
            if waiting.is_empty() {
                break;
            }
            let ids = waiting.iter().map(|(_, item)| Waiting {
                id: item.id(),
                cell: item.id(),
            });
            let mut hear = |rows: &LedgerRows, news: News| match news {
                News::Doing(words) => tell(listener, StudyEvent::Doing(&words)),
                News::Warning(words) => tell(listener, StudyEvent::Warning(&words)),
                News::Row(id) => match rows.get(&id) {
                    Some(row) => self.tell_row(row, listener),
                    None => Ok(()),
                },
            };
            let ids = ids.collect();
            match slurm::drive(directory, cluster, &needs, ids, rows, stop, &mut hear)? {
                End::Left(job) => {
                    if !job.is_empty() {
                        let words = slurm::goes_on(&job);
                        tell(listener, StudyEvent::Warning(&words))?;
                    }
                    break;
                }
                End::Done(failed) => {
                    for (cell, reason) in failed {
                        if let Some((at, item)) = waiting.iter().find(|it| it.1.id() == cell.id) {
                            let row = ledger::headed(self.batch.lost(*at, &reason), item);
                            rows.add(row.clone())?;
                            self.tell_row(&row, listener)?;
                        }
                    }
                    self.batch.clear();
                }
            }
        }
        tell(listener, StudyEvent::End)
    }
}
