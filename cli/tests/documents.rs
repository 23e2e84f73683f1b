//! What is written besides words: JSON, DOT, SVG and the page.

mod run;

use std::collections::BTreeSet;

use kingsnake_datasets::Format;
use run::{Scratch, corpus, expect, generate, puzzle};
use serde_json::Value;

/// One of each shape of counterexample, with a level that it breaks.
const VIOLATIONS: [(&str, &str); 8] = [
    ("none/lost-update.jsonl", "ser"),
    ("none/lost-update.jsonl", "si"),
    ("none/long-fork.jsonl", "si"),
    ("none/thin-air-read.jsonl", "ser"),
    ("none/aborted-read.jsonl", "ser"),
    ("none/list-incompatible-order.jsonl", "ser"),
    ("strong-session-si/write-skew.jsonl", "ser"),
    ("ser/monotonic-reads-violation.jsonl", "si"),
];

fn json(status: i32, args: &[&str]) -> Value {
    let said = expect(status, args);
    serde_json::from_str(&said.stdout).expect("stdout is one JSON document")
}

/// The names in the first column of a section's table.
fn documented(section: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/json.md"));
    let text = text.expect("docs/json.md is there");
    let from = text
        .find(&format!("## {section}"))
        .expect("the section is there");
    let rest = &text[from + 3..];
    let section = &rest[..rest.find("\n## ").unwrap_or(rest.len())];
    let columns = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    let names = columns.flat_map(|column| column.split(", "));
    names
        .map(|name| name.trim_matches(['`', ' ']).to_owned())
        .collect()
}

#[test]
fn the_document_has_the_fields_that_are_documented_and_no_others() {
    let scratch = Scratch::new();
    let open = generate(&scratch, "h.jsonl", &["--txns", "300", "--keys", "10"]);
    let valid = corpus("strong-session-ser/bank-transfer.jsonl");
    let mut seen = BTreeSet::new();
    for document in [
        json(0, &["check", "--json", &valid]),
        json(
            0,
            &[
                "check",
                "--json",
                &open,
                "--session-order",
                "off",
                "--no-witness",
                "--heuristic",
                "viper",
                "--prune-rounds",
                "1",
            ],
        ),
        json(
            1,
            &[
                "check",
                "--json",
                "--all",
                &corpus("none/lost-update.jsonl"),
            ],
        ),
        json(
            1,
            &[
                "check",
                "--json",
                &puzzle(&scratch),
                "--proof",
                &scratch.path("proof.lrat"),
            ],
        ),
        json(
            0,
            &[
                "check",
                "--json",
                "--level",
                "gsi",
                &corpus("strict-ser/serial.jsonl"),
            ],
        ),
        json(
            0,
            &["explain", "--json", &corpus("strict-ser/serial.jsonl")],
        ),
        json(3, &["check", "--json", &open, "--timeout", "0"]),
    ] {
        collect_fields(&document, "", &mut seen);
    }
    for section in ["auto", "Workloads"] {
        let others = documented(section);
        seen.retain(|it| !others.contains(it) || documented("check").contains(it));
    }
    // Lists and the counterexample are described in words.
    seen.retain(|name| !name.starts_with("plan.") && !name.starts_with("counterexample."));
    assert_eq!(seen, documented("check"));
}

/// The fields at the top of a document.
fn names(document: &Value) -> BTreeSet<String> {
    let fields = document.as_object().expect("an object");
    fields.keys().cloned().collect()
}

#[test]
fn the_other_documents_have_the_fields_that_are_documented_and_no_others() {
    let scratch = Scratch::new();
    let lost = corpus("none/lost-update.jsonl");
    let auto = json(1, &["check", "--json", "--level", "auto", &lost]);
    let given = |document: &Value| {
        let fields = names(document).into_iter();
        fields
            .filter(|it| !document[it].is_null())
            .collect::<BTreeSet<_>>()
    };
    assert!(given(&auto).is_superset(&documented("auto")));
    let stats = json(0, &["stats", "--json", &lost]);
    assert_eq!(names(&stats), documented("stats"));
    let bank = scratch.put(
        "bank.jsonl",
        "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",0]]}\n",
    );
    let bank = json(0, &["check", "--json", "--workload", "bank", &bank]);
    assert!(given(&bank).is_superset(&documented("Workloads")));
    assert_eq!(names(&bank), names(&auto));
}

