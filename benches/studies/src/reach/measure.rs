//! The graphs of `bench reach`, and the engines that compute their closures.

use std::hint::black_box;
use std::ops::Range;
use std::time::{Duration, Instant};

use kingsnake_gpu::{AdapterKind, Form, Meter};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::prune::{Clocks, Dag, Dense};
use kingsnake_solver::session_graph::SessionGraph;
use rayon::prelude::*;

use super::Copying;

/// Copies are measured over this many bytes, which no cache holds.
const COPY_BYTES: usize = 1 << 28;

/// A graph, with what is known of it.
pub struct Graph {
    pub dag: Dag,
    pub chains: Vec<Range<u32>>,
    pub n_levels: usize,
}

impl Graph {
    pub fn new(of: SessionGraph) -> Self {
        let dag = of.dag();
        Graph {
            n_levels: depth(&dag),
            chains: of.sessions(),
            dag,
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
pub enum ReachEngine {
    DenseOne,
    DenseAll,
    Chains,
    Gpu,
}

impl ReachEngine {
    pub fn name(self, meter: Option<&Meter>) -> String {
        match (self, meter) {
            (ReachEngine::DenseOne, _) => "dense, one thread".to_owned(),
            (ReachEngine::DenseAll, _) => {
                format!("dense, {} threads", rayon::current_num_threads())
            }
            (ReachEngine::Chains, _) => "chains".to_owned(),
            (ReachEngine::Gpu, Some(meter)) => {
                let name = &meter.about().name;
                name.split(" (").next().unwrap_or(name).to_owned()
            }
            (ReachEngine::Gpu, None) => "gpu".to_owned(),
        }
    }
}

/// The engines for a graph of this size.
pub fn engines(meter: Option<&Meter>, nodes: u32, software_nodes: u32) -> Vec<ReachEngine> {
    let mut engines = vec![
        ReachEngine::DenseOne,
        ReachEngine::DenseAll,
        ReachEngine::Chains,
    ];
    let takes =
        |meter: &Meter| meter.about().kind != AdapterKind::Software || nodes <= software_nodes;
    if meter.is_some_and(takes) {
        engines.push(ReachEngine::Gpu);
    }
    engines
}

/// The cost of one computation.
#[derive(Clone, Debug)]
pub struct Measurement {
    pub time: Duration,
    /// The same in memory that was never touched before, as a first round has it.
    pub first: Option<Duration>,
    pub kernels: Option<Duration>,
    /// Words of 32 bits that were OR-ed (for clocks: compared).
    pub words: u64,
    pub bytes_moved: u64,
    pub bytes_up: u64,
    pub dispatches: u64,
    pub workgroups: u64,
    pub occupancy: Option<f64>,
    pub form: String,
}

impl Measurement {
    fn of_cpu([first, time]: [Duration; 2], words: u64, written: u64) -> Self {
        Measurement {
            time,
            first: Some(first),
            kernels: None,
            words,
            bytes_moved: 4 * words + written,
            bytes_up: 0,
            dispatches: 0,
            workgroups: 0,
            occupancy: None,
            form: String::new(),
        }
    }
}

/// Computes once; on the CPU twice, the second time over what the first left.
pub fn measure(
    engine: ReachEngine,
    graph: &Graph,
    meter: Option<&mut Meter>,
) -> Result<Measurement, String> {
    let dag = &graph.dag;
    match engine {
        ReachEngine::DenseOne => {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(1)
                .build()
                .map_err(|error| error.to_string())?;
            Ok(pool.install(|| dense(dag)))
        }
        ReachEngine::DenseAll => Ok(dense(dag)),
        ReachEngine::Chains => Ok(chains(dag, &graph.chains)),
        ReachEngine::Gpu => {
            let meter = meter.ok_or("there is no device")?;
            let found = meter
                .closure(dag, Form::Auto, &Budget::unlimited())
                .map_err(|why| why.to_string())?;
            Ok(Measurement {
                time: found.time,
                first: None,
                kernels: found.kernels,
                words: found.words,
                bytes_moved: 4 * found.words + 2 * found.matrix_bytes,
                bytes_up: found.bytes_up,
                dispatches: found.dispatches,
                workgroups: found.workgroups,
                occupancy: Some(found.occupancy),
                form: found.form,
            })
        }
    }
}

/// Runs a function twice, and returns the result with both durations.
fn twice<T>(make: impl FnOnce() -> T, renew: impl FnOnce(&mut T)) -> ([Duration; 2], T) {
    let begun = Instant::now();
    let mut made = black_box(make());
    let first = begun.elapsed();
    let begun = Instant::now();
    renew(&mut made);
    let again = begun.elapsed();
    ([first, again], black_box(made))
}

fn dense(dag: &Dag) -> Measurement {
    let (times, _) = twice(|| Dense::new(dag), |dense| dense.update(dag));
    let words = 2 * Dense::words_ored(dag);
    Measurement::of_cpu(times, words, Dense::bytes(dag.n_nodes()))
}

fn chains(dag: &Dag, chains: &[Range<u32>]) -> Measurement {
    let (times, clocks) = twice(|| Clocks::new(dag, chains), |clocks| clocks.update(dag));
    let words = dag.n_edges() as u64 * clocks.stride() as u64;
    // At most: an edge from a node that is counted already costs one comparison.
    Measurement::of_cpu(times, words, 4 * words)
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
