//! Statistics of a check as JSON.

use kingsnake_solver::decide::DecideStats;
use kingsnake_solver::prune::{DeviceStats, PruneStats, RoundStats};
use serde::Serialize;

use crate::answer::Answer;
use crate::{memory, processor};

/// See docs/json.md.
#[derive(Debug, Serialize)]
pub struct StatsView {
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
    heuristic: Option<HeuristicView>,
    solver: Option<SolverView>,
}

/// See docs/json.md.
#[derive(Debug, Serialize)]
pub struct HeuristicView {
    name: &'static str,
    distance: usize,
    assumed: usize,
    rejects: u64,
}

/// See docs/json.md.
#[derive(Debug, Serialize)]
pub struct PhaseView {
    name: &'static str,
    seconds: f64,
    cpu_seconds: Option<f64>,
    peak_memory_bytes: Option<u64>,
}

/// See docs/json.md.
#[derive(Debug, Serialize)]
pub struct RoundView {
    new_edges: u64,
    open: u64,
    seconds: f64,
}

/// See docs/json.md.
#[derive(Debug, Serialize)]
pub struct DeviceView {
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

/// See docs/json.md.
#[derive(Debug, Serialize)]
pub struct SolverView {
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
    /// The device that cooled, or was to.
    device: Option<DeviceView>,
    memory_bytes: Option<u64>,
    encode_seconds: f64,
    solve_seconds: f64,
}

pub(super) fn stats(answer: &Answer) -> StatsView {
    let stats = &answer.stats;
    let phases = answer.phases.iter().map(|&(name, time)| {
        let cost = answer.costs.iter().find(|it| it.name == name);
        PhaseView {
            name,
            seconds: time.as_secs_f64(),
            cpu_seconds: cost.and_then(|it| it.seconds),
            peak_memory_bytes: cost.and_then(|it| it.peak),
        }
    });
    StatsView {
        seconds: answer.time.as_secs_f64(),
        cpu_seconds: processor::seconds(),
        peak_memory_bytes: memory::peak(),
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
        rounds: rounds(&stats.prune),
        device: device(&stats.prune.device),
        heuristic: stats.heuristic.as_ref().map(|it| HeuristicView {
            name: it.name,
            distance: it.distance,
            assumed: it.assumed,
            rejects: it.rejects,
        }),
        solver: stats.decide.as_ref().map(solver),
    }
}

/// What each pruning round did.
pub fn rounds(stats: &PruneStats) -> Vec<RoundView> {
    let view = |round: &RoundStats| RoundView {
        new_edges: round.new_edges,
        open: round.open,
        seconds: round.time.as_secs_f64(),
    };
    stats.rounds.iter().map(view).collect()
}

/// Statistics of the back end.
pub fn solver(decide: &DecideStats) -> SolverView {
    SolverView {
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
