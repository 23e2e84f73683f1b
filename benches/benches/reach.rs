//! The algorithms for reachability, on graphs like those of histories: bits on one thread and on all, clocks, and a GPU.
//!
//! A real GPU takes part where there is one. `KINGSNAKE_DEVICE=cpu` leaves it out, `KINGSNAKE_DEVICE=gpu` takes software
//! too.
#![allow(missing_docs)] // Criterion's macros write undocumented functions.
#![allow(clippy::print_stderr)] // To print what is skipped.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use kingsnake_gpu::{DeviceChoice, Form, Meter};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::prune::{Clocks, Dense};
use kingsnake_solver::session_graph::SessionGraph;

fn meter() -> Option<Meter> {
    let typed = std::env::var("KINGSNAKE_DEVICE").unwrap_or_else(|_| "auto".to_owned());
    let choice: DeviceChoice = typed.parse().expect("KINGSNAKE_DEVICE is a device");
    match (&choice, Meter::open(&choice)) {
        (DeviceChoice::Cpu, _) => None,
        (_, Ok(meter)) => Some(meter),
        (_, Err(why)) => {
            eprintln!("the GPU is skipped: {why}");
            None
        }
    }
}

fn reach(criterion: &mut Criterion) {
    let one_thread = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build()
        .expect("one thread can be had");
    let mut meter = meter();
    for degree in [2, 6, 20] {
        let mut group = criterion.benchmark_group(format!("reach-{degree}"));
        for n_nodes in [1_000, 5_000, 20_000] {
            let graph = SessionGraph {
                n_nodes,
                degree,
                n_sessions: 24,
                span: 400,
            };
            let (dag, sessions) = (graph.dag(), graph.sessions());
            let id = |engine: &str| BenchmarkId::new(engine, n_nodes);
            group.throughput(Throughput::Bytes(8 * Dense::words_ored(&dag)));
            group.bench_function(id("dense, one thread"), |b| {
                b.iter(|| one_thread.install(|| Dense::new(&dag)));
            });
            group.bench_function(id("dense, all threads"), |b| b.iter(|| Dense::new(&dag)));
            let stride = Clocks::new(&dag, &sessions).stride() as u64;
            group.throughput(Throughput::Bytes(4 * stride * dag.n_edges() as u64));
            group.bench_function(id("chains"), |b| b.iter(|| Clocks::new(&dag, &sessions)));
            let Some(meter) = &mut meter else { continue };
            let budget = Budget::unlimited();
            let mut closure = || meter.closure(&dag, Form::Auto, &budget);
            let measured = closure().expect("the device computes");
            group.throughput(Throughput::Bytes(4 * measured.words));
            group.bench_function(id("gpu"), |b| {
                b.iter_custom(|times| {
                    let all = (0..times).map(|_| closure().expect("the device computes").time);
                    all.sum::<Duration>()
                });
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = reach
}
criterion_main!(benches);
