//! Several problems on one device at a time: each is pruned as alone, with fewer dispatches in all.

use kingsnake_context::rng::Rng;
use kingsnake_graph::Problem;
use kingsnake_graph::prune::{Device, PruneStats};
use kingsnake_lab::random::Large;
use kingsnake_solver::model::History;

use super::choices::pruned;
use super::found::Found;
use super::problems::{problem, problem_of};
use super::whole_checks::{SPECS, prune_with};
use crate::{DeviceChoice, Gpu, members};

/// Prunes all problems at a time, a thread each.
fn together(problems: &[Problem]) -> Vec<(Found, PruneStats)> {
    let members = members(&DeviceChoice::Gpu, problems.len());
    std::thread::scope(|scope| {
        let threads: Vec<_> = problems
            .iter()
            .zip(members)
            .map(|(problem, mut member)| {
                scope.spawn(move || pruned(Some(&mut member), problem, None))
            })
            .collect();
        let joined = threads.into_iter().map(|it| it.join().expect("no panic"));
        joined.collect()
    })
}

#[test]
fn problems_are_pruned_together_as_each_alone_with_fewer_dispatches() {
    drop(super::hardware(
        "batches",
        crate::hardware::Opening::default(),
    ));
    let mut gpu = Gpu::new(DeviceChoice::Gpu);
    let (mut n_contradictions, mut n_open, mut alone, mut packed) = (0, 0, 0, 0);
    for batch in 0..12 {
        let mut rng = Rng::new(100 + batch);
        let problems: Vec<Problem> = (0..8)
            .map(|at| match at % 3 {
                0 => problem_of(300, &mut rng),
                1 => problem_of(60, &mut rng),
                _ => problem(&mut rng),
            })
            .collect();
        let found = together(&problems);
        let mut most = 0;
        for (problem, (found, stats)) in problems.iter().zip(found) {
            let (truth, _) = pruned(None, problem, None);
            assert_eq!(stats.device.warning, None, "batch {batch}");
            assert_eq!(found, truth, "batch {batch}");
            n_contradictions += usize::from(truth.is_contradiction());
            n_open += truth.n_open();
            if stats.reachability == "device" {
                assert!(stats.device.shared_by > 1, "batch {batch}");
                most = most.max(stats.device.dispatches);
            }
            alone += pruned(Some(&mut gpu), problem, None).1.device.dispatches;
        }
        packed += most;
    }
    println!(
        "{packed} dispatches together, {alone} alone; {n_contradictions} contradictions, {n_open} constraints open"
    );
    assert!(n_contradictions > 5 && n_open > 50);
    assert!(packed < alone, "{packed} together, {alone} alone");
}

#[test]
fn the_rounds_of_eight_histories_are_the_dispatches_of_one() {
    drop(super::hardware(
        "a batch of histories",
        crate::hardware::Opening::default(),
    ));
    let history = |seed| {
        let large = Large {
            n_txns: 200,
            n_keys: 50,
            reads: 40,
            seed,
            ..Large::default()
        };
        large.run().history
    };
    let histories: Vec<History> = (1..=8).map(history).collect();
    let spec = SPECS[0];
    let prune = |history: &History, device: &mut dyn Device| {
        prune_with(Some(device), history, spec, true, None).expect("the reads can be explained")
    };
    let mut gpu = Gpu::new(DeviceChoice::Gpu);
    let alone: Vec<_> = histories.iter().map(|it| prune(it, &mut gpu)).collect();
    let together: Vec<_> = std::thread::scope(|scope| {
        let members = members(&DeviceChoice::Gpu, histories.len());
        let threads: Vec<_> = histories
            .iter()
            .zip(members)
            .map(|(history, mut member)| scope.spawn(move || prune(history, &mut member)))
            .collect();
        let joined = threads.into_iter().map(|it| it.join().expect("no panic"));
        joined.collect()
    });
    for (one, other) in alone.iter().zip(&together) {
        assert!(one.0 == other.0, "the batch found something else");
        assert_eq!(other.1.device.warning, None);
        assert_eq!(other.1.device.shared_by, 8);
    }
    let dispatches = |all: &[(Found, PruneStats)]| -> Vec<u64> {
        all.iter().map(|it| it.1.device.dispatches).collect()
    };
    let sum: u64 = dispatches(&alone).iter().sum();
    let packed = dispatches(&together).into_iter().max().unwrap_or(0);
    println!("{packed} dispatches for eight histories together, {sum} one by one");
    assert!(packed * 3 < sum, "{packed} together, {sum} one by one");
}

#[test]
fn a_member_that_never_prunes_does_not_hold_up_the_others() {
    drop(super::hardware(
        "a batch with an idle member",
        crate::hardware::Opening::default(),
    ));
    let problem = problem_of(60, &mut Rng::new(3));
    let mut members = members(&DeviceChoice::Gpu, 3);
    drop(members.pop());
    let mut last = members.pop();
    let mut first = members.pop().expect("three were made");
    let truth = pruned(None, &problem, None).0;
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| pruned(Some(&mut first), &problem, None).0);
        last = None;
        assert_eq!(waits.join().expect("no panic"), truth);
    });
    assert!(last.is_none());
    // What it prunes afterwards runs on a device of its own.
    let (again, stats) = pruned(Some(&mut first), &problem, None);
    assert_eq!(again, truth);
    assert_eq!(stats.device.shared_by, 0);
}
