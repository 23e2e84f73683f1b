//! The rows of a study on disk: `study.json` says whose they are, `rows.jsonl` is the truth, `rows.csv` repeats it.
//!
//! Invariant: a row is on disk before it is reported, and a line torn by a crash is cut off, so that its cell
//! runs again.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::hash::Hasher;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::error::{Context, Result, bail};
use rustc_hash::FxHasher;
use serde_json::{Map, Value, json};

use crate::again::{Again, is_due};
use crate::design::{HistoryOrigin, Study};
use crate::row::{COLUMNS, Row, parse};
use crate::rowfiles;
use crate::slurm::{Returned, submissions};

const CSV: &str = "cannot write rows.csv";

/// Where the rows of a study go, held by one process at a time.
pub struct Ledger {
    rows: Vec<Row>,
    done: BTreeSet<String>,
    again: Again,
    jsonl: File,
    csv: csv::Writer<File>,
    directory: PathBuf,
    _lock: Option<File>,
}

impl Ledger {
    /// Opens the directory for this study: as it was left, or empty after `restart`.
    pub fn open(directory: &Path, study: &Study, restart: bool) -> Result<Ledger> {
        fs::create_dir_all(directory)
            .with_context(|| format!("cannot make the directory {}", directory.display()))?;
        let lock = lock(directory)?;
        let about = directory.join("study.json");
        let rows_at = directory.join("rows.jsonl");
        if restart {
            rowfiles::remove(directory)?;
            // How often cells were submitted is forgotten with their rows.
            submissions::remove(directory)?;
            for path in [&about, &rows_at] {
                if path.exists() {
                    fs::remove_file(path)
                        .with_context(|| format!("cannot remove {}", path.display()))?;
                }
            }
        }
        expect_free(directory, "study.json")?;
        let identity = identity(study)?;
        if about.exists() {
            expect_same(&about, &identity, directory)?;
        } else if rows_at.exists() {
            bail!(
                "{} has no study.json, so the study of its rows is unknown; choose another --out, or pass --restart to delete them",
                rows_at.display()
            );
        } else {
            put_whole(&about, format!("{identity:#}\n"))?;
        }
        let rows = read_rows(&rows_at)?;
        let jsonl = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&rows_at)
            .with_context(|| format!("cannot write {}", rows_at.display()))?;
        let csv_at = directory.join("rows.csv");
        let file =
            File::create(&csv_at).with_context(|| format!("cannot write {}", csv_at.display()))?;
        let mut csv = csv::Writer::from_writer(file);
        csv.write_record(COLUMNS).context(CSV)?;
        for row in &rows {
            csv.write_record(row.record()).context(CSV)?;
        }
        csv.flush().context(CSV)?;
        let mut ledger = Ledger {
            done: rows.iter().map(|row| row.cell.clone()).collect(),
            again: Again::default(),
            rows,
            jsonl,
            csv,
            directory: directory.to_owned(),
            _lock: lock,
        };
        ledger.merge()?;
        let due = |row: &Row| is_due(row.attempt);
        for row in ledger.rows.extract_if(.., |row| due(row)) {
            ledger.done.remove(&row.cell);
            ledger.again.note(row.cell, row.attempt);
        }
        Ok(ledger)
    }

    /// The cells that run again.
    pub fn again(&self) -> &Again {
        &self.again
    }

    /// The rows so far, in the order in which they finished.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Writes a row. A second row of a cell is refused.
    pub fn add(&mut self, mut row: Row) -> Result<()> {
        if row.attempt > 0 {
            row.attempt = row.attempt.max(self.again.attempts(&row.cell) + 1);
        }
        if !self.done.insert(row.cell.clone()) {
            bail!("internal error: the cell {:?} ran twice", row.cell);
        }
        let mut line = serde_json::to_string(&row).context("cannot write rows.jsonl")?;
        line.push('\n');
        if self.again.take(&row.cell) {
            let is_of = |line: &str| parse(line).is_ok_and(|it| it.cell == row.cell);
            self.jsonl = replace_line(&self.directory.join("rows.jsonl"), is_of)?;
        }
        // One write, so that a crash leaves at most one torn line.
        self.jsonl
            .write_all(line.as_bytes())
            .and_then(|()| self.jsonl.flush())
            .context("cannot write rows.jsonl")?;
        self.csv.write_record(row.record()).context(CSV)?;
        self.csv.flush().context(CSV)?;
        self.rows.push(row);
        Ok(())
    }
}

