//! What stays on the device over the rounds: the graph, the closure, the runs and the pairs still open.
//!
//! The graph and the runs go up once. A round sends the new edges and the order of the rows that they change, and fetches
//! the edges that became known. The matrix is never fetched.

use kingsnake_context::budget::Budget;
use kingsnake_graph::prune::{DeviceError, Judgement, PairEdge, Relatives, Task};

use crate::closure::{Closing, Form, GraphBuffers, Used};
use crate::cost;
use crate::kernel::Kernel;
use crate::layout::{EstimateParams, Extra, NONE, Run, Step, THREADS};
use crate::matrix::{Band, Cut};
use crate::pairs::Pairs;
use crate::recording::{BufferId, Executor, Load, Recording, Traffic};
use crate::steps::Steps;

/// A graph by source, as the solver keeps it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Csr<'a> {
    pub(crate) starts: &'a [u32],
    pub(crate) targets: &'a [u32],
}

/// How a closure is computed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// A smaller limit for the matrix's buffers than the device's.
    pub(crate) most_band_bytes: Option<u64>,
    /// The kernels.
    pub(crate) form: Form,
    /// Whether threads are so many that latency counts, not work: true of a GPU, false of a CPU that plays one.
    pub(crate) is_parallel: bool,
}

/// The closure and all that belongs to it.
pub(crate) struct Resident<E> {
    pub(crate) executor: E,
    options: Options,
    cut: Cut,
    bands: Vec<Band>,
    graph: GraphBuffers,
    relatives: BufferId,
    /// The edges before pruning, by source.
    degrees: Vec<u32>,
    /// For each node the last edge that was added to it.
    heads: Vec<u32>,
    added: Vec<Extra>,
    room_for_added: usize,
    pairs: Option<Pairs>,
    pub(crate) traffic: Traffic,
    pub(crate) used: Used,
}

impl<E: Executor> Resident<E> {
    /// How the matrix would be cut, or why it cannot be kept.
    pub(crate) fn cut(executor: &E, options: Options, n_nodes: usize) -> Result<Cut, String> {
        let limit = executor.limits().buffer;
        Cut::new(n_nodes, options.most_band_bytes.unwrap_or(limit).min(limit))
    }

    /// Loads a graph.
    pub(crate) fn load(
        mut executor: E,
        options: Options,
        graph: Csr<'_>,
        budget: &Budget,
    ) -> Result<Self, DeviceError> {
        let n_nodes = graph.starts.len() - 1;
        let cut = Self::cut(&executor, options, n_nodes).map_err(DeviceError::Failed)?;
        let bands = cut.allocate(&mut executor)?;
        let room_for_added = (graph.targets.len() / 8).max(1024);
        let n = n_nodes as u64;
        let buffers = GraphBuffers {
            starts: executor.create("the graph", n + 1)?,
            targets: executor.create("the graph", graph.targets.len() as u64)?,
            extras: executor.create("the new edges", 2 * room_for_added as u64)?,
            steps: executor.create("the order", 2 * n)?,
            ends: executor.create("the levels", n)?,
            through: executor.create("a block's columns", 4 * n)?,
        };
        let relatives = executor.create("the estimate", 2 * n)?;
        let mut resident = Resident {
            executor,
            options,
            cut,
            bands,
            graph: buffers,
            relatives,
            degrees: graph.starts.windows(2).map(|at| at[1] - at[0]).collect(),
            heads: vec![NONE; n_nodes],
            added: Vec::new(),
            room_for_added,
            pairs: None,
            traffic: Traffic::default(),
            used: Used::default(),
        };
        let mut recording = Recording::default();
        recording.upload(buffers.starts, 0, graph.starts);
        recording.upload(buffers.targets, 0, graph.targets);
        resident.run(&recording, budget)?;
        Ok(resident)
    }

