//! `kingsnake check --level auto`, and the levels that look at the clock.

mod run;

use run::{Scratch, corpus, expect};
use serde_json::Value;

/// Every row of the corpus' index: the file, and for each level by name `yes`, `no` or `-`.
fn index() -> Vec<(String, Vec<(String, String)>)> {
    let text = std::fs::read_to_string(corpus("INDEX.tsv")).expect("there is an index");
    let mut rows = text.lines().map(|line| line.split('\t').map(str::to_owned));
    let header: Vec<String> = rows.next().expect("there is a header").collect();
    rows.map(|row| {
        let row: Vec<String> = row.collect();
        let levels = header[1..8].iter().cloned().zip(row[1..8].iter().cloned());
        (row[0].clone(), levels.collect())
    })
    .collect()
}

#[test]
fn auto_answers_as_the_index_of_the_corpus_does() {
    for (file, levels) in index() {
        let violated = levels.iter().any(|(_, answer)| answer == "no");
        let path = corpus(&file);
        let said = expect(
            i32::from(violated),
            &["check", &path, "--level", "auto", "--json"],
        );
        let document: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
        let rows = document["levels"].as_array().expect("there are levels");
        assert_eq!(
            rows.len(),
            levels.len() + 6,
            "{file}: psi, pc and the weak levels come last"
        );
        for (row, (level, answer)) in rows.iter().zip(&levels) {
            let verdict = match answer.as_str() {
                "yes" => "satisfied",
                "no" => "violated",
                _ => "no times",
            };
            assert_eq!(row["name"], level.as_str(), "{file}");
            assert_eq!(row["verdict"], verdict, "{file}, {level}");
        }
    }
}

#[test]
fn every_level_by_itself_answers_as_the_index_does() {
    for (file, levels) in index() {
        for (level, answer) in levels {
            let status = match answer.as_str() {
                "yes" => 0,
                "no" => 1,
                _ => 2,
            };
            let mut args = vec!["check", "-q", "--level", &level];
            if matches!(level.as_str(), "ser" | "gsi" | "si") {
                args.extend(["--session-order", "off"]);
            }
            let path = corpus(&file);
            args.push(&path);
            expect(status, &args);
        }
    }
}

#[test]
fn a_table_says_which_levels_hold() {
    let path = corpus("strong-session-ser/real-time-stale-read.jsonl");
    let said = expect(1, &["check", &path, "--level", "auto"]);
    let first = said.stdout.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("strongest: strong-session-ser, gsi --session-order off ("),
        "{first}"
    );
    for line in [
        "strict-ser               violated",
        "gsi --session-order off  satisfied",
    ] {
        assert!(said.stdout.contains(line), "{}", said.stdout);
    }
    let quiet = expect(1, &["check", "-q", &path, "--level", "auto"]);
    assert_eq!(quiet.stdout.lines().count(), 1);
}

#[test]
fn the_command_of_the_document_repeats_it() {
    let path = corpus("strong-session-ser/real-time-stale-read.jsonl");
    let args = [
        "check",
        &path,
        "--level",
        "auto",
        "--json",
        "--clock-drift",
        "1000",
        "--session-order",
        "off",
    ];
    let said = expect(0, &args);
    let document: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    let command = document["command"].as_str().expect("there is a command");
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json"]).collect();
    let again: Value = serde_json::from_str(&expect(0, &words).stdout).expect("it is JSON");
    assert_eq!(document["levels"], again["levels"]);
    assert_eq!(document["command"], again["command"]);
}

#[test]
fn drift_forgives_what_the_clocks_cannot_tell() {
    let path = corpus("strong-session-ser/real-time-stale-read.jsonl");
    for level in ["strict-ser", "strong-si"] {
        expect(1, &["check", &path, "--level", level]);
        expect(0, &["check", &path, "--level", level, "--clock-drift", "1"]);
    }
    let said = expect(2, &["check", &path, "--level", "si", "--times", "exact"]);
    assert!(said.stderr.contains("look at the clock"), "{}", said.stderr);
}

#[test]
fn what_is_about_one_level_is_refused() {
    let path = corpus("strict-ser/serial.jsonl");
    expect(2, &["check", &path, "--level", "auto", "--svg", "x.svg"]);
    expect(2, &["explain", &path, "--level", "auto"]);
    expect(2, &["verify", &path, "x", "--level", "auto"]);
    let said = expect(3, &["check", &path, "--level", "auto", "--timeout", "0"]);
    assert!(said.stdout.contains("nothing is known"), "{}", said.stdout);
}

#[test]
fn real_time_chooses_which_levels_auto_asks_for() {
    let history = corpus("strict-ser/serial.jsonl");
    let levels = |args: &[&str]| -> Vec<String> {
        let said = expect(
            0,
            &[&["check", "--json", "--level", "auto", &history], args].concat(),
        );
        let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
        let levels = document["levels"].as_array().expect("levels");
        let names = levels
            .iter()
            .map(|it| it["name"].as_str().expect("a name").to_owned());
        names.collect()
    };
    let (all, on, off) = (
        levels(&[]),
        levels(&["--real-time", "on"]),
        levels(&["--real-time", "off"]),
    );
    assert_eq!(on.len() + off.len(), all.len());
    assert!(on.contains(&"strict-ser".to_owned()) && !off.contains(&"strict-ser".to_owned()));
    assert!(off.contains(&"ser".to_owned()) && !on.contains(&"ser".to_owned()));
}

#[test]
fn files_about_one_level_are_refused_before_anything_is_written() {
    let scratch = Scratch::new();
    let history = corpus("none/lost-update.jsonl");
    let out = scratch.path("out");
    for option in ["--proof", "--certificate", "--dot", "--svg"] {
        let said = expect(2, &["check", &history, "--level", "auto", option, &out]);
        assert!(said.stderr.contains("about one level"), "{}", said.stderr);
        assert!(!std::path::Path::new(&out).exists());
    }
}
