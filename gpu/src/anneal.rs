//! Cools a line on a device: records the moves of all colours, sweep by sweep, and fetches the best points at the end.

use crate::GpuError;
use kingsnake_context::budget::Budget;
use kingsnake_graph::cool::{Cooled, Cooler, CoolerSource, Cooling, CoolingSize, colour_at};
use kingsnake_graph::prune::{DeviceError, DeviceStats, Offer};

use crate::DeviceChoice;
use crate::adapter::{About, AdapterKind};
use crate::cost::{self, Speed};
use crate::device::{find, share, time, weighed};
use crate::kernel::Kernel;
use crate::layout::{AnnealParams, GROUP, Reads};
use crate::recording::{BufferId, Executor, Limits, Load, Recording, Traffic};

#[cfg(not(feature = "wgpu"))]
use crate::cpu::Twins as Runner;
#[cfg(feature = "wgpu")]
use crate::hardware::Hardware as Runner;

/// Number of sweeps between two reads of the device's progress.
const SWEEPS: usize = 16;

/// The line on an executor.
struct Buffers {
    points: BufferId,
    movers: BufferId,
    reads: BufferId,
    field: BufferId,
    side_starts: BufferId,
    sides: BufferId,
    weights: BufferId,
    violated: BufferId,
    least: BufferId,
    best: BufferId,
}

/// A line that is cooled on an executor.
struct ResidentProblem<'a, E> {
    executor: &'a mut E,
    task: &'a Cooling,
    buffers: Buffers,
    limits: Limits,
    /// The parameters of each colour.
    loads: Vec<Load>,
    traffic: Traffic,
}

/// Cools a line on an executor.
pub(crate) fn cool_on<E: Executor>(
    executor: &mut E,
    task: &Cooling,
    budget: &Budget,
    watch: &mut dyn FnMut(u32) -> bool,
) -> Result<Cooled, DeviceError> {
    let mut resident = ResidentProblem::load(executor, task, budget)?;
    let mut done = 0;
    let mut n_violated = resident.run(0..0, budget)?;
    while done < task.n_sweeps() && n_violated.last() != Some(&0) {
        if !watch(n_violated.last().copied().unwrap_or(0)) {
            break;
        }
        let end = task.n_sweeps().min(done + SWEEPS);
        n_violated.extend(resident.run(done..end, budget)?);
        done = end;
    }
    let points = resident.fetch(budget)?;
    Ok(Cooled {
        points,
        n_violated,
        n_moves: done as u64 * task.movers.len() as u64,
        device: resident.stats(),
    })
}

impl<'a, E: Executor> ResidentProblem<'a, E> {
    fn load(executor: &'a mut E, task: &'a Cooling, budget: &Budget) -> Result<Self, DeviceError> {
        let n_nodes = task.points.len() as u64;
        let n_counts = task.n_sweeps() as u64 + 1;
        let mut create = |what, words: usize| executor.create(what, words as u64);
        let buffers = Buffers {
            points: create("the points", n_nodes as usize)?,
            movers: create("the movers", task.movers.len())?,
            reads: create("what nodes read", 6 * task.reads.len())?,
            field: create("the lists of nodes", task.field.len())?,
            side_starts: create("the starts of sides", task.side_starts.len())?,
            sides: create("the edges of sides", 2 * task.sides.len().max(1))?,
            weights: create("the weights", 64 * task.weights.len())?,
            violated: create("the counts", n_counts as usize)?,
            least: create("the least counts", n_counts as usize)?,
            best: create("the best points", n_nodes as usize)?,
        };
        let limits = executor.limits();
        let reads: Vec<Reads> = task.reads.iter().map(reads_of).collect();
        let mut up = Recording::default();
        up.upload(buffers.points, 0, &task.points);
        up.upload(buffers.movers, 0, &task.movers);
        up.upload(buffers.reads, 0, &reads);
        up.upload(buffers.field, 0, &task.field);
        up.upload(buffers.side_starts, 0, &task.side_starts);
        up.upload(buffers.sides, 0, task.sides.as_flattened());
        up.upload(buffers.weights, 0, task.weights.as_flattened());
        let loads = (0..task.colour_ends.len())
            .map(|colour| load_of(task, colour))
            .collect();
        let mut resident = ResidentProblem {
            executor,
            task,
            buffers,
            limits,
            loads,
            traffic: Traffic::default(),
        };
        resident.submit(&up, budget)?;
        Ok(resident)
    }

    fn submit(
        &mut self,
        recording: &Recording,
        budget: &Budget,
    ) -> Result<Vec<Vec<u32>>, DeviceError> {
        self.traffic.add(recording.traffic());
        self.executor.run(recording, budget)
    }

