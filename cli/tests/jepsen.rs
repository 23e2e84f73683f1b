//! Jepsen's workloads and linearizability from the command line, against elle-cli's own list of files and exit codes.

#![allow(clippy::unwrap_used)] // A test may fail in this way.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn kingsnake(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kingsnake"));
    command.args(args).output().unwrap()
}

fn status(args: &[&str]) -> i32 {
    kingsnake(args).status.code().unwrap()
}

fn stdout(args: &[&str]) -> String {
    String::from_utf8(kingsnake(args).stdout).unwrap()
}

fn cli_data() -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/elle/cli");
    root.is_dir().then_some(root)
}

/// A file with this text, in a directory of its own.
fn file(text: &str) -> (tempfile::TempDir, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.edn");
    std::fs::write(&path, text).unwrap();
    (directory, path.to_str().unwrap().to_owned())
}

/// The arguments of a line of elle-cli's list, in our words.
fn translated(root: &Path, words: &str) -> Vec<String> {
    let mut args = vec!["check".to_owned(), "-q".to_owned()];
    let mut words = words.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "--model" => {
                args.push("--workload".to_owned());
                args.push(words.next().unwrap().to_owned());
            }
            "--consistency-models" => {
                assert_eq!(words.next(), Some("serializable"));
                args.extend(["--level", "ser"].map(str::to_owned));
            }
            "--group-size" => {
                args.push(word.to_owned());
                args.push(words.next().unwrap().to_owned());
            }
            // Elle's own limits and pictures.
            "--plot-format" | "--cycle-search-timeout" | "--plot-timeout" | "--max-plot-bytes" => {
                words.next();
            }
            path => {
                let path = path.strip_prefix("histories/").unwrap();
                args.push(root.join(path).to_str().unwrap().to_owned());
            }
        }
    }
    args
}

#[test]
fn elle_clis_list_of_files_has_its_exit_codes() {
    let Some(root) = cli_data() else {
        println!("SKIPPED: 31 lines of Elle, no shared data beside the checkout");
        return;
    };
    let list = std::fs::read_to_string(root.join("INDEX.txt")).unwrap();
    let (mut n_lines, mut absent) = (0, Vec::new());
    for line in list.lines() {
        let Some((code @ ("0" | "1"), words)) = line.split_once(' ') else {
            continue;
        };
        let args = translated(&root, words.trim_matches('"'));
        let path = args.last().unwrap();
        if !Path::new(path).exists() && !args.iter().any(|it| Path::new(it).is_file()) {
            absent.push(path.clone());
            continue;
        }
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        assert_eq!(status(&args), code.parse::<i32>().unwrap(), "{line}");
        n_lines += 1;
    }
    println!("{n_lines} lines agree; absent: {absent:?}");
    assert_eq!((n_lines, absent.len()), (30, 1));
}

#[test]
fn workloads_are_recognised_by_their_operations() {
    let Some(root) = cli_data() else {
        println!(
            "SKIPPED: 6 logs with a workload of their own, no shared data beside the checkout"
        );
        return;
    };
    for (path, workload, code) in [
        ("jepsen/bank.edn", "bank", 0),
        ("jepsen/bank-tidb.edn", "bank", 1),
        ("jepsen/set.edn", "set", 0),
        ("knossos/mutex/bad/etcd.edn", "linearizability", 1),
        ("custom/comments.edn", "comments", 1),
        ("jepsen/counter.edn", "counter", 0),
    ] {
        let path = root.join(path);
        let path = path.to_str().unwrap();
        let words = stdout(&["check", path]);
        assert!(words.lines().next().unwrap().contains(workload), "{words}");
        assert_eq!(status(&["check", path]), code, "{path}");
    }
}

