//! A cell: one collection and its check, in a process of its own.

use std::fmt::Write as _;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kingsnake_collect::{is_held, redacted};
use kingsnake_studies::{Item, command, is_passing, short_name};
use serde_json::{Value, json};

use super::finding;
use super::recipe::{HuntRecipe, HuntTarget};
use crate::collecting;
use crate::voice::count;

/// How long a hunt waits for the collectors of a killed one.
const PATIENCE: Duration = Duration::from_secs(10);
/// Maximum number of characters of a cell's name in its folder's name.
const MOST_LETTERS: usize = 100;

/// One collection and its check.
pub struct HuntCell<'a> {
    pub(super) database: &'a HuntTarget,
    pub(super) isolation: &'a str,
    pub(super) workload: &'a str,
    /// The level that a script's anomaly breaks, if the cell runs a script.
    pub(super) script: Option<String>,
    pub(super) ops: Option<u32>,
    pub(super) fault: &'a str,
    pub(super) seed: u64,
    /// The name of the promised level.
    pub(super) promise: Option<&'static str>,
    /// Further choices of a round of an aimed hunt.
    pub(super) round: Option<AimedRound<'a>>,
}

/// What a round of an aimed hunt varies besides workload, length and fault.
pub struct AimedRound<'a> {
    pub(super) name: String,
    /// The level that the hunt aims at.
    pub(super) level: &'a str,
    pub(super) keys: Option<u32>,
    pub(super) sessions: u16,
    /// Microseconds between two operations.
    pub(super) think: u32,
}

