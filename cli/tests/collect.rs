//! `collect` and `hunt` on `SQLite`, as a user types them; kill -9 of the collector, and errors.

#![cfg(unix)]

mod run;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use run::{Scratch, expect, kingsnake, run};

#[test]
fn sqlite_is_collected_and_checked_in_one_command() {
    let scratch = Scratch::new();
    let out = scratch.path("collection");
    let said = expect(
        0,
        &[
            "collect",
            "sqlite",
            "--txns",
            "1000",
            "--workload",
            "rmw",
            "--out",
            &out,
            "--check",
            "promise",
        ],
    );
    for words in [
        "SQLite 3.",
        "committed",
        "per second",
        "the versions of 20 keys in order",
        "checked in",
    ] {
        assert!(said.stdout.contains(words), "{words}: {}", said.stdout);
    }
    for name in [
        "history.jsonl",
        "collection.json",
        "summary.json",
        "collection.html",
        "report.html",
    ] {
        assert!(std::path::Path::new(&out).join(name).exists(), "{name}");
    }
    assert!(!std::path::Path::new(&out).join("database.sqlite").exists());
    expect(
        0,
        &[
            "check",
            &out.replace("collection", "collection/history.jsonl"),
            "--level",
            "strict-ser",
        ],
    );
    let again = expect(2, &["collect", "sqlite", "--out", &out]);
    assert!(
        again.stderr.contains("holds another collection"),
        "{}",
        again.stderr
    );
}

#[test]
fn a_collection_is_checked_at_every_sort_of_level() {
    let scratch = Scratch::new();
    for (workload, level, words) in [
        ("register", "linearizable", "linearizable"),
        ("mini", "ra", "read atomic"),
        ("mini", "cc", "causal consistency"),
        ("mini", "pc", "prefix consistency"),
        ("rmw", "auto", "strict-ser"),
        ("append", "ser", "serializable"),
    ] {
        let out = scratch.path(&format!("{workload}-{level}"));
        let said = expect(
            0,
            &[
                "collect",
                "sqlite",
                "--txns",
                "400",
                "--workload",
                workload,
                "--out",
                &out,
                "--check",
                level,
            ],
        );
        for words in [words, "checked in"] {
            assert!(said.stdout.contains(words), "{level}: {}", said.stdout);
        }
        let summary = std::fs::read_to_string(std::path::Path::new(&out).join("summary.json"))
            .expect("there is a summary");
        let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
        assert!(summary.to_string().contains(level), "{level}: {summary}");
    }
}

/// Two sessions on two nodes overwrite the same version while a node is paused: a lost update.
const PAUSED: &str = r#"{"kingsnake":1,"initial":0,"about":"Two nodes"}
{"event":{"time":1200,"what":"SIGSTOP of node 2"}}
{"event":{"time":99000,"what":"SIGCONT of node 2"}}
{"id":1,"session":0,"begin":1000,"commit":2000,"isolation":"serializable","node":"10.0.0.1:5432","xid":731,"ops":[["r","x",0],["w","x",1]]}
{"id":2,"session":1,"begin":1100,"commit":3000,"isolation":"serializable","node":"10.0.0.2:5432","name":"b-17","ops":[["r","x",0],["w","x",2]]}
"#;

#[test]
fn a_story_tells_nodes_names_and_faults_and_they_survive_a_round_trip() {
    let scratch = Scratch::new();
    let file = scratch.path("paused.jsonl");
    std::fs::write(&file, PAUSED).expect("the file can be written");
    let page = scratch.path("paused.html");
    let again = scratch.path("again.jsonl");
    expect(0, &["convert", &file, &again]);
    let rewritten = std::fs::read_to_string(&again).expect("it was written");
    for words in ["10.0.0.2:5432", "b-17", "731", "SIGSTOP of node 2"] {
        assert!(rewritten.contains(words), "{words}: {rewritten}");
    }
    let mut stories = Vec::new();
    for file in [&file, &again] {
        let said = expect(1, &["check", file, "--level", "ser", "--report", &page]);
        for words in [
            "on 10.0.0.1:5432 at serializable, xid 731",
            "on 10.0.0.2:5432 at serializable, b-17 to the database",
            "SIGSTOP of node 2, 0.000000 s after the first of them began",
        ] {
            assert!(said.stdout.contains(words), "{words}: {}", said.stdout);
        }
        // It happened after the last of them ended.
        assert!(!said.stdout.contains("SIGCONT"), "{}", said.stdout);
        let html = std::fs::read_to_string(&page).expect("there is a page");
        assert!(html.contains("SIGSTOP of node 2"));
        let story = said.stdout.split("Counterexample").nth(1);
        stories.push(story.map(str::to_owned));
    }
    assert_eq!(stories[0], stories[1]);
}

