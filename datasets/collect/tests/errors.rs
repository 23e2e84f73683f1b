//! What goes wrong around a collection: wrong passwords, missing rights, tables in the way, servers that are not there or die, a
//! collector that is killed. Each is reported clearly, leaves nothing behind and loses nothing.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // A test says what it saw, and may panic.

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use common::{CollectCase, gone, holds, pids, server};
use kingsnake_collect::server::{Private, is_running};
use kingsnake_collect::{CollectError, CollectRun, Events, OrderBy};
use kingsnake_solver::level::Level;
use mysql::prelude::Queryable;

/// Collects at an address, which must be refused; the words, and no directory left behind.
fn refused(database: &str, url: &str, order: OrderBy) -> String {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("out");
    let mut case = CollectCase::new(database, adapter_level(database), "mini")
        .by(order)
        .txns(100);
    case.urls = vec![url.to_owned()];
    let client = case.connect(directory.path());
    let stop = AtomicBool::new(false);
    let collected = case
        .request(&out)
        .collect(&*client, &case.load(), &stop, None, &mut |_| {});
    let Err(CollectError::Database(words)) = collected else {
        panic!("{collected:?}");
    };
    assert!(!out.exists(), "{words}");
    println!("{database}: {words}");
    words
}

fn adapter_level(database: &str) -> &'static str {
    kingsnake_collect::adapter(database).unwrap().levels[0].name
}

/// That a user who may can collect there: nothing is in the way.
fn still_works(database: &str, server: &Private) {
    let directory = tempfile::tempdir().unwrap();
    let case = CollectCase::new(database, adapter_level(database), "mini")
        .at(server)
        .txns(50);
    case.collect(directory.path());
}

#[test]
fn a_server_that_is_not_there_is_named_without_its_password() {
    for (database, url, shown) in [
        (
            "postgres",
            "postgres://kingsnake:secret@127.0.0.1:1/postgres",
            "cannot connect to postgres://kingsnake@127.0.0.1:1",
        ),
        (
            "mariadb",
            "mysql://kingsnake:secret@127.0.0.1:1/kingsnake",
            "cannot connect to mysql://kingsnake@127.0.0.1:1",
        ),
        ("etcd", "http://127.0.0.1:1", "etcd at http://127.0.0.1:1"),
    ] {
        let words = refused(database, url, OrderBy::None);
        assert!(
            words.contains(shown) && !words.contains("secret"),
            "{words}"
        );
    }
}

#[test]
fn postgres_refuses_wrong_passwords_missing_rights_and_tables_in_the_way() {
    let Some(server) = server("postgres", 1) else {
        return;
    };
    // Its port is open while it is still starting up; the adapter waits.
    still_works("postgres", &server);
    let url = server.urls[0].clone();
    let mut admin = postgres::Client::connect(&url, postgres::NoTls).unwrap();
    admin
        .batch_execute(
            "CREATE ROLE guarded LOGIN PASSWORD 'right'; GRANT CREATE ON SCHEMA public TO guarded;
             CREATE ROLE reader LOGIN PASSWORD 'r'; CREATE ROLE writer LOGIN PASSWORD 'w';
             GRANT CREATE ON SCHEMA public TO writer;",
        )
        .unwrap();
    let place = url.split_once('@').unwrap().1;
    let user = |name: &str| format!("postgres://{name}@{place}");
    // A private server is for its owner only.
    for stranger in ["kingsnake", "kingsnake:wrong", "postgres"] {
        assert!(postgres::Client::connect(&user(stranger), postgres::NoTls).is_err());
    }
    let words = refused("postgres", &user("guarded:wrong"), OrderBy::Rank);
    assert!(words.contains("password authentication failed"), "{words}");
    assert!(!words.contains("wrong"), "{words}");
    let mut right = CollectCase::new("postgres", "serializable", "mini").txns(50);
    right.urls = vec![user("guarded:right")];
    right.collect(tempfile::tempdir().unwrap().path());
    let words = refused("postgres", &user("nobody:x"), OrderBy::Rank);
    assert!(words.contains("nobody"), "{words}");
    let words = refused("postgres", &user("reader:r"), OrderBy::Rank);
    assert!(words.contains("needs a user who may"), "{words}");
    let read_only = "/postgres?options=-c%20default_transaction_read_only%3Don";
    let words = refused(
        "postgres",
        &url.replace("/postgres", read_only),
        OrderBy::Rank,
    );
    assert!(words.contains("needs a user who may"), "{words}");
    let words = refused("postgres", &user("writer:w"), OrderBy::Log);
    assert!(words.contains("right to replicate"), "{words}");
    admin
        .batch_execute(
            "CREATE TABLE kingsnake_lists (precious int); INSERT INTO kingsnake_lists VALUES (7)",
        )
        .unwrap();
    let words = refused("postgres", &url, OrderBy::Rank);
    assert!(words.contains("is in the way"), "{words}");
    let row = admin.query_one("SELECT precious FROM kingsnake_lists", &[]);
    assert_eq!(row.unwrap().get::<_, i32>(0), 7);
    admin.batch_execute("DROP TABLE kingsnake_lists").unwrap();
    still_works("postgres", &server);
    let left = "SELECT count(*) FROM pg_class WHERE relname LIKE 'kingsnake%'";
    assert_eq!(admin.query_one(left, &[]).unwrap().get::<_, i64>(0), 0);
    let slots = "SELECT count(*) FROM pg_replication_slots";
    assert_eq!(admin.query_one(slots, &[]).unwrap().get::<_, i64>(0), 0);
    drop(admin);
    gone(server);
}

