//! Every violated history gets a proof, the proof stands up to being derived again from the operations, and a damaged proof
//! does not.

#[path = "support/pessimist.rs"]
mod pessimist;

use std::collections::BTreeMap;

use kingsnake_lab::oracle;
use kingsnake_lab::random::{Injected, KeyKind, Large, Rng, Small, sketch};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::certify::refutation::check_proof;
use kingsnake_solver::check::{CheckError, Techniques, check};
use kingsnake_solver::level::{Level, Model, RealTime, Spec, Times};
use kingsnake_solver::model::History;
use kingsnake_solver::progress::Silent;
use kingsnake_solver::prune::Reachability;
use kingsnake_solver::verdict::{Counterexample, Moment, Proof, Step, StepReason, Verdict};
use kingsnake_tell as tell;
use pessimist::Pessimist;

/// Every combination of the ingredients.
fn specs() -> Vec<Spec> {
    let mut specs = Vec::new();
    for model in [Model::Ser, Model::Si] {
        for session_order in [true, false] {
            for real_time in [None, Some(RealTime::STRICT)] {
                specs.push(Spec {
                    model,
                    session_order,
                    real_time,
                });
            }
        }
    }
    for level in [Level::Gsi, Level::StrongSi] {
        for session_order in [true, false] {
            let spec = level.spec(Some(session_order)).expect("it leaves it open");
            specs.push(spec.with_clock(Times::Bounds, 2));
            specs.push(spec.with_clock(Times::Exact, 2));
        }
    }
    specs
}

/// Ways to find a violation: by pruning in several rounds, or by a back end alone.
fn techniques() -> Vec<Techniques> {
    let plain = Techniques::default();
    vec![
        plain.clone(),
        Techniques {
            prune_rounds: Some(0),
            ..plain.clone()
        },
        Techniques {
            combine: false,
            reachability: Reachability::Dense,
            ..plain.clone()
        },
        Techniques {
            combine: false,
            prune_rounds: Some(1),
            reachability: Reachability::Chains,
            ..plain
        },
    ]
}

fn n_splits_and_steps(proof: &Proof) -> (usize, usize) {
    (proof.splits().count(), proof.steps().count())
}

/// Adya's letters, where `G2` is as good as `G2-item`.
fn plain(letters: &str) -> String {
    letters.replace("G2-item", "G2")
}

/// Adya's class of a cycle, by its definition.
fn class(steps: &[Step]) -> String {
    let kinds: Vec<&str> = steps
        .iter()
        .filter_map(|step| match step.reason {
            StepReason::Begin => None,
            StepReason::Session => Some("so"),
            StepReason::Stated { .. } => Some("given"),
            StepReason::RealTime => Some("rt"),
            StepReason::Wr { .. } => Some("wr"),
            StepReason::Ww { .. } => Some("ww"),
            StepReason::Rw { .. } => Some("rw"),
            StepReason::Vis { .. } => Some("vis"),
        })
        .collect();
    let has = |kind| kinds.contains(&kind);
    let around = kinds.iter().zip(kinds.iter().cycle().skip(1));
    let in_a_row = around.filter(|&(a, b)| (*a, *b) == ("rw", "rw")).count();
    let class = match kinds.iter().filter(|&&kind| kind == "rw").count() {
        0 if !has("wr") => "G0",
        0 => "G1c",
        1 => "G-single",
        _ if in_a_row > 0 => "G2",
        _ => "G-nonadjacent",
    };
    let order = match (has("rt"), has("so")) {
        (true, _) => "-realtime",
        (false, true) => "-session",
        (false, false) => "",
    };
    format!("{class}{order}")
}

/// The first leaf of a proof.
fn first_cycle(proof: &mut Proof) -> &mut Vec<Step> {
    match proof {
        Proof::Cycle(steps) => steps,
        Proof::Split { one_first, .. } => first_cycle(one_first),
        Proof::Choice { cases, .. } => first_cycle(&mut cases[0].1),
        Proof::Aggregate { ruled_out, .. } => first_cycle(&mut ruled_out[0].2),
    }
}

/// Ways to damage a cycle that leave nothing of it, whatever the history.
fn damage(steps: &mut Vec<Step>, how: usize) {
    match how {
        0 => {
            steps.pop();
        }
        1 => steps.clear(),
        2 => {
            let step = &mut steps[0];
            step.from.moment = match step.from.moment {
                Moment::Whole | Moment::Commit => Moment::Begin,
                Moment::Begin => Moment::Commit,
            };
        }
        3 => {
            let step = &mut steps[0];
            std::mem::swap(&mut step.from, &mut step.to);
        }
        4 => {
            let doubled = steps[0];
            steps.insert(0, doubled);
        }
        5 => steps[0].reason = StepReason::Begin,
        _ => {
            // Two steps of at least three change places.
            if steps.len() > 2 {
                steps.swap(0, 1);
            } else {
                steps.pop();
            }
        }
    }
}

fn assert_damage_is_noticed(history: &History, spec: Spec, proof: &Proof) {
    for how in 0..7 {
        let mut damaged = proof.clone();
        let cycle = first_cycle(&mut damaged);
        if how == 5 && cycle[0].reason == StepReason::Begin {
            continue;
        }
        damage(cycle, how);
        assert!(
            check_proof(history, spec, &damaged).is_err(),
            "damage {how} was not noticed: {damaged:?}\n{}",
            sketch(history)
        );
    }
}

