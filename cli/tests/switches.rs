//! Version orders, profiles and switches: what each changes, and that none changes a verdict.

mod run;

use run::{Scratch, expect, generate_workload};
use serde_json::Value;

fn checked(status: i32, args: &[&str]) -> Value {
    let said = expect(status, &[&["check", "--json"], args].concat());
    serde_json::from_str(&said.stdout).expect("one JSON document")
}

fn number(document: &Value, pointer: &str) -> u64 {
    let number = document.pointer(pointer).and_then(Value::as_u64);
    number.unwrap_or_else(|| panic!("{pointer} is no number in {document}"))
}

#[test]
fn a_share_of_the_version_order_keeps_that_share_and_repeats_for_a_seed() {
    let scratch = Scratch::new();
    let options = ["--txns", "400", "--keys", "50", "--inline-version-order"];
    let history = generate_workload(&scratch, "h", "king-cobra-hw", &options);
    let pairs = |options: &[&str]| {
        let off = ["--session-order", "off", "--no-linear"];
        let document = checked(0, &[&[history.as_str()][..], &off, options].concat());
        number(&document, "/stats/known_edges_before")
    };
    let edges: Vec<u64> = ["0", "0.5", "0.9", "1"]
        .into_iter()
        .map(|share| pairs(&["--version-order-share", share, "--seed", "7"]))
        .collect();
    assert!(edges.is_sorted() && edges[0] < edges[3], "{edges:?}");
    let half = ["--version-order-share", "0.5", "--seed"];
    assert_eq!(pairs(&[&half[..], &["7"]].concat()), edges[1]);
    assert_ne!(pairs(&[&half[..], &["8"]].concat()), edges[1]);
    assert_eq!(pairs(&[]), edges[3]);
    assert_eq!(pairs(&["--no-version-order"]), edges[0]);
}

#[test]
fn kept_neighbours_are_linked_when_a_version_between_them_is_dropped() {
    let scratch = Scratch::new();
    // T1 read what T3 wrote, so 1 before 3 is no order, whatever becomes of 2.
    let history = scratch.put(
        "h",
        "{\"kingsnake\":1,\"initial\":0}\n\
         {\"id\":\"T1\",\"session\":\"a\",\"ops\":[[\"r\",\"y\",1],[\"w\",\"x\",1]]}\n\
         {\"id\":\"T2\",\"session\":\"b\",\"ops\":[[\"w\",\"x\",2]]}\n\
         {\"id\":\"T3\",\"session\":\"c\",\"ops\":[[\"w\",\"x\",3],[\"w\",\"y\",1]]}\n\
         {\"version_order\":{\"key\":\"x\",\"values\":[1,2,3]}}\n",
    );
    let edges = |said: &run::Said| {
        let document: Value = serde_json::from_str(&said.stdout).expect("one JSON document");
        (said.status, number(&document, "/stats/known_edges_before"))
    };
    let whole = edges(&expect(1, &["check", "--json", &history]));
    let thinned: Vec<(i32, u64)> = (0..32)
        .map(|seed: u32| {
            let seed = seed.to_string();
            let share = ["--version-order-share", "0.7", "--seed", &seed];
            edges(&run::run(
                &[&["check", "--json", &history][..], &share].concat(),
            ))
        })
        .collect();
    // A violation with one link less than the whole order has can only be 1 before 3 without 2.
    assert!(thinned.contains(&(1, whole.1 - 1)), "{whole:?} {thinned:?}");
    assert!(thinned.contains(&(0, whole.1 - 1)), "{whole:?} {thinned:?}");
}

#[test]
fn a_version_order_that_contradicts_the_history_is_told_as_such() {
    let scratch = Scratch::new();
    let history = scratch.put(
        "h",
        "{\"kingsnake\":1,\"initial\":0}\n\
         {\"id\":\"T1\",\"session\":\"a\",\"ops\":[[\"w\",\"x\",1]]}\n\
         {\"id\":\"T2\",\"session\":\"b\",\"ops\":[[\"r\",\"x\",1],[\"w\",\"x\",2]]}\n",
    );
    let order = |values: &str| {
        let line = format!("{{\"version_order\":{{\"key\":\"x\",\"values\":[{values}]}}}}\n");
        scratch.put("order", line)
    };
    expect(0, &["check", &history, "--version-order", &order("1,2")]);
    let said = expect(1, &["explain", &history, "--version-order", &order("2,1")]);
    for words in [
        "the database says 2 ≪ 1",
        "contradicts what its transactions saw",
    ] {
        assert!(said.stdout.contains(words), "{words}: {}", said.stdout);
    }
    let said = expect(2, &["check", &history, "--version-order", &order("1,3")]);
    assert!(
        said.stderr.contains("no transaction wrote"),
        "{}",
        said.stderr
    );
    let both = [
        "check",
        &history,
        "--version-order",
        &order("1,2"),
        "--no-version-order",
    ];
    expect(2, &both);
}

