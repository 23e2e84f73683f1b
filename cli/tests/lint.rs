//! Mistakes of the log are told as such, and a log without them is left alone.

mod run;

use std::io::Write;
use std::process::Stdio;

use run::{Scratch, corpus, expect, kingsnake};

fn remarks(body: &str) -> String {
    let scratch = Scratch::new();
    let history = scratch.put("h.jsonl", body);
    expect(1, &["lint", &history]).stdout
}

#[test]
fn each_mistake_is_named_with_what_to_write() {
    for (body, words) in [
        ("{\"kingsnake\":1}\n", "there is no transaction"),
        (
            "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n",
            "nothing is read",
        ),
        (
            "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",0],[\"r\",\"y\",0]]}\n",
            "{\"kingsnake\":1,\"initial\":0}",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
             {\"id\":2,\"session\":2,\"ops\":[[\"r\",\"x\",\"1\"]]}\n",
            "1 and \"1\" both occur",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
             {\"id\":2,\"session\":2,\"ops\":[[\"w\",\"x\",1],[\"r\",\"y\",0]]}\n",
            "written by several transactions",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n\
             {\"id\":1,\"session\":1,\"begin\":10,\"commit\":30,\"ops\":[[\"r\",\"x\",0]]}\n\
             {\"id\":2,\"session\":1,\"begin\":20,\"commit\":40,\"ops\":[[\"r\",\"x\",0]]}\n",
            "one transaction at a time",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n\
             {\"id\":1,\"session\":1,\"begin\":1700000000000,\"commit\":1700000000009,\"ops\":[[\"r\",\"x\",0]]}\n",
            "milliseconds since 1970",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n\
             {\"id\":1,\"session\":1,\"begin\":1,\"commit\":2,\"ops\":[[\"r\",\"x\",0]]}\n\
             {\"id\":2,\"session\":2,\"begin\":3,\"commit\":4,\"ops\":[[\"r\",\"x\",0]]}\n",
            "no two transactions overlap",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",null],[\"w\",\"x\",1]]}\n",
            "1 read of null, although every key begins with 0",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1700000000000,\"session\":1,\"ops\":[[\"r\",\"x\",0]]}\n\
             {\"id\":1700000000017,\"session\":2,\"ops\":[[\"r\",\"x\",0]]}\n",
            "every id looks like a time, such as 1700000000000",
        ),
    ] {
        let said = remarks(body);
        assert!(said.contains(words), "{words}: {said}");
        assert_eq!(
            said.lines().count(),
            1,
            "one remark for one mistake: {said}"
        );
    }
}

#[test]
fn a_verdict_that_smells_of_a_logging_mistake_comes_with_a_hint() {
    let scratch = Scratch::new();
    for (body, status, words) in [
        (
            "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",0]]}\n",
            1,
            "{\"kingsnake\":1,\"initial\":0}",
        ),
        (
            "{\"kingsnake\":1,\"initial\":0}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
             {\"id\":2,\"session\":2,\"ops\":[[\"r\",\"x\",\"1\"]]}\n",
            1,
            "1 and \"1\" both occur",
        ),
        ("{\"kingsnake\":1}\n", 0, "there is no transaction"),
        (
            // The lines of session 1 stand in the opposite order of their times.
            "{\"kingsnake\":1,\"initial\":0}\n\
             {\"id\":2,\"session\":1,\"begin\":30,\"commit\":40,\"ops\":[[\"r\",\"x\",1],[\"w\",\"x\",2]]}\n\
             {\"id\":1,\"session\":1,\"begin\":10,\"commit\":20,\"ops\":[[\"r\",\"x\",0],[\"w\",\"x\",1]]}\n",
            1,
            "one transaction at a time",
        ),
    ] {
        let history = scratch.put("h.jsonl", body);
        let said = expect(status, &["check", &history]);
        assert!(
            said.stderr.contains("hint: the log may be wrong"),
            "{}",
            said.stderr
        );
        assert!(said.stderr.contains(words), "{words}: {}", said.stderr);
        let said = expect(2, &["check", &history, "--strict"]);
        assert!(
            said.stderr.contains("refused by --strict"),
            "{}",
            said.stderr
        );
    }
    // A database's own fault has none.
    let said = expect(1, &["check", &corpus("none/lost-update.jsonl")]);
    assert!(!said.stderr.contains("hint"), "{}", said.stderr);
    expect(1, &["check", &corpus("none/lost-update.jsonl"), "--strict"]);
}

#[test]
fn errors_say_where_and_what_to_write() {
    let scratch = Scratch::new();
    for (body, words) in [
        (
            "{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\",0]]}\n",
            "the header is missing: add this as the first line: {\"kingsnake\":1,\"initial\":0}",
        ),
        (
            "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",\"x\"]]}\n",
            "line 2, column 36: found `]]}`, expected `,`: a read needs a key and a value, as in [\"r\",\"x\",1]",
        ),
        (
            "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\"]]}\n",
            "a write needs a key and a value",
        ),
        (
            "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"rl\",\"x\"]]}\n",
            "a read of a list needs a key and a list",
        ),
        (
            "{\"kingsnake\":1}\n\u{feff}{\"id\":1,\"session\":1,\"ops\":[]}\n",
            "a byte-order mark in the middle of the file",
        ),
    ] {
        let history = scratch.put("h.jsonl", body);
        let said = expect(2, &["check", &history]);
        assert!(said.stderr.contains(words), "{words}\n{}", said.stderr);
    }
    let said = expect(2, &["check", &scratch.path("h.jsonl"), "--json"]);
    assert!(said.stdout.contains("\"column\": 1"), "{}", said.stdout);
}

#[test]
fn null_is_spelt_as_in_the_file_and_texts_are_quoted_where_numbers_look_the_same() {
    let scratch = Scratch::new();
    let ours = scratch.put(
        "h.jsonl",
        "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1],[\"w\",\"y\",1]]}\n\
         {\"id\":2,\"session\":2,\"ops\":[[\"r\",\"x\",1],[\"r\",\"y\",null]]}\n",
    );
    let said = expect(1, &["check", &ours]).stdout;
    assert!(
        said.contains("read y = null") && !said.contains("nil"),
        "{said}"
    );
    let edn = scratch.put(
        "h.edn",
        "{:type :ok, :f :txn, :value [[:w :x 1] [:w :y 1]], :process 0}\n\
         {:type :ok, :f :txn, :value [[:r :x 1] [:r :y nil]], :process 1}\n",
    );
    let said = expect(1, &["check", &edn]).stdout;
    assert!(said.contains("= nil") && !said.contains("null"), "{said}");
    let both = scratch.put(
        "both.jsonl",
        "{\"kingsnake\":1}\n{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n\
         {\"id\":2,\"session\":2,\"ops\":[[\"r\",\"x\",\"1\"]]}\n",
    );
    let said = expect(1, &["check", &both]).stdout;
    assert!(
        said.contains("read x = \"1\", which was never written"),
        "{said}"
    );
}

#[test]
fn a_log_without_mistakes_is_left_alone() {
    let said = expect(
        0,
        &["lint", &corpus("strong-session-ser/bank-transfer.jsonl")],
    );
    assert!(said.stdout.contains("no problems found"), "{}", said.stdout);
}

/// A client's log by a clock: so many nanoseconds between two transactions, of which the first begins at a time.
fn by_clock(first: i64, apart: i64) -> String {
    let mut lines = "{\"kingsnake\":1,\"initial\":0}\n".to_owned();
    for at in 0..20 {
        for session in 1..=2 {
            let (id, begin) = (2 * at + session, first + at * apart + session);
            let commit = begin + apart * 9 / 10;
            lines.push_str(&format!(
                "{{\"id\":{id},\"session\":{session},\"begin\":{begin},\"commit\":{commit},\"ops\":[[\"r\",\"x\",0]]}}\n"
            ));
        }
    }
    lines
}

#[test]
fn nanoseconds_since_the_machine_started_are_no_milliseconds_since_1970() {
    let scratch = Scratch::new();
    // A second, half an hour and three weeks of uptime: as large as seconds, milliseconds and microseconds since 1970.
    for (uptime, unit) in [
        (1_700_000_000, " seconds since 1970"),
        (1_700_000_000_000, "milliseconds since 1970"),
        (1_700_000_000_000_000, "microseconds since 1970"),
    ] {
        let right = scratch.put("right.jsonl", by_clock(uptime, 3_000));
        expect(0, &["lint", &right]);
        let wrong = scratch.put("wrong.jsonl", by_clock(uptime, 40));
        let said = expect(1, &["lint", &wrong]).stdout;
        assert!(said.contains(unit), "{unit}: {said}");
    }
}

#[test]
fn every_history_of_a_directory_is_read_and_one_that_cannot_be_does_not_hide_the_others() {
    let scratch = Scratch::new();
    scratch.put("a.jsonl", "{\"kingsnake\":1}\n");
    scratch.put("b.jsonl", by_clock(1, 3_000));
    let directory = scratch.path("");
    let said = expect(1, &["lint", &directory]).stdout;
    assert!(said.contains("a.jsonl: there is no transaction"), "{said}");
    assert!(said.contains("b.jsonl: no problems found"), "{said}");
    scratch.put("c.jsonl", "{\"kingsnake\":1}\n{\"id\":1\n");
    let said = expect(2, &["lint", &directory]).stdout;
    assert!(said.contains("c.jsonl: error: "), "{said}");
    assert!(said.contains("b.jsonl: no problems found"), "{said}");
}

#[test]
fn what_to_write_is_said_in_the_format_at_hand() {
    let scratch = Scratch::new();
    let edn = scratch.put(
        "h.edn",
        "{:type :ok, :f :txn, :value [[:r :x 0] [:w :x 1]], :process 0}\n\
         {:type :ok, :f :txn, :value [[:r :x 1]], :process 1}\n",
    );
    let said = expect(1, &["lint", &edn]).stdout;
    assert!(said.contains("let a first transaction write it"), "{said}");
    assert!(!said.contains("{\"kingsnake\""), "{said}");
}

#[test]
fn a_history_without_reads_holds_every_level_only_where_no_order_is_given() {
    let (write, order) = (
        "{\"id\":1,\"session\":1,\"ops\":[[\"w\",\"x\",1]]}\n{\"id\":2,\"session\":1,\"ops\":[[\"w\",\"x\",2]]}\n",
        "{\"version_order\":{\"key\":\"x\",\"values\":[2,1]}}\n",
    );
    let said = remarks(&format!("{{\"kingsnake\":1}}\n{write}"));
    assert!(said.contains("every level holds"), "{said}");
    let said = remarks(&format!("{{\"kingsnake\":1}}\n{write}{order}"));
    assert!(
        said.contains("only the recorded orders and times are checked"),
        "{said}"
    );
}

#[cfg(unix)]
#[test]
fn a_history_may_come_from_stdin_and_a_level_by_another_name() {
    let text = std::fs::read(corpus("none/lost-update.jsonl")).expect("the corpus is there");
    for level in ["serializable", "snapshot-isolation"] {
        let mut child = kingsnake(&["check", "-", "--level", level])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let mut stdin = child.stdin.take().expect("stdin is a pipe");
        stdin.write_all(&text).expect("it reads");
        drop(stdin);
        let output = child.wait_with_output().expect("the binary ends");
        assert_eq!(output.status.code(), Some(1), "{level}");
    }
}
