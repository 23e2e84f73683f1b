//! The answer as one JSON document. The field names are a promise: docs/json.md describes them, and a test holds them to it.

use kingsnake_encodings::proof::instance_path;
use kingsnake_solver::budget::StopReason;
use kingsnake_solver::level::Spec;
use kingsnake_solver::verdict::Verdict;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::answer::Answer;
use crate::ordered::Ordered;
use crate::plan::Plan;

mod evidence;
mod stats;

pub use evidence::counterexample_view;
pub use stats::{rounds, solver};

use evidence::{TxnView, position, txn_view};
use stats::{StatsView, stats};

/// The document's version. It grows when a field changes its meaning or goes.
const SCHEMA: u32 = 1;

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
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<ReasonView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    anomaly: Option<AnomalyView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    story: Option<StoryView>,
    /// Of a satisfied history, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    tightness: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    counterexample: Option<Value>,
    /// With `--all`: every class of anomaly, and what they rule out.
    #[serde(flatten)]
    all: Map<String, Value>,
    /// How many transactions had committed when the last of those involved did.
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    transactions: Vec<TxnView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proof: Option<ProofView>,
    stats: StatsView,
    plan: Map<String, Value>,
    command: String,
}

#[derive(Debug, Serialize)]
struct LevelView {
    name: &'static str,
    model: &'static str,
    session_order: bool,
    real_time: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshots: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock_drift_ms: Option<f64>,
    words: String,
}

#[derive(Debug, Serialize)]
struct HistoryView {
    path: String,
    format: &'static str,
    bytes: u64,
    transactions: usize,
    sessions: usize,
    operations: usize,
    keys: usize,
    has_times: bool,
    version_orders: usize,
    warnings: Vec<String>,
}

#[derive(Debug, Serialize)]
struct ReasonView {
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
    /// What was done to the database meanwhile.
    #[serde(skip_serializing_if = "Vec::is_empty")]
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
        level: level(&answer.plan),
        history: history_view(answer),
        decider: answer.decider.name(),
        how: answer.how(),
        reason: match &answer.verdict {
            Verdict::Unknown(reason) => Some(ReasonView {
                kind: reason_kind(reason),
                words: reason.to_string(),
            }),
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
            _ => Map::new(),
        },
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

fn level(plan: &Plan) -> LevelView {
    let Spec {
        model,
        session_order,
        real_time,
    } = plan.spec;
    LevelView {
        name: plan.level.name(),
        model: model.name(),
        session_order,
        real_time: real_time.is_some(),
        snapshots: real_time.map(|it| it.snapshots.name()),
        times: real_time.map(|it| it.times.name()),
        clock_drift_ms: real_time.map(|it| it.drift as f64 / 1e6),
        words: plan.promise(),
    }
}

fn history_view(answer: &Answer) -> Option<HistoryView> {
    let parsed = answer.parsed.as_ref()?;
    let history = &parsed.history;
    Some(HistoryView {
        path: answer.plan.history.display().to_string(),
        format: parsed.format.name(),
        bytes: parsed.bytes,
        transactions: history.n_txns(),
        sessions: history.n_sessions(),
        operations: history.n_ops(),
        keys: history.n_keys(),
        has_times: history.has_times(),
        version_orders: history.version_orders().len(),
        warnings: parsed.warnings.clone(),
    })
}

/// One word for why there is no answer.
pub fn reason_kind(reason: &StopReason) -> &'static str {
    match reason {
        StopReason::Time(_) => "time",
        StopReason::Memory { .. } | StopReason::Resident { .. } => "memory",
        StopReason::Interrupted => "interrupted",
        StopReason::Backend(_) => "backend",
    }
}
