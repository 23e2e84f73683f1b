//! The interface of pruning to a device: it keeps the closure of the known graph, and judges every pair of runs against it.
//!
//! A device sees nodes, edges and runs, never transactions or levels.
//! Pairs are numbered: run by run, and for each run its later neighbours of the same key in turn.

use std::time::Duration;
use thiserror::Error;

use crate::edge::Edge;
use crate::problem::Problem;
use crate::reach::Dag;
use kingsnake_context::budget::{Budget, StopReason};

/// A run as nodes of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunNodes {
    /// Where the oldest version is installed.
    pub head_begin: u32,
    /// Where its writer commits.
    pub head_commit: u32,
    /// Where the writer of the newest version commits.
    pub last_commit: u32,
    /// Where the readers of the newest version start in [`Task::readers`]; they end where the next run's start.
    pub readers: u32,
    /// Whether a pair with another such run is no constraint.
    pub is_unread: bool,
}

/// The task of pruning, as flat arrays.
#[derive(Clone, Debug)]
pub struct Task {
    /// The number of nodes.
    pub n_nodes: usize,
    /// The runs of all keys, key by key.
    pub runs: Vec<RunNodes>,
    /// For each run the number of its first pair, and at the end the number of all pairs.
    pub pair_starts: Vec<u32>,
    /// The nodes where the newest versions are read, run by run.
    pub readers: Vec<u32>,
    /// How many chains the CPU would need, to compare costs.
    pub n_chains: usize,
}

impl Task {
    /// Flattens a problem; `None` where there are too many pairs to number them.
    pub fn new(problem: &Problem) -> Option<Self> {
        let orders = &problem.orders;
        let mut task = Task {
            n_nodes: problem.n_nodes,
            runs: Vec::with_capacity(orders.len()),
            pair_starts: Vec::with_capacity(orders.len() + 1),
            readers: Vec::new(),
            n_chains: problem.chains.len(),
        };
        let mut n_pairs = 0_u64;
        for key in 0..orders.n_keys() {
            let range = orders.range(key);
            for at in range.clone() {
                let run = orders.run(at as u32);
                task.pair_starts.push(u32::try_from(n_pairs).ok()?);
                n_pairs += (range.end - at - 1) as u64;
                task.runs.push(RunNodes {
                    head_begin: run.install,
                    head_commit: run.commit,
                    last_commit: run.last_commit,
                    readers: task.readers.len() as u32,
                    is_unread: run.is_free,
                });
                task.readers.extend_from_slice(orders.readers(at as u32));
            }
        }
        task.pair_starts.push(u32::try_from(n_pairs).ok()?);
        Some(task)
    }

    /// Number of pairs, including those that are not constraints.
    pub fn n_pairs(&self) -> u32 {
        self.pair_starts.last().copied().unwrap_or(0)
    }

    /// The two runs of a pair, by their places.
    pub fn pair(&self, number: u32) -> (u32, u32) {
        let first = self.pair_starts.partition_point(|&start| start <= number) - 1;
        let second = first as u32 + 1 + (number - self.pair_starts[first]);
        (first as u32, second)
    }
}

/// An edge of a pair, one way round: the answers of a device are lists of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PairEdge {
    /// The pair's number.
    pub pair: u32,
    /// Whether the pair's first run comes before the second; else the second before the first.
    pub first_before: bool,
    /// 0 is the edge from writer to writer, i + 1 the edge of reader i of the run that comes before.
    pub edge: u32,
}

impl PairEdge {
    /// The edge with its reason.
    pub(super) fn edge(self, problem: &Problem, task: &Task) -> Option<Edge> {
        let (first, second) = task.pair(self.pair);
        let (before, after) = if self.first_before {
            (first, second)
        } else {
            (second, first)
        };
        problem.orders.edge(before, after, self.edge)
    }
}