#[test]
fn adds_that_nobody_read_are_recognised_where_only_one_workload_fits() {
    let log = |values: [&str; 2]| {
        let event = |value: &str| format!("{{:type :ok :f :add :value {value} :process 0}}\n");
        values.map(event).concat()
    };
    for (values, word, code) in [
        (["1", "1"], "satisfied: workload counter", 0),
        (["\"a\"", "\"b\""], "unknown: workload set", 3),
        (["1", "2"], "", 2),
        (["[1 1]", "[1 1]"], "", 2),
    ] {
        let (_kept, path) = file(&log(values));
        let args = ["check", &path];
        assert_eq!(status(&args), code, "{values:?}");
        assert!(stdout(&args).starts_with(word), "{values:?}");
    }
}

#[test]
fn every_violation_is_told_with_its_operations() {
    for (workload, text, words) in [
        (
            "unique-ids",
            "{:type :invoke :f :generate :process 0} {:type :ok :f :generate :value 7 :process 0} {:type :invoke :f :generate :process 1} {:type :ok :f :generate :value 7 :process 1}",
            "id 7 was given twice",
        ),
        (
            "queue",
            "{:type :invoke :f :enqueue :value 1 :process 0} {:type :ok :f :enqueue :value 1 :process 0} {:type :invoke :f :dequeue :process 0} {:type :ok :f :dequeue :value 1 :process 0} {:type :invoke :f :dequeue :process 0} {:type :ok :f :dequeue :value 1 :process 0}",
            "took 1 for the 2. time",
        ),
        (
            "total-queue",
            "{:type :invoke :f :enqueue :value 1 :process 0} {:type :ok :f :enqueue :value 1 :process 0}",
            "element 1 is lost",
        ),
        (
            "adya-g2",
            "{:type :invoke :f :insert :value [1 [2 nil]] :process 0} {:type :ok :f :insert :value [1 [2 nil]] :process 0} {:type :invoke :f :insert :value [1 [nil 3]] :process 1} {:type :ok :f :insert :value [1 [nil 3]] :process 1}",
            "both inserts of pair 1",
        ),
        (
            "counter",
            "{:type :invoke :f :add :value 2 :process 0} {:type :ok :f :add :value 2 :process 0} {:type :invoke :f :read :process 0} {:type :ok :f :read :value 5 :process 0}",
            "read 5, and the counter was between 2",
        ),
        (
            "sequential",
            "{:type :invoke :f :read :value [1 nil] :process 0} {:type :ok :f :read :value [1 [nil 5 nil]] :process 0}",
            "missed a subkey",
        ),
        (
            "causal-reverse",
            "{:type :invoke :f :write :value 1 :process 0} {:type :ok :f :write :value 1 :process 0} {:type :invoke :f :write :value 2 :process 0} {:type :ok :f :write :value 2 :process 0} {:type :invoke :f :read :process 1} {:type :ok :f :read :value [2] :process 1}",
            "missed 1, which had been acknowledged",
        ),
        (
            "set",
            "{:type :invoke :f :add :value 1 :process 0} {:type :ok :f :add :value 1 :process 0} {:type :invoke :f :read :process 0} {:type :ok :f :read :value [2] :process 0}",
            "element 1 is lost",
        ),
        (
            "set-full",
            "{:type :invoke :f :add :value 1 :process 0 :time 1} {:type :ok :f :add :value 1 :process 0 :time 2} {:type :invoke :f :read :process 0 :time 3} {:type :ok :f :read :value [1] :process 0 :time 4} {:type :invoke :f :read :process 0 :time 5} {:type :ok :f :read :value [] :process 0 :time 6}",
            "it was last seen by",
        ),
        (
            "long-fork",
            "{:type :ok :f :read :value [[:r 0 1] [:r 1 nil]]} {:type :ok :f :read :value [[:r 0 nil] [:r 1 1]]}",
            "a long fork",
        ),
        (
            "bank",
            "{:type :ok :f :read :value {0 5, 1 5}} {:type :ok :f :read :value {0 5, 1 4}}",
            "a total of 9, and the total is 10",
        ),
    ] {
        let (_kept, path) = file(text);
        let args = ["check", &path, "--workload", workload];
        assert_eq!(status(&args), 1, "{workload}");
        let told = stdout(&args);
        assert!(told.contains(words), "{workload}: {told}");
    }
}

