//! Finds the histories that a path holds: itself, or each history in a directory that is not a history by itself.

use std::path::{Path, PathBuf};

use crate::cursor::Input;
use kingsnake_history::budget::Budget;

use crate::{recognise, source};

/// Directories are entered no deeper than this.
const MAX_DEPTH: usize = 8;

/// Endings of files that stand beside histories and begin as some of them do.
const PAGES: [&str; 8] = ["md", "html", "toml", "csv", "tsv", "svg", "png", "dot"];

/// The histories that a path holds, in the order of their names, and how many files in directories are none. A path that is no
/// directory, and a directory of session logs, is one history.
pub fn histories(path: &Path) -> (Vec<PathBuf>, usize) {
    let (mut found, mut others) = (Vec::new(), 0);
    if !path.is_dir() || is_history(path) {
        return (vec![path.to_owned()], 0);
    }
    enter(path, MAX_DEPTH, &mut found, &mut others);
    if found.is_empty() {
        // Reading it says what is wrong with it.
        found.push(path.to_owned());
    }
    (found, others)
}

/// Whether a directory is one history: session logs, or a single entry that is one.
fn is_history(directory: &Path) -> bool {
    match source::list(directory) {
        Ok(listing) if !listing.cobra.is_empty() || !listing.viper.is_empty() => true,
        Ok(listing) => match listing.others.as_slice() {
            [only] if only.is_dir() => is_history(only),
            [only] => is_file_of_history(only),
            _ => false,
        },
        Err(_) => false,
    }
}

/// Whether a file that nobody named is a history: not a page beside one, and in a format that its content tells.
fn is_file_of_history(path: &Path) -> bool {
    let ending = path.extension().and_then(|it| it.to_str()).unwrap_or("");
    if PAGES.contains(&ending.to_ascii_lowercase().as_str()) {
        return false;
    }
    let budget = Budget::unlimited();
    let Ok(source) = source::load(path, u64::MAX, &budget) else {
        return false;
    };
    let input = Input {
        file: path,
        bytes: &source,
        budget: &budget,
    };
    recognise::recognise(input).is_ok()
}

fn enter(directory: &Path, depth: usize, found: &mut Vec<PathBuf>, others: &mut usize) {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            if is_history(&path) {
                found.push(path);
            } else if depth > 0 {
                enter(&path, depth - 1, found, others);
            }
        } else if is_file_of_history(&path) {
            found.push(path);
        } else {
            *others += 1;
        }
    }
}
