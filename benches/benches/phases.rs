//! Each phase of the straight line on a generated history, so that a change to one shows as a ratio to the others.
#![allow(missing_docs)] // Criterion's macros write undocumented functions.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use kingsnake_lab::random::Large;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::model::History;
use kingsnake_solver::progress::Silent;
use kingsnake_solver::prune::{PruneOptions, PruneStats, Reachability, prune};
use kingsnake_solver::relate::{Polygraph, construct};
use kingsnake_solver::resolve::{Resolved, resolve};

fn history() -> History {
    let workload = Large {
        n_txns: 10_000,
        n_keys: 10_000,
        ..Large::default()
    };
    workload.run().history
}

fn resolved(history: &History) -> Resolved {
    match resolve(history, &Budget::unlimited()) {
        Ok(resolved) if resolved.findings().is_empty() => resolved,
        other => panic!("the generated history does not resolve: {other:?}"),
    }
}

fn spec(level: Level) -> Spec {
    level.spec(None).expect("the level takes session order")
}

fn polygraph(history: &History, level: Level) -> Polygraph {
    construct(history, resolved(history), spec(level), true)
}

fn phases(criterion: &mut Criterion) {
    let history = history();
    let mut group = criterion.benchmark_group("phases-10000");
    group.bench_function("resolve", |b| b.iter(|| resolved(&history)));
    for level in [Level::Ser, Level::Si] {
        group.bench_function(format!("construct/{level}"), |b| {
            b.iter_batched(
                || resolved(&history),
                |resolved| construct(&history, resolved, spec(level), true),
                BatchSize::LargeInput,
            );
        });
        for reachability in [Reachability::Chains, Reachability::Dense] {
            group.bench_function(format!("prune/{level}/{reachability:?}"), |b| {
                let options = PruneOptions {
                    reachability,
                    ..PruneOptions::default()
                };
                b.iter_batched(
                    || polygraph(&history, level),
                    |polygraph| {
                        let budget = Budget::unlimited();
                        let mut stats = PruneStats::default();
                        prune(polygraph, options, &mut stats, &budget, &mut Silent)
                    },
                    BatchSize::LargeInput,
                );
            });
        }
    }
    group.finish();
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20);
    targets = phases
}
criterion_main!(benches);