#[test]
fn profiles_and_switches_change_the_work_but_not_the_verdict() {
    let scratch = Scratch::new();
    let options = [
        "--txns",
        "250",
        "--keys",
        "25",
        "--ops",
        "4",
        "--clients",
        "8",
    ];
    let broken = [&options[..], &["--fault", "long-fork"]].concat();
    for workload in ["king-cobra-rmw", "king-cobra-rw", "king-cobra-hw"] {
        let valid = generate_workload(&scratch, "valid", workload, &options);
        let broken = generate_workload(&scratch, "broken", workload, &broken);
        for line in [
            "--profile cobra",
            "--profile king-cobra",
            "--profile kingsnake",
            "--profile cobra --merge --estimate",
            "--profile cobra --no-combine",
            "--no-coalesce --no-merge",
            "--no-coalesce --no-combine --prune-rounds 1",
            "--no-prune --no-witness",
            "--decide surest-first --phase topological --no-witness",
            "--real-time on",
        ] {
            let switches: Vec<&str> = line.split(' ').collect();
            for level in ["ser", "si"] {
                let level = [
                    "--level",
                    level,
                    "--session-order",
                    "off",
                    "--timeout",
                    "60",
                ];
                checked(0, &[&[valid.as_str()][..], &level, &switches].concat());
                checked(1, &[&[broken.as_str()][..], &level, &switches].concat());
            }
        }
        let open = |line: &str| {
            let all = [
                valid.as_str(),
                "--session-order",
                "off",
                "--no-prune",
                "--no-witness",
            ];
            let switches: Vec<&str> = all.into_iter().chain(line.split(' ')).collect();
            number(&checked(0, &switches), "/stats/open_constraints")
        };
        let (merged, single, readers) = (
            open("--merge"),
            open("--no-merge"),
            open("--no-coalesce --no-merge"),
        );
        println!(
            "{workload}: {merged} pairs of transactions, {single} of runs, {readers} by reader"
        );
        assert!(merged <= single && single < readers);
    }
}

#[test]
fn every_switch_is_named_in_the_plan() {
    let scratch = Scratch::new();
    let history = generate_workload(&scratch, "h", "mini", &["--txns", "20"]);
    let document = checked(
        0,
        &[
            &history,
            "--profile",
            "king-cobra",
            "--version-order-share",
            "0.9",
            "--timeout",
            "60",
            "--device",
            "cpu",
        ],
    );
    for (name, value) in [
        ("session-order", "on"),
        ("real-time", "off"),
        ("version-order", "what the history gives"),
        ("version-order-share", "0.9"),
        ("profile", "king-cobra"),
        ("combine", "on"),
        ("coalesce", "on"),
        ("merge", "off"),
        ("prune", "on"),
        ("prune-rounds", "5"),
        ("estimate", "off"),
        ("linear", "off"),
        ("witness", "off"),
        ("phase", "none"),
        ("decide", "vsids"),
        ("heuristic", "off"),
        ("device", "cpu"),
        ("backend", "cadical/propagator"),
        ("seed", "0"),
        ("timeout", "60 s"),
    ] {
        assert_eq!(
            document["plan"][name], value,
            "{name} in {}",
            document["plan"]
        );
    }
}

#[test]
fn a_share_of_no_version_order_is_a_warning() {
    let scratch = Scratch::new();
    let history = generate_workload(&scratch, "h", "king-cobra-rw", &["--txns", "20"]);
    let said = expect(0, &["check", &history, "--version-order-share", "0.9"]);
    let words = "no order of versions is given";
    assert!(said.stderr.contains(words), "{}", said.stderr);
}

#[cfg(feature = "z3")]
#[test]
fn encodings_of_snapshot_isolation_take_constraints_of_every_form() {
    let scratch = Scratch::new();
    let options = [
        "--txns",
        "60",
        "--keys",
        "8",
        "--ops",
        "4",
        "--clients",
        "6",
    ];
    let lost = [&options[..], &["--fault", "lost-update"]].concat();
    for workload in ["king-cobra-rw", "king-cobra-rmw"] {
        let valid = generate_workload(&scratch, "valid", workload, &options);
        let broken = generate_workload(&scratch, "broken", workload, &lost);
        for backend in ["z3/gsi", "z3/asi"] {
            for form in [
                &["--no-prune", "--no-witness", "--no-coalesce"][..],
                &["--no-prune", "--no-witness", "--no-coalesce", "--no-merge"],
                &["--no-prune", "--no-witness", "--no-combine"],
                &["--no-witness", "--no-coalesce", "--prune-rounds", "1"],
            ] {
                let asked = [&["--level", "si", "--backend", backend], form].concat();
                checked(0, &[&[valid.as_str()], &asked[..]].concat());
                checked(1, &[&[broken.as_str()], &asked[..]].concat());
            }
        }
    }
}
