//! One finished cell: what was run, the answer, and the cost.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::histories::made;
use crate::process::{ChildEnding, EndedChild};
use crate::{again, machine};

/// A line of `rows.jsonl`. Fields that the check's own document has are named as docs/json.md names them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The cell's name: history, switches and seeds.
    pub cell: String,
    /// The history's name in the study.
    pub history: String,
    /// The switches.
    pub check: Vec<String>,
    /// The seed of the history.
    pub seed: u32,
    /// The seed of the check.
    pub repeat: u32,
    /// How the run went.
    pub outcome: RowOutcome,
    /// `satisfied`, `violated` or `unknown`.
    pub verdict: String,
    /// Why it is unknown, or the error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// How often the cell failed for reasons that may have passed; 0 of a row that did not.
    #[serde(default, skip_serializing_if = "again::is_settled")]
    pub attempt: u32,
    /// The decider.
    #[serde(default)]
    pub decider: String,
    /// The program's version.
    #[serde(default)]
    pub kingsnake: String,
    /// From the start of the process to its end, seen from outside.
    pub wall_seconds: f64,
    /// The largest resident size in bytes, by its own account or seen from outside.
    pub peak_memory_bytes: Option<u64>,
    /// What was read.
    #[serde(default)]
    pub sizes: BTreeMap<String, Value>,
    /// What it took.
    #[serde(default)]
    pub stats: RowStats,
    /// Every option as it was settled.
    #[serde(default)]
    pub plan: BTreeMap<String, Value>,
    /// How many transactions had committed when the last of the counterexample's did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// How the history was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made: Option<Made>,
    /// A command line that repeats the run.
    pub command: String,
    /// The machine that it ran on.
    #[serde(default)]
    pub host: String,
    /// That machine's processor.
    #[serde(default)]
    pub processor: String,
}

/// How a history was made, by the account of `kingsnake generate --json`.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq)]
pub struct Made {
    /// Transactions that committed.
    pub committed: u64,
    /// Attempts that aborted.
    pub aborted_attempts: u64,
    /// How long it took.
    pub seconds: f64,
}

impl Made {
    /// The share of attempts that aborted.
    pub fn abort_rate(self) -> f64 {
        let all = self.committed + self.aborted_attempts;
        self.aborted_attempts as f64 / (all as f64).max(1.0)
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum RowOutcome {
    /// With a verdict.
    Answered,
    /// Out of time.
    Time,
    /// Out of memory.
    Memory,
    /// Unknown for another reason.
    Unknown,
    /// The process ended as it should not.
    Failed,
}

impl RowOutcome {
    /// In one word.
    pub fn word(self) -> &'static str {
        match self {
            RowOutcome::Answered => "answered",
            RowOutcome::Time => "time",
            RowOutcome::Memory => "memory",
            RowOutcome::Unknown => "unknown",
            RowOutcome::Failed => "failed",
        }
    }
}

/// The cost of a check; see docs/json.md. Unknown fields are kept.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RowStats {
    /// The check by its own clock.
    pub seconds: f64,
    /// The same in time of all processors.
    pub cpu_seconds: Option<f64>,
    /// Time by phase.
    pub phases: Vec<PhaseTime>,
    /// Known edges before pruning.
    pub known_edges_before: u64,
    /// Known edges after it.
    pub known_edges_after: u64,
    /// Constraints before pruning.
    pub pairs: u64,
    /// Constraints after it.
    pub open_constraints: u64,
    /// Pruning rounds.
    pub rounds: Vec<Round>,
    /// The solver, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub solver: Option<Solver>,
    /// The rest.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// A phase.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PhaseTime {
    /// Its name.
    pub name: String,
    /// Its time.
    pub seconds: f64,
    /// The same in time of all processors.
    #[serde(default)]
    pub cpu_seconds: Option<f64>,
}

/// A pruning round.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Round {
    /// Edges that became known.
    pub new_edges: u64,
    /// Constraints still open.
    pub open: u64,
    /// Its time.
    pub seconds: f64,
}

