//! Elle's own tests: of each history, at least the anomalies that Elle finds, and at least the models that these rule out.

// A file that cannot be read is a mistake in the test, and may end it.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use kingsnake_datasets::{ReadOptions, open};
use kingsnake_refute::every_cycle;
use kingsnake_solver::assume::{Unwritten, assume_keys, assume_unwritten};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::certify::Meaning;
use kingsnake_solver::lattice::{self, Names};
use kingsnake_solver::model::{History, KeyAssumption};
use kingsnake_solver::resolve::resolve;
use kingsnake_tell::{Anomalies, Collector};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/elle/tests");

/// What Elle's tester assumes in a case: registers take values without a writer as written unseen, and some tests order keys.
fn assume(history: &mut History, line: &str) {
    if line.contains(":kind \"rw-register\"") {
        assume_unwritten(history, Unwritten::Unseen).unwrap();
    }
    let options = [
        (":linearizable-keys? true", KeyAssumption::Linearizable),
        (":sequential-keys? true", KeyAssumption::Sequential),
        (":wfr-keys? true", KeyAssumption::WritesFollowReads),
    ];
    let assumed = options.iter().filter(|it| line.contains(it.0));
    let assumed: Vec<KeyAssumption> = assumed.map(|it| it.1).collect();
    assume_keys(history, &assumed).unwrap();
}

/// Where Elle rules out less, because it was asked for other anomalies or models only: what all anomalies rule out.
const MORE: [(&str, &[&str]); 15] = [
    (
        "list-append/005-intermediate-sequential-extension-test.edn",
        &["repeatable-read", "strong-snapshot-isolation"],
    ),
    (
        "list-append/009-G-nonadjacent-test.edn",
        &["strong-session-read-committed"],
    ),
    ("list-append/017-checker-test.edn", &["read-committed"]),
    ("list-append/021-checker-test.edn", &["read-committed"]),
    ("list-append/023-checker-test.edn", &["read-committed"]),
    (
        "list-append/025-checker-test.edn",
        &["consistent-view", "repeatable-read"],
    ),
    (
        "list-append/029-checker-test.edn",
        &["repeatable-read", "strong-session-snapshot-isolation"],
    ),
    (
        "list-append/031-checker-test.edn",
        &["repeatable-read", "strong-session-snapshot-isolation"],
    ),
    (
        "list-append/033-checker-test.edn",
        &["repeatable-read", "strong-session-snapshot-isolation"],
    ),
    (
        "list-append/035-checker-test.edn",
        &["strong-snapshot-isolation"],
    ),
    (
        "list-append/037-checker-test.edn",
        &["strong-session-snapshot-isolation"],
    ),
    (
        "list-append/039-checker-test.edn",
        &["strong-read-committed", "strong-session-snapshot-isolation"],
    ),
    (
        "list-append/049-repeatable-read-test.edn",
        &["repeatable-read", "strong-session-snapshot-isolation"],
    ),
    ("rw-register/061-checker-test.edn", &["read-committed"]),
    ("rw-register/065-checker-test.edn", &["read-committed"]),
];

/// Where Elle's boundary is of anomalies that it found and was not asked to report.
const UNREPORTED: [&str; 3] = [
    "list-append/013-checker-test.edn",
    "list-append/015-checker-test.edn",
    "list-append/019-checker-test.edn",
];

fn found(history: &History) -> Anomalies {
    let budget = Budget::unlimited();
    let resolved = resolve(history, &budget).unwrap();
    let meaning = Meaning::of(history);
    let mut collector = Collector::new(&meaning);
    collector.add_findings(resolved.findings());
    let mut found = |pattern, steps| collector.add_cycle(pattern, steps);
    let is_complete = every_cycle(history, &resolved, &budget, &mut found).unwrap();
    collector.finish(is_complete)
}

/// The words between two marks of a line of the index.
fn words<'l>(line: &'l str, from: &str, to: &str) -> Vec<&'l str> {
    let rest = line.split_once(from).map_or("", |it| it.1);
    let inner = rest.split_once(to).map_or("", |it| it.0);
    let words = inner.split(|it: char| it.is_whitespace() || it == '"');
    words.filter(|it| !it.is_empty()).collect()
}

fn model(name: &str) -> Option<&'static str> {
    lattice::model(name).map(|it| it.name)
}

#[test]
fn the_anomalies_that_elle_finds_are_found() {
    let Ok(index) = std::fs::read_to_string(Path::new(TESTS).join("INDEX.edn")) else {
        eprintln!("SKIPPED: {TESTS} is not here");
        return;
    };
    let mut n_compared = 0;
    for line in index.lines().filter(|line| line.contains(":file")) {
        let file = words(line, ":file \"", "\"")[0];
        let mut parsed = open(&Path::new(TESTS).join(file), &ReadOptions::default()).unwrap();
        assume(&mut parsed.history, line);
        let found = found(&parsed.history);
        assert!(found.is_complete, "{file}");
        let present = lattice::implied_anomalies(found.names());
        let expected = words(line, ":anomaly-types [", "]");
        let expected: Vec<&str> = expected
            .into_iter()
            .map(|name| name.trim_start_matches(':'))
            .filter(|&name| name != "empty-transaction-graph")
            .collect();
        for name in &expected {
            assert!(
                present.contains(name),
                "{file}: {name} is not among {present:?}"
            );
        }
        let names = expected.iter().filter_map(|name| lattice::anomaly(name));
        let implied = lattice::boundary(names.map(|it| it.name));
        let out = found.boundary();
        for name in implied.not.iter().chain(&implied.also_not) {
            let is_out = out.not.contains(name) || out.also_not.contains(name);
            assert!(is_out, "{file}: {name} is not ruled out");
        }
        let stated: Names = words(line, ":not [", "]")
            .into_iter()
            .filter_map(model)
            .collect();
        let more = MORE.iter().find(|it| it.0 == file);
        let whole = more.map_or(stated.clone(), |it| it.1.iter().copied().collect());
        assert_eq!(
            out.not,
            whole,
            "{file}: {:?}",
            found.names().collect::<Vec<_>>()
        );
        if !UNREPORTED.contains(&file) {
            let stronger = words(line, ":also-not [", "]");
            let stronger: Names = stronger.into_iter().filter_map(model).collect();
            assert_eq!(
                (implied.not, implied.also_not),
                (stated, stronger),
                "{file}"
            );
        }
        n_compared += 1;
    }
    println!("{n_compared} cases of Elle's tests compared");
    assert_eq!(n_compared, 37);
}
