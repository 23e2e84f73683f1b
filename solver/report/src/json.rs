//! The answer as one JSON document. The field names are stable: docs/json.md describes them, and a test compares the two.

use std::path::Path;

use kingsnake_datasets::Format;
use kingsnake_encodings::proof::instance_path;
use kingsnake_evidence::{LevelView, counterexample_view, level_view};
use kingsnake_solver::budget::StopReason;
use kingsnake_solver::model::History;
use kingsnake_solver::promise::Promise;
use kingsnake_solver::verdict::Verdict;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::answer::ordered::Ordered;
use crate::answer::telling::Telling;
use crate::answer::{Answer, CommandRun, OtherOrder, Source};

mod stats;
mod txns;

pub use stats::{rounds, solver, stats};

use txns::{position, txn_view};

/// The version of the document. It grows when a field is removed or changes its meaning.
pub const SCHEMA: u32 = 2;

/// The whole document, whatever was asked: a level, all levels or the rule of a workload. What does not apply is null.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: u32,
    kingsnake: &'static str,
    verdict: &'static str,
    exit_status: u8,
    level: LevelView,
    /// What was read.
    pub history: Option<Value>,
    decider: Option<&'static str>,
    how: String,
    /// Why there is no answer.
    pub reason: Option<Value>,
    anomaly: Option<Value>,
    story: Option<Value>,
    /// For a satisfied history, if requested.
    tightness: Option<Value>,
    counterexample: Option<Value>,
    /// Every class of anomaly, and what they rule out.
    #[serde(flatten)]
    pub all: Map<String, Value>,
    /// Whether some other order explains what clients saw, if a certificate is refuted and this was requested.
    other_order: Option<&'static str>,
    /// Number of transactions committed when the last of those involved committed.
    position: Option<usize>,
    transactions: Vec<Value>,
    proof: Option<Value>,
    /// Of all levels: those that hold and that no other level that holds implies.
    pub strongest: Option<Vec<&'static str>>,
    /// Of all levels: each.
    pub levels: Option<Vec<Value>>,
    /// Of all levels: what is known of every model.
    pub models: Option<Value>,
    /// Of a workload: its name.
    pub workload: Option<&'static str>,
    /// Of a workload: its rule in words.
    pub rule: Option<String>,
    /// Of a workload: what breaks the rule.
    pub violations: Option<Vec<Value>>,
    /// Of a workload: what was counted.
    pub facts: Option<Map<String, Value>>,
    stats: Value,
    plan: Map<String, Value>,
    command: Option<String>,
}

/// The fields of all anomalies if they were not searched for.
fn no_anomalies() -> Map<String, Value> {
    let names = [
        "anomalies",
        "anomaly_types",
        "anomalies_complete",
        "not",
        "also_not",
    ];
    names
        .map(|name| (name.to_owned(), Value::Null))
        .into_iter()
        .collect()
}

