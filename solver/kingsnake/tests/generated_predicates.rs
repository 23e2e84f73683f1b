//! Generated histories of TPC-C, Twitter and Emme's table with predicates, deletes and aggregates, at every level and without a
//! certificate: what the store promises holds, and every check ends with a verdict. `KINGSNAKE_LONG=1` checks 2,000 of them.

use std::time::Duration;

use kingsnake::{Checker, History, Level, Verdict};
use kingsnake_datasets::store::{Isolation, StoreRun};
use kingsnake_datasets::workloads::{Parameters, find};
use kingsnake_history::level::Model;

const LEVELS: [Level; 10] = [
    Level::Rc,
    Level::RcSo,
    Level::Ra,
    Level::Cc,
    Level::Pc,
    Level::Psi,
    Level::Si,
    Level::Ser,
    Level::StrictSer,
    Level::AsRecorded,
];

const WORKLOADS: [&str; 3] = ["tpcc-predicates", "twitter-predicates", "emme-predicates"];

/// The levels of transactions that have their own. Emme's table has the first three, which are those of SQL databases: with the others
/// some of its histories end at the time limit (docs/uncertain-reads.md).
const MODELS: [Model; 7] = [
    Model::Ser,
    Model::Si,
    Model::RcSo,
    Model::Pc,
    Model::Rc,
    Model::Cc,
    Model::Ra,
];

/// No check takes nearly as long: one that does is counted as unknown.
const TIMEOUT: Duration = Duration::from_secs(60);

#[derive(Default, Debug)]
struct Tally {
    satisfied: usize,
    violated: usize,
    unknown: usize,
    refused: usize,
}

fn n_histories() -> u64 {
    match std::env::var_os("KINGSNAKE_LONG") {
        Some(_) => 2_000,
        None => 48,
    }
}

/// A run of many clients on few rows; the seed draws all that can be drawn.
fn run(seed: u64) -> (&'static str, StoreRun) {
    let workload = WORKLOADS[seed as usize % 3];
    let most = match workload {
        // Every condition looks at all of its hundred rows.
        "emme-predicates" => 26,
        _ => 200,
    };
    let run = StoreRun {
        n_txns: 20 + (seed as usize * 37) % most,
        n_clients: 2 + seed as usize % 9,
        isolation: Isolation::ALL[seed as usize / 3 % 4],
        predicate_locks: !seed.is_multiple_of(5),
        seed,
        ..StoreRun::default()
    };
    (workload, run)
}

fn history(seed: u64) -> (&'static str, StoreRun, History) {
    let (workload, run) = run(seed);
    let parameters = Parameters {
        distribution: "zipf:1.2".parse().expect("a distribution"),
        ..Parameters::default()
    };
    let made = find(workload).expect("it is in the table");
    let made = made.make(&parameters).expect("these are its own");
    let recorded = run.run(&*made).expect("there are clients");
    let mut history = recorded.history(false, true).expect("it is a history");
    assert!(history.n_predicates() > 0 && history.has_times());
    let n_models = match workload {
        "emme-predicates" => 3,
        _ => MODELS.len(),
    };
    let drawn = |txn: usize| MODELS[(seed as usize / 9 + txn * 2) % n_models];
    let set: Result<(), std::convert::Infallible> =
        history.set_models(|_, txn| Ok(drawn(txn.index())));
    match set {
        Ok(()) => (workload, run, history),
    }
}

/// Whether the store promises a level. Without predicate locks a level counts as read committed for predicates.
fn is_promised(run: &StoreRun, history: &History, level: Level) -> bool {
    let promised = match run.isolation {
        Isolation::Serializable if run.predicate_locks => Level::StrictSer,
        Isolation::Snapshot => Level::Si,
        Isolation::PrefixConsistent => Level::Pc,
        Isolation::Serializable | Isolation::ReadCommitted => Level::Rc,
    };
    let promised = promised.spec(None).expect("it has a default");
    if level == Level::AsRecorded {
        let mut models = history.models().iter();
        return models.all(|&model| promised.model == model || promised.model.implies(model));
    }
    let asked = level.spec(None).expect("it has a default");
    promised == asked || promised.implies(asked)
}

#[test]
fn generated_histories_with_predicates_are_decided_at_every_level_and_promises_hold() {
    let mut tallies: Vec<Tally> = LEVELS.iter().map(|_| Tally::default()).collect();
    for seed in 0..n_histories() {
        let (workload, run, history) = history(seed);
        for (level, tally) in LEVELS.into_iter().zip(&mut tallies) {
            let mut checker = Checker::new().level(level).timeout(TIMEOUT);
            match checker.check(&history) {
                Ok(Verdict::Satisfied(_)) => tally.satisfied += 1,
                Ok(Verdict::Violated(violation)) => {
                    let story = violation.story();
                    let is_promised = is_promised(&run, &history, level);
                    assert!(!is_promised, "{workload} {seed} {level}: {story}");
                    tally.violated += 1;
                }
                Ok(Verdict::Unknown(reason)) => {
                    println!("{workload} {seed} {level}: unknown: {reason}");
                    tally.unknown += 1;
                }
                Err(error) => {
                    println!("{workload} {seed} {level}: {error}");
                    tally.refused += 1;
                }
            }
        }
    }
    for (level, tally) in LEVELS.into_iter().zip(&tallies) {
        println!("{} histories at {level}: {tally:?}", n_histories());
    }
    for (level, tally) in LEVELS.into_iter().zip(&tallies) {
        assert_eq!((tally.unknown, tally.refused), (0, 0), "{level}");
        assert!(tally.satisfied > 2, "{level}");
        let is_weak = matches!(level, Level::Rc | Level::RcSo);
        assert!(tally.violated > 2 || is_weak, "{level}");
    }
}
