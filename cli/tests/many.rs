//! `check` of several histories: a line each, the worst exit status, JSON, `JUnit`, annotations, rows that resume, cells.

mod run;

use std::fs;

use run::{Scratch, corpus, expect};
use serde_json::Value;

const SKEW: &str = "strong-session-si/write-skew.jsonl";

fn good(scratch: &Scratch, name: &str) -> String {
    let history = "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",0],[\"w\",\"x\",1]]}\n";
    scratch.put(name, history)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn several_histories_have_a_line_each_and_the_worst_exit_status() {
    let scratch = Scratch::new();
    let (good, skew) = (good(&scratch, "good.jsonl"), corpus(SKEW));
    let said = expect(0, &["check", &good, &skew, "--level", "si"]);
    let lines: Vec<&str> = said.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("satisfied") && lines[0].contains("good.jsonl"));
    assert_eq!(
        lines[2],
        "2 histories: 2 satisfied, 0 violated, 0 unknown, 0 failed"
    );

    let said = expect(1, &["check", &good, &skew, "--jobs", "2"]);
    let line = said.stdout.lines().nth(1).expect("a second line");
    assert!(
        line.starts_with("violated") && line.ends_with("write skew (G2-item)"),
        "{line}"
    );

    let broken = scratch.put("broken.jsonl", "nonsense");
    let said = expect(2, &["check", &good, &broken]);
    assert!(
        said.stdout.contains("error ") && said.stdout.contains("1 failed"),
        "{}",
        said.stdout
    );
    // A violation outweighs an error, an error outweighs a time limit.
    expect(1, &["check", &broken, &skew]);
    let said = expect(3, &["check", &good, &good, &skew, "--timeout", "0"]);
    assert!(said.stdout.contains("2 unknown"), "{}", said.stdout);
}

#[test]
fn a_directory_of_histories_stands_for_each_of_them() {
    let scratch = Scratch::new();
    fs::create_dir_all(scratch.path("all/inner")).unwrap();
    good(&scratch, "all/a.jsonl");
    good(&scratch, "all/inner/b.jsonl");
    scratch.put("all/README.md", "# Not a history\n");
    let said = expect(0, &["check", &scratch.path("all")]);
    assert!(
        said.stdout.contains("2 histories: 2 satisfied"),
        "{}",
        said.stdout
    );
    assert!(said.stderr.contains("1 file skipped"), "{}", said.stderr);
    // A directory of session logs is one history.
    let numbers = scratch.put(
        "numbers.jsonl",
        "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",3,1]]}\n",
    );
    expect(
        0,
        &["convert", &numbers, &scratch.path("logs"), "--to", "cobra"],
    );
    let said = expect(0, &["check", &scratch.path("logs")]);
    assert!(said.stdout.contains("1 transaction"), "{}", said.stdout);
}

#[test]
fn json_of_several_is_an_array_and_errors_are_documents_too() {
    let scratch = Scratch::new();
    let (good, broken) = (
        good(&scratch, "good.jsonl"),
        scratch.put("broken.jsonl", "nonsense"),
    );
    let said = expect(1, &["check", &good, &corpus(SKEW), &broken, "--json"]);
    let all = json(&said.stdout);
    let verdicts: Vec<&str> = all
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["satisfied", "violated", "error"]);
    assert_eq!(said.stdout.lines().count(), 3, "a line each");

    let said = expect(2, &["check", &broken, "--json"]);
    let document = json(&said.stdout);
    assert_eq!(document["exit_status"], 2);
    assert_eq!(document["error"]["line"], 1);
    assert!(said.stderr.contains("broken.jsonl"));
    let said = expect(2, &["check", &good, "--level", "nonsense", "--json"]);
    assert!(
        json(&said.stdout)["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nonsense")
    );
    let said = expect(2, &["stats", &broken, "--json"]);
    assert_eq!(json(&said.stdout)["verdict"], "error");
}

#[test]
fn junit_has_a_test_case_a_history() {
    let scratch = Scratch::new();
    let (good, junit) = (good(&scratch, "good.jsonl"), scratch.path("junit.xml"));
    expect(1, &["check", &good, &corpus(SKEW), "--junit", &junit]);
    let text = scratch.get("junit.xml");
    let document = roxmltree::Document::parse(&text).expect("well-formed XML");
    let suite = document.root_element().first_element_child().unwrap();
    assert_eq!(suite.attribute("tests"), Some("2"));
    assert_eq!(suite.attribute("failures"), Some("1"));
    let failure = document
        .descendants()
        .find(|it| it.has_tag_name("failure"))
        .unwrap();
    assert_eq!(failure.attribute("type"), Some("write skew (G2-item)"));
    assert!(failure.text().unwrap().contains("a contradiction"));
    // One history is a suite of one.
    expect(0, &["check", &good, "--junit", &junit]);
    assert!(
        scratch
            .get("junit.xml")
            .contains("tests=\"1\" failures=\"0\"")
    );
}

#[test]
fn annotations_point_at_the_history() {
    let said = expect(1, &["check", &corpus(SKEW), "--annotations", "github"]);
    let line = said.stdout.lines().next().unwrap();
    assert!(
        line.starts_with("::error file=") && line.contains("title=violated%3A write skew"),
        "{line}"
    );
}

