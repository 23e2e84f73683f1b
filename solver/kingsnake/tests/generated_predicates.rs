//! Generated histories of TPC-C and Twitter with predicates and deletes: what the store promises holds, and every check ends with a
//! verdict. `KINGSNAKE_LONG=1` checks 2,000 of them.

use kingsnake::{Checker, Level, Verdict};
use kingsnake_datasets::store::{Isolation, StoreRun};
use kingsnake_datasets::workloads::{Parameters, find};

/// The levels at which conditions are decided.
const LEVELS: [Level; 3] = [Level::Ser, Level::Si, Level::Pc];

#[derive(Default, Debug)]
struct Tally {
    satisfied: usize,
    violated: usize,
}

fn n_histories() -> u64 {
    match std::env::var_os("KINGSNAKE_LONG") {
        Some(_) => 2_000,
        None => 48,
    }
}

/// A run of many clients on few rows; the seed draws all that can be drawn.
fn run(seed: u64) -> (&'static str, StoreRun) {
    let workload = ["tpcc-predicates", "twitter-predicates"][seed as usize % 2];
    let isolations = [
        Isolation::Serializable,
        Isolation::Snapshot,
        Isolation::ReadCommitted,
    ];
    let isolation = isolations[seed as usize / 2 % 3];
    let run = StoreRun {
        n_txns: 20 + (seed as usize * 37) % 200,
        n_clients: 2 + seed as usize % 9,
        isolation,
        predicate_locks: !seed.is_multiple_of(5),
        seed,
        ..StoreRun::default()
    };
    (workload, run)
}

#[test]
fn generated_histories_with_predicates_are_decided_and_promises_hold() {
    let mut tally = Tally::default();
    for seed in 0..n_histories() {
        let (workload, run) = run(seed);
        let parameters = Parameters {
            distribution: "zipf:1.2".parse().expect("a distribution"),
            ..Parameters::default()
        };
        let made = find(workload).expect("it is in the table");
        let made = made.make(&parameters).expect("these are its own");
        let recorded = run.run(&*made).expect("there are clients");
        let history = recorded.history(false, false).expect("it is a history");
        assert!(history.n_predicates() > 0);
        for level in LEVELS {
            let promised = match run.isolation {
                Isolation::Serializable => run.predicate_locks && level != Level::Si,
                Isolation::Snapshot => level != Level::Ser,
                Isolation::PrefixConsistent | Isolation::ReadCommitted => false,
            };
            match Checker::new().level(level).check(&history) {
                Ok(Verdict::Satisfied(_)) => tally.satisfied += 1,
                Ok(Verdict::Violated(violation)) => {
                    let story = violation.story();
                    assert!(!promised, "{workload} {seed} {level}: {story}");
                    tally.violated += 1;
                }
                Ok(Verdict::Unknown(reason)) => panic!("{workload} {seed} {level}: {reason}"),
                Err(error) => panic!("{workload} {seed} {level}: {error}"),
            }
        }
    }
    println!("{} histories: {tally:?}", n_histories());
    assert!(tally.satisfied.min(tally.violated) > 10);
}
