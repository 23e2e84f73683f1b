//! The pairs of runs on the device: judged against the closure, and listed while open.

use kingsnake_context::budget::Budget;
use kingsnake_graph::prune::{DeviceError, Judgement, PairEdge, Task};

use crate::closure::a_thread_each;
use crate::cost;
use crate::kernel::Kernel;
use crate::layout::{
    COUNTERS, EDGES, FIRST_BEFORE, GROUP, IMPLIED, LAST_BAND, LISTED, MOST_VIOLATED, OPEN,
    PruneParams, Run, THREADS, UPPER, VIOLATED, VIOLATIONS,
};
use crate::list::List;
use crate::matrix::{Band, Cut};
use crate::places::Places;
use crate::recording::{BufferId, Executor, Limits, Load, Recording, Traffic};

/// The first guess of the lengths of lists; they grow if they are longer.
const ROOM: u64 = 1 << 14;
/// Maximum number of edges fetched together with the counters, before their number is known.
const MOST_ALONG: u64 = 1 << 18;
/// Minimum number of edges fetched this way after the first round.
const LEAST_ALONG: u64 = 1 << 10;
/// A pair's thread touches about this many words: its runs, a search, readers and bits.
const WORDS_A_PAIR: u64 = 64;

/// The kernel that judges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Judge {
    /// The one that reads less.
    #[default]
    Auto,
    /// One thread per pair.
    Pairs,
    /// One workgroup per run, with the run's rows in workgroup memory.
    Rows,
}

/// The matrix that pairs are judged against.
#[derive(Clone, Copy)]
pub(crate) struct Closed<'a> {
    pub(crate) cut: &'a Cut,
    pub(crate) bands: &'a [Band],
    pub(crate) strips: BufferId,
}

/// The executor, and its statistics.
pub(crate) struct Means<'a, E> {
    pub(crate) executor: &'a mut E,
    pub(crate) traffic: &'a mut Traffic,
    pub(crate) budget: &'a Budget,
}

impl<E: Executor> Means<'_, E> {
    pub(crate) fn run(&mut self, recording: &Recording) -> Result<Vec<Vec<u32>>, DeviceError> {
        self.traffic.add(recording.traffic());
        self.traffic.round_trips += 1;
        self.executor.run(recording, self.budget)
    }

    /// Runs a recording that fetches nothing, unless it is empty.
    pub(crate) fn run_some(&mut self, recording: &Recording) -> Result<(), DeviceError> {
        if recording.commands.is_empty() {
            return Ok(());
        }
        self.run(recording).map(|_| ())
    }
}

/// The pairs.
pub(crate) struct Pairs {
    task: Task,
    judge: Judge,
    /// The tests that `judge_rows` makes: the runs of its key, for each run; in all, and in whole workgroups.
    tests: [u64; 2],
    runs: BufferId,
    lists: BufferId,
    /// Number of open pairs. Before the first judgement none is listed: item i is pair i.
    n_open: u32,
    is_listed: bool,
    /// How many edges the last round forced.
    n_forced: Option<u64>,
    /// Which half of `open` the open pairs are listed in.
    is_upper: bool,
    open: List,
    impossible: BufferId,
    edges: List,
    counters: BufferId,
}

impl Pairs {
    /// Makes the buffers. All pairs are open.
    pub(crate) fn new<E: Executor>(
        executor: &mut E,
        task: &Task,
        judge: Judge,
    ) -> Result<Self, DeviceError> {
        let n_runs = task.runs.len() as u64;
        let n_lists = task.pair_starts.len() + task.readers.len();
        let flags = 2 * u64::from(task.n_pairs().div_ceil(32));
        let neighbours = keys(task).map(|key| key.len() as u64);
        let neighbours: Vec<u64> = neighbours.collect();
        let group = u64::from(GROUP);
        Ok(Pairs {
            judge,
            tests: [
                neighbours.iter().map(|n| n * n).sum(),
                neighbours
                    .iter()
                    .map(|n| n * n.next_multiple_of(group))
                    .sum(),
            ],
            runs: executor.create("the runs", n_runs * size_of::<Run>() as u64 / 4)?,
            lists: executor.create("the readers", n_lists as u64)?,
            n_open: task.n_pairs(),
            is_listed: false,
            n_forced: None,
            is_upper: false,
            open: List::new(executor, "the open pairs", 2 * ROOM)?,
            impossible: executor.create("the judgement", flags)?,
            edges: List::new(executor, "the forced edges", 2 * ROOM)?,
            counters: executor.create("the counters", COUNTERS as u64)?,
            task: task.clone(),
        })
    }

    /// Records the upload of the runs, after their nodes got places.
    pub(crate) fn place(&self, recording: &mut Recording, places: &Places) {
        let (runs, lists) = placed_runs(&self.task, places);
        recording.upload(self.runs, 0, &runs);
        recording.upload(self.lists, 0, &lists);
    }

