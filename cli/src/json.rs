//! The answer as one JSON document. The field names are a promise: docs/json.md describes them, and a test holds them to it.

use kingsnake_encodings::proof::instance_path;
use kingsnake_solver::budget::StopReason;
use kingsnake_solver::level::Spec;
use kingsnake_solver::model::{History, Op, Status, Token, TxnId, ValueId};
use kingsnake_solver::prune::DeviceStats;
use kingsnake_solver::verdict::{
    Counterexample, Fact, Moment, Point, Proof, Split, Step, StepReason, Verdict,
};
use kingsnake_tell::local_name;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, status_word};
use crate::ordered::Ordered;
use crate::plan::Plan;
use crate::processor;

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
struct TxnView {
    name: Value,
    session: Value,
    /// Counted from 0.
    position: usize,
    status: &'static str,
    /// What a collector noted beside it.
    #[serde(skip_serializing_if = "Option::is_none")]
    isolation: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    database_name: Option<Value>,
    operations: Vec<Value>,
}

#[derive(Debug, Serialize)]
struct ProofView {
    path: String,
    cnf: String,
    cycles: usize,
    steps: usize,
}

#[derive(Debug, Serialize)]
struct StatsView {
    seconds: f64,
    cpu_seconds: Option<f64>,
    peak_memory_bytes: Option<u64>,
    phases: Vec<PhaseView>,
    counted_transactions: usize,
    unknown_counted: usize,
    unknown_dropped: usize,
    versions: usize,
    nodes: usize,
    known_edges_before: usize,
    known_edges_after: usize,
    pairs: u64,
    open_constraints: usize,
    reachability: &'static str,
    reachability_why: String,
    fixpoint: bool,
    rounds: Vec<RoundView>,
    device: DeviceView,
    #[serde(skip_serializing_if = "Option::is_none")]
    heuristic: Option<HeuristicView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    solver: Option<SolverView>,
}

#[derive(Debug, Serialize)]
struct HeuristicView {
    name: &'static str,
    distance: usize,
    assumed: usize,
    rejects: u64,
}

