//! The answer as one JSON document. The field names are stable: docs/json.md describes them, and a test compares the two.

use std::path::Path;

use kingsnake_datasets::Parsed;
use kingsnake_encodings::proof::instance_path;
use kingsnake_evidence::{LevelView, counterexample_view, level_view};
use kingsnake_solver::budget::StopReason;
use kingsnake_solver::promise::Promise;
use kingsnake_solver::verdict::Verdict;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::answer::ordered::Ordered;
use crate::answer::recorded::OtherOrder;

mod stats;
mod txns;

pub use stats::{rounds, solver};

use stats::{StatsView, stats};
use txns::{TxnView, position, txn_view};

/// The version of the document. It grows when a field is removed or changes its meaning.
pub const SCHEMA: u32 = 2;

/// The whole document.
#[derive(Debug, Serialize)]
pub struct Document {
    schema: u32,
    kingsnake: &'static str,
    verdict: &'static str,
    exit_status: u8,
    level: LevelView,
    history: Option<HistoryView>,
    decider: &'static str,
    how: String,
    reason: Option<ReasonView>,
    anomaly: Option<AnomalyView>,
    story: Option<StoryView>,
    /// For a satisfied history, if requested.
    tightness: Option<Value>,
    counterexample: Option<Value>,
    /// With `--all`: every class of anomaly, and the models ruled out.
    #[serde(flatten)]
    all: Map<String, Value>,
    /// Whether some other order explains what clients saw, if a certificate is refuted and this was requested.
    other_order: Option<&'static str>,
    /// Number of transactions committed when the last of those involved committed.
    position: Option<usize>,
    transactions: Vec<TxnView>,
    proof: Option<ProofView>,
    stats: StatsView,
    plan: Map<String, Value>,
    command: String,
}

/// See docs/json.md.
#[derive(Debug, Serialize)]
pub struct HistoryView {
    path: String,
    format: &'static str,
    bytes: u64,
    transactions: usize,
    sessions: usize,
    operations: usize,
    predicates: usize,
    keys: usize,
    has_times: bool,
    version_orders: usize,
    warnings: Vec<String>,
}

/// See docs/json.md.
#[derive(Debug, Serialize)]
pub struct ReasonView {
    kind: &'static str,
    words: String,
}

#[derive(Debug, Serialize)]
struct AnomalyView {
    name: &'static str,
    adya: Option<&'static str>,
    about: &'static str,
}

#[derive(Debug, Serialize)]
struct StoryView {
    headline: String,
    noticed: String,
    definition: String,
    causes: &'static [&'static str],
    lines: Vec<LineView>,
    /// Faults injected meanwhile.
    meanwhile: Vec<String>,
}

#[derive(Debug, Serialize)]
struct LineView {
    depth: usize,
    text: String,
}

#[derive(Debug, Serialize)]
struct ProofView {
    path: String,
    cnf: String,
    cycles: usize,
    steps: usize,
}

/// The fields of all anomalies if they were not searched for.
pub fn no_anomalies() -> Map<String, Value> {
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

/// The document of an answer.
pub fn document(answer: &Answer) -> Document {
    let history = answer.history();
    let counterexample = match (&answer.verdict, history) {
        (Verdict::Violated(counterexample), Some(history)) => {
            Some(counterexample_view(history, counterexample))
        }
        _ => None,
    };
    let telling = answer.telling.as_ref();
    Document {
        schema: SCHEMA,
        kingsnake: env!("CARGO_PKG_VERSION"),
        verdict: answer.word(),
        exit_status: answer.status(),
        level: level_view(
            &answer.plan.promise,
            match answer.plan.promise {
                Promise::Along(_) => Promise::ALONG,
                _ => answer.plan.level.name(),
            },
        ),
        history: (answer.parsed.as_ref()).map(|it| history_view(it, &answer.plan.history)),
        decider: answer.decider.name(),
        how: answer.how(),
        reason: match &answer.verdict {
            Verdict::Unknown(reason) => Some(reason_view(reason)),
            _ => None,
        },
        anomaly: telling.map(|telling| AnomalyView {
            name: telling.name.short,
            adya: telling.name.adya,
            about: telling.name.about,
        }),
        story: telling.map(|telling| StoryView {
            headline: telling.story.headline.clone(),
            noticed: telling.story.noticed.clone(),
            definition: telling.story.definition.clone(),
            causes: telling.story.causes,
            lines: telling
                .story
                .lines
                .iter()
                .map(|line| LineView {
                    depth: line.depth,
                    text: line.text.clone(),
                })
                .collect(),
            meanwhile: telling.story.meanwhile.clone(),
        }),
        tightness: answer.ordered.as_ref().and_then(Ordered::view),
        counterexample,
        all: match (&answer.found, history) {
            (Some(found), Some(history)) => found.view(history),
            _ => no_anomalies(),
        },
        other_order: answer.other_order.map(OtherOrder::word),
        position: match (telling, history) {
            (Some(telling), Some(history)) => position(history, &telling.story.txns),
            _ => None,
        },
        transactions: match (telling, history) {
            (Some(telling), Some(history)) => telling
                .story
                .txns
                .iter()
                .map(|&txn| txn_view(history, txn))
                .collect(),
            _ => Vec::new(),
        },
        proof: answer.proof.as_ref().map(|(path, checked)| ProofView {
            path: path.display().to_string(),
            cnf: instance_path(path).display().to_string(),
            cycles: checked.cycles,
            steps: checked.steps,
        }),
        stats: stats(answer),
        plan: answer
            .plan
            .rows()
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.into()))
            .collect(),
        command: answer.plan.command(),
    }
}

/// The history that was read.
pub fn history_view(parsed: &Parsed, path: &Path) -> HistoryView {
    let history = &parsed.history;
    HistoryView {
        path: path.display().to_string(),
        format: parsed.format.name(),
        bytes: parsed.bytes,
        transactions: history.n_txns(),
        sessions: history.n_sessions(),
        operations: history.n_ops(),
        predicates: history.n_predicates(),
        keys: history.n_keys(),
        has_times: history.has_times(),
        version_orders: history.version_orders().len(),
        warnings: parsed.warnings.clone(),
    }
}

/// Why there is no answer.
pub fn reason_view(reason: &StopReason) -> ReasonView {
    ReasonView {
        kind: reason_kind(reason),
        words: reason.to_string(),
    }
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
