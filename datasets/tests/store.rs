//! The embedded store keeps each promise and no more, repeats itself for a seed, and every injected fault is found where
//! it must be and nowhere else.

mod decided;

use decided::{crowded, crowded_by, holds, small, spec, verdict};
use kingsnake_datasets::store::{Breaks, Fault, Isolation, StoreRun};
use kingsnake_datasets::workloads::{
    BadParameters, Distribution, Granularity, Parameters, WORKLOADS, find,
};
use kingsnake_solver::level::{Level, Model, RealTime, Spec};
use kingsnake_solver::model::{Op, Status};
use kingsnake_solver::verdict::Verdict;
use kingsnake_tell as tell;

#[test]
fn the_store_keeps_its_promise_and_no_more() {
    for entry in WORKLOADS {
        let mut broken = [0; 4];
        for seed in 0..6 {
            for (at, isolation) in Isolation::ALL.into_iter().enumerate() {
                let run = StoreRun {
                    isolation,
                    ..small(seed)
                };
                let mut history = crowded(entry.name, &run).history(true, true).unwrap();
                // Conditions are judged on certificates; here only the rows that they chose.
                history.forget_predicates();
                let strict = holds(&history, spec(Level::StrictSer));
                let si = Spec {
                    real_time: Some(RealTime::STRICT),
                    ..spec(Level::StrongSessionSi)
                };
                match isolation {
                    Isolation::Serializable => assert!(strict, "{} {seed}", entry.name),
                    Isolation::Snapshot => assert!(holds(&history, si), "{} {seed}", entry.name),
                    Isolation::PrefixConsistent => {
                        let pc = Spec {
                            model: Model::Pc,
                            ..si
                        };
                        assert!(holds(&history, pc), "{} {seed}", entry.name);
                    }
                    Isolation::ReadCommitted => {}
                }
                let promise = if at >= 2 { holds(&history, si) } else { strict };
                broken[at] += usize::from(!promise);
            }
        }
        println!("{}: beyond the promise in {broken:?} of 6", entry.name);
        // Write-only and read-only transactions cannot skew or lose anything on a snapshot.
        assert_eq!(broken[0], 0);
        assert!(broken[3] > 0, "{} at read-committed", entry.name);
    }
}

#[test]
fn ranges_are_validated_where_they_must_be() {
    for workload in ["v-range-b", "v-range-rqh", "v-range-idh"] {
        let mut n_skews = 0;
        for seed in 0..6 {
            for isolation in Isolation::ALL {
                let run = StoreRun {
                    isolation,
                    rollbacks: 10,
                    keep_aborted: true,
                    ..small(seed)
                };
                // Transactions that both ask and insert, so that there is something to validate.
                let recorded = crowded_by(workload, Some(Granularity::Operation), &run);
                let history = recorded.history(true, true).unwrap();
                let strict = holds(&history, spec(Level::StrictSer));
                let strong = holds(&history, spec(Level::StrongSi));
                match isolation {
                    Isolation::Serializable => assert!(strict, "{workload} {seed}"),
                    Isolation::Snapshot => assert!(strong, "{workload} {seed}"),
                    Isolation::PrefixConsistent => {}
                    Isolation::ReadCommitted => assert!(!strong, "{workload} {seed}"),
                }
                n_skews += usize::from(isolation == Isolation::Snapshot && !strict);
            }
        }
        assert!(n_skews > 0, "{workload}: a snapshot lets phantoms through");
    }
}