impl Document {
    /// A document of which only what all have in common is known.
    pub fn new(
        (verdict, exit_status): (&'static str, u8),
        level: LevelView,
        how: String,
        stats: Value,
        run: Option<&CommandRun>,
    ) -> Self {
        let rows = run.iter().flat_map(|it| &it.rows);
        let rows = rows.map(|(name, value)| ((*name).to_owned(), value.clone().into()));
        Document {
            schema: SCHEMA,
            kingsnake: env!("CARGO_PKG_VERSION"),
            verdict,
            exit_status,
            level,
            history: None,
            decider: None,
            how,
            reason: None,
            anomaly: None,
            story: None,
            tightness: None,
            counterexample: None,
            all: no_anomalies(),
            other_order: None,
            position: None,
            transactions: Vec::new(),
            proof: None,
            strongest: None,
            levels: None,
            models: None,
            workload: None,
            rule: None,
            violations: None,
            facts: None,
            stats,
            plan: rows.collect(),
            command: run.map(|it| it.command.clone()),
        }
    }

    /// The text of the document.
    pub fn text(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("maps have names, and nothing else fails") + "\n"
    }
}

/// The document of an answer.
pub fn document(answer: &Answer<'_>) -> Document {
    let name = match answer.promise {
        Promise::Along(_) => Promise::ALONG,
        _ => answer.asked.level.name(),
    };
    let mut document = Document::new(
        (answer.word(), answer.status()),
        level_view(&answer.promise, name),
        answer.how(),
        stats(&answer.stats, &answer.cost),
        answer.run.as_ref(),
    );
    document.decider = Some(answer.decider.name());
    document.tightness = answer.ordered.as_ref().and_then(Ordered::view);
    document.other_order = answer.other_order.map(OtherOrder::word);
    document.proof = answer.proof.as_ref().map(|(path, checked)| {
        let cnf = instance_path(path).display().to_string();
        let path = path.display().to_string();
        json!({"path": path, "cnf": cnf, "cycles": checked.cycles, "steps": checked.steps})
    });
    if let Verdict::Unknown(reason) = &answer.verdict {
        document.reason = Some(reason_view(reason));
    }
    let Some(history) = answer.history() else {
        return document;
    };
    document.history = Some(history_view(history, &answer.source));
    if let Verdict::Violated(counterexample) = &answer.verdict {
        document.counterexample = Some(counterexample_view(history, counterexample));
    }
    if let Some(found) = &answer.found {
        document.all = found.view(history);
    }
    if let Some(telling) = &answer.telling {
        document.anomaly = Some(anomaly_view(telling));
        document.story = Some(story_view(telling));
        document.position = position(history, &telling.story.txns);
        let txns = telling.story.txns.iter();
        document.transactions = txns.map(|&txn| txn_view(history, txn)).collect();
    }
    document
}

fn anomaly_view(telling: &Telling) -> Value {
    let name = &telling.name;
    json!({"name": name.short, "adya": name.adya, "about": name.about})
}

fn story_view(telling: &Telling) -> Value {
    let story = &telling.story;
    let lines = story.lines.iter();
    let lines = lines.map(|line| json!({"depth": line.depth, "text": line.text}));
    json!({
        "headline": story.headline,
        "noticed": story.noticed,
        "definition": story.definition,
        "causes": story.causes,
        "lines": lines.collect::<Vec<_>>(),
        "meanwhile": story.meanwhile,
    })
}

/// What was read.
pub fn history_view(history: &History, source: &Source) -> Value {
    json!({
        "path": source.path.display().to_string(),
        "format": source.format.map(Format::name),
        "bytes": source.bytes,
        "transactions": history.n_txns(),
        "sessions": history.n_sessions(),
        "operations": history.n_ops(),
        "predicates": history.n_predicates(),
        "keys": history.n_keys(),
        "has_times": history.has_times(),
        "version_orders": history.version_orders().len(),
        "warnings": source.warnings,
    })
}

/// What was read of a log of operations that are no transactions.
pub fn log_view(path: &Path, format: Format, bytes: u64, n_ops: usize) -> Value {
    json!({
        "path": path.display().to_string(),
        "format": format.name(),
        "bytes": bytes,
        "transactions": null,
        "sessions": null,
        "operations": n_ops,
        "predicates": null,
        "keys": null,
        "has_times": null,
        "version_orders": null,
        "warnings": [],
    })
}

/// Why there is no answer.
pub fn reason_view(reason: &StopReason) -> Value {
    json!({"kind": reason_kind(reason), "words": reason.to_string()})
}

/// One word for why there is no answer.
pub fn reason_kind(reason: &StopReason) -> &'static str {
    match reason {
        StopReason::Time(_) => "time",
        StopReason::Memory { .. } | StopReason::Resident { .. } => "memory",
        StopReason::Interrupted => "interrupted",
        _ => "backend",
    }
}
