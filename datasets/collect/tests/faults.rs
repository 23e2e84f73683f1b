//! Faults that need more than a server: a standby that is promoted, a clock that is off, a disk that is full. Each is refused with
//! a reason where this machine cannot do it.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // A test says what it saw, and may panic.

mod common;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use common::{CollectCase, gone, holds, start};
use kingsnake_collect::server::{Private, Proxy, ServerError, Wanted};
use kingsnake_collect::{
    CollectRun, Collected, Events, MergeFinding, OrderBy, ReadsAt, Schedule, ServerFault,
};
use kingsnake_solver::level::Level;

/// A proxy before each node, and the addresses through them.
fn proxies(server: &Private) -> (Vec<Proxy>, Vec<String>) {
    let through = |(node, url): (usize, &String)| {
        let port = server.port(node);
        let proxy = Proxy::start(("127.0.0.1", port)).unwrap();
        let url = url.replace(&format!(":{port}/"), &format!(":{}/", proxy.port()));
        (proxy, url)
    };
    server.urls.iter().enumerate().map(through).unzip()
}

/// Runs one fault after another beside a collection, and returns it with the history's text.
fn suffer(case: &mut CollectCase<'_>, server: &Private, fault: ServerFault) -> (Collected, String) {
    let (proxies, urls) = proxies(server);
    case.urls = urls;
    case.run = CollectRun {
        txns: 1_000_000,
        limit: Some(Duration::from_secs(5)),
        ..CollectRun::default()
    };
    let schedule = Schedule {
        faults: vec![fault],
        every: Duration::from_millis(1_500),
        seed: 1,
        server: Some(server),
        proxies: &proxies,
    };
    let directory = tempfile::tempdir().unwrap();
    let promise = kingsnake_collect::adapter(case.database).unwrap();
    let promise = promise.level(case.isolation).unwrap().level.unwrap();
    let beside = |events: &Events, done: &AtomicBool| schedule.run(events, done);
    let collected = case.collect_beside(directory.path(), Some(&beside));
    assert_eq!(collected.ended_early, None);
    let text = std::fs::read_to_string(&collected.history).unwrap();
    // What was lost with its primary is no promise of the level any more.
    if collected.merged.findings.is_empty() {
        assert!(holds(&collected.history, promise.parse::<Level>().unwrap()));
    }
    (collected, text)
}

/// How many acknowledged writes a failover lost.
fn lost_by_failover(database: &str, isolation: &str, setting: Option<&str>) -> Option<usize> {
    let server = start(&Wanted {
        nodes: 2,
        has_roles: true,
        faults: &[ServerFault::Failover],
        ..Wanted::one(database)
    })?;
    let mut case = CollectCase::new(database, isolation, "blind").by(OrderBy::Trigger);
    case.reads = Some(ReadsAt::Primary);
    let setting = setting.map(|it| ("synchronous_commit".to_owned(), it.to_owned()));
    case.settings = setting.into_iter().collect();
    let (collected, text) = suffer(&mut case, &server, ServerFault::Failover);
    assert!(
        text.contains("node 1 is the primary"),
        "no standby was promoted"
    );
    let lost = |it: &&MergeFinding| matches!(it, MergeFinding::Lost { .. });
    let lost = collected.merged.findings.iter().filter(lost).count();
    gone(server);
    Some(lost)
}

#[test]
#[ignore = "make test-databases"]
fn a_failover_to_a_synchronous_standby_loses_nothing() {
    if let Some(lost) = lost_by_failover("postgres", "repeatable-read", Some("on")) {
        assert_eq!(lost, 0);
    }
}

#[test]
#[ignore = "make test-databases"]
fn a_failover_to_an_asynchronous_standby_may_lose_acknowledged_writes() {
    for (database, isolation, setting) in [
        ("postgres", "repeatable-read", Some("local")),
        ("mariadb", "serializable", None),
    ] {
        if let Some(lost) = lost_by_failover(database, isolation, setting) {
            println!("{database}: {lost} acknowledged writes lost");
        }
    }
}

#[test]
#[ignore = "make test-databases"]
fn a_clock_that_is_off_breaks_no_promise_of_postgres() {
    let faults = &[ServerFault::Clock];
    let Some(server) = start(&Wanted {
        faults,
        ..Wanted::one("postgres")
    }) else {
        return;
    };
    let mut case = CollectCase::new("postgres", "serializable", "mini");
    let (_, text) = suffer(&mut case, &server, faults[0]);
    assert!(
        text.contains("the clock of node 0 is off by"),
        "no clock was set"
    );
    gone(server);
}

#[test]
#[ignore = "make test-databases"]
fn a_full_disk_loses_no_acknowledged_write() {
    let faults = &[ServerFault::DiskFull];
    let wanted = Wanted {
        faults,
        ..Wanted::one("postgres")
    };
    if let Err(error @ ServerError::CannotSuffer(_)) = Private::start(&wanted) {
        println!("SKIPPED a test of full disks: {error}");
        return;
    }
    let Some(server) = start(&wanted) else {
        return;
    };
    let mut case = CollectCase::new("postgres", "serializable", "mini").by(OrderBy::Trigger);
    let (collected, text) = suffer(&mut case, &server, faults[0]);
    assert!(text.contains("has room again"), "no disk was full");
    assert_eq!(collected.merged.findings, []);
    gone(server);
}

#[test]
fn faults_that_a_database_cannot_have_are_refused_with_a_reason() {
    let refused = |database, fault| {
        let faults = &[fault];
        let wanted = Wanted {
            faults,
            ..Wanted::one(database)
        };
        match Private::start(&wanted).map(drop) {
            Err(error @ ServerError::CannotSuffer(_)) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let said = refused("etcd", ServerFault::Clock);
    assert!(said.contains("libfaketime"), "{said}");
    for database in ["redis", "postgres", "mariadb"] {
        let said = refused(database, ServerFault::Failover);
        assert!(
            said.contains("collect postgres --start --nodes 2"),
            "{said}"
        );
    }
}
