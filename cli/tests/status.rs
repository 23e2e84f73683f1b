//! Exit statuses and messages: 0 satisfied, 1 violated, 2 error, 3 unknown.

mod run;

use run::{Scratch, corpus, expect, generate, kingsnake, run};

const VALID: &str = "strong-session-ser/bank-transfer.jsonl";
const LOST_UPDATE: &str = "none/lost-update.jsonl";

#[test]
fn a_valid_history_is_satisfied() {
    let said = expect(0, &["check", &corpus(VALID)]);
    let first = said.stdout.lines().next().unwrap_or_default();
    assert!(
        first.starts_with("satisfied: serializability with session order (bank-transfer.jsonl: "),
        "{first}"
    );
    assert_eq!(said.stderr, "");
}

#[test]
fn a_lost_update_is_violated_and_told() {
    let said = expect(1, &["check", &corpus(LOST_UPDATE)]);
    assert!(said.stdout.starts_with("violated: "), "{}", said.stdout);
    assert!(
        said.stdout.to_lowercase().contains("lost update"),
        "{}",
        said.stdout
    );
    assert!(said.stdout.contains("because"), "{}", said.stdout);
}

#[test]
fn quiet_says_one_line() {
    for (status, history) in [(0, VALID), (1, LOST_UPDATE)] {
        let said = expect(status, &["check", "-q", &corpus(history)]);
        assert_eq!(said.stdout.lines().count(), 1, "{}", said.stdout);
    }
}

#[test]
fn verbose_says_the_plan_and_the_phases() {
    let said = expect(0, &["check", "-v", &corpus(VALID)]);
    for word in [
        "plan",
        "again",
        "phases",
        "parse",
        "resolve",
        "peak memory",
        "kingsnake check",
    ] {
        assert!(said.stdout.contains(word), "{word}: {}", said.stdout);
    }
}

#[test]
fn write_skew_is_si_but_not_ser() {
    let history = corpus("strong-session-si/write-skew.jsonl");
    expect(1, &["check", &history, "--level", "ser"]);
    expect(0, &["check", &history, "--level", "si"]);
}

#[test]
fn session_order_is_a_switch() {
    let history = corpus("ser/read-your-writes-violation.jsonl");
    expect(1, &["check", &history]);
    let said = expect(0, &["check", &history, "--session-order", "off"]);
    assert!(
        said.stdout
            .starts_with("satisfied: serializability without session order"),
        "{}",
        said.stdout
    );
}

#[test]
fn a_strong_session_level_cannot_lose_its_session_order() {
    let said = expect(
        2,
        &[
            "check",
            &corpus(VALID),
            "--level",
            "strong-session-ser",
            "--session-order",
            "off",
        ],
    );
    assert!(
        said.stderr.contains("demands session order"),
        "{}",
        said.stderr
    );
}

#[test]
fn real_time_order_needs_times() {
    let said = expect(2, &["check", &corpus(LOST_UPDATE), "--level", "strict-ser"]);
    assert!(said.stderr.contains("times"), "{}", said.stderr);
}

#[test]
fn no_time_at_all_is_unknown() {
    let said = expect(3, &["check", &corpus(VALID), "--timeout", "0"]);
    assert!(said.stdout.starts_with("unknown: "), "{}", said.stdout);
    assert!(said.stdout.contains("time limit of 0 s"), "{}", said.stdout);
}

#[test]
fn too_little_memory_is_unknown() {
    let scratch = Scratch::new();
    let history = generate(&scratch, "h.jsonl", &["--txns", "2000", "--keys", "100"]);
    let said = expect(
        3,
        &[
            "check",
            &history,
            "--memory-limit",
            "1K",
            "--reachability",
            "dense",
        ],
    );
    assert!(said.stdout.contains("memory limit"), "{}", said.stdout);
}

#[test]
fn a_missing_file_is_an_error() {
    let said = expect(2, &["check", "no/such/history"]);
    assert!(said.stderr.contains("no/such/history"), "{}", said.stderr);
    assert_eq!(said.stdout, "");
}

#[test]
fn files_that_are_no_history_are_errors() {
    let scratch = Scratch::new();
    let empty = scratch.put("empty.jsonl", "");
    let garbage = scratch.put("garbage.log", [0xff, 0xfe, 0x00, 0x9b, 0x31]);
    for path in [&empty, &garbage] {
        let said = expect(2, &["check", path]);
        assert!(said.stderr.starts_with("kingsnake: "), "{}", said.stderr);
        assert_eq!(said.stdout, "");
    }
    let said = expect(2, &["check", &scratch.path("")]);
    for name in ["empty.jsonl", "garbage.log"] {
        assert!(said.stdout.contains(name), "{}", said.stdout);
    }
}

