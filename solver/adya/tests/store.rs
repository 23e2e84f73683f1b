//! The embedded store under Emme's workloads: what it promises holds on its certificate and along its commits, and phantoms that
//! it lets through are found.

use kingsnake_adya::{along, check};
use kingsnake_datasets::store::{Isolation, StoreRun};
use kingsnake_datasets::workloads::{Parameters, find};
use kingsnake_history::adya::{Dependency, PlLevel, Refutation};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::History;
use kingsnake_history::promise::Along;
use kingsnake_history::verdict::{Counterexample, Verdict};

fn recorded(workload: &str, run: &StoreRun) -> History {
    let workload = find(workload).expect("it is in the table");
    let workload = workload
        .make(&Parameters::default())
        .expect("these are its own parameters");
    let recorded = run.run(&*workload).expect("there are clients");
    recorded.history(true, false).expect("it is a history")
}

fn run(isolation: Isolation, predicate_locks: bool) -> StoreRun {
    StoreRun {
        n_txns: 300,
        n_clients: 8,
        isolation,
        predicate_locks,
        ..StoreRun::default()
    }
}

fn verdict(history: &History, level: PlLevel) -> Verdict {
    let report = check(history, level, &Budget::unlimited());
    report.unwrap_or_else(|error| panic!("{error}")).0
}

fn fits(history: &History) -> bool {
    let report = along(history, &Along::CommitTs, &Budget::unlimited());
    let verdict = report.unwrap_or_else(|error| panic!("{error}"));
    verdict.holds() == Some(true)
}

#[test]
fn a_serializable_store_is_serializable_on_its_certificate_and_along_its_commits() {
    for workload in [
        "emme-items",
        "emme-predicates",
        "emme-predicates-100",
        "tpcc-predicates",
        "twitter-predicates",
    ] {
        let history = recorded(workload, &run(Isolation::Serializable, true));
        // The store lets blind writers of one row overlap, which is serializable and no snapshot isolation.
        for level in PlLevel::ALL.into_iter().filter(|&it| it != PlLevel::PlSi) {
            assert!(
                matches!(verdict(&history, level), Verdict::Satisfied(_)),
                "{workload} at {level}"
            );
        }
        assert!(fits(&history), "{workload}");
    }
}

#[test]
fn phantoms_are_found_where_the_store_lets_them_through() {
    let history = recorded("emme-predicates", &run(Isolation::Serializable, false));
    let Verdict::Violated(Counterexample::Recorded(Refutation::Cycle(_, steps))) =
        verdict(&history, PlLevel::Pl3)
    else {
        panic!("a cycle was expected");
    };
    let mut kinds = steps.iter().filter_map(|step| step.because);
    assert!(kinds.any(|it| it.dependency == Dependency::PredRw));
    assert!(!fits(&history));
}

#[test]
fn weaker_stores_hold_at_their_own_level_only() {
    let history = recorded("emme-predicates", &run(Isolation::Snapshot, true));
    assert!(matches!(
        verdict(&history, PlLevel::PlSi),
        Verdict::Satisfied(_)
    ));
    assert!(matches!(
        verdict(&history, PlLevel::Pl3),
        Verdict::Violated(_)
    ));
    let history = recorded("emme-predicates", &run(Isolation::ReadCommitted, true));
    assert!(matches!(
        verdict(&history, PlLevel::Pl2),
        Verdict::Satisfied(_)
    ));
    assert!(matches!(
        verdict(&history, PlLevel::Pl2Plus),
        Verdict::Violated(_)
    ));
}
