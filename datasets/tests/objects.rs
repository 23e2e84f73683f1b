//! Sets, counters and savepoints in both formats that have words for them.

use kingsnake_datasets::{Format, read_bytes, write};
use kingsnake_solver::model::{History, Op, Status};

fn parsed(text: &str) -> Result<History, String> {
    let format = if text.starts_with("{:") {
        Format::JepsenEdn
    } else {
        Format::Kingsnake
    };
    let parsed = read_bytes(format, text.as_bytes(), "h");
    parsed.map(|it| it.history).map_err(|why| why.to_string())
}

/// A history in our own format, as it is written.
fn written(history: &History) -> String {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("h.jsonl");
    write(history, Format::Kingsnake, &path).expect("our own format can express it");
    std::fs::read_to_string(&path).expect("it was written")
}

const EDN: &str = "\
{:type :ok, :process 0, :index 0, :f :txn, :value [[:add 5 1] [:add :y \"1\"] [:inc :c] [:inc :c 3]]}
{:type :ok, :process 1, :index 1, :f :txn, :value [[:r 5 #{1}] [:r :y #{\"1\"}] [:r :c 4] [:r 6 #{}]]}
{:type :info, :process 2, :index 2, :f :txn, :value [[:add 5 2] [:r :c nil]]}
";

const JSON: &str = r#"{"kingsnake":1,"initial":null}
{"id":0,"session":0,"ops":[["add",5,1],["add",":y","1"],["inc",":c",1],["inc",":c",3]]}
{"id":1,"session":1,"ops":[["rs",5,[1]],["rs",":y",["1"]],["rc",":c",4],["rs",6,[]]]}
{"id":2,"session":2,"status":"unknown","ops":[["add",5,2]]}
"#;

#[test]
fn both_formats_have_words_for_sets_and_counters() {
    let history = parsed(EDN).unwrap();
    assert_eq!(written(&history), JSON);
    let again = parsed(JSON).unwrap();
    assert_eq!(written(&again), JSON);
    assert!(again.has_objects() && again.tables().len() == 4);
}

#[test]
fn a_set_that_a_register_holds_is_a_value() {
    let text = "\
{:type :ok, :process 0, :index 0, :f :txn, :value [[:w :x #{1 2}]]}
{:type :ok, :process 1, :index 1, :f :txn, :value [[:r :x #{1 2}]]}
";
    let history = parsed(text).expect("it can be read");
    assert!(!history.has_objects());
    let values: Vec<Op> = history
        .txns()
        .flat_map(|it| history.ops(it))
        .copied()
        .collect();
    let [Op::Write { value, .. }, Op::Read { value: read, .. }] = values[..] else {
        panic!("{values:?}");
    };
    assert_eq!(value, read);
}

#[test]
fn what_was_rolled_back_is_an_aborted_transaction() {
    let text = r#"{"kingsnake":1,"initial":0}
{"id":7,"session":"a","ops":[["w","x",1],["savepoint","s"],["savepoint","t"],["w","x",2],["r","x",2],["r","y",0],["rollback-to","s"],["r","x",1],["a","l",4],["rl","l",[4]],["rollback-to","s"],["insert","z",1]]}
{"id":8,"session":"a","ops":[["r","x",1]]}
"#;
    let history = parsed(text).unwrap();
    let names: Vec<String> = history.txns().map(|txn| history.txn_name(txn)).collect();
    assert_eq!(names, ["7", "7 rolled back", "8"]);
    let statuses: Vec<Status> = history.txns().map(|txn| history.status(txn)).collect();
    let (done, lost) = (Status::Committed, Status::Aborted);
    assert_eq!(statuses, [done, lost, done]);
    let txns: Vec<_> = history.txns().collect();
    let shape = |txn| -> String {
        let letter = |op: &Op| match op {
            Op::Read { .. } => 'r',
            Op::Write { .. } => 'w',
            Op::Append { .. } => 'a',
            Op::ReadList { .. } => 'l',
            Op::Range { .. } => 'q',
        };
        history.ops(txn).iter().map(letter).collect()
    };
    // The reads of y and of x after the rollback stay; the list is read as it was without what was appended.
    assert_eq!(shape(txns[0]), "wrrlw");
    assert_eq!(shape(txns[1]), "wa");
    assert!(history.is_insert(txns[0], 4));
}

#[test]
fn a_mistake_with_savepoints_or_objects_is_told() {
    let wrong = |ops: &str| {
        let text = format!("{{\"kingsnake\":1}}\n{{\"id\":1,\"session\":1,\"ops\":[{ops}]}}\n");
        parsed(&text).expect_err(ops)
    };
    let told = wrong(r#"["rollback-to","s"]"#);
    assert!(
        told.contains("line 2") && told.contains("the name of a savepoint"),
        "{told}"
    );
    let told = wrong(r#"["savepoint","s"],["release","s"],["rollback-to","s"]"#);
    assert!(told.contains("the name of a savepoint"), "{told}");
    let told = wrong(r#"["savepoint","s"],["w",1,1],["range",0,5,[[1,1]]],["rollback-to","s"]"#);
    assert!(told.contains("after a savepoint"), "{told}");
    let told = wrong(r#"["add","x",1],["inc","x",1]"#);
    assert!(told.contains("key x is a set"), "{told}");
    let told = wrong(r#"["inc","x",1],["r","x",1]"#);
    assert!(told.contains("key x is a counter"), "{told}");
}

#[test]
fn other_formats_refuse_sets() {
    let history = parsed(JSON).unwrap();
    let directory = tempfile::tempdir().expect("a temporary directory");
    for format in [Format::Text, Format::JepsenEdn, Format::Dbcop] {
        let told = write(&history, format, &directory.path().join("h"));
        assert!(told.is_err(), "{format:?}");
    }
}
