//! What the least or greatest value of a column depends on: the rows that have it, and none being beyond it.

use kingsnake_adya::check;
use kingsnake_datasets::{Format, read_bytes};
use kingsnake_history::adya::{PlLevel, Refutation};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::History;
use kingsnake_history::verdict::{Counterexample, Verdict};
use kingsnake_tell::RecordedWords;

/// Rows a, b, c have 10, 50, 50 or other numbers. T1 asks for a function of all of them and inserts x; T2 finds no x and writes.
fn history(rows: [i64; 3], asked: &str, write: &str) -> History {
    let [a, b, c] = rows;
    let text = format!(
        r#"{{"kingsnake":1,"tables":{{"t":["n"]}}}}
{{"initial":{{"key":"a","value":0,"row":{{"n":{a}}}}}}}
{{"initial":{{"key":"b","value":0,"row":{{"n":{b}}}}}}}
{{"initial":{{"key":"c","value":0,"row":{{"n":{c}}}}}}}
{{"id":1,"session":1,"start_ts":0,"commit_ts":10,"ops":[["aggregate",{{"table":"t","where":["between","n",0,100]}},{asked}],["w","x",1,{{"n":200}}]]}}
{{"id":2,"session":2,"start_ts":0,"commit_ts":11,"ops":[["select",{{"table":"t","where":["=","n",200]}},[]],{write}]}}
"#
    );
    let parsed = read_bytes(Format::Kingsnake, text.as_bytes(), "extremes");
    parsed.unwrap_or_else(|error| panic!("{error}")).history
}

fn refutation(history: &History) -> Option<Refutation> {
    let report = check(history, PlLevel::Pl3, &Budget::unlimited());
    match report.unwrap_or_else(|error| panic!("{error}")).0 {
        Verdict::Violated(Counterexample::Recorded(why)) => Some(why),
        _ => None,
    }
}

/// T2 comes before T1, so T1 must not have missed anything of it.
fn is_missed(rows: [i64; 3], asked: &str, write: &str) -> bool {
    let why = refutation(&history(rows, asked, write));
    assert!(
        why.is_none() || matches!(why, Some(Refutation::Cycle(..))),
        "{why:?}"
    );
    why.is_some()
}

#[test]
fn rows_behind_the_result_are_not_read() {
    let max = "\"max\",\"n\",50";
    let min = "\"min\",\"n\",10";
    assert!(!is_missed([10, 50, 20], max, r#"["w","a",2,{"n":11}]"#));
    assert!(!is_missed([10, 50, 20], max, r#"["w","d",2,{"n":49}]"#));
    assert!(!is_missed([10, 50, 20], min, r#"["w","b",2,{"n":60}]"#));
    // The sum depends on all of them.
    let sum = "\"sum\",\"n\",80";
    assert!(is_missed([10, 50, 20], sum, r#"["w","a",2,{"n":11}]"#));
}

#[test]
fn rows_beyond_the_result_and_those_that_have_it_matter() {
    let max = "\"max\",\"n\",50";
    let min = "\"min\",\"n\",10";
    assert!(is_missed([10, 50, 20], max, r#"["w","a",2,{"n":51}]"#));
    assert!(is_missed([10, 50, 20], max, r#"["w","d",2,{"n":100}]"#));
    assert!(is_missed([10, 50, 20], max, r#"["w","b",2,{"n":40}]"#));
    assert!(is_missed([10, 50, 20], min, r#"["w","c",2,{"n":9}]"#));
    assert!(is_missed([10, 50, 20], min, r#"["w","a",2,{"n":30}]"#));
    // Beyond the result, but outside of the condition; and one more row that has the result.
    assert!(!is_missed([10, 50, 20], max, r#"["w","d",2,{"n":101}]"#));
    assert!(!is_missed([10, 50, 20], max, r#"["w","d",2,{"n":50}]"#));
    // Which of two equal rows was looked at is not known.
    assert!(is_missed([10, 50, 50], max, r#"["w","c",2,{"n":40}]"#));
}

#[test]
fn no_row_at_all_is_a_result_that_any_row_changes() {
    let max = "\"max\",\"n\",null";
    assert!(is_missed([-1, -1, -1], max, r#"["w","d",2,{"n":0}]"#));
    assert!(!is_missed([-1, -1, -1], max, r#"["w","d",2,{"n":-5}]"#));
    assert!(!is_missed([-1, -1, -1], max, r#"["w","d",2,{"n":null}]"#));
}

#[test]
fn a_wrong_result_is_a_mismatch_that_says_what_the_rows_give() {
    for (asked, expected) in [
        ("\"max\",\"n\",20", "50"),
        ("\"max\",\"n\",51", "50"),
        ("\"max\",\"n\",null", "50"),
        ("\"min\",\"n\",11", "10"),
    ] {
        let history = history([10, 50, 20], asked, r#"["w","d",2,{"n":7}]"#);
        let Some(Refutation::Mismatches(found)) = refutation(&history) else {
            panic!("{asked} is wrong");
        };
        let words = RecordedWords::new(&history).mismatch(&found[0]);
        let told = format!("where the rows give {expected}.");
        assert!(words.ends_with(&told), "{words}");
    }
}

#[test]
fn a_step_says_what_was_returned() {
    let written = r#"["w","d",2,{"n":70}]"#;
    let history = history([10, 50, 20], "\"max\",\"n\",50", written);
    let Some(Refutation::Cycle(_, steps)) = refutation(&history) else {
        panic!("a row beyond the result was missed");
    };
    let teller = RecordedWords::new(&history);
    let words: Vec<String> = steps.iter().map(|step| teller.step(step)).collect();
    let wanted = "asked for max(n) of rows with n between 0 and 100, got 50 and looked at row d before T2 set its n to 70 (pred-rw).";
    assert!(words.iter().any(|it| it.ends_with(wanted)), "{words:?}");
}
