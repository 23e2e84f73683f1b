//! The figures of the paper: the levels that each certificate shows, and why not the others.

use std::path::Path;

use kingsnake_adya::{along, check};
use kingsnake_datasets::{ReadOptions, open};
use kingsnake_history::adya::{PlLevel, Refutation};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::History;
use kingsnake_history::promise::Along;
use kingsnake_history::verdict::{Counterexample, Verdict};
use kingsnake_tell::RecordedWords;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/certified");

fn figure(name: &str) -> History {
    let path = Path::new(FOLDER).join(name);
    let parsed = open(&path, &ReadOptions::default());
    parsed.unwrap_or_else(|error| panic!("{error}")).history
}

fn refutation(history: &History, level: PlLevel) -> Option<Refutation> {
    match check(history, level, &Budget::unlimited()) {
        Ok((verdict, _)) => match verdict {
            Verdict::Violated(Counterexample::Recorded(why)) => Some(why),
            _ => None,
        },
        Err(error) => panic!("{level}: {error}"),
    }
}

#[test]
fn every_figure_has_the_verdicts_of_the_index() {
    let index = std::fs::read_to_string(Path::new(FOLDER).join("INDEX.tsv"));
    let index = index.expect("the index is there");
    let mut n_figures = 0;
    for line in index.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('\t').collect();
        let [name, levels, why, _] = fields[..] else {
            panic!("a line of four fields: {line}");
        };
        let history = figure(name);
        for level in PlLevel::ALL {
            if level == PlLevel::PlSi && !history.has_stamps() {
                continue;
            }
            let holds = refutation(&history, level).is_none();
            let listed = levels.split(' ').any(|it| it == level.name());
            assert_eq!(holds, listed, "{name} at {level}");
        }
        let found = match refutation(&history, PlLevel::Pl3) {
            None => "-".to_owned(),
            Some(Refutation::Mismatches(_)) => "mismatch".to_owned(),
            Some(Refutation::Cycle(phenomenon, _)) => phenomenon.name().to_owned(),
            Some(Refutation::Findings(_) | Refutation::Order { .. }) => "findings".to_owned(),
        };
        assert_eq!(found, why, "{name}");
        n_figures += 1;
    }
    assert_eq!(n_figures, 5);
}

#[test]
fn figures_are_told_in_words() {
    let told = |name: &str| {
        let history = figure(name);
        let why = refutation(&history, PlLevel::Pl3).expect("it is refuted");
        RecordedWords::new(&history).refutation(&why).join("\n")
    };
    assert_eq!(
        told("figure-3.jsonl"),
        "T3 asked for rows with value > 0 and did not get row y, though T2 had set its value to 2."
    );
    let phantom = told("figure-1.jsonl");
    assert!(
        phantom.contains(
            "T3 comes before T2: T3 asked for rows with value < 5 and looked at row y before T2 set its value to 2 (pred-rw)."
        ),
        "{phantom}"
    );
    assert!(phantom.contains("T2 comes before T3"), "{phantom}");
}

#[test]
fn timestamps_are_the_serial_order_of_figure_2_and_not_of_figure_3() {
    let budget = Budget::unlimited();
    for which in [Along::CommitTs, Along::StartTs] {
        let report = along(&figure("figure-2.jsonl"), &which, &budget);
        assert!(report.is_ok_and(|it| it.holds() == Some(true)));
        let history = figure("figure-3.jsonl");
        let verdict = along(&history, &which, &budget).expect("every transaction has its time");
        let Verdict::Violated(Counterexample::Recorded(Refutation::Order { found, .. })) = verdict
        else {
            panic!("T3 does not fit");
        };
        assert_eq!(
            RecordedWords::new(&history).disagreement(&found),
            "T3 is number 3 of the order. T3 asked for rows with value > 0 and did not get row y, though T2 had set its value to 2."
        );
    }
}
