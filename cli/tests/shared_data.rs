//! Every history of the shared data with its known verdict, and Elle's own cases. Skips visibly where they are absent.

#![allow(clippy::print_stderr)] // A test that skips says so.

use std::path::{Path, PathBuf};

use kingsnake_datasets::{ReadOptions, open};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{Report, Techniques, check};
use kingsnake_solver::level::{Level, Model, RealTime, Spec};
use kingsnake_solver::progress::Silent;
use kingsnake_solver::verdict::Verdict;

/// The shared data, or `None` with a word about what is skipped for it.
fn data(skipped: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("SKIPPED: {skipped}, no shared data beside the checkout");
    None
}

fn run(path: &Path, spec: Spec) -> Result<Report, String> {
    let parsed = open(path, &ReadOptions::default()).map_err(|error| error.to_string())?;
    let mut backend = kingsnake_encodings::backend(
        "cadical/propagator",
        &kingsnake_encodings::BackendOptions::default(),
    )
    .map_err(|error| error.to_string())?;
    let budget = Budget::unlimited();
    check(
        &parsed.history,
        spec,
        &Techniques::default(),
        backend.as_mut(),
        &budget,
        &mut Silent,
    )
    .map_err(|error| error.to_string())
}

/// One word for what came out.
fn verdict(path: &Path, spec: Spec) -> String {
    match run(path, spec) {
        Ok(report) => match report.verdict {
            Verdict::Satisfied(_) => "satisfied".to_owned(),
            Verdict::Violated(_) => "violated".to_owned(),
            Verdict::Unknown(why) => format!("unknown: {why}"),
        },
        Err(error) => error,
    }
}

fn spec(level: Level) -> Spec {
    level.spec(None).expect("session order is allowed")
}

const REAL: &[(&str, Level, &str)] = &[
    ("cobra/one-shot/chengRW-100", Level::Ser, "satisfied"),
    ("cobra/one-shot/chengRW-500", Level::Ser, "satisfied"),
    ("cobra/one-shot/chengRW-1000", Level::Ser, "satisfied"),
    ("cobra/one-shot/chengRW-2000", Level::Ser, "satisfied"),
    ("cobra/one-shot/chengRW-4000", Level::Ser, "satisfied"),
    ("cobra/one-shot/chengRW-10000", Level::Ser, "satisfied"),
    ("cobra/one-shot/chengRW-10000", Level::Si, "satisfied"),
    ("cobra/one-shot/chengRM-10000", Level::Ser, "satisfied"),
    ("cobra/one-shot/rubis-10000", Level::Ser, "satisfied"),
    ("cobra/one-shot/twitter-10000", Level::Ser, "satisfied"),
    ("cobra/one-shot/tpcc-10000", Level::Ser, "satisfied"),
    ("cobra/violations/cock-G2", Level::Ser, "violated"),
    ("cobra/violations/cock-blog", Level::Ser, "violated"),
    ("cobra/violations/yuga-G2-a", Level::Ser, "violated"),
    ("viper/BlindW-RW-1000/json", Level::Si, "satisfied"),
    ("viper/BlindW-RW-4000/json", Level::Si, "satisfied"),
    ("viper/BlindW-RW-1000/log", Level::Si, "satisfied"),
    ("viper/BlindW-RW-4000/log", Level::Si, "satisfied"),
    ("polysi/25_400_8_10000_0.5_uniform", Level::Si, "satisfied"),
    ("polysi/twitter-10000", Level::Si, "satisfied"),
    ("polysi/violations/galera/galera.txt", Level::Si, "violated"),
    (
        "polysi/violations/yugabyte/yugabyte.txt",
        Level::Si,
        "violated",
    ),
    ("isovista/dgraph_si.txt", Level::Si, "violated"),
    ("isovista/sample_history.txt", Level::Si, "satisfied"),
    ("veristrong/fig5/RH-1k", Level::Ser, "satisfied"),
    ("veristrong/fig5/BL-1k", Level::Ser, "satisfied"),
    ("veristrong/fig5/WH-1k", Level::Ser, "satisfied"),
    ("veristrong/fig5/tpcc-1k", Level::Ser, "satisfied"),
    ("veristrong/fig5/rubis-1k", Level::Ser, "satisfied"),
    ("veristrong/fig5/twitter-1k", Level::Ser, "satisfied"),
    ("veristrong/fig5/RH-1k", Level::Si, "satisfied"),
    ("veristrong/fig5/BL-1k", Level::Si, "satisfied"),
    ("veristrong/fig5/WH-1k", Level::Si, "satisfied"),
];