/// The statistics of the solver.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Solver {
    /// Its name.
    pub backend: String,
    /// Boolean variables.
    pub variables: u64,
    /// Clauses before solving.
    pub clauses: u64,
    /// Conflicts.
    pub conflicts: u64,
    /// Decisions.
    pub decisions: u64,
    /// Propagations.
    pub propagations: u64,
    /// Cycles that became clauses.
    pub cycles: u64,
    /// Time for building the instance.
    pub encode_seconds: f64,
    /// Time for solving it.
    pub solve_seconds: f64,
    /// The rest.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// The parts of a check's document that a row keeps.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    kingsnake: String,
    verdict: String,
    decider: String,
    reason: Option<Reason>,
    history: Option<BTreeMap<String, Value>>,
    stats: RowStats,
    plan: BTreeMap<String, Value>,
    position: Option<u64>,
    command: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Reason {
    kind: String,
    words: String,
}

/// What a row says before its check has run.
#[derive(Clone, Debug)]
pub struct Heading {
    /// See [`Row::cell`].
    pub cell: String,
    /// See [`Row::history`].
    pub history: String,
    /// See [`Row::check`].
    pub check: Vec<String>,
    /// See [`Row::seed`].
    pub seed: u32,
    /// See [`Row::repeat`].
    pub repeat: u32,
    /// The command line.
    pub line: Vec<String>,
}

/// The row of a process that has ended; `None` if it was stopped, and so has to run again.
pub fn row(heading: &Heading, ended: &EndedChild) -> Option<Row> {
    let mut row = Row {
        wall_seconds: ended.wall.as_secs_f64(),
        peak_memory_bytes: ended.peak,
        attempt: u32::from(ended.is_passing()),
        made: heading.line.get(1).and_then(|it| made(Path::new(it))),
        ..Row::new(heading)
    };
    match ended.ending {
        ChildEnding::Stopped => return None,
        ChildEnding::Late => {
            row.outcome = RowOutcome::Time;
            "killed after its time limit".clone_into(&mut row.reason);
        }
        ChildEnding::Large => {
            row.outcome = RowOutcome::Memory;
            "killed after its memory limit".clone_into(&mut row.reason);
        }
        ChildEnding::Exited(status) => {
            let document = match status.code() {
                Some(0 | 1 | 3) => serde_json::from_str::<Document>(&ended.stdout).ok(),
                _ => None,
            };
            if let Some(document) = document {
                fill(&mut row, document)?;
            } else {
                // A limit that ends the check while it writes its answer leaves no document.
                if status.code() == Some(3) && ended.stderr.contains("memory limit") {
                    row.outcome = RowOutcome::Memory;
                }
                row.reason = complaint(&status.to_string(), &ended.stderr);
            }
        }
    }
    Some(row)
}

/// The command line as a shell takes it.
pub fn command(line: &[String]) -> String {
    let words = std::iter::once("kingsnake").chain(line.iter().map(String::as_str));
    // Only a NUL byte cannot be quoted, and no argument holds one.
    shlex::try_join(words).unwrap_or_else(|_| format!("kingsnake {}", line.join(" ")))
}

fn complaint(status: &str, stderr: &str) -> String {
    let said: String = stderr.trim().chars().take(2000).collect();
    if said.is_empty() {
        format!("no answer ({status})")
    } else {
        format!("no answer ({status}): {said}")
    }
}

/// `None` if the check was interrupted.
fn fill(row: &mut Row, document: Document) -> Option<()> {
    let reason = document.reason.unwrap_or_default();
    row.outcome = match (document.verdict.as_str(), reason.kind.as_str()) {
        ("satisfied" | "violated", _) => RowOutcome::Answered,
        (_, "time") => RowOutcome::Time,
        (_, "memory") => RowOutcome::Memory,
        (_, "interrupted") => return None,
        _ => RowOutcome::Unknown,
    };
    row.verdict = document.verdict;
    row.reason = reason.words;
    row.decider = document.decider;
    row.kingsnake = document.kingsnake;
    if let Some(own) = document.stats.rest.get("peak_memory_bytes") {
        row.peak_memory_bytes = own.as_u64().or(row.peak_memory_bytes);
    }
    row.sizes = document.history.unwrap_or_default();
    row.stats = document.stats;
    row.plan = document.plan;
    row.position = document.position;
    row.command = document.command;
    if row.lacks_device() {
        // What the CPU computed is no result of the device that was asked for.
        row.outcome = RowOutcome::Failed;
        "unknown".clone_into(&mut row.verdict);
        row.reason = format!(
            "asked for the device {}, but the CPU computed: {}",
            row.device(),
            row.why_no_device()
        );
    }
    Some(())
}

