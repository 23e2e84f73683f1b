//! The primitives for running a study's cells elsewhere: `--list --json`, `--prepare`, `--cell`, and merging.

mod run;

use std::fs;

use run::{Scratch, expect, study};
use serde_json::Value;

/// Eight cells.
fn small() -> String {
    study("small", (20, 2), ["60", "10"])
}

fn listed(study: &str, out: &str) -> Vec<Value> {
    let said = expect(0, &["ablate", study, "--out", out, "--list", "--json"]);
    let all: Value = serde_json::from_str(&said.stdout).expect("the list is JSON");
    all.as_array().expect("the list is an array").clone()
}

fn word(cell: &Value, name: &str) -> String {
    cell[name].as_str().expect("a word").to_owned()
}

#[test]
fn cells_run_one_by_one_and_the_ordinary_command_merges_their_rows() {
    let scratch = Scratch::new();
    let study = scratch.put("small.toml", small());
    let out = scratch.path("out");
    let cells = listed(&study, &out);
    assert_eq!(cells.len(), 8);
    assert!(cells.iter().all(|cell| cell["done"] == false));
    assert_eq!(cells[0]["argv"][1], "check");

    // Nothing is prepared yet.
    let first = word(&cells[0], "id");
    let said = expect(2, &["ablate", &study, "--out", &out, "--cell", &first]);
    assert!(said.stderr.contains("--prepare"), "{}", said.stderr);
    expect(0, &["ablate", &study, "--out", &out, "--prepare"]);
    for cell in &cells {
        assert!(fs::exists(word(cell, "history")).unwrap());
    }
    let said = expect(2, &["ablate", &study, "--out", &out, "--cell", "0123"]);
    assert!(said.stderr.contains("no cell"), "{}", said.stderr);

    // Whatever the verdicts, rows were written.
    let ids: Vec<String> = cells.iter().map(|cell| word(cell, "id")).collect();
    expect(
        0,
        &[
            "ablate",
            &study,
            "--out",
            &out,
            "--cell",
            &ids[..5].join(","),
        ],
    );
    let done = listed(&study, &out);
    assert_eq!(done.iter().filter(|cell| cell["done"] == true).count(), 5);
    let row = word(&cells[0], "row");
    let before = fs::read_to_string(&row).unwrap();
    // A cell that has its row is left alone.
    expect(0, &["ablate", &study, "--out", &out, "--cell", &first]);
    assert_eq!(fs::read_to_string(&row).unwrap(), before);

    // The rest runs here; twice, so that nothing is merged twice.
    for _ in 0..2 {
        expect(0, &["ablate", &study, "--out", &out]);
        let rows = scratch.get("out/rows.jsonl");
        assert_eq!(rows.lines().count(), 8);
    }
    assert!(listed(&study, &out).iter().all(|cell| cell["done"] == true));
    let row: Value = serde_json::from_str(&before).unwrap();
    assert!(!word(&row, "host").is_empty());
    let csv = scratch.get("out/rows.csv");
    assert!(
        csv.lines()
            .next()
            .unwrap()
            .contains("host,processor,device,adapter,driver")
    );

    // Starting again forgets the files too.
    expect(
        0,
        &["ablate", &study, "--out", &out, "--restart", "--seeds", "1"],
    );
    assert_eq!(scratch.get("out/rows.jsonl").lines().count(), 4);
    assert!(!fs::exists(scratch.path("out/rows.d")).unwrap());
}

#[test]
fn cells_of_another_study_are_refused() {
    let scratch = Scratch::new();
    let study = scratch.put("small.toml", small());
    let out = scratch.path("out");
    expect(0, &["ablate", &study, "--out", &out, "--prepare"]);
    let id = word(&listed(&study, &out)[0], "id");
    let said = expect(
        2,
        &[
            "ablate",
            &study,
            "--out",
            &out,
            "--timeout",
            "7",
            "--cell",
            &id,
        ],
    );
    assert!(said.stderr.contains("another study"), "{}", said.stderr);
}

#[cfg(unix)]
#[test]
fn a_cell_that_is_asked_to_stop_leaves_no_row() {
    let scratch = Scratch::new();
    let large = small().replace(
        "\"60\", \"--keys\", \"10\"",
        "\"40000\", \"--keys\", \"400\"",
    );
    let study = scratch.put("large.toml", large);
    let out = scratch.path("out");
    let only = ["--seeds", "1"];
    expect(
        0,
        &[
            "ablate",
            &study,
            "--out",
            &out,
            only[0],
            only[1],
            "--prepare",
        ],
    );
    let cells = listed(&study, &out);
    let slow = cells
        .iter()
        .find(|cell| word(cell, "cell").contains("session-order off"));
    let id = word(slow.expect("a slow cell"), "id");
    let mut child = run::kingsnake(&[
        "ablate", &study, "--out", &out, only[0], only[1], "--cell", &id,
    ])
    .stdout(std::process::Stdio::null())
    .spawn()
    .expect("the binary runs");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let _ = std::process::Command::new("kill")
        .arg(child.id().to_string())
        .status();
    let status = child.wait().expect("the binary ends");
    assert_eq!(status.code(), Some(3), "{status}");
    let left = fs::read_dir(scratch.path("out/rows.d")).map_or(0, Iterator::count);
    assert_eq!(left, 0);
}
