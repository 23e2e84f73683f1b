//! Runs the cells of a study that have no row yet, several at a time, and reports on all.
//!
//! Exit status: 0 done, 1 a wrong verdict or a disagreement, 2 a check that failed, 3 stopped before the end.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

use kingsnake_text::count;

use crate::error::{Context, Result};

use crate::cell::Cell;
use crate::design::Study;
use crate::ledger::Ledger;
use crate::listener::{StudyEvent, StudyListener};
use crate::problems::{StudyProblem, problems};
use crate::process::{Limits, run};
use crate::progress::{Estimate, StudyProgress};
use crate::row::{Heading, Row, RowOutcome, row};
use crate::slurm::Returned;
use crate::start::{Caller, Mode};
use crate::switches::cell_line;
use crate::{histories, machine, report, slurm, words};

/// Number of cells taken at a time: their histories are made, then they run.
pub const BLOCK: usize = 1_000;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct StudyOptions {
    /// Where everything goes.
    pub directory: PathBuf,
    /// Checks at a time.
    pub jobs: usize,
    /// What to do with the cells.
    pub mode: Mode,
    /// Forget the rows that are there.
    pub restart: bool,
    /// Leave out the other runs of a check that ran out of time once.
    pub skip_after_timeout: bool,
    /// The command line that asks for the same cells, without the program.
    pub words: Vec<String>,
}

/// Runs the study, or what of it was asked for.
pub fn conduct(study: &Study, options: &StudyOptions, caller: &mut Caller<'_>) -> Result<u8> {
    let runner = Runner::new(study, options)?;
    match &options.mode {
        Mode::List { json } => return runner.list(*json, caller.listener),
        Mode::Cells(ids) => return runner.run_cells(ids, caller),
        Mode::Slurm(_) => slurm::expect(study.memory, "--memory-limit")?,
        Mode::Local | Mode::Prepare => {}
    }
    let mut ledger = Ledger::open(&options.directory, study, options.restart)?;
    if let Some(words) = ledger.again().words() {
        tell(caller.listener, StudyEvent::Warning(&words))?;
    }
    let finished = match &options.mode {
        Mode::Prepare => return runner.prepare(&ledger, caller),
        Mode::Slurm(slurm) => runner.run_on_slurm(slurm, options, &mut ledger, caller),
        _ => runner.run(&mut ledger, caller),
    };
    finished?;
    let rows = study.rows_of_cells(ledger.rows());
    let left_out = runner.left_out(&rows);
    let n_left_out: usize = left_out.iter().sum();
    let stopped = rows.len() + n_left_out < study.n_cells();
    let found = problems(study, &rows);
    let page = report::write(&options.directory, study, &rows, &found, &left_out)?;
    let mut text = words::ending(study, &rows, &found, &page, &left_out, caller.paint);
    if n_left_out > 0 {
        text += &format!(
            "{} left out, because the check ran out of time on another history\n",
            count(n_left_out, "run")
        );
    }
    let event = StudyEvent::Text {
        text: &text,
        always: false,
    };
    tell(caller.listener, event)?;
    Ok(if found.iter().any(StudyProblem::is_wrong) {
        1
    } else if !found.is_empty() {
        2
    } else if stopped {
        3
    } else {
        0
    })
}

/// Reports; the listener may be gone.
pub fn tell(listener: &mut dyn StudyListener, event: StudyEvent<'_>) -> Result<()> {
    listener.event(event).context("cannot write to stdout")
}

/// A study and the directory that it works in.
pub struct Runner<'a> {
    pub study: &'a Study,
    pub directory: &'a Path,
    pub executable: PathBuf,
    jobs: usize,
    /// Threads of a check that does not say it; all there are unless given.
    threads: Option<usize>,
    pub limits: Limits,
    skip_after_timeout: bool,
    /// Points of which a run was out of time.
    timed_out: Mutex<BTreeSet<usize>>,
}

/// Whether a check says how many threads it takes.
fn names_threads(check: &[String]) -> bool {
    check.iter().any(|word| word.starts_with("--threads"))
}

