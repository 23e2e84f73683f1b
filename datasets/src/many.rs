//! Finds the histories that a path holds: itself, or each history in a directory that is not a history by itself.
//!
//! Invariant: nothing that may be a history is passed over. A file that is named as histories are, or that cannot be read, is
//! found whatever it holds, so that reading it says what is wrong. A file is judged by its first bytes, and entered once
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
/// What `collect`, `hunt`, `check --out` and studies write beside histories.
const OURS: [&str; 6] = [
    "collection.json",
    "summary.json",
    "batch.json",
    "study.json",
    "rows.jsonl",
    "rows.d",
];

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
                // Reading it says what is wrong with it.
                scan.add(path.clone());
            }
        }
        Ok(scan)
    }

    fn add(&mut self, path: PathBuf) {
        if !self.histories.iter().any(|it| it.path == path) {
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
        // What is there itself has the better name than a link to it.
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
            // A link that leads nowhere, or no permission.
            self.add(path);
            return Ok(());
        };
        if !self.is_new(&there) {
            return Ok(());
        }
        let name = file_name(&path);
        // The faults of a collection; anywhere else the name may be that of a history.
        let is_events = name == "events.jsonl" && path.with_file_name(OURS[0]).exists();
        if is_events || OURS.contains(&name.as_str()) {
            self.others.push(path);
        } else if there.is_dir() {
            if is_one(&path, MAX_DEPTH) && !holds_logs(&path) {
                self.add(path);
            } else {
                self.enter(&path, budget)?;
            }
        } else if !there.is_file() {
            if kind_of(&name) == Named::History {
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

fn holds_logs(directory: &Path) -> bool {
    source::list(directory).is_ok_and(|it| !it.cobra.is_empty() || !it.viper.is_empty())
}

/// Whether a directory is one history: session logs and nothing else that may be a history, or a single entry that is one.
fn is_one(directory: &Path, depth: usize) -> bool {
    let Ok(listing) = source::list(directory) else {
        return false;
    };
    if !listing.cobra.is_empty() || !listing.viper.is_empty() {
        let may_be = |path: &PathBuf| path.is_dir() || kind_of(&file_name(path)) == Named::History;
        return !listing.others.iter().any(may_be);
    }
    match listing.others.as_slice() {
        [only] if only.is_dir() => depth > 0 && is_one(only, depth - 1),
        [only] if only.is_file() => is_file_of_history(only, &file_name(only)),
        _ => false,
    }
}

/// What a file's name says of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
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

/// What a name in small letters says.
fn kind_of(name: &str) -> Named {
    let packed = [".gz", ".zst"]
        .into_iter()
        .find_map(|it| name.strip_suffix(it));
    let plain = packed.unwrap_or(name);
    let (stem, ending) = plain.rsplit_once('.').unwrap_or((plain, ""));
    if ABOUT.contains(&stem) || PAGES.contains(&ending) {
        return Named::Beside;
    }
    if HISTORIES.contains(&ending) || packed.is_some() && ending.is_empty() {
        return Named::History;
    }
    Named::Unknown
}

/// Whether a regular file of a directory may be a history: by its name, because it cannot be read, or by how it begins.
fn is_file_of_history(path: &Path, name: &str) -> bool {
    let named = kind_of(name);
    if named == Named::Beside {
        return false;
    }
    if named == Named::History && !name.contains(".json") {
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
    named == Named::History || recognise::may_be(input, beginning.is_whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_a_history_from_what_stands_beside_it() {
        for name in ["a.jsonl", "a.json.gz", "t1.log.zst", "a.gz", "x.bincode"] {
            assert_eq!(kind_of(name), Named::History, "{name}");
        }
        for name in ["readme.txt", "a.md", "a.svg.gz", "license"] {
            assert_eq!(kind_of(name), Named::Beside, "{name}");
        }
        for name in ["hist-00000", "a.tar.gz", "core", ".gitignore"] {
            assert_eq!(kind_of(name), Named::Unknown, "{name}");
        }
    }
}