/// The result of one round on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The edges that became known, those left out that paths imply already; pair by pair.
    pub forced: Vec<PairEdge>,
    /// How many pairs are still open.
    pub n_open: u64,
    /// How many pairs cannot be ordered either way: each is a contradiction.
    pub n_violations: u64,
    /// Some of them, in ascending order.
    pub violations: Vec<u32>,
}

/// How many nodes reach each node, and how many it reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Relatives {
    /// How many nodes reach each node.
    pub ancestors: Vec<u32>,
    /// How many nodes each node reaches.
    pub descendants: Vec<u32>,
}

/// Why a device gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DeviceError {
    /// The budget ended.
    #[error("{0}")]
    Stopped(StopReason),
    /// The device failed; the CPU can answer.
    #[error("{0}")]
    Failed(String),
}

impl From<StopReason> for DeviceError {
    fn from(reason: StopReason) -> Self {
        DeviceError::Stopped(reason)
    }
}

/// A device's reply to an offered task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It accepts, and why it was chosen.
    Taken(String),
    /// It should not be used, and why. It was not requested by name, so this is no warning.
    Declined(String),
    /// It was requested but cannot, and why.
    Failed(String),
}

/// The device, and its data transfer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceStats {
    /// The adapter's name; empty where none was used.
    pub name: String,
    /// The interface through which it was reached, such as `vulkan`.
    pub backend: String,
    /// `discrete`, `integrated`, `virtual`, `software` or `other`; empty where none was used.
    pub kind: String,
    /// Its driver and version; empty where none was used.
    pub driver: String,
    /// Why it was used, or why not.
    pub why: String,
    /// The failure, after which the CPU computed.
    pub warning: Option<String>,
    /// The form of the closure kernel: `sweep`, `levels`, or both.
    pub form: String,
    /// Bytes sent to the device.
    pub bytes_up: u64,
    /// Bytes fetched from it.
    pub bytes_down: u64,
    /// Kernels started.
    pub dispatches: u64,
    /// The workgroups of all of them.
    pub workgroups: u64,
    /// How often the host waited for the device.
    pub round_trips: u64,
    /// The share of their threads' turns that had something to do.
    pub occupancy: f64,
    /// The size of the closure.
    pub matrix_bytes: u64,
    /// Into how many buffers it was split.
    pub bands: u32,
    /// The time that the kernels took, where the device can tell.
    pub time: Option<Duration>,
}

/// Keeps a closure and judges pairs on another device than this CPU.
pub trait Device {
    /// Accepts the task, or gives a reason against it. Loads nothing yet.
    fn offer(&mut self, task: &Task, dag: &Dag, budget: &Budget) -> Offer;

    /// Loads the task and the known graph. All pairs are open.
    fn load(&mut self, task: &Task, dag: &Dag, budget: &Budget) -> Result<(), DeviceError>;

    /// Computes the closure, first of the graph that was loaded, then of the same graph with these edges more.
    fn close(&mut self, dag: &Dag, new: &[Edge], budget: &Budget) -> Result<(), DeviceError>;

    /// Judges the pairs that are open against the closure.
    fn judge(&mut self, budget: &Budget) -> Result<Judgement, DeviceError>;

    /// The pairs that are open, in ascending order.
    fn open(&mut self, budget: &Budget) -> Result<Vec<u32>, DeviceError>;

    /// Of the edges of the open pairs, both ways round, those that paths imply.
    fn implied(&mut self, budget: &Budget) -> Result<Vec<PairEdge>, DeviceError>;

    /// Whether there is a path of at least one edge, for each of these pairs of nodes: what choices depend on.
    fn reaches(&mut self, asked: &[(u32, u32)], budget: &Budget) -> Result<Vec<bool>, DeviceError>;

    /// Counts ancestors and descendants.
    fn relatives(&mut self, budget: &Budget) -> Result<Relatives, DeviceError>;

    /// Statistics so far.
    fn stats(&self) -> DeviceStats;
}
