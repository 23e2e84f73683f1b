//! The solver's device: finds an adapter when a task is offered, and keeps the task resident over the rounds.

use crate::GpuError;
use std::time::Duration;

use kingsnake_context::budget::Budget;
use kingsnake_graph::Edge;
use kingsnake_graph::prune::{
    Device, DeviceError, DeviceStats, Judgement, Offer, PairEdge, Relatives, Task,
};
use kingsnake_graph::reach::Dag;

use crate::DeviceChoice;
use crate::adapter::{About, AdapterKind};
use crate::cost::{self, Speed};
use crate::recording::Executor;
use crate::resident::{ClosureOptions, Resident};

#[cfg(not(feature = "wgpu"))]
use crate::cpu::Twins as Runner;
#[cfg(feature = "wgpu")]
use crate::hardware::Hardware as Runner;

/// A GPU, or how to find one. Nothing is opened before a task is offered.
pub struct Gpu {
    choice: DeviceChoice,
    about: Option<About>,
    runner: Option<Runner>,
    resident: Option<Resident<Runner>>,
    options: ClosureOptions,
}

impl Gpu {
    /// A device found according to the choice.
    pub fn new(choice: DeviceChoice) -> Self {
        Gpu {
            choice,
            about: None,
            runner: None,
            resident: None,
            options: ClosureOptions::default(),
        }
    }

    /// The same with the closure in this form, and buffers of at most this size for the matrix.
    #[must_use]
    pub fn with(mut self, form: crate::Form, most_band_bytes: Option<u64>) -> Self {
        self.options.form = form;
        self.options.most_band_bytes = most_band_bytes;
        self
    }

    fn open(&mut self) -> Result<(), GpuError> {
        if let Some(before) = self.resident.take() {
            let mut runner = before.executor;
            runner.reset();
            self.runner = Some(runner);
        }
        if self.runner.is_some() {
            return Ok(());
        }
        let (about, runner) = find(&self.choice)?;
        self.about = Some(about);
        self.runner = Some(runner);
        Ok(())
    }

    /// The adapter and whether the matrix fits, or why not.
    fn prepare(&mut self, task: &Task, budget: &Budget) -> Result<&About, GpuError> {
        self.open()?;
        let (Some(about), Some(runner)) = (&self.about, &self.runner) else {
            return Err(GpuError::NoAdapter);
        };
        let cut = Resident::cut(runner, self.options, task.n_nodes)?;
        if matches!(about.kind, AdapterKind::Software | AdapterKind::Integrated) {
            let reserved = budget.reserve("the bit matrix", cut.bytes());
            reserved.map_err(|reason| format!("{} shares the memory: {reason}", about.name))?;
        }
        Ok(about)
    }

    fn ready(&mut self) -> Result<&mut Resident<Runner>, DeviceError> {
        let missing = || DeviceError::Failed("nothing was loaded".to_owned());
        self.resident.as_mut().ok_or_else(missing)
    }
}

#[cfg(all(test, feature = "wgpu"))]
impl Gpu {
    /// Loses the device in the middle of a task.
    pub(crate) fn lose(&mut self) {
        if let Some(it) = &mut self.resident {
            it.executor.lose();
        }
    }
}

/// Statistics, as far as the executor recorded them.
pub(crate) fn note<E: Executor>(resident: &Resident<E>, stats: &mut DeviceStats) {
    let traffic = resident.traffic;
    stats.bytes_up = traffic.bytes_up;
    stats.bytes_down = traffic.bytes_down;
    stats.dispatches = traffic.dispatches;
    stats.workgroups = traffic.workgroups;
    stats.round_trips = traffic.round_trips;
    stats.occupancy = share(traffic.busy, traffic.turns);
    (stats.matrix_bytes, stats.bands) = resident.size();
    stats.form = resident.used.words();
}

/// The fraction; 0 if nothing ran.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

impl Device for Gpu {
    fn offer(&mut self, task: &Task, dag: &Dag, budget: &Budget) -> Offer {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        match self.choice {
            DeviceChoice::Cpu => return Offer::Declined("the CPU was asked for".to_owned()),
            DeviceChoice::Auto => {}
            DeviceChoice::Gpu | DeviceChoice::Named(_) => {
                let asked = format!("--device {} asked for it", self.choice);
                return match self.prepare(task, budget) {
                    Ok(_) => Offer::Taken(asked),
                    Err(why) => Offer::Failed(why.to_string()),
                };
            }
        }
        weighed(cost::on_cpu(task, dag, threads), || {
            let about = self.prepare(task, budget)?;
            let on_device = cost::on_device(task, dag, Speed::of(about));
            Ok((about.name.clone(), on_device))
        })
    }

