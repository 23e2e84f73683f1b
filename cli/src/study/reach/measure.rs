//! The graphs of `bench reach`, and the engines that compute their closures.

use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use kingsnake_gpu::{Form, Kind, Meter};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::polygraph::{Edge, Reason};
use kingsnake_solver::prune::{Clocks, Dag, Dense};
use kingsnake_solver::random::Rng;
use rayon::prelude::*;

use super::Copying;

/// How far an edge reaches ahead: transactions of a history read what was written lately.
const SPAN: usize = 400;
/// Copies are measured over this many bytes, which no cache holds.
const COPY_BYTES: usize = 1 << 28;

/// A graph like that of a history: sessions that advance together, and edges a short way ahead.
pub struct Graph {
    pub dag: Dag,
    pub chains: Vec<Range<u32>>,
    pub n_levels: usize,
}

impl Graph {
    pub fn new(n_nodes: u32, degree: u32, n_chains: u32) -> Self {
        let n = n_nodes as usize;
        let length = n_nodes.div_ceil(n_chains);
        let chains: Vec<Range<u32>> = (0..n_nodes)
            .step_by(length as usize)
            .map(|start| start..n_nodes.min(start + length))
            .collect();
        // In the order of time: the first of each chain, then the second of each.
        let in_time: Vec<u32> = (0..length)
            .flat_map(|at| {
                chains
                    .iter()
                    .filter_map(move |chain| (at < chain.len() as u32).then_some(chain.start + at))
            })
            .collect();
        let edge = |from, to| Edge {
            from,
            to,
            reason: Reason::Session,
        };
        let mut edges: Vec<Edge> = chains
            .iter()
            .flat_map(|chain| (chain.start + 1..chain.end).map(|to| edge(to - 1, to)))
            .collect();
        let mut rng = Rng::new(u64::from(n_nodes) * 1000 + u64::from(degree));
        while edges.len() < n * degree as usize && n > 1 {
            let from = rng.below(n - 1);
            let to = (from + 1 + rng.below(SPAN)).min(n - 1);
            edges.push(edge(in_time[from], in_time[to]));
        }
        // The order of time is a topological order of all edges.
        let Ok(dag) = Dag::new(n, edges.iter()) else {
            unreachable!("edges follow the time")
        };
        let n_levels = depth(&dag);
        Graph {
            dag,
            chains,
            n_levels,
        }
    }
}

fn depth(dag: &Dag) -> usize {
    let mut height = vec![0_u32; dag.n_nodes()];
    for &node in dag.order().iter().rev() {
        let successors = dag.successors(node).iter();
        let below = successors.map(|&to| height[to as usize] + 1).max();
        height[node as usize] = below.unwrap_or(0);
    }
    height.into_iter().max().map_or(0, |most| most as usize + 1)
}

/// A way to compute reachability.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    DenseOne,
    DenseAll,
    Chains,
    Gpu,
}

impl Engine {
    pub fn name(self, meter: Option<&Meter>) -> String {
        match (self, meter) {
            (Engine::DenseOne, _) => "dense, one thread".to_owned(),
            (Engine::DenseAll, _) => {
                format!("dense, {} threads", rayon::current_num_threads())
            }
            (Engine::Chains, _) => "chains".to_owned(),
            (Engine::Gpu, Some(meter)) => {
                let name = &meter.about().name;
                name.split(" (").next().unwrap_or(name).to_owned()
            }
            (Engine::Gpu, None) => "gpu".to_owned(),
        }
    }
}

/// The engines for a graph of this size.
pub fn engines(meter: Option<&Meter>, nodes: u32, software_nodes: u32) -> Vec<Engine> {
    let mut engines = vec![Engine::DenseOne, Engine::DenseAll, Engine::Chains];
    let takes = |meter: &Meter| meter.about().kind != Kind::Software || nodes <= software_nodes;
    if meter.is_some_and(takes) {
        engines.push(Engine::Gpu);
    }
    engines
}

/// What one computation took.
#[derive(Clone, Debug)]
pub struct Measurement {
    pub time: Duration,
    pub kernels: Option<Duration>,
    /// Words of 32 bits that were OR-ed (for clocks: compared).
    pub words: u64,
    pub bytes_moved: u64,
    pub bytes_up: u64,
    pub dispatches: u64,
    pub form: String,
}

impl Measurement {
    fn of_cpu(time: Duration, words: u64, written: u64) -> Self {
        Measurement {
            time,
            kernels: None,
            words,
            bytes_moved: 4 * words + written,
            bytes_up: 0,
            dispatches: 0,
            form: String::new(),
        }
    }
}

/// Computes once.
pub fn measure(
    engine: Engine,
    graph: &Graph,
    meter: Option<&mut Meter>,
) -> Result<Measurement, String> {
    let dag = &graph.dag;
    match engine {
        Engine::DenseOne => {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(1)
                .build()
                .map_err(|error| error.to_string())?;
            Ok(pool.install(|| dense(dag)))
        }
        Engine::DenseAll => Ok(dense(dag)),
        Engine::Chains => {
            let begun = Instant::now();
            let clocks = black_box(Clocks::new(dag, &graph.chains));
            let time = begun.elapsed();
            let words = dag.n_edges() as u64 * clocks.stride() as u64;
            // Every edge reads the clock of its target and writes it again.
            Ok(Measurement::of_cpu(time, words, 4 * words))
        }
        Engine::Gpu => {
            let meter = meter.ok_or("there is no device")?;
            let found = meter.closure(dag, Form::Auto, &Budget::unlimited())?;
            Ok(Measurement {
                time: found.time,
                kernels: found.kernels,
                words: found.words,
                bytes_moved: 4 * found.words + 2 * found.matrix_bytes,
                bytes_up: found.bytes_up,
                dispatches: found.dispatches,
                form: found.form,
            })
        }
    }
}

fn dense(dag: &Dag) -> Measurement {
    let begun = Instant::now();
    black_box(Dense::new(dag));
    let time = begun.elapsed();
    let words = 2 * Dense::words_ored(dag);
    Measurement::of_cpu(time, words, Dense::bytes(dag.n_nodes()))
}

/// Measures copying, with one thread and with all.
pub fn copying() -> Copying {
    let from = vec![1_u8; COPY_BYTES];
    let mut to = vec![0_u8; COPY_BYTES];
    let mut best = |copy: &mut dyn FnMut(&mut [u8], &[u8])| {
        let rate = |_| {
            let begun = Instant::now();
            copy(&mut to, &from);
            black_box(&to);
            // Copying reads a byte and writes a byte.
            2.0 * COPY_BYTES as f64 / begun.elapsed().as_secs_f64().max(1e-9)
        };
        (0..5).map(rate).fold(0.0, f64::max)
    };
    let one_thread = best(&mut |to, from| to.copy_from_slice(from));
    let all_threads = best(&mut |to, from| {
        let chunk = (COPY_BYTES / rayon::current_num_threads()).max(1);
        let pairs = to.par_chunks_mut(chunk).zip(from.par_chunks(chunk));
        pairs.for_each(|(to, from)| to.copy_from_slice(from));
    });
    Copying {
        one_thread,
        all_threads,
    }
}
