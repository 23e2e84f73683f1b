//! `kingsnake hunt`: databases × levels × workloads × faults × seeds. Every cell is collected and checked in a process of its
//! own, each row is written as it finishes, a stopped hunt goes on where it stopped, and a page is made from the rows.
//!
//! Invariant: `rows.jsonl` holds exactly one line for each finished cell, whatever ended the process.

mod cell;
mod page;
mod recipe;

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::args::HuntArgs;
use crate::interrupt;
use crate::voice::{Voice, count, say};
use cell::Cell;

const ROWS: &str = "rows.jsonl";

/// Runs the cells that have no row yet, and writes the page. Exit status: 0 every promise was kept, 1 one was broken, 2 a
/// cell failed, 3 stopped before the end.
pub fn hunt(args: &HuntArgs, voice: Voice) -> Result<u8> {
    let recipe = recipe::read(&args.file)?;
    let cells = cell::cells(&recipe)?;
    if args.list {
        for cell in &cells {
            say(&format!("{}\n", cell.name())).context("cannot write to stdout")?;
        }
        return Ok(0);
    }
    let directory = &args.out;
    std::fs::create_dir_all(directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let path = directory.join(ROWS);
    if args.restart && path.exists() {
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    let mut rows = read_rows(&path)?;
    let stop = interrupt::listen().context("cannot listen to signals")?;
    let mut file = OpenOptions::new().create(true).append(true).open(&path);
    let file = file
        .as_mut()
        .map_err(|error| anyhow::anyhow!("cannot write {}: {error}", path.display()))?;
    let n_cells = cells.len();
    for (at, cell) in cells.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if rows.iter().any(|row| row["cell"] == cell.name()) {
            continue;
        }
        let row = cell.run(&recipe, directory)?;
        if stop.load(Ordering::Relaxed) {
            // A cell that was stopped is run again.
            break;
        }
        append(file, &row)?;
        if !voice.quiet {
            let words = format!(
                "{}/{n_cells} {}: {}\n",
                at + 1,
                cell.name(),
                page::outcome(&row)
            );
            say(&words).context("cannot write to stdout")?;
        }
        rows.push(row);
    }
    let names: Vec<String> = cells.iter().map(Cell::name).collect();
    let order = |row: &Value| names.iter().position(|name| row["cell"] == *name);
    rows.retain(|row| order(row).is_some());
    rows.sort_by_key(order);
    let report = directory.join("report.html");
    std::fs::write(&report, page::page(&recipe.name, &rows))
        .with_context(|| format!("cannot write {}", report.display()))?;
    let table = directory.join("README.md");
    std::fs::write(&table, page::table(&recipe.name, &rows))
        .with_context(|| format!("cannot write {}", table.display()))?;
    ending(&rows, n_cells, &report, voice)
}

fn ending(rows: &[Value], n_cells: usize, report: &Path, voice: Voice) -> Result<u8> {
    let broken = rows.iter().filter(|row| page::is_broken(row)).count();
    let failed = rows.iter().filter(|row| !row["error"].is_null()).count();
    if !voice.quiet {
        let words = format!(
            "{} of {n_cells} done, {broken} broke a promise, {failed} failed; {}\n",
            count(rows.len(), "cell"),
            report.display()
        );
        say(&words).context("cannot write to stdout")?;
    }
    Ok(if broken > 0 {
        1
    } else if failed > 0 {
        2
    } else if rows.len() < n_cells {
        3
    } else {
        0
    })
}

fn append(file: &mut File, row: &Value) -> Result<()> {
    file.write_all(format!("{row}\n").as_bytes())
        .and_then(|()| file.flush())
        .context("cannot write a row")
}

/// The rows that are there; a line that was under way is cut off.
fn read_rows(path: &Path) -> Result<Vec<Value>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let whole = text.rfind('\n').map_or(0, |at| at + 1);
    if whole < text.len() {
        let file = OpenOptions::new().write(true).open(path);
        let cut = file.and_then(|file| file.set_len(whole as u64));
        cut.with_context(|| format!("cannot mend {}", path.display()))?;
    }
    let mut rows = Vec::new();
    for (at, line) in text[..whole].lines().enumerate() {
        match serde_json::from_str(line) {
            Ok(row) => rows.push(row),
            Err(error) => bail!("{}:{}: {error}", path.display(), at + 1),
        }
    }
    Ok(rows)
}
