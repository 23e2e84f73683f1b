//! Certificates: what `check` writes, `verify` believes; what is damaged, it does not.

mod run;

use run::{Scratch, corpus, expect, generate};

#[test]
fn two_transactions_swapped_are_noticed() {
    let scratch = Scratch::new();
    let history = generate(
        &scratch,
        "h.jsonl",
        &["--txns", "200", "--keys", "8", "--clients", "3"],
    );
    let order = scratch.path("order");
    expect(0, &["check", &history, "--certificate", &order]);
    let mut lines: Vec<String> = scratch.get("order").lines().map(str::to_owned).collect();
    let last = lines.len() - 1;
    lines.swap(1, last);
    let damaged = scratch.put("damaged", lines.join("\n"));
    let said = expect(1, &["verify", &history, &damaged]);
    assert!(
        said.stdout.starts_with("certificate does not hold: "),
        "{}",
        said.stdout
    );
    assert!(
        said.stdout.lines().count() > 1,
        "it says why: {}",
        said.stdout
    );
}

#[test]
fn a_missing_or_repeated_transaction_is_noticed() {
    let scratch = Scratch::new();
    let history = corpus("strong-session-ser/bank-transfer.jsonl");
    let order = scratch.path("order");
    expect(0, &["check", &history, "--certificate", &order]);
    let text = scratch.get("order");
    let lines: Vec<&str> = text.lines().collect();
    let shorter = scratch.put("shorter", lines[..lines.len() - 1].join("\n"));
    expect(1, &["verify", &history, &shorter]);
    let longer = scratch.put("longer", [&lines[..], &lines[1..2]].concat().join("\n"));
    expect(1, &["verify", &history, &longer]);
}

#[test]
fn a_certificate_may_be_replayed_at_another_level() {
    let scratch = Scratch::new();
    let history = corpus("ser/read-your-writes-violation.jsonl");
    let order = scratch.path("order");
    expect(
        0,
        &[
            "check",
            &history,
            "--session-order",
            "off",
            "--certificate",
            &order,
        ],
    );
    expect(0, &["verify", &history, &order]);
    expect(1, &["verify", &history, &order, "--level", "ser"]);
}

#[test]
fn files_that_are_no_certificate_are_errors_with_their_place() {
    let scratch = Scratch::new();
    let history = corpus("strong-session-ser/bank-transfer.jsonl");
    let order = scratch.path("order");
    expect(0, &["check", &history, "--certificate", &order]);
    let good = scratch.get("order");
    let header = good.lines().next().unwrap_or_default().to_owned();
    for (name, text, place) in [
        ("empty", String::new(), "empty"),
        ("no-header", "1\n2\n".to_owned(), "line 1"),
        ("no-json", format!("{header}\n{{\n"), "line 2"),
        (
            "no-such-transaction",
            format!("{header}\n\"nobody\"\n"),
            "line 2",
        ),
        (
            "wrong-model",
            header.replace("\"ser\"", "\"read-committed\""),
            "line 1",
        ),
    ] {
        let path = scratch.put(name, text);
        let said = expect(2, &["verify", &history, &path]);
        assert!(
            said.stderr.contains(&path) && said.stderr.contains(place),
            "{}",
            said.stderr
        );
    }
    expect(2, &["verify", &history, "no/such/certificate"]);
}

#[test]
fn a_certificate_of_another_history_warns() {
    let scratch = Scratch::new();
    let order = scratch.path("order");
    let one = generate(&scratch, "one.jsonl", &["--txns", "50", "--seed", "1"]);
    let other = generate(&scratch, "other.jsonl", &["--txns", "50", "--seed", "2"]);
    expect(0, &["check", &one, "--certificate", &order]);
    let said = run::run(&["verify", &other, &order]);
    assert!(said.stderr.contains("another history"), "{}", said.stderr);
}

#[test]
fn no_certificate_is_written_for_a_violation() {
    let scratch = Scratch::new();
    let order = scratch.path("order");
    let said = expect(
        1,
        &[
            "check",
            &corpus("none/lost-update.jsonl"),
            "--certificate",
            &order,
        ],
    );
    assert!(said.stderr.contains("no certificate"), "{}", said.stderr);
    assert!(!std::path::Path::new(&order).exists());
}
