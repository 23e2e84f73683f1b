//! What the log leaves open: transactions of unknown end that may have been read, deleted rows that range queries did not return.

mod run;

use std::fmt::Write as _;

use run::{Scratch, expect};
use serde_json::{Value, json};

/// How many transactions are in doubt.
const DOUBTS: usize = 20;

#[derive(Default)]
struct Log {
    lines: String,
    n_txns: usize,
}

impl Log {
    fn new(initial: &Value) -> Self {
        let mut log = Log::default();
        log.put(&json!({"kingsnake": 1, "initial": initial}));
        log
    }

    fn put(&mut self, line: &Value) {
        writeln!(self.lines, "{line}").expect("memory is enough");
    }

    /// A transaction of a session of its own, or of this one.
    fn txn(&mut self, session: Option<&str>, ops: &Value) {
        self.end(session, "committed", ops);
    }

    fn unknown(&mut self, ops: &Value) {
        self.end(None, "unknown", ops);
    }

    fn end(&mut self, session: Option<&str>, status: &str, ops: &Value) {
        let id = self.n_txns;
        self.n_txns += 1;
        let session = session.map_or_else(|| format!("s{id}"), str::to_owned);
        self.put(&json!({"id": id, "session": session, "status": status, "ops": ops}));
    }

    /// Either of two, one of unknown end, wrote what a third read; anything goes.
    fn open_doubt(&mut self, x: &str) {
        self.unknown(&json!([["w", x, 1]]));
        self.txn(None, &json!([["w", x, 1]]));
        self.txn(None, &json!([["r", x, 1]]));
    }

    /// The transaction of unknown end read what no order explains: it was lost.
    fn lost(&mut self, x: &str) {
        let y = format!("{x}y");
        self.txn(None, &json!([["w", x, 1], ["w", y, 1]]));
        self.unknown(&json!([["r", x, 1], ["r", y, 0], ["w", x, 2]]));
        self.txn(None, &json!([["w", x, 2]]));
        self.txn(None, &json!([["r", x, 2]]));
    }

    /// What the other wrote was overwritten before it was read again: the transaction of unknown end took effect.
    fn took_effect(&mut self, x: &str) {
        let session = Some(x);
        self.txn(session, &json!([["w", x, 1]]));
        self.txn(session, &json!([["r", x, 1], ["w", x, 3]]));
        self.unknown(&json!([["r", x, 3], ["w", x, 1]]));
        self.txn(session, &json!([["r", x, 1]]));
    }

    /// It can neither have been lost nor have taken effect.
    fn neither(&mut self, x: &str) {
        let y = format!("{x}y");
        let session = Some(x);
        self.txn(None, &json!([["w", x, 1], ["w", y, 1]]));
        self.unknown(&json!([["r", x, 1], ["r", y, 0], ["w", x, 2]]));
        self.txn(session, &json!([["w", x, 2]]));
        self.txn(session, &json!([["r", x, 2], ["w", x, 4]]));
        self.txn(session, &json!([["r", x, 2]]));
    }
}

/// A history with many doubts of some kinds.
fn doubtful(kinds: &[fn(&mut Log, &str)]) -> Log {
    let mut log = Log::new(&json!(0));
    for doubt in 0..DOUBTS {
        kinds[doubt % kinds.len()](&mut log, &format!("x{doubt}"));
    }
    log
}

fn check(log: &Log, level: &str, status: i32) -> String {
    let scratch = Scratch::new();
    let history = scratch.put("history.jsonl", &log.lines);
    expect(status, &["check", &history, "--level", level]).stdout
}

#[test]
fn twenty_doubtful_ends_are_not_a_million_checks() {
    for level in ["ser", "si"] {
        check(&doubtful(&[Log::open_doubt]), level, 0);
        check(&doubtful(&[Log::lost]), level, 0);
        check(&doubtful(&[Log::took_effect]), level, 0);
        check(
            &doubtful(&[Log::took_effect, Log::lost, Log::open_doubt]),
            level,
            0,
        );
    }
}

