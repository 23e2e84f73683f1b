//! Every row of `weak-verdicts.tsv`: what a naive oracle of the axioms says of real and small histories at the weak levels.
//!
//! The oracle counted every transaction of unknown end and looked at no version order; such files, and those that are not of
//! registers, are counted and skipped.

#[path = "../../solver/tests/support/pessimist.rs"]
mod pessimist;

use std::path::{Path, PathBuf};

use kingsnake_datasets::{ReadOptions, open};
use kingsnake_solver::budget::Budget;
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::level::Level;
use kingsnake_solver::model::{History, Status};
use kingsnake_solver::progress::Silent;
use pessimist::Pessimist;

const TABLE: &str = include_str!("weak-verdicts.tsv");

fn path(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match name.strip_prefix("shared/") {
        Some(rest) => root.join("../shared").join(rest),
        None => root.join(name),
    }
}

const WEAK: [Level; 4] = [Level::Rc, Level::RcSo, Level::Ra, Level::Cc];

fn holds(history: &History, level: Level) -> bool {
    let spec = level.spec(None).expect("it needs nothing more");
    let (all, budget) = (Techniques::default(), Budget::unlimited());
    let report = check(history, spec, &all, &mut Pessimist, &budget, &mut Silent);
    let verdict = report.expect("it can be checked").verdict;
    verdict.holds().expect("there is time")
}

#[test]
fn every_row_of_the_table_holds_at_every_weak_level() {
    let (mut n_checked, mut n_absent, mut n_other) = (0, 0, 0);
    let mut apart = [0; 3];
    for row in TABLE.lines() {
        let mut fields = row.split('\t');
        let name = fields.next().expect("a row names a file");
        let path = path(name);
        if !path.exists() {
            eprintln!("SKIPPED: {name} is not here");
            n_absent += 1;
            continue;
        }
        let verdicts: Vec<&str> = fields.collect();
        let parsed = open(&path, &ReadOptions::default());
        let history = parsed
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .history;
        let has_unknown = history
            .txns()
            .any(|txn| history.status(txn) == Status::Unknown);
        let is_other = verdicts == ["read-anomaly:not registers"];
        if is_other || has_unknown || !history.version_orders().is_empty() {
            eprintln!("skipped, not for the oracle: {name}");
            n_other += 1;
            continue;
        }
        let expected = |column: &str| match verdicts.as_slice() {
            [anomaly] if anomaly.starts_with("read-anomaly") => false,
            all => all.contains(&format!("{column}=1").as_str()),
        };
        let columns = ["rc", "rc004", "ra", "cc"];
        for (level, column) in WEAK.into_iter().zip(columns) {
            assert_eq!(
                holds(&history, level),
                expected(column),
                "{name} at {level}"
            );
        }
        for (at, pair) in columns.windows(2).enumerate() {
            apart[at] += usize::from(expected(pair[0]) && !expected(pair[1]));
        }
        n_checked += 1;
    }
    eprintln!("{n_checked} rows checked, {n_absent} files absent, {n_other} not for the oracle");
    eprintln!("rc but not rc-so, rc-so but not ra, ra but not cc: {apart:?}");
    assert!(
        n_checked > 60,
        "the corpus alone has more rows than {n_checked}"
    );
}