    /// How many edges are fetched along with the counters: twice as many as the last round forced, and some more.
    fn along(&self, mode: u32) -> u64 {
        let foreseen = match self.n_forced {
            Some(n_forced) if mode & IMPLIED == 0 => 2 * n_forced + LEAST_ALONG,
            _ => MOST_ALONG,
        };
        foreseen
            .min(2 * u64::from(self.n_open))
            .min(MOST_ALONG)
            .min(self.edges.room / 2)
    }

    /// Whether one workgroup per run reads less than one thread per pair.
    fn is_by_rows(&self, cut: &Cut) -> bool {
        match self.judge {
            Judge::Auto => cost::rows_pay(&self.task, self.tests[0], self.n_open, cut),
            Judge::Pairs => false,
            Judge::Rows => true,
        }
    }

    fn buffers(&self, band: &Band, closed: Closed<'_>, kernel: Kernel) -> Vec<BufferId> {
        let mut buffers = vec![
            band.buffer,
            closed.strips,
            self.runs,
            self.lists,
            self.impossible,
        ];
        if kernel != Kernel::JudgeRows {
            buffers.push(self.open.buffer);
        }
        if kernel == Kernel::Emit {
            buffers.extend([self.counters, self.edges.buffer]);
        }
        buffers
    }

    fn params(&self, band: &Band, first: u32, end: u32, mode: u32) -> PruneParams {
        PruneParams {
            shape: band.shape,
            first,
            end,
            n_runs: self.task.runs.len() as u32,
            mode,
        }
    }

    /// Records a kernel with a thread a pair, over all open pairs and bands.
    fn over_pairs(
        &self,
        recording: &mut Recording,
        kernel: Kernel,
        closed: Closed<'_>,
        mode: u32,
        limits: Limits,
    ) {
        let most = (limits.work / WORDS_A_PAIR / u64::from(THREADS))
            .clamp(1, u64::from(limits.groups)) as u32
            * THREADS;
        let listed = if self.is_listed { LISTED } else { 0 };
        let upper = if self.is_upper { UPPER } else { 0 };
        for (at, band) in closed.bands.iter().enumerate() {
            let is_last = at + 1 == closed.bands.len();
            let last = if is_last { LAST_BAND } else { 0 };
            for first in (0..self.n_open).step_by(most as usize) {
                let end = self.n_open.min(first.saturating_add(most));
                let params = self.params(band, first, end, mode | listed | upper | last);
                let groups = [(end - first).div_ceil(THREADS), 1];
                let load = Load {
                    work: u64::from(end - first) * WORDS_A_PAIR,
                    ..a_thread_each(end - first)
                };
                let buffers = self.buffers(band, closed, kernel);
                recording.dispatch(kernel, params, &buffers, groups, load);
            }
        }
    }

    /// Records `judge_rows` over all runs and bands.
    fn over_runs(&self, recording: &mut Recording, closed: Closed<'_>, limits: Limits) {
        let n_runs = self.task.runs.len() as u32;
        let [busy, turns] = self.tests;
        for band in closed.bands {
            let all = 2 * u64::from(n_runs) * band.row_words() + 8 * busy;
            let parts = (all / limits.work + 1).min(u64::from(n_runs));
            let most = n_runs.div_ceil(parts as u32).clamp(1, limits.groups);
            for first in (0..n_runs).step_by(most as usize) {
                let end = n_runs.min(first + most);
                // Parts are distinguished only to keep dispatches short: the first represents all.
                let is_first = first == 0;
                let load = Load {
                    work: all / parts,
                    busy: if is_first { busy } else { 0 },
                    turns: if is_first { turns } else { 0 },
                };
                let params = self.params(band, first, end, 0);
                let buffers = self.buffers(band, closed, Kernel::JudgeRows);
                recording.dispatch(Kernel::JudgeRows, params, &buffers, [end - first, 1], load);
            }
        }
    }

    /// Runs `emit` until its lists fit, and returns the counters and the edges, sorted.
    fn emit<E: Executor>(
        &mut self,
        mut recording: Recording,
        closed: Closed<'_>,
        mode: u32,
        means: &mut Means<'_, E>,
    ) -> Result<(Vec<u32>, Vec<u64>), DeviceError> {
        loop {
            let along = self.along(mode);
            recording.clear(self.counters);
            let limits = means.executor.limits();
            self.over_pairs(&mut recording, Kernel::Emit, closed, mode, limits);
            recording.download(self.edges.buffer, 0, 2 * along);
            recording.download(self.counters, 0, COUNTERS as u64);
            let mut down = means.run(&recording)?;
            let counters = down.pop().unwrap_or_default();
            let mut edges = down.pop().unwrap_or_default();
            let n_edges = u64::from(counters[EDGES]);
            let n_open = u64::from(counters[OPEN]);
            if 2 * n_edges <= self.edges.room && 2 * n_open <= self.open.room {
                edges.truncate(2 * n_edges as usize);
                if n_edges > along {
                    edges.extend(self.rest(along, n_edges, means)?);
                }
                return Ok((counters, sorted(&edges)));
            }
            recording = Recording::default();
            self.edges.expect(means.executor, 2 * n_edges)?;
            // Only the first list can be too long: fewer pairs stay open each time.
            self.open.expect(means.executor, 2 * n_open)?;
        }
    }

