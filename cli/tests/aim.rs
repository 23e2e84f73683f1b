//! `hunt --aim`: rounds that vary what came close, one row each, and none after the level was violated.

#![cfg(unix)]

mod run;

use run::{Scratch, expect};
use serde_json::Value;

#[test]
fn an_aimed_hunt_stops_looking_where_it_has_found_something_and_goes_on_where_it_stopped() {
    let scratch = Scratch::new();
    let file = scratch.put(
        "hunt.toml",
        "name = \"Aimed\"\nseeds = 12\ntxns = 400\nseconds = 10\n[[database]]\nname = \"sqlite\"\n\
         isolation = [\"read-uncommitted\"]\nworkload = [\"mini\", \"rmw\", \"skew\", \"read-twice\"]\n",
    );
    let out = scratch.path("out");
    let args = ["hunt", &file, "--aim", "ser", "--out", &out];
    let said = expect(0, &args).stdout;
    assert!(said.contains("| sqlite | read-uncommitted | "), "{said}");
    let text = scratch.get("out/rows.jsonl");
    let rows: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("a row"))
        .collect();
    assert_eq!(rows.len(), 12);
    for row in &rows {
        assert!(row["error"].is_null(), "{row}");
        let ran = row["skipped"].is_null();
        assert_eq!(ran, row["varied"].is_object(), "{row}");
        assert_eq!(ran, row["close"]["score"].is_number(), "{row}");
    }
    expect(0, &args);
    assert_eq!(scratch.get("out/rows.jsonl"), text);
    let wrong = ["hunt", &file, "--aim", "sre", "--out", &out];
    expect(2, &wrong);
    let many = expect(2, &[&args[..], &["--jobs", "2"]].concat());
    assert!(many.stderr.contains("leave out --jobs"), "{}", many.stderr);
}