impl HuntCell<'_> {
    /// The cell's unique name.
    pub fn name(&self) -> String {
        if let Some(round) = &self.round {
            return round.name.clone();
        }
        let ops = self.ops.map_or(String::new(), |ops| format!("-{ops}"));
        let nodes = if self.database.nodes > 1 {
            format!("-{}", self.database.nodes)
        } else {
            String::new()
        };
        let set = self.database.set.iter();
        let settings: Vec<String> = set
            .map(|(name, value)| format!(" {name}={value}"))
            .collect();
        let mut settings = settings.concat();
        for (name, value) in self.choices() {
            let _ = write!(settings, " {name}={value}");
        }
        format!(
            "{}{nodes} {} {}{ops} {}{settings} seed {}",
            self.database.name, self.isolation, self.workload, self.fault, self.seed
        )
    }

    /// Rarely used options, by name.
    fn choices(&self) -> Vec<(&'static str, String)> {
        let database = self.database;
        let round = self.round.as_ref();
        let keys = round.map_or(database.keys, |it| it.keys);
        let keys = keys.map(|keys| ("keys", keys.to_string()));
        let reads = database.reads.clone().map(|reads| ("reads", reads));
        let binary = database.binary.clone().map(|binary| ("binary", binary));
        [keys, reads, binary].into_iter().flatten().collect()
    }

    /// The arguments of the collection; addresses as given.
    fn words(&self, recipe: &HuntRecipe, place: &Path, urls: &[String]) -> Vec<String> {
        let mut words = vec!["collect".to_owned(), self.database.name.clone()];
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        add("--isolation", self.isolation.to_owned());
        if self.script.is_some() {
            add("--script", self.workload.to_owned());
        } else {
            add("--workload", self.workload.to_owned());
            add("--txns", recipe.txns.to_string());
            let sessions = self.round.as_ref().map(|it| it.sessions);
            add(
                "--sessions",
                sessions.unwrap_or(recipe.sessions).to_string(),
            );
        }
        if let Some(round) = &self.round {
            add("--think", (f64::from(round.think) / 1e6).to_string());
        }
        add("--seconds", recipe.seconds.to_string());
        add("--seed", self.seed.to_string());
        add("--out", place.display().to_string());
        if let Some(ops) = self.ops {
            add("--ops", ops.to_string());
        }
        if self.fault != "none" {
            add("--fault", self.fault.to_owned());
            add("--every", recipe.every.to_string());
        }
        if let Some(order) = &self.database.version_order {
            add("--version-order", order.clone());
        }
        for (name, value) in self.choices() {
            add(&format!("--{name}"), value);
        }
        if !self.database.url.is_empty() {
            add("--url", urls.join(","));
        }
        for (name, value) in &self.database.set {
            add("--set", format!("{name}={value}"));
        }
        if self.database.start {
            words.extend([
                "--start".to_owned(),
                "--nodes".to_owned(),
                self.database.nodes.to_string(),
            ]);
        }
        words
    }

    /// The levels to check: those of the file, and the promised one.
    fn levels(&self) -> Vec<&str> {
        let mut levels: Vec<&str> = match self.script.as_deref() {
            _ if self.round.is_some() => self.round.iter().map(|it| it.level).collect(),
            Some(breaks) if !breaks.is_empty() => vec![breaks],
            _ => self.database.check.iter().map(String::as_str).collect(),
        };
        levels.extend(self.promise.filter(|it| !levels.contains(it)));
        levels
    }

    /// The addresses in printable form.
    fn shown_urls(&self) -> Vec<String> {
        self.database.url.iter().map(|it| redacted(it)).collect()
    }

    /// The collector. It gets addresses in its environment, where other users cannot read them.
    fn collector(&self, recipe: &HuntRecipe, place: &Path) -> (Vec<String>, Vec<(String, String)>) {
        let (mut urls, mut variables) = (Vec::new(), Vec::new());
        for (at, url) in self.database.url.iter().enumerate() {
            if url.starts_with("env:") || url.starts_with('@') {
                urls.push(url.clone());
            } else {
                let name = format!("KINGSNAKE_URL_{at}");
                urls.push(format!("env:{name}"));
                variables.push((name, url.clone()));
            }
        }
        (self.words(recipe, place, &urls), variables)
    }

    /// Where the cell's files are, relative to the hunt's directory: safe characters only, unique.
    fn folder(&self) -> String {
        let safe = |letter: char| letter.is_ascii_alphanumeric() || "._".contains(letter);
        let slug: String = self.name().chars().take(MOST_LETTERS).collect();
        let slug = slug.replace(|letter: char| !safe(letter), "-");
        format!(
            "cells/{}-{}",
            slug.replace("..", "-"),
            short_name(&self.name())
        )
    }

    /// The cell as listed and run elsewhere.
    pub fn item(&self, recipe: &HuntRecipe, directory: &Path) -> Item {
        let place = directory.join(self.folder());
        Item {
            name: self.name(),
            key: self.name(),
            argv: self.words(recipe, &place, &self.shown_urls()),
            history: place.join(kingsnake_collect::HISTORY),
        }
    }

    /// The fields of its row known before it runs.
    pub fn heading(&self, recipe: &HuntRecipe) -> Value {
        json!({
            "cell": self.name(), "database": self.database.name, "isolation": self.isolation,
            "workload": self.workload, "breaks": self.script, "ops": self.ops, "fault": self.fault, "seed": self.seed,
            "promise": self.promise, "levels": self.levels(), "folder": self.folder(), "error": null,
            "command": command(&self.words(recipe, Path::new("DIR"), &self.shown_urls())),
        })
    }

    /// Collects into a directory of its own, then checks at each level. The directory gets the cell's name when it is
    /// complete. A failed cell is a row with an `error`; `None` means stopped.
    pub fn run(
        &self,
        recipe: &HuntRecipe,
        directory: &Path,
        limits: (Option<u64>, bool),
        stop: &AtomicBool,
    ) -> Result<Option<Value>> {
        let place = directory.join(self.folder());
        let attempt = new_attempt(&place)?;
        let row = self.attempt(recipe, &attempt, limits, stop)?;
        match &row {
            Some(_) => replace(&attempt, &place)?,
            None => drop(std::fs::remove_dir_all(&attempt)),
        }
        Ok(row)
    }

    fn attempt(
        &self,
        recipe: &HuntRecipe,
        place: &Path,
        (memory, shrinks): (Option<u64>, bool),
        stop: &AtomicBool,
    ) -> Result<Option<Value>> {
        let mut row = self.heading(recipe);
        let (words, variables) = self.collector(recipe, place);
        match run(&words, &variables, stop) {
            Ok(()) => {}
            Err(Failure::Stopped) => return Ok(None),
            Err(Failure::Complaint { why, is_passing }) => {
                row["error"] = why.into();
                row["attempt"] = u32::from(is_passing).into();
                return Ok(Some(row));
            }
        }
        let summary = read(&place.join(collecting::SUMMARY))?;
        for field in [
            "version",
            "committed",
            "unknown",
            "findings",
            "transactions",
            "events",
            "collecting_seconds",
            "merging_seconds",
            "version_order",
            "steps",
            "settings",
        ] {
            row[field] = summary[field].clone();
        }
        let aborted = summary["aborted"].as_object().into_iter().flatten();
        row["aborted"] = aborted
            .map(|(_, n)| n.as_u64().unwrap_or(0))
            .sum::<u64>()
            .into();
        let mut seconds = 0.0;
        for level in self.levels() {
            let Some(mut checked) = check(level, recipe, place, memory, stop)? else {
                return Ok(None);
            };
            if let Some(attempt) = checked.as_object_mut().and_then(|it| it.remove("attempt")) {
                row["attempt"] = attempt;
            }
            seconds += checked["seconds"].as_f64().unwrap_or(0.0);
            row[level] = checked;
        }
        row["checking_seconds"] = seconds.into();
        if shrinks {
            let levels = finding::violated(&row).into_iter().map(str::to_owned);
            for level in levels.collect::<Vec<_>>() {
                row["shrunk"][&level] = match shrink(&level, recipe, place, stop) {
                    Ok(shrunk) => shrunk,
                    Err(Failure::Stopped) => return Ok(None),
                    Err(Failure::Complaint { why, .. }) => json!({"error": why}),
                };
            }
        }
        // Journals are as long as the history and contain nothing more.
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|it| it == "journal") {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        Ok(Some(row))
    }
}

