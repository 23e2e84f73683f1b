//! Runs the rounds of an aimed hunt in sequence; a place where the level was violated is skipped from then on.

use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use clap::Parser;
use kingsnake_studies::{Batch, BatchEnded, Item, Mode, batch};
use serde_json::{Value, json};

use super::aim::{self, Aim, HuntRounds};
use super::recipe::HuntRecipe;
use super::{page, write_report};
use crate::args::{HuntArgs, Typed};
use crate::interrupt;
use crate::study_bar::StudyBar;
use crate::voice::{Voice, count, say};

/// Runs the rounds that have no row yet, and writes the page. The exit status is that of any hunt.
pub(super) fn hunt(args: &HuntArgs, recipe: &HuntRecipe, level: &str, voice: Voice) -> Result<u8> {
    // Reject an unknown level before the first collection.
    Typed::try_parse_from(["kingsnake", "check", "h", "--level", level]).context("--aim")?;
    if args.cells.jobs > 1 {
        bail!(
            "--aim runs one round after the other, because each depends on those before; leave out --jobs"
        );
    }
    let aim = Aim {
        level: level.to_owned(),
        is_blind: args.blind,
    };
    let hunt = AimedHunt {
        rounds: HuntRounds::of(recipe)?,
        recipe,
        aim,
        args,
        rows: Mutex::default(),
    };
    let stop = interrupt::listen().context("cannot listen to signals")?;
    let mut options = super::options(args, recipe);
    options.words.push(format!("--aim={level}"));
    options
        .words
        .extend(args.blind.then(|| "--blind".to_owned()));
    let mode = args.cells.mode(args.json);
    if !matches!(mode, Mode::Local | Mode::List { .. }) {
        bail!(
            "--aim runs one round after the other on this machine; leave out --on, --prepare and --cell"
        );
    }
    match batch(&hunt, &options, &stop, &mut StudyBar::new(voice))? {
        BatchEnded::Status(status) => Ok(status),
        BatchEnded::Rows { rows, n_left } => hunt.report(&rows, n_left, voice),
    }
}

struct AimedHunt<'a> {
    rounds: HuntRounds<'a>,
    recipe: &'a HuntRecipe,
    aim: Aim,
    args: &'a HuntArgs,
    /// The rows of this process.
    rows: Mutex<Vec<Value>>,
}

impl AimedHunt<'_> {
    /// All rows so far: those of earlier processes and of this one.
    fn rows(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.args.out.join("rows.jsonl")).unwrap_or_default();
        let mut rows: Vec<Value> = text
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        let own = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.extend(own.iter().cloned());
        rows
    }

    fn report(&self, rows: &[Value], n_left: usize, voice: Voice) -> Result<u8> {
        let ran: Vec<Value> = rows
            .iter()
            .filter(|it| it["skipped"].is_null())
            .cloned()
            .collect();
        let found = self.found(rows);
        write_report(&self.args.out, &self.recipe.name, &ran, &found)?;
        if !voice.quiet {
            say(&found).context("cannot write to stdout")?;
        }
        super::ending(rows, n_left, &self.args.out.join("report.html"), voice)
    }

    /// One line per place: the round in which the level was violated, and after how many transactions.
    fn found(&self, rows: &[Value]) -> String {
        let mut out = format!(
            "| database | level | {} was violated in | after | anomaly |\n| --- | --- | --- | --- | --- |\n",
            self.aim.level
        );
        for round in self.rounds.firsts() {
            let here = |row: &&Value| round.number_of(&self.aim, row).is_some();
            let ran = rows
                .iter()
                .filter(here)
                .filter(|it| it["skipped"].is_null());
            let (mut n_rounds, mut n_txns, mut found) = (0, 0, None);
            for row in ran {
                n_rounds += 1;
                n_txns += row["transactions"].as_u64().unwrap_or(0);
                if row[&self.aim.level]["verdict"] == "violated" {
                    found = row[&self.aim.level]["anomaly"].as_str();
                    break;
                }
            }
            let when = match found {
                Some(_) => format!("round {n_rounds}"),
                None => format!("none of {}", count(n_rounds, "round")),
            };
            let after = count(usize::try_from(n_txns).unwrap_or(usize::MAX), "transaction");
            let _ = writeln!(
                out,
                "| {} | {} | {when} | {after} | {} |",
                round.database.name,
                round.isolation,
                found.unwrap_or("–")
            );
        }
        out.push('\n');
        out
    }
}

impl Batch for AimedHunt<'_> {
    fn n_cells(&self) -> usize {
        self.rounds.len()
    }

    fn cell(&self, at: usize) -> Item {
        let round = self.rounds.get(at);
        let name = round.name(&self.aim);
        let words = [
            "collect",
            &round.database.name,
            "--isolation",
            round.isolation,
        ];
        Item {
            key: name.clone(),
            name,
            argv: words.map(str::to_owned).into(),
            history: self.args.out.join(kingsnake_collect::HISTORY),
        }
    }

    fn place(&self, row: &Value) -> Option<usize> {
        self.rounds.place(&self.aim, row)
    }

    fn clear(&self) {
        super::cell::remove_attempts(&self.args.out);
    }

    fn run(&self, at: usize, stop: &AtomicBool) -> Result<Option<Value>, String> {
        let round = self.rounds.get(at);
        let rows = self.rows();
        let variation = round.variation(&self.aim, &rows);
        let cell = round.cell(&self.aim, &variation);
        let row = if let Some(found) = round.found(&self.aim, &rows) {
            let mut row = cell.heading(self.recipe);
            row["skipped"] = found.into();
            row
        } else {
            let limits = (self.args.memory, self.args.shrink);
            let ran = cell.run(self.recipe, &self.args.out, limits, stop);
            let Some(mut row) = ran.map_err(|error| format!("{error:#}"))? else {
                return Ok(None);
            };
            let folder = row["folder"].as_str().unwrap_or("").to_owned();
            let history = Path::new(&folder).join(kingsnake_collect::HISTORY);
            row["varied"] = variation.to_json();
            row["close"] = aim::close(&self.args.out.join(history), &row);
            row
        };
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.push(row.clone());
        Ok(Some(row))
    }

    fn lost(&self, at: usize, reason: &str) -> Value {
        json!({"cell": self.rounds.get(at).name(&self.aim), "error": reason})
    }

    fn words(&self, row: &Value) -> String {
        let name = row["cell"].as_str().unwrap_or("");
        match row["skipped"].as_str() {
            Some(found) => format!(
                "{name}: not run, because {found} violates {}",
                self.aim.level
            ),
            None => format!("{name}: {}", page::outcome(row)),
        }
    }
}
