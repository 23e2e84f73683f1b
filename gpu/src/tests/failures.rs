//! Failures of a device: a warning with the reason, and the CPU's answer.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use kingsnake_context::budget::{Budget, StopReason};
use kingsnake_context::progress::{Progress, Silent};
use kingsnake_graph::Edge;
use kingsnake_graph::decide::{Backend, DecideError, DecideStats, Decision, Question};
use kingsnake_lab::random::{Large, Rng};
use kingsnake_solver::check::{Engines, Report, Techniques, check_on};
use kingsnake_solver::level::{Model, Spec};
use kingsnake_solver::prune::{
    Dag, Device, DeviceError, DeviceStats, Judgement, Offer, PairEdge, Relatives, Task,
};
use kingsnake_solver::verdict::Verdict;

use super::hardware;
use crate::hardware::Opening;
use crate::recording::{Executor, Recording};
use crate::resident::{ClosureOptions, Resident};
use crate::{DeviceChoice, Form, Gpu, sample};

/// Pruning and the estimate settle the histories of these tests.
struct Nobody;

impl Backend for Nobody {
    fn name(&self) -> &'static str {
        "test/nobody"
    }

    fn decide(
        &mut self,
        _: Question<'_>,
        _: &Budget,
        _: &mut dyn Progress,
    ) -> Result<(Decision, DecideStats), DecideError> {
        let reason = StopReason::Backend("nobody decides".to_owned());
        Ok((Decision::Unknown(reason), DecideStats::default()))
    }
}

fn check(device: &mut dyn Device, budget: &Budget) -> Report {
    let large = Large {
        n_txns: 300,
        n_keys: 40,
        n_sessions: 1,
        ..Large::default()
    };
    let spec = Spec {
        model: Model::Ser,
        session_order: true,
        real_time: None,
    };
    let history = large.run().history;
    let techniques = Techniques::default();
    let engines = Engines {
        device: Some(device),
        backend: &mut Nobody,
    };
    let report = check_on(
        &history,
        None,
        spec,
        &techniques,
        engines,
        budget,
        &mut Silent,
    );
    report.expect("the check can be carried out")
}

fn expect_fallback(mut device: impl Device, why: &str) {
    let report = check(&mut device, &Budget::unlimited());
    assert!(matches!(report.verdict, Verdict::Satisfied(_)));
    let device = report.stats.prune.device;
    let warning = device.warning.expect("there is a warning");
    assert!(warning.contains(why), "{warning}");
    assert!(warning.ends_with("the CPU computes instead"), "{warning}");
    assert_ne!(report.stats.prune.reachability, "device");
}

#[test]
fn a_device_that_is_asked_for_answers_without_a_warning() {
    drop(hardware("a whole check", Opening::default()));
    let report = check(&mut Gpu::new(DeviceChoice::Gpu), &Budget::unlimited());
    assert!(matches!(report.verdict, Verdict::Satisfied(_)));
    let device = report.stats.prune.device;
    assert_eq!(device.warning, None);
    assert!(!device.name.is_empty() && !device.backend.is_empty());
    assert!(device.bytes_up > 0 && device.bytes_down > 0 && device.dispatches > 0);
    assert!(device.matrix_bytes > 0 && device.bands == 1);
}

#[test]
fn an_adapter_that_is_not_there_is_a_warning() {
    let gpu = Gpu::new(DeviceChoice::Named("no such adapter".to_owned()));
    expect_fallback(gpu, "no adapter is called");
}

#[test]
fn a_matrix_beyond_the_limit_is_a_warning() {
    drop(hardware("a limit", Opening::default()));
    let gpu = Gpu::new(DeviceChoice::Gpu).with(Form::Auto, Some(100));
    expect_fallback(gpu, "one strip of the matrix takes");
}

#[test]
fn auto_leaves_small_histories_to_the_cpu_without_looking_for_a_device() {
    let report = check(&mut Gpu::new(DeviceChoice::Auto), &Budget::unlimited());
    let device = report.stats.prune.device;
    assert_eq!(device.warning, None);
    assert!(device.why.contains("less than it takes"), "{}", device.why);
    assert_eq!(device.name, "");
}