#[test]
fn the_adapter_of_sqlite_passes_its_control() {
    let said = expect(0, &["collect", "sqlite", "--self-test"]);
    assert_eq!(said.stdout.matches(": found").count(), 3, "{}", said.stdout);
}

/// The last whole lines that all journals hold.
fn n_lines(directory: &str) -> usize {
    let entries = std::fs::read_dir(directory)
        .expect("the directory is there")
        .flatten();
    let journals = entries.filter(|it| it.path().extension().is_some_and(|it| it == "journal"));
    let lines = journals.map(|it| {
        let bytes = std::fs::read(it.path()).expect("a journal can be read");
        bytes.split(|byte| *byte == b'\n').count() - 1
    });
    lines.sum()
}

#[test]
fn a_kill_of_the_collector_loses_nothing_that_was_recorded() {
    let scratch = Scratch::new();
    let out = scratch.path("killed");
    let mut child = kingsnake(&["collect", "sqlite", "--txns", "100000000", "--out", &out])
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let since = Instant::now();
    while !std::path::Path::new(&out)
        .join("session-0.journal")
        .exists()
        || n_lines(&out) < 5_000
    {
        assert!(
            since.elapsed() < Duration::from_secs(60),
            "nothing is recorded"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    let before = n_lines(&out);
    let sent = Command::new("kill")
        .args(["-KILL", &child.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
    child.wait().expect("the child ends");
    assert!(n_lines(&out) >= before);
    let said = expect(0, &["collect", "--merge", &out]);
    assert!(said.stdout.contains("history.jsonl"), "{}", said.stdout);
    // Whatever committed is there: with a write missing, a transaction would have read it from thin air.
    expect(
        0,
        &["check", &format!("{out}/history.jsonl"), "--level", "ser"],
    );
    let none = expect(2, &["collect", "--merge", &scratch.path("nothing")]);
    assert!(
        none.stderr.contains("holds no collection"),
        "{}",
        none.stderr
    );
}

#[test]
fn mistakes_are_told_before_anything_runs() {
    let scratch = Scratch::new();
    let out = scratch.path("none");
    for (words, expected) in [
        (vec!["oracle"], "no adapter for \"oracle\""),
        (
            vec!["sqlite", "--isolation", "chaos"],
            "it has serializable, immediate",
        ),
        (vec!["sqlite", "--workload", "chaos"], "workloads are mini"),
        (
            vec!["sqlite", "--version-order", "log"],
            "it can by rank, trigger, none",
        ),
        (vec!["sqlite", "--set", "a=b"], "no setting \"a\""),
        (vec!["sqlite", "--check", "chaos"], "chaos"),
        (
            vec![
                "sqlite",
                "--isolation",
                "read-uncommitted",
                "--check",
                "promise",
            ],
            "nothing is promised",
        ),
        (vec!["sqlite", "--start"], "no server to start"),
        (
            vec!["sqlite", "--fault", "kill"],
            "only to those that --start made",
        ),
        (vec!["sqlite", "--fault", "cut"], "no connections to cut"),
        (
            vec!["sqlite", "--url", "/no/such/place/file"],
            "cannot open",
        ),
        (
            vec!["sqlite", "--workload", "mini", "--ops", "3"],
            "has its own number of operations",
        ),
    ] {
        let mut args = vec!["collect"];
        args.extend(&words);
        args.extend(["--out", &out]);
        let said = run(&args);
        assert_eq!(said.status, 2, "{words:?}");
        assert!(said.stderr.contains(expected), "{words:?}: {}", said.stderr);
    }
}

#[test]
fn a_hunt_goes_on_where_it_stopped() {
    let scratch = Scratch::new();
    let file = scratch.path("hunt.toml");
    let recipe = "name = 'A hunt'\ntxns = 300\nseeds = 2\n[[database]]\nname = 'sqlite'\nisolation = ['serializable', 'read-uncommitted']\nworkload = ['rmw']\n";
    std::fs::write(&file, recipe).expect("the file can be written");
    let out = scratch.path("hunt");
    let listed = expect(0, &["hunt", &file, "--out", &out, "--list"]);
    assert_eq!(listed.stdout.lines().count(), 4);
    expect(0, &["hunt", &file, "--out", &out]);
    let rows = std::path::Path::new(&out).join("rows.jsonl");
    let text = std::fs::read_to_string(&rows).expect("there are rows");
    assert_eq!(text.lines().count(), 4);
    // As if it had been killed within the last row.
    std::fs::write(&rows, &text[..text.len() - 20]).expect("the rows can be written");
    let again = expect(0, &["hunt", &file, "--out", &out]);
    assert!(again.stdout.starts_with("4/4"), "{}", again.stdout);
    let page = std::fs::read_to_string(std::path::Path::new(&out).join("report.html"))
        .expect("there is a page");
    assert!(page.contains("SQLite 3.") && page.contains("read-uncommitted"));
    hunt_cells_run_one_by_one(&file, &scratch.path("cells"));
    std::fs::write(&file, "name = 'x'\nnonsense = 1\n").expect("the file can be written");
    let said = expect(2, &["hunt", &file, "--out", &out]);
    assert!(said.stderr.contains("nonsense"), "{}", said.stderr);
}

/// The primitives of a study: list, prepare, cells, merge.
fn hunt_cells_run_one_by_one(file: &str, out: &str) {
    let listed = expect(0, &["hunt", file, "--out", out, "--list", "--json"]);
    let cells: serde_json::Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let cells = cells.as_array().expect("an array");
    assert_eq!(cells.len(), 4);
    assert_eq!(cells[0]["argv"][1], "collect");
    let ids: Vec<&str> = cells.iter().filter_map(|it| it["id"].as_str()).collect();
    let said = expect(2, &["hunt", file, "--out", out, "--cell", ids[0]]);
    assert!(said.stderr.contains("--prepare"), "{}", said.stderr);
    expect(0, &["hunt", file, "--out", out, "--prepare"]);
    expect(
        0,
        &["hunt", file, "--out", out, "--cell", &ids[..3].join(",")],
    );
    let merged = expect(0, &["hunt", file, "--out", out]);
    // The last one ran here.
    assert!(merged.stdout.starts_with("4/4"), "{}", merged.stdout);
    let rows = std::fs::read_to_string(std::path::Path::new(out).join("rows.jsonl"));
    assert_eq!(rows.expect("there are rows").lines().count(), 4);
}

/// The processes whose command line holds this text.
fn n_running(text: &str) -> usize {
    let entries = std::fs::read_dir("/proc").expect("there are processes");
    let lines = entries
        .flatten()
        .filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    lines
        .filter(|it| String::from_utf8_lossy(it).contains(text))
        .count()
}

#[test]
#[cfg(target_os = "linux")]
fn a_killed_hunt_leaves_no_collector_behind() {
    let scratch = Scratch::new();
    let file = scratch.path("long.toml");
    let recipe = "name = 'Long'\ntxns = 100000000\nseeds = 1\n[[database]]\nname = 'sqlite'\nisolation = ['serializable']\nworkload = ['rmw']\n";
    std::fs::write(&file, recipe).expect("the file can be written");
    let out = scratch.path("endless-hunt");
    let mut hunt = kingsnake(&["hunt", &file, "--out", &out])
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let until = |wanted: usize| {
        let since = Instant::now();
        while n_running(&out) != wanted {
            let is_late = since.elapsed() > Duration::from_secs(60);
            assert!(!is_late, "{} processes, not {wanted}", n_running(&out));
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    until(2);
    hunt.kill().expect("the hunt can be killed");
    hunt.wait().expect("the hunt ends");
    until(0);
}

#[test]
fn a_directory_of_another_command_is_refused() {
    let scratch = Scratch::new();
    let history = run::corpus("none/lost-update.jsonl");
    let (rows, collection) = (scratch.path("rows"), scratch.path("collection"));
    expect(1, &["check", &history, "--out", &rows]);
    let collect = [
        "collect",
        "sqlite",
        "--workload",
        "rmw",
        "--txns",
        "20",
        "--out",
    ];
    let said = expect(2, &[&collect[..], &[&rows]].concat());
    assert!(said.stderr.contains("batch.json"), "{}", said.stderr);
    expect(0, &[&collect[..], &[&collection]].concat());
    let said = expect(2, &["check", &history, "--out", &collection]);
    assert!(said.stderr.contains("a collection"), "{}", said.stderr);
    let said = expect(2, &[&collect[..], &[&collection]].concat());
    assert!(
        said.stderr.contains("another collection"),
        "{}",
        said.stderr
    );
}

#[cfg(not(feature = "surrealkv"))]
#[test]
fn what_was_not_compiled_in_says_how_to_build_it_and_is_listed() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let said = expect(2, &["collect", "surrealkv", "--out", &out]);
    let command = "cargo build --release -p kingsnake-cli --features surrealkv";
    assert!(said.stderr.contains(command), "{}", said.stderr);
    let hunt = "name = 'x'\nseeds = 2\n[[database]]\nname = 'surrealkv'\nworkload = ['rmw']\n";
    let hunt = scratch.put("hunt.toml", hunt);
    let said = expect(0, &["hunt", &hunt, "--out", &out, "--list"]);
    assert_eq!(said.stdout.lines().count(), 2, "{}", said.stdout);
}