    /// Loads the runs. All their pairs are open.
    pub(crate) fn load_task(&mut self, task: &Task, budget: &Budget) -> Result<(), DeviceError> {
        let mut recording = Recording::default();
        let pairs = Pairs::load(&mut self.executor, &mut recording, task)?;
        self.pairs = Some(pairs);
        self.run(&recording, budget).map(|_| ())
    }

    fn run(
        &mut self,
        recording: &Recording,
        budget: &Budget,
    ) -> Result<Vec<Vec<u32>>, DeviceError> {
        self.traffic.add(recording.traffic());
        self.executor.run(recording, budget)
    }

    /// Appends edges to the lists of their sources. Only they travel, unless the buffer has to grow.
    fn append(
        &mut self,
        new: impl Iterator<Item = (u32, u32)>,
        recording: &mut Recording,
    ) -> Result<(), DeviceError> {
        let known = self.added.len();
        for (from, to) in new {
            let head = &mut self.heads[from as usize];
            self.added.push(Extra { to, next: *head });
            *head = self.added.len() as u32 - 1;
        }
        if self.added.len() > self.room_for_added {
            self.room_for_added = 2 * self.added.len();
            self.executor.free(self.graph.extras);
            let words = 2 * self.room_for_added as u64;
            self.graph.extras = self.executor.create("the new edges", words)?;
            recording.upload(self.graph.extras, 0, &self.added);
        } else {
            recording.upload(self.graph.extras, 2 * known as u64, &self.added[known..]);
        }
        Ok(())
    }

    /// Computes the rows of these nodes, with new edges added to the graph.
    pub(crate) fn close(
        &mut self,
        steps: &Steps,
        new: impl Iterator<Item = (u32, u32)>,
        budget: &Budget,
    ) -> Result<(), DeviceError> {
        let mut recording = Recording::default();
        self.append(new, &mut recording)?;
        if steps.nodes.is_empty() {
            return self.run(&recording, budget).map(|_| ());
        }
        let entries = steps.nodes.iter().map(|&node| Step {
            node,
            head: self.heads[node as usize],
        });
        let entries: Vec<Step> = entries.collect();
        recording.upload(self.graph.steps, 0, &entries);
        let rows: Vec<u64> = (0..steps.ends.len())
            .map(|level| {
                let range = steps.level(level);
                let nodes = &steps.nodes[range.start as usize..range.end as usize];
                nodes.iter().map(|&node| self.rows_of(node)).sum()
            })
            .collect();
        let form = match self.options.form {
            Form::Auto if self.options.is_parallel => cost::form(&self.cut, steps, &rows),
            form => form,
        };
        if form != Form::Warshall {
            recording.upload(self.graph.ends, 0, &steps.ends);
        }
        let closing = Closing {
            graph: self.graph,
            cut: &self.cut,
            bands: &self.bands,
            steps,
            rows: &rows,
            limits: self.executor.limits(),
        };
        let used = closing.record(&mut recording, form);
        self.used.add(used);
        self.run(&recording, budget).map(|_| ())
    }

    /// How many rows a node's own row is made of. Edges that were added count for one: they are few.
    fn rows_of(&self, node: u32) -> u64 {
        let node = node as usize;
        u64::from(self.degrees[node]) + 1 + u64::from(self.heads[node] != NONE)
    }

    /// Judges the open pairs.
    pub(crate) fn judge(&mut self, budget: &Budget) -> Result<Judgement, DeviceError> {
        let Some(pairs) = &mut self.pairs else {
            return Ok(Judgement::default());
        };
        pairs.judge(&mut self.executor, &self.bands, &mut self.traffic, budget)
    }

    /// The open pairs.
    pub(crate) fn open(&mut self, budget: &Budget) -> Result<Vec<u32>, DeviceError> {
        let Some(pairs) = &mut self.pairs else {
            return Ok(Vec::new());
        };
        pairs.list(&mut self.executor, &mut self.traffic, budget)
    }

