//! Databases that need no server: `SQLite`, fjall, redb.
#![allow(clippy::unwrap_used)] // A test may panic.

mod common;

use common::{CollectCase, holds};
use kingsnake_collect::{CollectError, Load, Mistake, OrderBy};
use kingsnake_solver::level::Level;

#[test]
fn the_adapters_pass_their_control_and_deliberate_mistakes_are_found() {
    CollectCase::new("sqlite", "serializable", "mini").control(&Mistake::ALL);
    CollectCase::new("fjall", "serializable", "mini").control(&Mistake::ALL);
    // A second connection would wait for the only writer.
    let alone = [Mistake::DroppedWrite, Mistake::StaleRead];
    CollectCase::new("redb", "serializable", "mini").control(&alone);
}

#[test]
fn sqlite_is_serializable_on_every_workload() {
    for workload in [
        "mini",
        "rmw",
        "skew",
        "blind",
        "fresh",
        "append",
        "predicate",
        "bank",
        "register",
    ] {
        let directory = tempfile::tempdir().unwrap();
        let collected =
            CollectCase::new("sqlite", "serializable", workload).collect(directory.path());
        assert_eq!(collected.ended_early, None);
        assert_eq!(
            collected.tally.committed + collected.tally.n_aborted(),
            2_000
        );
        assert!(holds(&collected.history, Level::Ser), "{workload}");
        assert!(holds(&collected.history, Level::StrictSer), "{workload}");
        assert!(collected.merged.findings.is_empty());
    }
}

#[test]
fn sqlite_keeps_its_promise_at_every_level_that_has_one() {
    for isolation in ["serializable", "immediate", "shared-cache"] {
        for order in [OrderBy::Rank, OrderBy::Trigger] {
            let directory = tempfile::tempdir().unwrap();
            let case = CollectCase::new("sqlite", isolation, "blind")
                .by(order)
                .txns(1_000);
            let collected = case.collect(directory.path());
            assert!(holds(&collected.history, Level::Ser), "{isolation}");
            assert!(collected.merged.n_ordered > 0 || collected.tally.committed == 0);
        }
    }
}

#[test]
fn a_shared_cache_with_uncommitted_reads_loses_updates() {
    let mut case = CollectCase::new("sqlite", "read-uncommitted", "rmw");
    case.run.think = std::time::Duration::from_micros(200);
    case.should_violate(Level::Ser);
}

#[test]
fn fjall_and_redb_are_serializable() {
    for database in ["fjall", "redb"] {
        for workload in ["mini", "append"] {
            let directory = tempfile::tempdir().unwrap();
            let collected = CollectCase::new(database, "serializable", workload)
                .txns(1_000)
                .collect(directory.path());
            assert!(
                holds(&collected.history, Level::Ser),
                "{database} {workload}"
            );
        }
    }
}

#[test]
fn a_workload_from_a_file_runs() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("load.toml");
    std::fs::write(&file, "[[transaction]]\nweight = 2\nops = ['read a', 'write b']\n[[transaction]]\nops = ['write a']\n").unwrap();
    let file = file.display().to_string();
    let case = CollectCase::new("sqlite", "serializable", &file);
    let collected = case.collect(&directory.path().join("out"));
    assert!(holds(&collected.history, Level::Ser));
    assert!(Load::new("no-such-file", None, None).is_err());
}

#[test]
fn a_directory_that_holds_a_collection_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let case = CollectCase::new("sqlite", "serializable", "mini").txns(10);
    case.collect(directory.path());
    let database = case.connect(directory.path());
    let stop = std::sync::atomic::AtomicBool::new(false);
    let again =
        case.request(directory.path())
            .collect(&*database, &case.load(), &stop, None, &mut |_| {});
    assert!(matches!(again, Err(CollectError::Occupied(_))));
}

#[test]
fn journals_are_merged_again_without_their_database() {
    let directory = tempfile::tempdir().unwrap();
    let collected = CollectCase::new("sqlite", "serializable", "mini")
        .txns(500)
        .collect(directory.path());
    let before = std::fs::read_to_string(&collected.history).unwrap();
    std::fs::remove_file(&collected.history).unwrap();
    let (_, merged) = kingsnake_collect::merge(directory.path()).unwrap();
    assert_eq!(merged.n_txns, 500);
    assert_eq!(std::fs::read_to_string(&collected.history).unwrap(), before);
    assert!(kingsnake_collect::merge(&directory.path().join("nothing")).is_err());
}

#[test]
fn a_table_in_the_way_is_an_error_and_stays() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("theirs.sqlite");
    let mut case = CollectCase::new("sqlite", "serializable", "mini").txns(100);
    case.urls = vec![file.display().to_string()];
    let database = case.connect(directory.path());
    database.prepare(case.load().initially()).unwrap();
    let again = database
        .prepare(case.load().initially())
        .unwrap_err()
        .to_string();
    assert!(
        again.contains("kingsnake_registers is in the way"),
        "{again}"
    );
    database.clean().unwrap();
    case.collect(&directory.path().join("out"));
    // The file is the user's: only our tables are gone.
    assert!(file.exists());
    database.prepare(case.load().initially()).unwrap();
}
