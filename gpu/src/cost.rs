//! What things cost, roughly, to choose between them. docs/gpu.md derives the formulas.

use kingsnake_solver::prune::{Dag, Task};

use crate::closure::Form;
use crate::layout::BLOCK;
use crate::matrix::Cut;
use crate::steps::Steps;

/// A dispatch costs a GPU about this long even if it does nothing.
const DISPATCH: f64 = 6e-6;
/// A workgroup waits about this long for memory that it depends on.
const LATENCY: f64 = 0.6e-6;
/// Words that all workgroups together OR in a second from workgroup memory.
const LOCAL_WORDS: f64 = 5e11;

/// The kernels that a GPU finishes soonest.
pub(crate) fn form(cut: &Cut, steps: &Steps, rows: &[u64]) -> Form {
    let lanes = f64::from(cut.lanes());
    let sweep: f64 = rows
        .iter()
        .map(|&rows| LATENCY * (1.0 + rows as f64 / lanes))
        .sum();
    let n_levels = steps.ends.len() as f64;
    let levels = sweep.min(n_levels * DISPATCH);
    let n = f64::from(cut.n_rows);
    let blocks = (n / f64::from(BLOCK)).ceil();
    let dispatches = blocks * (2.0 + 2.0 * f64::from(cut.n_bands()));
    let warshall = dispatches * DISPATCH + n * n * n / 32.0 / LOCAL_WORDS;
    if warshall < levels {
        Form::Warshall
    } else {
        Form::Auto
    }
}

/// Bytes of memory that a device moves in a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Speed {
    pub(crate) bytes: f64,
    /// Over the bus.
    pub(crate) bus: f64,
}

/// Finding and opening a device, and compiling the kernels.
const START: f64 = 0.4;
/// How often a closure is computed: pruning takes a few rounds, and later ones compute less.
const ROUNDS: f64 = 3.0;
/// Bytes that a pair costs, on either side: random words.
const BYTES_A_PAIR: f64 = 256.0;
/// Bytes a thread of a CPU ORs in a second, and how much more the second thread of a memory channel brings.
const CPU_BYTES: f64 = 8e9;

/// How long the CPU and a device would take, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) cpu: f64,
    pub(crate) gpu: f64,
}

impl Estimate {
    /// Estimates a task.
    pub(crate) fn new(task: &Task, dag: &Dag, speed: Speed, threads: usize) -> Self {
        let (n, m) = (task.n_nodes as f64, dag.n_edges() as f64);
        let pairs = f64::from(task.n_pairs());
        let cpu_speed = CPU_BYTES * (threads as f64).max(1.0);
        // A row has bits to the right of its own place only.
        let dense = m * n / 16.0 + pairs * BYTES_A_PAIR;
        let chains = m * task.n_chains as f64 * 4.0 + n * task.n_chains as f64;
        let has_chains = task.n_chains * 32 <= task.n_nodes;
        let cpu = if has_chains {
            chains / CPU_BYTES
        } else {
            dense / cpu_speed
        };
        let levels = n.sqrt().max(1.0) * DISPATCH;
        let moved = m * n / 8.0 + pairs * BYTES_A_PAIR;
        let up = 4.0 * (3.0 * n + m + task.readers.len() as f64 + 6.0 * task.runs.len() as f64);
        let gpu = START + up / speed.bus + ROUNDS * (levels + moved / speed.bytes);
        Estimate {
            cpu: cpu * ROUNDS,
            gpu,
        }
    }

    /// Whether the device pays.
    pub(crate) fn pays(self) -> bool {
        self.gpu < self.cpu / 1.5
    }

    /// Whether no device at all could pay.
    pub(crate) fn is_hopeless(self) -> bool {
        self.cpu < START
    }
}
