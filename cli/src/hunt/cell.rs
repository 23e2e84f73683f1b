//! A cell: one collection and its check, in a process of its own.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, anyhow};
use kingsnake_collect::{LOADS, adapter};
use serde_json::{Value, json};

use super::recipe::{Database, Recipe};
use crate::collecting;

/// One collection and its check.
pub struct Cell<'a> {
    database: &'a Database,
    isolation: &'a str,
    workload: &'a str,
    ops: Option<u32>,
    fault: &'a str,
    seed: u64,
    /// What is promised, as a level's name.
    promise: Option<&'static str>,
}

/// Every cell, in the order of the file.
pub fn cells(recipe: &Recipe) -> Result<Vec<Cell<'_>>> {
    let mut cells = Vec::new();
    for database in &recipe.database {
        let adapter = adapter(&database.name).map_err(|error| anyhow!(error))?;
        let typed = database.isolation.iter().map(String::as_str);
        let mut levels: Vec<&str> = typed.collect();
        if levels.is_empty() {
            levels = adapter.levels.iter().map(|level| level.name).collect();
        }
        for isolation in levels {
            let promise = adapter
                .level(isolation)
                .map_err(|error| anyhow!(error))?
                .level;
            for workload in &database.workload {
                let has_ops = LOADS
                    .iter()
                    .any(|load| load.name == workload && load.ops > 0);
                let lengths = if has_ops && !database.ops.is_empty() {
                    database.ops.iter().copied().map(Some).collect()
                } else {
                    vec![None]
                };
                for ops in lengths {
                    for fault in &database.fault {
                        let seeds = 1..=recipe.seeds;
                        cells.extend(seeds.map(|seed| Cell {
                            database,
                            isolation,
                            workload,
                            ops,
                            fault,
                            seed,
                            promise,
                        }));
                    }
                }
            }
        }
    }
    Ok(cells)
}

impl Cell<'_> {
    /// Its name, which no other cell has.
    pub fn name(&self) -> String {
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
        let settings = settings.concat();
        format!(
            "{}{nodes} {} {}{ops} {}{settings} seed {}",
            self.database.name, self.isolation, self.workload, self.fault, self.seed
        )
    }

    fn words(&self, recipe: &Recipe, place: &Path) -> Vec<String> {
        let mut words = vec!["collect".to_owned(), self.database.name.clone()];
        let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
        add("--isolation", self.isolation.to_owned());
        add("--workload", self.workload.to_owned());
        add("--txns", recipe.txns.to_string());
        add("--sessions", recipe.sessions.to_string());
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
        if !self.database.url.is_empty() {
            add("--url", self.database.url.join(","));
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

    /// The levels to check: those of the file, and what is promised.
    fn levels(&self) -> Vec<&str> {
        let mut levels: Vec<&str> = self.database.check.iter().map(String::as_str).collect();
        levels.extend(self.promise.filter(|it| !levels.contains(it)));
        levels
    }

    /// Collects, then checks at each level. A failed cell is a row with an `error`.
    pub fn run(&self, recipe: &Recipe, directory: &Path) -> Result<Value> {
        let name = self.name();
        let folder = format!("cells/{}", name.replace([' ', ',', '='], "-"));
        let place = directory.join(&folder);
        if place.exists() {
            std::fs::remove_dir_all(&place)
                .with_context(|| format!("cannot remove {}", place.display()))?;
        }
        if let Some(parent) = place.parent() {
            std::fs::create_dir_all(parent)
                .with_context(|| format!("cannot make {}", parent.display()))?;
        }
        let mut row = json!({
            "cell": name, "database": self.database.name, "isolation": self.isolation,
            "workload": self.workload, "ops": self.ops, "fault": self.fault, "seed": self.seed,
            "promise": self.promise, "levels": self.levels(), "folder": folder, "error": null,
            "command": format!("kingsnake {}", self.words(recipe, Path::new("DIR")).join(" ")),
        });
        if let Err(why) = run(&self.words(recipe, &place)) {
            row["error"] = why.into();
            return Ok(row);
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
            row[level] = check(level, recipe, &place)?;
            seconds += row[level]["seconds"].as_f64().unwrap_or(0.0);
        }
        row["checking_seconds"] = seconds.into();
        // Journals are as long as the history and say no more.
        for entry in std::fs::read_dir(&place).into_iter().flatten().flatten() {
            if entry.path().extension().is_some_and(|it| it == "journal") {
                let _ = std::fs::remove_file(entry.path());
            }
        }
        Ok(row)
    }
}

/// Checks a collection at one level; what the row says of it.
fn check(level: &str, recipe: &Recipe, place: &Path) -> Result<Value> {
    let history = place.join(kingsnake_collect::HISTORY);
    let mut words = vec!["check".to_owned(), history.display().to_string()];
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), value]);
    add("--level", level.to_owned());
    add("--timeout", recipe.seconds.to_string());
    let json = format!("{level}.json");
    add("--json", place.join(&json).display().to_string());
    let mut story = json.clone();
    if collecting::has_report(level) {
        story = format!("{level}.html");
        add("--report", place.join(&story).display().to_string());
    }
    if let Err(why) = run(&words) {
        return Ok(json!({"verdict": "error", "why": why}));
    }
    let told = read(&place.join(&json))?;
    // The weak levels say the same in fewer fields.
    let either = |long: &Value, short: &Value| {
        if long.is_null() {
            short.clone()
        } else {
            long.clone()
        }
    };
    Ok(json!({
        "verdict": told["verdict"],
        "anomaly": either(&told["anomaly"]["name"], &told["anomaly"]),
        "headline": either(&told["story"]["headline"], &told["story"][0]),
        "seconds": either(&told["stats"]["seconds"], &told["seconds"]),
        "story": story,
    }))
}

fn read(path: &Path) -> Result<Value> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is not JSON", path.display()))
}

/// Runs this program with other words; what it complained about where it failed.
fn run(words: &[String]) -> Result<(), String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new(program)
        .args(words)
        .arg("--quiet")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    match output.status.code() {
        Some(0 | 1 | 3) => Ok(()),
        _ => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
