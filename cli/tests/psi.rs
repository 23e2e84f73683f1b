//! `check --level psi`: parallel snapshot isolation.

mod run;

use run::{Scratch, dataset, expect_verdicts, run};

fn file(name: &str) -> String {
    dataset(&format!("psi/{name}"))
}

#[test]
fn every_file_of_the_corpus_has_the_verdict_of_its_directory() {
    expect_verdicts("psi", "psi", 3);
}

#[test]
fn its_neighbours_in_the_lattice_answer_differently() {
    let fork = file("holds/long-fork-of-sessions.jsonl");
    for (level, status) in [("psi", 0), ("cc", 0), ("pc", 1), ("si", 1)] {
        assert_eq!(
            run(&["check", &fork, "--level", level, "-q"]).status,
            status,
            "{level}"
        );
    }
    let both = file("holds/prefix-and-parallel-not-snapshot.jsonl");
    for (level, status) in [("psi", 0), ("pc", 0), ("si", 1)] {
        assert_eq!(
            run(&["check", &both, "--level", level, "-q"]).status,
            status,
            "{level}"
        );
    }
    let said = run(&["check", &both, "--level", "auto", "--session-order", "on"]);
    assert!(said.stdout.contains("psi, pc ("), "{}", said.stdout);
}

#[test]
fn a_no_says_what_was_seen_and_missed() {
    let path = file("violated/write-skew-with-a-common-write.jsonl");
    let said = run(&["check", &path, "--level", "psi"]);
    assert!(
        said.stdout.contains("parallel snapshot isolation"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("contradiction"), "{}", said.stdout);
    let path = file("violated/missed-through-an-overwrite.jsonl");
    let said = run(&["check", &path, "--level", "psi"]);
    let missed = "T3 saw T1 through T2, so it must not miss T1's x; yet T3 read x = 0";
    assert!(said.stdout.contains(missed), "{}", said.stdout);
}

#[test]
fn session_order_is_a_switch() {
    let scratch = Scratch::new();
    let text = "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n{\"id\":2,\"session\":1,\"ops\":[[\"r\",\"x\",0]]}\n";
    let path = &scratch.put("sessions.jsonl", text);
    assert_eq!(run(&["check", path, "--level", "psi", "-q"]).status, 1);
    let off = [
        "check",
        path,
        "--level",
        "psi",
        "-q",
        "--session-order",
        "off",
    ];
    assert_eq!(run(&off).status, 0);
}

#[test]
fn a_certificate_is_written_and_replayed() {
    let scratch = Scratch::new();
    let certificate = &scratch.path("certificate.json");
    let path = file("holds/long-fork-of-sessions.jsonl");
    let said = run(&[
        "check",
        &path,
        "--level",
        "psi",
        "-q",
        "--certificate",
        certificate,
    ]);
    assert_eq!(said.status, 0, "{}", said.stderr);
    let said = run(&["verify", &path, certificate]);
    assert_eq!(said.status, 0, "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("certificate holds"), "{}", said.stdout);
    // No order of a long fork is a serial one.
    let said = run(&["verify", &path, certificate, "--level", "ser"]);
    assert_eq!(said.status, 1, "{}{}", said.stdout, said.stderr);
}

#[test]
fn what_has_no_meaning_there_is_refused_with_a_reason() {
    let path = file("holds/write-skew.jsonl");
    let said = run(&["check", &path, "--level", "psi", "--real-time", "on"]);
    assert_eq!(said.status, 2);
    assert!(
        said.stderr.contains("does not look at the clock"),
        "{}",
        said.stderr
    );
    let said = run(&["export", &path, "--level", "psi", "--to", "gnf"]);
    assert_eq!(said.status, 2, "{}", said.stdout);
    assert!(said.stderr.contains("several questions"), "{}", said.stderr);
    let map = ["--level", "as-recorded", "--isolation-map", "*=psi"];
    let said = run(&[&["check", path.as_str()], &map[..]].concat());
    assert_eq!(said.status, 2);
    assert!(said.stderr.contains("psi"), "{}", said.stderr);
}