    /// The edges of the open pairs that paths imply.
    pub(crate) fn implied(&mut self, budget: &Budget) -> Result<Vec<PairEdge>, DeviceError> {
        let Some(pairs) = &mut self.pairs else {
            return Ok(Vec::new());
        };
        pairs.implied(&mut self.executor, &self.bands, &mut self.traffic, budget)
    }

    /// Ancestors and descendants of every node.
    pub(crate) fn relatives(&mut self, budget: &Budget) -> Result<Relatives, DeviceError> {
        let mut recording = Recording::default();
        let limits = self.executor.limits();
        let n_rows = self.cut.n_rows;
        recording.clear(self.relatives);
        for band in &self.bands {
            let groups = (limits.work / band.row_words() / u64::from(THREADS))
                .clamp(1, u64::from(limits.groups)) as u32;
            for first_row in (0..n_rows).step_by((groups * THREADS) as usize) {
                let rows = (n_rows - first_row).min(groups * THREADS);
                let params = EstimateParams {
                    shape: band.shape,
                    first_row,
                    ..EstimateParams::default()
                };
                let buffers = [band.buffer, self.relatives];
                let groups = [rows.div_ceil(THREADS), band.shape.n_strips];
                let words = u64::from(rows) * band.row_words();
                let load = Load {
                    work: words,
                    busy: words,
                    turns: u64::from(rows.next_multiple_of(THREADS)) * band.row_words(),
                };
                recording.dispatch(Kernel::Estimate, params, &buffers, groups, load);
            }
        }
        recording.download(self.relatives, 0, 2 * u64::from(n_rows));
        let mut down = self.run(&recording, budget)?;
        let mut descendants = down.pop().unwrap_or_default();
        let ancestors = descendants.split_off(n_rows as usize);
        Ok(Relatives {
            ancestors,
            descendants,
        })
    }

    /// The size of the matrix, and its bands.
    pub(crate) fn size(&self) -> (u64, u32) {
        (self.cut.bytes(), self.cut.n_bands())
    }
}

#[cfg(test)]
impl<E: Executor> Resident<E> {
    /// The whole matrix, row by row, each padded to whole strips. For tests only: nothing else may fetch it.
    pub(crate) fn matrix(&mut self) -> Vec<u32> {
        let mut recording = Recording::default();
        for band in &self.bands {
            let words = band.row_words() * u64::from(self.cut.n_rows);
            recording.download(band.buffer, 0, words);
        }
        let bands = self
            .executor
            .run(&recording, &Budget::unlimited())
            .expect("the matrix can be fetched");
        let strip_words = self.cut.strip_words() as usize;
        let row_words = self.cut.n_strips as usize * strip_words;
        let n_rows = self.cut.n_rows as usize;
        let mut rows = vec![0; n_rows * row_words];
        let strips = bands
            .iter()
            .flat_map(|band| band.chunks_exact((n_rows * strip_words).max(1)));
        for (strip, words) in strips.enumerate() {
            for (row, words) in words.chunks_exact(strip_words).enumerate() {
                let at = row * row_words + strip * strip_words;
                rows[at..at + strip_words].copy_from_slice(words);
            }
        }
        rows
    }
}

/// A task's runs as the kernels read them; readers follow the pair starts in one list.
pub(crate) fn flat_runs(task: &Task) -> (Vec<Run>, Vec<u32>) {
    let n_starts = task.pair_starts.len() as u32;
    let end = |at: usize| match task.runs.get(at + 1) {
        Some(next) => next.readers,
        None => task.readers.len() as u32,
    };
    let runs = task.runs.iter().enumerate().map(|(at, run)| Run {
        head_begin: run.head_begin,
        head_commit: run.head_commit,
        last_commit: run.last_commit,
        readers: n_starts + run.readers,
        readers_end: n_starts + end(at),
        is_unread: run.is_unread.into(),
    });
    let mut lists = task.pair_starts.clone();
    lists.extend_from_slice(&task.readers);
    (runs.collect(), lists)
}
