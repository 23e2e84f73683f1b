//! Rows with columns, and operations that choose rows by a condition: what our format says, what it refuses, and that what is
//! written is read back.

mod refusal;

use kingsnake_datasets::{Format, Place, read_bytes, write};
use kingsnake_solver::model::{Act, Column, History, Op, Snapshot, Token, TxnId, ValueId};
use refusal::{error, read};

const ALL: &str = r#"{"kingsnake":1,"tables":{"t":["c0","c1"],"u":[]}}
{"initial":{"key":"t/0","value":0,"row":{"c0":7}}}
{"version_order":{"key":"t/1","values":[1,2,{"deleted":"gone"}]}}
{"id":1,"session":"a","xid":100,"start_ts":5,"commit_ts":6,"ops":[["w","t/1",1,{"c0":3,"c1":"x"}],["insert","u/1",1],["r","t/0",0]]}
{"id":2,"session":"b","xid":101,"ops":[["select",{"table":"t","where":["and",["between","c0",3,9],["not",["is-null","c1"]]]},[["t/1",1]],{"pg":"101:103:102"}],["aggregate",{"table":"t"},"count",null,2,{"at":6}]]}
{"id":3,"session":"a","xid":102,"ops":[["update",{"table":"t","where":["or",["=","c1","x"],["<>","c0",{"column":"c1"}],["in","key",["t/1",null,4]]]},[["t/1",1,2,{"c1":"y"}]]],["aggregate",{"table":"t","where":[">=","value",-1]},"max","c0",7,{"set":[["t/1",2],["t/0",0]]}],["delete",{"table":"t","where":["=","c1","y"]},[["t/1",2,"gone"]]],["select",{"table":"u","where":false},[]]]}
{"id":4,"session":"b","ops":[["update",{"table":"u"},[["u/1",5]],{"set":[["t/1",{"deleted":"gone"}]]}]]}
"#;

fn read_back(history: &History) -> String {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let path = folder.path().join("h.jsonl");
    write(history, Format::Kingsnake, &path).expect("our format expresses everything");
    std::fs::read_to_string(path).expect("it was written")
}

#[test]
fn what_predicates_chose_stands_among_the_operations() {
    let history = read(Format::Kingsnake, ALL).history;
    assert_eq!(history.n_predicates(), 7);
    // Session a has the transactions 1 and 3, session b has 2 and 4.
    let third = TxnId(1);
    assert_eq!(history.txn_name(third), "3");
    let predicates: Vec<_> = history.predicates(third).collect();
    assert_eq!(predicates.len(), 4);
    assert_eq!((predicates[0].at, predicates[0].n_ops), (0, 2));
    assert_eq!((predicates[1].at, predicates[1].n_ops), (2, 0));
    assert_eq!((predicates[2].at, predicates[2].n_ops), (2, 2));
    assert_eq!((predicates[3].at, predicates[3].n_ops), (4, 0));
    assert_eq!(predicates[2].act, Act::Delete);
    let Op::Write { value, .. } = history.ops(third)[1] else {
        panic!("an update writes after it has read");
    };
    assert_eq!(history.cell(value, Column::Cell(0)), Token::Nil);
    let y = history.symbols().find("y").expect("it is in the file");
    assert_eq!(history.cell(value, Column::Cell(1)), Token::Text(y));
    assert_eq!(
        history.condition_text(predicates[0].query),
        "c1 = 'x' or c0 <> c1 or key in ('t/1', null, 4)"
    );
    let second = TxnId(2);
    assert_eq!(history.stamps(second).xid, Some(101));
    assert_eq!(history.stamps(TxnId(0)).commit_ts, Some(6));
    let select = history.predicates(second).next().expect("it has two");
    let running = vec![102];
    assert_eq!(
        select.snapshot,
        Some(Snapshot::Postgres {
            xmin: 101,
            xmax: 103,
            running
        })
    );
    let rows: Vec<ValueId> = (0..history.n_values() as u32)
        .map(ValueId)
        .filter(|&value| history.satisfies(select.query, value))
        .collect();
    assert_eq!(
        rows.len(),
        1,
        "only the first version of t/1 has c0 from 3 to 9"
    );
}

