//! `cadical/propagator` with all its options against exhaustive enumeration, and the deliberate mistakes that this must notice.

mod support;

use kingsnake_context::budget::Budget;
use kingsnake_context::progress::Silent;
use kingsnake_encodings::{
    BackendOptions, Decide, Faults, FirstPhase, Propagator, PropagatorOptions,
};
use kingsnake_graph::decide::{Backend, Decision};
use support::{Owned, Rng, judge, planted, small};

fn all_options() -> Vec<BackendOptions> {
    let mut all = Vec::new();
    for phase in FirstPhase::ALL {
        for decide in Decide::ALL {
            // Neighbours differ in the other options too, and over all of them every pair of choices comes.
            let at = all.len();
            all.push(BackendOptions {
                seed: at as u32,
                propagator: PropagatorOptions {
                    phase,
                    decide,
                    anneal: true,
                    minimise: (at + at / 4) % 2 == 0,
                    propagate: [0, 4, 1000][(at + at / 4) % 3],
                },
                cooler: None,
            });
        }
    }
    all
}

/// The same question without an estimate, with a good one, and with a bad one.
fn variants(owned: &Owned, random: &mut Rng) -> [Owned; 3] {
    [
        owned.clone(),
        owned.clone().estimated(),
        owned.clone().misled(random),
    ]
}

#[test]
fn every_option_agrees_with_enumeration() {
    let mut random = Rng::new(1);
    let options = all_options();
    let (mut n_met, mut n_refuted, mut n_runs) = (0, 0, 0);
    let mut core_sizes = [0usize; 9];
    for round in 0..3000 {
        let owned = small(&mut random);
        let truth = owned.can_meet(&owned.all());
        *(if truth { &mut n_met } else { &mut n_refuted }) += 1;
        let variants = variants(&owned, &mut random);
        for (at, options) in options.iter().enumerate() {
            // Every question meets every variant and a third of the options; over the rounds, all combinations come.
            if (at + round) % 3 != 0 {
                continue;
            }
            for variant in &variants {
                if let Err(what) = judge(&mut Propagator::new(options), variant, Some(truth)) {
                    panic!("{options:?}, question {round}: {what}\n{variant:?}");
                }
                n_runs += 1;
            }
        }
        if !truth {
            core_sizes[smallest_core(&owned).len()] += 1;
        }
    }
    println!(
        "{n_met} can be met, {n_refuted} cannot; {n_runs} runs; sizes of the cores: {core_sizes:?}"
    );
    assert!(
        n_met > 600 && n_refuted > 600,
        "one verdict is hardly represented"
    );
}

/// The default back end's core, of which no member can be spared.
fn smallest_core(owned: &Owned) -> Vec<u32> {
    let mut backend = Propagator::new(&BackendOptions::default());
    let budget = Budget::unlimited();
    let decided = backend.decide(owned.question(), &budget, &mut Silent);
    let Ok((Decision::Core(core), _)) = decided else {
        panic!("not refuted: {decided:?}");
    };
    for spared in 0..core.len() {
        let mut rest = core.clone();
        rest.remove(spared);
        assert!(owned.can_meet(&rest), "{core:?} is not minimal: {owned:?}");
    }
    core
}

#[test]
fn annealing_changes_no_answer() {
    no_answer_changes(|backend| backend.hard_after(1));
}

#[test]
fn annealing_before_anything_is_repaired_changes_no_answer() {
    no_answer_changes(Propagator::anneal_small);
}

/// Compares a back end that anneals with the truth on questions that can be met and that cannot.
fn no_answer_changes(anneals: impl Fn(Propagator) -> Propagator) {
    let mut random = Rng::new(5);
    let (mut n_annealed, mut n_met) = (0, 0);
    let mut check = |owned: &Owned, truth: bool| {
        let mut backend = anneals(Propagator::new(&BackendOptions::default()));
        if let Err(what) = judge(&mut backend, owned, Some(truth)) {
            panic!("{what}\n{owned:?}");
        }
        let decided = backend.decide(owned.question(), &Budget::unlimited(), &mut Silent);
        let (_, stats) = decided.expect("judged already");
        if stats.moves > 0 {
            n_annealed += 1;
            n_met += usize::from(truth);
        }
    };
    for _ in 0..2000 {
        let owned = small(&mut random);
        check(&owned, owned.can_meet(&owned.all()));
    }
    for torn in [false, true] {
        for _ in 0..5 {
            check(&planted(300, 2000, torn, &mut random), !torn);
        }
    }
    assert!(
        n_met > 20 && n_annealed - n_met > 20,
        "{n_annealed} annealed, {n_met} of them can be met"
    );
}

#[test]
fn larger_planted_questions_are_decided_as_planted() {
    let mut random = Rng::new(2);
    for (n_nodes, n_constraints) in [(200, 300), (200, 1500), (600, 3000), (2000, 4000)] {
        for torn in [false, true] {
            let owned = planted(n_nodes, n_constraints, torn, &mut random);
            for variant in variants(&owned, &mut random) {
                for decide in Decide::ALL {
                    let options = BackendOptions {
                        propagator: PropagatorOptions {
                            decide,
                            ..PropagatorOptions::default()
                        },
                        ..BackendOptions::default()
                    };
                    let mut backend = Propagator::new(&options);
                    if let Err(what) = judge(&mut backend, &variant, Some(!torn)) {
                        panic!("{n_nodes} nodes, torn {torn}, {decide:?}: {what}");
                    }
                }
            }
        }
    }
}

/// How many of the answers the judge rejects when the back end makes these mistakes.
fn rejected(faults: Faults) -> usize {
    let mut random = Rng::new(3);
    let mut n_rejected = 0;
    for _ in 0..300 {
        let owned = small(&mut random);
        let truth = owned.can_meet(&owned.all());
        for options in all_options() {
            let mut backend = Propagator::new(&options).with_faults(faults);
            n_rejected += usize::from(judge(&mut backend, &owned, Some(truth)).is_err());
        }
    }
    for torn in [false, true] {
        for _ in 0..6 {
            let owned = planted(300, 2000, torn, &mut random);
            for options in all_options() {
                let mut backend = Propagator::new(&options).with_faults(faults);
                n_rejected += usize::from(judge(&mut backend, &owned, Some(!torn)).is_err());
            }
        }
    }
    n_rejected
}

#[test]
fn without_mistakes_nothing_is_rejected() {
    assert_eq!(rejected(Faults::default()), 0);
}

#[test]
fn losing_assignments_behind_a_lemma_is_noticed() {
    let n = rejected(Faults {
        drop_pending: true,
        ..Faults::default()
    });
    println!("{n} answers rejected");
    assert!(n > 0);
}

#[test]
fn a_clause_that_misses_a_literal_is_noticed() {
    let n = rejected(Faults {
        short_lemma: true,
        ..Faults::default()
    });
    println!("{n} answers rejected");
    assert!(n > 0);
}

#[test]
fn an_order_that_does_not_move_is_noticed() {
    let n = rejected(Faults {
        frozen_order: true,
        ..Faults::default()
    });
    println!("{n} answers rejected");
    assert!(n > 0);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let mut random = Rng::new(4);
    let owned = planted(400, 3000, false, &mut random);
    for options in all_options() {
        let run = || {
            let budget = Budget::unlimited();
            let (decision, stats) = Propagator::new(&options)
                .decide(owned.question(), &budget, &mut Silent)
                .expect("decided");
            (decision, stats.conflicts, stats.decisions, stats.cycles)
        };
        assert_eq!(run(), run());
    }
}
