//! Study files with mistakes: each is told with its line.

mod run;

use std::path::Path;

use run::{Scratch, expect};

const SMALL: &str = include_str!("run/small_study.toml");

/// Each mistake, the text that the error must point at, and what it must say.
#[test]
fn a_bad_study_file_is_told_with_its_line() {
    let scratch = Scratch::new();
    let cases = [
        ("timeout = 20", "timeout = 'soon'", "'soon'", "invalid type"),
        ("repeat = 2", "repeats = 2", "repeats", "unknown field"),
        ("title = \"Growth\"", "title = Growth", "Growth", "quoted"),
        (
            "{sessions}",
            "{session}",
            "\"{session}",
            "no parameter \"session\"",
        ),
        (
            "--session-order",
            "--sesion-order",
            "\"--sesion-order",
            "--sesion-order",
        ),
        (
            "\"on\", \"off\"]",
            "\"on\", \"maybe\"]",
            "\"{sessions}",
            "maybe",
        ),
        (
            "\"blindw-rw\", \"--txns\"",
            "\"blind\", \"--txns\"",
            "\"blind\"",
            "blind",
        ),
        (
            "workloads = [\"RW\"]",
            "workloads = [\"WR\"]",
            "\"WR\"",
            "no workload",
        ),
        (
            "series = \"workload\"",
            "series = \"work\"",
            "\"work\"",
            "no axis",
        ),
        (
            "over = { workload = \"RW\"",
            "over = { workload = \"WR\"",
            "workload = \"WR\"",
            "no value",
        ),
        (
            "kind = \"bars\"",
            "kind = \"pie\"",
            "\"pie\"",
            "unknown variant",
        ),
        (
            "values = [30, 60]",
            "values = []",
            "\"transactions\"\nparameter",
            "no values",
        ),
        (
            "name = \"growth\"",
            "name = \"gr/owth\"",
            "\"gr/owth\"",
            "letters, digits and hyphens",
        ),
        (
            "name = \"growth\"",
            "name = \"switches\"",
            "\"switches\"\ntitle = \"Growth",
            "another experiment",
        ),
        (
            "series = \"workload\"\nx_log",
            "series = \"transactions\"\nx_log",
            "\"transactions\"\nseries",
            "different axes",
        ),
        (
            "kind = \"bars\"",
            "kind = \"phases\"",
            "\"session order\"\n\n[[experiment.claim]]",
            "no `series`",
        ),
        (
            "values = [30, 60]",
            "values = [30, 60]\n[[experiment.skip]]\nof = { workload = \"WR\" }\nabove = { transactions = 30 }",
            "workload = \"WR\"",
            "no value",
        ),
        (
            "[experiment.figure]\nkind = \"lines\"\nx = \"transactions\"",
            "[experiment.figure]\nkind = \"lines\"",
            "\"workload\"\nx_log",
            "need `x`",
        ),
    ];
    for (right, wrong, pointed, words) in cases {
        assert!(SMALL.contains(right), "{right}");
        let text = SMALL.replacen(right, wrong, 1);
        let at = text.find(pointed).expect("the mistake is in the text");
        let line = text[..at].matches('\n').count() + 1;
        let column = at - text[..at].rfind('\n').map_or(0, |newline| newline + 1) + 1;
        let file = scratch.put("bad.toml", text);
        let said = expect(2, &["ablate", &file, "--out", &scratch.path("never")]);
        let place = format!("bad.toml:{line}:{column}: ");
        assert!(said.stderr.contains(&place), "{place}{}", said.stderr);
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
    }
    let said = expect(2, &["ablate", "cobra", "--out", &scratch.path("never")]);
    assert!(said.stderr.contains("king-cobra"), "{}", said.stderr);
    assert!(!Path::new(&scratch.path("never")).exists());
}
