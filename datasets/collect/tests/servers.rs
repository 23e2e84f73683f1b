//! Private servers of installed packages. Verdicts are asserted only where the database guarantees them.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // A test says what it saw, and may panic.

mod common;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use common::{Case, holds, server};
use kingsnake_collect::server::{Private, Proxy, is_running};
use kingsnake_collect::{Events, Fault, Finding, Mistake, OrderBy, Run, Schedule};
use kingsnake_solver::level::Level;

fn pids(server: &Private) -> Vec<i32> {
    (0..server.n_nodes())
        .flat_map(|node| server.pids(node))
        .collect()
}

/// Ends the server, and makes sure that nothing is left of it.
fn gone(server: Private) {
    let (pids, directory) = (pids(&server), server.directory().to_owned());
    drop(server);
    assert!(pids.iter().all(|&pid| !is_running(pid)), "{pids:?}");
    assert!(!directory.exists());
}

#[test]
fn postgres_keeps_serializable_and_snapshot_isolation() {
    let Some(server) = server("postgres", 1) else {
        return;
    };
    Case::new("postgres", "serializable", "mini")
        .at(&server)
        .txns(800)
        .control(&Mistake::ALL);
    for order in [OrderBy::Log, OrderBy::Rank, OrderBy::Trigger] {
        let directory = tempfile::tempdir().unwrap();
        let case = Case::new("postgres", "serializable", "blind")
            .at(&server)
            .by(order)
            .txns(1_000);
        let collected = case.collect(directory.path());
        assert!(holds(&collected.history, Level::Ser), "{}", order.name());
        assert!(collected.merged.n_ordered > 0, "{}", order.name());
        assert_eq!(collected.merged.findings, []);
    }
    for workload in ["fresh", "append", "predicate", "bank"] {
        let directory = tempfile::tempdir().unwrap();
        let case = Case::new("postgres", "serializable", workload)
            .at(&server)
            .by(OrderBy::Log)
            .txns(800);
        let collected = case.collect(directory.path());
        assert!(holds(&collected.history, Level::Ser), "{workload}");
        assert_eq!(collected.merged.findings, []);
    }
    let directory = tempfile::tempdir().unwrap();
    let mut case = Case::new("postgres", "repeatable-read", "skew").at(&server);
    case.settings = vec![("snapshots".to_owned(), "on".to_owned())];
    let collected = case.collect(directory.path());
    assert!(holds(&collected.history, Level::Si));
    let text = std::fs::read_to_string(&collected.history).unwrap();
    assert!(text.contains("\"snapshots\":[\"") && text.contains("\"xid\":"));
    Case::new("postgres", "repeatable-read", "skew")
        .at(&server)
        .should_violate(Level::Ser);
    Case::new("postgres", "read-committed", "rmw")
        .at(&server)
        .should_violate(Level::Si);
    gone(server);
}

/// Runs a schedule beside a collection.
fn with_faults(case: &Case<'_>, schedule: &Schedule<'_>) -> kingsnake_collect::Collected {
    let directory = tempfile::tempdir().unwrap();
    let beside = |events: &Events, done: &AtomicBool| schedule.run(events, done);
    let collected = case.collect_beside(directory.path(), Some(&beside));
    assert_eq!(collected.ended_early, None);
    let text = std::fs::read_to_string(&collected.history).unwrap();
    assert!(text.lines().any(|line| line.starts_with("{\"event\"")));
    assert!(holds(&collected.history, Level::Ser));
    collected
}

#[test]
fn postgres_survives_crashes_pauses_and_cuts() {
    let Some(server) = server("postgres", 1) else {
        return;
    };
    let proxy = Proxy::start(server.urls[0].split(['@', '/']).nth(3).unwrap()).unwrap();
    let proxies = [proxy];
    let mut case = Case::new("postgres", "serializable", "rmw")
        .at(&server)
        .by(OrderBy::Log);
    let port = server.urls[0]
        .rsplit(':')
        .next()
        .unwrap()
        .split('/')
        .next()
        .unwrap()
        .to_owned();
    case.urls[0] = case.urls[0].replace(&port, &proxies[0].port().to_string());
    case.run = Run {
        txns: 100_000,
        limit: Some(Duration::from_secs(5)),
        ..Run::default()
    };
    let schedule = Schedule {
        faults: Fault::ALL.to_vec(),
        every: Duration::from_millis(400),
        seed: 1,
        server: Some(&server),
        proxies: &proxies,
    };
    let collected = with_faults(&case, &schedule);
    assert_eq!(collected.merged.findings, []);
    assert_eq!(
        collected.merged.unknown, 0,
        "the log settles every unknown end of a writer"
    );
    gone(server);
}

#[test]
fn asynchronous_commit_loses_acknowledged_writes_when_the_server_is_killed() {
    let Some(server) = server("postgres", 1) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let mut case = Case::new("postgres", "serializable", "blind")
        .at(&server)
        .by(OrderBy::Log);
    case.settings = vec![("synchronous_commit".to_owned(), "off".to_owned())];
    case.run = Run {
        txns: 100_000,
        limit: Some(Duration::from_secs(4)),
        ..Run::default()
    };
    let schedule = Schedule {
        faults: vec![Fault::Kill],
        every: Duration::from_millis(700),
        seed: 2,
        server: Some(&server),
        proxies: &[],
    };
    let beside = |events: &Events, done: &AtomicBool| schedule.run(events, done);
    let collected = case.collect_beside(directory.path(), Some(&beside));
    let lost = collected
        .merged
        .findings
        .iter()
        .filter(|it| matches!(it, Finding::Lost { .. }))
        .count();
    if lost == 0 {
        println!("NOT SHOWN: no acknowledged write was lost");
    } else {
        println!(
            "{lost} acknowledged writes were lost, for example: {}",
            collected.merged.findings[0]
        );
    }
    gone(server);
}

