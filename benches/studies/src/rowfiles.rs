//! Rows as files of their own, `rows.d/ID.json`: written by processes that do not know of each other, on one machine or on
//! many that share a file system, and merged by the ordinary command.
//!
//! Invariant: a file of this name holds a whole row. It is written under a name of its own, and renamed.

use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};

use rustc_hash::FxHasher;
use serde::Serialize;

use crate::error::{Context, Result};
use crate::machine;
use crate::row::{Row, parse};

/// The cell's short name: 16 hexadecimal digits, the same wherever the cell has the same name.
pub fn id(cell: &str) -> String {
    let mut hasher = FxHasher::default();
    hasher.write(cell.as_bytes());
    format!("{:016x}", hasher.finish())
}

/// Where a cell's row is, or will be.
pub fn place(directory: &Path, id: &str) -> PathBuf {
    directory.join("rows.d").join(format!("{id}.json"))
}

/// Writes a row of a study.
pub fn write(directory: &Path, row: &Row) -> Result<()> {
    put(directory, &id(&row.cell), row)
}

/// Writes a row, whole or not at all. Of two writers of one cell either may win; both rows are right.
pub fn put(directory: &Path, id: &str, row: &impl Serialize) -> Result<()> {
    let path = place(directory, id);
    let parent = directory.join("rows.d");
    fs::create_dir_all(&parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let unique = format!(".{id}.{}.{}.part", machine::host(), std::process::id());
    let part = parent.join(unique);
    let text = serde_json::to_string(row).context("cannot write a row")?;
    fs::write(&part, text + "\n").with_context(|| format!("cannot write {}", part.display()))?;
    fs::rename(&part, &path).with_context(|| format!("cannot write {}", path.display()))
}

/// The rows of a study that are there, in the order of their names.
pub fn read(directory: &Path) -> Result<Vec<Row>> {
    let parsed = |(path, text): (PathBuf, String)| {
        parse(&text).with_context(|| format!("{}: this is no row of a study", path.display()))
    };
    texts(directory)?.into_iter().map(parsed).collect()
}

/// The files that are there and what they hold, in the order of their names.
pub fn texts(directory: &Path) -> Result<Vec<(PathBuf, String)>> {
    let parent = directory.join("rows.d");
    if !parent.exists() {
        return Ok(Vec::new());
    }
    let listing = || format!("cannot list {}", parent.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(&parent).with_context(listing)? {
        let path = entry.with_context(listing)?.path();
        let hidden = path
            .file_name()
            .is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension().is_some_and(|it| it == "json") {
            names.push(path);
        }
    }
    names.sort();
    names
        .into_iter()
        .map(|path| {
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            Ok((path, text))
        })
        .collect()
}

/// Forgets them.
pub fn remove(directory: &Path) -> Result<()> {
    let parent = directory.join("rows.d");
    if parent.exists() {
        fs::remove_dir_all(&parent)
            .with_context(|| format!("cannot remove {}", parent.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cell: &str, verdict: &str) -> Row {
        let row = serde_json::json!({
            "cell": cell, "history": "w", "check": [], "seed": 0, "repeat": 0,
            "outcome": "answered", "verdict": verdict, "wall_seconds": 0.0,
            "peak_memory_bytes": null, "command": "",
        });
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn a_row_file_is_there_whole_and_a_second_one_replaces_it() {
        let directory = tempfile::TempDir::new().unwrap();
        let directory = directory.path();
        assert!(read(directory).unwrap().is_empty());
        write(directory, &row("a", "satisfied")).unwrap();
        write(directory, &row("b", "violated")).unwrap();
        write(directory, &row("a", "satisfied")).unwrap();
        // A killed writer leaves no row.
        fs::write(directory.join("rows.d/.x.host.1.part"), "{").unwrap();
        let mut cells: Vec<String> = read(directory)
            .unwrap()
            .into_iter()
            .map(|it| it.cell)
            .collect();
        cells.sort();
        assert_eq!(cells, ["a", "b"]);
        remove(directory).unwrap();
        assert!(read(directory).unwrap().is_empty());
    }

    #[test]
    fn names_are_stable_and_differ() {
        assert_eq!(id("a").len(), 16);
        assert_eq!(id("a"), id("a"));
        assert_ne!(id("a"), id("b"));
    }
}
