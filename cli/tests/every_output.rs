//! Every level with every output, on a history that satisfies it and on one that does not: it works, or the one table refuses it. And one
//! JSON document for all of them, with the same fields whatever was asked and answered.

mod run;

use std::collections::BTreeSet;

use kingsnake_history::lattice;
use kingsnake_history::level::Level;
use run::{Scratch, expect, kingsnake, run};
use serde_json::Value;

/// A history of transactions with these operations, one after the other, each with its times, timestamps and level.
fn history(txns: &[&str], more: &[&str]) -> String {
    let mut text = "{\"kingsnake\":1,\"initial\":0}\n".to_owned();
    for (at, ops) in txns.iter().enumerate() {
        let (begin, commit) = (20 * at, 20 * at + 10);
        let is_aborted = at == 0 && ops.contains("dirty");
        let status = if is_aborted { "aborted" } else { "committed" };
        text += &format!(
            "{{\"id\":{at},\"session\":{at},\"status\":\"{status}\",\"begin\":{begin},\"commit\":{commit},\
             \"start_ts\":{begin},\"commit_ts\":{commit},\"isolation\":\"serializable\",\"ops\":[{ops}]}}\n"
        );
    }
    text + &more.concat()
}

/// The version order of a key.
fn versions(key: &str, values: &str) -> String {
    format!("{{\"version_order\":{{\"key\":\"{key}\",\"values\":[{values}]}}}}\n")
}

/// A question: its name in the table of docs/levels.md, its options, a history that satisfies it and one that does not.
struct Question {
    name: String,
    options: Vec<String>,
    satisfied: String,
    violated: String,
}

/// The names of all levels, as the program lists them. Those of papers are these levels with switches.
fn levels() -> Vec<String> {
    let said = run(&["check", "x", "--level", "no-such-level"]);
    let names = said.stderr.split("possible values: ").nth(1);
    let names = names.and_then(|it| it.split(']').next());
    let names = names
        .unwrap_or_else(|| panic!("{}", said.stderr))
        .split(", ");
    let names = names.map(|it| it.trim().to_owned());
    names
        .filter(|it| it != "auto" && !it.contains('/'))
        .collect()
}

fn questions(scratch: &Scratch) -> Vec<Question> {
    let first = "[\"r\",\"x\",0],[\"w\",\"x\",1]";
    let order = versions("x", "1,2");
    let fresh = history(&[first, "[\"r\",\"x\",1],[\"w\",\"x\",2]"], &[&order]);
    let lost = history(&[first, "[\"r\",\"x\",0],[\"w\",\"x\",2]"], &[&order]);
    let seen = history(&["[\"w\",\"x\",1]", "[\"r\",\"x\",1]"], &[]);
    let missed = history(&["[\"w\",\"x\",1]", "[\"r\",\"x\",0]"], &[]);
    let dirty = history(&["[\"w\",\"dirty\",1]", "[\"r\",\"dirty\",1]"], &[]);
    let both = |value: u32| format!("[\"w\",\"x\",{value}],[\"w\",\"y\",{value}]");
    let crossed = [versions("x", "1,2"), versions("y", "2,1")].concat();
    let crossed = history(&[&both(1), &both(2)], &[&crossed]);
    let named = [
        ("fresh", fresh),
        ("lost", lost),
        ("seen", seen),
        ("missed", missed),
        ("dirty", dirty),
        ("crossed", crossed),
        (
            "even",
            history(&[&both(4), "[\"r\",\"x\",4],[\"r\",\"y\",4]"], &[]),
        ),
        (
            "odd",
            history(&[&both(4), "[\"r\",\"x\",4],[\"r\",\"y\",0]"], &[]),
        ),
    ];
    let [fresh, lost, seen, missed, dirty, crossed, even, odd] =
        named.map(|(name, text)| scratch.put(&format!("{name}.jsonl"), &text));
    let all = levels();
    assert!(all.len() >= 21, "{all:?}");
    let question = |name: &str, options: &[&str], satisfied: &String, violated: &String| Question {
        name: name.to_owned(),
        options: options.iter().map(|&it| it.to_owned()).collect(),
        satisfied: satisfied.clone(),
        violated: violated.clone(),
    };
    let bank = ["--workload", "bank", "--total", "8"];
    let mut questions = vec![
        question("--along", &["--along", "commit-ts"], &fresh, &lost),
        question(ALL_LEVELS, &["--level", "auto"], &seen, &lost),
        question(WORKLOAD, &bank, &even, &odd),
    ];
    for level in all {
        let (satisfied, violated) = match level.as_str() {
            "linearizable" => (&seen, &missed),
            "rc" | "rc-so" | "ra" | "cc" | "pc" | "pl-2" => (&fresh, &dirty),
            "pl-1" => (&fresh, &crossed),
            _ => (&fresh, &lost),
        };
        questions.push(question(&level, &["--level", &level], satisfied, violated));
    }
    questions
}