    /// Runs some sweeps, and returns how many constraints are violated after each. With no sweep, the count before the first.
    fn run(
        &mut self,
        sweeps: std::ops::Range<usize>,
        budget: &Budget,
    ) -> Result<Vec<u32>, DeviceError> {
        let mut recording = Recording::default();
        let first = if sweeps.is_empty() {
            self.judge(&mut recording, 0);
            0
        } else {
            sweeps.start + 1
        };
        for sweep in sweeps.clone() {
            for turn in 0..self.task.colour_ends.len() {
                self.turn(&mut recording, sweep, turn);
            }
            self.judge(&mut recording, sweep + 1);
        }
        let n_counts = sweeps.len().max(1);
        recording.download(self.buffers.violated, first as u64, n_counts as u64);
        let down = self.submit(&recording, budget)?;
        Ok(down.into_iter().next().unwrap_or_default())
    }

    /// Moves a colour.
    fn turn(&self, recording: &mut Recording, sweep: usize, turn: usize) {
        let (task, of) = (self.task, &self.buffers);
        let colour = colour_at(task.colour_ends.len(), sweep, turn);
        let buffers = [
            of.points,
            of.movers,
            of.reads,
            of.field,
            of.side_starts,
            of.sides,
            of.weights,
        ];
        let (movers, load) = (task.colour(colour), self.loads[colour]);
        let n_movers = movers.len() as u64;
        // A dispatch that would take too long is split, as one with too many workgroups is.
        let parts = load.work / self.limits.work.max(1) + 1;
        let most = n_movers
            .div_ceil(parts)
            .clamp(1, u64::from(self.limits.groups));
        for first in movers.clone().step_by(most as usize) {
            let end = movers.end.min(first + most as u32);
            let part = |all: u64| all * u64::from(end - first) / n_movers.max(1);
            let params = AnnealParams {
                first,
                end,
                seed: task.seed,
                turn: (sweep * task.colour_ends.len() + turn) as u32,
                sweep: sweep as u32,
                ..AnnealParams::default()
            };
            let load = Load {
                work: part(load.work),
                busy: part(load.busy),
                turns: part(load.turns),
            };
            recording.dispatch(Kernel::Anneal, params, &buffers, [end - first, 1], load);
        }
    }

    /// Counts the violated constraints after this many sweeps, and keeps the points if that is the minimum.
    fn judge(&self, recording: &mut Recording, sweep: usize) {
        let of = &self.buffers;
        let count = [of.points, of.side_starts, of.sides, of.violated];
        let n_constraints = self.task.n_constraints() as u32;
        self.items(recording, Kernel::Count, &count, n_constraints, sweep);
        let keep = [of.points, of.violated, of.least, of.best];
        let n_nodes = self.task.points.len() as u32;
        self.items(recording, Kernel::Keep, &keep, n_nodes, sweep);
    }

    /// One thread per item.
    fn items(
        &self,
        recording: &mut Recording,
        kernel: Kernel,
        buffers: &[BufferId],
        n_items: u32,
        sweep: usize,
    ) {
        let most = self.limits.groups.saturating_mul(GROUP);
        for first in (0..n_items.max(1)).step_by(most as usize) {
            let end = n_items.min(first.saturating_add(most));
            let n_items = end - first;
            let params = AnnealParams {
                first,
                end,
                sweep: sweep as u32,
                ..AnnealParams::default()
            };
            let load = Load {
                work: 4 * u64::from(n_items),
                busy: n_items.into(),
                turns: n_items.next_multiple_of(GROUP).into(),
            };
            let groups = [n_items.div_ceil(GROUP).max(1), 1];
            recording.dispatch(kernel, params, buffers, groups, load);
        }
    }

    fn fetch(&mut self, budget: &Budget) -> Result<Vec<u32>, DeviceError> {
        let mut recording = Recording::default();
        let n_nodes = self.task.points.len() as u64;
        recording.download(self.buffers.best, 0, n_nodes);
        let down = self.submit(&recording, budget)?;
        Ok(down.into_iter().next().unwrap_or_default())
    }

    fn stats(&self) -> DeviceStats {
        DeviceStats {
            form: "anneal".to_owned(),
            bytes_up: self.traffic.bytes_up,
            bytes_down: self.traffic.bytes_down,
            dispatches: self.traffic.dispatches,
            workgroups: self.traffic.workgroups,
            occupancy: share(self.traffic.busy, self.traffic.turns),
            ..DeviceStats::default()
        }
    }
}

