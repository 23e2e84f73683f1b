//! The primitives for running cells elsewhere: list them, prepare what they need, run some of them and write each row to a
//! file of its own. `slurm` uses them, and so can any other engine.

use std::fmt::Write;

use kingsnake_text::{count, lasting};
use serde_json::{Map, json};

use crate::conduct::{Runner, tell};
use crate::design::Cell;
use crate::error::{Context, Result, bail};
use crate::ledger::{Ledger, attempts_in, done_in, look_into};
use crate::listener::{StudyEvent, StudyListener};
use crate::process::run;
use crate::row::{Heading, Row, RowOutcome, row};
use crate::slurm::{self, End, Needs, News, Slurm, Waiting};
use crate::start::Caller;
use crate::{conduct, histories, rowfiles, words};

impl Runner<'_> {
    /// Lists the cells.
    pub fn list(&self, json: bool, listener: &mut dyn StudyListener) -> Result<u8> {
        if json {
            let text = &self.as_json()?;
            tell(listener, StudyEvent::Text { text, always: true })?;
            return Ok(0);
        }
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
            tell(listener, StudyEvent::Text { text, always })?;
        }
        Ok(0)
    }

    /// An array with one cell per line.
    fn as_json(&self) -> Result<String> {
        let done = done_in(self.directory)?;
        let mut lines = Vec::new();
        for &cell in &self.study.cells {
            let heading = self.heading(cell);
            let id = rowfiles::id(&heading.cell);
            let argv = std::iter::once("kingsnake").chain(heading.line.iter().map(String::as_str));
            let mut line = Map::new();
            line.insert("done".to_owned(), done.contains(&heading.cell).into());
            line.insert(
                "row".to_owned(),
                rowfiles::place(self.directory, &id)
                    .display()
                    .to_string()
                    .into(),
            );
            line.insert(
                "history".to_owned(),
                self.history(cell).display().to_string().into(),
            );
            line.insert("argv".to_owned(), json!(argv.collect::<Vec<_>>()));
            line.insert("cell".to_owned(), heading.cell.into());
            line.insert("id".to_owned(), id.into());
            lines.push(serde_json::Value::Object(line).to_string());
        }
        Ok(format!("[{}]\n", lines.join(",\n ")))
    }

    fn history(&self, cell: Cell) -> std::path::PathBuf {
        let source = &self.study.sources[self.study.points[cell.point].source];
        histories::place(self.directory, source, cell.seed)
    }

    /// Makes the histories; `study.json` is there since the ledger was opened.
    pub fn prepare(&self, ledger: &Ledger, caller: &mut Caller<'_>) -> Result<u8> {
        let waiting = self.waiting(ledger);
        let cells = waiting.iter().map(|it| it.0);
        self.make_histories(cells, caller.listener, caller.stop)?;
        if caller.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Ok(3);
        }
        let text = &format!("prepared: {} to run\n", count(waiting.len(), "cell"));
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
        let all: Vec<(Cell, Heading)> = self
            .study
            .cells
            .iter()
            .map(|&cell| (cell, self.heading(cell)))
            .collect();
        let mut wanted = Vec::new();
        for id in ids {
            let Some(found) = all.iter().find(|it| rowfiles::id(&it.1.cell) == *id) else {
                bail!("this study has no cell {id:?}; --list --json shows those that it has");
            };
            wanted.push(found.clone());
        }
        Ok(wanted)
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
        let waiting = self.waiting(ledger);
        let (stop, listener) = (caller.stop, &mut *caller.listener);
        tell(listener, StudyEvent::Begin(waiting.len()))?;
        self.make_histories(waiting.iter().map(|it| it.0), listener, stop)?;
        let mut progress = self.progress(ledger, waiting.iter().map(|it| it.0));
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
        let end = slurm::drive(
            self.directory,
            options,
            &needs,
            cells.collect(),
            ledger,
            stop,
            &mut hear,
        )?;
        match end {
            End::Left(job) if job.is_empty() => {}
            End::Left(job) => {
                tell(listener, StudyEvent::Warning(&slurm::goes_on(&job)))?;
            }
            End::Done(failed) => {
                for (cell, reason) in failed {
                    if let Some((_, heading)) = waiting.iter().find(|it| it.1.cell == cell.cell) {
                        ledger.add(Row::lost(heading, reason))?;
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
            memory: slurm::memory(self.study.memory, "--memory")?,
            processors: named.max().unwrap_or(1),
            command,
        })
    }
}

impl Row {
    /// A cell that never came back.
    fn lost(heading: &Heading, reason: String) -> Row {
        Row {
            outcome: RowOutcome::Failed,
            reason,
            ..Row::new(heading)
        }
    }
}