/// The columns of `rows.csv`.
pub const COLUMNS: [&str; 45] = [
    "cell",
    "history",
    "check",
    "seed",
    "repeat",
    "outcome",
    "verdict",
    "reason",
    "decider",
    "kingsnake",
    "seconds",
    "cpu_seconds",
    "wall_seconds",
    "peak_memory_bytes",
    "transactions",
    "sessions",
    "operations",
    "keys",
    "known_edges_before",
    "known_edges_after",
    "pairs",
    "open_constraints",
    "rounds",
    "open_by_round",
    "new_edges_by_round",
    "phases",
    "cpu_phases",
    "backend",
    "variables",
    "clauses",
    "conflicts",
    "decisions",
    "propagations",
    "cycles",
    "encode_seconds",
    "solve_seconds",
    "host",
    "processor",
    "device",
    "adapter",
    "driver",
    "position",
    "aborted_attempts",
    "generation_seconds",
    "command",
];

impl Row {
    /// A row that says nothing yet but whose it is.
    pub fn new(heading: &Heading) -> Row {
        Row {
            cell: heading.cell.clone(),
            history: heading.history.clone(),
            check: heading.check.clone(),
            seed: heading.seed,
            repeat: heading.repeat,
            outcome: RowOutcome::Failed,
            verdict: "unknown".to_owned(),
            reason: String::new(),
            attempt: 0,
            decider: String::new(),
            kingsnake: env!("CARGO_PKG_VERSION").to_owned(),
            wall_seconds: 0.0,
            peak_memory_bytes: None,
            sizes: BTreeMap::new(),
            stats: RowStats::default(),
            plan: BTreeMap::new(),
            position: None,
            made: None,
            command: command(&heading.line),
            host: machine::host(),
            processor: machine::processor().unwrap_or_default(),
        }
    }

    /// The device that was asked for: `cpu`, `gpu`, `auto` or a name.
    pub fn device(&self) -> String {
        let device = self.plan.get("device").and_then(Value::as_str);
        device.unwrap_or_default().to_owned()
    }

    /// The adapter that computed; empty if none did.
    pub fn adapter(&self) -> String {
        self.of_device("name")
    }

    /// That adapter's driver.
    pub fn driver(&self) -> String {
        self.of_device("driver")
    }

    /// Whether a GPU was asked for by name and the CPU computed. Where nothing was left to compute, no device was needed.
    pub fn lacks_device(&self) -> bool {
        let asked = self.device().starts_with("gpu");
        asked && self.adapter().is_empty() && !self.why_no_device().is_empty()
    }

    /// Why the CPU computed.
    pub fn why_no_device(&self) -> String {
        self.of_device("why")
    }

    fn of_device(&self, field: &str) -> String {
        let device = self.stats.rest.get("device");
        let value = device.and_then(|device| device.get(field)?.as_str());
        value.unwrap_or_default().to_owned()
    }

