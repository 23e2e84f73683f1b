//! Broken logs of Cobra and files of dbcop are refused at their byte.

mod refusal;

use std::fs;

use kingsnake_datasets::{Format, InputProblem, Place, ReadOptions, open, read_bytes};
use kingsnake_solver::model::Status;
use refusal::{error, read};

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
fn a_cobra_log_that_fits_no_layout_is_refused_for_that_whatever_else_is_wrong() {
    // The same transaction twice, then a record cut off: the second is what says how far the file can be trusted.
    let twice = cobra(&[(b'S', &[1]), (b'C', &[1]), (b'S', &[1]), (b'C', &[1])]);
    let duplicate = error(Format::Cobra, &twice);
    assert_eq!(duplicate.place(), Place::Offset(18));
    let cut = error(Format::Cobra, [&twice, &b"S12"[..]].concat());
    assert_eq!(
        cut.to_string(),
        "history, byte 36: found a record S cut off after 3 bytes, expected 9 bytes"
    );
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
        InputProblem::Contradiction(_)
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
        InputProblem::History(_)
    ));
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
