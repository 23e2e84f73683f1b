//! `export` puts to other solvers what `check` answers: on the corpus, before and after pruning.

mod run;

use std::path::PathBuf;
use std::process::Command;

use run::{Scratch, corpus, corpus_histories, expect, run};

/// The z3 that `scripts/setup` fetches, or one on the path.
fn z3() -> Option<PathBuf> {
    let fetched = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.z3/bin/z3"));
    if fetched.exists() {
        return Some(fetched);
    }
    let on_path = Command::new("z3").arg("--version").output().is_ok();
    on_path.then(|| PathBuf::from("z3"))
}

#[test]
fn z3_gives_the_verdicts_of_check_on_the_corpus() {
    let Some(z3) = z3() else {
        eprintln!(
            "SKIPPED: the command export, there is no z3, neither fetched by scripts/setup nor on the path"
        );
        return;
    };
    // One file for all, because z3 takes long to start.
    let mut questions = String::new();
    let mut expected = Vec::new();
    for history in corpus_histories().into_iter().step_by(2) {
        for level in ["ser", "si"] {
            let verdict = run(&["check", "-q", &history, "--level", level]).status;
            for stage in ["constructed", "pruned"] {
                let said = run(&[
                    "export", &history, "--level", level, "--to", "smtlib2", "--stage", stage,
                ]);
                if said.status == 2 {
                    // Reads that no order explains: there is nothing to ask, and check says so as well.
                    assert_eq!(verdict, 1, "{history}: {}", said.stderr);
                    assert!(
                        said.stderr.contains("no question to ask"),
                        "{}",
                        said.stderr
                    );
                    continue;
                }
                questions.push_str(&said.stdout.replace("(exit)", "(reset)"));
                let answer = if verdict == 0 { "sat" } else { "unsat" };
                expected.push((answer, format!("{history} at {level}, {stage}")));
            }
        }
    }
    let scratch = Scratch::new();
    let file = scratch.path("questions.smt2");
    std::fs::write(&file, questions).expect("a temporary file");
    let said = Command::new(&z3)
        .arg(&file)
        .output()
        .expect("z3 runs")
        .stdout;
    let said = String::from_utf8_lossy(&said);
    assert_eq!(said.lines().count(), expected.len(), "{said}");
    for (line, (answer, what)) in said.lines().zip(&expected) {
        assert_eq!(line, *answer, "{what}");
    }
    let n_sat = expected
        .iter()
        .filter(|(answer, _)| *answer == "sat")
        .count();
    println!("{n_sat} satisfied, {} violated", expected.len() - n_sat);
    assert!(n_sat > 10 && expected.len() - n_sat > 10);
}

#[test]
fn every_language_is_written_to_a_file_or_to_stdout() {
    let scratch = Scratch::new();
    let history = corpus("strong-session-ser/blind-writes.jsonl");
    for (to, start) in [
        ("dimacs", "c kingsnake"),
        ("smtlib2", "; kingsnake"),
        ("gnf", "c kingsnake"),
        ("dot", "// kingsnake"),
    ] {
        let said = expect(
            0,
            &["export", &history, "--to", to, "--stage", "constructed"],
        );
        assert!(said.stdout.starts_with(start), "{}", said.stdout);
        let file = scratch.path(to);
        expect(
            0,
            &[
                "export",
                &history,
                "--to",
                to,
                "--stage",
                "constructed",
                "--out",
                &file,
            ],
        );
        assert_eq!(
            std::fs::read_to_string(&file).expect("it was written"),
            said.stdout
        );
    }
    let sizes: Vec<String> = ["closure", "order-unary", "order-binary", "elimination"]
        .into_iter()
        .map(|encoding| {
            let said = expect(
                0,
                &[
                    "export",
                    &history,
                    "--to",
                    "dimacs",
                    "--stage",
                    "constructed",
                    "--encoding",
                    encoding,
                ],
            );
            let header = said.stdout.lines().find(|line| line.starts_with("p cnf"));
            header.expect("a header").to_owned()
        })
        .collect();
    assert!(sizes.iter().any(|size| *size != sizes[0]), "{sizes:?}");
}

#[test]
fn what_cannot_be_exported_is_refused_in_words() {
    let history = corpus("strong-session-ser/blind-writes.jsonl");
    let said = expect(
        2,
        &[
            "export",
            &history,
            "--to",
            "dimacs",
            "--level",
            "strict-ser",
        ],
    );
    assert!(said.stderr.contains("times"), "{}", said.stderr);
    let said = expect(
        2,
        &[
            "export",
            &history,
            "--to",
            "dimacs",
            "--out",
            "/nowhere/at/all",
        ],
    );
    assert!(said.stderr.contains("/nowhere/at"), "{}", said.stderr);
    expect(2, &["export", &history, "--to", "prose"]);
    let said = expect(3, &["export", &history, "--to", "dot", "--timeout", "0"]);
    assert!(said.stderr.contains("time limit"), "{}", said.stderr);
}