#[test]
fn mariadb_refuses_wrong_passwords_missing_rights_and_tables_in_the_way() {
    let Some(server) = server("mariadb", 1) else {
        return;
    };
    let url = server.urls[0].clone();
    let mut admin = mysql::Conn::new(url.as_str()).unwrap();
    for statement in [
        "CREATE USER guarded@'%' IDENTIFIED BY 'right'",
        "GRANT ALL ON kingsnake.* TO guarded@'%'",
        "CREATE USER reader@'%'",
        "GRANT SELECT ON kingsnake.* TO reader@'%'",
    ] {
        admin.query_drop(statement).unwrap();
    }
    let place = url.split_once('@').unwrap().1;
    let user = |name: &str| format!("mysql://{name}@{place}");
    // A private server is for its owner only.
    for stranger in ["kingsnake", "kingsnake:wrong", "root", "mysql"] {
        assert!(
            mysql::Conn::new(user(stranger).as_str()).is_err(),
            "{stranger}"
        );
    }
    let words = refused("mariadb", &user("guarded:wrong"), OrderBy::Rank);
    assert!(words.contains("Access denied"), "{words}");
    assert!(!words.contains("wrong"), "{words}");
    let words = refused("mariadb", &user("reader"), OrderBy::Rank);
    assert!(words.contains("needs a user who may"), "{words}");
    // May make tables, and may not read the log: what was made is gone again.
    let words = refused("mariadb", &user("guarded:right"), OrderBy::Log);
    assert!(words.contains("the order by the log needs"), "{words}");
    let elsewhere = url.replace("/kingsnake", "/nothing");
    let words = refused("mariadb", &elsewhere, OrderBy::Rank);
    assert!(words.contains("nothing"), "{words}");
    admin
        .query_drop("CREATE TABLE kingsnake_lists (precious int)")
        .unwrap();
    let words = refused("mariadb", &url, OrderBy::Rank);
    assert!(words.contains("is in the way"), "{words}");
    admin.query_drop("DROP TABLE kingsnake_lists").unwrap();
    still_works("mariadb", &server);
    let left: Vec<String> = admin.query("SHOW TABLES").unwrap();
    assert_eq!(left, Vec::<String>::new());
    drop(admin);
    gone(server);
}