#[test]
fn a_workloads_page_and_json_are_written() {
    let text = "{:type :ok :f :read :value {0 5, 1 5} :time 1} {:type :ok :f :read :value {0 5, 1 4} :time 2}";
    let (kept, path) = file(text);
    let page = kept.path().join("page.html");
    let json = stdout(&[
        "check",
        &path,
        "--workload",
        "bank",
        "--json",
        "--report",
        page.to_str().unwrap(),
    ]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["verdict"], "violated");
    assert_eq!(json["violations"].as_array().unwrap().len(), 1);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && page.contains("total of all accounts"));
}

const STALE: &str = r#"{"kingsnake":1}
{"id":1,"session":1,"begin":0,"commit":10,"ops":[["w","x",1]]}
{"id":2,"session":2,"begin":20,"commit":30,"ops":[["cas","x",1,2]]}
{"id":3,"session":3,"begin":40,"commit":50,"ops":[["r","x",1]]}
"#;

#[test]
fn a_stale_read_is_told_with_times_and_drawn() {
    let (kept, path) = file(STALE);
    let picture = kept.path().join("picture.svg");
    let args = [
        "check",
        &path,
        "--level",
        "linearizable",
        "--svg",
        picture.to_str().unwrap(),
    ];
    assert_eq!(status(&args), 1);
    let told = stdout(&args);
    assert!(told.contains("breaks linearizability"), "{told}");
    assert!(told.contains("(from 20 ns to 30 ns)"), "{told}");
    let picture = std::fs::read_to_string(picture).unwrap();
    roxmltree::Document::parse(&picture).unwrap();
}

#[test]
fn a_log_of_compare_and_sets_is_recognised_as_registers() {
    let text = "{:type :ok, :f :write, :value 1, :process 0, :time 1}
{:type :invoke, :f :cas, :value [1 2], :process 1, :time 2}
{:type :ok, :f :cas, :value [1 2], :process 1, :time 3}
{:type :invoke, :f :read, :value nil, :process 2, :time 4}
{:type :ok, :f :read, :value 1, :process 2, :time 5}
";
    let (_kept, path) = file(text);
    let told = stdout(&["check", &path]);
    assert!(told.contains("violated: linearizability"), "{told}");
    let told = stdout(&["check", &path, "--level", "ser"]);
    assert!(told.contains("satisfied: serializability"), "{told}");
}

#[test]
fn a_certificate_of_linearizability_is_replayed() {
    let text = STALE.replace("[\"r\",\"x\",1]", "[\"r\",\"x\",2]");
    let (kept, path) = file(&text);
    let certificate = kept.path().join("certificate");
    let certificate = certificate.to_str().unwrap();
    let args = [
        "check",
        &path,
        "--level",
        "linearizable",
        "--certificate",
        certificate,
    ];
    assert_eq!(status(&args), 0);
    assert_eq!(status(&["verify", &path, certificate]), 0);
    let written = std::fs::read_to_string(certificate).unwrap();
    assert!(written.contains("[20,2]"), "{written}");
    std::fs::write(certificate, written.replace("[20,2]", "[31,2]")).unwrap();
    assert_eq!(status(&["verify", &path, certificate]), 1);
}

#[test]
fn transactions_over_two_keys_are_refused_by_name() {
    let text = "{\"kingsnake\":1}\n{\"id\":\"t9\",\"session\":1,\"begin\":0,\"commit\":1,\"ops\":[[\"r\",\"x\",null],[\"w\",\"y\",1]]}\n";
    let (_kept, path) = file(text);
    let output = kingsnake(&["check", &path, "--level", "linearizable"]);
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(
        words.contains("t9") && words.contains("keys x and y"),
        "{words}"
    );
}

