//! The data that stays on the device over the rounds: the closure, the runs and the pairs still open.
//!
//! The runs go up once, and again where nodes get other places. A round sends its graph, computes the rows that it
//! changes, judges the pairs and fetches the edges that became known: one recording, and one wait. The matrix is never
//! fetched.

use kingsnake_context::budget::Budget;
use kingsnake_graph::Edge;
use kingsnake_graph::prune::{DeviceError, Judgement, PairEdge, Relatives, Task};
use kingsnake_graph::reach::Dag;

use crate::closure::{Closing, Form, GraphBuffers, Used};
use crate::kernel::Kernel;
use crate::layout::{EstimateParams, THREADS};
use crate::list::List;
use crate::matrix::{Band, Cut};
use crate::pairs::{Closed, Judge, Means, Pairs};
use crate::places::Places;
use crate::probe::Probe;
use crate::recording::{BufferId, Executor, Load, Recording, Traffic};
use crate::round::Round;

/// How a closure is computed, and pairs are judged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ClosureOptions {
    /// A smaller limit for the matrix's buffers than the device's.
    pub(crate) most_band_bytes: Option<u64>,
    /// The kernels of the closure.
    pub(crate) form: Form,
    /// The kernel that judges.
    pub(crate) judge: Judge,
}

/// The closure and everything that belongs to it.
pub(crate) struct Resident<E> {
    pub(crate) executor: E,
    options: ClosureOptions,
    cut: Cut,
    bands: Vec<Band>,
    strips: BufferId,
    steps: BufferId,
    starts: BufferId,
    ends: BufferId,
    targets: List,
    relatives: BufferId,
    /// Where the nodes stand, once there is a closure.
    pub(crate) places: Option<Places>,
    pairs: Option<Pairs>,
    /// Created at the first question about paths.
    probe: Option<Probe>,
    /// Commands for the next wait.
    pending: Recording,
    pub(crate) traffic: Traffic,
    pub(crate) used: Used,
}

/// The parts of a closure, borrowed separately.
struct Parts<'a, E> {
    pairs: Option<&'a mut Pairs>,
    probe: &'a mut Option<Probe>,
    places: Option<&'a Places>,
    pending: &'a mut Recording,
    closed: Closed<'a>,
    means: Means<'a, E>,
}

impl<E: Executor> Resident<E> {
    /// How the matrix would be cut, or why it cannot be kept.
    pub(crate) fn cut(
        executor: &E,
        options: ClosureOptions,
        n_nodes: usize,
    ) -> Result<Cut, String> {
        let limit = executor.limits().buffer;
        Cut::new(n_nodes, options.most_band_bytes.unwrap_or(limit).min(limit))
    }

    /// Makes room for the closure of a graph and its pairs.
    pub(crate) fn new(
        mut executor: E,
        options: ClosureOptions,
        dag: &Dag,
        task: Option<&Task>,
    ) -> Result<Self, DeviceError> {
        let cut = Self::cut(&executor, options, dag.n_nodes()).map_err(DeviceError::Failed)?;
        let n = dag.n_nodes() as u64;
        let pairs = match task {
            Some(task) => Some(Pairs::new(&mut executor, task, options.judge)?),
            None => None,
        };
        Ok(Resident {
            bands: cut.allocate(&mut executor)?,
            strips: executor.create("the strips", 3 * u64::from(cut.n_strips()))?,
            steps: executor.create("the order", n)?,
            starts: executor.create("the graph", n + 1)?,
            ends: executor.create("the levels", n)?,
            targets: List::new(&mut executor, "the graph", dag.n_edges() as u64)?,
            relatives: executor.create("the estimate", 2 * n)?,
            executor,
            options,
            cut,
            places: None,
            pairs,
            probe: None,
            pending: Recording::default(),
            traffic: Traffic::default(),
            used: Used::default(),
        })
    }

    /// Runs what is pending.
    pub(crate) fn flush(&mut self, budget: &Budget) -> Result<(), DeviceError> {
        let pending = std::mem::take(&mut self.pending);
        self.means(budget).run_some(&pending)
    }