#[test]
fn rows_come_and_go_and_ranges_find_them() {
    let weights = [("b", [20.0; 5]), ("rqh", [12.5, 12.5, 12.5, 12.5, 50.0])];
    for (name, weights) in weights
        .into_iter()
        .chain([("idh", [35.0, 10.0, 10.0, 35.0, 10.0])])
    {
        let entry = find(&format!("v-range-{name}")).unwrap();
        assert_eq!((entry.n_keys, entry.n_ops), (2_000, 8));
        let workload = entry.make(&Parameters::default()).unwrap();
        let run = StoreRun {
            n_txns: 4_000,
            ..StoreRun::default()
        };
        let history = run.run(&*workload).unwrap().history(true, true).unwrap();
        let mut counts = [0.0_f64; 5];
        let (mut n_live, mut n_deleted) = (0, 0);
        for txn in history.txns() {
            for (at, op) in history.ops(txn).iter().enumerate() {
                let sort = match *op {
                    Op::Write { value, .. } if history.is_absence(value) => 3,
                    Op::Write { .. } if history.is_insert(txn, at) => 0,
                    Op::Write { .. } => 2,
                    Op::Read { .. } => 1,
                    Op::Range { range } => {
                        let query = history.range(range);
                        let deleted = query.rows.iter().filter(|it| history.is_tombstone(**it));
                        n_deleted += deleted.count();
                        n_live += query.rows.len();
                        // A read of nothing is a range of one key.
                        if query.span.low() == query.span.high() {
                            1
                        } else {
                            4
                        }
                    }
                    Op::Append { .. } | Op::ReadList { .. } => panic!("there are no lists"),
                };
                counts[sort] += 100.0 / (8.0 * 4_000.0);
            }
        }
        for (found, wanted) in counts.into_iter().zip(weights) {
            assert!((found - wanted).abs() < 2.5, "{name}: {counts:?}");
        }
        assert!(
            n_live > n_deleted && n_deleted > 100,
            "{name}: {n_live}, {n_deleted}"
        );
        assert!(holds(&history, spec(Level::StrictSer)), "{name}");
    }
}

#[test]
fn a_phantom_needs_rows() {
    let run = StoreRun {
        fault: Some(Fault::Phantom),
        ..small(0)
    };
    let workload = find("mini").unwrap().make(&Parameters::default()).unwrap();
    let error = run.run(&*workload).unwrap_err();
    assert!(
        error.to_string().contains("needs a workload of rows"),
        "{error}"
    );
}

#[test]
fn an_injected_phantom_is_called_one() {
    for (fault, level, letters) in [
        (Fault::Phantom, Level::Si, "G-single"),
        (Fault::Phantom, Level::Ser, "G-single"),
        (Fault::PhantomSkew, Level::Ser, "G2"),
    ] {
        for seed in 0..4 {
            let run = StoreRun {
                fault: Some(fault),
                ..small(seed)
            };
            let history = crowded("v-range-b", &run).history(true, true).unwrap();
            let Verdict::Violated(found) = verdict(&history, spec(level)) else {
                panic!("{fault} is a violation of {level}");
            };
            let name = tell::name(&history, spec(level), &found);
            assert_eq!(
                (name.short, name.adya),
                ("phantom", Some(letters)),
                "{fault}"
            );
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, workload, seed| {
        let run = StoreRun {
            rollbacks: 10,
            keep_aborted: true,
            ..small(seed)
        };
        let recorded = crowded(workload, &run);
        let path = directory.path().join(name);
        let history = recorded.history(true, true).unwrap();
        kingsnake_datasets::write(&history, kingsnake_datasets::Format::Kingsnake, &path).unwrap();
        std::fs::read(path).unwrap()
    };
    for workload in ["king-cobra-rmw", "v-range-b"] {
        assert_eq!(write("a", workload, 1), write("b", workload, 1));
        assert_ne!(write("a", workload, 1), write("b", workload, 2));
        // What is written is what is read, tombstones in version orders included.
        let read = |name| {
            kingsnake_datasets::open(
                &directory.path().join(name),
                &kingsnake_datasets::ReadOptions::default(),
            )
        };
        let again = read("a").unwrap().history;
        let path = directory.path().join("again");
        kingsnake_datasets::write(&again, kingsnake_datasets::Format::Kingsnake, &path).unwrap();
        assert_eq!(
            std::fs::read(path).unwrap(),
            std::fs::read(directory.path().join("a")).unwrap()
        );
    }
}

#[test]
fn threads_keep_the_promise_too() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let run = StoreRun {
            threads: true,
            isolation,
            n_txns: 1_000,
            fault: None,
            ..small(0)
        };
        let history = crowded("king-cobra-rmw", &run).history(true, true).unwrap();
        assert_eq!(history.n_txns(), 1_000);
        let level = match isolation {
            Isolation::Serializable => spec(Level::StrictSer),
            _ => spec(Level::StrongSessionSi),
        };
        assert!(holds(&history, level), "{isolation}");
    }
}

