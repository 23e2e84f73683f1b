//! `shrink`: what it writes is checked again, what it refuses, and how it ends; and the verdicts of FINDINGS.md.

mod run;

use run::{Scratch, corpus, expect, generate_workload};

/// A violated history among many transactions.
fn violated(scratch: &Scratch) -> String {
    let options = [
        "--txns",
        "2000",
        "--keys",
        "20",
        "--seed",
        "3",
        "--isolation",
        "snapshot",
        "--bug",
        "no-write-check",
    ];
    generate_workload(scratch, "whole.jsonl", "king-cobra-rmw", &options)
}

#[test]
fn a_shrunk_history_shows_the_same_anomaly_in_few_lines() {
    let scratch = Scratch::new();
    let (whole, small) = (violated(&scratch), scratch.path("small.jsonl"));
    let said = expect(1, &["shrink", &whole, "--level", "si", "--out", &small]);
    let class = said.stdout.split(['(', ')']).nth(1).expect("a class");
    let text = scratch.get("small.jsonl");
    assert!(text.lines().count() <= 5, "{text}");
    let whole = scratch.get("whole.jsonl");
    for line in text.lines().filter(|it| it.starts_with("{\"id\"")) {
        let id = line.split(',').next().unwrap_or_default();
        assert!(whole.contains(&format!("{id},")), "{line} is of the whole");
    }
    let told = expect(1, &["check", &small, "--level", "si"]).stdout;
    assert!(told.contains(class), "{class}: {told}");
    let again = scratch.path("again.jsonl");
    expect(1, &["shrink", &small, "--level", "si", "--out", &again]);
    assert_eq!(scratch.get("again.jsonl"), text);
}

#[test]
fn what_is_not_violated_is_not_shrunk() {
    let scratch = Scratch::new();
    let out = scratch.path("out.jsonl");
    let skew = corpus("strong-session-si/write-skew.jsonl");
    let said = expect(0, &["shrink", &skew, "--level", "si", "--out", &out]);
    assert!(said.stderr.contains("nothing to shrink"), "{}", said.stderr);
    expect(
        3,
        &["shrink", &skew, "--timeout", "0.000001", "--out", &out],
    );
    let same = scratch.put("same.jsonl", std::fs::read(&skew).expect("it is there"));
    expect(2, &["shrink", &same, "--out", &same]);
    expect(2, &["shrink", &skew, "--out", "-"]);
    expect(2, &["shrink", &skew, "--level", "auto", "--out", &out]);
    assert!(!std::path::Path::new(&out).exists());
}

#[test]
fn the_session_order_is_what_was_asked() {
    let scratch = Scratch::new();
    let history = scratch.put(
        "h.jsonl",
        "{\"kingsnake\":1,\"initial\":0}\n\
         {\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
         {\"id\":2,\"session\":1,\"ops\":[[\"r\",\"x\",0],[\"w\",\"y\",1]]}\n",
    );
    let out = scratch.path("out.jsonl");
    expect(1, &["shrink", &history, "--out", &out]);
    assert!(!scratch.get("out.jsonl").contains("\"y\""));
    let off = ["--session-order", "off"];
    let args = ["shrink", &history, "--out", &out];
    expect(0, &[&args[..], &off].concat());
}

/// The levels that the columns of FINDINGS.md name.
const LEVELS: [&str; 8] = ["rc", "ra", "cc", "pc", "psi", "si", "ser", "strict-ser"];

#[test]
fn the_findings_have_the_verdicts_that_the_page_says() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let page = std::fs::read_to_string(format!("{root}/FINDINGS.md")).expect("it is there");
    let mut n_rows = 0;
    for row in page.lines().filter(|it| it.starts_with("| [")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let path = cells[1].split(['(', ')']).nth(1).expect("a link");
        let violated: Vec<&str> = cells[cells.len() - 2].split(", ").collect();
        let has_times = !violated.contains(&"(no times)");
        let levels = LEVELS.iter().filter(|it| has_times || **it != "strict-ser");
        for level in levels {
            let status = i32::from(violated.contains(level));
            let path = format!("{root}/{path}");
            expect(status, &["check", &path, "--level", level]);
        }
        n_rows += 1;
    }
    assert!(n_rows >= 9, "{n_rows}");
}