#[test]
fn a_search_that_takes_too_long_is_unknown() {
    // Concurrent writes of few values, and reads afterwards of which the second fits none of their orders: every set of
    // writes and values that could have come so far is tried, which are too many.
    let mut text = "{\"kingsnake\":1}\n".to_owned();
    let mut op = |id: usize, begin: usize, end: usize, op: &str| {
        let _ = writeln!(
            text,
            "{{\"id\":{id},\"session\":{id},\"begin\":{begin},\"commit\":{end},\"ops\":[{op}]}}"
        );
    };
    for at in 0..60 {
        let (old, new) = (at % 7, (at * 3 + 1) % 7);
        op(at, at, 1_000 + at, &format!("[\"cas\",\"x\",{old},{new}]"));
    }
    for at in 60..90 {
        op(at, at, 1_000 + at, &format!("[\"w\",\"x\",{}]", at % 7));
    }
    op(100, 2_000, 2_001, "[\"r\",\"x\",3]");
    op(101, 2_002, 2_003, "[\"r\",\"x\",4]");
    let (_kept, path) = file(&text);
    let args = ["check", &path, "--level", "linearizable", "--timeout", "1"];
    let said = kingsnake(&args);
    let words = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.status.code(), Some(3), "{words}");
    assert!(
        words.starts_with("unknown") && words.contains("1 s"),
        "{words}"
    );
    let args = [
        "check",
        &path,
        "--level",
        "linearizable",
        "--memory-limit",
        "30M",
    ];
    assert_eq!(status(&args), 3);
}

/// Transactions of jepsen.independent: each key has a history, and so keys, of its own.
#[test]
fn independent_transactions_have_keys_of_their_own() {
    let event = |kind: &str, time: usize, process: usize, group: usize, txn: &str| {
        format!(
            "{{:type :{kind}, :f :txn, :value [{group} {txn}], :time {time}, :process {process}, :index {time}}}\n"
        )
    };
    // The same lost update twice over: of one history it would be four transactions that overwrite one version.
    let lost = |group: usize, is_lost: bool| {
        let time = 10 * group;
        let second = if is_lost { "nil" } else { "1" };
        [
            event("invoke", time, 2 * group, group, "[[:r :x nil] [:w :x 1]]"),
            event("ok", time + 1, 2 * group, group, "[[:r :x nil] [:w :x 1]]"),
            event(
                "invoke",
                time + 2,
                2 * group + 1,
                group,
                "[[:r :x nil] [:w :x 2]]",
            ),
            event(
                "ok",
                time + 3,
                2 * group + 1,
                group,
                &format!("[[:r :x {second}] [:w :x 2]]"),
            ),
        ]
        .concat()
    };
    let (kept, path) = file("");
    let edn = kept.path().join("independent.edn");
    std::fs::write(&edn, lost(1, false) + &lost(2, false)).unwrap();
    let edn = edn.to_str().unwrap();
    drop(path);
    for level in ["ser", "si", "strict-ser"] {
        assert_eq!(status(&["check", edn, "--level", level]), 0, "{level}");
    }
    std::fs::write(edn, lost(1, false) + &lost(2, true)).unwrap();
    let said = kingsnake(&["check", edn, "--level", "ser"]);
    let words = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said.status.code(), Some(1), "{words}");
    assert!(words.contains("2/:x") && !words.contains("1/:x"), "{words}");
    assert!(words.contains("Lost update"), "{words}");
}

#[test]
fn a_counter_within_its_bounds_need_not_be_linearizable() {
    // Two additions that last, and two reads one after the other: 2 and then 1 lie within the bounds.
    let text = "{:type :invoke, :f :add, :value 1, :process 0, :time 0, :index 0}
{:type :invoke, :f :add, :value 1, :process 1, :time 1, :index 1}
{:type :invoke, :f :read, :value nil, :process 2, :time 2, :index 2}
{:type :ok, :f :read, :value 2, :process 2, :time 3, :index 3}
{:type :invoke, :f :read, :value nil, :process 2, :time 4, :index 4}
{:type :ok, :f :read, :value 1, :process 2, :time 5, :index 5}
{:type :ok, :f :add, :value 1, :process 0, :time 6, :index 6}
{:type :ok, :f :add, :value 1, :process 1, :time 7, :index 7}
";
    let kept = tempfile::tempdir().unwrap();
    let path = kept.path().join("counter.edn");
    std::fs::write(&path, text).unwrap();
    let path = path.to_str().unwrap();
    assert_eq!(status(&["check", path, "--workload", "counter"]), 0);
    let args = ["check", path, "--workload", "counter", "--linearizable"];
    assert_eq!(status(&args), 1);
    assert!(stdout(&args).contains("no order of the additions"));
    std::fs::write(
        path,
        text.replace(":ok, :f :read, :value 1", ":ok, :f :read, :value 2"),
    )
    .unwrap();
    assert_eq!(status(&args), 0);
}

