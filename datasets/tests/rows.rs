//! Range queries, inserts and deletes: what Viper's logs mean by them, what is refused, and what cannot be decided.

#[allow(dead_code)] // Nothing here is refused with an error that is looked at.
mod refusal;

use kingsnake_datasets::{Format, WriteError, read_bytes, write};
use kingsnake_lab::oracle;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::model::{History, Op, TxnId};
use kingsnake_solver::resolve::{NO_NODE, resolve};
use refusal::read;

const VIPER: &str = r#"{"value": [["w", 10, 100, true], ["w", 12, 120, true]]}
{"value": [["range", 10, 20, [{"id": 10, "sk": 10, "val": 100}, {"id": 12, "sk": 12, "val": 120}], []], ["d", 12, 121, 120, false, true]]}
{"value": [["range", "nil", 20, [{"id": 10, "sk": 10, "val": 100}], [{"id": 12, "sk": 12, "val": 121}]], ["r", 12, 121, true], ["r", 15, 0, false]]}
{"value": [["i", 15, 150, 0, false, true], ["i", 12, 122, 121, true, true, 1, "w"]]}
{"value": [["range", 11, "nil", [{"id": 12, "sk": 12, "val": 122}, {"id": 15, "sk": 15, "val": 150}], [], true]]}
"#;

fn spec(level: Level) -> Spec {
    level.spec(None).expect("the level needs nothing more")
}

fn viper(text: &str) -> History {
    read(Format::Viper, text).history
}

fn ours(lines: &[&str]) -> History {
    let text = format!("{{\"kingsnake\":1}}\n{}\n", lines.join("\n"));
    read(Format::Kingsnake, &text).history
}

fn ops(history: &History, txn: u32) -> Vec<String> {
    let show = |op: &Op| match *op {
        Op::Read { key, value } if history.is_tombstone(value) => {
            format!(
                "found {} {}",
                history.key_name(key),
                history.value_name(value)
            )
        }
        Op::Read { key, value } => {
            format!(
                "read {} {}",
                history.key_name(key),
                history.value_name(value)
            )
        }
        Op::Write { key, value } if history.is_tombstone(value) => {
            format!(
                "delete {} {}",
                history.key_name(key),
                history.value_name(value)
            )
        }
        Op::Write { key, value } => {
            format!(
                "write {} {}",
                history.key_name(key),
                history.value_name(value)
            )
        }
        Op::Range { range } => {
            let query = history.range(range);
            let span = query.span.show(|end| history.symbols().show(end));
            format!("range {span} {} {}", query.rows.len(), query.shows_deleted)
        }
        Op::Append { .. } | Op::ReadList { .. } => "a list".to_owned(),
    };
    history.ops(TxnId(txn)).iter().map(show).collect()
}

#[test]
fn vipers_rows_are_understood() {
    let history = viper(VIPER);
    assert_eq!(
        ops(&history, 1),
        ["range [10, 20] 2 true", "read 12 120", "delete 12 121"]
    );
    assert_eq!(
        ops(&history, 2),
        ["range (-∞, 20] 2 true", "found 12 121", "read 15 0"]
    );
    assert_eq!(
        ops(&history, 3),
        ["read 15 0", "write 15 150", "found 12 121", "write 12 122"]
    );
    assert_eq!(ops(&history, 4), ["range [11, ∞) 2 true"]);
    assert!(history.is_insert(TxnId(3), 1) && !history.is_insert(TxnId(0), 0));
    for level in [Level::Ser, Level::Si] {
        assert_eq!(oracle::holds(&history, spec(level)), Some(true));
    }
}

#[test]
fn a_viper_range_that_lacks_a_row_is_a_violation() {
    // The last query of the session misses the row that the transaction before it inserted.
    let lacking = VIPER.replace(
        ", {\"id\": 15, \"sk\": 15, \"val\": 150}], [], true]",
        "], []]",
    );
    assert_ne!(lacking, VIPER);
    let history = viper(&lacking);
    for level in [Level::Ser, Level::Si] {
        assert_eq!(oracle::holds(&history, spec(level)), Some(false));
    }
}

#[test]
fn nothing_in_a_viper_log_with_deletes_is_the_initial_state() {
    let text = VIPER.replace(
        "[\"r\", 15, 0, false]",
        "[\"r\", 15, \"nil\", false], [\"r\", 12, 121, true]",
    );
    let history = viper(&text);
    assert_eq!(ops(&history, 2)[2], "range [15, 15] 0 true");
    assert!(matches!(
        resolve(&history, &Budget::unlimited()),
        Ok(resolved) if resolved.findings().is_empty()
    ));
    assert_eq!(oracle::holds(&history, spec(Level::Ser)), Some(true));
    let without_deletes = "{\"value\": [[\"r\", 15, \"nil\", false]]}";
    assert_eq!(ops(&viper(without_deletes), 0), ["read 15 nil"]);
}