#[test]
fn a_lost_device_is_a_warning() {
    let mut gpu = hardware("a lost device", Opening::default());
    let mut rng = Rng::new(2);
    let dag = sample::dag(100, 300, 30, &mut rng);
    let task = sample::task(100, 5, 5, &mut rng);
    gpu.lose();
    let budget = Budget::unlimited();
    let lost = Resident::new(gpu, ClosureOptions::default(), &dag, Some(&task))
        .and_then(|mut it| {
            it.close(&dag, &[], &budget)?;
            it.judge(&budget)
        })
        .expect_err("nothing can be computed");
    assert!(matches!(lost, DeviceError::Failed(_)), "{lost:?}");
}

/// A GPU that is lost after its first closure.
struct Losing(Gpu);

impl Device for Losing {
    fn offer(&mut self, task: &Task, dag: &Dag, budget: &Budget) -> Offer {
        self.0.offer(task, dag, budget)
    }

    fn load(&mut self, task: &Task, dag: &Dag, budget: &Budget) -> Result<(), DeviceError> {
        self.0.load(task, dag, budget)
    }

    fn close(&mut self, dag: &Dag, new: &[Edge], budget: &Budget) -> Result<(), DeviceError> {
        self.0.close(dag, new, budget)?;
        self.0.lose();
        Ok(())
    }

    fn judge(&mut self, budget: &Budget) -> Result<Judgement, DeviceError> {
        self.0.judge(budget)
    }

    fn open(&mut self, budget: &Budget) -> Result<Vec<u32>, DeviceError> {
        Device::open(&mut self.0, budget)
    }

    fn implied(&mut self, budget: &Budget) -> Result<Vec<PairEdge>, DeviceError> {
        self.0.implied(budget)
    }

    fn reaches(&mut self, asked: &[(u32, u32)], budget: &Budget) -> Result<Vec<bool>, DeviceError> {
        self.0.reaches(asked, budget)
    }

    fn relatives(&mut self, budget: &Budget) -> Result<Relatives, DeviceError> {
        self.0.relatives(budget)
    }

    fn stats(&self) -> DeviceStats {
        self.0.stats()
    }
}

#[test]
fn a_device_that_is_lost_during_a_check_leaves_the_answer_to_the_cpu() {
    drop(hardware("a device lost during a check", Opening::default()));
    expect_fallback(Losing(Gpu::new(DeviceChoice::Gpu)), "");
}

#[test]
fn a_buffer_beyond_the_limit_is_refused_before_it_is_made() {
    let mut gpu = hardware("a large buffer", Opening::default());
    let words = gpu.limits().buffer / 4 + 1;
    let refused = gpu.create("a large thing", words).expect_err("too large");
    assert!(
        matches!(&refused, DeviceError::Failed(why) if why.contains("a large thing would take")),
        "{refused:?}"
    );
}

#[test]
fn an_error_of_the_interface_is_caught() {
    let mut gpu = hardware("an interface error", Opening::default());
    let buffer = gpu.create("a small thing", 1).unwrap();
    let mut recording = Recording::default();
    recording.download(buffer, 0, 1_000);
    let failed = gpu.run(&recording, &Budget::unlimited());
    let failed = failed.expect_err("the buffer is shorter");
    assert!(matches!(failed, DeviceError::Failed(_)), "{failed:?}");
    let mut recording = Recording::default();
    recording.download(buffer, 0, 1);
    assert_eq!(gpu.run(&recording, &Budget::unlimited()), Ok(vec![vec![0]]));
}

#[test]
fn a_budget_that_ended_stops_a_device() {
    drop(hardware("an interrupt", Opening::default()));
    let asked = Arc::new(AtomicBool::new(true));
    let interrupted = Budget::unlimited().with_interrupt(asked);
    let late = Budget::unlimited().with_timeout(Instant::now(), Duration::ZERO);
    for (budget, reason) in [
        (interrupted, StopReason::Interrupted),
        (late, StopReason::Time(Duration::ZERO)),
    ] {
        let gpu = hardware("a budget", Opening::default());
        let mut rng = Rng::new(2);
        let dag = sample::dag(100, 300, 30, &mut rng);
        let task = sample::task(100, 5, 5, &mut rng);
        let mut resident =
            Resident::new(gpu, ClosureOptions::default(), &dag, Some(&task)).unwrap();
        resident.close(&dag, &[], &budget).unwrap();
        let stopped = resident.judge(&budget).err();
        assert_eq!(stopped, Some(DeviceError::Stopped(reason)));
    }
}
