//! The pairs of runs on the device: judged against the closure, listed while they are open.

use kingsnake_context::budget::Budget;
use kingsnake_graph::prune::{DeviceError, Judgement, PairEdge, Task};

use crate::closure::a_thread_each;
use crate::kernel::Kernel;
use crate::layout::{
    COUNTERS, EDGES, FIRST_BAND, FIRST_BEFORE, IMPLIED, LAST_BAND, LISTED, MOST_VIOLATED, OPEN,
    PruneParams, THREADS, VIOLATED, VIOLATIONS,
};
use crate::matrix::Band;
use crate::recording::{BufferId, Executor, Limits, Load, Recording, Traffic};
use crate::resident::flat_runs;

/// The first guess at how long lists become; they grow when they turn out longer.
const ROOM: u64 = 1 << 14;

/// A pair's thread touches about this many words: its runs, a search, readers and bits.
const WORDS_A_PAIR: u64 = 64;

/// A buffer for a list that may have to grow.
#[derive(Clone, Copy, Debug)]
struct List {
    what: &'static str,
    buffer: BufferId,
    /// In words.
    room: u64,
}

impl List {
    fn new<E: Executor>(
        executor: &mut E,
        what: &'static str,
        words: u64,
    ) -> Result<Self, DeviceError> {
        let room = words.max(1);
        let buffer = executor.create(what, room)?;
        Ok(List { what, buffer, room })
    }

    /// Makes room; what was in the list is lost.
    fn expect<E: Executor>(&mut self, executor: &mut E, words: u64) -> Result<(), DeviceError> {
        if words > self.room {
            executor.free(self.buffer);
            *self = List::new(executor, self.what, words)?;
        }
        Ok(())
    }
}

/// The pairs.
pub(crate) struct Pairs {
    n_runs: u32,
    runs: BufferId,
    lists: BufferId,
    /// How many are open. Before the first judgement none is listed: item i is pair i.
    n_open: u32,
    is_listed: bool,
    open: List,
    next: List,
    impossible: List,
    edges: List,
    counters: BufferId,
}

impl Pairs {
    /// Makes the buffers, and records the uploads.
    pub(crate) fn load<E: Executor>(
        executor: &mut E,
        recording: &mut Recording,
        task: &Task,
    ) -> Result<Self, DeviceError> {
        let (runs, lists) = flat_runs(task);
        let run_words = size_of_val(runs.as_slice()) as u64 / 4;
        let pairs = Pairs {
            n_runs: runs.len() as u32,
            runs: executor.create("the runs", run_words)?,
            lists: executor.create("the readers", lists.len() as u64)?,
            n_open: task.n_pairs(),
            is_listed: false,
            open: List::new(executor, "the open pairs", 1)?,
            next: List::new(executor, "the open pairs", ROOM)?,
            impossible: List::new(executor, "the judgement", 16)?,
            edges: List::new(executor, "the forced edges", 2 * ROOM)?,
            counters: executor.create("the counters", COUNTERS as u64)?,
        };
        recording.upload(pairs.runs, 0, &runs);
        recording.upload(pairs.lists, 0, &lists);
        Ok(pairs)
    }

    /// Records a kernel over all items and bands.
    fn record(
        &self,
        recording: &mut Recording,
        kernel: Kernel,
        bands: &[Band],
        mode: u32,
        limits: Limits,
    ) {
        let most = (limits.work / WORDS_A_PAIR / u64::from(THREADS))
            .clamp(1, u64::from(limits.groups)) as u32
            * THREADS;
        let listed = if self.is_listed { LISTED } else { 0 };
        for (at, band) in bands.iter().enumerate() {
            let is_first = if at == 0 { FIRST_BAND } else { 0 };
            let is_last = if at + 1 == bands.len() { LAST_BAND } else { 0 };
            for first in (0..self.n_open).step_by(most as usize) {
                let end = self.n_open.min(first.saturating_add(most));
                let params = PruneParams {
                    shape: band.shape,
                    first,
                    end,
                    n_runs: self.n_runs,
                    mode: mode | listed | is_first | is_last,
                };
                let mut buffers = vec![
                    band.buffer,
                    self.runs,
                    self.lists,
                    self.open.buffer,
                    self.impossible.buffer,
                ];
                if kernel == Kernel::Emit {
                    buffers.extend([self.counters, self.edges.buffer, self.next.buffer]);
                }
                let groups = [(end - first).div_ceil(THREADS), 1];
                let load = Load {
                    work: u64::from(end - first) * WORDS_A_PAIR,
                    ..a_thread_each(end - first)
                };
                recording.dispatch(kernel, params, &buffers, groups, load);
            }
        }
    }

