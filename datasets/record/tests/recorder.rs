//! What the recorder writes is what the reader reads: from many threads, with unknown ends, and after a crash.

use std::path::Path;
use std::process::Command;
use std::thread;

use kingsnake_datasets::{Format, ReadOptions, open};
use kingsnake_history::model::{History, Status};
use kingsnake_record::{Field, Recorder};

fn read(path: &Path) -> History {
    let parsed = open(path, &ReadOptions::default()).expect("the file is a history");
    assert_eq!(parsed.format, Format::Kingsnake);
    parsed.history
}

fn count(history: &History, status: Status) -> usize {
    history
        .txns()
        .filter(|&txn| history.status(txn) == status)
        .count()
}

#[test]
fn many_threads_record_into_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.jsonl");
    let recorder = Recorder::create(&path, Field::Null).unwrap();
    thread::scope(|scope| {
        for client in 0..8_i64 {
            let recorder = recorder.clone();
            scope.spawn(move || {
                let mut session = recorder.session(client);
                for number in 0..200_i64 {
                    let mut transaction = session.begin();
                    transaction.write(client, number);
                    transaction.read(client, number);
                    let end = transaction.ready().unwrap();
                    match number % 4 {
                        0 | 1 => end.committed().unwrap(),
                        2 => end.aborted().unwrap(),
                        _ => end.unknown(),
                    }
                }
            });
        }
    });
    recorder.sync().unwrap();
    let history = read(&path);
    assert_eq!(history.n_sessions(), 8);
    assert_eq!(count(&history, Status::Committed), 800);
    assert_eq!(count(&history, Status::Aborted), 400);
    assert_eq!(count(&history, Status::Unknown), 400);
    for txn in history
        .txns()
        .filter(|&it| history.status(it) == Status::Committed)
    {
        let interval = history.interval(txn);
        assert!(
            0 < interval.begin && interval.begin <= interval.commit && interval.commit < i64::MAX
        );
    }
}

#[test]
fn every_operation_and_every_kind_of_name_is_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.jsonl");
    let recorder = Recorder::create(&path, 0).unwrap();
    let mut session = recorder.session("a \"client\"\n");
    let mut transaction = session.begin();
    transaction.read("x", 0);
    transaction.write("x", i64::MIN);
    transaction.compare_and_set("y", 0, 1);
    transaction.read("y", 1);
    transaction.delete("z");
    transaction.read(7, Option::<i64>::None);
    transaction.ready().unwrap().committed().unwrap();
    let mut transaction = session.begin();
    transaction.append("list", 1);
    transaction.read_list("list", [1]);
    transaction.abort().unwrap();
    // Never sent, so never recorded.
    drop(session.begin());
    let history = read(&path);
    assert_eq!(history.n_txns(), 2);
    let n_ops: usize = history.txns().map(|txn| history.ops(txn).len()).sum();
    assert!(n_ops >= 8, "{n_ops}");
}

/// A process that is killed stops writing where a page ends.
#[test]
fn a_file_that_ends_with_any_of_its_pages_is_a_history() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.jsonl");
    let recorder = Recorder::create(&path, 0).unwrap();
    let mut session = recorder.session("client");
    for number in 0..300_i64 {
        let mut transaction = session.begin();
        for key in 0..number % 40 {
            transaction.read(format!("a key {key}"), 0);
        }
        transaction.write("x", number + 1);
        transaction.ready().unwrap().committed().unwrap();
    }
    let whole = std::fs::read(&path).unwrap();
    assert_eq!(read(&path).n_txns(), 300);
    for n_pages in 1..whole.len() / 4096 {
        std::fs::write(&path, &whole[..4096 * n_pages]).unwrap();
        let n_txns = read(&path).n_txns();
        assert!(0 < n_txns && n_txns < 300, "{n_pages} pages: {n_txns}");
    }
}

#[cfg(unix)]
#[test]
fn a_process_that_is_killed_at_any_moment_loses_nothing_acknowledged() {
    use std::io::{BufRead, BufReader, Write};
    const CHILD: &str = "KINGSNAKE_RECORD_KILL";
    if let Some(path) = std::env::var_os(CHILD) {
        let recorder = Recorder::create(path, 0).unwrap();
        let acknowledge = |number: i64| {
            let mut out = std::io::stderr().lock();
            out.write_all(format!("acknowledged {number}\n").as_bytes())
                .unwrap();
        };
        thread::scope(|scope| {
            for client in 0..4_i64 {
                let recorder = recorder.clone();
                scope.spawn(move || {
                    let mut session = recorder.session(client);
                    for number in 0.. {
                        let mut transaction = session.begin();
                        transaction.write(client, 4 * number + client);
                        transaction.ready().unwrap().committed().unwrap();
                        acknowledge(4 * number + client);
                    }
                });
            }
        });
    }
    let name = "a_process_that_is_killed_at_any_moment_loses_nothing_acknowledged";
    for round in 0..8_usize {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("history.jsonl");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, &path)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut acknowledged = Vec::new();
        for line in lines.map_while(Result::ok) {
            let number = line.strip_prefix("acknowledged ");
            acknowledged.extend(number.and_then(|it| it.parse::<i64>().ok()));
            if acknowledged.len() == 100 + 37 * round {
                child.kill().unwrap(); // SIGKILL; what is still in the pipe was acknowledged too.
            }
        }
        child.wait().unwrap();
        let history = read(&path);
        let written: std::collections::BTreeSet<String> = history
            .txns()
            .filter(|&txn| history.status(txn) == Status::Committed)
            .flat_map(|txn| history.ops(txn).iter())
            .filter_map(|op| match *op {
                kingsnake_history::model::Op::Write { value, .. } => {
                    Some(history.value_name(value))
                }
                _ => None,
            })
            .collect();
        assert!(acknowledged.len() >= 100, "{}", acknowledged.len());
        for number in acknowledged {
            assert!(
                written.contains(&number.to_string()),
                "round {round}: {number} is lost"
            );
        }
        assert!(
            count(&history, Status::Unknown) <= 4,
            "one a session at most"
        );
    }
}

#[test]
fn a_crash_loses_nothing_that_may_have_been_committed() {
    const CHILD: &str = "KINGSNAKE_RECORD_CRASH";
    if let Some(path) = std::env::var_os(CHILD) {
        let recorder = Recorder::create(path, 0).unwrap();
        let mut session = recorder.session(1);
        for number in 1..=100 {
            let mut transaction = session.begin();
            transaction.write("x", number);
            transaction.ready().unwrap().committed().unwrap();
        }
        let mut transaction = session.begin();
        transaction.write("x", 101);
        let _in_doubt = transaction.ready().unwrap();
        std::process::abort();
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.jsonl");
    let name = "a_crash_loses_nothing_that_may_have_been_committed";
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name])
        .env(CHILD, &path)
        .output()
        .unwrap();
    assert!(!ended.status.success(), "it was to crash");
    let history = read(&path);
    assert_eq!(count(&history, Status::Committed), 100);
    assert_eq!(count(&history, Status::Unknown), 1);
}
