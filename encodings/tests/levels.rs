//! Parallel snapshot isolation and mixed levels with every back end, against brute force.

use kingsnake_encodings::{BACKENDS, BackendOptions, backend};
use kingsnake_graph::decide::Origin;
use kingsnake_history::budget::Budget;
use kingsnake_history::level::{Model, Spec};
use kingsnake_history::model::History;
use kingsnake_history::progress::Silent;
use kingsnake_history::verdict::Verdict;
use kingsnake_lab::random::{sketch, small_mixed, small_parallel};
use kingsnake_lab::{axioms, parallel};
use kingsnake_solver::check::{Decider, Techniques, check};

fn truth(history: &History, spec: Spec) -> Option<bool> {
    match spec.model {
        Model::Psi => parallel::hold_by_graph(history, spec.session_order),
        _ => axioms::hold(history, spec.session_order, &|txn| history.model(txn)),
    }
}

/// How many histories a back end gets; Z3 takes milliseconds for each.
fn share(name: &str) -> u64 {
    let is_long = std::env::var_os("KINGSNAKE_LONG").is_some();
    match (is_long, name.starts_with("z3/")) {
        (true, _) => 20_000,
        (false, true) => 250,
        (false, false) => 1_000,
    }
}

/// Compares every back end with brute force; pruning and witnesses are off, so that back ends are asked.
#[allow(clippy::print_stdout)] // What a test prints is shown with it.
fn agree(model: Model, draw: fn(u64) -> History) {
    let techniques = Techniques {
        witness: false,
        prune_rounds: Some(0),
        ..Techniques::default()
    };
    let mut n_refused = 0;
    for &name in BACKENDS {
        let mut counts = [0; 2];
        let mut n_asked = 0;
        for seed in 0..share(name) {
            let mut engine = backend(name, &BackendOptions::default()).expect("it is in the table");
            if engine.refuses(Origin::Other).is_some() {
                n_refused += 1;
                break;
            }
            let history = draw(seed);
            let spec = Spec {
                model,
                session_order: seed % 2 == 0,
                real_time: None,
            };
            let Some(truth) = truth(&history, spec) else {
                continue;
            };
            let budget = Budget::unlimited();
            let report = check(
                &history,
                spec,
                &techniques,
                &mut *engine,
                &budget,
                &mut Silent,
            );
            let report = match report {
                Ok(report) => report,
                Err(error) => panic!("{name}, seed {seed}: {error}\n{}", sketch(&history)),
            };
            let said = matches!(report.verdict, Verdict::Satisfied(_));
            assert_eq!(
                said,
                truth,
                "{name}, seed {seed}, {spec}\n{}",
                sketch(&history)
            );
            counts[usize::from(truth)] += 1;
            n_asked += usize::from(report.decider == Decider::Backend);
        }
        println!("{name}: {counts:?} violated and satisfied, {n_asked} asked");
        let is_taken = counts[0] + counts[1] > 0;
        assert!(
            !is_taken || counts[0].min(counts[1]) > 20,
            "{name}: {counts:?}"
        );
        assert!(!is_taken || n_asked > 20, "{name}: {n_asked}");
    }
    assert!(
        n_refused < BACKENDS.len() / 2,
        "{n_refused} back ends refuse"
    );
}

#[test]
fn every_back_end_agrees_with_brute_force_at_parallel_snapshot_isolation() {
    agree(Model::Psi, small_parallel);
}

#[test]
fn every_back_end_agrees_with_the_axioms_at_mixed_levels() {
    agree(Model::Mixed, small_mixed);
}