#[test]
fn every_fault_is_found_where_it_must_be_and_nowhere_else() {
    for fault in Fault::all() {
        for workload in [
            "king-cobra-rmw",
            "king-cobra-hw",
            "mini",
            "list-append",
            "rw-register",
            "tpcc",
            "v-range-b",
            "v-range-idh",
        ] {
            if fault.needs_rows() && !workload.starts_with("v-range") {
                continue;
            }
            // Its transactions are long, and their aborts many.
            let n_seeds = if workload == "tpcc" { 1 } else { 4 };
            for seed in 0..n_seeds {
                let run = StoreRun {
                    fault: Some(fault),
                    threads: seed == 3 && workload == "mini",
                    ..small(seed)
                };
                let history = crowded(workload, &run).history(true, true).unwrap();
                for model in [Model::Ser, Model::Si] {
                    for session_order in [true, false] {
                        let expected = match fault.breaks() {
                            Breaks::Everything => false,
                            // The version order tells that the session's read is stale, but nothing else does.
                            Breaks::Sessions => !session_order,
                            Breaks::Serializability => model == Model::Si,
                        };
                        let spec = Spec {
                            model,
                            session_order,
                            real_time: None,
                        };
                        assert_eq!(
                            holds(&history, spec),
                            expected,
                            "{fault} in {workload}, seed {seed}, {spec}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn faults_come_at_different_places() {
    let place = |seed| {
        let run = StoreRun {
            fault: Some(Fault::AbortedRead),
            ..small(seed)
        };
        let history = crowded("mini", &run).history(false, false).unwrap();
        let aborted = history
            .txns()
            .find(|&txn| history.status(txn) == Status::Aborted);
        history.txn_name(aborted.expect("the fault aborts one"))
    };
    let mut places: Vec<String> = (0..10).map(place).collect();
    places.sort();
    places.dedup();
    assert!(places.len() > 5, "{places:?}");
}

#[test]
fn mixes_have_their_percentages() {
    for (name, granularity, reads, writes, both) in [
        ("king-cobra-rmw", None, 25, 25, 50),
        ("king-cobra-rw", None, 50, 50, 0),
        ("king-cobra-rw", Some(Granularity::Transaction), 50, 50, 0),
        ("king-cobra-hw", None, 10, 80, 10),
        ("blindw-rm", None, 90, 10, 0),
        ("blindw-rw", None, 50, 50, 0),
        ("blindw-rmw", None, 0, 0, 100),
        ("cobra-general", None, 20, 40, 40),
    ] {
        let parameters = Parameters {
            granularity,
            distribution: "zipf".parse::<Distribution>().unwrap(),
            ..Parameters::default()
        };
        let workload = find(name).unwrap().make(&parameters).unwrap();
        let run = StoreRun {
            n_txns: 4_000,
            ..StoreRun::default()
        };
        let history = run.run(&*workload).unwrap().history(false, false).unwrap();
        let mut counts = [0, 0, 0];
        let mut whole = true;
        for txn in history.txns() {
            let ops = history.ops(txn);
            let mut sorts = ops.iter().map(|op| {
                let mut same = ops.iter().filter(|other| other.key() == op.key());
                let has_read = same.clone().any(|op| matches!(op, Op::Read { .. }));
                match (has_read, same.any(|op| op.is_write())) {
                    (true, false) => 0,
                    (false, _) => 1,
                    (true, true) => 2,
                }
            });
            whole &= sorts.clone().all(|sort| Some(sort) == sorts.clone().next());
            // A read-modify-write shows as two.
            sorts
                .by_ref()
                .for_each(|sort| counts[sort] += if sort == 2 { 1 } else { 2 });
        }
        let total: usize = counts.iter().sum();
        let percentages = counts.map(|count| 100.0 * count as f64 / total as f64);
        for (found, wanted) in percentages.into_iter().zip([reads, writes, both]) {
            assert!(
                (found - f64::from(wanted)).abs() < 2.0,
                "{name}: {percentages:?}"
            );
        }
        assert_eq!(
            total,
            2 * 8 * 4_000,
            "{name} has 8 operations a transaction"
        );
        let is_whole = granularity.is_some() || !name.starts_with("king-cobra");
        assert_eq!(whole, is_whole, "{name}");
    }
}

#[test]
fn mini_transactions_are_small_and_read_what_they_write() {
    let history = crowded("mini", &small(0)).history(false, false).unwrap();
    for txn in history.txns() {
        let ops = history.ops(txn);
        let n_writes = ops.iter().filter(|op| op.is_write()).count();
        assert!(n_writes <= 2 && ops.len() - n_writes <= 2);
        for (at, op) in ops.iter().enumerate().filter(|(_, op)| op.is_write()) {
            let before = &ops[..at];
            assert!(
                before
                    .iter()
                    .any(|it| it.key() == op.key() && !it.is_write())
            );
        }
    }
}

#[test]
fn values_are_unique_for_each_key_even_of_aborted_transactions() {
    let run = StoreRun {
        rollbacks: 30,
        keep_aborted: true,
        ..small(3)
    };
    let history = crowded("king-cobra-hw", &run).history(true, true).unwrap();
    let mut written = Vec::new();
    let mut n_aborted = 0;
    for txn in history.txns() {
        n_aborted += usize::from(history.status(txn) == Status::Aborted);
        for op in history.ops(txn) {
            if let Op::Write { value, .. } = *op {
                written.push(value);
            }
        }
    }
    assert!(n_aborted > 50, "{n_aborted} are aborted");
    assert_eq!(history.n_txns() - n_aborted, 400);
    let n_written = written.len();
    written.sort_unstable();
    written.dedup();
    assert_eq!(written.len(), n_written);
    // A read of an aborted write would be one more anomaly.
    assert!(holds(&history, spec(Level::StrictSer)));
}

#[test]
fn what_cannot_be_run_is_refused() {
    assert!(matches!(
        find("tpc-x"),
        Err(BadParameters::UnknownWorkload(_))
    ));
    let few = Parameters {
        n_keys: Some(7),
        ..Parameters::default()
    };
    let few = find("blindw-rw").unwrap().make(&few).err();
    assert_eq!(
        few,
        Some(BadParameters::FewKeys {
            n_keys: 7,
            n_ops: 8
        })
    );
    let fixed = Parameters {
        n_ops: Some(7),
        ..Parameters::default()
    };
    assert!(find("mini").unwrap().make(&fixed).is_err());
    let mini = find("mini").unwrap().make(&Parameters::default()).unwrap();
    let alone = StoreRun {
        n_clients: 1,
        fault: Some(Fault::LongFork),
        ..small(0)
    };
    let error = alone.run(&*mini).unwrap_err();
    assert!(error.to_string().contains("needs 4 clients"), "{error}");
}

#[test]
fn schemas_do_what_their_transactions_read() {
    for (name, least_reads) in [("tpcc", 10.0), ("rubis", 2.0), ("twitter", 1.0)] {
        let workload = find(name)
            .expect("it is in the table")
            .make(&Parameters::default())
            .expect("it has its own parameters");
        let run = StoreRun {
            n_txns: 2_000,
            ..StoreRun::default()
        };
        let recorded = run.run(&*workload).expect("there are clients");
        let history = recorded.history(true, true).expect("names are counted");
        let n_writes = history
            .txns()
            .flat_map(|txn| history.ops(txn))
            .filter(|op| op.is_write());
        let n_writes = n_writes.count() as f64 / 2_000.0;
        let n_reads = history.n_ops() as f64 / 2_000.0 - n_writes;
        println!(
            "{name}: {n_reads:.1} reads and {n_writes:.1} writes a transaction, {} keys, {} aborted",
            history.n_keys(),
            recorded.n_aborted()
        );
        assert!(n_reads > least_reads && n_writes > 0.3, "{name}");
        assert!(holds(&history, spec(Level::StrictSer)), "{name}");
    }
}
