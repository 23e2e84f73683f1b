//! `kingsnake check --all`: every class of anomaly, what they rule out, and what was expected.

mod run;

use std::fmt::Write;

use run::{Scratch, corpus, expect};
use serde_json::Value;

/// A ring of appends with one anti-dependency at its end, among write skews.
fn ring(n_txns: usize, n_skews: usize) -> String {
    let mut out = String::new();
    let mut index = 0;
    let mut ok = |process: usize, ops: &str| {
        let line = "{:type :ok, :process P, :index I, :value [V]}";
        let line = line.replace('P', &process.to_string());
        let line = line.replace('I', &index.to_string()).replace('V', ops);
        let _ = writeln!(out, "{line}");
        index += 1;
    };
    for txn in 0..n_txns {
        let mut ops = format!("[:append :ring {txn}]");
        if txn == 0 {
            ops.push_str(" [:append :anti 1]");
        } else if txn + 1 == n_txns {
            ops.push_str(" [:r :anti nil]");
        }
        if txn < n_skews {
            let _ = write!(ops, " [:append :n{txn} 1] [:r :m{txn} nil]");
        }
        ok(txn, &ops);
    }
    for skew in 0..n_skews {
        let ops = format!("[:append :m{skew} 1] [:r :n{skew} nil]");
        ok(n_txns + skew, &ops);
    }
    let all: Vec<String> = (0..n_txns).map(|txn| txn.to_string()).collect();
    ok(n_txns + n_skews, &format!("[:r :ring [{}]]", all.join(" ")));
    out
}

fn class<'d>(document: &'d Value, name: &str) -> &'d Value {
    let classes = document["anomalies"].as_array().expect("there is a list");
    let found = classes.iter().find(|class| class["type"] == name);
    found.unwrap_or(&Value::Null)
}

#[test]
fn every_class_is_listed_with_its_count() {
    let scratch = Scratch::new();
    let path = scratch.path("ring.edn");
    std::fs::write(&path, ring(200, 30)).expect("it can be written");
    let said = expect(1, &["check", "--all", "--json", &path]);
    let document: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    assert_eq!(class(&document, "G-single-item")["count"], 1);
    assert_eq!(class(&document, "write-skew")["count"], 30);
    assert_eq!(class(&document, "G2-item")["count"], 30);
    assert_eq!(document["anomaly"]["adya"], "G-single");
    let not: Vec<&str> = document["not"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    assert_eq!(not, ["consistent-view", "repeatable-read"]);
}

#[test]
fn what_was_expected_sets_the_exit_status() {
    let skew = corpus("strong-session-si/two-write-skews.jsonl");
    expect(1, &["check", "-q", &skew]);
    expect(0, &["check", "-q", &skew, "--expect", "snapshot-isolation"]);
    expect(1, &["check", "-q", &skew, "--expect", "PL-2,PL-3"]);
    expect(0, &["check", "-q", &skew, "--anomalies", "G1,lost-update"]);
    expect(1, &["check", "-q", &skew, "--anomalies", "g2-item"]);
    let said = expect(2, &["check", "-q", &skew, "--expect", "sirializable"]);
    assert!(said.stderr.contains("docs/levels.md"), "{}", said.stderr);
}

/// A reader of two writers, one key from each: whichever wrote last, one of them was missed.
const TORN: &str = r#"{"kingsnake":1}
{"id":1,"session":1,"ops":[["w","x",1],["w","y",1]]}
{"id":2,"session":2,"ops":[["w","x",2],["w","y",2]]}
{"id":3,"session":3,"ops":[["r","x",1],["r","y",2]]}
"#;

#[test]
fn a_model_that_no_certain_cycle_rules_out_is_asked_for() {
    let scratch = Scratch::new();
    let torn = scratch.put("torn.jsonl", TORN);
    for model in [
        "serializable",
        "SI",
        "strong-session-serializable",
        "psi",
        "ra",
    ] {
        expect(1, &["check", "-q", &torn, "--expect", model]);
    }
    for model in ["read-committed", "READ UNCOMMITTED"] {
        expect(0, &["check", "-q", &torn, "--expect", model]);
    }
    expect(
        1,
        &["check", "-q", &torn, "--level", "rc", "--expect", "ser"],
    );
    for anomaly in ["G-single", "read skew", "A5A", "G2"] {
        expect(1, &["check", "-q", &torn, "--anomalies", anomaly]);
    }
    expect(0, &["check", "-q", &torn, "--anomalies", "G1,P4"]);
    let said = expect(1, &["check", "--all", &torn]);
    assert!(said.stdout.contains("anomalies: none by itself"));
    assert!(
        said.stdout
            .contains("ruled out: strong-session-serializable")
    );
}

#[test]
fn auto_says_of_every_model_what_is_known() {
    let skew = corpus("strong-session-si/two-write-skews.jsonl");
    let said = expect(1, &["check", "--level", "auto", "--json", &skew]);
    let document: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    let models = document["models"].as_array().expect("there is a list");
    let verdict = |name: &str| {
        let found = models.iter().find(|model| model["name"] == name);
        found.and_then(|model| model["verdict"].as_str())
    };
    assert_eq!(verdict("snapshot-isolation"), Some("holds"));
    assert_eq!(verdict("read-committed"), Some("holds"));
    assert_eq!(verdict("serializable"), Some("ruled out"));
    assert_eq!(verdict("repeatable-read"), Some("ruled out"));
    assert_eq!(verdict("linearizable"), Some("not decided here"));
}

#[test]
fn what_adya_defines_holds_where_lists_reveal_the_order_of_versions() {
    let scratch = Scratch::new();
    let fork = r#"{"kingsnake":1}
{"id":1,"session":1,"ops":[["a","x",1]]}
{"id":2,"session":2,"ops":[["a","y",1]]}
{"id":3,"session":3,"ops":[["rl","x",[1]],["rl","y",[]]]}
{"id":4,"session":4,"ops":[["rl","x",[]],["rl","y",[1]]]}
"#;
    let path = scratch.put("fork.jsonl", fork);
    let said = expect(1, &["check", "--level", "auto", "--json", &path]);
    let document: Value = serde_json::from_str(&said.stdout).expect("it is JSON");
    let models = document["models"].as_array().expect("there is a list");
    let verdict = |name: &str| {
        let found = models.iter().find(|model| model["name"] == name);
        found.and_then(|model| model["verdict"].as_str())
    };
    assert_eq!(verdict("consistent-view"), Some("holds"));
    assert_eq!(verdict("cursor-stability"), Some("holds"));
    assert_eq!(verdict("repeatable-read"), Some("ruled out"));
}
