//! Problems with choices, guarded edges and clauses: pruned on a device as on the CPU, round by round.

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_context::rng::Rng;
use kingsnake_graph::Problem;
use kingsnake_graph::prune::{Device, PruneOptions, PruneStats, Reachability, Variable, prune_on};

use super::found::Found;
use super::problems::{problem, problem_of};
use crate::{DeviceChoice, Form, Gpu};

pub(super) fn pruned(
    device: Option<&mut dyn Device>,
    problem: &Problem,
    rounds: Option<usize>,
) -> (Found, PruneStats) {
    let options = PruneOptions {
        reachability: Reachability::Dense,
        rounds,
        linear: false,
        ..PruneOptions::default()
    };
    let (mut stats, budget) = (PruneStats::default(), Budget::unlimited());
    let outcome = prune_on(
        device,
        problem.clone(),
        options,
        &mut stats,
        &budget,
        &mut Silent,
    );
    let found = Found::of(outcome.expect("there is time"), &stats);
    (found, stats)
}

#[test]
fn choices_are_settled_on_a_device_as_on_the_cpu() {
    drop(super::hardware(
        "choices",
        crate::hardware::Opening::default(),
    ));
    let mut gpu = Gpu::new(DeviceChoice::Gpu);
    let (mut n_on_device, mut n_rounds, mut n_contradictions, mut n_settled) = (0, 0, 0, 0);
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let problem = match seed % 4 {
            0 => problem_of(150, &mut rng),
            _ => problem(&mut rng),
        };
        if problem.logic.is_empty() {
            continue;
        }
        for rounds in [None, Some(1)] {
            let (truth, _) = pruned(None, &problem, rounds);
            let (found, stats) = pruned(Some(&mut gpu), &problem, rounds);
            assert_eq!(stats.device.warning, None, "seed {seed}");
            assert_eq!(found, truth, "seed {seed}, {rounds:?} rounds");
            n_on_device += usize::from(stats.reachability == "device");
            n_rounds += stats.rounds.len();
            n_contradictions += usize::from(truth.is_contradiction());
            let settled = |it: &&Variable| matches!(it, Variable::Settled(_));
            n_settled += truth.variables().iter().filter(settled).count();
        }
    }
    println!(
        "{n_on_device} problems with choices, {n_rounds} rounds, {n_contradictions} contradictions, {n_settled} variables settled"
    );
    assert!(n_on_device > 200 && n_rounds > 300 && n_contradictions > 50 && n_settled > 100);
}

#[test]
fn choices_are_settled_alike_whatever_the_form_and_the_cut() {
    drop(super::hardware(
        "forms and bands of choices",
        crate::hardware::Opening::default(),
    ));
    for form in [Form::Sweep, Form::Levels] {
        for bytes in [None, Some(50_000)] {
            let mut gpu = Gpu::new(DeviceChoice::Gpu).with(form, bytes);
            for seed in 0..10 {
                let problem = problem_of(600, &mut Rng::new(seed));
                let (truth, _) = pruned(None, &problem, None);
                let (found, stats) = pruned(Some(&mut gpu), &problem, None);
                assert_eq!(stats.device.warning, None, "seed {seed}");
                assert_eq!(found, truth, "seed {seed}, {form:?}, {bytes:?}");
            }
        }
    }
}