    fn means<'a>(&'a mut self, budget: &'a Budget) -> Means<'a, E> {
        self.parts(budget).means
    }

    /// The parts of a closure, to be borrowed separately.
    fn parts<'a>(&'a mut self, budget: &'a Budget) -> Parts<'a, E> {
        Parts {
            pairs: self.pairs.as_mut(),
            probe: &mut self.probe,
            places: self.places.as_ref(),
            pending: &mut self.pending,
            closed: Closed {
                cut: &self.cut,
                bands: &self.bands,
                strips: self.strips,
            },
            means: Means {
                executor: &mut self.executor,
                traffic: &mut self.traffic,
                budget,
            },
        }
    }

    /// Computes the closure of a graph, which is the previous one plus these edges. Nothing runs before a result is requested.
    pub(crate) fn close(
        &mut self,
        dag: &Dag,
        new: &[Edge],
        budget: &Budget,
    ) -> Result<(), DeviceError> {
        self.flush(budget)?;
        let round = match &self.places {
            Some(places) if places.fit(dag, &self.cut) => Round::later(dag, new, places),
            _ => self.place(dag),
        };
        if round.steps.is_empty() {
            return Ok(());
        }
        let n_targets = round.targets.len() as u64;
        self.targets.expect(&mut self.executor, n_targets)?;
        let graph = GraphBuffers {
            strips: self.strips,
            steps: self.steps,
            starts: self.starts,
            targets: self.targets.buffer,
            ends: self.ends,
        };
        let recording = &mut self.pending;
        recording.upload(graph.strips, 0, &round.strips(&self.cut));
        recording.upload(graph.steps, 0, &round.steps);
        recording.upload(graph.starts, 0, &round.starts);
        recording.upload(graph.targets, 0, &round.targets);
        recording.upload(graph.ends, 0, &round.ends);
        let closing = Closing {
            graph,
            cut: &self.cut,
            bands: &self.bands,
            round: &round,
            limits: self.executor.limits(),
        };
        self.used.add(closing.record(recording, self.options.form));
        Ok(())
    }

    /// Assigns places to the nodes of a graph, and starts with an empty matrix.
    fn place(&mut self, dag: &Dag) -> Round {
        let places = Places::new(dag);
        if self.places.is_some() {
            for band in &self.bands {
                self.pending.clear(band.buffer);
            }
        }
        if let Some(pairs) = &self.pairs {
            pairs.place(&mut self.pending, &places);
        }
        let round = Round::first(dag, &places);
        self.places = Some(places);
        round
    }

    /// Takes the pending commands, and the pairs.
    fn ask<T: Default>(
        &mut self,
        budget: &Budget,
        ask: impl FnOnce(&mut Pairs, Recording, Closed<'_>, &mut Means<'_, E>) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let mut parts = self.parts(budget);
        let Some(pairs) = parts.pairs else {
            return Ok(T::default());
        };
        let pending = std::mem::take(parts.pending);
        ask(pairs, pending, parts.closed, &mut parts.means)
    }

    /// Judges the open pairs.
    pub(crate) fn judge(&mut self, budget: &Budget) -> Result<Judgement, DeviceError> {
        self.ask(budget, Pairs::judge)
    }

    /// The open pairs.
    pub(crate) fn open(&mut self, budget: &Budget) -> Result<Vec<u32>, DeviceError> {
        self.flush(budget)?;
        self.ask(budget, |pairs, _, _, means| pairs.list(means))
    }

    /// The edges of the open pairs that paths imply.
    pub(crate) fn implied(&mut self, budget: &Budget) -> Result<Vec<PairEdge>, DeviceError> {
        self.ask(budget, Pairs::implied)
    }

