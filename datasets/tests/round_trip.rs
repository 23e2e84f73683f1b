//! What a writer wrote, its reader reads back: the same history, or the same up to the names that a format keeps not.

mod canonical;
mod random;

use canonical::{Names, canonical};
use kingsnake_datasets::{Format, ReadOptions, WriteError, open, read_bytes, write};
use kingsnake_solver::model::{History, HistoryBuilder, Status, Token};
use proptest::prelude::*;
use random::{Riches, histories};

fn there_and_back(history: &History, format: Format, file: &str) -> History {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join(file);
    write(history, format, &path).expect("the format can express it");
    let parsed = open(&path, &ReadOptions::default()).expect("what was written can be read");
    assert_eq!(parsed.format, format);
    parsed.history
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn our_own_format_keeps_everything(history in histories(Riches::ALL)) {
        for file in ["h.jsonl", "h.jsonl.gz", "h.jsonl.zst"] {
            let back = there_and_back(&history, Format::Kingsnake, file);
            prop_assert_eq!(canonical(&back, Names::All), canonical(&history, Names::All));
        }
    }

    #[test]
    fn dbcop_keeps_all_but_names(
        history in histories(Riches { aborted: true, empty: true, thin_air: true, ..Riches::default() })
    ) {
        let back = there_and_back(&history, Format::Dbcop, "h.bincode");
        prop_assert_eq!(canonical(&back, Names::Values), canonical(&history, Names::Values));
    }

    #[test]
    fn text_keeps_committed_transactions_with_their_names(
        history in histories(Riches { thin_air: true, ..Riches::default() })
    ) {
        let back = there_and_back(&history, Format::Text, "h.txt");
        prop_assert_eq!(canonical(&back, Names::All), canonical(&history, Names::All));
    }

    #[test]
    fn cobra_keeps_all_but_the_values_names(
        history in histories(Riches { last_unknown: true, all_times: true, empty: true, thin_air: true, ..Riches::default() })
    ) {
        let back = there_and_back(&history, Format::Cobra, "logs");
        prop_assert_eq!(canonical(&back, Names::None), canonical(&history, Names::None));
    }
}

#[test]
fn text_keeps_the_writes_of_aborted_transactions() {
    let mut builder = HistoryBuilder::new();
    builder.initial_everywhere(Token::Int(0));
    let session = builder.session(Token::Int(1));
    builder
        .begin(session, Token::Int(1), Status::Aborted)
        .unwrap();
    builder.write(Token::Int(7), Token::Int(1));
    builder.write(Token::Int(7), Token::Int(2));
    builder
        .begin(session, Token::Int(2), Status::Committed)
        .unwrap();
    builder.read(Token::Int(7), Token::Int(2));
    let back = there_and_back(&builder.finish().unwrap(), Format::Text, "h.txt");
    let statuses: Vec<Status> = back.txns().map(|txn| back.status(txn)).collect();
    assert_eq!(
        statuses,
        [Status::Aborted, Status::Aborted, Status::Committed]
    );
}

#[test]
fn a_history_that_starts_with_writes_only_does_not_come_back_as_initial_state() {
    let history = read_bytes(Format::Kingsnake, b"{\"kingsnake\":1,\"initial\":0}\n{\"id\":0,\"session\":0,\"ops\":[[\"w\",1,1]]}\n{\"id\":1,\"session\":1,\"ops\":[[\"r\",1,1]]}\n", "h").unwrap().history;
    let back = there_and_back(&history, Format::Text, "h.txt");
    assert_eq!(
        canonical(&back, Names::Values),
        canonical(&history, Names::Values)
    );
}

/// The words with which a format refuses a history.
fn refusal(ours: &str, format: Format) -> String {
    let text = format!("{{\"kingsnake\":1,\"initial\":0}}\n{ours}\n");
    let history = read_bytes(Format::Kingsnake, text.as_bytes(), "h")
        .expect("our own format reads it")
        .history;
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("out");
    let error = write(&history, format, &path).expect_err("something would be lost");
    assert!(
        !path.exists(),
        "nothing is written where something would be lost"
    );
    assert!(matches!(error, WriteError::Inexpressible { .. }));
    error.to_string()
}

#[test]
fn a_format_names_what_it_cannot_express() {
    let aborted = r#"{"id":1,"session":0,"status":"aborted","ops":[["w",1,1]]}"#;
    assert!(refusal(aborted, Format::Cobra).contains("aborted transactions (transaction 1)"));
    let unknown = r#"{"id":1,"session":0,"status":"unknown","ops":[["w",1,1]]}"#;
    assert!(refusal(unknown, Format::Text).contains("end is unknown"));
    assert!(refusal(unknown, Format::Dbcop).contains("end is unknown"));
    let list = r#"{"id":"t","session":0,"ops":[["a",1,1]]}"#;
    for format in [Format::Text, Format::Dbcop, Format::Cobra] {
        assert!(refusal(list, format).contains("lists (transaction t"));
    }
    let times = r#"{"id":1,"session":0,"begin":1,"commit":2,"ops":[]}"#;
    assert!(refusal(times, Format::Text).contains("times"));
    let half = "{\"id\":1,\"session\":0,\"begin\":1,\"ops\":[]}";
    assert!(refusal(half, Format::Cobra).contains("times of some transactions only"));
    let text = r#"{"id":1,"session":0,"ops":[["w","x",1]]}"#;
    assert!(refusal(text, Format::Dbcop).contains("key x"));
    let twice = "{\"id\":1,\"session\":0,\"ops\":[[\"w\",1,1],[\"w\",1,1]]}";
    assert!(refusal(twice, Format::Cobra).contains("repeated values"));
    let level = r#"{"id":1,"session":0,"isolation":"ser","ops":[]}"#;
    assert!(refusal(level, Format::Dbcop).contains("isolation levels"));
    let order = r#"{"version_order":{"key":1,"values":[2]}}"#;
    assert!(refusal(order, Format::Text).contains("version orders (key 1"));
}

