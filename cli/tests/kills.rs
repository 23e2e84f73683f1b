//! Commands that are killed at random moments and started again at once: no row is lost, doubled or false.
//!
//! `KINGSNAKE_KILLS` is how often each command is killed; a few times unless given.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout)] // What a long run did is recorded.

mod run;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use run::{Dice, Scratch, corpus, expect, kingsnake, n_kills};
use serde_json::Value;

/// Starts the command, kills it within so many milliseconds, and starts it again at once, until it was killed often enough; then
/// lets it end. A command that ended by itself has all its rows, so `forget` makes it begin anew.
fn kill_often(command: &dyn Fn() -> Command, within: u64, forget: &dyn Fn(), status: i32) {
    let (mut dice, mut n_killed, mut n_whole) = (Dice::new(), 0, 0);
    while n_killed < n_kills(4) {
        let mut child = command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        std::thread::sleep(Duration::from_millis(dice.roll(within)));
        let ended = child.try_wait().expect("a child can be asked");
        if ended.is_none() {
            child.kill().expect("a child can be killed");
            n_killed += 1;
        } else {
            n_whole += 1;
            forget();
        }
        child.wait().expect("a killed child ends");
    }
    let ended = command().output().expect("the binary runs");
    let said = String::from_utf8_lossy(&ended.stdout).into_owned()
        + &String::from_utf8_lossy(&ended.stderr);
    println!("killed {n_killed} times, {n_whole} runs ended before that");
    assert_eq!(ended.status.code(), Some(status), "{said}");
}

/// The rows by their cells; none is there twice.
fn rows(directory: &str) -> BTreeMap<String, Value> {
    let text = fs::read_to_string(Path::new(directory).join("rows.jsonl")).expect("rows");
    let mut rows = BTreeMap::new();
    for line in text.lines() {
        let row: Value = serde_json::from_str(line).expect("a row is JSON");
        let cell = row["cell"].as_str().expect("a cell").to_owned();
        assert!(
            rows.insert(cell.clone(), row).is_none(),
            "{cell} has two rows"
        );
    }
    rows
}

#[test]
fn a_hunt_that_is_killed_and_started_again_at_once_has_every_row_and_no_false_one() {
    let scratch = Scratch::new();
    let file = scratch.put("hunt.toml", "name = 'A hunt'\ntxns = 400\nsessions = 3\nseeds = 4\n[[database]]\nname = 'sqlite'\nisolation = ['serializable']\nworkload = ['rmw', 'mini']\n");
    let out = scratch.path("out");
    let hunt = || kingsnake(&["hunt", &file, "--out", &out, "--jobs", "2"]);
    let forget = || drop(fs::remove_dir_all(&out));
    kill_often(&hunt, 900, &forget, 0);
    let rows = rows(&out);
    assert_eq!(rows.len(), 8, "{rows:?}");
    for (cell, row) in &rows {
        assert!(row["error"].is_null(), "{cell}: {row}");
        assert_eq!(row["ser"]["verdict"], "satisfied", "{cell}: {row}");
        let folder = Path::new(&out).join(row["folder"].as_str().expect("a folder"));
        assert!(folder.join("history.jsonl").exists(), "{cell}");
    }
    let cells = fs::read_dir(Path::new(&out).join("cells")).expect("cells");
    assert_eq!(cells.count(), 8, "an attempt was left");
}

#[test]
fn a_study_that_is_killed_and_started_again_at_once_has_every_row_and_no_false_one() {
    let scratch = Scratch::new();
    let file = scratch.put("s.toml", include_str!("run/small_study.toml"));
    let (out, whole) = (scratch.path("out"), scratch.path("whole"));
    expect(0, &["ablate", &file, "--out", &whole]);
    let ablate = || kingsnake(&["ablate", &file, "--out", &out]);
    let forget = || drop(fs::remove_dir_all(&out));
    kill_often(&ablate, 900, &forget, 0);
    let (rows, whole) = (rows(&out), rows(&whole));
    let verdicts = |rows: &BTreeMap<String, Value>| -> Vec<(String, Value, Value)> {
        let rows = rows.iter();
        rows.map(|(cell, row)| (cell.clone(), row["verdict"].clone(), row["outcome"].clone()))
            .collect()
    };
    assert_eq!(verdicts(&rows), verdicts(&whole));
}

#[test]
fn checks_that_are_killed_and_started_again_at_once_have_every_row_and_no_false_one() {
    let scratch = Scratch::new();
    let (out, whole) = (scratch.path("out"), scratch.path("whole"));
    let directory = corpus("none");
    expect(1, &["check", &directory, "--out", &whole]);
    let check = || kingsnake(&["check", &directory, "--out", &out]);
    let forget = || drop(fs::remove_dir_all(&out));
    kill_often(&check, 900, &forget, 1);
    let (rows, whole) = (rows(&out), rows(&whole));
    assert!(rows.len() > 10, "{}", rows.len());
    let verdicts = |rows: &BTreeMap<String, Value>| -> Vec<(String, Value)> {
        let rows = rows.iter();
        rows.map(|(cell, row)| (cell.clone(), row["verdict"].clone()))
            .collect()
    };
    assert_eq!(verdicts(&rows), verdicts(&whole));
    for row in rows.values().filter(|it| !it["page"].is_null()) {
        let page = Path::new(&out).join(row["page"].as_str().expect("a page"));
        let text = fs::read_to_string(page).expect("a page");
        assert!(text.trim_end().ends_with("</html>"), "a page is whole");
    }
}

