//! The operations for running cells elsewhere: list them, prepare what they need, run some of them and write each row
//! to a file of its own. `slurm` uses them, and other engines can.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::time::Duration;

use kingsnake_text::{count, lasting};
use serde_json::{Value, json};

use crate::cell::Cell;
use crate::conduct::{BLOCK, Runner, tell};
use crate::error::{Context, Result, bail};
use crate::ledger::{Ledger, attempts_in, done_in, look_into};
use crate::listener::{StudyEvent, StudyListener, array, list};
use crate::process::run;
use crate::row::{Heading, Row, RowOutcome, row};
use crate::slurm::{self, End, Needs, News, Slurm, Waiting};
use crate::start::Caller;
use crate::{conduct, histories, rowfiles, words};

impl Runner<'_> {
    /// Lists the cells.
    pub fn list(&self, json: bool, listener: &mut dyn StudyListener) -> Result<u8> {
        let cells = self.study.cells();
        if json {
            let done = done_in(self.directory)?;
            list(array(cells.map(|it| self.as_json(it, &done))), listener)?;
            return Ok(0);
        }
        let line = |cell| format!("kingsnake {}\n", self.heading(cell).line.join(" "));
        list(cells.map(line), listener)?;
        let n_cells = self.study.n_cells();
        let most = self.limits.timeout.as_secs_f64() * n_cells as f64;
        let text = &format!(
            "{} of {} on {}; at most {} one after the other\n",
            count(n_cells, "cell"),
            count(self.study.points.len(), "check"),
            count(self.study.sources.len(), "source"),
            lasting(Duration::try_from_secs_f64(most).unwrap_or(Duration::MAX)),
        );
        let always = false;
        tell(listener, StudyEvent::Text { text, always })?;
        Ok(0)
    }

    fn as_json(&self, cell: Cell, done: &BTreeSet<String>) -> Value {
        let heading = self.heading(cell);
        let id = rowfiles::id(&heading.cell);
        let argv = std::iter::once("kingsnake").chain(heading.line.iter().map(String::as_str));
        json!({
            "done": done.contains(&heading.cell),
            "row": rowfiles::place(self.directory, &id).display().to_string(),
            "history": self.history(cell).display().to_string(),
            "argv": argv.collect::<Vec<_>>(), "cell": heading.cell, "id": id,
        })
    }

    fn history(&self, cell: Cell) -> std::path::PathBuf {
        let source = &self.study.sources[self.study.points[cell.point].source];
        histories::place(self.directory, source, cell.seed)
    }

    /// Makes the histories; `study.json` is there since the ledger was opened.
    pub fn prepare(&self, ledger: &Ledger, caller: &mut Caller<'_>) -> Result<u8> {
        let mut n_waiting = 0;
        let mut cells = self.study.cells();
        loop {
            let block = self.next(&mut cells, BLOCK, ledger);
            if block.is_empty() {
                break;
            }
            n_waiting += block.len();
            self.make_histories(block.iter().map(|it| it.0), caller.listener, caller.stop)?;
            if caller.stop.load(Ordering::Relaxed) {
                return Ok(3);
            }
        }
        let text = &format!("prepared: {} to run\n", count(n_waiting, "cell"));
        let event = StudyEvent::Text {
            text,
            always: false,
        };
        tell(caller.listener, event)?;
        Ok(0)
    }

    /// Runs these cells, one after the other, but for those that have rows. Takes no lock.
    pub fn run_cells(&self, ids: &[String], caller: &mut Caller<'_>) -> Result<u8> {
        let wanted = self.wanted(ids)?;
        let done = look_into(self.directory, self.study)?;
        tell(caller.listener, StudyEvent::Begin(wanted.len()))?;
        for (cell, heading) in wanted {
            if done.contains(&heading.cell) {
                continue;
            }
            if !self.history(cell).exists() {
                bail!(
                    "there is no {}; the same command with --prepare makes it",
                    self.history(cell).display()
                );
            }
            let ended = run(&self.executable, &heading.line, self.limits, caller.stop)
                .context("cannot start kingsnake check")?;
            let Some(mut row) = row(&heading, &ended) else {
                return Ok(3);
            };
            if row.attempt > 0 {
                row.attempt += attempts_in(self.directory, &row.cell)?;
            }
            rowfiles::write(self.directory, &row)?;
            let text = &format!("{}\n", words::row(&row));
            let event = StudyEvent::Text {
                text,
                always: false,
            };
            tell(caller.listener, event)?;
        }
        Ok(0)
    }

    fn wanted(&self, ids: &[String]) -> Result<Vec<(Cell, Heading)>> {
        let cells = self.study.cells();
        let all = cells.map(|cell| (cell, self.heading(cell)));
        found(ids, all.map(|it| (rowfiles::id(&it.1.cell), it)))
    }

    /// Runs what has no row on a Slurm cluster.
    pub fn run_on_slurm(
        &self,
        options: &Slurm,
        again: &conduct::StudyOptions,
        ledger: &mut Ledger,
        caller: &mut Caller<'_>,
    ) -> Result<()> {
        let needs = self.needs(again)?;
        let (stop, listener) = (caller.stop, &mut *caller.listener);
        let mut progress = self.progress(ledger);
        tell(listener, StudyEvent::Begin(progress.n_waiting()))?;
        let mut all = self.study.cells();
        loop {
            let waiting = self.next(&mut all, slurm::MOST_CELLS, ledger);
            if waiting.is_empty() {
                break;
            }
            self.make_histories(waiting.iter().map(|it| it.0), listener, stop)?;
            let cells = waiting.iter().map(|(_, heading)| Waiting {
                id: rowfiles::id(&heading.cell),
                cell: heading.cell.clone(),
            });
            let mut hear = |ledger: &Ledger, news: News| match news {
                News::Doing(words) => tell(listener, StudyEvent::Doing(&words)),
                News::Warning(words) => tell(listener, StudyEvent::Warning(&words)),
                News::Row(cell) => {
                    let of = waiting.iter().find(|it| it.1.cell == cell);
                    let row = ledger.rows().iter().rev().find(|row| row.cell == cell);
                    match (of, row) {
                        (Some((cell, _)), Some(row)) => progress.ended(*cell, row, listener),
                        _ => Ok(()),
                    }
                }
            };
            let cells = cells.collect();
            match slurm::drive(
                self.directory,
                options,
                &needs,
                cells,
                ledger,
                stop,
                &mut hear,
            )? {
                End::Left(job) => {
                    if !job.is_empty() {
                        tell(listener, StudyEvent::Warning(&slurm::goes_on(&job)))?;
                    }
                    break;
                }
                End::Done(failed) => {
                    for (cell, reason) in failed {
                        if let Some((_, heading)) = waiting.iter().find(|it| it.1.cell == cell.cell)
                        {
                            ledger.add(Row::lost(heading, reason))?;
                        }
                    }
                }
            }
        }
        tell(listener, StudyEvent::End)
    }

    fn needs(&self, again: &conduct::StudyOptions) -> Result<Needs> {
        let named = self.study.points.iter().filter_map(|point| {
            let mut words = point.check.iter();
            let at = words.position(|word| word.starts_with("--threads"))?;
            let word = point.check[at].strip_prefix("--threads=");
            word.or(point.check.get(at + 1).map(String::as_str))?
                .parse()
                .ok()
        });
        let executable = self.executable.display().to_string();
        let mut command = vec![executable];
        command.extend(again.words.iter().cloned());
        Ok(Needs {
            study: self.study.name.clone(),
            timeout: Some(self.limits.timeout),
            memory: slurm::memory(self.study.memory, "--memory-limit")?,
            processors: named.max().unwrap_or(1),
            command,
        })
    }
}

/// The cells of these short names, looked for in one pass that ends with the last of them.
pub fn found<T>(ids: &[String], all: impl Iterator<Item = (String, T)>) -> Result<Vec<T>> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    for (at, id) in ids.iter().enumerate() {
        places.entry(id).or_insert(at);
    }
    let mut cells = BTreeMap::new();
    for (id, cell) in all {
        if places.is_empty() {
            break;
        }
        if let Some(at) = places.remove(id.as_str()) {
            cells.insert(at, cell);
        }
    }
    match places.keys().next() {
        Some(id) => bail!("there is no cell {id:?}; --list --json shows those that there are"),
        None => Ok(cells.into_values().collect()),
    }
}

impl Row {
    /// A cell that did not come back.
    fn lost(heading: &Heading, reason: String) -> Row {
        Row {
            outcome: RowOutcome::Failed,
            reason,
            ..Row::new(heading)
        }
    }
}