#[test]
fn a_format_that_is_only_read_says_so() {
    let history = HistoryBuilder::new().finish().unwrap();
    let error = write(&history, Format::Viper, "nowhere".as_ref()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the viper format is read, not written; written are kingsnake, text, dbcop, cobra, jepsen-edn, jepsen-json"
    );
}

#[test]
fn names_that_are_not_kept_are_told() {
    let text = "{\"kingsnake\":1}\n{\"id\":\"a\",\"session\":\"s\",\"ops\":[[\"r\",1,null]]}\n";
    let history = read_bytes(Format::Kingsnake, text.as_bytes(), "h")
        .unwrap()
        .history;
    let directory = tempfile::tempdir().unwrap();
    let notes = write(&history, Format::Dbcop, &directory.path().join("h")).unwrap();
    assert_eq!(notes.len(), 3, "{notes:?}");
}

#[test]
fn logs_are_not_written_among_others() {
    let history = one_session();
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("T1.log"), b"").unwrap();
    let error = write(&history, Format::Cobra, directory.path()).unwrap_err();
    assert!(error.to_string().contains("already there"));
}

#[test]
fn jepsens_formats_keep_what_bears_on_a_verdict() {
    use kingsnake_datasets::store::StoreRun;
    use kingsnake_datasets::workloads::{self, Parameters};
    for (name, format) in [
        ("mini", Format::JepsenEdn),
        ("list-append", Format::JepsenEdn),
        ("blindw-rw", Format::JepsenJson),
        ("list-append", Format::JepsenJson),
    ] {
        let parameters = Parameters {
            n_keys: Some(20),
            ..Parameters::default()
        };
        let workload = workloads::find(name).unwrap().make(&parameters).unwrap();
        let run = StoreRun {
            n_txns: 200,
            n_clients: 5,
            keep_aborted: true,
            max_writes_per_key: Some(10),
            ..StoreRun::default()
        };
        for times in [true, false] {
            let history = run.run(&*workload).unwrap().history(false, times).unwrap();
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("history");
            kingsnake_datasets::write(&history, format, &path).unwrap();
            let read = kingsnake_datasets::open(&path, &ReadOptions::default()).unwrap();
            assert_eq!(read.format, format, "{name}");
            assert_eq!(read.warnings, Vec::<String>::new());
            let again = read.history;
            assert_eq!(again.n_txns(), history.n_txns());
            assert_eq!(again.n_sessions(), history.n_sessions());
            assert_eq!(again.has_times(), times);
            let committed = |history: &kingsnake_history::model::History| {
                let all = history.txns().filter(|&txn| {
                    history.status(txn) == kingsnake_history::model::Status::Committed
                });
                let told = all.map(|txn| {
                    let ops = history.ops(txn).len();
                    let times = history.interval(txn);
                    (times.begin, times.commit, ops)
                });
                let mut told: Vec<_> = told.collect();
                told.sort_unstable();
                told
            };
            assert_eq!(committed(&again), committed(&history), "{name}");
        }
    }
}

#[test]
fn an_empty_history_is_read_back_or_refused_by_the_writer() {
    let empty = HistoryBuilder::new().finish().expect("a history");
    let mut builder = HistoryBuilder::new();
    let session = builder.session(Token::Int(0));
    builder
        .begin(session, Token::Int(1), Status::Committed)
        .expect("a new transaction");
    let silent = builder.finish().expect("a history");
    let directory = tempfile::tempdir().expect("a temporary directory");
    for (at, history) in [empty, silent].iter().enumerate() {
        for format in Format::WRITTEN {
            let path = directory.path().join(format!("{format}{at}"));
            let refused = match write(history, format, &path) {
                Ok(_) => {
                    let back = open(&path, &ReadOptions::default()).expect("it can be read");
                    assert_eq!(back.history.n_txns(), history.n_txns(), "{format}");
                    false
                }
                Err(WriteError::Inexpressible { .. }) => true,
                Err(error) => panic!("{format}: {error}"),
            };
            assert!(!refused || !path.exists(), "{format}");
            println!(
                "{format}, {} transactions: refused {refused}",
                history.n_txns()
            );
        }
    }
}

fn one_session() -> History {
    let mut builder = HistoryBuilder::new();
    builder.session(Token::Int(0));
    builder.finish().expect("a history")
}