#[test]
fn errors_of_postgres_are_told_and_leave_nothing_behind() {
    let Some(server) = server("postgres", 1) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let url = server.urls[0].clone();
    let told = |url: &str| {
        let mut case = Case::new("postgres", "serializable", "mini").txns(100);
        case.urls = vec![url.to_owned()];
        let database = case.connect(place);
        let prepared = database
            .version()
            .and_then(|_| database.prepare(case.load().initially()));
        prepared.unwrap_err().to_string()
    };
    let unreachable = told("postgres://kingsnake:secret@127.0.0.1:1/postgres");
    assert!(
        unreachable.contains("cannot connect to postgres://kingsnake@127.0.0.1:1"),
        "{unreachable}"
    );
    assert!(!unreachable.contains("secret"));
    let nobody = told(&url.replace("kingsnake@", "nobody@"));
    assert!(nobody.contains("nobody"), "{nobody}");
    let mut admin = Case::new("postgres", "serializable", "mini");
    admin.urls = vec![url.clone()];
    let database = admin.connect(place);
    database.prepare(admin.load().initially()).unwrap();
    let again = told(&url);
    assert!(again.contains("is in the way"), "{again}");
    database.clean().unwrap();
    let reader = url.replace(
        "/postgres",
        "/postgres?options=-c%20default_transaction_read_only%3Don",
    );
    let reader = told(&reader);
    assert!(reader.contains("needs a user who may"), "{reader}");
    // Nothing is left: the tables can be made.
    database.prepare(admin.load().initially()).unwrap();
    database.clean().unwrap();
    // A server that dies: what was recorded by then is a history.
    let mut case = Case::new("postgres", "serializable", "mini").at(&server);
    case.run = Run {
        txns: 1_000_000,
        patience: Duration::from_millis(300),
        ..Run::default()
    };
    let database = case.connect(place);
    let stop = AtomicBool::new(false);
    let beside = |_: &Events, _: &AtomicBool| {
        std::thread::sleep(Duration::from_secs(1));
        server.kill(0);
    };
    let out = place.join("dies");
    let collected = case
        .request(&out)
        .collect(&*database, &case.load(), &stop, Some(&beside), &mut |_| {})
        .unwrap();
    let why = collected.ended_early.unwrap();
    assert!(why.contains("the server is gone"), "{why}");
    assert!(collected.tally.committed > 0 && holds(&collected.history, Level::Ser));
    gone(server);
}

#[test]
fn mariadb_keeps_serializable() {
    let Some(server) = server("mariadb", 1) else {
        return;
    };
    Case::new("mariadb", "serializable", "mini")
        .at(&server)
        .txns(400)
        .control(&[Mistake::DroppedWrite, Mistake::StaleRead]);
    for order in [OrderBy::Log, OrderBy::Rank, OrderBy::Trigger] {
        let directory = tempfile::tempdir().unwrap();
        let case = Case::new("mariadb", "serializable", "blind")
            .at(&server)
            .by(order)
            .txns(800);
        let collected = case.collect(directory.path());
        assert!(holds(&collected.history, Level::Ser), "{}", order.name());
        assert!(collected.merged.n_ordered > 0, "{}", order.name());
        assert_eq!(collected.merged.findings, []);
    }
    Case::new("mariadb", "repeatable-read", "rmw")
        .at(&server)
        .txns(1_000)
        .should_violate(Level::Si);
    gone(server);
}

#[test]
fn galera_is_collected_from_all_its_nodes() {
    let Some(server) = server("mariadb", 2) else {
        return;
    };
    let directory = tempfile::tempdir().unwrap();
    let case = Case::new("mariadb", "repeatable-read", "mini")
        .at(&server)
        .by(OrderBy::None)
        .txns(1_000);
    let collected = case.collect(directory.path());
    assert!(collected.tally.committed > 0);
    let text = std::fs::read_to_string(&collected.history).unwrap();
    assert!(text.contains("\"node\":\"node 0\"") && text.contains("\"node\":\"node 1\""));
    println!(
        "Galera at REPEATABLE READ: si {}",
        holds(&collected.history, Level::Si)
    );
    gone(server);
}

#[test]
fn etcd_is_strictly_serializable_with_linearizable_reads() {
    let Some(server) = server("etcd", 1) else {
        return;
    };
    Case::new("etcd", "linearizable", "mini")
        .at(&server)
        .txns(300)
        .control(&[Mistake::DroppedWrite, Mistake::StaleRead]);
    for workload in ["register", "mini", "append"] {
        let directory = tempfile::tempdir().unwrap();
        let collected = Case::new("etcd", "linearizable", workload)
            .at(&server)
            .txns(500)
            .collect(directory.path());
        assert!(holds(&collected.history, Level::StrictSer), "{workload}");
        assert_eq!(collected.merged.findings, []);
    }
    gone(server);
}