fn reads_of(of: &kingsnake_graph::cool::NodeReads) -> Reads {
    Reads {
        before: of.before,
        after: of.after,
        between: of.between,
        below: of.below,
        above: of.above,
        rest: of.rest,
    }
}

/// The work of moving a colour: a thread's step is a word of a node's lists.
fn load_of(task: &Cooling, colour: usize) -> Load {
    let range = task.colour(colour);
    let movers = &task.movers[range.start as usize..range.end as usize];
    let mut load = Load::default();
    for &id in movers {
        let words = task.n_words(id);
        load.busy += u64::from(words);
        load.turns += u64::from(words.next_multiple_of(GROUP));
    }
    load.work = 2 * load.busy + 8 * movers.len() as u64;
    load
}

/// A device that cools lines. Nothing is opened before a task is offered.
pub struct GpuCooler {
    choice: DeviceChoice,
    about: Option<About>,
    runner: Option<Runner>,
    why: String,
}

impl GpuCooler {
    /// A device found according to the choice.
    pub fn new(choice: DeviceChoice) -> Self {
        GpuCooler {
            choice,
            about: None,
            runner: None,
            why: String::new(),
        }
    }

    /// Makes such devices.
    pub fn source(choice: DeviceChoice) -> CoolerSource {
        CoolerSource::new(move || Box::new(GpuCooler::new(choice.clone())))
    }

    fn open(&mut self) -> Result<&About, GpuError> {
        if self.runner.is_none() {
            let (about, runner) = find(&self.choice)?;
            self.about = Some(about);
            self.runner = Some(runner);
        }
        let about = self.about.as_ref();
        about.ok_or(GpuError::NoAdapter)
    }

    /// Whether the device pays for a line of this size, and why.
    fn weigh(&mut self, size: &CoolingSize) -> Offer {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        weighed(cost::cooling_on_cpu(size, threads), || {
            let about = self.open()?;
            let on_device = cost::cooling_on_device(size, Speed::of(about));
            Ok((about.name.clone(), on_device))
        })
    }
}

impl Cooler for GpuCooler {
    fn offer(&mut self, size: &CoolingSize, budget: &Budget) -> Offer {
        let offer = match self.choice {
            DeviceChoice::Cpu => Offer::Declined("the CPU was asked for".to_owned()),
            DeviceChoice::Auto => self.weigh(size),
            DeviceChoice::Gpu | DeviceChoice::Named(_) => {
                let asked = format!("--device {} asked for it", self.choice);
                self.open().map_or_else(
                    |why| Offer::Failed(why.to_string()),
                    |_| Offer::Taken(asked),
                )
            }
        };
        let Offer::Taken(why) = offer else {
            return offer;
        };
        let shares = self.about.as_ref().is_some_and(|about| {
            matches!(about.kind, AdapterKind::Software | AdapterKind::Integrated)
        });
        let bytes = 4 * size.words();
        if let (true, Err(reason)) = (shares, budget.reserve("annealing on the device", bytes)) {
            return Offer::Failed(format!("the device shares the memory: {reason}"));
        }
        self.why.clone_from(&why);
        Offer::Taken(why)
    }

    fn cool(
        &mut self,
        task: &Cooling,
        budget: &Budget,
        watch: &mut dyn FnMut(u32) -> bool,
    ) -> Result<Cooled, DeviceError> {
        let Some(runner) = &mut self.runner else {
            return Err(DeviceError::Failed("no device is open".to_owned()));
        };
        runner.reset();
        let mut cooled = cool_on(runner, task, budget, watch)?;
        cooled.device.time = time(runner);
        cooled.device.why.clone_from(&self.why);
        if let Some(about) = &self.about {
            cooled.device.name.clone_from(&about.name);
            cooled.device.backend.clone_from(&about.backend);
            cooled.device.kind = about.kind.to_string();
            cooled.device.driver.clone_from(&about.driver);
        }
        Ok(cooled)
    }
}

/// The points after all sweeps, whether they are the best or not.
#[cfg(test)]
pub(crate) fn moved_on<E: Executor>(executor: &mut E, task: &Cooling) -> Vec<u32> {
    let budget = Budget::unlimited();
    let mut resident = ResidentProblem::load(executor, task, &budget).expect("it fits");
    resident.run(0..task.n_sweeps(), &budget).expect("it runs");
    let mut recording = Recording::default();
    recording.download(resident.buffers.points, 0, task.points.len() as u64);
    let down = resident.submit(&recording, &budget).expect("it runs");
    down.into_iter().next().unwrap_or_default()
}