    /// Runs `emit` until its lists fit, and returns the counters and the edges.
    fn emit<E: Executor>(
        &mut self,
        mut recording: Recording,
        executor: &mut E,
        bands: &[Band],
        mode: u32,
        traffic: &mut Traffic,
        budget: &Budget,
    ) -> Result<(Vec<u32>, Vec<u64>), DeviceError> {
        loop {
            recording.clear(self.counters);
            self.record(&mut recording, Kernel::Emit, bands, mode, executor.limits());
            recording.download(self.counters, 0, COUNTERS as u64);
            traffic.add(recording.traffic());
            let mut down = executor.run(&recording, budget)?;
            let counters = down.pop().unwrap_or_default();
            let n_edges = u64::from(counters[EDGES]);
            let n_open = u64::from(counters[OPEN]);
            recording = Recording::default();
            if 2 * n_edges <= self.edges.room && n_open <= self.next.room {
                let edges = self.fetch(n_edges, executor, traffic, budget)?;
                return Ok((counters, edges));
            }
            self.edges.expect(executor, 2 * n_edges)?;
            self.next.expect(executor, n_open)?;
        }
    }

    /// Fetches listed edges, sorted.
    fn fetch<E: Executor>(
        &self,
        n_edges: u64,
        executor: &mut E,
        traffic: &mut Traffic,
        budget: &Budget,
    ) -> Result<Vec<u64>, DeviceError> {
        if n_edges == 0 {
            return Ok(Vec::new());
        }
        let mut recording = Recording::default();
        recording.download(self.edges.buffer, 0, 2 * n_edges);
        traffic.add(recording.traffic());
        let words = executor.run(&recording, budget)?.pop().unwrap_or_default();
        let edges = words.chunks_exact(2);
        let mut edges: Vec<u64> = edges
            .map(|edge| u64::from(edge[0]) << 32 | u64::from(edge[1]))
            .collect();
        edges.sort_unstable();
        Ok(edges)
    }

    /// Judges the open pairs, and keeps those that stay open.
    pub(crate) fn judge<E: Executor>(
        &mut self,
        executor: &mut E,
        bands: &[Band],
        traffic: &mut Traffic,
        budget: &Budget,
    ) -> Result<Judgement, DeviceError> {
        if self.n_open == 0 {
            return Ok(Judgement::default());
        }
        let groups = u64::from(self.n_open.div_ceil(THREADS));
        self.impossible
            .expect(executor, groups * u64::from(THREADS / 16))?;
        let mut recording = Recording::default();
        let limits = executor.limits();
        self.record(&mut recording, Kernel::Judge, bands, 0, limits);
        let (counters, edges) = self.emit(recording, executor, bands, 0, traffic, budget)?;
        std::mem::swap(&mut self.open, &mut self.next);
        self.n_open = counters[OPEN];
        self.is_listed = true;
        // What stays open is no more than what was.
        self.next.expect(executor, u64::from(self.n_open))?;
        let n_violations = (counters[VIOLATIONS] as usize).min(MOST_VIOLATED);
        let mut violations = counters[VIOLATED..VIOLATED + n_violations].to_vec();
        violations.sort_unstable();
        Ok(Judgement {
            forced: edges.into_iter().map(pair_edge).collect(),
            n_open: self.n_open.into(),
            n_violations: counters[VIOLATIONS].into(),
            violations,
        })
    }

    /// The edges of the open pairs that paths imply.
    pub(crate) fn implied<E: Executor>(
        &mut self,
        executor: &mut E,
        bands: &[Band],
        traffic: &mut Traffic,
        budget: &Budget,
    ) -> Result<Vec<PairEdge>, DeviceError> {
        if self.n_open == 0 {
            return Ok(Vec::new());
        }
        let recording = Recording::default();
        let (_, edges) = self.emit(recording, executor, bands, IMPLIED, traffic, budget)?;
        Ok(edges.into_iter().map(pair_edge).collect())
    }

    /// The open pairs, in order.
    pub(crate) fn list<E: Executor>(
        &mut self,
        executor: &mut E,
        traffic: &mut Traffic,
        budget: &Budget,
    ) -> Result<Vec<u32>, DeviceError> {
        if !self.is_listed {
            return Ok((0..self.n_open).collect());
        }
        if self.n_open == 0 {
            return Ok(Vec::new());
        }
        let mut recording = Recording::default();
        recording.download(self.open.buffer, 0, self.n_open.into());
        traffic.add(recording.traffic());
        let mut open = executor.run(&recording, budget)?.pop().unwrap_or_default();
        open.sort_unstable();
        Ok(open)
    }
}

fn pair_edge(packed: u64) -> PairEdge {
    let code = packed as u32;
    PairEdge {
        pair: (packed >> 32) as u32,
        first_before: code & FIRST_BEFORE != 0,
        edge: code & !FIRST_BEFORE,
    }
}