#[test]
fn etcd_answers_only_those_who_show_its_certificate() {
    let Some(server) = server("etcd", 1) else {
        return;
    };
    still_works("etcd", &server);
    let url = server.urls[0].clone();
    let (place, query) = url.split_once('?').unwrap();
    let authority = query.split('&').next().unwrap();
    let words = refused("etcd", &format!("{place}?{authority}"), OrderBy::None);
    assert!(words.contains("etcd at https://127.0.0.1"), "{words}");
    let plain = place.replace("https", "http");
    let words = refused("etcd", &plain, OrderBy::None);
    assert!(words.contains("etcd at http://127.0.0.1"), "{words}");
    let certificates = server.directory().join("certificate");
    let mode = std::fs::metadata(certificates).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o077, 0);
    gone(server);
}

#[test]
fn a_server_that_dies_ends_the_collection_and_what_was_recorded_is_a_history() {
    for database in ["postgres", "mariadb", "etcd"] {
        let Some(server) = server(database, 1) else {
            continue;
        };
        let directory = tempfile::tempdir().unwrap();
        let mut case = CollectCase::new(database, adapter_level(database), "mini").at(&server);
        case.run = CollectRun {
            txns: 1_000_000,
            patience: Duration::from_millis(300),
            ..CollectRun::default()
        };
        let client = case.connect(directory.path());
        let beside = |_: &Events, _: &AtomicBool| {
            std::thread::sleep(Duration::from_secs(1));
            server.kill(0);
        };
        let out = directory.path().join("dies");
        let stop = AtomicBool::new(false);
        let collected = case
            .request(&out)
            .collect(&*client, &case.load(), &stop, Some(&beside), &mut |_| {})
            .unwrap();
        let why = collected.ended_early.unwrap();
        assert!(why.contains("the server is gone"), "{why}");
        assert!(collected.tally.committed > 0 && holds(&collected.history, Level::Ser));
        gone(server);
    }
}

const CHILD: &str = "KINGSNAKE_COLLECTS_UNTIL_KILLED";

/// What the next test kills: does nothing unless that one runs it.
#[test]
fn collects_until_killed() {
    let Some(place) = std::env::var_os(CHILD) else {
        return;
    };
    let place = Path::new(&place);
    let server = server("postgres", 1).unwrap();
    let pids: Vec<String> = pids(&server).iter().map(ToString::to_string).collect();
    let told = format!("{}\n{}", server.directory().display(), pids.join(" "));
    std::fs::write(place.join("server"), told).unwrap();
    let mut case = CollectCase::new("postgres", "serializable", "rmw").at(&server);
    case.run.txns = u64::MAX / 4;
    case.run.limit = Some(Duration::from_secs(120));
    case.collect(&place.join("out"));
}

fn n_lines(directory: &Path) -> usize {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let journals = entries.filter(|it| it.path().extension().is_some_and(|it| it == "journal"));
    let lines = journals.map(|it| {
        let bytes = std::fs::read(it.path()).unwrap();
        bytes.split(|byte| *byte == b'\n').count() - 1
    });
    lines.sum()
}

#[test]
fn a_kill_of_the_collector_ends_its_server_and_loses_nothing() {
    if let Some(server) = server("postgres", 1) {
        gone(server);
    } else {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "collects_until_killed"])
        .env(CHILD, place.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let since = Instant::now();
    while n_lines(&out) < 3_000 {
        assert!(
            since.elapsed() < Duration::from_secs(90),
            "nothing is recorded"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = n_lines(&out);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(n_lines(&out) >= before);
    let told = std::fs::read_to_string(place.path().join("server")).unwrap();
    let (directory, pids) = told.split_once('\n').unwrap();
    let since = Instant::now();
    while pids.split(' ').any(|pid| is_running(pid.parse().unwrap())) {
        assert!(
            since.elapsed() < Duration::from_secs(20),
            "{pids} still run"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // The next server removes the files of the last one.
    gone(server("postgres", 1).unwrap());
    assert!(!Path::new(directory).exists());
    let (_, merged) = kingsnake_collect::merge(&out).unwrap();
    assert!(merged.n_txns > 100);
    // With a write missing, a transaction would have read it from thin air.
    assert!(holds(&out.join(kingsnake_collect::HISTORY), Level::Ser));
}
