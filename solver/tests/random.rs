//! The generators keep what they promise, as the oracle sees it.

use kingsnake_lab::oracle;
use kingsnake_lab::random::{CaseSplit, Execution, Injected, Large, Rng, Small, sketch, small};
use kingsnake_solver::level::{Model, RealTime, Spec};
use kingsnake_solver::model::{History, Op};
use rustc_hash::{FxHashMap, FxHashSet};

fn holds(history: &History, model: Model, session_order: bool, real_time: bool) -> bool {
    let spec = Spec {
        model,
        session_order,
        real_time: real_time.then_some(RealTime::STRICT),
    };
    oracle::holds(history, spec).expect("the history is small")
}

#[test]
fn equal_seeds_give_equal_histories() {
    for seed in 0..200 {
        assert_eq!(sketch(&small(seed)), sketch(&small(seed)));
    }
    assert_ne!(sketch(&small(1)), sketch(&small(2)));
}

#[test]
fn simulated_executions_have_the_isolation_that_they_promise() {
    for seed in 0..4_000 {
        let mut rng = Rng::new(seed);
        let executions = [
            Execution::Serial,
            Execution::Snapshot,
            Execution::StaleSnapshot,
        ];
        let execution = executions[seed as usize % 3];
        let drawn = Small::draw(&mut rng);
        let history = Small {
            execution,
            n_mutations: 0,
            times: true,
            ..drawn
        }
        .history(&mut rng);
        let kept = match execution {
            Execution::Serial => holds(&history, Model::Ser, true, true),
            Execution::Snapshot => holds(&history, Model::Si, true, true),
            _ => holds(&history, Model::Si, false, false),
        };
        assert!(kept, "seed {seed}, {execution:?}:\n{}", sketch(&history));
    }
}

#[test]
fn values_are_unique_per_key_unless_repeats_are_asked_for() {
    let repeats = |history: &History| {
        let mut seen = FxHashSet::default();
        let writes = history
            .txns()
            .flat_map(|txn| history.ops(txn))
            .filter_map(|&op| match op {
                Op::Write { value, .. } | Op::Append { value, .. } => Some(value),
                Op::Read { .. } | Op::ReadList { .. } | Op::Range { .. } => None,
            });
        writes
            .into_iter()
            .any(|value| history.is_initial(value) || !seen.insert(value))
    };
    let mut n_repeating = 0;
    for seed in 0..2_000 {
        assert!(!repeats(&small(seed)), "seed {seed}");
        let mut rng = Rng::new(seed);
        let history = Small {
            repeats: 30,
            ..Small::draw(&mut rng)
        }
        .history(&mut rng);
        n_repeating += usize::from(repeats(&history));
    }
    assert!(n_repeating > 500, "only {n_repeating} repeat");
}

#[test]
fn the_order_of_a_large_history_explains_every_read() {
    let large = Large {
        n_txns: 20_000,
        read_modify_writes: 50,
        times: true,
        ..Large::default()
    };
    let serial = large.run();
    let history = &serial.history;
    let mut store = FxHashMap::default();
    let mut last_begin = i64::MIN;
    for &txn in &serial.order {
        for &op in history.ops(txn) {
            match op {
                Op::Read { key, value } => match store.get(&key) {
                    Some(&written) => assert_eq!(written, value),
                    None => assert!(history.is_initial(value)),
                },
                Op::Write { key, value } => {
                    store.insert(key, value);
                }
                Op::Append { .. } | Op::ReadList { .. } | Op::Range { .. } => {
                    panic!("large histories have registers")
                }
            }
        }
        // No later transaction may have committed before an earlier one began.
        assert!(history.interval(txn).commit >= last_begin);
        last_begin = last_begin.max(history.interval(txn).begin);
    }
    assert_eq!(history.n_txns(), 20_000);
    assert_eq!(history.n_ops(), 160_000);
}

#[test]
fn large_histories_in_small_are_what_they_promise() {
    for seed in 0..1_000 {
        let base = Large {
            n_txns: 5,
            n_sessions: 3,
            n_keys: 3,
            n_ops: 3,
            times: true,
            seed,
            ..Large::default()
        };
        let serial = base.run().history;
        assert!(
            holds(&serial, Model::Ser, true, true),
            "seed {seed}:\n{}",
            sketch(&serial)
        );
        for read_modify_writes in [0, 100] {
            let snapshot = Large {
                lag: 3,
                read_modify_writes,
                ..base.clone()
            }
            .run()
            .history;
            assert!(
                holds(&snapshot, Model::Si, true, true),
                "seed {seed}:\n{}",
                sketch(&snapshot)
            );
        }
        for injected in [
            Injected::LostUpdate,
            Injected::StaleRead,
            Injected::WriteSkew,
        ] {
            let broken = Large {
                injected: Some(injected),
                ..base.clone()
            }
            .run()
            .history;
            let text = sketch(&broken);
            assert!(
                !holds(&broken, Model::Ser, false, false),
                "seed {seed}, {injected:?}:\n{text}"
            );
            let is_si = injected == Injected::WriteSkew;
            assert_eq!(
                holds(&broken, Model::Si, false, false),
                is_si,
                "seed {seed}, {injected:?}:\n{text}"
            );
            assert_eq!(
                holds(&broken, Model::Si, true, true),
                is_si,
                "seed {seed}, {injected:?}:\n{text}"
            );
        }
    }
}

#[test]
fn a_case_split_holds_exactly_if_its_clauses_can_be_met() {
    let contradiction = CaseSplit::contradiction();
    assert!(!contradiction.is_satisfiable());
    let history = contradiction.history();
    assert_eq!(history.n_txns(), 8);
    assert!(!holds(&history, Model::Ser, true, false) && !holds(&history, Model::Si, false, false));
    let mut n_satisfiable = 0;
    for seed in 0..500 {
        let mut rng = Rng::new(seed);
        let n_clauses = rng.between(3, 8);
        let split = CaseSplit::draw(2, n_clauses, &mut rng);
        let history = split.history();
        let expected = split.is_satisfiable();
        for model in [Model::Ser, Model::Si] {
            let held = holds(&history, model, true, false);
            assert_eq!(held, expected, "seed {seed}:\n{}", sketch(&history));
        }
        n_satisfiable += usize::from(expected);
    }
    assert!(
        (100..400).contains(&n_satisfiable),
        "{n_satisfiable} of 500"
    );
}