#[test]
fn rows_resume_and_a_history_that_changed_is_checked_again() {
    let scratch = Scratch::new();
    let (good, out) = (good(&scratch, "good.jsonl"), scratch.path("out"));
    let skew = corpus(SKEW);
    let all = ["check", good.as_str(), &skew, "--out", &out];
    let first = expect(1, &all);
    assert_eq!(first.stdout.lines().count(), 3);
    let again = expect(1, &all);
    assert_eq!(
        again.stdout.lines().count(),
        1,
        "all rows are there: {}",
        again.stdout
    );
    assert_eq!(scratch.get("out/rows.jsonl").lines().count(), 2);
    assert!(scratch.get("out/report.html").contains("write-skew"));
    let rows = scratch.get("out/rows.jsonl");
    let row = rows
        .lines()
        .map(json)
        .find(|it| it["verdict"] == "violated")
        .unwrap();
    assert!(
        scratch
            .get(&format!("out/{}", row["page"].as_str().unwrap()))
            .contains("<svg")
    );
    assert!(row["host"].is_string() && row["device"] == "cpu");

    scratch.put(
        "good.jsonl",
        "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",7]]}\n",
    );
    let changed = expect(1, &all);
    assert!(changed.stdout.contains("thin-air"), "{}", changed.stdout);
    assert_eq!(scratch.get("out/rows.jsonl").lines().count(), 3);
    // Rows of another level are not mixed in.
    let said = expect(2, &["check", &good, &skew, "--out", &out, "--level", "si"]);
    assert!(
        said.stderr.contains("another run") && said.stderr.contains("--restart"),
        "{}",
        said.stderr
    );
    expect(
        1,
        &[
            "check",
            &good,
            &skew,
            "--out",
            &out,
            "--level",
            "si",
            "--restart",
        ],
    );
}

#[test]
fn cells_of_several_histories_run_one_by_one_and_are_merged() {
    let scratch = Scratch::new();
    let (good, out) = (good(&scratch, "good.jsonl"), scratch.path("out"));
    let skew = corpus(SKEW);
    let with = |more: &[&str]| -> Vec<String> {
        let all = ["check", good.as_str(), &skew, "--out", &out];
        all.iter().chain(more).map(|it| (*it).to_owned()).collect()
    };
    let run = |status: i32, more: &[&str]| {
        let words = with(more);
        expect(
            status,
            &words.iter().map(String::as_str).collect::<Vec<_>>(),
        )
    };
    let cells = json(&run(0, &["--list", "--json"]).stdout);
    let ids: Vec<&str> = cells
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|it| it["id"].as_str())
        .collect();
    assert_eq!(ids.len(), 2);
    for field in ["cell", "history", "row"] {
        assert!(cells[0][field].is_string(), "{field}");
    }
    assert_eq!(cells[0]["argv"][1], "check");
    assert_eq!(cells[0]["done"], false);
    let said = run(2, &["--cell", ids[0]]);
    assert!(said.stderr.contains("--prepare"), "{}", said.stderr);
    run(0, &["--prepare"]);
    // Rows were written, whatever the verdicts; a second time there is nothing to do.
    run(0, &["--cell", &ids.join(",")]);
    run(0, &["--cell", &ids.join(",")]);
    assert!(run(2, &["--cell", "0123"]).stderr.contains("no cell"));
    assert_eq!(fs::read_dir(scratch.path("out/rows.d")).unwrap().count(), 2);
    let cells = json(&run(0, &["--list", "--json"]).stdout);
    assert_eq!(cells[1]["done"], true);
    let merged = run(1, &[]);
    assert_eq!(
        merged.stdout,
        "2 histories: 1 satisfied, 1 violated, 0 unknown, 0 failed\n"
    );
    let said = run(2, &["--on", "slurm"]);
    assert!(said.stderr.contains("--memory-limit"), "{}", said.stderr);
}

#[test]
fn what_writes_one_file_is_refused_for_several() {
    let scratch = Scratch::new();
    let good = good(&scratch, "good.jsonl");
    let page = scratch.path("page.html");
    let said = expect(2, &["check", &good, &corpus(SKEW), "--report", &page]);
    assert!(said.stderr.contains("--out DIR"), "{}", said.stderr);
    let said = expect(2, &["check", &good, "-"]);
    assert!(said.stderr.contains("stdin"), "{}", said.stderr);
    let said = expect(2, &["check", &good, "--list", "--json"]);
    assert!(said.stderr.contains("--out DIR"), "{}", said.stderr);
}

#[test]
fn one_history_may_have_a_page_and_the_documents_of_services() {
    let scratch = Scratch::new();
    let names = ["page.html", "j.xml", "quality.json", "results.sarif"].map(|it| scratch.path(it));
    let [page, junit, quality, sarif] = &names;
    let skew = corpus(SKEW);
    let mut line = vec!["check", skew.as_str(), "--report", page, "--junit", junit];
    line.extend([
        "--code-quality",
        quality,
        "--sarif",
        sarif,
        "--annotations",
        "github",
    ]);
    let said = expect(1, &line);
    assert!(
        names.iter().all(|it| fs::exists(it).unwrap()),
        "{}",
        said.stderr
    );
    // The last transaction of the cycle is on the third line.
    assert!(said.stdout.contains(",line=3,"), "{}", said.stdout);
    let quality = json(&scratch.get("quality.json"));
    assert_eq!(quality[0]["location"]["lines"]["begin"], 3);
    let sarif = json(&scratch.get("results.sarif"));
    assert_eq!(sarif["version"], "2.1.0");
}