    /// Whether there are paths between these pairs of nodes.
    pub(crate) fn reaches(
        &mut self,
        asked: &[(u32, u32)],
        budget: &Budget,
    ) -> Result<Vec<bool>, DeviceError> {
        let mut parts = self.parts(budget);
        let Some(places) = parts.places.filter(|_| !asked.is_empty()) else {
            return Ok(vec![false; asked.len()]);
        };
        let probe = match parts.probe {
            Some(probe) => probe,
            none => none.insert(Probe::new(parts.means.executor)?),
        };
        let pending = std::mem::take(parts.pending);
        probe.ask(asked, places, pending, parts.closed, &mut parts.means)
    }

    /// Ancestors and descendants of every node.
    pub(crate) fn relatives(&mut self, budget: &Budget) -> Result<Relatives, DeviceError> {
        let mut recording = std::mem::take(&mut self.pending);
        self.estimate(&mut recording);
        let n_rows = self.cut.n_rows;
        recording.download(self.relatives, 0, 2 * u64::from(n_rows));
        let mut down = self.means(budget).run(&recording)?;
        let mut descendants = down.pop().unwrap_or_default();
        let ancestors = descendants.split_off(n_rows as usize);
        let by_node = |by_place: &[u32]| match &self.places {
            Some(places) => {
                let nodes = places.of_node.iter();
                nodes.map(|&place| by_place[place as usize]).collect()
            }
            None => by_place.to_vec(),
        };
        Ok(Relatives {
            ancestors: by_node(&ancestors),
            descendants: by_node(&descendants),
        })
    }

    fn estimate(&self, recording: &mut Recording) {
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
                let strip_rows = self.cut.limits[band.strips()].iter();
                let strip_rows = strip_rows.map(|&it| it.saturating_sub(first_row).min(rows));
                let busy: u64 = strip_rows.map(u64::from).sum();
                let load = Load {
                    work: u64::from(rows) * band.row_words(),
                    busy: busy * u64::from(self.cut.strip_words()),
                    turns: u64::from(rows.next_multiple_of(THREADS)) * band.row_words(),
                };
                let buffers = [band.buffer, self.strips, self.relatives];
                let groups = [rows.div_ceil(THREADS), band.shape.n_strips];
                recording.dispatch(Kernel::Estimate, params, &buffers, groups, load);
            }
        }
    }

    /// How many words of rows a graph's first closure ORs into others.
    pub(crate) fn words_ored(&self, dag: &Dag) -> u64 {
        let places = self.places.as_ref();
        places.map_or(0, |places| Round::first(dag, places).words_ored(&self.cut))
    }

    /// The size of the matrix, and its bands.
    pub(crate) fn size(&self) -> (u64, u32) {
        (self.cut.bytes(), self.cut.n_bands())
    }
}

#[cfg(test)]
impl<E: Executor> Resident<E> {
    /// The nodes that each node reaches, in order. For tests only: nothing else may fetch the matrix.
    pub(crate) fn reached(&mut self) -> Vec<Vec<u32>> {
        self.flush(&Budget::unlimited()).expect("it runs");
        let mut recording = Recording::default();
        for band in &self.bands {
            recording.download(band.buffer, 0, self.cut.band_words(band));
        }
        let bands = self
            .executor
            .run(&recording, &Budget::unlimited())
            .expect("the matrix can be fetched");
        let places = self.places.clone().unwrap_or_default();
        let mut reached = vec![Vec::new(); self.cut.n_rows as usize];
        let words = self.cut.strip_words() as usize;
        let bases = self.cut.bases();
        for (band, bits) in self.bands.iter().zip(&bands) {
            for strip in band.strips() {
                for row in 0..self.cut.limits[strip].min(self.cut.n_rows) as usize {
                    let at = 4 * bases[strip] as usize + row * words;
                    for bit in 0..words * 32 {
                        if bits[at + bit / 32] >> (bit % 32) & 1 == 1 {
                            let from = places.nodes[row] as usize;
                            reached[from].push(places.nodes[strip * words * 32 + bit]);
                        }
                    }
                }
            }
        }
        for nodes in &mut reached {
            nodes.sort_unstable();
        }
        reached
    }
}
