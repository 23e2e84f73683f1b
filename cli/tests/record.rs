//! The programs of docs/record.md and docs/jepsen.md, taken from the pages and run where their languages are installed.

#![allow(clippy::print_stderr)] // A test that skips says so.

mod run;

use std::fs;
use std::process::{Command, Stdio};

use run::{Scratch, expect};

fn block(page: &str, language: &str) -> String {
    let page = format!("{}/../docs/{page}", env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(page).expect("the page is there");
    let fence = format!("```{language}\n");
    let begin = page.find(&fence).expect("a block") + fence.len();
    let end = page[begin..].find("```").expect("the block ends");
    page[begin..begin + end].to_owned()
}

/// Runs a program of the page; whether its language was at hand.
fn records(language: &str, file: &str, command: &[&str]) -> bool {
    let program = command[0];
    if Command::new("sh")
        .args(["-c", &format!("command -v {program}")])
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|it| !it.success())
    {
        eprintln!("SKIPPED: recording in {language}, because {program} is not installed");
        return false;
    }
    let scratch = Scratch::new();
    scratch.put(file, block("record.md", language));
    let ended = Command::new(program)
        .args(&command[1..])
        .arg(file)
        .current_dir(scratch.path(""))
        .env("GOCACHE", std::env::temp_dir().join("kingsnake-go"))
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{language}: {said}");
    let history = scratch.path("history.jsonl");
    let said = expect(0, &["check", &history, "--level", "strict-ser"]);
    assert!(
        said.stdout.contains("200 transactions, 2 sessions"),
        "{language}: {}",
        said.stdout
    );
    true
}

#[test]
fn the_programs_that_record_run_and_what_they_record_is_checked() {
    let ran = [
        records("python", "record.py", &["python3"]),
        records("java", "Record.java", &["java"]),
        records("go", "record.go", &["go", "run"]),
        records("clojure", "record.clj", &["clojure"]),
    ];
    let n_skipped = ran.iter().filter(|it| !**it).count();
    eprintln!("{n_skipped} of 4 languages skipped");
}

/// What the checker of docs/jepsen.md needs of Jepsen.
const JEPSEN: [(&str, &str); 2] = [
    (
        "jepsen/checker.clj",
        "(ns jepsen.checker) (defprotocol Checker (check [checker test history opts]))",
    ),
    (
        "jepsen/store.clj",
        "(ns jepsen.store (:require [clojure.java.io :as io])) (defn path! [test & names] (apply io/file names))",
    ),
];

const LOST_UPDATE: &str = "(require 'kingsnake.checker 'jepsen.checker)
(def history [{:type :ok, :process 0, :f :txn, :index 0, :value [[:r :x nil] [:w :x 1]]}
              {:type :ok, :process 1, :f :txn, :index 1, :value [[:r :x nil] [:w :x 2]]}])
(doseq [model [\"serializable\" \"read-uncommitted\"]]
  (prn (:valid? (jepsen.checker/check (kingsnake.checker/kingsnake model) {} history {}))))
(println (try (jepsen.checker/check (kingsnake.checker/kingsnake \"nonsense\") {} history {})
              (catch Exception error (ex-message error))))
(shutdown-agents)
";

#[test]
fn the_checker_for_jepsen_returns_the_map_of_elle() {
    let scratch = Scratch::new();
    for directory in ["jepsen", "kingsnake"] {
        fs::create_dir(scratch.path(directory)).expect("a directory can be made");
    }
    for (file, text) in JEPSEN {
        scratch.put(file, text);
    }
    scratch.put("kingsnake/checker.clj", block("jepsen.md", "clojure"));
    scratch.put("test.clj", LOST_UPDATE);
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_kingsnake"));
    let place = program.parent().expect("it is in a directory").display();
    let path = std::env::var("PATH").unwrap_or_default();
    let ended = Command::new("clojure")
        .args(["-cp", ".:/usr/share/java/clojure.jar", "test.clj"])
        .current_dir(scratch.path(""))
        .env("PATH", format!("{place}:{path}"))
        .stdin(Stdio::null())
        .output();
    let has_jar = std::path::Path::new("/usr/share/java/clojure.jar").exists();
    let Some(ended) = ended.ok().filter(|_| has_jar) else {
        eprintln!("SKIPPED: the checker for Jepsen, because Debian's clojure is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&ended.stdout);
    let wrong = String::from_utf8_lossy(&ended.stderr);
    assert!(
        said.starts_with("false\ntrue\nkingsnake: --expect nonsense"),
        "{said}{wrong}"
    );
}