#[test]
fn real_histories_have_their_known_verdicts() {
    let Some(data) = data("the 33 real histories") else {
        return;
    };
    let mut wrong = Vec::new();
    for &(path, level, expected) in REAL {
        let found = verdict(&data.join(path), spec(level));
        if found != expected {
            wrong.push(format!("{path} at {level}: {found}, expected {expected}"));
        }
    }
    println!("{} histories", REAL.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn dbcop_histories_have_the_verdicts_of_their_study() {
    let Some(data) = data("the histories of dbcop") else {
        return;
    };
    let index = std::fs::read_to_string(data.join("dbcop/INDEX.tsv")).expect("an index");
    let mut lines = index.lines();
    let header: Vec<&str> = lines
        .next()
        .expect("a header")
        .trim_start_matches("# ")
        .split('\t')
        .collect();
    let ser = header
        .iter()
        .position(|&name| name.starts_with("SER"))
        .expect("a SER column");
    let (mut checked, mut wrong) = (0, Vec::new());
    for line in lines.filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.split('\t').collect();
        let expected = match columns[ser] {
            "ok" => "satisfied",
            "VIOL" => "violated",
            other => {
                println!("{}: the study says {other:?}", columns[0]);
                continue;
            }
        };
        checked += 1;
        let found = verdict(&data.join("dbcop").join(columns[0]), spec(Level::Ser));
        if found != expected {
            wrong.push(format!(
                "{}: {found}, the study says {expected}",
                columns[0]
            ));
        }
    }
    println!("{checked} dbcop histories");
    assert!(checked > 20 && wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn causal_files_of_awdit_break_no_weaker_rule_than_theirs() {
    let Some(data) = data("the files of AWDIT") else {
        return;
    };
    // What is not even read committed, read atomic or causal is not SI; the converse does not hold.
    for level in ["none", "read-committed", "read-atomic"] {
        let directory = data.join("awdit").join(level);
        for entry in std::fs::read_dir(&directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_file() {
                let found = verdict(&path, spec(Level::Si));
                assert_eq!(found, "violated", "{}", path.display());
            }
        }
    }
    let serializable = data.join("awdit/causal/fully-ser.txt");
    assert_eq!(verdict(&serializable, spec(Level::Ser)), "satisfied");
    let lost = data.join("awdit/causal/lost-update.txt");
    assert_eq!(verdict(&lost, spec(Level::Si)), "violated");
    let fork = data.join("awdit/causal/long-fork.txt");
    assert_eq!(verdict(&fork, spec(Level::Si)), "violated");
}

/// A word list between brackets after a keyword of one line of Elle's index.
fn words<'l>(line: &'l str, keyword: &str) -> Vec<&'l str> {
    let start = line
        .find(&format!("{keyword} ["))
        .map(|at| at + keyword.len() + 2);
    let rest = start.map_or("", |at| &line[at..]);
    let list = rest.split(']').next().unwrap_or("");
    list.split_whitespace()
        .map(|word| word.trim_matches('"'))
        .collect()
}

fn text<'l>(line: &'l str, keyword: &str) -> &'l str {
    let start = line
        .find(&format!("{keyword} \""))
        .map(|at| at + keyword.len() + 2);
    start.map_or("", |at| line[at..].split('"').next().unwrap_or(""))
}

/// Elle's models that are levels of ours.
const ELLE_MODELS: [(&str, Model, bool, bool); 5] = [
    ("serializable", Model::Ser, false, false),
    ("strong-session-serializable", Model::Ser, true, false),
    ("strong-serializable", Model::Ser, true, true),
    ("snapshot-isolation", Model::Si, false, false),
    ("strong-session-snapshot-isolation", Model::Si, true, false),
];

#[test]
fn what_elle_rules_out_is_violated_and_what_elle_proves_valid_is_not() {
    let Some(data) = data("the files of Elle's tests") else {
        return;
    };
    let directory = data.join("elle/tests");
    let index = std::fs::read_to_string(directory.join("INDEX.edn")).expect("an index");
    let (mut agreed, mut more, mut outside, mut wrong) = (0, 0, Vec::new(), Vec::new());
    for line in index.lines() {
        let file = text(line, ":file");
        let ruled_out = [words(line, ":not"), words(line, ":also-not")].concat();
        if line.contains(":linearizable-keys?") || line.contains(":wfr-keys?") {
            outside.push(format!(
                "{file}: assumes per-key orders that are no level of ours"
            ));
            continue;
        }
        for (name, model, session_order, real_time) in ELLE_MODELS {
            let spec = Spec {
                model,
                session_order,
                real_time: real_time.then_some(RealTime::STRICT),
            };
            let found = verdict(&directory.join(file), spec);
            match (ruled_out.contains(&name), found.as_str()) {
                (_, found) if found.contains("needs begin and commit times") => {
                    outside.push(format!("{file} at {name}: no times"));
                }
                (true, "violated") | (false, "satisfied") => agreed += 1,
                // Elle infers no more of a register's version order than it was told to look for.
                (false, "violated") => more += 1,
                (_, found) => wrong.push(format!(
                    "{file} at {name}: {found}, Elle rules out {ruled_out:?}"
                )),
            }
        }
    }
    println!(
        "Elle's cases: {agreed} agree, {more} violations that Elle does not look for, {} outside:",
        outside.len()
    );
    for line in &outside {
        println!("  {line}");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn elle_cli_histories_have_their_exit_status() {
    let Some(data) = data("the histories of elle-cli") else {
        return;
    };
    let directory = data.join("elle/cli");
    let index = std::fs::read_to_string(directory.join("INDEX.txt")).expect("an index");
    let (mut checked, mut outside) = (0, 0);
    for line in index.lines() {
        let Some((status, arguments)) = line.split_once(' ') else {
            continue;
        };
        let arguments = arguments.trim_matches('"');
        let is_ours =
            arguments.contains("--model list-append") || arguments.contains("--model rw-register");
        let file = arguments
            .split_whitespace()
            .find_map(|word| word.strip_prefix("histories/"));
        let (Some(file), true, Ok(status)) = (file, is_ours, status.parse::<i32>()) else {
            outside += 1;
            continue;
        };
        // elle-cli's default is strict serializability.
        let real_time = !arguments.contains("--consistency-models serializable");
        let spec = Spec {
            model: Model::Ser,
            session_order: real_time,
            real_time: real_time.then_some(RealTime::STRICT),
        };
        // Elle accepts a read of a value that was never written; that is thin air.
        let thin_air = file.contains("rw-register");
        let expected = if status == 0 && !thin_air {
            "satisfied"
        } else {
            "violated"
        };
        assert_eq!(verdict(&directory.join(file), spec), expected, "{file}");
        checked += 1;
    }
    println!("{checked} histories of elle-cli agree, {outside} lines are about other models");
    assert!(checked >= 5);
}