#[test]
fn twenty_doubtful_ends_leave_a_violation_as_it_is() {
    for level in ["ser", "si"] {
        let mut log = doubtful(&[Log::open_doubt]);
        log.txn(None, &json!([["w", "z", 1]]));
        log.txn(None, &json!([["r", "z", 1], ["w", "z", 2]]));
        log.txn(None, &json!([["r", "z", 1], ["w", "z", 3]]));
        assert!(check(&log, level, 1).contains("Lost update"));
        let mut log = doubtful(&[Log::lost, Log::took_effect]);
        log.neither("z");
        let said = check(&log, level, 1);
        assert!(said.contains("took effect"), "{said}");
    }
}

#[test]
fn what_neither_case_explains_is_told_as_two_cases() {
    let scratch = Scratch::new();
    let mut log = Log::new(&json!(0));
    log.neither("x");
    let history = scratch.put("history.jsonl", &log.lines);
    let page = scratch.path("out.html");
    let said = expect(1, &["check", &history, "--report", &page]).stdout;
    assert!(said.contains("Suppose that it did take effect:"), "{said}");
    let said = expect(1, &["check", &history, "--json"]).stdout;
    let document: Value = serde_json::from_str(&said).expect("one JSON document");
    let evidence = &document["counterexample"];
    assert_eq!(evidence["kind"], "either way", "{document}");
    for case in ["lost", "took_effect"] {
        assert_eq!(evidence[case]["kind"], "cycle", "{document}");
    }
    assert!(std::fs::read_to_string(&page).is_ok_and(|it| it.contains("did take effect")));
}

#[test]
fn an_order_of_one_case_is_a_certificate_of_the_history() {
    let scratch = Scratch::new();
    let order = scratch.path("order");
    for kind in [Log::open_doubt, Log::lost, Log::took_effect] {
        let history = scratch.put("history.jsonl", &doubtful(&[kind]).lines);
        for level in ["ser", "si"] {
            let args = ["check", &history, "--level", level, "--certificate", &order];
            expect(0, &args);
            expect(0, &["verify", &history, &order]);
            std::fs::remove_file(&order).expect("it was written");
        }
    }
}

#[test]
fn ten_thousand_queries_over_ten_thousand_deleted_rows_are_decided() {
    let mut log = Log::new(&Value::Null);
    for row in 0..10_000 {
        log.txn(None, &json!([["range", null, null, []], ["w", row, 1]]));
        log.txn(None, &json!([["r", row, 1], ["w", row, null]]));
    }
    for level in ["ser", "si", "pc"] {
        check(&log, level, 0);
    }
    // Two rows at once, which a query between them must have seen.
    log.txn(None, &json!([["r", 0, 1], ["r", 1, 1]]));
    assert!(check(&log, "ser", 1).contains("violated"));
}

#[test]
fn weak_levels_choose_what_repeated_values_were_read_from() {
    let scratch = Scratch::new();
    let order = scratch.path("order");
    for level in ["rc", "rc-so", "ra", "cc"] {
        for kind in [Log::open_doubt, Log::lost, Log::took_effect] {
            let history = scratch.put("history.jsonl", &doubtful(&[kind]).lines);
            let args = ["check", &history, "--level", level, "--certificate", &order];
            expect(0, &args);
            expect(0, &["verify", &history, &order]);
            std::fs::remove_file(&order).expect("it was written");
        }
    }
    let mut log = Log::new(&json!(0));
    log.txn(None, &json!([["w", "x", 1], ["w", "y", 1]]));
    log.txn(None, &json!([["w", "x", 1], ["w", "y", 1]]));
    log.txn(None, &json!([["r", "x", 1], ["r", "y", 0]]));
    let history = scratch.put("history.jsonl", &log.lines);
    for level in ["ra", "cc"] {
        let said = expect(1, &["check", &history, "--level", level]).stdout;
        assert!(said.contains("from T0, or from T1"), "{said}");
        let said = expect(1, &["check", &history, "--level", level, "--json"]).stdout;
        let document: Value = serde_json::from_str(&said).expect("one JSON document");
        let cases = &document["counterexample"]["cases"];
        assert_eq!(cases.as_array().map(Vec::len), Some(2));
    }
}
