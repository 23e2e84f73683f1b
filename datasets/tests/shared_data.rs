//! Every history of the shared collection opens, in the right format and with the right counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kingsnake_datasets::{Format, InputProblem, Parsed, ReadOptions, open};
use kingsnake_solver::model::{Op, Status};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data");

// The place to say that something was skipped is the test's own output.
#[allow(clippy::print_stderr)]
/// The path of a shared history; tells visibly where there is none.
fn shared(path: &str) -> Option<PathBuf> {
    let path = Path::new(DATA).join(path);
    if path.exists() {
        return Some(path);
    }
    eprintln!("SKIPPED: {} is not here", path.display());
    None
}

fn read(path: &Path) -> Parsed {
    open(path, &ReadOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn n_reads(parsed: &Parsed) -> usize {
    let history = &parsed.history;
    let ops = history.txns().flat_map(|txn| history.ops(txn));
    ops.filter(|op| matches!(op, Op::Read { .. })).count()
}

#[test]
fn cobra_logs_have_the_counts_of_the_index() {
    // Path, format, sessions, transactions, reads, writes.
    let expected = [
        (
            "cobra/one-shot/chengRW-100",
            Format::Cobra,
            24,
            100,
            408,
            392,
        ),
        (
            "cobra/one-shot/chengRW-500",
            Format::Cobra,
            24,
            478,
            1776,
            2048,
        ),
        (
            "cobra/one-shot/chengRW-1000",
            Format::Cobra,
            24,
            961,
            3848,
            3840,
        ),
        (
            "cobra/one-shot/chengRW-2000",
            Format::Cobra,
            24,
            1930,
            7544,
            7896,
        ),
        (
            "cobra/one-shot/chengRW-4000",
            Format::Cobra,
            24,
            3808,
            15128,
            15336,
        ),
        (
            "cobra/one-shot/chengRW-10000",
            Format::Cobra,
            24,
            9564,
            38072,
            38440,
        ),
        (
            "cobra/one-shot/chengRM-10000",
            Format::Cobra,
            24,
            9912,
            71040,
            8256,
        ),
        (
            "cobra/one-shot/rubis-10000",
            Format::Cobra,
            24,
            9358,
            35770,
            11257,
        ),
        (
            "cobra/one-shot/twitter-10000",
            Format::Cobra,
            24,
            9990,
            32067,
            15913,
        ),
        (
            "cobra/one-shot/tpcc-10000",
            Format::Cobra,
            24,
            13870,
            256_711,
            63506,
        ),
        ("cobra/violations/cock-G2", Format::Cobra, 10, 446, 892, 446),
        ("cobra/violations/cock-blog", Format::Cobra, 13, 21, 18, 3),
        (
            "cobra/violations/yuga-G2-a",
            Format::Cobra,
            15,
            37190,
            61383,
            25409,
        ),
        (
            "polysi/twitter-10000",
            Format::Cobra,
            25,
            9571,
            34384,
            15433,
        ),
        (
            "viper/BlindW-RW-1000/log",
            Format::Cobra,
            24,
            962,
            3976,
            3720,
        ),
        (
            "viper/BlindW-RW-4000/log",
            Format::Cobra,
            24,
            3852,
            15944,
            14872,
        ),
        (
            "viper/BlindW-RW-1000/json",
            Format::Viper,
            24,
            962,
            3976,
            3720,
        ),
        (
            "viper/BlindW-RW-4000/json",
            Format::Viper,
            24,
            3852,
            15944,
            14872,
        ),
        (
            "veristrong/fig5/tpcc-1k",
            Format::CobraValues,
            8,
            1760,
            31441,
            9094,
        ),
        (
            "veristrong/fig5/rubis-1k",
            Format::CobraValues,
            8,
            1018,
            3886,
            1160,
        ),
        (
            "veristrong/fig5/twitter-1k",
            Format::CobraValues,
            8,
            1043,
            2976,
            1698,
        ),
    ];
    for (name, format, n_sessions, n_txns, reads, writes) in expected {
        let Some(path) = shared(name) else { continue };
        let parsed = read(&path);
        let history = &parsed.history;
        assert_eq!(parsed.format, format, "{name}");
        assert_eq!(history.n_sessions(), n_sessions, "{name}");
        assert_eq!(history.n_txns(), n_txns, "{name}");
        assert_eq!(n_reads(&parsed), reads, "{name}");
        assert_eq!(history.n_ops(), reads + writes, "{name}");
        assert!(!history.has_times(), "{name}");
        let is_committed = |txn| history.status(txn) == Status::Committed;
        assert!(history.txns().all(is_committed), "{name}");
    }
}

#[test]
fn files_that_are_no_logs_are_ignored_with_a_warning() {
    let Some(path) = shared("cobra/one-shot/rubis-10000") else {
        return;
    };
    let warnings = read(&path).warnings;
    assert_eq!(
        warnings,
        ["24 files in the directory are no session logs and were ignored"]
    );
}

#[test]
fn reads_that_name_writers_in_no_log_are_kept_and_told() {
    let Some(path) = shared("cobra/violations/cock-blog") else {
        return;
    };
    let parsed = read(&path);
    assert!(parsed.warnings[0].starts_with("8 versions were read whose write is in no log"));
}

#[test]
fn viper_json_and_cobra_logs_of_one_run_say_the_same() {
    for run in ["viper/BlindW-RW-1000", "viper/BlindW-RW-4000"] {
        let (Some(json), Some(log)) = (
            shared(&format!("{run}/json")),
            shared(&format!("{run}/log")),
        ) else {
            return;
        };
        let (json, log) = (read(&json).history, read(&log).history);
        let shape = |history: &kingsnake_solver::model::History| -> Vec<(bool, bool)> {
            let ops = history.txns().flat_map(|txn| history.ops(txn).to_vec());
            ops.map(|op| match op {
                Op::Read { value, .. } => (false, history.is_initial(value)),
                _ => (true, false),
            })
            .collect()
        };
        assert_eq!(shape(&json), shape(&log), "{run}");
        assert_eq!(json.n_keys(), log.n_keys());
    }
}

#[test]
fn dbcop_files_have_the_counts_of_their_index() {
    let Some(index) = shared("dbcop/INDEX.tsv") else {
        return;
    };
    let index = fs::read_to_string(index).expect("the index is text");
    let mut n_files = 0;
    for line in index.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let count = |index: usize| fields[index].parse::<usize>().expect("a count");
        let Some(path) = shared(&format!("dbcop/{}", fields[0])) else {
            continue;
        };
        let parsed = read(&path);
        let history = &parsed.history;
        assert_eq!(parsed.format, Format::Dbcop);
        assert_eq!(history.n_sessions(), count(2), "{}", fields[0]);
        let is_aborted = |txn: &_| history.status(*txn) == Status::Aborted;
        let is_own = |txn: &_| !history.txn_name(*txn).ends_with("(its failed writes)");
        assert_eq!(
            history.txns().filter(is_own).count(),
            count(3),
            "{}",
            fields[0]
        );
        assert_eq!(
            history.txns().filter(is_own).filter(is_aborted).count(),
            count(4),
            "{}",
            fields[0]
        );
        assert!(history.n_ops() <= count(5), "{}", fields[0]);
        n_files += 1;
    }
    assert_eq!(n_files, 33);
}

#[test]
fn larger_dbcop_files_open_through_their_directory() {
    let expected = [
        ("polysi/25_400_8_10000_0.5_uniform", 25, 10_000),
        ("veristrong/fig5/RH-1k", 20, 1000),
        ("veristrong/fig5/BL-1k", 20, 1000),
        ("veristrong/fig5/WH-1k", 20, 1000),
    ];
    for (name, n_sessions, n_txns) in expected {
        let Some(path) = shared(name) else { continue };
        let parsed = read(&path);
        assert_eq!(parsed.format, Format::Dbcop);
        assert_eq!(parsed.history.n_sessions(), n_sessions, "{name}");
        assert_eq!(parsed.history.n_txns(), n_txns, "{name}");
    }
}

#[test]
fn text_files_open_and_only_an_explicit_initial_transaction_is_the_initial_state() {
    // The index counts the initial state of galera and yugabyte as a transaction.
    let expected = [
        ("polysi/violations/galera/galera.txt", 2, 7),
        ("polysi/violations/yugabyte/yugabyte.txt", 2, 20),
        ("isovista/sample_history.txt", 5, 1000),
        ("isovista/dgraph_si.txt", 10, 480),
    ];
    for (name, n_sessions, n_txns) in expected {
        let Some(path) = shared(name) else { continue };
        let parsed = read(&path);
        assert_eq!(parsed.format, Format::Text);
        assert_eq!(parsed.history.n_sessions(), n_sessions, "{name}");
        assert_eq!(parsed.history.n_txns(), n_txns, "{name}");
        assert_eq!(
            parsed.warnings.len(),
            usize::from(name.contains("dgraph")),
            "{name}"
        );
    }
}

/// Every file under a shared directory whose name ends so.
fn files(directory: &str, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open: Vec<PathBuf> = shared(directory).into_iter().collect();
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                open.push(path);
            } else if !name.contains("INDEX") && endings.iter().any(|end| name.ends_with(end)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn awdit_files_open_without_warnings() {
    for path in files("awdit", &[".txt"]) {
        let parsed = read(&path);
        assert_eq!(parsed.format, Format::Awdit);
        assert!(
            parsed.history.n_txns() > 0 && parsed.warnings.is_empty(),
            "{}",
            path.display()
        );
    }
}

#[test]
fn jepsen_files_open_unless_they_are_of_other_models() {
    let mut refused = BTreeMap::new();
    let mut n_read = 0;
    for path in files("elle", &[".edn", ".json"]) {
        match open(&path, &ReadOptions::default()) {
            Ok(parsed) => {
                n_read += 1;
                let json = path.extension().is_some_and(|it| it == "json");
                let format = if json {
                    Format::JepsenJson
                } else {
                    Format::JepsenEdn
                };
                assert_eq!(parsed.format, format);
                assert!(parsed.history.n_txns() > 0, "{}", path.display());
            }
            Err(error) => {
                assert!(
                    matches!(error.problem(), InputProblem::Unsupported(_)),
                    "{error}"
                );
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                refused.insert(name, error.to_string());
            }
        }
    }
    if n_read == 0 {
        return;
    }
    eprintln!("{n_read} Jepsen files read; refused as no transactions over keys: {refused:#?}");
    assert_eq!(n_read, 53);
    let names: Vec<&str> = refused.keys().map(String::as_str).collect();
    let other_models = [
        "bank-neg.edn",
        "bank-negative-balances.json",
        "bank-tidb.edn",
        "bank.edn",
        "bank.json",
        "comments.edn",
        "counter.edn",
        "counter.json",
        "etcd.edn",
        "etcd.json",
        "set.edn",
        "set_full.edn",
        "set_full.json",
    ];
    assert_eq!(names, other_models);
}

#[test]
fn edn_and_json_of_one_history_say_the_same() {
    for name in ["paper-example", "rw-register"] {
        let (Some(edn), Some(json)) = (
            shared(&format!("elle/cli/elle/{name}.edn")),
            shared(&format!("elle/cli/elle/{name}.json")),
        ) else {
            return;
        };
        let (edn, json) = (read(&edn).history, read(&json).history);
        assert_eq!(edn.n_txns(), json.n_txns());
        for txn in edn.txns() {
            assert_eq!(edn.ops(txn), json.ops(txn));
            assert_eq!(edn.interval(txn), json.interval(txn));
        }
    }
}
