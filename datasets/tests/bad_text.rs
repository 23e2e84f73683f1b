//! Broken lines of the text formats and of our own are refused by their number.

mod refusal;

use std::fs;

use kingsnake_datasets::{Format, InputProblem, Place, ReadOptions, open};
use kingsnake_solver::model::BuildError;
use refusal::{error, read};

#[test]
fn a_bad_line_of_text_is_named_by_its_number() {
    let wrong = [
        (
            "r(1,2,3,4)\nw(1,2,3\n",
            2,
            "the end of the line`, expected `,`",
        ),
        (
            "r(1,2,3,4)\n\nx(1,2,3,4)\n",
            3,
            "`x(1,2,3,4)`, expected `r(key",
        ),
        ("r(1,two,3,4)\n", 1, "`two,3,4)`, expected a whole number"),
        (
            "r(1,2,3,99999999999999999999)",
            1,
            "expected a whole number of 64 bits",
        ),
        ("r(1,2,3,4) r(1,2,3,4)\n", 1, "expected the end of the line"),
        ("r(1,2,3,-1)\n", 1, "transaction -1 of a read"),
        ("w(1,2,3,-2)\n", 1, "transaction -2 of a write"),
        ("\u{fe}r(1,2,3,4)\n", 1, "expected `r(key"),
    ];
    for (text, line, words) in wrong {
        let error = error(Format::Text, text);
        assert_eq!(error.place(), Place::Line(line), "{error}");
        assert!(
            error
                .to_string()
                .replace("the end of the line,", "the end of the line`,")
                .contains(words),
            "{error}"
        );
    }
    let not_utf8 = error(Format::Text, b"r(1,2,3,4)\n\xff\xfe\n");
    assert_eq!(not_utf8.place(), Place::Line(2));
    assert!(
        not_utf8
            .to_string()
            .contains("byte 0xff, which is no UTF-8 text"),
        "{not_utf8}"
    );
}

#[test]
fn a_transaction_in_two_sessions_is_refused() {
    let text = error(Format::Text, "w(1,1,0,7)\nr(1,1,1,7)\n");
    assert!(
        matches!(
            text.problem(),
            InputProblem::History(BuildError::TwoSessions { .. })
        ),
        "{text}"
    );
    assert_eq!(text.place(), Place::Line(2));
    let interleaved = error(
        Format::Text,
        "w(1,1,0,7)\nr(1,1,1,8)\nr(1,1,0,7)\nr(1,1,1,7)\n",
    );
    assert!(matches!(
        interleaved.problem(),
        InputProblem::History(BuildError::TwoSessions { .. })
    ));
    assert_eq!(interleaved.place(), Place::Line(4));
    let lists = error(Format::ListAppendText, "2\n0 7 A 1 1\n1 7 A 1 2\n");
    assert!(matches!(
        lists.problem(),
        InputProblem::History(BuildError::TwoSessions { .. })
    ));
    let ours = error(
        Format::Kingsnake,
        "{\"kingsnake\":1}\n{\"id\":1,\"session\":0,\"ops\":[]}\n{\"id\":1,\"session\":1,\"ops\":[]}\n",
    );
    assert_eq!(
        ours.to_string(),
        "history, line 3: transaction 1 appears in session 0 and in session 1"
    );
}

#[test]
fn interleaved_lines_make_whole_transactions() {
    let history = read(
        Format::Text,
        "w(1,1,0,7)\nr(2,0,1,8)\nw(2,2,0,7)\nw(3,3,1,8)\n",
    )
    .history;
    let lengths: Vec<usize> = history.txns().map(|txn| history.ops(txn).len()).collect();
    assert_eq!(lengths, [2, 2]);
    let lists = read(
        Format::ListAppendText,
        "4\n0 7 A 1 1\n1 8 R 1 0\n0 7 A 1 2\n1 8 R 1 2 1 2\n",
    )
    .history;
    assert_eq!(lists.n_txns(), 2);
}

#[test]
fn list_append_text_must_have_as_many_lines_as_it_says() {
    let short = error(Format::ListAppendText, "3\n0 7 A 1 1\n");
    assert!(
        short.to_string().contains("found 1 operations, expected 3"),
        "{short}"
    );
    let absurd = error(Format::ListAppendText, "1\n0 7 R 1 99999999999 1\n");
    assert!(
        absurd.to_string().contains("a list of 99999999999 items"),
        "{absurd}"
    );
    let missing = error(Format::ListAppendText, "1\n0 7 R 1 3 1\n");
    assert_eq!(missing.place(), Place::Line(2));
}

#[test]
fn awdit_text_is_checked_line_by_line() {
    assert_eq!(error(Format::Awdit, "w 1 1\n--\n").place(), Place::Line(2));
    assert_eq!(error(Format::Awdit, "w 1\n").place(), Place::Line(1));
    let empty_session = read(Format::Awdit, "w 1 1\n=====\n=====\nr 1 1");
    assert_eq!(empty_session.warnings, ["session 1 is empty"]);
    assert_eq!(empty_session.history.n_sessions(), 3);
}

