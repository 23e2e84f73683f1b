//! Each phase of a check on a generated history, so that a change to one shows as a ratio to the others.
#![allow(missing_docs)] // Criterion's macros write undocumented functions.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use kingsnake_lab::random::Large;
use kingsnake_solver::Context;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::Techniques;
use kingsnake_solver::level::Level;
use kingsnake_solver::model::History;
use kingsnake_solver::phases::{Check, Exit, prune, relate, resolve};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::prune::Reachability;

fn history() -> History {
    let workload = Large {
        n_txns: 10_000,
        n_keys: 10_000,
        ..Large::default()
    };
    workload.run().history
}

/// Runs phases without limits.
fn run<T>(phases: impl FnOnce(&mut Context<'_>) -> Result<T, Exit>) -> T {
    let (budget, mut silent) = (Budget::unlimited(), Silent);
    let made = phases(&mut Context::new(&budget, &mut silent)).ok();
    made.expect("the generated history is satisfied, and there is time")
}

fn phases(criterion: &mut Criterion) {
    let history = history();
    let mut group = criterion.benchmark_group("phases-10000");
    for level in [Level::Ser, Level::Si] {
        let techniques = Techniques::default();
        let check = Check {
            history: &history,
            spec: level.spec(None).expect("the level takes session order"),
            techniques: &techniques,
        };
        group.bench_function(format!("resolve/{level}"), |b| {
            b.iter(|| run(|context| resolve(&check, context)));
        });
        group.bench_function(format!("construct/{level}"), |b| {
            b.iter_batched(
                || run(|context| resolve(&check, context)),
                |resolved| run(|context| relate(&check, resolved, context)),
                BatchSize::LargeInput,
            );
        });
        for reachability in [Reachability::Chains, Reachability::Dense] {
            let techniques = Techniques {
                reachability,
                ..Techniques::default()
            };
            let check = Check {
                techniques: &techniques,
                ..check
            };
            group.bench_function(format!("prune/{level}/{reachability:?}"), |b| {
                b.iter_batched(
                    || run(|context| relate(&check, resolve(&check, context)?, context)),
                    |polygraph| run(|context| prune(&check, polygraph, None, context)),
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
