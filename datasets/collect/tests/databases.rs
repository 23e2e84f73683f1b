//! Databases that `make test` does not install: each one's self-test, its control, a short collection, and its errors. Run by
//! `make test-databases`.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // A test says what it saw, and may panic.

mod common;

use std::path::Path;

use common::{CollectCase, holds};
use kingsnake_collect::{Failure, Mistake, OrderBy};
use kingsnake_solver::level::Level;

/// A second connection would wait for a lock of the first, so one mistake is left out where readers wait for writers.
const ALONE: [Mistake; 2] = [Mistake::DroppedWrite, Mistake::StaleRead];

/// The self-test and the deliberate mistakes; nothing where the database is not here.
fn control(database: &str, isolation: &str, mistakes: &[Mistake]) -> bool {
    let case = CollectCase::new(database, isolation, "mini").txns(600);
    let directory = tempfile::tempdir().unwrap();
    let tried = case
        .try_connect(directory.path())
        .and_then(|database| database.version());
    match tried {
        Ok(version) => println!("{version}"),
        Err(Failure::Fatal(why)) => {
            println!("SKIPPED a test with {database}: {why}");
            return false;
        }
        Err(failure) => panic!("{failure}"),
    }
    case.control(mistakes);
    true
}

fn collect(database: &str, isolation: &str, workload: &str) -> bool {
    let directory = tempfile::tempdir().unwrap();
    let case = CollectCase::new(database, isolation, workload).txns(1_000);
    let collected = case.collect(directory.path());
    assert_eq!(collected.ended_early, None, "{database} {isolation}");
    assert!(collected.tally.committed > 100, "{database} {isolation}");
    assert!(
        !directory
            .path()
            .join(format!("database.{database}"))
            .exists()
    );
    let level = kingsnake_collect::adapter(database).unwrap();
    let promised = level.level(isolation).unwrap().level;
    promised.is_none_or(|name| holds(&collected.history, name.parse::<Level>().unwrap()))
}

fn keeps(database: &str, isolation: &str, workloads: &[&str]) {
    for workload in workloads {
        assert!(
            collect(database, isolation, workload),
            "{database} broke {isolation} on {workload}"
        );
    }
}

#[test]
#[ignore = "make test-databases"]
fn h2_keeps_what_it_promises() {
    if !control("h2", "serializable", &ALONE) {
        return;
    }
    for isolation in [
        "serializable",
        "snapshot",
        "repeatable-read",
        "read-committed",
    ] {
        keeps("h2", isolation, &["mini", "append"]);
    }
    CollectCase::new("h2", "serializable", "skew").should_violate(Level::Ser);
    CollectCase::new("h2", "read-committed", "rmw").should_violate(Level::Si);
}

#[test]
#[ignore = "make test-databases"]
fn hsqldb_keeps_what_it_promises() {
    if !control("hsqldb", "serializable", &ALONE) {
        return;
    }
    for isolation in ["serializable", "read-committed", "mvcc-read-committed"] {
        keeps("hsqldb", isolation, &["mini", "append"]);
    }
    CollectCase::new("hsqldb", "mvcc-serializable", "skew").should_violate(Level::Ser);
    CollectCase::new("hsqldb", "read-committed", "rmw").should_violate(Level::Si);
}

#[test]
#[ignore = "make test-databases"]
fn derby_keeps_what_it_promises() {
    if !control("derby", "serializable", &ALONE) {
        return;
    }
    for isolation in ["serializable", "repeatable-read", "read-committed"] {
        keeps("derby", isolation, &["mini", "append"]);
    }
    CollectCase::new("derby", "read-committed", "rmw").should_violate(Level::Si);
}

#[test]
#[ignore = "make test-databases"]
fn duckdb_keeps_snapshots_of_updates() {
    if !control("duckdb", "snapshot", &Mistake::ALL) {
        return;
    }
    keeps("duckdb", "snapshot", &["mini", "rmw", "append"]);
    CollectCase::new("duckdb", "snapshot", "skew").should_violate(Level::Ser);
}