#[test]
fn our_own_format_is_strict() {
    let line = |line: &str| format!("{{\"kingsnake\":1}}\n{line}\n");
    let wrong = [
        ("{\"kingsnake\":2}".to_owned(), 1, "version 2"),
        (
            "{\"initial\":0}".to_owned(),
            1,
            "a header without a version",
        ),
        (
            "{\"kingsnake\":1,\"author\":\"x\"}".to_owned(),
            1,
            "field `author`",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[],"colour":1}"#),
            2,
            "field `colour`",
        ),
        (line(r#"{"id":1,"session":0}"#), 2, "without field `ops`"),
        (
            line(r#"{"id":1,"ops":[["r",1,1]]}"#),
            2,
            "without field `session`",
        ),
        (line(r#"{"session":1,"ops":[]}"#), 2, "without field `id`"),
        (
            line(r#"{"id":1,"id":2,"session":0,"ops":[]}"#),
            2,
            "`id` appears twice",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[],"ops":[]}"#),
            2,
            "`ops` appears twice",
        ),
        (
            line(r#"{"id":1,"session":0,"status":"done","ops":[]}"#),
            2,
            "expected \"committed\"",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["x",1,1]]}"#),
            2,
            "expected an operation",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["range",1,1]]}"#),
            2,
            "expected `,`",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["range",1,5,[[6,1]]]]}"#),
            2,
            "the range query of [1, 5] returned key 6, which is outside",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["range",{"after":1},{"before":5},[[5,1]]]]}"#),
            2,
            "the range query of (1, 5) returned key 5, which is outside",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["range",1,"z",[]]]}"#),
            2,
            "both must be numbers, or both texts",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["range",{"before":1},5,[]]]}"#),
            2,
            "expected \"after\"",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["range",{"after":null},5,[]]]}"#),
            2,
            "bounds nothing",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["range",1,5,[[2,null]]]]}"#),
            2,
            "key 2 with null, which means that there is no row",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["insert",1,null]]}"#),
            2,
            "null means that there is no row",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["r",1,2,7]]}"#),
            2,
            "only a read of null can name a delete",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["r",1,1.5]]}"#),
            2,
            "a whole number of 64 bits",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["r",1,true]]}"#),
            2,
            "a whole number, a text or null",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[["r",1]]}"#),
            2,
            "expected `,`",
        ),
        (
            line(r#"{"id":1,"session":0,"begin":5,"commit":4,"ops":[]}"#),
            2,
            "commits at 4, before it begins at 5",
        ),
        (
            line(r#"{"id":1,"session":0,"ops":[]} x"#),
            2,
            "the end of the line",
        ),
        (line(r#"{"id":1,"session":0,"ops":["#), 2, "expected `[`"),
        (
            line(r#"{"version_order":{"key":1,"values":[1,1]}}"#),
            2,
            "names value 1 twice",
        ),
        (
            line(
                "{\"version_order\":{\"key\":1,\"values\":[1]}}\n{\"version_order\":{\"key\":1,\"values\":[2]}}",
            ),
            3,
            "two version orders",
        ),
        (
            line(r#"{"initial":{"value":1,"key":1}}"#),
            2,
            "field \"key\"",
        ),
    ];
    for (text, at, words) in wrong {
        let error = error(Format::Kingsnake, &text);
        assert_eq!(error.place(), Place::Line(at), "{text}: {error}");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
    let bad_text = error(
        Format::Kingsnake,
        b"{\"kingsnake\":1}\n{\"id\":\"\xff\",\"session\":0,\"ops\":[]}\n",
    );
    assert!(bad_text.to_string().contains("no UTF-8 text"), "{bad_text}");
}

#[test]
fn fields_of_our_own_format_may_come_in_any_order() {
    let text = "{\"initial\":[0,null],\"about\":\"a test\",\"kingsnake\":1}\r\n\r\n{ \"ops\" : [ [ \"w\" , \"x\\n\" , 1 ] , [\"rl\",\"y\",[1,2]] ] , \"session\" : \"s\" , \"commit\":9, \"id\" : \"t\" }\r\n{\"initial\":{\"key\":\"z\",\"value\":5}}";
    let history = read(Format::Kingsnake, text).history;
    assert_eq!(history.n_txns(), 1);
    assert_eq!(history.n_ops(), 2);
    // A name is for people, so the line break in it is spelt out.
    assert_eq!(history.key_name(kingsnake_solver::model::KeyId(0)), r"x\n");
}

#[test]
fn version_orders_may_stand_beside_the_history() {
    let directory = tempfile::tempdir().unwrap();
    let history = directory.path().join("h.txt");
    let beside = directory.path().join("orders.jsonl");
    fs::write(&history, "w(1,1,0,0)\nw(1,2,1,1)\nr(1,0,2,2)\n").unwrap();
    fs::write(
        &beside,
        "{\"version_order\":{\"key\":1,\"values\":[2,1]}}\n",
    )
    .unwrap();
    let mut options = ReadOptions {
        version_order: Some(beside.clone()),
        ..ReadOptions::default()
    };
    let parsed = open(&history, &options).unwrap();
    assert_eq!(parsed.history.version_orders().len(), 1);
    fs::write(&beside, "{\"order\":1}\n").unwrap();
    assert!(
        open(&history, &options)
            .unwrap_err()
            .to_string()
            .contains("field `order`")
    );
    options.version_order = Some(directory.path().join("none"));
    assert!(open(&history, &options).is_err());
}