#[test]
fn every_violated_small_history_gets_a_proof_that_holds() {
    let mut shapes: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut n_local, mut n_cyclic) = (0, 0);
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed);
        let mut small = Small::draw(&mut rng);
        if seed % 5 == 0 && small.kind == KeyKind::Registers {
            small.repeats = 10;
        }
        let history = small.history(&mut rng);
        for spec in specs() {
            let lacks_times = spec.real_time.is_some() && !history.has_times();
            if lacks_times || oracle::holds(&history, spec) != Some(false) {
                continue;
            }
            for techniques in techniques() {
                let place = || format!("seed {seed}, {spec}, {techniques:?}\n{}", sketch(&history));
                let budget = Budget::unlimited();
                let backend = &mut Pessimist;
                let report = check(&history, spec, &techniques, backend, &budget, &mut Silent);
                let counterexample = match report {
                    Err(CheckError::Resolve(_)) => continue,
                    Err(error) => panic!("{error}: {}", place()),
                    Ok(report) => match report.verdict {
                        Verdict::Violated(counterexample) => counterexample,
                        other => panic!("{other:?}: {}", place()),
                    },
                };
                let name = tell::name(&history, spec, &counterexample);
                *names.entry(name.short).or_default() += 1;
                let story = tell::story(&history, spec, &counterexample);
                assert!(!story.lines.is_empty() && !story.txns.is_empty());
                let Counterexample::Cyclic(proof) = counterexample else {
                    n_local += 1;
                    continue;
                };
                n_cyclic += 1;
                if let Proof::Cycle(steps) = &proof {
                    assert_eq!(name.adya.map(plain), Some(class(steps)), "{}", place());
                }
                *shapes.entry(n_splits_and_steps(&proof)).or_default() += 1;
                assert_damage_is_noticed(&history, spec, &proof);
            }
        }
    }
    eprintln!("{n_local} local anomalies, {n_cyclic} proofs; (splits, steps): how many");
    for (shape, count) in shapes {
        eprintln!("  {shape:?}: {count}");
    }
    eprintln!("names: {names:#?}");
    assert!(n_local > 5_000 && n_cyclic > 10_000);
}

#[test]
fn an_injected_anomaly_is_found_among_thousands_of_transactions() {
    for (seed, injected) in [
        Injected::LostUpdate,
        Injected::StaleRead,
        Injected::WriteSkew,
    ]
    .into_iter()
    .cycle()
    .take(12)
    .enumerate()
    {
        let large = Large {
            n_txns: 3_000,
            n_keys: 500,
            read_modify_writes: [0, 30, 90][seed % 3],
            times: seed % 2 == 0,
            injected: Some(injected),
            seed: seed as u64,
            ..Large::default()
        };
        let history = large.run().history;
        for level in [Level::Ser, Level::Si, Level::StrictSer] {
            let is_si = level == Level::Si;
            if is_si && injected == Injected::WriteSkew || level == Level::StrictSer && !large.times
            {
                continue;
            }
            let spec = level.spec(None).unwrap();
            let budget = Budget::unlimited();
            let techniques = Techniques::default();
            let report = check(
                &history,
                spec,
                &techniques,
                &mut Pessimist,
                &budget,
                &mut Silent,
            );
            let Verdict::Violated(Counterexample::Cyclic(proof)) = report.unwrap().verdict else {
                panic!("seed {seed}, {level}: no cycle");
            };
            let (n_splits, n_steps) = n_splits_and_steps(&proof);
            eprintln!("{injected:?} at {level}: {n_splits} splits, {n_steps} steps");
            assert!(n_splits <= 2 && n_steps <= 12, "{proof:?}");
            assert_damage_is_noticed(&history, spec, &proof);
        }
    }
}

#[test]
fn a_core_of_every_constraint_is_explained_too() {
    for seed in 0..6_u64 {
        let large = Large {
            n_txns: 250,
            n_keys: 60,
            read_modify_writes: [0, 40][seed as usize % 2],
            injected: Some([Injected::LostUpdate, Injected::StaleRead][seed as usize / 3]),
            seed,
            ..Large::default()
        };
        let history = large.run().history;
        for (level, session_order) in [
            (Level::Ser, true),
            (Level::Ser, false),
            (Level::Si, true),
            (Level::Si, false),
        ] {
            let spec = level.spec(Some(session_order)).unwrap();
            let techniques = Techniques {
                combine: false,
                prune_rounds: Some(0),
                ..Techniques::default()
            };
            let budget = Budget::unlimited();
            let start = std::time::Instant::now();
            let report = check(
                &history,
                spec,
                &techniques,
                &mut Pessimist,
                &budget,
                &mut Silent,
            );
            let report = report.unwrap();
            let Verdict::Violated(Counterexample::Cyclic(proof)) = report.verdict else {
                panic!("seed {seed}, {spec}: {:?}", report.verdict);
            };
            eprintln!(
                "{spec}: {} constraints, {:?} splits and steps, {:?}",
                report.stats.n_open,
                n_splits_and_steps(&proof),
                start.elapsed()
            );
            assert_damage_is_noticed(&history, spec, &proof);
        }
    }
}