/// Questions that are about no one promise, so that no counterexample shows their answer.
const ALL_LEVELS: &str = "auto";
const WORKLOAD: &str = "a workload with a rule";

impl Question {
    fn has_evidence(&self) -> bool {
        self.name != ALL_LEVELS && self.name != WORKLOAD
    }
}

/// The arguments of a command on a history.
fn line<'a>(command: &'a str, path: &'a str, question: &'a Question) -> Vec<&'a str> {
    let options = question.options.iter().map(String::as_str);
    [command, path].into_iter().chain(options).collect()
}

/// Why docs/levels.md says that an output is refused; its table is held to the program's by a unit test.
fn refusals() -> Vec<(String, String, String)> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/levels.md");
    let text = std::fs::read_to_string(path).expect("docs/levels.md is there");
    let rows = text.lines().skip_while(|line| *line != "## Outputs");
    let rows = rows.filter_map(|line| line.strip_prefix("| `"));
    let mut refusals = Vec::new();
    for row in rows {
        let columns: Vec<&str> = row.trim_end_matches(" |").split(" | ").collect();
        let [output, names, why] = columns[..] else {
            panic!("{row}");
        };
        for name in names.split(", ") {
            let name = name.trim_matches('`').to_owned();
            refusals.push((output.trim_matches('`').to_owned(), name, why.to_owned()));
        }
    }
    refusals
}

#[test]
fn every_output_works_at_every_level_or_is_refused_by_the_table() {
    let scratch = Scratch::new();
    let refusals = refusals();
    assert!(refusals.len() > 10, "{refusals:?}");
    let outputs = [
        ("--certificate", "out.order"),
        ("--proof", "out.lrat"),
        ("--json", "out.json"),
        ("--edn", "out.edn"),
        ("--directory", "out.anomalies"),
        ("--dot", "out.dot"),
        ("--svg", "out.svg"),
        ("--report", "out.html"),
        ("--junit", "out.xml"),
        ("--code-quality", "out.quality"),
        ("--sarif", "out.sarif"),
        ("--annotations=github", ""),
        ("--all", ""),
        ("explain", ""),
    ];
    for question in questions(&scratch) {
        let name = question.name.as_str();
        for (status, path) in [(0, &question.satisfied), (1, &question.violated)] {
            for (output, file) in outputs {
                let file = match file {
                    "" => String::new(),
                    file => scratch.path(file),
                };
                let command = if output == "explain" { output } else { "check" };
                let option = match output {
                    "--json" | "--edn" => vec![format!("{output}={file}")],
                    "--all" | "--annotations=github" => vec![output.to_owned()],
                    "explain" => Vec::new(),
                    _ => vec![output.to_owned(), file.clone()],
                };
                let mut args = line(command, path, &question);
                args.extend(option.iter().map(String::as_str));
                let refused = refusals
                    .iter()
                    .find(|(it, level, _)| it == output && level == name);
                if let Some((.., why)) = refused {
                    let said = expect(2, &args);
                    assert!(
                        said.stderr.contains(why.as_str()),
                        "{args:?}\n{}",
                        said.stderr
                    );
                    continue;
                }
                expect(status, &args);
                // Certificates show that a level holds; pictures and proofs that it does not.
                let is_written = match output {
                    "--certificate" => status == 0,
                    "--dot" | "--svg" => status == 1 && question.has_evidence(),
                    _ => !file.is_empty() && output != "--proof",
                };
                let is_there = std::path::Path::new(&file).exists();
                assert!(is_there || !is_written, "{args:?} wrote nothing");
                let is_evidence = output == "--json" && status == 1 || output == "--certificate";
                if is_evidence && is_written && question.has_evidence() {
                    let mut verify = vec!["verify", path.as_str(), file.as_str()];
                    verify.extend((name == "as-recorded").then_some("--level=as-recorded"));
                    let said = expect(0, &verify);
                    assert!(said.stdout.contains(" holds: "), "{}", said.stdout);
                }
                for leftover in [file.clone(), format!("{file}.cnf")] {
                    if file.is_empty() {
                        break;
                    }
                    let _ = std::fs::remove_file(&leftover);
                    let _ = std::fs::remove_dir_all(&leftover);
                }
            }
        }
    }
}