#[derive(Debug, Serialize)]
struct PhaseView {
    name: &'static str,
    seconds: f64,
    cpu_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct RoundView {
    new_edges: u64,
    open: u64,
    seconds: f64,
}

#[derive(Debug, Serialize)]
struct DeviceView {
    name: String,
    backend: String,
    kind: String,
    driver: String,
    why: String,
    warning: Option<String>,
    form: String,
    bytes_up: u64,
    bytes_down: u64,
    dispatches: u64,
    workgroups: u64,
    round_trips: u64,
    occupancy: f64,
    matrix_bytes: u64,
    bands: u32,
    kernel_seconds: Option<f64>,
}

#[derive(Debug, Serialize)]
struct SolverView {
    backend: String,
    winner: Option<String>,
    variables: u64,
    clauses: u64,
    edges: u64,
    conflicts: u64,
    decisions: u64,
    propagations: u64,
    cycles: u64,
    moves: u64,
    /// The device that cooled, if one did or was to.
    device: Option<DeviceView>,
    memory_bytes: Option<u64>,
    encode_seconds: f64,
    solve_seconds: f64,
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

fn reason_kind(reason: &StopReason) -> &'static str {
    match reason {
        StopReason::Time(_) => "time",
        StopReason::Memory { .. } | StopReason::Resident { .. } => "memory",
        StopReason::Interrupted => "interrupted",
        StopReason::Backend(_) => "backend",
    }
}

fn stats(answer: &Answer) -> StatsView {
    let stats = &answer.stats;
    let rounds = stats.prune.rounds.iter().map(|round| RoundView {
        new_edges: round.new_edges,
        open: round.open,
        seconds: round.time.as_secs_f64(),
    });
    let used = |phase| answer.processor.iter().find(|(name, _)| *name == phase);
    let phases = answer.phases.iter().map(|&(name, time)| PhaseView {
        name,
        seconds: time.as_secs_f64(),
        cpu_seconds: used(name).map(|(_, seconds)| *seconds),
    });
    StatsView {
        seconds: answer.time.as_secs_f64(),
        cpu_seconds: processor::seconds(),
        peak_memory_bytes: answer.peak,
        phases: phases.collect(),
        counted_transactions: stats.n_counted,
        unknown_counted: stats.n_unknown_counted,
        unknown_dropped: stats.n_unknown_dropped,
        versions: stats.n_versions,
        nodes: stats.n_nodes,
        known_edges_before: stats.n_known_edges,
        known_edges_after: stats.n_pruned_edges,
        pairs: stats.n_pairs,
        open_constraints: stats.n_open,
        reachability: stats.prune.reachability,
        reachability_why: stats.prune.why.clone(),
        fixpoint: stats.prune.fixpoint,
        rounds: rounds.collect(),
        device: device(&stats.prune.device),
        heuristic: stats.heuristic.as_ref().map(|it| HeuristicView {
            name: it.name,
            distance: it.distance,
            assumed: it.assumed,
            rejects: it.rejects,
        }),
        solver: stats.decide.as_ref().map(|decide| SolverView {
            backend: decide.backend.clone(),
            winner: decide.winner.clone(),
            variables: decide.variables,
            clauses: decide.clauses,
            edges: decide.edges,
            conflicts: decide.conflicts,
            decisions: decide.decisions,
            propagations: decide.propagations,
            cycles: decide.cycles,
            moves: decide.moves,
            device: is_used(&decide.device).then(|| device(&decide.device)),
            memory_bytes: decide.memory,
            encode_seconds: decide.encode.as_secs_f64(),
            solve_seconds: decide.solve.as_secs_f64(),
        }),
    }
}

/// Whether a device took part, or was to.
fn is_used(stats: &DeviceStats) -> bool {
    !stats.name.is_empty() || stats.warning.is_some()
}

fn device(stats: &DeviceStats) -> DeviceView {
    DeviceView {
        name: stats.name.clone(),
        backend: stats.backend.clone(),
        kind: stats.kind.clone(),
        driver: stats.driver.clone(),
        why: stats.why.clone(),
        warning: stats.warning.clone(),
        form: stats.form.clone(),
        bytes_up: stats.bytes_up,
        bytes_down: stats.bytes_down,
        dispatches: stats.dispatches,
        workgroups: stats.workgroups,
        round_trips: stats.round_trips,
        occupancy: stats.occupancy,
        matrix_bytes: stats.matrix_bytes,
        bands: stats.bands,
        kernel_seconds: stats.time.map(|time| time.as_secs_f64()),
    }
}

/// A name as its producer wrote it: a number, a text, or null.
fn token(history: &History, token: Token) -> Value {
    match token {
        Token::Nil => Value::Null,
        Token::Int(number) => number.into(),
        Token::Text(symbol) => history.symbols().text(symbol).into(),
    }
}

fn txn_name(history: &History, txn: TxnId) -> Value {
    token(history, history.txn_token(txn))
}

/// How many transactions had committed when the last of these did; nothing without times.
fn position(history: &History, txns: &[TxnId]) -> Option<usize> {
    let commit = |txn: TxnId| {
        let commit = history.interval(txn).commit;
        (commit < i64::MAX).then_some(commit)
    };
    let last = txns.iter().filter_map(|&txn| commit(txn)).max()?;
    let committed = history
        .txns()
        .filter(|&txn| history.status(txn) == Status::Committed);
    let by_then = committed.filter_map(commit).filter(|&it| it <= last);
    Some(by_then.count())
}

fn txn_view(history: &History, txn: TxnId) -> TxnView {
    let note = history.note(txn);
    let noted = |it: Token| (it != Token::Nil).then(|| token(history, it));
    TxnView {
        name: txn_name(history, txn),
        session: token(history, history.session_token(history.session(txn))),
        position: history.session_position(txn),
        status: status_word(history.status(txn)),
        isolation: history.isolation(txn).map(|it| token(history, it)),
        node: noted(note.node),
        database_name: noted(note.name).or(history.stamps(txn).xid.map(Value::from)),
        operations: history
            .ops(txn)
            .iter()
            .enumerate()
            .map(|(at, &op)| op_view(history, op, history.is_insert(txn, at)))
            .collect(),
    }
}

fn op_view(history: &History, op: Op, is_insert: bool) -> Value {
    let key = op.key().map(|key| token(history, history.key_token(key)));
    let value = |value| token(history, history.value_token(value));
    match op {
        Op::Read { value: read, .. } if history.is_tombstone(read) => {
            json!({"op": "read", "key": key, "value": null, "tombstone": value(read)})
        }
        Op::Read { value: read, .. } => json!({"op": "read", "key": key, "value": value(read)}),
        Op::Write { value: left, .. } if history.is_tombstone(left) => {
            json!({"op": "delete", "key": key, "tombstone": value(left)})
        }
        Op::Write { value: left, .. } if history.is_absence(left) => {
            json!({"op": "delete", "key": key})
        }
        Op::Write { value: written, .. } => {
            let op = if is_insert { "insert" } else { "write" };
            json!({"op": op, "key": key, "value": value(written)})
        }
        Op::Append { value: added, .. } => {
            json!({"op": "append", "key": key, "value": value(added)})
        }
        Op::ReadList { list, .. } => {
            let values: Vec<Value> = history.list(list).iter().map(|&item| value(item)).collect();
            json!({"op": "read-list", "key": key, "values": values})
        }
        Op::Range { range } => {
            let query = history.range(range);
            let row = |&row: &ValueId| {
                let key = token(history, history.key_token(history.value_key(row)));
                json!([key, value(row)])
            };
            let is_deleted = |row: &&ValueId| history.is_tombstone(**row);
            let rows = query.rows.iter().filter(|row| !is_deleted(row));
            let deleted = query.rows.iter().filter(is_deleted);
            let mut view = json!({
                "op": "range",
                "range": query.span.show(|end| history.symbols().show(end)),
                "rows": rows.map(row).collect::<Vec<Value>>(),
            });
            if query.shows_deleted {
                view["deleted"] = deleted.map(row).collect();
            }
            view
        }
    }
}

pub fn counterexample_view(history: &History, counterexample: &Counterexample) -> Value {
    match counterexample {
        Counterexample::Cyclic(proof) => proof_view(history, proof),
        Counterexample::EitherWay {
            txn,
            lost,
            took_effect,
        } => json!({
            "kind": "either way",
            "transaction": txn_name(history, *txn),
            "lost": counterexample_view(history, lost),
            "took_effect": counterexample_view(history, took_effect),
        }),
        Counterexample::Stuck(stuck) => json!({
            "kind": "stuck",
            "key": token(history, history.key_token(stuck.key)),
            "transaction": txn_name(history, stuck.last),
            "possible": stuck.possible.iter().map(|state| match state {
                None => json!("initial"),
                Some(value) => json!([token(history, history.value_token(*value))]),
            }).collect::<Vec<Value>>(),
            "concurrent": stuck.concurrent.iter().map(|&txn| txn_name(history, txn)).collect::<Vec<Value>>(),
        }),
        Counterexample::Local(findings) => {
            let findings: Vec<Value> = findings
                .iter()
                .map(|finding| {
                    json!({
                        "anomaly": local_name(finding.anomaly).short,
                        "transaction": txn_name(history, finding.txn),
                        "operation": finding.op,
                        "key": token(history, history.key_token(finding.key)),
                        "other": finding.other.map(|(txn, op)| json!({
                            "transaction": txn_name(history, txn),
                            "operation": op,
                        })),
                    })
                })
                .collect();
            json!({"kind": "local", "findings": findings})
        }
    }
}

fn proof_view(history: &History, proof: &Proof) -> Value {
    proof.fold(
        |steps| {
            let steps: Vec<Value> = steps.iter().map(|step| step_view(history, step)).collect();
            json!({"kind": "cycle", "steps": steps})
        },
        |Split { key, one, other }, one_first, other_first| {
            json!({
                "kind": "split",
                "key": token(history, history.key_token(key)),
                "one": txn_name(history, one),
                "other": txn_name(history, other),
                "one_first": one_first,
                "other_first": other_first,
            })
        },
        |reader, key, cases| {
            let cases: Vec<Value> = cases
                .into_iter()
                .map(|(writer, proof)| {
                    let writer = writer.map(|txn| txn_name(history, txn));
                    json!({"writer": writer, "proof": proof})
                })
                .collect();
            json!({
                "kind": "choice",
                "reader": txn_name(history, reader),
                "key": token(history, history.key_token(key)),
                "cases": cases,
            })
        },
    )
}

fn step_view(history: &History, step: &Step) -> Value {
    let mut view =
        json!({"from": point_view(history, step.from), "to": point_view(history, step.to)});
    let key = |key| token(history, history.key_token(key));
    let more = match step.reason {
        StepReason::Begin => json!({"reason": "begin"}),
        StepReason::Session => json!({"reason": "so"}),
        StepReason::RealTime => json!({"reason": "rt"}),
        StepReason::Stated { edge } => json!({
            "reason": "given",
            "name": history.given_edges().get(edge as usize).map(|it| &it.name),
        }),
        StepReason::Wr { key: of, value } => json!({
            "reason": "wr",
            "key": key(of),
            "value": token(history, history.value_token(value)),
        }),
        StepReason::Ww { key: of, fact } => {
            json!({"reason": "ww", "key": key(of), "because": fact_word(fact)})
        }
        StepReason::Vis { reader, key: of } => json!({
            "reason": "vis",
            "key": key(of),
            "reader": txn_name(history, reader),
        }),
        StepReason::Rw {
            key: of,
            writer,
            fact,
        } => json!({
            "reason": "rw",
            "key": key(of),
            "writer": writer.map(|txn| txn_name(history, txn)),
            "because": fact_word(fact),
        }),
    };
    if let (Some(view), Value::Object(more)) = (view.as_object_mut(), more) {
        view.extend(more);
    }
    view
}

fn point_view(history: &History, point: Point) -> Value {
    let moment = match point.moment {
        Moment::Whole => "whole",
        Moment::Begin => "begin",
        Moment::Commit => "commit",
    };
    json!({"transaction": txn_name(history, point.txn), "moment": moment})
}

fn fact_word(fact: Fact) -> &'static str {
    match fact {
        Fact::Initial => "initial",
        Fact::Run => "run",
        Fact::Given => "given",
        Fact::Assumed => "assumed",
    }
}