#[test]
fn a_collection_that_is_killed_is_merged_or_collected_at_once() {
    let mut dice = Dice::new();
    let scratch = Scratch::new();
    let (mut n_merged, mut n_anew) = (0, 0);
    for number in 0..n_kills(4) {
        let out = scratch.path(&number.to_string());
        let args = [
            "collect",
            "sqlite",
            "--isolation",
            "serializable",
            "--workload",
            "rmw",
        ];
        let args = [&args[..], &["--txns", "1000000", "--out", &out]].concat();
        let mut child = kingsnake(&args)
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary runs");
        std::thread::sleep(Duration::from_millis(dice.roll(700)));
        child.kill().expect("a child can be killed");
        child.wait().expect("a killed child ends");
        let history = format!("{out}/history.jsonl");
        if Path::new(&out).join("session-0.journal").exists() {
            expect(0, &["collect", "--merge", &out]);
            n_merged += 1;
        } else {
            // Nothing was recorded yet, so the directory is free.
            let again = ["--txns", "200", "--out", &out];
            let args = [
                "collect",
                "sqlite",
                "--isolation",
                "serializable",
                "--workload",
                "rmw",
            ];
            expect(0, &[&args[..], &again].concat());
            n_anew += 1;
        }
        expect(0, &["check", &history]);
    }
    println!("merged {n_merged}, collected anew {n_anew}");
}

#[test]
fn a_cell_whose_process_was_killed_runs_again_and_not_for_ever() {
    let scratch = Scratch::new();
    let history = corpus("none/lost-update.jsonl");
    let out = scratch.path("out");
    expect(1, &["check", &history, "--out", &out]);
    let path = format!("{out}/rows.jsonl");
    let mut row: Value = serde_json::from_str(fs::read_to_string(&path).unwrap().trim()).unwrap();
    for (attempt, verdict) in [(1, "violated"), (2, "violated"), (3, "error")] {
        row["verdict"] = "error".into();
        row["exit_status"] = 2.into();
        row["attempt"] = attempt.into();
        fs::write(&path, format!("{row}\n")).unwrap();
        let status = if verdict == "error" { 2 } else { 1 };
        let said = expect(status, &["check", &history, "--out", &out]);
        assert_eq!(
            said.stderr.contains("tried again"),
            attempt < 3,
            "{}",
            said.stderr
        );
        let rows = rows(&out);
        assert_eq!(rows.len(), 1);
        let row = rows.values().next().unwrap();
        assert_eq!(row["verdict"], verdict, "{row}");
    }
}

#[test]
fn a_full_disk_is_a_passing_failure_and_the_cell_runs_again() {
    let scratch = Scratch::new();
    let file = scratch.put("hunt.toml", "name = 'A hunt'\ntxns = 200\nsessions = 2\nseeds = 1\n[[database]]\nname = 'sqlite'\nisolation = ['serializable']\nworkload = ['rmw']\n");
    let out = scratch.path("out");
    fs::create_dir(&out).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1500k", "tmpfs", &out])
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|it| it.success()) {
        println!("SKIPPED: a full disk, because this user mounts nothing");
        return;
    }
    let first = run::run(&["hunt", &file, "--out", &out]);
    let grown = Command::new("mount")
        .args(["-o", "remount,size=100m", &out])
        .status();
    let before = rows(&out);
    let second = run::run(&["hunt", &file, "--out", &out]);
    let after = rows(&out);
    Command::new("umount").arg(&out).status().expect("umount");
    assert!(grown.is_ok_and(|it| it.success()));
    assert_eq!(first.status, 2, "{}{}", first.stdout, first.stderr);
    assert_eq!(before.len(), 1);
    assert_eq!(second.status, 0, "{}{}", second.stdout, second.stderr);
    assert!(second.stderr.contains("tried again"), "{}", second.stderr);
    assert_eq!(after.len(), 1);
}

#[test]
fn a_collector_ends_with_its_parent_at_once() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let args = ["collect", "sqlite", "--workload", "rmw", "--leash"];
    let mut child = kingsnake(&[&args[..], &["--txns", "100000000", "--out", &out]].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let journal = Path::new(&out).join("session-0.journal");
    let since = Instant::now();
    while !journal.exists() && since.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    drop(child.stdin.take());
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(3));
    // Nothing was merged: it ended in the middle.
    assert!(!Path::new(&out).join("history.jsonl").exists());
}