impl Returned for Ledger {
    fn merge(&mut self) -> Result<Vec<String>> {
        let mut new = Vec::new();
        for row in rowfiles::read(&self.directory)? {
            // A failure that is retried is not reported.
            let is_known = row.attempt > 0 && row.attempt <= self.again.attempts(&row.cell);
            if !self.has(&row.cell) && !is_known {
                new.push(row.cell.clone());
                self.add(row)?;
            }
        }
        Ok(new)
    }

    fn has(&self, cell: &str) -> bool {
        self.done.contains(cell)
    }
}

/// What commands leave in their directories, and whose it is.
const OCCUPANTS: [(&str, &str); 3] = [
    ("study.json", "a study"),
    ("batch.json", "the rows of a hunt or of checks"),
    ("collection.json", "a collection"),
];

/// Expects no other command to use the directory; `own` is what this one leaves there.
pub fn expect_free(directory: &Path, own: &str) -> Result<()> {
    let mut others = OCCUPANTS.iter().filter(|it| it.0 != own);
    match others.find(|it| directory.join(it.0).exists()) {
        Some((_, whose)) => bail!(
            "{} holds {whose}; choose another --out",
            directory.display()
        ),
        None => Ok(()),
    }
}

/// Expects the directory to have been prepared for this study, and says which of its cells have rows. Takes no lock.
pub fn look_into(directory: &Path, study: &Study) -> Result<BTreeSet<String>> {
    let about = directory.join("study.json");
    if !about.exists() {
        bail!(
            "there is no {}; the same command with --prepare makes it, and the histories",
            about.display()
        );
    }
    expect_same(&about, &identity(study)?, directory)?;
    done_in(directory)
}

/// The cells that have rows in a directory, which another process may be writing to.
pub fn done_in(directory: &Path) -> Result<BTreeSet<String>> {
    let rows_at = directory.join("rows.jsonl");
    let mut done = BTreeSet::new();
    if let Ok(text) = fs::read_to_string(&rows_at) {
        // A line that is not whole yet is not done.
        let rows = text.lines().filter_map(|line| parse(line).ok());
        done.extend(rows.filter(|it| !is_due(it.attempt)).map(|it| it.cell));
    }
    let rows = rowfiles::read(directory)?.into_iter();
    done.extend(rows.filter(|it| !is_due(it.attempt)).map(|it| it.cell));
    Ok(done)
}

/// How often a cell has failed for reasons that may have passed.
pub fn attempts_in(directory: &Path, cell: &str) -> Result<u32> {
    let text = fs::read_to_string(directory.join("rows.jsonl")).unwrap_or_default();
    let lines = text.lines().filter_map(|line| parse(line).ok());
    let rows = lines.chain(rowfiles::read(directory)?);
    let attempts = rows.filter(|it| it.cell == cell).map(|it| it.attempt);
    Ok(attempts.max().unwrap_or(0))
}

/// Takes a line out of a file, and opens it for the lines to come.
pub fn replace_line(path: &Path, is_it: impl Fn(&str) -> bool) -> Result<File> {
    let kept = whole_lines(path)?.into_iter().filter(|line| !is_it(line));
    let text: String = kept.flat_map(|line| [line, "\n".to_owned()]).collect();
    put_whole(path, text)?;
    let file = OpenOptions::new().append(true).open(path);
    file.with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a file under another name first, so that it is there whole or not at all.
pub fn put_whole(path: &Path, text: impl AsRef<[u8]>) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part: PathBuf = path.with_file_name(name);
    fs::write(&part, text).with_context(|| format!("cannot write {}", part.display()))?;
    fs::rename(&part, path).with_context(|| format!("cannot write {}", path.display()))
}

#[cfg(unix)]
pub fn lock(directory: &Path) -> Result<Option<File>> {
    use rustix::fs::{FlockOperation, flock};
    use rustix::io::Errno;
    let path = directory.join(".lock");
    let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    // On a file system without locks nothing is lost but this check.
    if flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        bail!("another process is working in {}", directory.display());
    }
    Ok(Some(file))
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps)] // The other one can fail.
pub fn lock(_: &Path) -> Result<Option<File>> {
    Ok(None)
}