    /// The row in the order of [`COLUMNS`]; lists have spaces between their items.
    pub fn record(&self) -> Vec<String> {
        let size = |name: &str| self.sizes.get(name).map_or(String::new(), Value::to_string);
        let stats = &self.stats;
        let spaced = |items: &mut dyn Iterator<Item = String>| items.collect::<Vec<_>>().join(" ");
        let mut record = vec![
            self.cell.clone(),
            self.history.clone(),
            self.check.join(" "),
            self.seed.to_string(),
            self.repeat.to_string(),
            self.outcome.word().to_owned(),
            self.verdict.clone(),
            self.reason.clone(),
            self.decider.clone(),
            self.kingsnake.clone(),
            stats.seconds.to_string(),
            stats.cpu_seconds.map_or(String::new(), |it| it.to_string()),
            self.wall_seconds.to_string(),
            self.peak_memory_bytes
                .map_or(String::new(), |it| it.to_string()),
            size("transactions"),
            size("sessions"),
            size("operations"),
            size("keys"),
            stats.known_edges_before.to_string(),
            stats.known_edges_after.to_string(),
            stats.pairs.to_string(),
            stats.open_constraints.to_string(),
            stats.rounds.len().to_string(),
            spaced(&mut stats.rounds.iter().map(|round| round.open.to_string())),
            spaced(&mut stats.rounds.iter().map(|round| round.new_edges.to_string())),
            spaced(
                &mut stats
                    .phases
                    .iter()
                    .map(|phase| format!("{}={}", phase.name, phase.seconds)),
            ),
            spaced(&mut stats.phases.iter().filter_map(|phase| {
                let seconds = phase.cpu_seconds?;
                Some(format!("{}={seconds}", phase.name))
            })),
        ];
        match &stats.solver {
            Some(solver) => record.extend([
                solver.backend.clone(),
                solver.variables.to_string(),
                solver.clauses.to_string(),
                solver.conflicts.to_string(),
                solver.decisions.to_string(),
                solver.propagations.to_string(),
                solver.cycles.to_string(),
                solver.encode_seconds.to_string(),
                solver.solve_seconds.to_string(),
            ]),
            None => record.extend(std::iter::repeat_n(String::new(), 9)),
        }
        record.extend([
            self.host.clone(),
            self.processor.clone(),
            self.device(),
            self.adapter(),
            self.driver(),
            self.position.map_or(String::new(), |it| it.to_string()),
            self.made
                .map_or(String::new(), |it| it.aborted_attempts.to_string()),
            self.made.map_or(String::new(), |it| it.seconds.to_string()),
        ]);
        record.push(self.command.clone());
        record
    }
}

/// Reads a line of `rows.jsonl`.
pub fn parse(line: &str) -> serde_json::Result<Row> {
    serde_json::from_str(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heading() -> Heading {
        Heading {
            cell: "h --no-witness 0 0".to_owned(),
            history: "h".to_owned(),
            check: vec!["--no-witness".to_owned()],
            seed: 0,
            repeat: 0,
            line: vec!["check".to_owned(), "h.jsonl".to_owned()],
        }
    }

    fn ended(ending: ChildEnding, stderr: &str) -> EndedChild {
        EndedChild {
            ending,
            stdout: String::new(),
            stderr: stderr.to_owned(),
            wall: std::time::Duration::from_millis(1500),
            peak: Some(7),
        }
    }

    #[test]
    fn a_record_has_a_field_for_every_column() {
        let mut row = row(&heading(), &ended(ChildEnding::Late, "")).unwrap();
        assert_eq!(row.record().len(), COLUMNS.len());
        row.stats.solver = Some(Solver::default());
        assert_eq!(row.record().len(), COLUMNS.len());
    }

    #[test]
    fn a_killed_process_is_told_from_a_stopped_one() {
        assert!(row(&heading(), &ended(ChildEnding::Stopped, "")).is_none());
        let late = row(&heading(), &ended(ChildEnding::Late, "")).unwrap();
        assert_eq!(late.outcome, RowOutcome::Time);
        let large = row(&heading(), &ended(ChildEnding::Large, "")).unwrap();
        assert_eq!(large.outcome, RowOutcome::Memory);
    }

    #[test]
    fn a_row_survives_being_written_and_read() {
        let mut row = row(&heading(), &ended(ChildEnding::Large, "")).unwrap();
        row.stats.rest.insert("nodes".to_owned(), 3.into());
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(serde_json::to_string(&parse(&text).unwrap()).unwrap(), text);
    }
}