/// The extension of an incomplete directory.
const ATTEMPT: &str = "attempt";

/// The name of a private directory beside this one.
fn new_attempt(place: &Path) -> Result<PathBuf> {
    let parent = place.parent().context("a cell has a directory")?;
    std::fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    for number in 0_u32.. {
        let name = format!("{name}.{}.{number}.{ATTEMPT}", std::process::id());
        let attempt = parent.join(name);
        match std::fs::create_dir(&attempt) {
            Ok(()) => return Ok(attempt),
            // The process may run on another machine, or have had the same number.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => {
                return Err(error).with_context(|| format!("cannot make {}", attempt.display()));
            }
        }
    }
    unreachable!("some number is free")
}

/// Renames a complete attempt to the cell's name, replacing a directory whose row was never written.
fn replace(attempt: &Path, place: &Path) -> Result<()> {
    if place.exists() {
        std::fs::remove_dir_all(place)
            .with_context(|| format!("cannot remove {}", place.display()))?;
    }
    std::fs::rename(attempt, place).with_context(|| format!("cannot make {}", place.display()))
}

/// Removes the unfinished attempts of a killed hunt after their collectors have ended. These end with their parent;
/// this waits for the last one, because it may use the database that the next cell uses.
pub fn remove_attempts(directory: &Path) {
    let entries = std::fs::read_dir(directory.join("cells"));
    let paths = entries.into_iter().flatten().flatten().map(|it| it.path());
    let attempts = paths.filter(|it| it.extension().is_some_and(|it| it == ATTEMPT));
    let begun = Instant::now();
    for attempt in attempts {
        while is_held(&attempt) && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(5));
        }
        if !is_held(&attempt) {
            let _ = std::fs::remove_dir_all(attempt);
        }
    }
}

/// Shrinks a violated history within the time limit of a check; returns the result and its file.
fn shrink(
    level: &str,
    recipe: &HuntRecipe,
    place: &Path,
    stop: &AtomicBool,
) -> Result<Value, Failure> {
    let history = place.join(kingsnake_collect::HISTORY);
    let file = format!("small-{level}.jsonl");
    let small = place.join(&file);
    let words = [
        "shrink",
        &history.display().to_string(),
        "--level",
        level,
        "--out",
        &small.display().to_string(),
        "--timeout",
        &recipe.seconds.to_string(),
    ];
    run(&words.map(str::to_owned), &[], stop)?;
    let text = std::fs::read_to_string(&small).unwrap_or_default();
    let n_txns = text.lines().filter(|it| it.contains("\"ops\":")).count();
    Ok(json!({"file": file, "size": count(n_txns, "transaction")}))
}