#[test]
fn a_place_that_cannot_be_written_is_an_error_before_the_check() {
    let said = expect(
        2,
        &[
            "check",
            &corpus(VALID),
            "--report",
            "no/such/directory/out.html",
        ],
    );
    assert!(said.stderr.contains("no/such/directory"), "{}", said.stderr);
    assert_eq!(said.stdout, "");
}

#[test]
fn bad_usage_is_an_error_and_help_is_not() {
    expect(2, &[]);
    expect(2, &["check"]);
    expect(2, &["chekc"]);
    expect(2, &["check", "h", "--level", "perfect"]);
    expect(2, &["check", "h", "--backend", "none/such"]);
    expect(2, &["check", "h", "--timeout", "-1"]);
    expect(2, &["check", "h", "-q", "-v"]);
    expect(0, &["--help"]);
    expect(0, &["check", "--help"]);
    expect(0, &["--version"]);
}

#[test]
fn a_portfolio_of_one_is_refused() {
    let said = expect(2, &["check", "h", "--backend", "portfolio:cadical/lazy"]);
    assert!(said.stderr.contains("of two back ends"), "{}", said.stderr);
}

#[test]
fn a_portfolio_names_its_winner() {
    let history = run::corpus("strong-session-ser/blind-writes.jsonl");
    let args = [
        "check",
        &history,
        "--backend",
        "portfolio:cadical/closure,search/backtrack",
        "--prune-rounds",
        "0",
        "--no-witness",
        "-v",
    ];
    let said = expect(0, &args);
    assert!(said.stdout.contains("won by "), "{}", said.stdout);
}

#[cfg(feature = "z3")]
#[test]
fn the_rules_of_snapshot_isolation_do_not_decide_serializability() {
    let history = run::corpus("strong-session-ser/blind-writes.jsonl");
    for backend in ["z3/gsi", "z3/asi", "portfolio:z3/gsi,cadical/lazy"] {
        let args = ["check", &history, "--backend", backend];
        let said = expect(2, &args);
        assert!(
            said.stderr.contains("cannot decide serializability"),
            "{}",
            said.stderr
        );
        expect(0, &[&args[..], &["--level", "si"]].concat());
    }
}

#[cfg(not(feature = "z3"))]
#[test]
fn without_z3_its_back_ends_say_so() {
    let said = expect(2, &["check", "h", "--backend", "z3/order"]);
    assert!(said.stderr.contains("built without"), "{}", said.stderr);
}

#[test]
fn every_technique_can_be_switched_off() {
    let scratch = Scratch::new();
    let valid = generate(&scratch, "h.jsonl", &["--txns", "300", "--keys", "20"]);
    for (status, history) in [(0, &valid), (1, &corpus(LOST_UPDATE))] {
        for option in [
            &["--no-combine"][..],
            &["--no-linear"],
            &["--no-estimate"],
            &["--no-witness"],
            &["--reachability", "dense"],
            &["--reachability", "chains"],
            &["--prune-rounds", "1"],
            &["--threads", "1", "--seed", "7"],
        ] {
            let mut args = vec!["check", history.as_str()];
            args.extend(option);
            expect(status, &args);
        }
    }
}

#[test]
fn colour_comes_only_on_request() {
    let history = corpus(VALID);
    assert!(!run(&["check", &history]).stdout.contains('\x1b'));
    assert!(
        run(&["check", &history, "--color", "always"])
            .stdout
            .contains("\x1b[1m\x1b[32msatisfied")
    );
}

#[test]
fn a_name_cannot_steer_the_terminal() {
    let scratch = Scratch::new();
    let history = std::fs::read_to_string(corpus(LOST_UPDATE)).expect("the corpus is there");
    let history = scratch.put("h.jsonl", history.replace("\"x\"", r#""\u001b[2Jx""#));
    let said = expect(1, &["explain", &history]);
    assert!(said.stdout.contains("\\u{1b}"), "{}", said.stdout);
    assert!(!said.stdout.contains('\x1b'), "{}", said.stdout);
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = kingsnake(&["explain", &corpus(LOST_UPDATE)])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the binary ends");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn explain_tells_every_operation() {
    let said = expect(1, &["explain", &corpus(LOST_UPDATE)]);
    assert!(said.stdout.contains("in full"), "{}", said.stdout);
}
