//! Certificates and expected orders from the command line: exit status, words, JSON, and what is refused.

mod run;

use run::{Scratch, expect, generate_workload};
use serde_json::Value;

fn figure(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../datasets/certified");
    format!("{folder}/{name}.jsonl")
}

#[test]
fn a_refuted_certificate_says_whether_another_order_explains_the_history() {
    let said = expect(
        1,
        &[
            "check",
            &figure("figure-3"),
            "--certificate-from",
            "history",
        ],
    );
    assert!(
        said.stdout
            .starts_with("violated: pl-3 on the recorded versions (figure-3.jsonl"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("T3 asked for rows with value > 0 and did not get row y, though T2 had set its value to 2."), "{}", said.stdout);
    assert!(
        said.stdout.contains("Some other order explains"),
        "{}",
        said.stdout
    );
    assert!(
        said.stdout.contains("Result-set mismatch breaks pl-3"),
        "{}",
        said.stdout
    );
    let said = expect(
        1,
        &[
            "check",
            &figure("figure-4"),
            "--certificate-from",
            "history",
        ],
    );
    assert!(said.stdout.contains("G-single"), "{}", said.stdout);
    assert!(
        said.stdout.contains("No other order explains"),
        "{}",
        said.stdout
    );
}

#[test]
fn every_level_of_adya_has_its_exit_status() {
    for (level, status) in [
        ("pl-1", 0),
        ("pl-2", 0),
        ("pl-2+", 1),
        ("pl-2.99", 0),
        ("pl-3", 1),
    ] {
        expect(
            status,
            &["check", &figure("figure-1"), "--level", level, "-q"],
        );
    }
    for level in ["pl-1", "pl-2", "pl-2+", "pl-2.99", "pl-si", "pl-3"] {
        expect(0, &["check", &figure("figure-2"), "--level", level, "-q"]);
    }
    expect(
        0,
        &[
            "check",
            &figure("figure-2"),
            "--certificate-from",
            "history",
            "--level",
            "si",
        ],
    );
}

#[test]
fn an_expected_order_is_replayed_by_timestamps_or_from_a_file() {
    let scratch = Scratch::new();
    expect(0, &["check", &figure("figure-2"), "--along", "commit-ts"]);
    let said = expect(1, &["check", &figure("figure-3"), "--along", "start-ts"]);
    assert!(
        said.stdout.contains("T3 is number 3 of the order"),
        "{}",
        said.stdout
    );
    let order = scratch.put("order", "1\n3\n2\n");
    expect(0, &["check", &figure("figure-3"), "--along", &order]);
    let short = scratch.put("short", "1\n3\n");
    let said = expect(2, &["check", &figure("figure-3"), "--along", &short]);
    assert!(
        said.stderr.contains("lacks transaction 2"),
        "{}",
        said.stderr
    );
    let wrong = scratch.put("wrong", "1\n3\n7\n");
    let said = expect(2, &["check", &figure("figure-3"), "--along", &wrong]);
    assert!(said.stderr.contains("line 3"), "{}", said.stderr);
    let said = expect(2, &["check", &figure("figure-1"), "--along", "commit-ts"]);
    assert!(said.stderr.contains("no commit_ts"), "{}", said.stderr);
}

#[test]
fn a_page_and_a_picture_show_what_predicates_have_to_do_with_it() {
    let scratch = Scratch::new();
    let (page, svg) = (scratch.path("page.html"), scratch.path("cycle.svg"));
    let outputs = ["--report", &page, "--svg", &svg];
    let read = |path: &str| std::fs::read_to_string(path).expect("it was written");
    let figure_1 = figure("figure-1");
    let certified = ["check", &figure_1, "--certificate-from", "history"];
    expect(1, &[&certified[..], &outputs[..]].concat());
    for text in [read(&page), read(&svg)] {
        assert!(text.contains("pred-rw"), "{text}");
        assert!(text.contains("asked for rows with"), "{text}");
    }
    let told = read(&page);
    assert!(
        told.contains("looked at row") && told.contains("id=\"timeline\""),
        "{told}"
    );
    // A mismatch and a disagreement have no cycle.
    let figure_3 = figure("figure-3");
    let mismatched = ["check", &figure_3, "--certificate-from", "history"];
    expect(1, &[&mismatched[..], &outputs[..]].concat());
    assert!(read(&page).contains("did not get row y"), "{}", read(&page));
    let along = ["check", &figure_3, "--along", "commit-ts"];
    expect(1, &[&along[..], &outputs[..]].concat());
    assert!(
        read(&page).contains("number 3 of the order"),
        "{}",
        read(&page)
    );
    // What holds has a page without a picture.
    let figure_2 = figure("figure-2");
    let holds = ["check", &figure_2, "--level", "pl-3", "--report", &page];
    expect(0, &holds);
    assert!(!read(&page).contains("id=\"picture\""), "{}", read(&page));
}

#[test]
fn the_answer_is_a_json_document() {
    let said = expect(
        1,
        &["check", &figure("figure-1"), "--level", "pl-3", "--json"],
    );
    let document: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    assert_eq!(document["verdict"], "violated");
    let refutation = &document["counterexample"]["refutation"];
    assert_eq!(refutation["phenomenon"], "G-single");
    let steps = refutation["steps"].as_array();
    let kinds: Vec<&str> = steps
        .into_iter()
        .flatten()
        .filter_map(|step| step["dependency"].as_str())
        .collect();
    assert!(kinds.contains(&"pred-rw"), "{kinds:?}");
}

#[test]
fn a_partial_version_order_is_searched_at_pl_3_and_refused_at_pl_2() {
    let scratch = Scratch::new();
    let text = "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n{\"id\":2,\"session\":2,\"ops\":[[\"w\",\"x\",2]]}\n";
    let path = scratch.put("h.jsonl", text);
    let said = expect(0, &["check", &path, "--level", "pl-3"]);
    assert!(said.stderr.contains("not complete"), "{}", said.stderr);
    let said = expect(2, &["check", &path, "--level", "pl-2"]);
    assert!(said.stderr.contains("version_order"), "{}", said.stderr);
    expect(2, &["check", &path, "--certificate-from", "history"]);
}

#[test]
fn what_a_predicate_left_out_counts_without_a_certificate() {
    for figure_name in ["figure-1", "figure-4", "figure-7"] {
        for level in ["ser", "si"] {
            let said = expect(1, &["check", &figure(figure_name), "--level", level]);
            assert!(
                said.stdout.contains("asked for rows with"),
                "{}",
                said.stdout
            );
        }
    }
    expect(0, &["check", &figure("figure-3"), "--level", "ser"]);
    expect(
        0,
        &[
            "check",
            &figure("figure-1"),
            "--level",
            "ser",
            "--no-predicates",
        ],
    );
    expect(0, &["check", &figure("figure-2"), "--level", "ser"]);
}

#[test]
fn the_store_keeps_phantoms_out_unless_it_is_told_not_to() {
    let scratch = Scratch::new();
    let options = ["--txns", "400", "--clients", "8", "--inline-version-order"];
    for workload in ["emme-items", "emme-predicates", "emme-predicates-100"] {
        let path = generate_workload(&scratch, workload, workload, &options);
        expect(0, &["check", &path, "--certificate-from", "history"]);
        expect(0, &["check", &path, "--along", "commit-ts"]);
    }
    let mut broken = options.to_vec();
    broken.push("--no-predicate-locks");
    let path = generate_workload(&scratch, "broken", "emme-predicates", &broken);
    let said = expect(1, &["check", &path, "--certificate-from", "history"]);
    assert!(said.stdout.contains("pred-rw"), "{}", said.stdout);
    expect(1, &["check", &path, "--along", "commit-ts"]);
    let mut weak = options.to_vec();
    weak.extend(["--isolation", "read-committed"]);
    let path = generate_workload(&scratch, "weak", "emme-predicates", &weak);
    expect(1, &["check", &path, "--certificate-from", "history"]);
    expect(0, &["check", &path, "--level", "pl-2"]);
}

#[test]
fn verify_replays_conditions() {
    let scratch = Scratch::new();
    let certificate = scratch.path("order.jsonl");
    expect(
        0,
        &["check", &figure("figure-3"), "--certificate", &certificate],
    );
    expect(0, &["verify", &figure("figure-3"), &certificate]);
}
