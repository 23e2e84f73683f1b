//! The oracle, which replays operations on a store, says the same as the axioms, which speak of visibility.

use kingsnake_lab::random::{Execution, KeyKind, Rng, Small};
use kingsnake_lab::{axioms, oracle, parallel};
use kingsnake_solver::level::{Model, Spec};

/// Histories that the axioms speak of: each key read at most once and before it is written.
fn history(seed: u64) -> kingsnake_solver::model::History {
    let mut rng = Rng::new(seed);
    let mut small = Small::draw(&mut rng);
    small.kind = KeyKind::Registers;
    small.n_txns = small.n_txns.min(5);
    small.max_ops = 3;
    small.aborted = 0;
    small.unknown = 0;
    small.version_orders = false;
    small.execution = [Execution::Serial, Execution::Snapshot, small.execution][rng.below(3)];
    small.history(&mut rng)
}

#[test]
fn the_oracle_and_the_axioms_agree_at_every_uniform_level() {
    let mut counts = [[0; 2]; 3];
    let mut n_compared = 0;
    for seed in 0..150_000 {
        let history = history(seed);
        for (model, count) in Model::TIMED.into_iter().zip(&mut counts) {
            for session_order in [true, false] {
                let spec = Spec {
                    model,
                    session_order,
                    real_time: None,
                };
                let Some(expected) = axioms::hold(&history, session_order, &|_| model) else {
                    continue;
                };
                n_compared += 1;
                count[usize::from(expected)] += 1;
                assert_eq!(
                    oracle::holds(&history, spec),
                    Some(expected),
                    "seed {seed}, {spec}"
                );
            }
        }
    }
    println!("{n_compared} compared, violated and satisfied by level {counts:?}");
    assert!(n_compared > 60_000, "{n_compared}");
    for count in counts {
        assert!(count[0] > 1_000 && count[1] > 15_000, "{counts:?}");
    }
}

/// Histories with arbitrary reads: far more of them break parallel snapshot isolation, each in another way.
fn arbitrary(seed: u64) -> kingsnake_solver::model::History {
    kingsnake_lab::random::small_mixed(seed)
}

#[test]
fn parallel_snapshot_isolation_by_visibility_is_the_one_by_its_graph() {
    let mut counts = [0; 2];
    for seed in 0..12_000 {
        for draw in [history, arbitrary] {
            let history = draw(seed);
            for session_order in [true, false] {
                let Some(expected) = parallel::hold(&history, session_order) else {
                    continue;
                };
                counts[usize::from(expected)] += 1;
                let by_graph = parallel::hold_by_graph(&history, session_order);
                assert_eq!(by_graph, Some(expected), "seed {seed}");
            }
        }
    }
    println!("violated and satisfied {counts:?}");
    assert!(counts[0].min(counts[1]) > 3_000, "{counts:?}");
}

#[test]
fn parallel_snapshot_isolation_lies_between_snapshot_isolation_and_causal_consistency() {
    let mut apart = [0; 4];
    for seed in 0..40_000 {
        let history = arbitrary(seed);
        for session_order in [true, false] {
            let hold = |model| axioms::hold(&history, session_order, &|_| model);
            let (Some(psi), Some(si), Some(pc), Some(cc)) = (
                parallel::hold_by_graph(&history, session_order),
                hold(Model::Si),
                hold(Model::Pc),
                hold(Model::Cc),
            ) else {
                continue;
            };
            assert!((!si || psi) && (!psi || cc), "seed {seed}");
            let seen = [psi && !si, cc && !psi, psi && !pc, pc && !psi];
            for (count, seen) in apart.iter_mut().zip(seen) {
                *count += usize::from(seen);
            }
        }
    }
    println!("apart {apart:?}");
    assert!(apart.iter().all(|&count| count > 10), "{apart:?}");
}
