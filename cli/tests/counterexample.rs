//! Counterexamples: what `check --json` writes, `verify` judges again; what is damaged, it does not believe.

mod run;

use run::{Scratch, corpus, dataset, expect};
use serde_json::Value;

/// Writes the document of a check, if it says violated.
fn violated(scratch: &Scratch, history: &str, level: &str) -> Option<Value> {
    let path = scratch.path("document.json");
    let json = format!("--json={path}");
    let said = run::run(&["check", history, "--level", level, "-q", &json]);
    if said.status != 1 {
        return None;
    }
    Some(serde_json::from_str(&scratch.get("document.json")).expect("it is JSON"))
}

fn verify(scratch: &Scratch, history: &str, document: &Value) -> run::Said {
    let path = scratch.put("judged.json", document.to_string());
    run::run(&["verify", history, &path])
}

/// The histories of some directories of the datasets.
fn histories(directories: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for directory in directories {
        let entries = std::fs::read_dir(dataset(directory)).expect("it can be listed");
        for entry in entries {
            let path = entry.expect("it can be read").path();
            if path.extension().is_some_and(|it| it == "jsonl") {
                found.push(path.to_str().expect("the path is UTF-8").to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The steps of the first cycle within a counterexample.
fn first_steps(value: &mut Value) -> Option<&mut Vec<Value>> {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("steps") {
                return fields.get_mut("steps").and_then(Value::as_array_mut);
            }
            fields.values_mut().find_map(first_steps)
        }
        Value::Array(items) => items.iter_mut().find_map(first_steps),
        _ => None,
    }
}

#[test]
fn every_counterexample_of_the_corpus_holds_and_damaged_ones_do_not() {
    let scratch = Scratch::new();
    let (mut n_judged, mut n_damaged) = (0, 0);
    let mut kinds: Vec<String> = Vec::new();
    for history in histories(&["corpus/none", "anomalies", "corpus/si", "psi/violated"]) {
        for level in ["ser", "si", "psi", "cc", "rc"] {
            let Some(document) = violated(&scratch, &history, level) else {
                continue;
            };
            let said = verify(&scratch, &history, &document);
            assert_eq!(said.status, 0, "{history} {level}: {}", said.stderr);
            assert!(
                said.stdout.starts_with("counterexample holds: violated, "),
                "{}",
                said.stdout
            );
            n_judged += 1;
            kinds.push(document["counterexample"]["kind"].to_string());
            if !["ser", "cc"].contains(&level) {
                continue;
            }
            // A cycle that lacks a step is none.
            let mut damaged = document.clone();
            match first_steps(&mut damaged["counterexample"]) {
                Some(steps) => {
                    steps.pop();
                }
                None => damaged["counterexample"]["findings"] = Value::Array(Vec::new()),
            }
            let said = verify(&scratch, &history, &damaged);
            assert_ne!(said.status, 0, "{history} {level}: {damaged}");
            n_damaged += usize::from(said.status == 1);
        }
    }
    kinds.sort();
    kinds.dedup();
    println!("{n_judged} judged, {n_damaged} damaged ones refused, kinds {kinds:?}");
    assert!(n_judged > 150 && n_damaged > 60, "{n_judged} {n_damaged}");
    assert!(kinds.len() >= 3, "{kinds:?}");
}

#[test]
fn mixed_counterexamples_are_judged_by_each_transactions_own_level() {
    let scratch = Scratch::new();
    let mut n_judged = 0;
    for history in histories(&["mixed/violated"]) {
        let Some(document) = violated(&scratch, &history, "as-recorded") else {
            continue;
        };
        let said = verify(&scratch, &history, &document);
        assert_eq!(said.status, 0, "{history}: {}{}", said.stdout, said.stderr);
        let path = scratch.put("judged.json", document.to_string());
        let weakest = ["verify", &history, &path, "--level", "rc"];
        let said = run::run(&weakest);
        println!("{history} at rc: {}", said.stdout);
        n_judged += 1;
    }
    assert!(n_judged >= 4, "{n_judged}");
}

#[test]
fn a_counterexample_is_not_believed_at_a_level_that_allows_it() {
    let scratch = Scratch::new();
    let history = corpus("strong-session-si/write-skew.jsonl");
    let document = violated(&scratch, &history, "ser").expect("write skew is not serializable");
    let path = scratch.put("judged.json", document.to_string());
    expect(0, &["verify", &history, &path]);
    expect(1, &["verify", &history, &path, "--level", "si"]);
    let mut weaker = document.clone();
    weaker["level"]["model"] = "si".into();
    assert_eq!(verify(&scratch, &history, &weaker).status, 1);
}

#[test]
fn documents_that_cannot_be_judged_are_errors_that_say_why() {
    let scratch = Scratch::new();
    let history = corpus("strong-session-si/write-skew.jsonl");
    let document = violated(&scratch, &history, "ser").expect("it is violated");
    let mut cases = Vec::new();
    let mut without = document.clone();
    without["counterexample"] = Value::Null;
    cases.push((without, "no counterexample"));
    let mut nobody = document.clone();
    let steps = first_steps(&mut nobody["counterexample"]).expect("it is a cycle");
    steps[0]["from"]["transaction"] = "nobody".into();
    cases.push((nobody, "no transaction \"nobody\""));
    let mut satisfied = document.clone();
    satisfied["verdict"] = "satisfied".into();
    cases.push((satisfied, "--certificate"));
    let mut chaos = document;
    chaos["level"]["model"] = "chaos".into();
    cases.push((chaos, "chaos"));
    for (document, why) in cases {
        let said = verify(&scratch, &history, &document);
        assert_eq!(said.status, 2, "{why}: {}", said.stdout);
        assert!(
            said.stderr.contains(why) && said.stderr.contains("judged.json"),
            "{}",
            said.stderr
        );
    }
}
