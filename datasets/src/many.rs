//! Finds the histories on a path: the path itself, or each history in a directory that is not a history by itself.
//!
//! Invariant: no possible history is skipped. A file with the name of a history, or one that cannot be read, is listed
//! whatever it contains, so that reading it reports the problem. A file is judged by its first bytes, and entered once
//! however many links lead to it; only regular files are opened.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use kingsnake_history::budget::{Budget, StopReason};

use crate::cursor::Input;
use crate::{recognise, source};

/// Directories that hold nothing but one entry are entered no deeper than this when they are read as one history.
const MAX_DEPTH: usize = 4;

/// Endings that the formats have, after the ending of a compression.
const HISTORIES: [&str; 10] = [
    "jsonl", "json", "edn", "txt", "log", "bincode", "bin", "ndjson", "hist", "history",
];
/// Endings of files that stand beside histories and begin as some of them do.
const PAGES: [&str; 8] = ["md", "html", "toml", "csv", "tsv", "svg", "png", "dot"];
/// Names of texts about a directory, whatever their ending.
const ABOUT: [&str; 6] = [
    "readme",
    "license",
    "licence",
    "notice",
    "copying",
    "changelog",
];
/// What says that `collect`, or `hunt`, `check --out` and studies, wrote a directory.
const MARKS: [&str; 3] = ["collection.json", "batch.json", "study.json"];
/// What they write there beside it and beside histories. Elsewhere these are names as any other.
const OURS: [&str; 4] = ["summary.json", "rows.jsonl", "rows.d", "events.jsonl"];

/// A history of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScannedHistory {
    /// Where it is.
    pub path: PathBuf,
    /// Why it must not even be opened.
    pub problem: Option<String>,
}

/// What paths hold.
#[derive(Clone, Debug, Default)]
pub struct Scan {
    /// The histories, in the order of their names, and everything that may be one.
    pub histories: Vec<ScannedHistory>,
    /// Files in directories that are no histories.
    pub others: Vec<PathBuf>,
    /// Directories and files that were met, by device and number.
    seen: HashSet<(u64, u64)>,
    /// The paths of the histories.
    added: HashSet<PathBuf>,
}

impl Scan {
    /// Looks at these paths. One that is no directory, and a directory of session logs, is one history.
    pub fn of(paths: &[PathBuf], budget: &Budget) -> Result<Scan, StopReason> {
        let mut scan = Scan::default();
        for path in paths {
            let n_before = scan.histories.len();
            let there = fs::metadata(path).ok().filter(Metadata::is_dir);
            match there {
                Some(there) if !is_one(path, MAX_DEPTH) => {
                    if scan.is_new(&there) {
                        scan.enter(path, budget)?;
                    }
                }
                there => {
                    if let Some(there) = there.or_else(|| fs::metadata(path).ok()) {
                        scan.is_new(&there);
                    }
                    scan.add(path.clone());
                    continue;
                }
            }
            if scan.histories.len() == n_before {
                // Reading it reports the problem.
                scan.add(path.clone());
            }
        }
        Ok(scan)
    }

    fn add(&mut self, path: PathBuf) {
        if self.added.insert(path.clone()) {
            let problem = None;
            self.histories.push(ScannedHistory { path, problem });
        }
    }

    /// Whether this file or directory was not met before.
    fn is_new(&mut self, there: &Metadata) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            self.seen.insert((there.dev(), there.ino()))
        }
        #[cfg(not(unix))]
        {
            let _ = there;
            true
        }
    }

    fn enter(&mut self, directory: &Path, budget: &Budget) -> Result<(), StopReason> {
        let Ok(listing) = source::list(directory) else {
            self.add(directory.to_owned());
            return Ok(());
        };
        if !listing.cobra.is_empty() || !listing.viper.is_empty() {
            self.add(directory.to_owned());
        }
        // The entry itself has the better name than a link to it.
        let (links, plain): (Vec<PathBuf>, Vec<PathBuf>) =
            listing.others.into_iter().partition(|it| it.is_symlink());
        for path in plain.into_iter().chain(links) {
            budget.check()?;
            self.look(path, budget)?;
        }
        Ok(())
    }

    /// One entry of a directory.
    fn look(&mut self, path: PathBuf, budget: &Budget) -> Result<(), StopReason> {
        let Ok(there) = fs::metadata(&path) else {
            // A dangling link, or no permission.
            self.add(path);
            return Ok(());
        };
        if !self.is_new(&there) {
            return Ok(());
        }
        let name = file_name(&path);
        if is_ours(&path, &name) {
            self.others.push(path);
        } else if there.is_dir() {
            if is_one(&path, MAX_DEPTH) && !holds_logs(&path) {
                self.add(path);
            } else {
                self.enter(&path, budget)?;
            }
        } else if !there.is_file() {
            if kind_of(&name) == NamedHistory::History {
                let words = "it is a pipe, a socket or a device, which is not read from a directory; name it to read it";
                let problem = Some(words.to_owned());
                self.histories.push(ScannedHistory { path, problem });
            } else {
                self.others.push(path);
            }
        } else if is_file_of_history(&path, &name) {
            self.add(path);
        } else {
            self.others.push(path);
        }
        Ok(())
    }
}

