//! Broken input is answered with the file, the place, what was found and what was expected.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use kingsnake_datasets::{
    Format, Parsed, Place, Problem, ReadError, ReadOptions, open, read_bytes,
};
use kingsnake_solver::model::{BuildError, Status};

fn error(format: Format, bytes: impl AsRef<[u8]>) -> ReadError {
    match read_bytes(format, bytes.as_ref(), "history") {
        Err(error) => error,
        Ok(parsed) => panic!("read {} transactions", parsed.history.n_txns()),
    }
}

fn read(format: Format, bytes: impl AsRef<[u8]>) -> Parsed {
    read_bytes(format, bytes.as_ref(), "history").unwrap_or_else(|error| panic!("{error}"))
}

/// Cobra's records: a letter and big-endian numbers.
fn cobra(records: &[(u8, &[i64])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (letter, fields) in records {
        bytes.push(*letter);
        for field in *fields {
            bytes.extend(field.to_be_bytes());
        }
    }
    bytes
}

/// dbcop's header and then these numbers.
fn dbcop(numbers: &[i64]) -> Vec<u8> {
    let header = [1, 2, 3, 4, 5, 0, 0, 0];
    header
        .iter()
        .chain(numbers)
        .flat_map(|number| number.to_le_bytes())
        .collect()
}

const JEPSEN: [Format; 2] = [Format::JepsenEdn, Format::JepsenJson];

#[test]
fn an_empty_file_is_no_history() {
    for format in Format::ALL {
        if matches!(format, Format::Cobra | Format::CobraValues | Format::Viper) {
            // A session that did nothing.
            assert_eq!(read(format, "").warnings, ["session 0 is empty"]);
            continue;
        }
        assert_eq!(
            error(format, "").to_string(),
            "history: found an empty file, expected a history"
        );
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("empty");
    fs::write(&path, "").unwrap();
    let error = open(&path, &ReadOptions::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("found an empty file, expected a history")
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = open(Path::new("no/such/history"), &ReadOptions::default()).unwrap_err();
    assert!(error.to_string().starts_with("no/such/history: "));
    assert!(matches!(error.problem(), Problem::Io(_)));
}

#[test]
fn truncated_cobra_records_are_found_at_their_byte() {
    let whole = cobra(&[(b'S', &[1]), (b'W', &[5, 6, 7]), (b'C', &[1])]);
    assert_eq!(read(Format::Cobra, &whole).history.n_ops(), 1);
    let error = error(Format::Cobra, &whole[..whole.len() - 3]);
    assert_eq!(error.place(), Place::Offset(34));
    assert_eq!(
        error.to_string(),
        "history, byte 34: found a record C cut off after 6 bytes, expected 9 bytes"
    );
}

#[test]
fn cobra_records_out_of_place_are_refused() {
    let wrong = [
        (
            cobra(&[(b'W', &[5, 6, 7])]),
            0,
            "a record W, expected a record S",
        ),
        (
            cobra(&[(b'S', &[1]), (b'S', &[2])]),
            9,
            "a record S, expected a record R or W, or C",
        ),
        (
            cobra(&[(b'S', &[1]), (b'C', &[2])]),
            9,
            "the commit of another transaction",
        ),
        (
            cobra(&[(b'S', &[1]), (b'C', &[1]), (b'X', &[])]),
            18,
            "byte 0x58",
        ),
    ];
    for (bytes, at, words) in wrong {
        let error = error(Format::Cobra, bytes);
        assert_eq!(error.place(), Place::Offset(at), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn a_cobra_log_that_ends_within_a_transaction_leaves_it_unknown() {
    let bytes = cobra(&[(b'S', &[1]), (b'C', &[1]), (b'S', &[2]), (b'W', &[5, 6, 7])]);
    let history = read(Format::Cobra, bytes).history;
    let statuses: Vec<Status> = history.txns().map(|txn| history.status(txn)).collect();
    assert_eq!(statuses, [Status::Committed, Status::Unknown]);
}

#[test]
fn times_in_cobra_logs_are_found_by_themselves() {
    let bytes = cobra(&[
        (b'S', &[1, 100]),
        (b'W', &[5, 6, 7]),
        (b'C', &[1, 200]),
        (b'S', &[2, 300]),
    ]);
    let history = read(Format::Cobra, bytes).history;
    assert!(history.has_times());
    let intervals: Vec<_> = history.txns().map(|txn| history.interval(txn)).collect();
    assert_eq!((intervals[0].begin, intervals[0].commit), (100, 200));
    assert_eq!((intervals[1].begin, intervals[1].commit), (300, i64::MAX));
    let backward = cobra(&[(b'S', &[1, 100]), (b'C', &[1, 50])]);
    assert!(
        error(Format::Cobra, backward)
            .to_string()
            .contains("commits at 50, before it begins at 100")
    );
}

#[test]
fn a_cobra_read_that_contradicts_its_writer_is_refused() {
    let txn = |id: i64, body: &[(u8, &[i64])]| {
        let mut bytes = cobra(&[(b'S', &[id])]);
        bytes.extend(cobra(body));
        bytes.extend(cobra(&[(b'C', &[id])]));
        bytes
    };
    let writer = txn(1, &[(b'W', &[50, 6, 7])]);
    let honest = [writer.clone(), txn(2, &[(b'R', &[1, 50, 6, 7])])].concat();
    assert_eq!(read(Format::Cobra, honest).warnings.len(), 0);
    let wrong_txn = [writer.clone(), txn(2, &[(b'R', &[3, 50, 6, 7])])].concat();
    let error_txn = error(Format::Cobra, wrong_txn);
    assert!(
        error_txn
            .to_string()
            .contains("names transaction 3 as the writer of a version that transaction 1 wrote")
    );
    assert_eq!(error_txn.place(), Place::Offset(52));
    let before = [txn(2, &[(b'R', &[3, 50, 6, 7])]), writer.clone()].concat();
    assert!(matches!(
        error(Format::Cobra, before).problem(),
        Problem::Contradiction(_)
    ));
    let wrong_key = [writer.clone(), txn(2, &[(b'R', &[1, 50, 8, 7])])].concat();
    assert!(
        error(Format::Cobra, wrong_key)
            .to_string()
            .contains("names write id 50, which wrote key 6")
    );
    let half_initial = [writer.clone(), txn(2, &[(b'R', &[0xbebe_ebee, 50, 6, 7])])].concat();
    assert!(
        error(Format::Cobra, half_initial)
            .to_string()
            .contains("one is the initial state")
    );
    let nowhere = [writer, txn(2, &[(b'R', &[9, 90, 6, 7])])].concat();
    assert!(read(Format::Cobra, nowhere).warnings[0].contains("in no log"));
}

#[test]
fn garbage_collected_cobra_versions_are_the_initial_state() {
    const COLLECTED: i64 = 0x2333_2333;
    let one = cobra(&[
        (b'S', &[1]),
        (b'R', &[COLLECTED, COLLECTED, 6, 7]),
        (b'C', &[1]),
    ]);
    let parsed = read(Format::Cobra, one);
    assert!(parsed.warnings[0].contains("garbage-collected"));
    let two = cobra(&[
        (b'S', &[1]),
        (b'R', &[COLLECTED, COLLECTED, 6, 7]),
        (b'R', &[COLLECTED, COLLECTED, 6, 8]),
        (b'C', &[1]),
    ]);
    assert!(
        error(Format::Cobra, two)
            .to_string()
            .contains("their order is lost")
    );
}

#[test]
fn repeated_cobra_write_ids_make_values_the_identity() {
    let bytes = cobra(&[
        (b'S', &[1]),
        (b'W', &[50, 6, 70]),
        (b'C', &[1]),
        (b'S', &[2]),
        (b'W', &[50, 6, 71]),
        (b'R', &[50, 50, 6, 70]),
        (b'R', &[0xdead_beef, 0xdead_beef, 8, 0]),
        (b'C', &[2]),
    ]);
    let parsed = read(Format::Cobra, bytes);
    assert_eq!(parsed.format, Format::CobraValues);
    assert_eq!(parsed.history.n_values(), 3);
}

#[test]
fn counts_in_dbcop_files_are_checked_before_anything_is_made_of_them() {
    let wrong = [
        (dbcop(&[-1]), "-1, expected the number of sessions"),
        (
            dbcop(&[i64::MAX]),
            "9223372036854775807, expected the number of sessions",
        ),
        (dbcop(&[1, 1 << 60]), "expected the number of transactions"),
        (
            dbcop(&[1, 1, -5, 0, 0]),
            "-5, expected the number of events",
        ),
        (
            dbcop(&[1, 1, 1000, 0, 0]),
            "1000, expected the number of events, at most 0",
        ),
        (dbcop(&[]), "0 bytes, expected 8 bytes: sessions"),
        (dbcop(&[0, 7]), "8 bytes after the last session"),
    ];
    for (bytes, words) in wrong {
        let error = error(Format::Dbcop, bytes);
        assert!(error.to_string().contains(words), "{error}");
        assert!(matches!(error.place(), Place::Offset(64..)), "{error}");
    }
}

#[test]
fn texts_in_dbcop_headers_must_be_there_and_be_utf8() {
    let numbers =
        |numbers: &[i64]| -> Vec<u8> { numbers.iter().flat_map(|it| it.to_le_bytes()).collect() };
    let negative = error(Format::Dbcop, numbers(&[1, 1, 1, 1, 1, -9]));
    assert!(
        negative
            .to_string()
            .contains("-9, expected the number of info"),
        "{negative}"
    );
    let mut bytes = numbers(&[1, 1, 1, 1, 1, 2]);
    bytes.extend([0xff, 0xfe]);
    assert!(error(Format::Dbcop, bytes).to_string().contains("no UTF-8"));
    assert!(
        error(Format::Dbcop, [1; 20])
            .to_string()
            .contains("byte 16: found 4 bytes, expected 8 bytes")
    );
}

#[test]
fn failed_dbcop_writes_belong_to_an_aborted_transaction() {
    let mut bytes = dbcop(&[1, 1, 3]);
    for (is_write, key, value, success) in [(1, 7_i64, 1_i64, 1), (1, 7, 2, 0), (0, 7, 9, 0)] {
        bytes.push(is_write);
        bytes.extend(key.to_le_bytes());
        bytes.extend(value.to_le_bytes());
        bytes.push(success);
    }
    bytes.push(1);
    let history = read(Format::Dbcop, bytes).history;
    let txns: Vec<_> = history
        .txns()
        .map(|txn| {
            (
                history.txn_name(txn),
                history.status(txn),
                history.ops(txn).len(),
            )
        })
        .collect();
    assert_eq!(
        txns,
        [
            ("0".to_owned(), Status::Committed, 1),
            ("0 (its failed writes)".to_owned(), Status::Aborted, 1)
        ]
    );
}

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
            Problem::History(BuildError::TwoSessions { .. })
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
        Problem::History(BuildError::TwoSessions { .. })
    ));
    assert_eq!(interleaved.place(), Place::Line(4));
    let lists = error(Format::ListAppendText, "2\n0 7 A 1 1\n1 7 A 1 2\n");
    assert!(matches!(
        lists.problem(),
        Problem::History(BuildError::TwoSessions { .. })
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
fn a_transaction_that_appears_twice_is_refused() {
    let bytes = cobra(&[(b'S', &[1]), (b'C', &[1]), (b'S', &[1]), (b'C', &[1])]);
    let twice = error(Format::Cobra, bytes);
    assert_eq!(
        twice.to_string(),
        "history, byte 18: transaction 1 appears twice in session 0"
    );
    let ours = "{\"kingsnake\":1}\n{\"id\":\"a\",\"session\":0,\"ops\":[]}\n{\"id\":\"a\",\"session\":0,\"ops\":[]}";
    assert_eq!(error(Format::Kingsnake, ours).place(), Place::Line(3));
    let edn = "{:type :ok :process 1 :index 4 :value []} {:type :ok :process 1 :index 4 :value []}";
    assert!(matches!(
        error(Format::JepsenEdn, edn).problem(),
        Problem::History(_)
    ));
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
            "predicates, which are not supported yet",
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
    assert_eq!(
        history.key_name(history.ops(kingsnake_solver::model::TxnId(0))[0].key()),
        "x\n"
    );
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

#[test]
fn viper_operations_outside_the_model_are_refused_by_name() {
    let wrong = [
        (
            "{\"value\":[[\"r\",1,2,false]]}\n{\"value\":[[\"range\",1,2,[],[]]]}",
            2,
            "range queries are not supported yet",
        ),
        (
            "{\"value\":[[\"d\",1,true]]}",
            1,
            "deletes are not supported yet",
        ),
        (
            "{\"value\":[[\"r\",1,2,true]]}",
            1,
            "reads of deleted rows are not supported yet",
        ),
        ("{\"value\":[[\"q\",1,2,true]]}", 1, "expected an operation"),
        ("{\"values\":[]}", 1, "without field `value`"),
        (
            "{\"isInitial\":true,\"value\":[[\"r\",1,2,false]]}",
            1,
            "the initial transaction reads",
        ),
        ("{\"value\":[[\"r\",1,2,false]]", 1, "expected `,` or `}`"),
    ];
    for (text, line, words) in wrong {
        let error = error(Format::Viper, text);
        assert_eq!(error.place(), Place::Line(line), "{error}");
        assert!(error.to_string().contains(words), "{error}");
    }
}

#[test]
fn viper_initial_values_are_declared_or_inferred() {
    let initial_of = |text: &str| -> Vec<(String, bool)> {
        let history = read(Format::Viper, text).history;
        let ids = (0..history.n_values() as u32).map(kingsnake_solver::model::ValueId);
        ids.map(|id| (history.value_name(id), history.is_initial(id)))
            .collect()
    };
    let named = |values: &[(&str, bool)]| -> Vec<(String, bool)> {
        values
            .iter()
            .map(|(name, is)| ((*name).to_owned(), *is))
            .collect()
    };
    let reads = "{\"value\":[[\"r\",1,5,false],[\"r\",1,6,false],[\"i\",2,7,true],[\"r\",2,\"nil\",false]]}";
    assert_eq!(
        initial_of(reads),
        named(&[("5", true), ("6", false), ("7", false), ("nil", true)])
    );
    for first in [
        "{\"isInitial\":true,\"value\":[[\"w\",1,6,true]]}",
        "{\"value\":[[\"w\",1,6,true]],\"isInitial\":true}",
    ] {
        let values = initial_of(&format!("{first}\n{reads}"));
        assert_eq!(
            values,
            named(&[("6", true), ("5", false), ("7", false), ("nil", true)])
        );
    }
    let failed = read(
        Format::Viper,
        "{\"value\":[[\"w\",1,5,false],[\"w\",1,6,true]]}",
    )
    .history;
    assert_eq!(
        failed.status(kingsnake_solver::model::TxnId(1)),
        Status::Aborted
    );
}

#[test]
fn jepsen_events_are_checked() {
    let wrong = [
        (
            "{:type :ok, :value [[:r 1 2]]}\n{:type :maybe}",
            2,
            ":type maybe",
        ),
        ("{:value 1}", 1, "an event without :type"),
        (
            "[{:type :ok, :value [[:r 1 2]]}",
            1,
            "the end of the history's vector",
        ),
        ("{:type :ok, :value [[:r 1 2]]", 1, "expected a value"),
        (
            "{:type :ok, :value [[:inc 1 2]]}",
            1,
            "step inc is not supported",
        ),
        ("{:type :ok, :value [[:r 1 2 3]]}", 1, "a step of 4 parts"),
        ("17", 1, "an event, which is a map"),
        (
            "{:type :ok, :value [[:r 1 2] [:append 1 3]]}",
            1,
            "single value in a history of lists",
        ),
        (
            "{:type :invoke :time 5 :process 1 :value [[:w 1 1]]}\n{:type :ok :time 4 :process 1 :value [[:w 1 1]]}",
            2,
            "completes at 4",
        ),
        (
            "{:type :ok :f :transfer :value {:from 1}}",
            1,
            "operation transfer is no transaction",
        ),
    ];
    for (text, line, words) in wrong {
        let error = error(Format::JepsenEdn, text);
        assert_eq!(error.place(), Place::Line(line), "{text}: {error}");
        assert!(error.to_string().contains(words), "{text}: {error}");
    }
    for format in JEPSEN {
        let deep = "[".repeat(100_000);
        assert!(
            error(format, format!("{{:type {deep}"))
                .to_string()
                .contains("expected")
        );
        let discarded = "#_".repeat(100_000);
        assert!(error(format, discarded).to_string().contains("expected"));
        assert_eq!(
            error(format, b"{:type \"\xff\xff\"}").place(),
            Place::Line(1)
        );
    }
    let deep = format!("{{\"kingsnake\":1}}\n{{\"ops\":{}", "[".repeat(100_000));
    assert!(
        error(Format::Kingsnake, deep)
            .to_string()
            .contains("nesting")
    );
}

#[test]
fn a_directory_without_logs_says_what_it_holds() {
    let directory = tempfile::tempdir().unwrap();
    let read = || open(directory.path(), &ReadOptions::default());
    assert!(read().unwrap_err().to_string().contains("no logs"));
    fs::write(directory.path().join("notes.md"), "x").unwrap();
    fs::write(directory.path().join("todo.md"), "x").unwrap();
    assert!(
        read()
            .unwrap_err()
            .to_string()
            .ends_with("it holds notes.md, todo.md")
    );
    fs::write(directory.path().join("T1.log"), "").unwrap();
    fs::write(directory.path().join("J1.log"), "").unwrap();
    assert!(
        read()
            .unwrap_err()
            .to_string()
            .contains("say which by --format")
    );
    let options = ReadOptions {
        format: Some(Format::Viper),
        ..ReadOptions::default()
    };
    assert_eq!(
        open(directory.path(), &options).unwrap().format,
        Format::Viper
    );
    fs::write(directory.path().join("T01.log"), "").unwrap();
    assert!(
        read()
            .unwrap_err()
            .to_string()
            .contains("both the log of session 1")
    );
}

#[test]
fn an_empty_session_is_accepted_with_a_warning() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("T1.log"), "").unwrap();
    fs::write(
        directory.path().join("T2.log"),
        cobra(&[(b'S', &[1]), (b'C', &[1])]),
    )
    .unwrap();
    let parsed = open(directory.path(), &ReadOptions::default()).unwrap();
    assert_eq!(parsed.warnings, ["session 1 is empty"]);
    assert_eq!(parsed.history.n_sessions(), 2);
    let mut bytes = dbcop(&[2, 0, 0]);
    assert_eq!(read(Format::Dbcop, &bytes).warnings.len(), 2);
    bytes.pop();
    assert!(read_bytes(Format::Dbcop, &bytes, "h").is_err());
}

#[test]
fn a_decompression_bomb_meets_the_limit() {
    let directory = tempfile::tempdir().unwrap();
    let zeros = vec![b' '; 1 << 20];
    let gzip = directory.path().join("bomb.gz");
    let mut encoder = flate2::write::GzEncoder::new(
        fs::File::create(&gzip).unwrap(),
        flate2::Compression::best(),
    );
    let zstd_path = directory.path().join("bomb.zst");
    let mut zstd_encoder = zstd::Encoder::new(fs::File::create(&zstd_path).unwrap(), 3).unwrap();
    for _ in 0..64 {
        encoder.write_all(&zeros).unwrap();
        zstd_encoder.write_all(&zeros).unwrap();
    }
    encoder.finish().unwrap();
    zstd_encoder.finish().unwrap();
    let options = ReadOptions {
        max_decompressed: 1 << 20,
        ..ReadOptions::default()
    };
    for path in [gzip, zstd_path] {
        let error = open(&path, &options).unwrap_err();
        assert!(
            matches!(error.problem(), Problem::TooLarge { limit: 1_048_576 }),
            "{error}"
        );
    }
    let cut = directory.path().join("cut.gz");
    fs::write(&cut, [0x1f, 0x8b, 8, 0, 0]).unwrap();
    assert!(matches!(
        open(&cut, &options).unwrap_err().problem(),
        Problem::Io(_)
    ));
}

#[test]
fn much_garbage_is_answered_at_once() {
    const SIZE: usize = 64 << 20;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("garbage");
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = Vec::with_capacity(SIZE);
    while bytes.len() < SIZE {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    fs::write(&path, &bytes).unwrap();
    let start = Instant::now();
    assert!(matches!(
        open(&path, &ReadOptions::default()).unwrap_err().problem(),
        Problem::Unrecognised(_)
    ));
    for format in Format::ALL {
        let options = ReadOptions {
            format: Some(format),
            ..ReadOptions::default()
        };
        assert!(open(&path, &options).is_err(), "{format}");
    }
    let taken = start.elapsed();
    assert!(taken < Duration::from_secs(2), "{taken:?}");
}
