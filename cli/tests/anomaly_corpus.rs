//! The corpus of anomalies: a file for each class and each named pattern, with all that it shows and all models that this rules out.

mod run;

use std::collections::BTreeSet;

use kingsnake_solver::lattice::ANOMALIES;
use run::{Scratch, dataset, expect, expect_verdicts, run};
use serde_json::Value;

/// The patterns that have names of their own among the cycles of a class.
const PATTERNS: [&str; 7] = [
    "lost update",
    "dirty update",
    "write skew",
    "long fork",
    "fractured read",
    "non-monotonic read",
    "causality violation",
];

struct Row {
    file: String,
    anomalies: Vec<String>,
    names: Vec<String>,
    not: Vec<String>,
    also_not: Vec<String>,
}

fn index() -> Vec<Row> {
    let path = dataset("anomalies/INDEX.tsv");
    let text = std::fs::read_to_string(path).expect("the index is there");
    let list = |cell: &str| match cell {
        "-" => Vec::new(),
        cell => cell.split(',').map(str::to_owned).collect(),
    };
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [file, anomalies, names, not, also_not] = cells[..] else {
            panic!("five columns are expected: {line}");
        };
        Row {
            file: file.to_owned(),
            anomalies: list(anomalies),
            names: list(names),
            not: list(not),
            also_not: list(also_not),
        }
    });
    rows.collect()
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

fn strings(list: &Value) -> Vec<String> {
    let list = list.as_array().into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}

#[test]
fn each_file_shows_its_anomalies_and_rules_out_its_models() {
    for row in index() {
        let path = dataset(&format!("anomalies/{}", row.file));
        let document = json(&run(&["check", &path, "--all", "--json"]).stdout);
        let classes = document["anomalies"].as_array().expect("there is a list");
        let types: Vec<&str> = classes
            .iter()
            .filter_map(|class| class["type"].as_str())
            .collect();
        assert_eq!(types, row.anomalies, "{}", row.file);
        let names = classes
            .iter()
            .filter_map(|class| class["names"].as_object());
        let names: BTreeSet<&String> = names.flat_map(|names| names.keys()).collect();
        for name in &row.names {
            assert!(names.contains(name), "{}: {name} of {names:?}", row.file);
        }
        assert_eq!(strings(&document["not"]), row.not, "{}", row.file);
        assert_eq!(strings(&document["also_not"]), row.also_not, "{}", row.file);
        // What is expected is asked for, so it can rule out more than the anomalies alone.
        let arguments = ["check", &path, "--expect", "strong-serializable", "--json"];
        let document = json(&expect(1, &arguments).stdout);
        let not: BTreeSet<String> = ["not", "also_not"]
            .iter()
            .flat_map(|list| strings(&document[list]))
            .collect();
        for model in row.not.iter().chain(&row.also_not) {
            assert!(not.contains(model), "{}: {model} of {not:?}", row.file);
        }
    }
}

fn is_one_of_g1(name: &str) -> bool {
    ["G1", "G1-process", "G1-realtime"].contains(&name)
}

#[test]
fn each_class_and_each_pattern_has_a_file() {
    let rows = index();
    let shown: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| row.anomalies.iter().map(String::as_str))
        .collect();
    // Names of several classes, of components, of what speaks of a database's own begins, and of what only a recorded version order
    // rules out: no history shows these by themselves.
    let is_umbrella = |name: &str| {
        name.ends_with("-cycle-exists")
            || name.starts_with("GSI")
            || is_one_of_g1(name)
            || name == "duplicate-write"
    };
    for anomaly in ANOMALIES.iter().filter(|it| !is_umbrella(it.name)) {
        assert!(
            shown.contains(anomaly.name),
            "no file shows {}",
            anomaly.name
        );
    }
    let named: BTreeSet<&String> = rows.iter().flat_map(|row| &row.names).collect();
    for pattern in PATTERNS {
        assert!(
            named.contains(&pattern.to_owned()),
            "no file shows {pattern}"
        );
    }
    let directory = std::fs::read_dir(dataset("anomalies")).expect("it can be listed");
    assert_eq!(directory.count(), rows.len() + 1, "each file has its row");
}

#[test]
fn histories_that_tell_pl_2_99_from_its_neighbours_have_their_verdicts() {
    expect_verdicts("pl-2.99", "pl-2.99", 3);
    let skew = dataset("pl-2.99/violated/write-skew.jsonl");
    expect(0, &["check", &skew, "--level", "pl-si"]);
    let phantom = dataset("pl-2.99/holds/phantom-skew.jsonl");
    expect(1, &["check", &phantom, "--level", "pl-3"]);
}

#[test]
fn one_value_written_twice_is_an_anomaly_of_a_recorded_version_order() {
    let scratch = Scratch::new();
    let path = scratch.path("h.jsonl");
    let lines = [
        r#"{"kingsnake":1,"initial":0}"#,
        r#"{"id":1,"session":"a","ops":[["w","x",1]],"commit_ts":10}"#,
        r#"{"id":2,"session":"b","ops":[["w","x",1]],"commit_ts":20}"#,
    ];
    std::fs::write(&path, lines.join("\n")).expect("a file");
    let document = json(&expect(1, &["check", &path, "--level", "pl-1", "--json"]).stdout);
    assert_eq!(document["anomaly"]["name"], "duplicate write", "{document}");
    let document = json(&expect(0, &["check", &path, "--level", "ser", "--json"]).stdout);
    assert_eq!(document["verdict"], "satisfied");
}
