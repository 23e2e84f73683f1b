//! `check --level as-recorded`: transactions with levels of their own.

mod run;

use run::{Scratch, dataset, expect, expect_verdicts, kingsnake};

fn file(name: &str) -> String {
    dataset(&format!("mixed/{name}"))
}

fn check(name: &str, more: &[&str]) -> (Option<i32>, String) {
    let path = file(name);
    let mut args = vec!["check", &path, "--level", "as-recorded"];
    args.extend(more);
    let output = kingsnake(&args).output().expect("it runs");
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    (output.status.code(), text)
}

#[test]
fn every_file_of_the_corpus_has_the_verdict_of_its_directory() {
    expect_verdicts("mixed", "as-recorded", 2);
}

#[test]
fn the_story_says_each_transactions_level() {
    let (code, text) = check("violated/write-skew-ser-and-ser.jsonl", &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("at ser"), "{text}");
    let (code, text) = check("violated/fractured-ra.jsonl", &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("must not miss") && text.contains("at ra"),
        "{text}"
    );
}

#[test]
fn the_map_says_what_names_stand_for() {
    let skew = "violated/write-skew-ser-and-ser.jsonl";
    let (code, text) = check(skew, &["--isolation-map", "serializable=si"]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = check(
        "named/repeatable-read.jsonl",
        &["--isolation-map", "serializable=ser"],
    );
    assert_eq!(code, Some(2), "{text}");
    assert!(
        text.contains("repeatable read") && text.contains("serializable=ser"),
        "{text}"
    );
}

#[test]
fn what_cannot_be_said_of_mixed_levels_is_refused() {
    let skew = "violated/write-skew-ser-and-ser.jsonl";
    for more in [["--real-time", "on"], ["--isolation-map", "x=y"]] {
        let (code, text) = check(skew, &more);
        assert_eq!(code, Some(2), "{text}");
    }
}

#[test]
fn a_certificate_of_mixed_levels_is_written_and_replayed() {
    let scratch = Scratch::new();
    let certificate = &scratch.path("certificate.json");
    let mut n_files = 0;
    for entry in std::fs::read_dir(file("holds")).expect("the corpus is there") {
        let path = entry.expect("it can be read").path();
        let path = path.to_str().expect("text");
        expect(
            0,
            &[
                "check",
                path,
                "--level",
                "as-recorded",
                "-q",
                "--certificate",
                certificate,
            ],
        );
        expect(0, &["verify", path, certificate]);
        expect(0, &["verify", path, certificate, "--level", "as-recorded"]);
        n_files += 1;
    }
    assert!(n_files >= 4);
}

#[test]
fn the_question_of_mixed_levels_is_exported() {
    let path = file("violated/write-skew-ser-and-ser.jsonl");
    let said = expect(
        0,
        &["export", &path, "--level", "as-recorded", "--to", "gnf"],
    );
    assert!(said.stdout.contains("digraph"), "{}", said.stdout);
}

#[test]
fn generated_histories_with_levels_of_their_own_hold_as_recorded() {
    let scratch = Scratch::new();
    for workload in ["tpcc", "twitter"] {
        for (mix, stronger) in [
            ("serializable=30,read committed=70", "ser"),
            ("serializable=20,snapshot=30,\"read committed\"=50", "si"),
        ] {
            let path = &scratch.path("mixed.jsonl");
            let options = ["--txns", "400", "--clients", "12", "--seed", "5"];
            let head = [
                "generate",
                workload,
                "--out",
                path,
                "-q",
                "--isolation-mix",
                mix,
            ];
            expect(0, &[&head[..], &options].concat());
            let said = expect(0, &["check", path, "--level", "as-recorded"]);
            assert!(said.stdout.starts_with("satisfied"), "{}", said.stdout);
            // The levels matter: all at the stronger one is too much for some of them.
            let said = run::run(&["check", path, "--level", stronger, "-q"]);
            println!("{workload}, {mix}: {} at {stronger}", said.status);
        }
    }
}

#[test]
fn every_level_can_be_mixed_and_holds_as_recorded() {
    let scratch = Scratch::new();
    let path = &scratch.path("mixed.jsonl");
    let ours = "ser=10,si=10,pc=20,cc=15,ra=15,rc-so=15,rc=15";
    let sql = "serializable=20,repeatable read=20,snapshot isolation=10,read committed=25,read uncommitted=25";
    let mut n_weaker = 0;
    for (workload, mix) in [
        ("tpcc", ours),
        ("twitter", ours),
        ("king-cobra-rw", ours),
        ("tpcc", sql),
        ("twitter", sql),
    ] {
        for seed in ["1", "2", "3"] {
            let options = ["--txns", "300", "--clients", "8", "--seed", seed];
            let head = ["generate", workload, "--out", path, "--isolation-mix", mix];
            let said = expect(0, &[&head[..], &options].concat());
            // What it says is how it is checked.
            let (_, map) = said
                .stdout
                .rsplit_once("check it with ")
                .expect("it says how");
            let map = map.trim().split_once("--isolation-map ");
            let map = map.map(|(_, map)| map.trim_matches('\'').to_owned());
            let mut check = vec!["check", path, "--level", "as-recorded"];
            if let Some(map) = &map {
                check.extend(["--isolation-map", map]);
            }
            assert_eq!(map.is_some(), mix == sql, "{}", said.stdout);
            expect(0, &check);
            let at_si = run::run(&["check", path, "--level", "si", "-q"]);
            n_weaker += usize::from(at_si.status == 1);
        }
    }
    assert!(n_weaker > 5, "{n_weaker} of 15 are no snapshot isolation");
}

#[test]
fn a_name_that_no_transaction_can_ask_for_is_refused_with_those_it_can() {
    for (mix, why) in [
        ("psi=50,si=50", "whole histories"),
        ("chaos=100", "repeatable read"),
        ("tweet=strict,*=si", "rc-so"),
    ] {
        let head = ["generate", "twitter", "--out", "x.jsonl", "--isolation-mix"];
        let said = expect(2, &[&head[..], &[mix]].concat());
        assert!(said.stderr.contains(why), "{}", said.stderr);
    }
}

#[test]
fn a_mix_that_adds_up_to_something_else_is_refused() {
    let said = expect(
        2,
        &[
            "generate",
            "tpcc",
            "--out",
            "x.jsonl",
            "--isolation-mix",
            "serializable=30",
        ],
    );
    assert!(said.stderr.contains("add up to 100"), "{}", said.stderr);
}

#[test]
fn a_mix_by_kinds_is_recorded_and_holds() {
    let scratch = Scratch::new();
    let path = scratch.path("kinds.jsonl");
    let mix = "new-order=serializable,payment=snapshot,*=read committed";
    let generate = ["generate", "tpcc", "--txns", "200", "--isolation-mix", mix];
    expect(0, &[&generate[..], &["--out", &path]].concat());
    let text = std::fs::read_to_string(&path).expect("it was written");
    for isolation in ["serializable", "snapshot", "read committed"] {
        assert!(
            text.contains(&format!("\"isolation\":\"{isolation}\"")),
            "{isolation}"
        );
    }
    expect(0, &["check", "--level", "as-recorded", &path]);
    let other = [
        "generate",
        "tpcc",
        "--isolation-mix",
        "tweet=serializable,*=snapshot",
    ];
    let said = expect(2, &[&other[..], &["--out", &path]].concat());
    assert!(said.stderr.contains("new-order"), "{}", said.stderr);
}
