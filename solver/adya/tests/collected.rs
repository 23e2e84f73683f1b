//! Predicates that `PostgreSQL` answered at two levels (`shared/data/collected/pred-*`, whose format is converted here).

#![allow(clippy::print_stderr)] // Skipped data are reported.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::io::Read;
use std::path::Path;

use kingsnake_adya::check;
use kingsnake_datasets::{Format, read_bytes};
use kingsnake_history::adya::{Difference, Mismatch, PlLevel, Refutation};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::{Act, History};
use kingsnake_history::verdict::{Counterexample, Verdict};
use serde_json::Value;

const DATA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/data/collected"
);

/// The history in our format; `None` where the collection is not there.
fn collected(name: &str) -> Option<History> {
    let path = Path::new(DATA).join(name);
    let Ok(file) = std::fs::File::open(&path) else {
        eprintln!("SKIPPED: {} is not there", path.display());
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .expect("it is text");
    let document: Value = serde_json::from_str(&text).expect("it is JSON");
    let text = converted(&document);
    let parsed = read_bytes(Format::Kingsnake, text.as_bytes(), name);
    Some(parsed.unwrap_or_else(|error| panic!("{error}")).history)
}

fn converted(document: &Value) -> String {
    let mut text = "{\"kingsnake\":1,\"tables\":{\"t\":[\"c\"]}}\n".to_owned();
    let versions = document["versions"].as_object().expect("an object");
    let column = |key: i64, value: &Value| {
        let list = versions[&key.to_string()].as_array().expect("a list");
        let found = list.iter().find(|version| version[1] == *value);
        // A value that its own transaction overwrote is in no list.
        found.map_or(Value::Null, |version| version[2].clone())
    };
    for (key, list) in versions {
        let list = list.as_array().expect("a list");
        let (first, rest) = list.split_first().expect("the initial version heads it");
        writeln!(
            text,
            "{{\"initial\":{{\"key\":{key},\"value\":{},\"row\":{{\"c\":{}}}}}}}",
            first[1], first[2]
        )
        .expect("a text takes all");
        let values: Vec<String> = rest.iter().map(|version| version[1].to_string()).collect();
        writeln!(
            text,
            "{{\"version_order\":{{\"key\":{key},\"values\":[{}]}}}}",
            values.join(",")
        )
        .expect("a text takes all");
    }
    let txns = document["txns"].as_array().expect("a list");
    let mut known = BTreeSet::new();
    let mut named = BTreeSet::new();
    for txn in txns {
        known.extend(txn["xid"].as_i64());
        let mut ops = Vec::new();
        for op in txn["ops"].as_array().expect("a list") {
            if op[0] == "w" {
                let key = op[1].as_i64().expect("a number");
                ops.push(format!(
                    "[\"w\",{key},{},{{\"c\":{}}}]",
                    op[2],
                    column(key, &op[2])
                ));
                continue;
            }
            let snapshot = op[2].as_str().expect("a text");
            let running = snapshot.split(':').next_back().unwrap_or_default();
            named.extend(running.split(',').filter_map(|xid| xid.parse::<i64>().ok()));
            let word = if op[0] == "p" { "select" } else { "update" };
            let rows = op[3].as_array().expect("a list").iter();
            let rows = rows.map(|row| match row.as_i64() {
                None => row.to_string(),
                Some(key) => format!("[{key},{},{{\"c\":{}}}]", op[4], column(key, &op[4])),
            });
            ops.push(format!(
                "[\"{word}\",{{\"table\":\"t\",\"where\":[\"between\",\"c\",{},{}]}},[{}],{{\"pg\":\"{snapshot}\"}}]",
                op[1][0],
                op[1][1],
                rows.collect::<Vec<_>>().join(",")
            ));
        }
        writeln!(
            text,
            "{{\"id\":{},\"session\":{},\"status\":{},\"xid\":{},\"ops\":[{}]}}",
            txn["id"],
            txn["session"],
            txn["status"],
            txn["xid"],
            ops.join(",")
        )
        .expect("a text takes all");
    }
    // Transactions that only snapshots know of left nothing behind.
    for xid in named.difference(&known) {
        writeln!(
            text,
            "{{\"id\":\"x{xid}\",\"session\":\"others\",\"status\":\"aborted\",\"xid\":{xid},\"ops\":[]}}"
        )
        .expect("a text takes all");
    }
    text
}

fn mismatches(history: &History) -> Vec<Mismatch> {
    let report = check(history, PlLevel::Pl2, &Budget::unlimited());
    match report.unwrap_or_else(|error| panic!("{error}")).0 {
        Verdict::Violated(Counterexample::Recorded(Refutation::Mismatches(found))) => found,
        Verdict::Satisfied(_) => Vec::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn postgresql_at_serializable_returns_what_its_snapshots_imply() {
    if let Some(history) = collected("pred-serializable.json.gz") {
        assert!(history.n_predicates() > 900);
        assert_eq!(mismatches(&history), []);
        let report = check(&history, PlLevel::Pl3, &Budget::unlimited());
        assert!(matches!(report.map(|it| it.0), Ok(Verdict::Satisfied(_))));
    }
}

#[test]
fn postgresql_at_read_committed_updates_rows_as_they_are_after_a_lock_wait() {
    let Some(history) = collected("pred-read-committed.json.gz") else {
        return;
    };
    let found = mismatches(&history);
    let act = |it: &Mismatch| history.all_predicates()[it.predicate as usize].1.act;
    let of = |wanted: &dyn Fn(&&Mismatch) -> bool| {
        let numbers = found.iter().filter(|it| wanted(it)).map(|it| it.predicate);
        numbers.collect::<BTreeSet<u32>>().len()
    };
    // 21 updates left out a row of their snapshot. None changed a row that its snapshot does not choose: PostgreSQL looks at a row
    // again after waiting for its lock, but at no other row. What a transaction writes later is not in its own snapshot.
    assert_eq!(
        of(&|it| act(it) == Act::Update && matches!(it.what, Difference::Missing(_))),
        21
    );
    assert_eq!(of(&|it| act(it) == Act::Update), 21);
    assert_eq!(of(&|_| true), 21);
}
