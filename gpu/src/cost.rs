//! What things cost, roughly, to choose between them. docs/gpu.md derives the formulas; [`calibrate`](crate::calibrate) measures the
//! constants.

use std::sync::OnceLock;

use kingsnake_graph::cool::CoolingSize;
use kingsnake_graph::prune::Task;
use kingsnake_graph::reach::Dag;

use crate::adapter::{About, AdapterKind};
use crate::matrix::Cut;
use crate::steps::Steps;

/// A dispatch costs a GPU about this long even if it does nothing, by data sheets.
const DISPATCH: f64 = 6e-6;
/// A workgroup waits about this long for memory that it depends on.
const LATENCY: f64 = 0.6e-6;

/// The capabilities of a machine. wgpu does not report them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Speed {
    /// Bytes of its memory that it moves in a second.
    pub bytes: f64,
    /// Bytes that go over the bus in a second.
    pub bus: f64,
    /// Workgroups that run at once.
    pub groups: f64,
    /// Seconds that a dispatch takes even if it does nothing.
    pub dispatch: f64,
    /// Seconds that a workgroup waits for memory that it depends on.
    pub latency: f64,
    /// Seconds that finding and opening the device and compiling the kernels take.
    pub start: f64,
}

/// What was measured on an adapter before.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredSpeed {
    /// The adapter's name.
    pub name: String,
    /// Its driver and the driver's version.
    pub driver: String,
    /// Its constants.
    pub speed: Speed,
}

static READ: OnceLock<fn() -> Vec<MeasuredSpeed>> = OnceLock::new();
static MEASURED: OnceLock<Vec<MeasuredSpeed>> = OnceLock::new();

/// Makes [`DeviceChoice::Auto`](crate::DeviceChoice) count with what was measured on this machine, which is read when it is first
/// needed. The first call of a process counts.
pub fn use_measured(read: fn() -> Vec<MeasuredSpeed>) {
    let _ = READ.set(read);
}

impl Speed {
    /// How many of the constants a calibration fits: all but the start, which is measured by itself.
    pub(crate) const N_FITTED: usize = 5;

    /// What was measured on an adapter by this driver, else a small adapter of its kind.
    pub(crate) fn of(about: &About) -> Self {
        let all = MEASURED.get_or_init(|| READ.get().map_or_else(Vec::new, |read| read()));
        let own = all
            .iter()
            .find(|it| it.name == about.name && it.driver == about.driver);
        own.map_or_else(|| Self::of_kind(about.kind), |it| it.speed)
    }

    /// A small adapter of a kind, by data sheets.
    pub(crate) fn of_kind(kind: AdapterKind) -> Self {
        let (bytes, bus, groups) = match kind {
            AdapterKind::Discrete => (300e9, 6e9, 150.0),
            AdapterKind::Integrated => (40e9, 10e9, 40.0),
            AdapterKind::Virtual | AdapterKind::Other => (100e9, 3e9, 80.0),
            AdapterKind::Software => (0.2e9, 2e9, 2.0),
        };
        Speed {
            bytes,
            bus,
            groups,
            dispatch: DISPATCH,
            latency: LATENCY,
            start: START,
        }
    }

    /// The same with one of the fitted constants times a factor.
    pub(crate) fn with(mut self, constant: usize, by: f64) -> Self {
        let constants = [
            &mut self.bytes,
            &mut self.bus,
            &mut self.groups,
            &mut self.dispatch,
            &mut self.latency,
        ];
        *constants[constant] *= by;
        self
    }
}

/// A level of a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    pub(crate) nodes: f64,
    /// Rows that its nodes are made of, including their own.
    pub(crate) rows: f64,
}

impl Level {
    fn all(steps: &Steps, rows: &[u64]) -> Vec<Level> {
        let levels = rows.iter().enumerate();
        levels
            .map(|(level, &rows)| Level {
                nodes: steps.level(level).len() as f64,
                rows: rows as f64,
            })
            .collect()
    }
}

/// How long a closure takes, in seconds: each level in the better of its two ways.
pub(crate) fn closure(cut: &Cut, levels: &[Level], speed: Speed) -> f64 {
    let (lanes, strips) = (f64::from(cut.lanes()), f64::from(cut.n_strips()));
    let bands = f64::from(cut.n_bands());
    let waits = |level: &Level, turns: f64| {
        speed.latency * (1.0 + turns * level.rows / level.nodes.max(1.0))
    };
    let latency: f64 = levels
        .iter()
        .map(|level| {
            let turns = (level.nodes / lanes).ceil();
            let waves = (strips / speed.groups).ceil();
            let sweep = waves * waits(level, turns);
            let spread = (turns * strips / speed.groups).ceil();
            sweep.min(bands * speed.dispatch + waits(level, spread))
        })
        .sum();
    let rows: f64 = levels.iter().map(|level| level.nodes + level.rows).sum();
    let moved = row_bytes(cut) * rows / speed.bytes;
    bands * speed.dispatch + latency.max(moved)
}

/// The bytes of a row, on average: strips have only the rows that can have a bit in them.
fn row_bytes(cut: &Cut) -> f64 {
    cut.bytes() as f64 / f64::from(cut.n_rows.max(1))
}

/// Bytes that `judge_rows` reads of each run that it tests.
const TEST_BYTES: f64 = 32.0;

