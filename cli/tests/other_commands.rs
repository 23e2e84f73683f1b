//! `stats`, `convert`, `generate`, `devices` and `completions`.

mod run;

use run::{Scratch, corpus, expect, generate};
use serde_json::Value;

#[test]
fn stats_counts_in_words_and_fields() {
    let scratch = Scratch::new();
    let history = generate(
        &scratch,
        "h.jsonl",
        &[
            "--txns",
            "100",
            "--clients",
            "4",
            "--keys",
            "10",
            "--ops",
            "6",
        ],
    );
    let said = expect(0, &["stats", &history]);
    for word in [
        "100 committed",
        "600",
        "writes per key",
        "read-modify-write",
        "constraints",
    ] {
        assert!(said.stdout.contains(word), "{word}: {}", said.stdout);
    }
    let said = expect(0, &["stats", "--json", &history]);
    let stats: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
    assert_eq!(stats["transactions"], 100);
    assert_eq!(stats["sessions"], 4);
    assert_eq!(stats["operations"], 600);
    assert_eq!(stats["keys"], 10);
    assert_eq!(stats["repeated_values"], 0);
    assert!(stats["pairs"].as_u64().is_some_and(|it| it > 0));
    let in_buckets: u64 = stats["writes_per_key"]["histogram"]
        .as_array()
        .expect("a histogram")
        .iter()
        .filter_map(|bucket| bucket["keys"].as_u64())
        .sum();
    assert_eq!(in_buckets, 10);
}

#[test]
fn stats_counts_the_graph_of_any_level() {
    let history = corpus("strong-session-si/write-skew-on-call.jsonl");
    let graph = |level: &str| -> Value {
        let said = expect(0, &["stats", "--json", &history, "--level", level]);
        let stats: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
        stats["graph"].clone()
    };
    let nodes = |level: &str| graph(level)["nodes"].as_u64().expect("a number");
    // A begin and a commit of each transaction.
    assert_eq!(nodes("si"), 2 * nodes("ser"));
    for level in ["ser", "si", "pc", "psi", "cc", "ra", "rc-so", "rc"] {
        let found = graph(level);
        let edges = found["edges"].as_object().expect("edges by kind");
        assert!(!edges.is_empty() || level == "rc", "{level}: {found}");
    }
    assert!(graph("si")["edges"]["begin to commit"].as_u64() > Some(0));
    let refused = |level: &str| expect(2, &["stats", &history, "--level", level]).stderr;
    assert!(refused("linearizable").contains("no graph"));
    assert!(refused("strict-ser").contains("begin and commit times"));
}

#[test]
fn stats_says_when_reads_cannot_be_explained() {
    let said = expect(0, &["stats", &corpus("none/thin-air-read.jsonl")]);
    assert!(said.stdout.contains("anomal"), "{}", said.stdout);
}

#[test]
fn a_converted_history_has_the_same_verdicts() {
    let scratch = Scratch::new();
    let plain = ["--txns", "200", "--keys", "20", "--no-times"];
    let valid = generate(&scratch, "v.jsonl", &plain);
    let broken = generate(
        &scratch,
        "b.jsonl",
        &[&plain[..], &["--fault", "lost-update"]].concat(),
    );
    for format in ["kingsnake", "text", "dbcop", "cobra"] {
        for (status, history) in [(0, &valid), (1, &broken)] {
            let copy = scratch.path(&format!("{format}-{status}"));
            expect(0, &["convert", history, &copy, "--to", format]);
            expect(status, &["check", &copy]);
            expect(
                status,
                &["check", &copy, "--format", format, "--level", "si"],
            );
        }
    }
}

#[test]
fn convert_refuses_formats_that_are_only_read() {
    let scratch = Scratch::new();
    let said = expect(
        2,
        &[
            "convert",
            &corpus("none/lost-update.jsonl"),
            &scratch.path("x"),
            "--to",
            "viper",
        ],
    );
    assert!(
        said.stderr.contains("cobra"),
        "it names those that are written: {}",
        said.stderr
    );
}

#[test]
fn a_seed_repeats_its_history_and_a_fault_breaks_it() {
    let scratch = Scratch::new();
    for (name, seed) in [("a", "1"), ("b", "1"), ("c", "2")] {
        generate(&scratch, name, &["--txns", "50", "--seed", seed]);
    }
    assert_eq!(scratch.get("a"), scratch.get("b"));
    assert_ne!(scratch.get("a"), scratch.get("c"));
    let skew = generate(&scratch, "skew", &["--txns", "50", "--fault", "write-skew"]);
    expect(1, &["check", &skew]);
    expect(0, &["check", &skew, "--level", "si"]);
}