/// Threads per cell, if several run at a time or a scheduler assigned a part of the machine.
pub fn threads(jobs: usize) -> Option<usize> {
    let given = std::env::var("SLURM_CPUS_PER_TASK").ok();
    let given = given.and_then(|word| word.parse().ok());
    if jobs == 1 {
        return given;
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Some((given.unwrap_or(cores) / jobs).max(1))
}

/// The memory limit of a cell, if this many run at a time.
pub fn memory(jobs: usize) -> Option<u64> {
    machine::available().map(|free| free / 10 * 9 / jobs.max(1) as u64)
}

impl<'a> Runner<'a> {
    fn new(study: &'a Study, options: &'a StudyOptions) -> Result<Self> {
        let jobs = options.jobs.max(1);
        Ok(Runner {
            study,
            directory: &options.directory,
            executable: std::env::current_exe().context("cannot find the executable")?,
            jobs,
            threads: threads(jobs),
            limits: Limits {
                timeout: study.timeout,
                memory: study.memory.or_else(|| memory(jobs)),
            },
            skip_after_timeout: options.skip_after_timeout,
            timed_out: Mutex::default(),
        })
    }

    /// Whether a cell is left out, because another run of the same check was out of time.
    fn is_skipped(&self, cell: Cell) -> bool {
        let timed_out = self
            .timed_out
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        self.skip_after_timeout && timed_out.contains(&cell.point)
    }

    /// Takes note of a run that was out of time.
    fn note_time(&self, cell: Cell, row: &Row) {
        if row.outcome == RowOutcome::Time {
            let mut timed_out = self
                .timed_out
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            timed_out.insert(cell.point);
        }
    }

    /// How many cells of each point were left out.
    fn left_out(&self, rows: &[(Cell, Row)]) -> Vec<usize> {
        let first = |point| Cell {
            point,
            seed: 0,
            repeat: 0,
        };
        let of_point = |(point, n_left): (usize, usize)| {
            if self.is_skipped(first(point)) {
                n_left
            } else {
                0
            }
        };
        let left = self.left(rows);
        left.into_iter().enumerate().map(of_point).collect()
    }

    /// How many cells of each point have no row.
    fn left(&self, rows: &[(Cell, Row)]) -> Vec<usize> {
        let points = 0..self.study.points.len();
        let mut left: Vec<usize> = points.map(|it| self.study.n_cells_of(it)).collect();
        for (cell, _) in rows {
            left[cell.point] = left[cell.point].saturating_sub(1);
        }
        left
    }

    /// What is known of a cell before it runs.
    pub fn heading(&self, cell: Cell) -> Heading {
        let point = &self.study.points[cell.point];
        let source = &self.study.sources[point.source];
        let history = histories::place(self.directory, source, cell.seed);
        let mut check = point.check.clone();
        check.extend([
            "--timeout".to_owned(),
            self.limits.timeout.as_secs_f64().to_string(),
        ]);
        if let Some(most) = self.limits.memory {
            check.extend(["--memory-limit".to_owned(), most.to_string()]);
        }
        if let Some(each) = self.threads
            && !names_threads(&check)
        {
            check.extend(["--threads".to_owned(), each.to_string()]);
        }
        Heading {
            cell: format!(
                "{} seed {} repeat {} {}",
                source.name,
                cell.seed,
                cell.repeat,
                point.check.join(" ")
            ),
            history: source.name.clone(),
            check: point.check.clone(),
            seed: cell.seed,
            repeat: cell.repeat,
            line: cell_line(&check, &history.display().to_string(), cell.repeat),
        }
    }

    fn run(&self, ledger: &mut Ledger, caller: &mut Caller<'_>) -> Result<()> {
        let (stop, listener) = (caller.stop, &mut *caller.listener);
        let rows = self.study.rows_of_cells(ledger.rows());
        for (cell, row) in &rows {
            self.note_time(*cell, row);
        }
        let mut progress = self.progress(ledger);
        tell(listener, StudyEvent::Begin(progress.n_waiting()))?;
        let mut cells = self.study.cells();
        let mut is_first = true;
        loop {
            let waiting: VecDeque<(Cell, Heading)> = self.next(&mut cells, BLOCK, ledger).into();
            if waiting.is_empty() || stop.load(Ordering::Relaxed) {
                return tell(listener, StudyEvent::End);
            }
            self.make_histories(waiting.iter().map(|it| it.0), listener, stop)?;
            if is_first {
                self.warm_up(&waiting[0].1, stop);
                is_first = false;
            }
            self.run_block(waiting, ledger, &mut progress, caller.stop, listener)?;
        }
    }

    fn run_block(
        &self,
        waiting: VecDeque<(Cell, Heading)>,
        ledger: &mut Ledger,
        progress: &mut StudyProgress,
        stop: &AtomicBool,
        listener: &mut dyn StudyListener,
    ) -> Result<()> {
        let waiting = Mutex::new(waiting);
        std::thread::scope(|scope| {
            let (finished, results) = mpsc::channel();
            for _ in 0..self.jobs {
                let finished = finished.clone();
                let waiting = &waiting;
                scope.spawn(move || self.work(waiting, stop, &finished));
            }
            drop(finished);
            for (cell, ended) in results {
                let ended = ended.and_then(|row| match row {
                    Some(row) => {
                        ledger.add(row.clone())?;
                        progress.ended(cell, &row, listener)
                    }
                    None => Ok(()),
                });
                if let Err(error) = ended {
                    // The disk is full, or the executable is gone: no further cell would fare better.
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            Ok(())
        })
    }

    /// Has the system load the program and the first history, so that the first cell does not wait for the disk. A failure is the
    /// first cell's to tell.
    fn warm_up(&self, first: &Heading, stop: &AtomicBool) {
        let _ = run(
            &self.executable,
            &["--version".to_owned()],
            self.limits,
            stop,
        );
        let files = first.line.iter().map(Path::new);
        for file in files.filter(|it| it.is_file()) {
            let _ = std::fs::File::open(file)
                .and_then(|mut file| std::io::copy(&mut file, &mut std::io::sink()));
        }
    }

    /// The rest of the study, estimated from the rows so far.
    pub fn progress(&self, ledger: &Ledger) -> StudyProgress {
        let rows = self.study.rows_of_cells(ledger.rows());
        let mut estimate = Estimate::default();
        for (cell, row) in &rows {
            estimate.took(cell.point, row.wall_seconds);
        }
        for (point, n_left) in self.left(&rows).into_iter().enumerate() {
            estimate.wait(point, n_left);
        }
        StudyProgress::new(estimate, self.jobs)
    }

    /// The next cells that have no row and are not left out, at most this many.
    pub fn next(
        &self,
        cells: &mut impl Iterator<Item = Cell>,
        most: usize,
        ledger: &Ledger,
    ) -> Vec<(Cell, Heading)> {
        cells
            .filter(|&cell| !self.is_skipped(cell))
            .map(|cell| (cell, self.heading(cell)))
            .filter(|(_, heading)| !ledger.has(&heading.cell))
            .take(most)
            .collect()
    }

    /// Makes the histories of these cells that are not there yet.
    pub fn make_histories(
        &self,
        cells: impl Iterator<Item = Cell>,
        listener: &mut dyn StudyListener,
        stop: &AtomicBool,
    ) -> Result<()> {
        let needed: BTreeSet<(usize, u32)> = cells
            .map(|cell| (self.study.points[cell.point].source, cell.seed))
            .collect();
        for (source, seed) in needed {
            let source = &self.study.sources[source];
            let words = format!("making the history {}", source.name);
            tell(listener, StudyEvent::Doing(&words))?;
            if histories::make(self.directory, source, seed, &self.executable, stop)? {
                break;
            }
        }
        Ok(())
    }

    fn work(
        &self,
        waiting: &Mutex<VecDeque<(Cell, Heading)>>,
        stop: &AtomicBool,
        finished: &mpsc::Sender<(Cell, Result<Option<Row>>)>,
    ) {
        while !stop.load(Ordering::Relaxed) {
            let next = waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            let Some((cell, heading)) = next else {
                return;
            };
            if self.is_skipped(cell) {
                continue;
            }
            let ended = run(&self.executable, &heading.line, self.limits, stop)
                .context("cannot start kingsnake check")
                .map(|ended| row(&heading, &ended));
            if let Ok(Some(row)) = &ended {
                self.note_time(cell, row);
            }
            if finished.send((cell, ended)).is_err() {
                return;
            }
        }
    }
}
