//! A short comparison of an adapter with the CPU twins, on random graphs.

use crate::GpuError;
use std::time::{Duration, Instant};

use kingsnake_context::budget::Budget;
use kingsnake_context::rng::Rng;
use kingsnake_graph::prune::{DeviceError, Judgement, PairEdge, Relatives, Task};
use kingsnake_graph::reach::Dag;

use crate::adapter::About;
use crate::closure::Form;
use crate::pairs::Judge;
use crate::recording::Executor;
use crate::resident::{ClosureOptions, Resident};
use crate::sample;

/// Time limit of a self-test.
const LIMIT: Duration = Duration::from_secs(2);

/// A self-test in which every answer was right.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DeviceSelfTest {
    /// How many answers were compared.
    pub n_answers: usize,
    /// How long the adapter took.
    pub time: Duration,
    /// Whether the time sufficed for all of them. A slow or busy machine is no failure.
    pub is_finished: bool,
}

/// All results of a device for one graph.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answers {
    pub(crate) judgement: Judgement,
    pub(crate) open: Vec<u32>,
    pub(crate) implied: Vec<PairEdge>,
    pub(crate) relatives: Relatives,
}

/// Asks everything.
pub(crate) fn ask<E: Executor>(
    executor: E,
    options: ClosureOptions,
    task: &Task,
    dag: &Dag,
    budget: &Budget,
) -> Result<(Answers, E), DeviceError> {
    let mut resident = Resident::new(executor, options, dag, Some(task))?;
    resident.close(dag, &[], budget)?;
    let mut judgement = resident.judge(budget)?;
    if judgement.n_violations > judgement.violations.len() as u64 {
        // Which of many are listed depends on timing.
        judgement.violations.clear();
    }
    let answers = Answers {
        judgement,
        open: resident.open(budget)?,
        implied: resident.implied(budget)?,
        relatives: resident.relatives(budget)?,
    };
    let mut executor = resident.executor;
    executor.reset();
    Ok((answers, executor))
}

/// The graphs: one deep, one wide, each with its own kernels.
fn cases() -> Vec<(Dag, Task, ClosureOptions)> {
    let mut rng = Rng::new(1);
    let mut case = |n_edges, span, form, judge| {
        let dag = sample::dag(1000, n_edges, span, &mut rng);
        let task = sample::task(1000, 20, 30, &mut rng);
        let options = ClosureOptions {
            form,
            judge,
            ..ClosureOptions::default()
        };
        (dag, task, options)
    };
    vec![
        case(3000, 8, Form::Sweep, Judge::Pairs),
        case(4000, 1000, Form::Levels, Judge::Rows),
    ]
}

/// Compares an adapter with the twins, as far as two seconds go.
#[cfg(feature = "wgpu")]
pub fn self_test(about: &About) -> Result<DeviceSelfTest, GpuError> {
    compare(
        about,
        &Budget::unlimited().with_timeout(Instant::now(), LIMIT),
    )
}

#[cfg(feature = "wgpu")]
pub(crate) fn compare(about: &About, budget: &Budget) -> Result<DeviceSelfTest, GpuError> {
    use crate::cpu::Twins;
    use crate::hardware::{self, Hardware, Opening};

    let found = hardware::enumerate().into_iter().nth(about.index);
    let Some((adapter, _)) = found.filter(|it| it.1 == *about) else {
        return Err("the adapter is gone".to_owned().into());
    };
    if let Some(why) = &about.unfit {
        return Err(why.clone().into());
    }
    let mut hardware = Hardware::open(&adapter, about, Opening::default())?;
    let mut test = DeviceSelfTest::default();
    for (dag, task, options) in cases() {
        let begun = Instant::now();
        let asked = ask(hardware, options, &task, &dag, budget);
        test.time += begun.elapsed();
        let (answers, back) = match asked {
            Ok(asked) => asked,
            Err(DeviceError::Stopped(_)) => return Ok(test),
            Err(DeviceError::Failed(why)) => return Err(why.into()),
        };
        hardware = back;
        let unlimited = Budget::unlimited();
        let (truth, _) = ask(Twins::new(), options, &task, &dag, &unlimited).map_err(words)?;
        if answers != truth {
            return Err(format!("the answers of {:?} are wrong", options.form).into());
        }
        test.n_answers += 4;
    }
    test.is_finished = true;
    Ok(test)
}

/// Compares an adapter with the twins.
#[cfg(not(feature = "wgpu"))]
pub fn self_test(_: &About) -> Result<DeviceSelfTest, GpuError> {
    Err(GpuError::NotBuilt)
}

pub(crate) fn words(error: DeviceError) -> String {
    match error {
        DeviceError::Stopped(reason) => reason.to_string(),
        DeviceError::Failed(why) => why,
    }
}