    fn load(&mut self, task: &Task, dag: &Dag, _: &Budget) -> Result<(), DeviceError> {
        let Some(runner) = self.runner.take() else {
            return Err(DeviceError::Failed("no device is open".to_owned()));
        };
        self.resident = Some(Resident::new(runner, self.options, dag, Some(task))?);
        Ok(())
    }

    fn close(&mut self, dag: &Dag, new: &[Edge], budget: &Budget) -> Result<(), DeviceError> {
        self.ready()?.close(dag, new, budget)
    }

    fn judge(&mut self, budget: &Budget) -> Result<Judgement, DeviceError> {
        self.ready()?.judge(budget)
    }

    fn open(&mut self, budget: &Budget) -> Result<Vec<u32>, DeviceError> {
        self.ready()?.open(budget)
    }

    fn implied(&mut self, budget: &Budget) -> Result<Vec<PairEdge>, DeviceError> {
        self.ready()?.implied(budget)
    }

    fn reaches(&mut self, asked: &[(u32, u32)], budget: &Budget) -> Result<Vec<bool>, DeviceError> {
        self.ready()?.reaches(asked, budget)
    }

    fn relatives(&mut self, budget: &Budget) -> Result<Relatives, DeviceError> {
        self.ready()?.relatives(budget)
    }

    fn stats(&self) -> DeviceStats {
        let mut stats = DeviceStats::default();
        if let Some(about) = &self.about {
            stats.name.clone_from(&about.name);
            stats.backend.clone_from(&about.backend);
            stats.kind = about.kind.to_string();
            stats.driver.clone_from(&about.driver);
        }
        if let Some(it) = &self.resident {
            note(it, &mut stats);
            stats.time = time(&it.executor);
        }
        stats
    }
}

/// The time of the kernels so far, if the device measures it.
#[cfg(feature = "wgpu")]
pub(crate) fn time(runner: &Runner) -> Option<Duration> {
    runner.time()
}

#[cfg(not(feature = "wgpu"))]
pub(crate) fn time(_: &Runner) -> Option<Duration> {
    None
}

/// Opens the adapter that a choice means.
#[cfg(feature = "wgpu")]
pub(crate) fn find(choice: &DeviceChoice) -> Result<(About, Runner), GpuError> {
    use crate::hardware::{Opening, enumerate};
    let (adapters, abouts): (Vec<_>, Vec<_>) = enumerate().into_iter().unzip();
    let about = crate::adapter::pick(&abouts, choice)?;
    let runner = Runner::open(&adapters[about.index], about, Opening::default())?;
    Ok((about.clone(), runner))
}

/// Opens the adapter that a choice means.
#[cfg(not(feature = "wgpu"))]
pub(crate) fn find(_: &DeviceChoice) -> Result<(About, Runner), GpuError> {
    Err(GpuError::NotBuilt)
}

/// Accepts a task if a device pays, given the CPU's time. Only if that is long is a device searched for: returns its
/// name and its time.
pub(crate) fn weighed(
    on_cpu: f64,
    device: impl FnOnce() -> Result<(String, f64), GpuError>,
) -> Offer {
    let cpu = lasting(on_cpu);
    if cost::is_hopeless(on_cpu) {
        return Offer::Declined(format!(
            "the CPU needs about {cpu}, less than it takes to start a GPU"
        ));
    }
    let (name, on_device) = match device() {
        Ok(found) => found,
        Err(why) => return Offer::Declined(why.to_string()),
    };
    let gpu = lasting(on_device);
    if cost::pays(on_device, on_cpu) {
        Offer::Taken(format!("estimated {gpu}, against {cpu} on the CPU"))
    } else {
        Offer::Declined(format!(
            "estimated {cpu} on the CPU, against {gpu} on {name}"
        ))
    }
}

/// A duration in words.
fn lasting(seconds: f64) -> String {
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1e3)
    } else {
        format!("{seconds:.1} s")
    }
}