/// Whether judging the open pairs run by run, with rows in workgroup memory, reads less than pair by pair.
pub(crate) fn rows_pay(task: &Task, n_tests: u64, n_open: u32, cut: &Cut) -> bool {
    let split = task.runs.iter();
    let split = split
        .filter(|run| run.head_begin != run.head_commit)
        .count();
    let rows = (task.runs.len() + split) as f64 * row_bytes(cut);
    rows + n_tests as f64 * TEST_BYTES < f64::from(n_open) * BYTES_A_PAIR
}

/// Finding and opening a device, and compiling the kernels.
pub(crate) const START: f64 = 0.4;
/// How often a closure is computed: pruning takes a few rounds, and later ones compute less.
const ROUNDS: f64 = 3.0;
/// Bytes that a pair costs, on either side: random words.
const BYTES_A_PAIR: f64 = 256.0;
/// Bytes of rows that a thread of a CPU ORs in a second, as `bench reach` measured them.
pub(crate) const CPU_BYTES: f64 = 15e9;
/// Bytes of clocks that it compares.
const CLOCK_BYTES: f64 = 6e9;

/// How long the CPU would take for a task, in seconds.
pub(crate) fn on_cpu(task: &Task, dag: &Dag, threads: usize) -> f64 {
    let (n, m) = (task.n_nodes as f64, dag.n_edges() as f64);
    let chains = task.n_chains as f64;
    let has_chains = task.n_chains * 32 <= task.n_nodes;
    let round = if has_chains {
        (m * chains * 4.0 + n * chains) / CLOCK_BYTES
    } else {
        (dense_bytes(n, m) + pair_bytes(task)) / (CPU_BYTES * (threads as f64).max(1.0))
    };
    ROUNDS * round
}

/// Whether no device could pay, given the CPU's time.
pub(crate) fn is_hopeless(on_cpu: f64) -> bool {
    on_cpu < START
}

/// How long a device would take for a task, in seconds.
pub(crate) fn on_device(task: &Task, dag: &Dag, speed: Speed) -> f64 {
    let (n, m) = (task.n_nodes as f64, dag.n_edges() as f64);
    let up = 4.0 * (3.0 * n + m + task.readers.len() as f64 + 6.0 * task.runs.len() as f64);
    let round = ClosureModel::of(dag).seconds(speed) + pair_bytes(task) / speed.bytes;
    speed.start + up / speed.bus + ROUNDS * round
}

/// Whether a device pays: estimates are rough, so it must be clearly faster.
pub(crate) fn pays(on_device: f64, on_cpu: f64) -> bool {
    on_device < on_cpu / 1.5
}

fn pair_bytes(task: &Task) -> f64 {
    f64::from(task.n_pairs()) * BYTES_A_PAIR
}

/// Bytes that the CPU ORs for a closure: a row has bits to the right of its own place only.
pub(crate) fn dense_bytes(n: f64, m: f64) -> f64 {
    m * n / 16.0
}

/// What the model needs of a graph's first closure; nothing where the matrix cannot be cut.
pub(crate) struct ClosureModel(Option<(Cut, Vec<Level>)>);

impl ClosureModel {
    /// That of a graph.
    pub(crate) fn of(dag: &Dag) -> Self {
        let Ok(cut) = Cut::new(dag.n_nodes(), u64::MAX) else {
            return ClosureModel(None);
        };
        let steps = Steps::all(dag);
        let rows: Vec<u64> = (0..steps.ends.len())
            .map(|level| {
                let range = steps.level(level);
                let nodes = &steps.nodes[range.start as usize..range.end as usize];
                let rows = nodes
                    .iter()
                    .map(|&node| dag.successors(node).len() as u64 + 1);
                rows.sum()
            })
            .collect();
        ClosureModel(Some((cut, Level::all(&steps, &rows))))
    }

    /// How many levels the graph has.
    pub(crate) fn n_levels(&self) -> usize {
        self.0.as_ref().map_or(0, |it| it.1.len())
    }

    /// How long it takes a device.
    pub(crate) fn seconds(&self, speed: Speed) -> f64 {
        let model = self.0.as_ref();
        model.map_or(f64::INFINITY, |(cut, levels)| closure(cut, levels, speed))
    }
}

/// How long a thread of a CPU takes for a word of a node's lists while it cools: mostly cache misses.
const CPU_WORD: f64 = 10e-9;
/// How often a move waits for memory whose address the last access returned: mover, lists, words, points.
const HOPS: f64 = 4.0;
/// Bytes that a word of a list costs: itself, and the sector of the point that it names.
const WORD_BYTES: f64 = 36.0;

/// How long the CPU would take to cool a line, in seconds.
pub(crate) fn cooling_on_cpu(size: &CoolingSize, threads: usize) -> f64 {
    let words = size.n_sweeps as f64 * size.n_moved_words as f64;
    words * CPU_WORD / (threads as f64).max(1.0)
}

/// How long a device would take to cool a line, in seconds.
pub(crate) fn cooling_on_device(size: &CoolingSize, speed: Speed) -> f64 {
    let wait = |&n_movers: &u32| {
        let waves = (f64::from(n_movers) / speed.groups).ceil();
        speed.dispatch + waves * HOPS * speed.latency
    };
    let waits: f64 = size.colours.iter().map(wait).sum();
    let counted = 2.0 * speed.dispatch + 12.0 * size.n_edges as f64 / speed.bytes;
    let moved = WORD_BYTES * size.n_moved_words as f64 / speed.bytes;
    let up = 4.0 * size.words_up() as f64 / speed.bus;
    speed.start + up + size.n_sweeps as f64 * (waits.max(moved) + counted)
}