#[test]
fn a_failed_compare_and_set_can_say_that_the_value_differed() {
    let text = "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"begin\":0,\"commit\":1,\"ops\":[[\"w\",\"x\",1]]}\n{\"id\":2,\"session\":2,\"begin\":2,\"commit\":3,\"ops\":[[\"cas\",\"x\",1,2,false]]}\n";
    let (_kept, path) = file(text);
    assert_eq!(status(&["check", &path, "--level", "linearizable"]), 0);
    let args = [
        "check",
        &path,
        "--level",
        "linearizable",
        "--failed-cas",
        "differs",
    ];
    assert_eq!(status(&args), 1);
}

#[test]
fn every_bug_of_the_store_is_seen_through_mini_transactions() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history.jsonl");
    let path = path.to_str().unwrap();
    let generate = |more: &[&str]| {
        let mut args = vec![
            "generate",
            "mini",
            "--shapes",
            "all",
            "--keys",
            "10",
            "--clients",
            "10",
            "--txns",
            "2000",
            "--aborted",
            "--out",
            path,
            "-q",
        ];
        args.extend(more);
        assert_eq!(status(&args), 0, "{more:?}");
        status(&["check", path, "--level", "strict-ser", "-q"])
    };
    assert_eq!(generate(&[]), 0);
    for bug in kingsnake_datasets::store::Bug::all() {
        let typed = format!("{}:0.5", bug.name());
        assert_eq!(generate(&["--bug", &typed]), 1, "{typed}");
        let never = format!("{}:0", bug.name());
        assert_eq!(generate(&["--bug", &never]), 0, "{never}");
    }
}

#[test]
fn generated_compare_and_sets_are_linearizable_unless_a_fault_breaks_them() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history");
    let path = path.to_str().unwrap();
    for format in ["kingsnake", "jepsen-edn", "jepsen-json"] {
        let generate = |more: &[&str]| {
            let mut args = vec![
                "generate",
                "lwt",
                "--txns",
                "1000",
                "--clients",
                "20",
                "--keys",
                "3",
                "--read-share",
                "0.2",
                "--fail-share",
                "0.1",
                "--unknown-share",
                "0.05",
                "--out",
                path,
                "--format",
                format,
                "-q",
            ];
            args.extend(more);
            assert_eq!(status(&args), 0, "{format} {more:?}");
            status(&["check", path, "--level", "linearizable", "-q"])
        };
        assert_eq!(generate(&[]), 0, "{format}");
        for fault in kingsnake_datasets::workloads::LwtFault::ALL {
            assert_eq!(
                generate(&["--lwt-fault", fault.name()]),
                1,
                "{format} {fault}"
            );
        }
    }
}

#[test]
fn zones_and_strict_serializability_agree_on_unique_values() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("history");
    let path = path.to_str().unwrap();
    for seed in ["1", "2", "3"] {
        for fault in [
            None,
            Some("late-effect"),
            Some("stale-read"),
            Some("lost-cas"),
        ] {
            let mut args = vec![
                "generate",
                "lwt",
                "--txns",
                "300",
                "--clients",
                "9",
                "--keys",
                "2",
                "--read-share",
                "0.3",
                "--unknown-share",
                "0.05",
                "--seed",
                seed,
                "--out",
                path,
                "-q",
            ];
            args.extend(fault.iter().flat_map(|fault| ["--lwt-fault", *fault]));
            assert_eq!(status(&args), 0);
            let [one, other] = ["linearizable", "strict-ser"]
                .map(|level| status(&["check", path, "--level", level, "-q"]));
            assert_eq!(one, other, "{fault:?}, seed {seed}");
        }
    }
}
