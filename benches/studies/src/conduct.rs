//! Runs the cells of a study that have no row yet, several at a time, and reports on all.
//!
//! Exit status: 0 done, 1 a wrong verdict or a disagreement, 2 a check that failed, 3 stopped before the end.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use crate::error::{Context, Result};
use kingsnake_text::{count, lasting};

use crate::design::{Cell, Study};
use crate::ledger::Ledger;
use crate::listener::{Event, Listener};
use crate::problems::{Problem, problems};
use crate::process::{Limits, run};
use crate::progress::Estimate;
use crate::row::{Heading, Row, row};
use crate::start::Caller;
use crate::switches::check_line;
use crate::{histories, machine, report, words};

/// How a study is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where everything goes.
    pub directory: PathBuf,
    /// Checks at a time.
    pub jobs: usize,
    /// Only say what would run.
    pub list: bool,
    /// Forget the rows that are there.
    pub restart: bool,
}

/// Runs the study, or lists its cells.
pub fn conduct(study: &Study, options: &Options, caller: &mut Caller<'_>) -> Result<u8> {
    let runner = Runner::new(study, options)?;
    if options.list {
        return runner.list(caller.listener);
    }
    let mut ledger = Ledger::open(&options.directory, study, options.restart)?;
    runner.run(&mut ledger, caller)?;
    let rows = runner.ordered(ledger.rows());
    let stopped = rows.len() < study.cells.len();
    let found = problems(study, &rows);
    let page = report::write(&options.directory, study, &rows, &found)?;
    let text = words::ending(study, &rows, &found, &page, stopped, caller.paint);
    tell(
        caller.listener,
        Event::Text {
            text: &text,
            always: false,
        },
    )?;
    Ok(if found.iter().any(Problem::is_wrong) {
        1
    } else if !found.is_empty() {
        2
    } else if stopped {
        3
    } else {
        0
    })
}

/// Reports; who listens may be gone.
fn tell(listener: &mut dyn Listener, event: Event<'_>) -> Result<()> {
    listener.event(event).context("cannot write to stdout")
}

struct Runner<'a> {
    study: &'a Study,
    directory: &'a Path,
    executable: PathBuf,
    jobs: usize,
    limits: Limits,
}

impl<'a> Runner<'a> {
    fn new(study: &'a Study, options: &'a Options) -> Result<Self> {
        let jobs = options.jobs.max(1);
        let free = || machine::available().map(|free| free / 10 * 9 / jobs as u64);
        Ok(Runner {
            study,
            directory: &options.directory,
            executable: std::env::current_exe().context("cannot find the executable")?,
            jobs,
            limits: Limits {
                timeout: study.timeout,
                memory: study.memory.or_else(free),
            },
        })
    }

    fn heading(&self, cell: Cell) -> Heading {
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
        if self.jobs > 1 && !check.iter().any(|word| word.starts_with("--threads")) {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let each = (cores / self.jobs).max(1);
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
            line: check_line(&check, &history.display().to_string(), cell.repeat),
        }
    }

    fn list(&self, listener: &mut dyn Listener) -> Result<u8> {
        let mut text = String::new();
        for &cell in &self.study.cells {
            let _ = writeln!(text, "kingsnake {}", self.heading(cell).line.join(" "));
        }
        let total = format!(
            "{} of {} on {}; at most {} one after the other\n",
            count(self.study.cells.len(), "cell"),
            count(self.study.points.len(), "check"),
            count(self.study.sources.len(), "source"),
            lasting(self.limits.timeout * self.study.cells.len() as u32),
        );
        for (text, always) in [(&text, true), (&total, false)] {
            tell(listener, Event::Text { text, always })?;
        }
        Ok(0)
    }

    /// The rows of the study's cells, in the order of the cells.
    fn ordered(&self, rows: &[Row]) -> Vec<(Cell, Row)> {
        let by_name: HashMap<&str, &Row> =
            rows.iter().map(|row| (row.cell.as_str(), row)).collect();
        let with_row = |&cell: &Cell| {
            let row = by_name.get(self.heading(cell).cell.as_str())?;
            Some((cell, (*row).clone()))
        };
        self.study.cells.iter().filter_map(with_row).collect()
    }

    fn run(&self, ledger: &mut Ledger, caller: &mut Caller<'_>) -> Result<()> {
        let (stop, listener) = (caller.stop, &mut *caller.listener);
        let begun = Instant::now();
        let mut estimate = Estimate::default();
        for (cell, row) in self.ordered(ledger.rows()) {
            estimate.took(cell.point, row.wall_seconds);
        }
        let waiting: VecDeque<(Cell, Heading)> = self
            .study
            .cells
            .iter()
            .map(|&cell| (cell, self.heading(cell)))
            .filter(|(_, heading)| !ledger.has(&heading.cell))
            .collect();
        for (cell, _) in &waiting {
            estimate.waits(cell.point);
        }
        tell(listener, Event::Begin(waiting.len()))?;
        self.make_histories(&waiting, listener, stop)?;
        let waiting = Mutex::new(waiting);
        std::thread::scope(|scope| {
            let (finished, results) = mpsc::channel();
            for _ in 0..self.jobs {
                let finished = finished.clone();
                let waiting = &waiting;
                scope.spawn(move || self.work(waiting, stop, &finished));
            }
            drop(finished);
            for (cell, heading, ended) in results {
                let ended = ended.and_then(|row| match row {
                    Some(row) => {
                        estimate.ended(cell.point, row.wall_seconds);
                        let words = words::row(&row);
                        ledger.add(row)?;
                        let left = estimate.left() / self.jobs as f64;
                        tell(
                            listener,
                            Event::Ended {
                                history: &heading.history,
                                row: &words,
                                gone: begun.elapsed(),
                                left: Duration::try_from_secs_f64(left).unwrap_or_default(),
                            },
                        )
                    }
                    None => Ok(()),
                });
                if let Err(error) = ended {
                    // The disk is full, or the executable is gone: no further cell would fare better.
                    stop.store(true, Ordering::Relaxed);
                    return Err(error);
                }
            }
            tell(listener, Event::End)
        })
    }

    fn make_histories(
        &self,
        waiting: &VecDeque<(Cell, Heading)>,
        listener: &mut dyn Listener,
        stop: &AtomicBool,
    ) -> Result<()> {
        let needed: BTreeSet<(usize, u32)> = waiting
            .iter()
            .map(|(cell, _)| (self.study.points[cell.point].source, cell.seed))
            .collect();
        for (source, seed) in needed {
            let source = &self.study.sources[source];
            let words = format!("making the history {}", source.name);
            tell(listener, Event::Doing(&words))?;
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
        finished: &mpsc::Sender<(Cell, Heading, Result<Option<Row>>)>,
    ) {
        while !stop.load(Ordering::Relaxed) {
            let next = waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .pop_front();
            let Some((cell, heading)) = next else {
                return;
            };
            let ended = run(&self.executable, &heading.line, self.limits, stop)
                .context("cannot start kingsnake check")
                .map(|ended| row(&heading, &ended));
            if finished.send((cell, heading, ended)).is_err() {
                return;
            }
        }
    }
}
