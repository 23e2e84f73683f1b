//! Elle's own tests: of each history, at least the anomalies that Elle finds, and at least the models that these rule out.

// A file that cannot be read is a mistake in the test, and may end it.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use kingsnake_datasets::{ReadOptions, open};
use kingsnake_refute::every_cycle;
use kingsnake_solver::budget::Budget;
use kingsnake_solver::certify::Meaning;
use kingsnake_solver::lattice;
use kingsnake_solver::model::History;
use kingsnake_solver::resolve::resolve;
use kingsnake_tell::{Anomalies, Collector};

const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data/elle/tests");

/// What is not decided without an assumption of Elle's tester: that values which nobody wrote were there before, that keys are
/// linearizable, or that writes follow reads.
const ASSUMED: [&str; 3] = [
    "rw-register/053-checker-test.edn",
    "rw-register/069-checker-test.edn",
    "rw-register/073-checker-test.edn",
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

#[test]
fn the_anomalies_that_elle_finds_are_found() {
    let Ok(index) = std::fs::read_to_string(Path::new(TESTS).join("INDEX.edn")) else {
        eprintln!("SKIPPED: {TESTS} is not here");
        return;
    };
    let mut n_compared = 0;
    for line in index.lines().filter(|line| line.contains(":file")) {
        let file = words(line, ":file \"", "\"")[0];
        if ASSUMED.contains(&file) {
            eprintln!("left out, for it rests on what Elle assumes: {file}");
            continue;
        }
        let parsed = open(&Path::new(TESTS).join(file), &ReadOptions::default()).unwrap();
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
        n_compared += 1;
    }
    assert!(n_compared >= 30, "{n_compared}");
}