#[test]
fn what_is_written_is_read_back() {
    let history = read(Format::Kingsnake, ALL).history;
    let text = read_back(&history);
    let again = read(Format::Kingsnake, &text).history;
    assert_eq!(read_back(&again), text);
    assert_eq!(again.all_predicates().len(), history.all_predicates().len());
    for line in ALL.lines().filter(|line| line.contains("\"id\"")) {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
}

#[test]
fn other_formats_refuse_rows_and_stamps() {
    let history = read(Format::Kingsnake, ALL).history;
    let folder = tempfile::tempdir().expect("a folder can be made");
    for format in [Format::Text, Format::Cobra, Format::Dbcop] {
        let answer = write(&history, format, &folder.path().join("x"));
        assert!(answer.is_err(), "{format:?} has no words for rows");
    }
}

#[test]
fn predicates_that_mean_nothing_are_refused_by_line_and_field() {
    let head = "{\"kingsnake\":1,\"tables\":{\"t\":[\"c0\",\"c1\"]}}\n";
    let txn = |ops: &str| {
        format!(
            "{head}{{\"id\":1,\"session\":1,\"xid\":7,\"ops\":[[\"w\",1,1,{{\"c0\":1}}]]}}\n{{\"id\":2,\"session\":1,\"ops\":[{ops}]}}\n"
        )
    };
    let wrong = [
        (
            r#"["select",{"table":"t","where":["<","c9",1]},[]]"#,
            "column `c9`, expected a column of the table: c0, c1, key, value",
        ),
        (r#"["w",2,2,{"c7":1}]"#, "column `c7`"),
        (r#"["aggregate",{"table":"t"},"min","c9",3]"#, "column `c9`"),
        (
            r#"["select",{"table":"s"},[]]"#,
            "a query of table `s`, expected a table that the header declares: t",
        ),
        (r#"["w",null,2,{"c0":1}]"#, "a row without a primary key"),
        (
            r#"["select",{"table":"t"},[[null,1]]]"#,
            "a row has a primary key",
        ),
        (r#"["w",2,2]"#, "a write of key 2 without its row"),
        (
            r#"["update",{"table":"t"},[[1,1,2]]]"#,
            "a write of key 1 without its row",
        ),
        (
            r#"["select",{"table":"t"},[],{"pg":"7:9:8"}]"#,
            "names transaction 8 as running",
        ),
        (
            r#"["select",{"table":"t"},[],{"pg":"7:9:12"}]"#,
            "lists 12, which is not from 7 to 9",
        ),
        (
            r#"["select",{"table":"t"},[],{"pg":"7-9"}]"#,
            "xmin:xmax:xip",
        ),
        (
            r#"["select",{"table":"t"},[],{"set":[[1,5]]}]"#,
            "names value 5 of key 1, which no transaction wrote",
        ),
        (
            r#"["select",{"table":"t"},[],{"now":1}]"#,
            "a snapshot: \"set\", \"at\" or \"pg\"",
        ),
        (
            r#"["select",{"table":"t","where":["like","c0",1]},[]]"#,
            "a condition: \"and\"",
        ),
        (
            r#"["aggregate",{"table":"t"},"avg","c0",3]"#,
            "\"count\", \"min\", \"max\" or \"sum\"",
        ),
        (
            r#"["aggregate",{"table":"t"},"min",null,3]"#,
            "the name of a column",
        ),
        (
            r#"["select",{"table":"t"},[[1,null]]]"#,
            "null means that there is no row",
        ),
        (
            r#"["w",1,1,{"c0":2}]"#,
            "two different rows for key 1 with value 1",
        ),
    ];
    for (ops, words) in wrong {
        let error = error(Format::Kingsnake, &txn(ops));
        assert_eq!(error.place(), Place::Line(3), "{ops}: {error}");
        assert!(error.to_string().contains(words), "{ops}: {error}");
    }
    let tables = [
        (r#"{"a/b":[]}"#, "no name for a table"),
        (
            r#"{"t":["c","c"]}"#,
            "column c of table t is declared twice",
        ),
        (
            r#"{"t":["key"]}"#,
            "column key of table t is declared twice",
        ),
        (r#"{"t":[],"t":[]}"#, "table t is declared twice"),
    ];
    for (table, words) in tables {
        let error = error(
            Format::Kingsnake,
            &format!("{{\"kingsnake\":1,\"tables\":{table}}}\n"),
        );
        assert_eq!(error.place(), Place::Line(1));
        assert!(error.to_string().contains(words), "{table}: {error}");
    }
}

#[test]
fn a_truncated_file_never_panics() {
    for end in 0..ALL.len() {
        drop(read_bytes(Format::Kingsnake, &ALL.as_bytes()[..end], "h"));
    }
}
