//! Elle's switches: assumptions, the result map, and the directory of anomalies.

mod run;

use run::{Scratch, corpus, expect};

/// Four transactions over time: x = 1 is read, then overwritten, then read again.
const STALE: &str = "\
{\"kingsnake\":1,\"initial\":null}
{\"id\":\"a\",\"session\":1,\"begin\":1,\"commit\":2,\"ops\":[[\"w\",\"x\",1]]}
{\"id\":\"b\",\"session\":2,\"begin\":3,\"commit\":4,\"ops\":[[\"w\",\"x\",2]]}
{\"id\":\"c\",\"session\":3,\"begin\":5,\"commit\":6,\"ops\":[[\"r\",\"x\",1]]}
{\"id\":\"d\",\"session\":1,\"begin\":7,\"commit\":8,\"ops\":[[\"r\",\"x\",null]]}
";

#[test]
fn keys_that_are_assumed_linearizable_are_not_read_late() {
    let scratch = Scratch::new();
    let three: Vec<&str> = STALE.lines().take(4).collect();
    let path = scratch.put("h.jsonl", three.join("\n"));
    for level in ["ser", "si", "pc", "cc", "rc"] {
        expect(0, &["check", "-q", &path, "--level", level]);
        let args = [
            "check",
            &path,
            "--level",
            level,
            "--assume",
            "linearizable-keys",
        ];
        let said = expect(1, &args);
        if level == "ser" {
            let story = &said.stdout;
            assert!(story.contains("(assumed: linearizable-keys)"), "{story}");
        }
        let sessions = [
            "check",
            "-q",
            &path,
            "--level",
            level,
            "--assume",
            "sequential-keys",
        ];
        expect(0, &sessions);
    }
    let auto = [
        "check",
        &path,
        "--level",
        "auto",
        "--assume",
        "linearizable-keys",
    ];
    let said = expect(1, &auto);
    assert!(said.stdout.contains("G0"), "{}", said.stdout);
}

#[test]
fn a_read_of_the_initial_state_after_a_version_is_a_cycle_of_versions() {
    let scratch = Scratch::new();
    let path = scratch.put("h.jsonl", STALE);
    let args = [
        "check",
        &path,
        "--session-order",
        "off",
        "--assume",
        "sequential-keys",
        "--all",
    ];
    let said = expect(1, &args);
    assert!(said.stdout.contains("cyclic-versions"), "{}", said.stdout);
    assert!(
        said.stdout.contains("(assumed: sequential-keys)"),
        "{}",
        said.stdout
    );
}

#[test]
fn a_given_order_is_a_step_of_the_story_and_of_the_document() {
    let scratch = Scratch::new();
    let three: Vec<&str> = STALE.lines().take(4).collect();
    let path = scratch.put("h.jsonl", three.join("\n"));
    let edges = scratch.put("edges.txt", "# c must see b\na b\nb c backup taken\n");
    let said = expect(1, &["check", &path, "--edges", &edges]);
    assert!(
        said.stdout
            .contains("by the given order backup taken (line 3)"),
        "{}",
        said.stdout
    );
    let said = expect(1, &["check", &path, "--edges", &edges, "--json"]);
    assert!(said.stdout.contains("\"given\""), "{}", said.stdout);
    let order = scratch.put("order.txt", "b 1\na 2\n");
    expect(0, &["check", "-q", &path, "--transaction-order", &order]);
    let certificate = scratch.path("certificate.json");
    let args = [
        "check",
        "-q",
        &path,
        "--transaction-order",
        &order,
        "--certificate",
        &certificate,
    ];
    expect(0, &args);
    let args = ["verify", &path, &certificate, "--transaction-order", &order];
    expect(0, &args);
    let other = scratch.put("other.txt", "a 1\nb 2\n");
    expect(
        1,
        &["verify", &path, &certificate, "--transaction-order", &other],
    );
}

#[test]
fn what_cannot_be_used_is_an_error_that_says_what_to_write() {
    let scratch = Scratch::new();
    let path = scratch.put("h.jsonl", STALE);
    for (option, text, expected) in [
        ("--edges", "a\n", "two transactions are expected"),
        ("--edges", "a z\n", "there is no transaction z"),
        ("--edges", "a a\n", "cannot come before itself"),
        ("--transaction-order", "a\n", "a transaction and its number"),
        ("--transaction-order", "a b\n", "b is not a number"),
        (
            "--transaction-order",
            "a 1\na 2\n",
            "has a number already, in line 1",
        ),
        (
            "--transaction-order",
            "a 1\nb 1\n",
            "number 1 is taken already, in line 1",
        ),
    ] {
        let file = scratch.put("file.txt", text);
        let said = expect(2, &["check", &path, option, &file]);
        assert!(said.stderr.contains(expected), "{}", said.stderr);
        assert!(said.stderr.contains("line "), "{}", said.stderr);
    }
    let untimed = corpus("none/lost-update.jsonl");
    let said = expect(2, &["check", &untimed, "--assume", "linearizable-keys"]);
    assert!(said.stderr.contains("sequential-keys"), "{}", said.stderr);
    let said = expect(
        2,
        &["check", &path, "--level", "pl-2", "--assume", "wfr-keys"],
    );
    assert!(
        said.stderr.contains("levels at which orders are searched"),
        "{}",
        said.stderr
    );
    let full = scratch.path("");
    let said = expect(2, &["check", &path, "--directory", &full]);
    assert!(said.stderr.contains("not empty"), "{}", said.stderr);
}

#[test]
fn unwritten_values_are_what_they_are_said_to_be() {
    let air = corpus("none/thin-air-read.jsonl");
    expect(1, &["check", "-q", &air]);
    expect(1, &["check", "-q", &air, "--unwritten", "thin-air"]);
    expect(0, &["check", "-q", &air, "--unwritten", "unseen"]);
    let scratch = Scratch::new();
    let two = "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",5]]}\n{\"id\":2,\"session\":2,\"ops\":[[\"r\",\"x\",6]]}\n";
    let path = scratch.put("h.jsonl", two);
    let said = expect(2, &["check", &path, "--unwritten", "initial"]);
    assert!(
        said.stderr.contains("--unwritten unseen"),
        "{}",
        said.stderr
    );
    expect(0, &["check", "-q", &path, "--unwritten", "unseen"]);
}

#[test]
fn the_map_is_elles() {
    let path = corpus("none/list-g1c-circular-information-flow.jsonl");
    for level in ["ser", "rc", "auto"] {
        let said = expect(1, &["check", &path, "--level", level, "--edn"]);
        let map = said.stdout;
        assert!(map.starts_with("{:valid? false,"), "{map}");
        for part in [
            ":anomaly-types (",
            ":anomalies {",
            ":G1c [{:cycle [{:index",
            ":not #{:read-committed}",
        ] {
            assert!(map.contains(part), "{level}: {part}\n{map}");
        }
    }
    let args = ["check", &path, "--edn", "--expect", "read-uncommitted"];
    assert!(expect(0, &args).stdout.starts_with("{:valid? true,"));
}

#[test]
fn a_directory_holds_a_text_a_class_and_a_picture_an_anomaly() {
    let scratch = Scratch::new();
    let out = scratch.path("out");
    let path = corpus("none/list-incompatible-order.jsonl");
    for _ in 0..2 {
        expect(1, &["check", "-q", &path, "--directory", &out]);
    }
    assert!(
        scratch
            .get("out/incompatible-order.txt")
            .contains("neither list begins with the other")
    );
    assert!(
        scratch
            .get("out/incompatible-order/0.svg")
            .starts_with("<svg")
    );
    let index = scratch.get("out/index.html");
    assert!(index.contains("incompatible-order/0.svg"), "{index}");
    let lists: Vec<_> = std::fs::read_dir(scratch.path("out/lists"))
        .expect("there are lists")
        .collect();
    assert_eq!(lists.len(), 1);
    let page = std::fs::read_to_string(lists[0].as_ref().expect("it can be read").path());
    assert!(page.expect("it can be read").contains("class=\"deviates\""));
    let beside: Vec<_> = std::fs::read_dir(scratch.path(""))
        .expect("it is there")
        .collect();
    assert_eq!(beside.len(), 1, "nothing is left beside it");
}

#[test]
fn repeated_values_are_refused_if_they_must_be_unique() {
    let scratch = Scratch::new();
    let two = "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",5]]}\n{\"id\":2,\"session\":2,\"ops\":[[\"w\",\"x\",5]]}\n";
    let path = scratch.put("h.jsonl", two);
    expect(0, &["check", "-q", &path]);
    expect(0, &["check", "-q", &path, "--values", "any"]);
    for level in ["ser", "rc", "auto"] {
        let said = expect(
            2,
            &["check", "-q", &path, "--values", "unique", "--level", level],
        );
        let words = "transaction 1 and transaction 2 both wrote 5";
        assert!(said.stderr.contains(words), "{}", said.stderr);
    }
    let unique = corpus("none/lost-update.jsonl");
    expect(1, &["check", "-q", &unique, "--values", "unique"]);
}