    /// The edges that were not fetched together with the counters.
    fn rest<E: Executor>(
        &self,
        along: u64,
        n_edges: u64,
        means: &mut Means<'_, E>,
    ) -> Result<Vec<u32>, DeviceError> {
        let mut recording = Recording::default();
        recording.download(self.edges.buffer, 2 * along, 2 * (n_edges - along));
        Ok(means.run(&recording)?.pop().unwrap_or_default())
    }

    /// Judges the open pairs after what was recorded, and keeps those that stay open.
    pub(crate) fn judge<E: Executor>(
        &mut self,
        mut recording: Recording,
        closed: Closed<'_>,
        means: &mut Means<'_, E>,
    ) -> Result<Judgement, DeviceError> {
        if self.n_open == 0 {
            means.run_some(&recording)?;
            return Ok(Judgement::default());
        }
        recording.clear(self.impossible);
        let limits = means.executor.limits();
        if self.is_by_rows(closed.cut) {
            self.over_runs(&mut recording, closed, limits);
        } else {
            self.over_pairs(&mut recording, Kernel::Judge, closed, 0, limits);
        }
        let (counters, edges) = self.emit(recording, closed, 0, means)?;
        self.n_open = counters[OPEN];
        self.is_listed = true;
        self.n_forced = Some(edges.len() as u64);
        self.is_upper = !self.is_upper;
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

    /// The edges of the open pairs that paths imply, after what was recorded.
    pub(crate) fn implied<E: Executor>(
        &mut self,
        recording: Recording,
        closed: Closed<'_>,
        means: &mut Means<'_, E>,
    ) -> Result<Vec<PairEdge>, DeviceError> {
        if self.n_open == 0 {
            means.run_some(&recording)?;
            return Ok(Vec::new());
        }
        let (_, edges) = self.emit(recording, closed, IMPLIED, means)?;
        Ok(edges.into_iter().map(pair_edge).collect())
    }

    /// The open pairs, in order.
    pub(crate) fn list<E: Executor>(
        &mut self,
        means: &mut Means<'_, E>,
    ) -> Result<Vec<u32>, DeviceError> {
        if !self.is_listed {
            return Ok((0..self.n_open).collect());
        }
        if self.n_open == 0 {
            return Ok(Vec::new());
        }
        let mut recording = Recording::default();
        let half = if self.is_upper { self.open.room / 2 } else { 0 };
        recording.download(self.open.buffer, half, self.n_open.into());
        let mut open = means.run(&recording)?.pop().unwrap_or_default();
        open.sort_unstable();
        Ok(open)
    }
}

/// The runs of each key, as places in the task's runs. A key's last run has no pair of its own.
fn keys(task: &Task) -> impl Iterator<Item = std::ops::Range<usize>> {
    let mut first = 0;
    (0..task.runs.len()).filter_map(move |run| {
        let is_last = task.pair_starts[run] == task.pair_starts[run + 1];
        is_last.then(|| std::mem::replace(&mut first, run + 1)..run + 1)
    })
}

/// A task's runs as the kernels read them; readers follow the pair starts in one list.
fn placed_runs(task: &Task, places: &Places) -> (Vec<Run>, Vec<u32>) {
    let place = |node: u32| places.of_node[node as usize];
    let n_starts = task.pair_starts.len() as u32;
    let end = |at: usize| match task.runs.get(at + 1) {
        Some(next) => next.readers,
        None => task.readers.len() as u32,
    };
    let mut runs = Vec::with_capacity(task.runs.len());
    for key in keys(task) {
        for at in key.clone() {
            let run = &task.runs[at];
            runs.push(Run {
                head_begin: place(run.head_begin),
                head_commit: place(run.head_commit),
                last_commit: place(run.last_commit),
                readers: n_starts + run.readers,
                readers_end: n_starts + end(at),
                is_unread: run.is_unread.into(),
                first: key.start as u32,
                end: key.end as u32,
            });
        }
    }
    let mut lists = task.pair_starts.clone();
    lists.extend(task.readers.iter().map(|&reader| place(reader)));
    (runs, lists)
}

/// Listed edges in order, each in one number.
fn sorted(words: &[u32]) -> Vec<u64> {
    let edges = words.chunks_exact(2);
    let mut edges: Vec<u64> = edges
        .map(|edge| u64::from(edge[0]) << 32 | u64::from(edge[1]))
        .collect();
    edges.sort_unstable();
    edges
}

fn pair_edge(packed: u64) -> PairEdge {
    let code = packed as u32;
    PairEdge {
        pair: (packed >> 32) as u32,
        first_before: code & FIRST_BEFORE != 0,
        edge: code & !FIRST_BEFORE,
    }
}
