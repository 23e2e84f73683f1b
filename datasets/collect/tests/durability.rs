//! The log's evidence about acknowledged writes and unknown outcomes: with a manipulated log, with asynchronous commit
//! and crashes, and by `PostgreSQL`'s own answer.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // A test says what it saw, and may panic.

mod common;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use common::{CollectCase, gone, holds, server};
use kingsnake_collect::server::Proxy;
use kingsnake_collect::{
    CollectRun, Database, DatabaseSession, Events, Failure, Initially, MergeFinding, OrderBy,
    Resolution, Schedule, ServerFault, StoredCell, VersionLog,
};
use kingsnake_solver::level::Level;

/// A database whose log was changed afterwards.
struct Doctored<'a> {
    inner: &'a dyn Database,
    change: &'a (dyn Fn(&mut VersionLog) + Sync),
}

impl Database for Doctored<'_> {
    fn version(&self) -> Result<String, Failure> {
        self.inner.version()
    }

    fn prepare(&self, initially: Initially) -> Result<(), Failure> {
        self.inner.prepare(initially)
    }

    fn open(&self, session: usize) -> Result<Box<dyn DatabaseSession>, Failure> {
        self.inner.open(session)
    }

    fn log(&self) -> Result<Option<VersionLog>, Failure> {
        let log = self.inner.log()?;
        Ok(log.map(|mut log| {
            (self.change)(&mut log);
            log
        }))
    }

    fn resolve(&self, txn: &str) -> Resolution {
        self.inner.resolve(txn)
    }

    fn clean(&self) -> Result<(), Failure> {
        self.inner.clean()
    }
}

fn findings(change: &(dyn Fn(&mut VersionLog) + Sync)) -> Vec<MergeFinding> {
    let directory = tempfile::tempdir().unwrap();
    // One at a time, so that none is refused: an aborted write is a plain one to the trigger's table.
    let mut case = CollectCase::new("sqlite", "immediate", "rmw")
        .by(OrderBy::Trigger)
        .txns(200);
    case.run.sessions = 2;
    let inner = case.connect(directory.path());
    let doctored = Doctored {
        inner: &*inner,
        change,
    };
    let collected = case.collect_from(&doctored, &directory.path().join("out"), None);
    collected.merged.findings
}

#[test]
fn a_log_without_an_acknowledged_write_is_a_durability_finding() {
    assert_eq!(findings(&|_| ()), []);
    let lost = findings(&|log| log.versions.truncate(log.versions.len() - 1));
    let [MergeFinding::Lost { .. }] = lost[..] else {
        panic!("{lost:?}");
    };
    assert!(lost[0].to_string().starts_with("durability: transaction "));
    assert!(lost[0].to_string().contains("was acknowledged"));
    let twice = findings(&|log| log.versions.push(log.versions[5]));
    assert!(
        matches!(twice[..], [MergeFinding::Twice { .. }]),
        "{twice:?}"
    );
    // A log of which the end is not known to be there proves no loss.
    let open = findings(&|log| {
        log.versions.truncate(50);
        log.is_complete = false;
    });
    assert_eq!(open, []);
}

#[test]
fn asynchronous_commit_loses_acknowledged_writes_when_the_server_is_killed() {
    let Some(server) = server("postgres", 1) else {
        return;
    };
    for attempt in 1..=3 {
        let directory = tempfile::tempdir().unwrap();
        let mut case = CollectCase::new("postgres", "read-committed", "blind")
            .at(&server)
            .by(OrderBy::Log);
        case.settings = vec![("synchronous_commit".to_owned(), "off".to_owned())];
        case.run = CollectRun {
            txns: 100_000,
            limit: Some(Duration::from_secs(4 * attempt)),
            seed: attempt,
            ..CollectRun::default()
        };
        let schedule = Schedule {
            faults: vec![ServerFault::Kill],
            every: Duration::from_millis(700),
            seed: attempt,
            server: Some(&server),
            proxies: &[],
        };
        let beside = |events: &Events, done: &AtomicBool| schedule.run(events, done);
        let collected = case.collect_beside(directory.path(), Some(&beside));
        let found = &collected.merged.findings;
        let lost = found
            .iter()
            .filter(|it| matches!(it, MergeFinding::Lost { .. }));
        let n_lost = lost.count();
        if n_lost > 0 {
            println!(
                "{n_lost} acknowledged writes were lost, for example: {}",
                found[0]
            );
            gone(server);
            return;
        }
    }
    println!("NOT SHOWN: no acknowledged write was lost");
    gone(server);
}

#[test]
fn postgres_says_what_became_of_a_transaction() {
    let Some(server) = server("postgres", 1) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let case = CollectCase::new("postgres", "serializable", "mini").at(&server);
    let database = case.connect(directory.path());
    database.prepare(Initially::Rows(3)).unwrap();
    let mut session = database.open(0).unwrap();
    let cell = |value| StoredCell { value, beside: 0 };
    session.begin().unwrap();
    let committed = session.write(0, cell(1)).unwrap().txn.unwrap();
    session.commit().unwrap();
    session.begin().unwrap();
    let aborted = session.write(1, cell(2)).unwrap().txn.unwrap();
    session.abort().unwrap();
    session.begin().unwrap();
    let open = session.write(2, cell(3)).unwrap().txn.unwrap();
    assert_eq!(database.resolve(&committed), Resolution::Committed);
    assert_eq!(database.resolve(&aborted), Resolution::Aborted);
    assert_eq!(database.resolve(&open), Resolution::Unknown);
    // The connection goes away, and with it the transaction.
    drop(session);
    assert_eq!(database.resolve(&open), Resolution::Aborted);
    assert_eq!(database.resolve("no number"), Resolution::Unknown);
    database.clean().unwrap();
    gone(server);
}

#[test]
fn unknown_ends_are_settled_by_the_word_of_postgres_where_there_is_no_log() {
    let Some(server) = server("postgres", 1) else {
        return;
    };
    let place = server.urls[0].split(['@', '/']).nth(3).unwrap().to_owned();
    let proxies = [Proxy::start(&*place).unwrap()];
    let mut case = CollectCase::new("postgres", "serializable", "rmw")
        .at(&server)
        .by(OrderBy::Rank);
    let through = format!("127.0.0.1:{}", proxies[0].port());
    case.urls[0] = case.urls[0].replace(&place, &through);
    let (mut unknown, mut settled) = (0, [0, 0]);
    for seed in 1..=3 {
        case.run = CollectRun {
            txns: 100_000,
            limit: Some(Duration::from_secs(3)),
            seed,
            ..CollectRun::default()
        };
        let schedule = Schedule {
            faults: vec![ServerFault::HalfClose, ServerFault::Cut],
            every: Duration::from_millis(150),
            seed,
            server: Some(&server),
            proxies: &proxies,
        };
        let directory = tempfile::tempdir().unwrap();
        let beside = |events: &Events, done: &AtomicBool| schedule.run(events, done);
        let collected = case.collect_beside(directory.path(), Some(&beside));
        let merged = &collected.merged;
        assert_eq!(merged.unknown, 0, "every writer has a name");
        assert!(holds(&collected.history, Level::Ser));
        unknown += collected.tally.unknown;
        settled[0] += merged.settled_committed;
        settled[1] += merged.settled_aborted;
        if settled[0] > 0 && settled[1] > 0 {
            break;
        }
    }
    assert_eq!(unknown as usize, settled[0] + settled[1]);
    println!(
        "{unknown} unknown ends: {} had committed, {} had not",
        settled[0], settled[1]
    );
    if unknown == 0 {
        println!("NOT SHOWN: no commit was cut off");
    }
    gone(server);
}
