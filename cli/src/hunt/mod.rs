//! `kingsnake hunt`: databases × levels × workloads × faults × seeds. Every cell is collected and checked in its own
//! process, each row is written when it finishes, an interrupted hunt resumes, and the page is made from the rows.
//!
//! Invariant: `rows.jsonl` has exactly one line per finished cell, however the process ended.

mod aim;
mod aimed;
pub mod cell;
pub mod cells;
mod close;
mod finding;
mod page;
pub mod recipe;
mod scripts;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use kingsnake_studies::{Batch, BatchEnded, BatchOptions, Item, batch};
use serde_json::{Value, json};

use crate::args::HuntArgs;
use crate::interrupt;
use crate::output::put;
use crate::study_bar::StudyBar;
use crate::voice::{Voice, count, say};
use cells::HuntCells;
use recipe::HuntRecipe;

/// What a cell may take beyond its recipe's limits: starting a server, merging histories.
const AROUND: Duration = Duration::from_secs(60);
/// A cell collects, then checks at most twice, and shrinks its finding.
const PARTS: f64 = 5.0;

/// Runs the cells that have no row yet, and writes the page. Exit status: 0 every promise was kept, 1 one was broken, 2
/// a cell failed, 3 stopped early.
pub fn hunt(args: &HuntArgs, voice: Voice) -> Result<u8> {
    let recipe = recipe::read(&args.file)?;
    if let Some(level) = &args.aim {
        return aimed::hunt(args, &recipe, level, voice);
    }
    let hunt = Hunt {
        cells: HuntCells::of(&recipe)?,
        recipe: &recipe,
        directory: &args.out,
        memory: args.memory,
        shrinks: args.shrink,
    };
    let stop = interrupt::listen().context("cannot listen to signals")?;
    let ended = batch(
        &hunt,
        &options(args, &recipe),
        &stop,
        &mut StudyBar::new(voice),
    )?;
    match ended {
        BatchEnded::Status(status) => Ok(status),
        BatchEnded::Rows { rows, n_left } => hunt.report(&rows, n_left, voice),
    }
}

struct Hunt<'a> {
    recipe: &'a HuntRecipe,
    cells: HuntCells<'a>,
    directory: &'a Path,
    memory: Option<u64>,
    /// Whether each finding is shrunk.
    shrinks: bool,
}

/// How the cells of a hunt are run.
fn options(args: &HuntArgs, recipe: &HuntRecipe) -> BatchOptions {
    let mut words = vec!["hunt".to_owned(), args.file.display().to_string()];
    words.push(format!("--out={}", args.out.display()));
    words.extend(args.memory.map(|size| format!("--memory-limit={size}")));
    words.extend(args.shrink.then(|| "--shrink".to_owned()));
    BatchOptions {
        name: "hunt".to_owned(),
        directory: Some(args.out.clone()),
        identity: json!({
            "hunt": recipe.name, "txns": recipe.txns, "sessions": recipe.sessions,
            "seconds": recipe.seconds, "every": recipe.every,
        }),
        jobs: usize::from(args.cells.jobs),
        mode: args.cells.mode(args.json),
        restart: args.cells.restart,
        words,
        timeout: Some(Duration::from_secs_f64(recipe.seconds * PARTS) + AROUND),
        memory: args.memory,
        memory_option: "--memory-limit",
        processors: 1,
    }
}

impl Hunt<'_> {
    fn report(&self, rows: &[Value], n_left: usize, voice: Voice) -> Result<u8> {
        write_report(self.directory, &self.recipe.name, rows, "")?;
        let report = self.directory.join("report.html");
        ending(rows, n_left, &report, voice)
    }
}

/// The page and the table of all rows, and a page per finding; `before` precedes the table.
fn write_report(directory: &Path, name: &str, rows: &[Value], before: &str) -> Result<()> {
    put(&directory.join("report.html"), &page::page(name, rows))?;
    for row in rows {
        let folder = row["folder"].as_str().unwrap_or("");
        if let Some(page) = finding::page(row) {
            put(&directory.join(folder).join(finding::FINDING), &page)?;
        }
    }
    let table = page::table(name, rows);
    let table = table.replacen("\n\n", &format!("\n\n{before}"), 1);
    put(&directory.join("README.md"), &table)
}

impl Batch for Hunt<'_> {
    fn n_cells(&self) -> usize {
        self.cells.len()
    }

    fn cell(&self, at: usize) -> Item {
        self.cells.get(at).item(self.recipe, self.directory)
    }

    fn place(&self, row: &Value) -> Option<usize> {
        self.cells.place(row)
    }

    fn clear(&self) {
        cell::remove_attempts(self.directory);
    }

    fn run(&self, at: usize, stop: &AtomicBool) -> Result<Option<Value>, String> {
        let cell = self.cells.get(at);
        let limits = (self.memory, self.shrinks);
        cell.run(self.recipe, self.directory, limits, stop)
            .map_err(|error| format!("{error:#}"))
    }

    fn lost(&self, at: usize, reason: &str) -> Value {
        let mut row = self.cells.get(at).heading(self.recipe);
        row["error"] = reason.into();
        row
    }

    fn words(&self, row: &Value) -> String {
        format!(
            "{}/{} {}: {}",
            self.cells.place(row).map_or(0, |at| at + 1),
            self.cells.len(),
            row["cell"].as_str().unwrap_or(""),
            page::outcome(row)
        )
    }
}

fn ending(rows: &[Value], n_left: usize, report: &Path, voice: Voice) -> Result<u8> {
    let broken = rows.iter().filter(|row| page::is_broken(row)).count();
    let failed = rows.iter().filter(|row| !row["error"].is_null()).count();
    if !voice.quiet {
        let words = format!(
            "{} of {} done, {broken} broke a promise, {failed} failed; {}\n",
            count(rows.len(), "cell"),
            rows.len() + n_left,
            report.display()
        );
        say(&words).context("cannot write to stdout")?;
    }
    Ok(if broken > 0 {
        1
    } else if failed > 0 {
        2
    } else if n_left > 0 {
        3
    } else {
        0
    })
}
