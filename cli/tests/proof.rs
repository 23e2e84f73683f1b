//! `check --proof` and `verify-proof`: what is written holds, alone and about its history; what is damaged does not.

mod run;

use std::path::Path;

use run::{Scratch, corpus, expect, puzzle};
use serde_json::Value;

/// A proof holds, and it is of this history at this level.
fn expect_proof(proof: &str, history: &str, level: &str) {
    let of = ["--history", history, "--level", level];
    expect(0, &[&["verify-proof", proof][..], &of].concat());
}

#[test]
fn a_proof_is_written_and_holds_whichever_back_end_refutes() {
    let scratch = Scratch::new();
    let history = puzzle(&scratch);
    let proof = scratch.path("proof.lrat");
    for backend in [
        "cadical/propagator",
        "cadical/lazy",
        "cadical/closure",
        "search/backtrack",
    ] {
        for level in ["ser", "si"] {
            let said = expect(
                1,
                &[
                    "check",
                    &history,
                    "--level",
                    level,
                    "--backend",
                    backend,
                    "--proof",
                    &proof,
                ],
            );
            assert!(said.stdout.contains("checked again"), "{}", said.stdout);
            let said = expect(0, &["verify-proof", &proof]);
            assert!(said.stdout.starts_with("proof holds"), "{}", said.stdout);
            expect_proof(&proof, &history, level);
        }
    }
    let said = expect(1, &["check", &history, "--json", "--proof", &proof]);
    let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert_eq!(document["proof"]["path"], proof.as_str());
    assert_eq!(document["decider"], "backend");
    assert!(
        document["proof"]["cycles"].as_u64().is_some_and(|n| n >= 4),
        "{document}"
    );
}

#[test]
fn a_damaged_proof_does_not_hold() {
    let scratch = Scratch::new();
    let (history, proof) = (puzzle(&scratch), scratch.path("proof.lrat"));
    expect(1, &["check", "-q", &history, "--proof", &proof]);
    let cnf = format!("{proof}.cnf");
    let whole = std::fs::read_to_string(&proof).expect("written");
    let instance = std::fs::read_to_string(&cnf).expect("written");
    let mut lines: Vec<&str> = whole.lines().collect();
    lines.pop();
    std::fs::write(&proof, lines.join("\n")).expect("damaged");
    let said = expect(1, &["verify-proof", &proof]);
    assert!(
        said.stdout.contains("proof does not hold"),
        "{}",
        said.stdout
    );
    std::fs::write(&proof, &whole).expect("mended");
    expect(0, &["verify-proof", &proof]);
    let known = instance
        .lines()
        .find(|line| line.starts_with("c known"))
        .expect("known edges");
    std::fs::write(&cnf, instance.replace(&format!("{known}\n"), "")).expect("damaged");
    let said = expect(1, &["verify-proof", &proof]);
    assert!(said.stdout.contains("neither known nor"), "{}", said.stdout);
    std::fs::write(&cnf, "nonsense").expect("damaged");
    let said = expect(1, &["verify-proof", &proof]);
    assert!(said.stdout.contains("line 1"), "{}", said.stdout);
    expect(2, &["verify-proof", &scratch.path("absent.lrat")]);
}

#[test]
fn a_proof_about_another_history_is_noticed() {
    let scratch = Scratch::new();
    let (history, proof) = (puzzle(&scratch), scratch.path("proof.lrat"));
    expect(1, &["check", "-q", &history, "--proof", &proof]);
    let other = corpus("strong-session-ser/blind-writes.jsonl");
    let said = expect(
        1,
        &[
            "verify-proof",
            &proof,
            "--history",
            &other,
            "--prune-rounds",
            "0",
        ],
    );
    assert!(said.stdout.contains("does not hold"), "{}", said.stdout);
}

#[test]
fn where_nothing_was_refuted_a_warning_says_that_there_is_no_proof() {
    let scratch = Scratch::new();
    let proof = scratch.path("proof.lrat");
    let history = corpus("strong-session-ser/blind-writes.jsonl");
    let said = expect(0, &["check", &history, "--proof", &proof]);
    assert!(said.stderr.contains("no proof"), "{}", said.stderr);
    assert!(!Path::new(&proof).exists());
}

#[test]
fn a_proof_about_uncertain_reads_is_of_the_whole_question() {
    let scratch = Scratch::new();
    let certain = std::fs::read_to_string(puzzle(&scratch)).expect("it was written");
    // Two transactions write the same value, which another returns: either can have been read.
    let mut history = certain.trim_end().to_owned();
    for (id, op) in [("U1", "w"), ("U2", "w"), ("U3", "r")] {
        history += &format!(
            "\n{{\"id\":\"{id}\",\"session\":\"{id}\",\"ops\":[[\"{op}\",\"uncertain\",7]]}}"
        );
    }
    let history = scratch.put("uncertain.jsonl", history + "\n");
    let proof = scratch.path("proof.lrat");
    for level in ["ser", "si"] {
        expect(1, &["check", &history, "--level", level, "--proof", &proof]);
        expect_proof(&proof, &history, level);
        let gnf = scratch.path("uncertain.gnf");
        expect(
            0,
            &[
                "export", &history, "--level", level, "--to", "gnf", "--out", &gnf,
            ],
        );
        expect(1, &["solve", &gnf]);
    }
}
