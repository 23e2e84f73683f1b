//! The programs of docs/record.md, taken from the page and run where their languages are at hand; what they record is checked.

#![allow(clippy::print_stderr)] // A test that skips says so.

mod run;

use std::fs;
use std::process::{Command, Stdio};

use run::{Scratch, expect};

fn block(language: &str) -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/record.md");
    let page = fs::read_to_string(page).expect("docs/record.md is there");
    let fence = format!("```{language}\n");
    let begin = page.find(&fence).expect("a block") + fence.len();
    let end = page[begin..].find("```").expect("the block ends");
    page[begin..begin + end].to_owned()
}

/// Runs a program of the page; whether its language was at hand.
fn records(language: &str, file: &str, command: &[&str]) -> bool {
    let program = command[0];
    if Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|it| !it.success())
    {
        eprintln!("SKIPPED: recording in {language}, because {program} is not installed");
        return false;
    }
    let scratch = Scratch::new();
    scratch.put(file, block(language));
    let ended = Command::new(program)
        .args(&command[1..])
        .arg(file)
        .current_dir(scratch.path(""))
        .env("GOCACHE", std::env::temp_dir().join("kingsnake-go"))
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{language}: {said}");
    let history = scratch.path("history.jsonl");
    let said = expect(0, &["check", &history, "--level", "strict-ser"]);
    assert!(
        said.stdout.contains("200 transactions, 2 sessions"),
        "{language}: {}",
        said.stdout
    );
    true
}

#[test]
fn the_programs_that_record_run_and_what_they_record_is_checked() {
    let ran = [
        records("python", "record.py", &["python3"]),
        records("java", "Record.java", &["java"]),
        records("go", "record.go", &["go", "run"]),
        records("clojure", "record.clj", &["clojure"]),
    ];
    let n_skipped = ran.iter().filter(|it| !**it).count();
    eprintln!("{n_skipped} of 4 languages skipped");
}