/// The whole lines of a file, if it is there; a line that was under way is cut off.
pub fn whole_lines(path: &Path) -> Result<Vec<String>> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let whole = bytes
        .iter()
        .rposition(|&byte| byte == b'\n')
        .map_or(0, |at| at + 1);
    if whole < bytes.len() {
        OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|file| file.set_len(whole as u64))
            .with_context(|| format!("cannot cut the torn last line off {}", path.display()))?;
    }
    let text = std::str::from_utf8(&bytes[..whole])
        .with_context(|| format!("{} is not text", path.display()))?;
    Ok(text.lines().map(str::to_owned).collect())
}

fn read_rows(path: &Path) -> Result<Vec<Row>> {
    let mut rows: Vec<Row> = Vec::new();
    let mut seen = BTreeSet::new();
    for (at, line) in whole_lines(path)?.iter().enumerate() {
        let row = parse(line)
            .with_context(|| format!("{}:{}: this is no row of a study", path.display(), at + 1))?;
        if !seen.insert(row.cell.clone()) {
            bail!(
                "{}:{}: a second row of the cell {:?}",
                path.display(),
                at + 1,
                row.cell
            );
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The parts of an identity; what causes other differences comes before what follows from it.
const PARTS: [&str; 8] = [
    "study",
    "kingsnake",
    "executable",
    "timeout_seconds",
    "memory_limit_bytes",
    "parameters",
    "histories",
    "checks",
];

/// What makes rows comparable: the executable, the histories, the checks and the limits; not how often they run, nor how they are shown.
fn identity(study: &Study) -> Result<Value> {
    let mut histories = Map::new();
    for source in &study.sources {
        let what = match &source.origin {
            HistoryOrigin::Generated(words) => json!({"generate": words.join(" ")}),
            HistoryOrigin::File(path) => {
                json!({"file": path.display().to_string(), "content": content(path)?})
            }
            HistoryOrigin::Corpus { name, .. } => json!({"corpus": name}),
        };
        histories.insert(source.name.clone(), what);
    }
    let checks: Vec<Value> = study
        .points
        .iter()
        .map(|point| {
            let mut words = vec![study.sources[point.source].name.clone()];
            words.extend(point.check.iter().cloned());
            words.join(" ").into()
        })
        .collect();
    Ok(json!({
        "study": study.name,
        "kingsnake": env!("CARGO_PKG_VERSION"),
        "executable": executable()?,
        "timeout_seconds": study.timeout.as_secs_f64(),
        "memory_limit_bytes": study.memory,
        "parameters": study.parameters,
        "histories": histories,
        "checks": checks,
    }))
}

/// The fingerprint of this program, which is read once.
fn executable() -> Result<&'static str> {
    static PRINT: OnceLock<String> = OnceLock::new();
    if let Some(print) = PRINT.get() {
        return Ok(print);
    }
    let path = std::env::current_exe().context("cannot find the executable")?;
    let print = content(&path)?;
    Ok(PRINT.get_or_init(|| print))
}

/// A file's fingerprint, or that of a directory's files together; those of links to directories are not among them, and pipes and
/// devices are an error.
pub fn content(path: &Path) -> Result<String> {
    content_within(path, Duration::MAX)
}

/// The same, unless reading takes longer than this.
pub fn content_within(path: &Path, limit: Duration) -> Result<String> {
    let mut print = Print {
        hasher: FxHasher::default(),
        size: 0,
        until: Instant::now().checked_add(limit),
    };
    print
        .add(path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    let Print { hasher, size, .. } = print;
    Ok(format!("{size} bytes, {:016x}", hasher.finish()))
}

/// What was read so far.
struct Print {
    hasher: FxHasher,
    size: u64,
    until: Option<Instant>,
}

impl Print {
    fn add(&mut self, path: &Path) -> std::io::Result<()> {
        let kind = fs::metadata(path)?;
        if kind.is_dir() {
            let mut inside: Vec<PathBuf> = fs::read_dir(path)?
                .map(|entry| entry.map(|it| it.path()))
                .collect::<Result<_, _>>()?;
            inside.sort();
            // Links may lead in a circle.
            for path in inside
                .into_iter()
                .filter(|it| !(it.is_symlink() && it.is_dir()))
            {
                self.hasher
                    .write(path.file_name().unwrap_or_default().as_encoded_bytes());
                self.add(&path)?;
            }
            return Ok(());
        }
        if !kind.is_file() {
            return Err(std::io::Error::other("it is no regular file"));
        }
        let mut file = File::open(path)?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            let n = file.read(&mut buffer)?;
            if n == 0 {
                return Ok(());
            }
            if self.until.is_some_and(|it| Instant::now() > it) {
                return Err(std::io::Error::other("it takes longer than it may"));
            }
            self.size += n as u64;
            self.hasher.write(&buffer[..n]);
        }
    }
}

fn expect_same(path: &Path, identity: &Value, directory: &Path) -> Result<()> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let there: Value = serde_json::from_str(&text)
        .with_context(|| format!("{} is not what a study left", path.display()))?;
    let at = |of: &Value, name: &str| of.get(name).cloned().unwrap_or_default();
    let differing = |name: &&str| difference(name, &at(&there, name), &at(identity, name));
    if let Some((name, was, is)) = PARTS.iter().find_map(differing) {
        bail!(
            "{} holds the rows of another study: {name} was {was} and is now {is}\n\
             Continue it with the options that it began with, choose another --out, or pass --restart to delete its rows.",
            directory.display()
        );
    }
    Ok(())
}

/// The first place where two values differ.
pub fn difference(name: &str, one: &Value, other: &Value) -> Option<(String, String, String)> {
    match (one, other) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let keys: BTreeSet<&String> = ours.keys().chain(theirs.keys()).collect();
            keys.into_iter().find_map(|key| {
                let inner = if name.is_empty() {
                    key.clone()
                } else {
                    format!("{name}.{key}")
                };
                difference(
                    &inner,
                    ours.get(key).unwrap_or(&Value::Null),
                    theirs.get(key).unwrap_or(&Value::Null),
                )
            })
        }
        (Value::Array(ours), Value::Array(theirs)) if ours != theirs => {
            let longer = ours.len().max(theirs.len());
            let at = (0..longer).find(|&at| ours.get(at) != theirs.get(at))?;
            let item = |of: &Vec<Value>| of.get(at).map_or("absent".to_owned(), Value::to_string);
            Some((format!("{name}[{at}]"), item(ours), item(theirs)))
        }
        _ if one != other => Some((name.to_owned(), one.to_string(), other.to_string())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let one = json!({"a": 1, "b": {"c": 2}, "d": ["x", "y"]});
        assert_eq!(difference("", &one, &one), None);
        let other = json!({"a": 1, "b": {"c": 3}, "d": ["x", "y"]});
        let (name, was, is) = difference("", &one, &other).unwrap();
        assert_eq!(
            (name.as_str(), was.as_str(), is.as_str()),
            ("b.c", "2", "3")
        );
        let longer = json!({"a": 1, "b": {"c": 2}, "d": ["x", "y", "z"]});
        assert_eq!(difference("", &one, &longer).unwrap().0, "d[2]");
    }

    #[test]
    fn a_torn_line_is_cut_off_and_a_broken_one_is_an_error() {
        let directory = tempfile::TempDir::new().unwrap();
        let path = directory.path().join("rows.jsonl");
        fs::write(&path, "{\"cell\":\"a").unwrap();
        assert!(read_rows(&path).unwrap().is_empty());
        assert_eq!(fs::read(&path).unwrap().len(), 0);
        fs::write(&path, "nonsense\n").unwrap();
        let error = format!("{:#}", read_rows(&path).unwrap_err());
        assert!(error.contains("rows.jsonl:1"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn a_fingerprint_goes_round_no_circle_and_opens_no_pipe() {
        let directory = tempfile::TempDir::new().unwrap();
        let logs = directory.path();
        fs::write(logs.join("a"), "1").unwrap();
        let alone = content(logs).unwrap();
        for name in ["x", "y", "z"] {
            std::os::unix::fs::symlink(".", logs.join(name)).unwrap();
        }
        assert_eq!(content(logs).unwrap(), alone);
        let pipe = logs.join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        assert!(content(&pipe).is_err());
    }
}