/// The names of an object's fields.
fn fields(document: &Value) -> BTreeSet<String> {
    let object = document.as_object().expect("an object");
    object.keys().cloned().collect()
}

#[test]
fn the_document_has_the_same_fields_at_every_level_whatever_the_answer() {
    let scratch = Scratch::new();
    let mut first: Option<Value> = None;
    for question in questions(&scratch) {
        for (verdict, status, path, more) in [
            ("satisfied", 0, &question.satisfied, &[][..]),
            ("violated", 1, &question.violated, &[][..]),
            ("unknown", 3, &question.satisfied, &["--timeout", "0"][..]),
        ] {
            let mut args = line("check", path, &question);
            args.push("--json");
            args.extend(more);
            let said = expect(status, &args);
            let document: Value = serde_json::from_str(&said.stdout).expect("JSON");
            assert_eq!(document["schema"], 2);
            assert_eq!(document["verdict"], verdict, "{args:?}");
            assert_eq!(document["exit_status"], status);
            for (name, is_given) in [
                ("reason", verdict == "unknown"),
                ("history", verdict != "unknown"),
                ("anomaly", verdict == "violated" && question.has_evidence()),
                ("story", verdict == "violated" && question.has_evidence()),
                (
                    "counterexample",
                    verdict == "violated" && question.has_evidence(),
                ),
                ("levels", question.name == ALL_LEVELS),
                ("strongest", question.name == ALL_LEVELS),
                ("workload", question.name == WORKLOAD),
            ] {
                assert_eq!(!document[name].is_null(), is_given, "{name}: {args:?}");
            }
            let first = first.get_or_insert_with(|| document.clone());
            assert_eq!(fields(&document), fields(first), "{args:?}");
            for part in ["level", "stats", "plan", "history"] {
                if !document[part].is_null() {
                    assert_eq!(fields(&document[part]), fields(&first[part]), "{args:?}");
                }
            }
        }
    }
}

#[test]
fn every_name_of_a_level_is_taken_wherever_levels_are_named() {
    let scratch = Scratch::new();
    for question in questions(&scratch) {
        let Ok(level) = question.name.parse::<Level>() else {
            continue;
        };
        for name in level.names() {
            for name in [name.to_uppercase(), name.replace('-', " ")] {
                let args = ["check", &question.satisfied, "--quiet", "--level", &name];
                expect(0, &args);
                let args = ["check", &question.satisfied, "--quiet", "--expect", &name];
                let status = run(&args).status;
                assert_eq!(status == 2, lattice::model(&name).is_none(), "{name}");
            }
        }
    }
}

#[test]
fn an_answer_that_was_changed_is_not_verified() {
    let scratch = Scratch::new();
    for question in questions(&scratch) {
        if !question.has_evidence() {
            continue;
        }
        let file = scratch.path("order");
        let mut args = line("check", &question.satisfied, &question);
        args.extend(["--certificate", &file]);
        expect(0, &args);
        let text = std::fs::read_to_string(&file).expect("it was written");
        let mut lines: Vec<&str> = text.lines().collect();
        lines[1..].reverse();
        let reversed = scratch.put("reversed", lines.join("\n"));
        let said = kingsnake(&["verify", &question.satisfied, &reversed]).output();
        let said = said.expect("the binary runs");
        assert_eq!(said.status.code(), Some(1), "{:?}", question.options);
    }
}