#[test]
fn vipers_rows_survive_in_our_format() {
    let history = viper(VIPER);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("h.jsonl");
    write(&history, Format::Kingsnake, &path).expect("our format can express it");
    let text = std::fs::read(&path).expect("it was written");
    let back = read_bytes(Format::Kingsnake, &text, "h.jsonl").expect("it can be read");
    for txn in 0..5 {
        let expected = ops(&history, txn).join("\n").replace(" 15 0", " 15 null");
        assert_eq!(ops(&back.history, txn).join("\n"), expected);
    }
    let level = spec(Level::Ser);
    assert_eq!(oracle::holds(&back.history, level), Some(true));
}

#[test]
fn formats_without_rows_refuse_them() {
    let histories = [
        (
            ours(&[r#"{"id":1,"session":1,"ops":[["range",1,2,[]]]}"#]),
            "range queries (transaction 1 has one)",
        ),
        (
            ours(&[r#"{"id":1,"session":1,"ops":[["delete",1,5]]}"#]),
            "deletes (transaction 1 has one)",
        ),
        (
            ours(&[r#"{"id":1,"session":1,"ops":[["delete",1]]}"#]),
            "deletes (transaction 1 has one)",
        ),
    ];
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (history, words) in &histories {
        for format in [Format::Text, Format::Dbcop, Format::Cobra] {
            let refused = write(history, format, &directory.path().join("h"));
            let Err(WriteError::Inexpressible { what, .. }) = refused else {
                panic!("{format:?} has no words for it");
            };
            assert_eq!(what, *words, "{format:?}");
        }
    }
}

#[test]
fn an_insert_is_written_as_a_write_where_there_are_no_inserts() {
    let history = ours(&[r#"{"id":1,"session":1,"ops":[["insert",1,5],["r",1,5]]}"#]);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("h.txt");
    write(&history, Format::Text, &path).expect("an insert is a write");
    let text = std::fs::read_to_string(path).expect("it was written");
    assert_eq!(text, "w(1,5,1,1)\nr(1,5,1,1)\n");
}

#[test]
fn an_absence_that_may_be_two_things_has_both_for_candidates() {
    let insert = r#"{"id":1,"session":1,"ops":[["insert",7,1]]}"#;
    let query = r#"{"id":3,"session":3,"ops":[["range",1,9,[]]]}"#;
    let hidden = [
        insert,
        r#"{"id":2,"session":2,"ops":[["delete",7]]}"#,
        query,
    ];
    // The query may have run before the insert or after the delete.
    let resolved = resolve(&ours(&hidden), &Budget::unlimited()).expect("it can be resolved");
    let [read] = resolved.uncertain() else {
        panic!("one read is uncertain");
    };
    let versions = resolved.versions();
    let writers = read
        .candidates
        .iter()
        .map(|&version| versions.writer(version));
    assert_eq!(writers.collect::<Vec<_>>(), [NO_NODE, 1]);
    // A client that sees tombstones leaves no doubt, whichever it was.
    let delete = r#"{"id":2,"session":2,"ops":[["delete",7,"t"]]}"#;
    for query in [
        r#"{"id":3,"session":3,"ops":[["range",1,9,[],[]]]}"#,
        r#"{"id":3,"session":3,"ops":[["range",1,9,[],[[7,"t"]]]]}"#,
        r#"{"id":3,"session":3,"ops":[["r",7,null,null]]}"#,
        r#"{"id":3,"session":3,"ops":[["r",7,null,"t"]]}"#,
    ] {
        let resolution = resolve(&ours(&[insert, delete, query]), &Budget::unlimited());
        assert!(matches!(resolution, Ok(resolved) if resolved.findings().is_empty()));
    }
    // So does a row that was there from the start: only the delete can have removed it.
    let initial = r#"{"initial":{"key":7,"value":0}}"#;
    let resolution = resolve(&ours(&[initial, hidden[1], query]), &Budget::unlimited());
    assert!(matches!(resolution, Ok(resolved) if resolved.findings().is_empty()));
}

#[test]
fn a_damaged_log_of_rows_is_read_or_refused_and_never_a_panic() {
    let ours = r#"{"kingsnake":1}
{"id":1,"session":1,"ops":[["range",{"after":1},{"before":9},[[2,3],[4,5]],[[7,"t"]]],["delete",2,"d"],["insert",2,9],["r",2,null,"d"]]}"#;
    for (format, text) in [(Format::Viper, VIPER), (Format::Kingsnake, ours)] {
        for at in 0..text.len() {
            for byte in *b"[]{},:\"n0-x" {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                let _ = read_bytes(format, &bytes, "damaged");
                bytes.remove(at);
                let _ = read_bytes(format, &bytes, "damaged");
                let _ = read_bytes(format, &text.as_bytes()[..at], "damaged");
            }
        }
    }
}
