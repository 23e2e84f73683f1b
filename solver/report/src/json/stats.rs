//! What a check took, as JSON; docs/json.md describes the fields.

use kingsnake_solver::check::CheckStats;
use kingsnake_solver::decide::DecideStats;
use kingsnake_solver::prune::{DeviceStats, PruneStats};
use serde_json::{Value, json};

use crate::answer::Cost;

/// What a check took.
pub fn stats(stats: &CheckStats, cost: &Cost) -> Value {
    let phase = |&(name, time): &(&str, std::time::Duration)| {
        let used = cost.by_phase.iter().find(|it| it.name == name);
        json!({
            "name": name,
            "seconds": time.as_secs_f64(),
            "cpu_seconds": used.and_then(|it| it.seconds),
            "peak_memory_bytes": used.and_then(|it| it.peak),
        })
    };
    let heuristic = stats.heuristic.as_ref();
    let heuristic = heuristic.map(|it| {
        json!({
            "name": it.name,
            "distance": it.distance,
            "assumed": it.assumed,
            "rejects": it.rejects,
        })
    });
    json!({
        "seconds": cost.time.as_secs_f64(),
        "cpu_seconds": cost.cpu_seconds,
        "peak_memory_bytes": cost.peak_memory,
        "phases": cost.phases.iter().map(phase).collect::<Vec<_>>(),
        "counted_transactions": stats.n_counted,
        "unknown_counted": stats.n_unknown_counted,
        "unknown_dropped": stats.n_unknown_dropped,
        "versions": stats.n_versions,
        "nodes": stats.n_nodes,
        "known_edges_before": stats.n_known_edges,
        "known_edges_after": stats.n_pruned_edges,
        "pairs": stats.n_pairs,
        "open_constraints": stats.n_open,
        "reachability": stats.prune.reachability,
        "reachability_why": stats.prune.why,
        "fixpoint": stats.prune.fixpoint,
        "rounds": rounds(&stats.prune),
        "device": device(&stats.prune.device),
        "heuristic": heuristic,
        "solver": stats.decide.as_ref().map(solver),
    })
}

/// What each pruning round did.
pub fn rounds(stats: &PruneStats) -> Value {
    let rounds = stats.rounds.iter().map(|it| {
        let seconds = it.time.as_secs_f64();
        json!({"new_edges": it.new_edges, "open": it.open, "seconds": seconds})
    });
    rounds.collect()
}

/// Statistics of the back end.
pub fn solver(decide: &DecideStats) -> Value {
    // A device took part, or was to.
    let is_used = !decide.device.name.is_empty() || decide.device.warning.is_some();
    json!({
        "backend": decide.backend,
        "winner": decide.winner,
        "variables": decide.variables,
        "clauses": decide.clauses,
        "edges": decide.edges,
        "conflicts": decide.conflicts,
        "decisions": decide.decisions,
        "propagations": decide.propagations,
        "cycles": decide.cycles,
        "moves": decide.moves,
        "device": is_used.then(|| device(&decide.device)),
        "memory_bytes": decide.memory,
        "encode_seconds": decide.encode.as_secs_f64(),
        "solve_seconds": decide.solve.as_secs_f64(),
    })
}

fn device(stats: &DeviceStats) -> Value {
    json!({
        "name": stats.name,
        "backend": stats.backend,
        "kind": stats.kind,
        "driver": stats.driver,
        "why": stats.why,
        "warning": stats.warning,
        "form": stats.form,
        "bytes_up": stats.bytes_up,
        "bytes_down": stats.bytes_down,
        "dispatches": stats.dispatches,
        "workgroups": stats.workgroups,
        "round_trips": stats.round_trips,
        "occupancy": stats.occupancy,
        "matrix_bytes": stats.matrix_bytes,
        "bands": stats.bands,
        "kernel_seconds": stats.time.map(|time| time.as_secs_f64()),
    })
}