#[test]
fn the_page_of_formats_has_every_format() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/formats.md");
    let page = std::fs::read_to_string(page).expect("docs/formats.md is there");
    let rows = page.lines().skip_while(|it| !it.starts_with("| name "));
    let rows = rows.take_while(|it| !it.is_empty()).skip(2);
    let mut read = Vec::new();
    let mut written = BTreeSet::new();
    for row in rows {
        let columns: Vec<&str> = row.split(" | ").collect();
        let named = columns[0].trim_start_matches("| ").split(", ");
        for name in named.map(|it| it.trim_matches('`').to_owned()) {
            if columns[2] == "yes" {
                written.insert(name.clone());
            }
            read.push(name);
        }
    }
    assert_eq!(read, Format::ALL.map(|it| it.name().to_owned()));
    let can_write = Format::WRITTEN.map(|it| it.name().to_owned());
    assert_eq!(written, BTreeSet::from(can_write));
}

fn collect_fields(value: &Value, prefix: &str, seen: &mut BTreeSet<String>) {
    for (name, inner) in value.as_object().into_iter().flatten() {
        let name = format!("{prefix}{name}");
        collect_fields(inner, &format!("{name}."), seen);
        seen.insert(name);
    }
}

#[test]
fn a_verdict_is_told_in_fields() {
    let satisfied = json(
        0,
        &[
            "check",
            "--json",
            &corpus("strong-session-ser/bank-transfer.jsonl"),
        ],
    );
    assert_eq!(satisfied["verdict"], "satisfied");
    assert_eq!(satisfied["exit_status"], 0);
    assert_eq!(
        satisfied["level"]["words"],
        "serializability with session order"
    );
    assert!(
        satisfied["command"]
            .as_str()
            .is_some_and(|it| it.starts_with("kingsnake check "))
    );

    let violated = json(1, &["check", "--json", &corpus("none/lost-update.jsonl")]);
    assert_eq!(violated["verdict"], "violated");
    assert_eq!(violated["anomaly"]["name"], "lost update");
    assert_eq!(violated["counterexample"]["kind"], "cycle");
    assert!(
        violated["counterexample"]["steps"]
            .as_array()
            .is_some_and(|it| it.len() >= 2)
    );
    assert!(
        violated["transactions"]
            .as_array()
            .is_some_and(|it| it.len() >= 2)
    );

    let local = json(1, &["check", "--json", &corpus("none/thin-air-read.jsonl")]);
    assert_eq!(local["counterexample"]["kind"], "local");
    assert_eq!(local["decider"], "resolve");

    let unknown = json(
        3,
        &[
            "check",
            "--json",
            &corpus("none/lost-update.jsonl"),
            "--timeout",
            "0",
        ],
    );
    assert_eq!(unknown["reason"]["kind"], "time");
    assert_eq!(unknown["history"], Value::Null);
}

#[test]
fn json_may_go_to_a_file_beside_the_words() {
    let scratch = Scratch::new();
    let option = format!("--json={}", scratch.path("out.json"));
    let said = expect(
        0,
        &[
            "check",
            &option,
            &corpus("strong-session-ser/bank-transfer.jsonl"),
        ],
    );
    assert!(said.stdout.starts_with("satisfied: "));
    let document: Value = serde_json::from_str(&scratch.get("out.json")).expect("a JSON document");
    assert_eq!(document["verdict"], "satisfied");
}

