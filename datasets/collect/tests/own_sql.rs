//! A user's own statements: what they read and wrote is recorded by the columns `version` and `writer`.
#![allow(clippy::unwrap_used)] // A test may panic.

mod common;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use common::{CollectCase, gone, holds, server};
use kingsnake_collect::server::Private;
use kingsnake_collect::{Collected, Load, Script, SqlFile};
use kingsnake_solver::level::Level;

const TRANSFER: &str = include_str!("../examples/transfer.sql");

/// Runs statements, and gives what was collected.
fn collect(case: &CollectCase<'_>, load: &Load, directory: &Path) -> Collected {
    let database = case.connect(directory);
    let request = case.request(directory);
    let stop = AtomicBool::new(false);
    let collected = request.collect(&*database, load, &stop, None, &mut |_| {});
    let collected = collected.unwrap();
    assert_eq!(collected.ended_early, None);
    assert_eq!(collected.notes, Vec::<String>::new());
    collected
}

fn transfers(
    database: &str,
    isolation: &str,
    text: &str,
    at: Option<&Private>,
) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let mut case = CollectCase::new(database, isolation, "mini").txns(400);
    case.run.think = Duration::from_micros(300);
    if let Some(server) = at {
        case = case.at(server);
    }
    let load = Load::of_sql(SqlFile::parse(text, "transfer.sql").unwrap());
    let collected = collect(&case, &load, directory.path());
    assert!(
        collected.merged.findings.is_empty(),
        "{:?}",
        collected.merged.findings
    );
    assert!(collected.tally.committed > 100);
    assert_eq!(collected.merged.n_ordered, 4);
    directory
}

fn history(directory: &tempfile::TempDir) -> std::path::PathBuf {
    directory.path().join("history.jsonl")
}

#[test]
fn transfers_on_sqlite_are_serializable_and_name_their_rows() {
    let directory = transfers("sqlite", "immediate", TRANSFER, None);
    assert!(holds(&history(&directory), Level::StrictSer));
    let text = std::fs::read_to_string(history(&directory)).unwrap();
    assert!(text.contains("[\"r\",\"account 1\",0]"), "{text}");
    assert!(text.contains("{\"version_order\":{\"key\":\"account 4\","));
}

#[test]
fn transfers_on_postgres_lose_updates_where_the_level_allows_it() {
    let Some(server) = server("postgres", 1) else {
        return;
    };
    let serializable = transfers("postgres", "serializable", TRANSFER, Some(&server));
    assert!(holds(&history(&serializable), Level::Ser));
    let committed = transfers("postgres", "read-committed", TRANSFER, Some(&server));
    assert!(holds(&history(&committed), Level::Rc));
    assert!(!holds(&history(&committed), Level::Si));
    gone(server);
}

#[test]
fn transfers_on_mariadb_show_their_writes_by_a_select() {
    let Some(server) = server("mariadb", 1) else {
        return;
    };
    let select = |id| format!(";\nSELECT id, version, writer FROM account WHERE id = :{id};");
    let text = TRANSFER
        .replacen(" RETURNING id, version, writer;", &select("from"), 1)
        .replacen(" RETURNING id, version, writer;", &select("to"), 1);
    let serializable = transfers("mariadb", "serializable", &text, Some(&server));
    assert!(holds(&history(&serializable), Level::Ser));
    let repeatable = transfers("mariadb", "repeatable-read", &text, Some(&server));
    assert!(!holds(&history(&repeatable), Level::Si));
    gone(server);
}

#[test]
fn a_write_that_is_not_shown_ends_the_collection() {
    let directory = tempfile::tempdir().unwrap();
    let text = TRANSFER.replacen(" RETURNING id, version, writer;", ";", 1);
    let case = CollectCase::new("sqlite", "serializable", "mini").txns(100);
    let load = Load::of_sql(SqlFile::parse(&text, "transfer.sql").unwrap());
    let database = case.connect(directory.path());
    let request = case.request(directory.path());
    let stop = AtomicBool::new(false);
    let collected = request.collect(&*database, &load, &stop, None, &mut |_| {});
    let why = collected.unwrap().ended_early.unwrap();
    assert!(
        why.contains("transfer.sql, line 18: this statement changed 1 rows and showed 0"),
        "{why}"
    );
}

#[test]
fn a_script_takes_statements_too() {
    let text = "setup CREATE TABLE t (id INTEGER PRIMARY KEY, version INTEGER DEFAULT 0, writer INTEGER DEFAULT 0)\n\
                setup INSERT INTO t (id) VALUES (1)\nteardown DROP TABLE t\n\
                a: sql SELECT id, version, writer FROM t WHERE id = 1\n\
                b: sql SELECT id, version, writer FROM t WHERE id = 1\n\
                a: sql UPDATE t SET version = version + 1, writer = :writer RETURNING id, version, writer\n\
                b: sql UPDATE t SET version = version + 1, writer = :writer RETURNING id, version, writer\n\
                a: commit\nb: commit\n";
    let directory = tempfile::tempdir().unwrap();
    let mut case = CollectCase::new("sqlite", "serializable", "mini");
    let script = Script::parse(text, "own.script").unwrap();
    case.run.sessions = script.sessions.len();
    let collected = collect(&case, &Load::of_script(script), directory.path());
    let said: Vec<&str> = collected.steps.iter().map(|it| it.said.as_str()).collect();
    assert_eq!(
        said,
        [
            "1 0 0",
            "1 0 0",
            "1 1 3",
            "aborted: busy",
            "committed",
            "left out"
        ]
    );
    assert!(holds(&collected.history, Level::Ser));
}