#[test]
#[ignore = "make test-databases"]
fn turso_keeps_what_it_promises() {
    if !control("turso", "serializable", &ALONE) {
        return;
    }
    for isolation in ["serializable", "immediate"] {
        keeps("turso", isolation, &["mini", "append"]);
    }
    CollectCase::new("turso", "concurrent", "skew").should_violate(Level::Ser);
}

#[test]
#[ignore = "make test-databases"]
fn rocksdb_keeps_what_it_promises() {
    if !control("rocksdb", "pessimistic", &Mistake::ALL) {
        return;
    }
    for isolation in ["pessimistic", "optimistic"] {
        keeps("rocksdb", isolation, &["mini", "rmw", "append"]);
        let locking = format!("{isolation}-for-update");
        keeps("rocksdb", &locking, &["mini", "skew"]);
        CollectCase::new("rocksdb", isolation, "skew").should_violate(Level::Ser);
        let newest = format!("{isolation}-no-snapshot");
        CollectCase::new("rocksdb", &newest, "rmw").should_violate(Level::Si);
    }
}

#[cfg(feature = "surrealkv")]
#[test]
#[ignore = "make test-databases"]
fn surrealkv_lost_updates_before_its_first_release() {
    assert!(control("surrealkv", "snapshot", &Mistake::ALL));
    keeps("surrealkv", "snapshot", &["mini", "rmw", "append"]);
    let mut before = CollectCase::new("surrealkv", "snapshot", "rmw");
    before.settings = vec![("version".to_owned(), "0.21".to_owned())];
    before.should_violate(Level::Si);
}

fn error(database: &str, isolation: &str, setting: (&str, &str), place: &Path) -> String {
    let mut case = CollectCase::new(database, isolation, "mini");
    case.settings = vec![(setting.0.to_owned(), setting.1.to_owned())];
    let tried = case.try_connect(place).and_then(|it| it.version());
    let error = tried.unwrap_err().to_string();
    assert_eq!(std::fs::read_dir(place).unwrap().count(), 0, "{error}");
    error
}

#[test]
fn what_is_not_installed_is_named_and_nothing_is_left() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let said = error("h2", "serializable", ("jar", "/nowhere/h2.jar"), place);
    assert!(
        said.contains("/nowhere/h2.jar") && said.contains("libh2-java"),
        "{said}"
    );
    let said = error("duckdb", "snapshot", ("python", "/nowhere/python"), place);
    assert!(
        said.contains("/nowhere/python") && said.contains("Python 3"),
        "{said}"
    );
    let said = error(
        "rocksdb",
        "optimistic",
        ("library", "/nowhere/librocksdb.so"),
        place,
    );
    assert!(
        said.contains("/nowhere/librocksdb.so") && said.contains("librocksdb-dev"),
        "{said}"
    );
}

#[test]
fn redis_keeps_what_it_promises() {
    let Some(server) = common::server("redis", 1) else {
        return;
    };
    for isolation in ["watch", "script"] {
        let case = CollectCase::new("redis", isolation, "mini").at(&server);
        case.txns(400).control(&ALONE);
        for workload in ["mini", "append", "predicate", "register"] {
            let directory = tempfile::tempdir().unwrap();
            let case = CollectCase::new("redis", isolation, workload);
            let collected = case
                .at(&server)
                .by(OrderBy::Trigger)
                .txns(800)
                .collect(directory.path());
            assert!(
                holds(&collected.history, Level::StrictSer),
                "{isolation} {workload}"
            );
            assert_eq!(collected.merged.findings, []);
        }
    }
    let unwatched = CollectCase::new("redis", "unwatched", "rmw").at(&server);
    unwatched.should_violate(Level::Si);
    let mut wrong = CollectCase::new("redis", "watch", "mini").at(&server);
    wrong.urls[0] = wrong.urls[0].replace("redis://:", "redis://:x");
    let directory = tempfile::tempdir().unwrap();
    let said = wrong.try_connect(directory.path()).unwrap().version();
    let said = said.unwrap_err().to_string();
    assert!(said.to_lowercase().contains("authentication"), "{said}");
    let password = server.urls[0].split([':', '@']).nth(2).unwrap();
    assert!(!said.contains(password), "{said}");
    common::gone(server);
}
