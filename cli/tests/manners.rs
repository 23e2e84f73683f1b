//! Manners of the command line: short help, manual pages, level names as people type them, stdin and stdout, conversions.

mod run;

use std::io::Write;
use std::process::Stdio;

use run::{Scratch, corpus, expect, kingsnake};

const SKEW: &str = "strong-session-si/write-skew.jsonl";

/// Runs with this text on stdin.
fn piped(args: &[&str], text: &str) -> (Option<i32>, String, String) {
    let mut child = kingsnake(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    let ended = child.wait_with_output().expect("it ends");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

#[test]
fn the_help_of_check_is_short_and_techniques_have_their_own() {
    let short = expect(0, &["check", "--help"]).stdout;
    assert!(
        !short.contains("--no-coalesce") && !short.contains("--backend"),
        "{short}"
    );
    assert!(short.contains("--help-techniques") && short.contains("--level"));
    let techniques = expect(0, &["check", "--help-techniques"]).stdout;
    assert!(techniques.contains("--no-coalesce") && techniques.contains("--backend"));
    assert!(!techniques.contains("--junit"), "{techniques}");
    // They still work.
    expect(1, &["check", &corpus(SKEW), "--no-coalesce"]);
}

#[test]
fn there_is_a_manual_page_for_each_command() {
    let scratch = Scratch::new();
    let page = expect(0, &["man"]).stdout;
    assert!(page.contains(".TH kingsnake 1"), "{page}");
    expect(0, &["man", "--out", &scratch.path("man1")]);
    for name in ["kingsnake.1", "kingsnake-check.1", "kingsnake-hunt.1"] {
        assert!(
            scratch.get(&format!("man1/{name}")).contains(".SH"),
            "{name}"
        );
    }
    assert!(
        expect(0, &["completions", "bash"])
            .stdout
            .contains("--junit")
    );
}

#[test]
fn levels_have_the_names_that_people_type() {
    let skew = corpus(SKEW);
    for name in [
        "serializable",
        "SER",
        "Serializability",
        "strong-session-serializable",
    ] {
        expect(1, &["check", &skew, "--level", name]);
    }
    for name in [
        "snapshot-isolation",
        "SI",
        "read-committed",
        "causal-consistency",
        "prefix-consistency",
    ] {
        expect(0, &["check", &skew, "--level", name]);
    }
}

#[test]
fn a_dash_is_stdin_and_stdout() {
    let text = std::fs::read_to_string(corpus(SKEW)).expect("the corpus is there");
    assert_eq!(piped(&["check", "-"], &text).0, Some(1));
    assert_eq!(piped(&["explain", "-"], &text).0, Some(1));
    assert_eq!(piped(&["lint", "-"], &text).0, Some(0));
    assert_eq!(piped(&["stats", "-"], &text).0, Some(0));
    let (status, out, _) = piped(
        &["check", "-", "--level", "si", "--certificate", "-"],
        &text,
    );
    assert_eq!(status, Some(0));
    assert!(out.starts_with('{'), "{out}");
    let (status, out, _) = piped(&["convert", "-", "-"], &text);
    assert_eq!(status, Some(0));
    assert!(out.starts_with("{\"kingsnake\":1"), "{out}");
    let (status, out, _) = piped(&["convert", "-", "-", "--to", "jepsen-edn"], &text);
    assert_eq!(status, Some(0));
    assert!(out.contains(":type"), "{out}");
    let (status, out, _) = piped(&["export", "-", "--to", "dot", "--out", "-"], &text);
    assert_eq!(status, Some(0), "{out}");
    assert!(out.contains("digraph"), "{out}");
}

#[test]
fn a_dash_is_stdin_and_stdout_of_the_other_commands_too() {
    let skew = corpus(SKEW);
    let text = std::fs::read_to_string(&skew).expect("the corpus is there");
    let (_, order, _) = piped(
        &["check", "-", "--level", "si", "--certificate", "-"],
        &text,
    );
    assert_eq!(piped(&["verify", &skew, "-"], &order).0, Some(0));
    assert_eq!(piped(&["verify", "-", "-"], &order).0, Some(2));
    let generated = expect(0, &["generate", "mini", "--txns", "50", "--out", "-"]).stdout;
    assert!(generated.starts_with("{\"kingsnake\":1"), "{generated}");
    assert_eq!(piped(&["check", "-"], &generated).0, Some(0));
    let (_, question, _) = piped(&["export", "-", "--to", "gnf", "--out", "-"], &text);
    assert!(
        piped(&["solve", "-"], &question)
            .1
            .contains("unsatisfiable")
    );
    for option in ["--report", "--svg", "--dot", "--junit"] {
        let said = expect(1, &["check", &skew, option, "-"]).stdout;
        assert!(
            !said.starts_with("violated"),
            "{option} has stdout alone: {said}"
        );
    }
    let said = expect(1, &["check", &skew, "--junit", "-"]).stdout;
    roxmltree::Document::parse(&said).expect("nothing but XML");
    assert!(!std::path::Path::new("-").exists(), "no file has this name");
}

#[test]
fn lint_takes_several_histories_and_writes_json() {
    let scratch = Scratch::new();
    let empty = scratch.put("empty.jsonl", "{\"kingsnake\":1}\n");
    let said = expect(1, &["lint", &corpus(SKEW), &empty, "--json"]).stdout;
    let document: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(document[0]["remarks"], serde_json::json!([]));
    assert_eq!(
        document[1]["remarks"].as_array().map(Vec::len),
        Some(1),
        "{said}"
    );
    let said = expect(2, &["lint", "no/such/file", "--json"]).stdout;
    assert!(said.contains("\"verdict\": \"error\""), "{said}");
}

#[test]
fn texts_are_numbered_for_readers_that_know_numbers_only() {
    let scratch = Scratch::new();
    let text = scratch.path("skew.txt");
    let said = expect(0, &["convert", &corpus(SKEW), &text]);
    assert!(said.stderr.contains("numbered from 1"), "{}", said.stderr);
    for level in ["ser", "si"] {
        let as_before = expect(
            i32::from(level == "ser"),
            &["check", &corpus(SKEW), "--level", level],
        );
        expect(as_before.status, &["check", &text, "--level", level]);
    }
}

#[test]
fn convert_takes_the_format_from_the_ending_and_leaves_out_what_it_is_told() {
    let scratch = Scratch::new();
    let timed = scratch.put(
        "timed.jsonl",
        "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"begin\":1,\"commit\":2,\"ops\":[[\"w\",-5,-7]]}\n{\"id\":2,\"session\":2,\"begin\":3,\"commit\":4,\"ops\":[[\"r\",-5,-7]]}\n",
    );
    let text = scratch.path("out.txt");
    let said = expect(2, &["convert", &timed, &text]);
    assert!(said.stderr.contains("times"), "{}", said.stderr);
    let said = expect(0, &["convert", &timed, &text, "--drop", "times"]);
    assert!(
        said.stderr.contains("no negative numbers"),
        "{}",
        said.stderr
    );
    let written = scratch.get("out.txt");
    assert!(
        written.starts_with("w(1,") && !written.contains('-'),
        "{written}"
    );
    expect(0, &["check", &text]);
    expect(
        0,
        &[
            "convert",
            &timed,
            &scratch.path("out.edn"),
            "--drop",
            "times",
        ],
    );
    assert!(scratch.get("out.edn").contains(":type"));
}