/// Checks a collection at one level; returns the fields of the row.
fn check(
    level: &str,
    recipe: &HuntRecipe,
    place: &Path,
    memory: Option<u64>,
    stop: &AtomicBool,
) -> Result<Option<Value>> {
    let history = place.join(kingsnake_collect::HISTORY);
    let mut words = vec!["check".to_owned(), history.display().to_string()];
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    add("--level", level.to_owned());
    add("--timeout", recipe.seconds.to_string());
    let json = format!("{level}.json");
    if let Some(size) = memory {
        add("--memory-limit", size.to_string());
    }
    let mut story = json.clone();
    if collecting::has_report(level) {
        story = format!("{level}.html");
        add("--report", place.join(&story).display().to_string());
    }
    words.push(format!("--json={}", place.join(&json).display()));
    match run(&words, &[], stop) {
        Ok(()) => {}
        Err(Failure::Stopped) => return Ok(None),
        Err(Failure::Complaint { why, is_passing }) => {
            let attempt = u32::from(is_passing);
            return Ok(Some(
                json!({"verdict": "error", "why": why, "attempt": attempt}),
            ));
        }
    }
    let told = read(&place.join(&json))?;
    Ok(Some(json!({
        "verdict": told["verdict"],
        "anomaly": told["anomaly"]["name"],
        "headline": told["story"]["headline"],
        "seconds": told["stats"]["seconds"],
        "story": story,
    })))
}

fn read(path: &Path) -> Result<Value> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))
}

/// Why a process gave no answer.
enum Failure {
    /// It was stopped.
    Stopped,
    /// Its error message, and whether the cause may have passed.
    Complaint { why: String, is_passing: bool },
}

/// Runs this program with other arguments. A collector stops its servers when asked to, so it is asked, not killed. It
/// ends when its stdin closes, which happens however this process ends.
fn run(words: &[String], variables: &[(String, String)], stop: &AtomicBool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Complaint {
        why: error.to_string(),
        is_passing: true,
    };
    let program = std::env::current_exe().map_err(failed)?;
    let mut command = Command::new(program);
    command
        .args(words)
        .args(["--quiet", "--leash"])
        .envs(variables.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    // A Ctrl-C on the terminal is for the hunt, which then stops its children.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = command.spawn().map_err(failed)?;
    let stderr = child.stderr.take();
    let said = std::thread::spawn(move || {
        let mut said = Vec::new();
        if let Some(mut stderr) = stderr {
            // Unreadable documents count as absent; the exit status is enough.
            let _ = stderr.read_to_end(&mut said);
        }
        String::from_utf8_lossy(&said).trim().to_owned()
    });
    let mut asked = false;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if stop.load(Ordering::Relaxed) && !asked {
            asked = true;
            ask_to_stop(&mut child).map_err(failed)?;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let mut said = said.join().unwrap_or_default();
    for (_, url) in variables {
        said = said.replace(url, &redacted(url));
    }
    let is_passing = is_passing(status, &said);
    match status.code() {
        _ if stop.load(Ordering::Relaxed) => Err(Failure::Stopped),
        Some(0 | 1 | 3) => Ok(()),
        Some(_) => Err(Failure::Complaint {
            why: said,
            is_passing,
        }),
        None => Err(Failure::Complaint {
            why: format!("{status}: {said}"),
            is_passing,
        }),
    }
}

#[cfg(unix)]
fn ask_to_stop(child: &mut std::process::Child) -> std::io::Result<()> {
    use rustix::process::{Pid, Signal, kill_process};
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.map_or(Ok(()), |pid| Ok(kill_process(pid, Signal::TERM)?))
}

#[cfg(not(unix))]
fn ask_to_stop(child: &mut std::process::Child) -> std::io::Result<()> {
    child.kill()
}