#[test]
fn every_picture_is_well_formed_and_shows_the_transactions() {
    let scratch = Scratch::new();
    for (history, level) in VIOLATIONS {
        let (svg, dot, page) = (
            scratch.path("out.svg"),
            scratch.path("out.dot"),
            scratch.path("out.html"),
        );
        let args = [
            "check",
            "--json",
            &corpus(history),
            "--level",
            level,
            "--svg",
            &svg,
            "--dot",
            &dot,
            "--report",
            &page,
        ];
        let document = json(1, &args);
        let text = scratch.get("out.svg");
        let tree =
            roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{history}: {error}"));
        assert_eq!(tree.root_element().tag_name().name(), "svg");
        let cards = tree.descendants().filter(|node| {
            node.attribute("class")
                .is_some_and(|it| it.starts_with("card"))
        });
        assert!(cards.count() >= 1, "{history}");
        assert!(
            !document["transactions"]
                .as_array()
                .expect("an array")
                .is_empty(),
            "{history}"
        );
        let dot = scratch.get("out.dot");
        assert!(
            dot.starts_with("digraph ") && dot.ends_with("}\n"),
            "{history}"
        );
        assert_self_contained(&scratch.get("out.html"));
    }
}

fn assert_self_contained(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>"));
    for outside in [
        "http:", "https:", "<link", "<img", "<iframe", "@import", "src=",
    ] {
        assert!(!page.contains(outside), "the page has {outside}");
    }
    let scripts: Vec<&str> = page.split("<script>").skip(1).collect();
    assert_eq!(page.matches("<script").count(), scripts.len());
    assert!(scripts.len() <= 1, "the page has one program at most");
    let size = scripts
        .iter()
        .map(|it| it.find("</script>").unwrap_or(it.len()))
        .sum::<usize>();
    assert!(size < 40_000, "the program has {size} bytes");
}

#[test]
fn a_page_is_written_for_every_verdict() {
    let scratch = Scratch::new();
    let page = scratch.path("out.html");
    let valid = corpus("strong-session-ser/bank-transfer.jsonl");
    for (status, history, more, word) in [
        (0, &valid, &[][..], "kingsnake verify"),
        (
            1,
            &corpus("none/long-fork.jsonl"),
            &["--level", "si"],
            "What happened",
        ),
        (3, &valid, &["--timeout", "0"], "time limit"),
    ] {
        let mut args = vec!["check", history.as_str(), "--report", &page];
        args.extend(more);
        expect(status, &args);
        let text = scratch.get("out.html");
        assert_self_contained(&text);
        assert!(text.contains(word), "{word}");
        assert!(
            text.contains("kingsnake check"),
            "the page says how to repeat the run"
        );
    }
}

#[test]
fn hostile_names_stay_names() {
    let scratch = Scratch::new();
    let history =
        std::fs::read_to_string(corpus("none/lost-update.jsonl")).expect("the corpus is there");
    let hostile = r#"<script>alert('x')</script>\"&\u0000]]>"#;
    let history = scratch.put(
        "<b>h.jsonl",
        history.replace("\"x\"", &format!("\"{hostile}\"")),
    );
    let (svg, page) = (scratch.path("out.svg"), scratch.path("out.html"));
    expect(1, &["check", &history, "--svg", &svg, "--report", &page]);
    let text = scratch.get("out.html");
    assert!(text.contains("&lt;script&gt;"), "the key is shown");
    assert!(
        !text.contains("<script>alert") && !text.contains("<b>h"),
        "the key is not markup"
    );
    assert_self_contained(&text);
    roxmltree::Document::parse(&scratch.get("out.svg")).expect("the picture is well formed");
}

#[test]
fn nothing_is_drawn_for_a_satisfied_history() {
    let scratch = Scratch::new();
    let svg = scratch.path("out.svg");
    let said = expect(
        0,
        &[
            "check",
            &corpus("strong-session-ser/bank-transfer.jsonl"),
            "--svg",
            &svg,
        ],
    );
    assert!(said.stderr.contains("no picture"), "{}", said.stderr);
}