/// Whether this program wrote it beside histories.
fn is_ours(path: &Path, name: &str) -> bool {
    let has_mark = || MARKS.iter().any(|it| path.with_file_name(it).exists());
    MARKS.contains(&name) || OURS.contains(&name) && has_mark()
}

fn holds_logs(directory: &Path) -> bool {
    source::list(directory).is_ok_and(|it| !it.cobra.is_empty() || !it.viper.is_empty())
}

/// Whether a directory is one history: session logs and nothing else that may be a history, or a single entry that is one.
fn is_one(directory: &Path, depth: usize) -> bool {
    let Ok(listing) = source::list(directory) else {
        return false;
    };
    if !listing.cobra.is_empty() || !listing.viper.is_empty() {
        let may_be =
            |path: &PathBuf| path.is_dir() || kind_of(&file_name(path)) == NamedHistory::History;
        return !listing.others.iter().any(may_be);
    }
    match listing.others.as_slice() {
        [only] if only.is_dir() => depth > 0 && is_one(only, depth - 1),
        [only] if only.is_file() => is_file_of_history(only, &file_name(only)),
        _ => false,
    }
}

/// What a file's name implies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NamedHistory {
    /// It is a history.
    History,
    /// It stands beside histories.
    Beside,
    /// Nothing: its content tells.
    Unknown,
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().to_ascii_lowercase()
}

/// What a name in small letters implies.
fn kind_of(name: &str) -> NamedHistory {
    let packed = [".gz", ".zst"]
        .into_iter()
        .find_map(|it| name.strip_suffix(it));
    let plain = packed.unwrap_or(name);
    let (stem, ending) = plain.rsplit_once('.').unwrap_or((plain, ""));
    if ABOUT.contains(&stem) || PAGES.contains(&ending) {
        return NamedHistory::Beside;
    }
    if HISTORIES.contains(&ending) || packed.is_some() && ending.is_empty() {
        return NamedHistory::History;
    }
    NamedHistory::Unknown
}

/// Whether a regular file of a directory may be a history: by its name, because it cannot be read, or by how it begins.
fn is_file_of_history(path: &Path, name: &str) -> bool {
    let named = kind_of(name);
    if named == NamedHistory::Beside {
        return false;
    }
    if named == NamedHistory::History && !name.contains(".json") {
        return true;
    }
    let Ok(beginning) = source::beginning(path) else {
        return true;
    };
    let budget = Budget::unlimited();
    let input = Input {
        file: path,
        bytes: &beginning.bytes,
        budget: &budget,
        map: None,
    };
    if recognise::is_document(input) {
        return false;
    }
    named == NamedHistory::History || recognise::may_be(input, beginning.is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_a_history_from_what_stands_beside_it() {
        for name in ["a.jsonl", "a.json.gz", "t1.log.zst", "a.gz", "x.bincode"] {
            assert_eq!(kind_of(name), NamedHistory::History, "{name}");
        }
        for name in ["readme.txt", "a.md", "a.svg.gz", "license"] {
            assert_eq!(kind_of(name), NamedHistory::Beside, "{name}");
        }
        for name in ["hist-00000", "a.tar.gz", "core", ".gitignore"] {
            assert_eq!(kind_of(name), NamedHistory::Unknown, "{name}");
        }
    }
}
