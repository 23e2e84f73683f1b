//! The rows of a batch on disk: `batch.json` says what makes them comparable, `rows.jsonl` is the truth, `rows.d/` takes rows of
//! processes that ran elsewhere. Without a directory rows are only kept in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Item;
use crate::again::{Again, is_due};
use crate::error::{Context, Result, bail};
use crate::ledger::{difference, expect_free, lock, put_whole, replace_line, whole_lines};
use crate::slurm::{Returned, submissions};
use crate::{machine, rowfiles};

const ABOUT: &str = "batch.json";
const ROWS: &str = "rows.jsonl";

/// Rows by the short names of their cells, held by one process at a time.
pub struct LedgerRows {
    by_id: BTreeMap<String, Value>,
    again: Again,
    place: Option<(PathBuf, File)>,
    lock: Option<File>,
}

/// The row with what every row has: which cell it is of, and where it ran.
pub fn headed(mut row: Value, item: &Item) -> Value {
    row["id"] = item.id().into();
    row["cell"] = item.name.clone().into();
    row["host"] = machine::host().into();
    row["processor"] = machine::processor().into();
    // The process that took a device has reported it.
    if row["device"].is_null() {
        row["device"] = "cpu".into();
        row["adapter"] = Value::Null;
    }
    row
}

/// The short name of a row's cell. Rows of before there were short names have only the cell's name.
fn id(row: &Value) -> Option<String> {
    let id = row["id"].as_str().map(str::to_owned);
    id.or_else(|| Some(rowfiles::id(row["cell"].as_str()?)))
}

/// The row that a line holds, and its cell's short name.
fn of_line(line: &str) -> Option<(String, Value)> {
    let row: Value = serde_json::from_str(line).ok()?;
    Some((id(&row)?, row))
}

/// How often the row's cell has failed for reasons that may have passed; 0 of a row that stands.
fn attempt(row: &Value) -> u32 {
    let attempt = row["attempt"].as_u64().unwrap_or(0);
    attempt.try_into().unwrap_or(u32::MAX)
}

impl LedgerRows {
    /// Opens the directory as it was left, or empty after `restart`.
    pub fn open(directory: Option<&Path>, identity: &Value, restart: bool) -> Result<LedgerRows> {
        let mut rows = LedgerRows {
            by_id: BTreeMap::new(),
            again: Again::default(),
            place: None,
            lock: None,
        };
        let Some(directory) = directory else {
            return Ok(rows);
        };
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make the directory {}", directory.display()))?;
        rows.lock = lock(directory)?;
        let (about, path) = (directory.join(ABOUT), directory.join(ROWS));
        if restart {
            rowfiles::remove(directory)?;
            submissions::remove(directory)?;
            for path in [&about, &path] {
                if path.exists() {
                    fs::remove_file(path)
                        .with_context(|| format!("cannot remove {}", path.display()))?;
                }
            }
        }
        expect_free(directory, ABOUT)?;
        if about.exists() {
            expect_prepared(directory, identity)?;
        } else {
            put_whole(&about, format!("{identity:#}\n"))?;
        }
        for (at, line) in whole_lines(&path)?.iter().enumerate() {
            let Some((id, row)) = of_line(line) else {
                bail!("{}:{}: this is no row of a cell", path.display(), at + 1);
            };
            rows.by_id.insert(id, row);
        }
        let file = OpenOptions::new().create(true).append(true).open(&path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        rows.place = Some((directory.to_owned(), file));
        rows.merge()?;
        for (id, row) in rows.by_id.extract_if(.., |_, row| is_due(attempt(row))) {
            rows.again.note(id, attempt(&row));
        }
        Ok(rows)
    }

    /// The cells that run again.
    pub fn again(&self) -> &Again {
        &self.again
    }

    /// The row of a cell, by its short name.
    pub fn get(&self, id: &str) -> Option<&Value> {
        self.by_id.get(id)
    }

    /// Every row.
    pub fn all(&self) -> impl Iterator<Item = &Value> {
        self.by_id.values()
    }

    /// The short names of the cells that have rows.
    pub fn ids(&self) -> BTreeSet<String> {
        self.by_id.keys().cloned().collect()
    }

    /// Writes a row; a second row of a cell is ignored.
    pub fn add(&mut self, mut row: Value) -> Result<()> {
        let Some(id) = id(&row) else {
            bail!("internal error: a row without its cell");
        };
        if self.by_id.contains_key(&id) {
            return Ok(());
        }
        if attempt(&row) > 0 {
            row["attempt"] = attempt(&row).max(self.again.attempts(&id) + 1).into();
        }
        if let Some((directory, file)) = &mut self.place {
            if self.again.take(&id) {
                *file = replace_line(&directory.join(ROWS), |line| {
                    of_line(line).is_some_and(|it| it.0 == id)
                })?;
            }
            // One write, so that a crash leaves at most one torn line.
            file.write_all(format!("{row}\n").as_bytes())
                .and_then(|()| file.flush())
                .with_context(|| format!("cannot write {ROWS}"))?;
        }
        self.by_id.insert(id, row);
        Ok(())
    }
}

impl Returned for LedgerRows {
    fn has(&self, cell: &str) -> bool {
        self.by_id.contains_key(cell)
    }

    fn merge(&mut self) -> Result<Vec<String>> {
        let Some((directory, _)) = &self.place else {
            return Ok(Vec::new());
        };
        let mut new = Vec::new();
        for (path, text) in rowfiles::texts(&directory.clone())? {
            let Some((id, row)) = of_line(&text) else {
                bail!("{}: this is no row of a cell", path.display());
            };
            // A failure that is retried is not reported.
            let is_known = attempt(&row) > 0 && attempt(&row) <= self.again.attempts(&id);
            if !self.has(&id) && !is_known {
                self.add(row)?;
                new.push(id);
            }
        }
        Ok(new)
    }
}

/// The cells that have rows in a directory, which another process may be writing to.
pub fn done_in(directory: &Path) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(directory.join(ROWS)).unwrap_or_default();
    let files = rowfiles::texts(directory)?.into_iter().map(|it| it.1);
    let all = text.lines().map(str::to_owned).chain(files);
    // A line that is not whole yet is not done.
    let rows = all.filter_map(|line| of_line(&line));
    let done = rows.filter(|(_, row)| !is_due(attempt(row)));
    Ok(done.map(|it| it.0).collect())
}

/// How often a cell has failed for reasons that may have passed.
pub fn attempts_in(directory: &Path, id: &str) -> Result<u32> {
    let text = fs::read_to_string(directory.join(ROWS)).unwrap_or_default();
    let files = rowfiles::texts(directory)?.into_iter().map(|it| it.1);
    let all = text.lines().map(str::to_owned).chain(files);
    let rows = all
        .filter_map(|line| of_line(&line))
        .filter(|it| it.0 == id);
    Ok(rows.map(|it| attempt(&it.1)).max().unwrap_or(0))
}

/// Expects the directory to be prepared for these cells.
pub fn expect_prepared(directory: &Path, identity: &Value) -> Result<()> {
    let about = directory.join(ABOUT);
    let Ok(text) = fs::read_to_string(&about) else {
        bail!(
            "there is no {}; the same command with --prepare makes it",
            about.display()
        );
    };
    let there: Value = serde_json::from_str(&text)
        .with_context(|| format!("{} is not what a batch left", about.display()))?;
    if let Some((name, was, is)) = difference("", &there, identity) {
        bail!(
            "{} holds the rows of another run: {name} was {was} and is now {is}\n\
             Continue it with the options that it began with, choose another --out, or pass --restart to delete its rows.",
            directory.display()
        );
    }
    Ok(())
}