#[test]
fn the_version_order_of_a_workload_stands_beside_it_or_in_it() {
    let scratch = Scratch::new();
    let order = scratch.path("order");
    let options = ["--txns", "300", "--keys", "20", "--version-order", &order];
    let beside = generate(&scratch, "beside", &options);
    let inline = generate(
        &scratch,
        "inline",
        &["--txns", "300", "--keys", "20", "--inline-version-order"],
    );
    assert!(!scratch.get("beside").contains("version_order"));
    let lines = scratch.get("order");
    assert!(lines.lines().count() == 20 && scratch.get("inline").contains(&lines));
    for line in [
        &["check", &beside, "--version-order", &order][..],
        &["check", &inline],
    ] {
        let said = expect(0, line);
        assert!(said.stdout.contains("every key"), "{}", said.stdout);
    }
}

#[test]
fn generate_lists_its_workloads_and_says_where_its_defaults_come_from() {
    let said = expect(0, &["generate", "--help"]);
    for word in [
        "king-cobra-hw",
        "blindw-rm",
        "mini",
        "10000 keys",
        "paper leaves",
        "lost-update",
    ] {
        assert!(said.stdout.contains(word), "{word}: {}", said.stdout);
    }
    let said = expect(
        2,
        &["generate", "king-cobra-rw", "--out", "x", "--keys", "7"],
    );
    assert!(said.stderr.contains("different keys"), "{}", said.stderr);
    let said = expect(2, &["generate", "tpc-z", "--out", "x"]);
    assert!(said.stderr.contains("blindw-rw"), "{}", said.stderr);
}

#[test]
fn devices_are_listed() {
    let said = expect(0, &["devices"]);
    assert!(said.stdout.starts_with("cpu: "), "{}", said.stdout);
}

#[test]
fn completions_know_the_commands() {
    let said = expect(0, &["completions", "bash"]);
    assert!(said.stdout.contains("--session-order"));
}

#[test]
fn a_bank_in_our_own_format_is_checked_by_its_total() {
    let scratch = Scratch::new();
    let bank = |second: i64| {
        format!(
            "{{\"kingsnake\":1,\"initial\":50}}\n\
             {{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"a\",50],[\"r\",\"b\",50],[\"w\",\"a\",40],[\"w\",\"b\",60]]}}\n\
             {{\"id\":2,\"session\":2,\"ops\":[[\"r\",\"a\",40]]}}\n\
             {{\"id\":3,\"session\":2,\"ops\":[[\"r\",\"a\",40],[\"r\",\"b\",{second}]]}}\n"
        )
    };
    let right = scratch.put("right.jsonl", bank(60));
    let bank_rule = ["--workload", "bank", "--total", "100"];
    let said = expect(0, &[&["check", &right][..], &bank_rule].concat());
    assert!(said.stdout.contains("1 read\n"), "{}", said.stdout);
    for (balance, total) in [(50, "90"), (i64::MAX, "9223372036854775847")] {
        let wrong = scratch.put("wrong.jsonl", bank(balance));
        let said = expect(1, &[&["check", &wrong][..], &bank_rule].concat());
        let total = format!("a total of {total}");
        assert!(said.stdout.contains(&total), "{}", said.stdout);
    }
}

#[test]
fn the_workload_read_twice_shows_a_value_that_changed() {
    let scratch = Scratch::new();
    let path = scratch.path("h.jsonl");
    let making = ["generate", "read-twice", "--txns", "300", "--keys", "20"];
    expect(0, &[&making[..], &["--out", &path]].concat());
    expect(0, &["check", &path]);
    let text = scratch.get("h.jsonl");
    let twice = |line: &str| line.matches("[\"r\",").count() == 4;
    assert!(text.lines().any(twice), "{text}");
}

#[test]
fn two_runs_are_compared_by_verdict() {
    let scratch = Scratch::new();
    let [lost, fine] = [
        "none/lost-update.jsonl",
        "strong-session-ser/bank-transfer.jsonl",
    ];
    let check = |history: &str, name: &str, status| {
        let json = format!("--json={}", scratch.path(name));
        expect(status, &["check", &corpus(history), &json, "-q"]);
        scratch.path(name)
    };
    let (one, same) = (check(lost, "one.json", 1), check(lost, "same.json", 1));
    let said = expect(0, &["diff", &one, &same]).stdout;
    assert!(
        said.contains("1 check in both: all verdicts agree"),
        "{said}"
    );
    let other = scratch.put(
        "other.json",
        scratch
            .get("one.json")
            .replace("\"violated\"", "\"satisfied\""),
    );
    let said = expect(1, &["diff", &one, &other]).stdout;
    assert!(said.contains("-> satisfied"), "{said}");
    let unrelated = check(fine, "unrelated.json", 0);
    let said = expect(0, &["diff", &one, &unrelated]).stdout;
    assert!(said.contains("only in the first: 1 check"), "{said}");
    let said = expect(2, &["diff", &one, &corpus(lost)]).stderr;
    assert!(said.contains("neither a row nor a verdict"), "{said}");
}
