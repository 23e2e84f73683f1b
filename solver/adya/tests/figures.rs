//! The figures of the paper: which levels each certificate shows, and whether some other serial order explains the history.

use std::path::Path;

use kingsnake_adya::{Along, Serial, Teller, along, check, serial_order};
use kingsnake_datasets::{ReadOptions, open};
use kingsnake_history::adya::{PlLevel, PlVerdict, Refutation};
use kingsnake_history::budget::Budget;
use kingsnake_history::model::History;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/certified");

fn figure(name: &str) -> History {
    let path = Path::new(FOLDER).join(name);
    let parsed = open(&path, &ReadOptions::default());
    parsed.unwrap_or_else(|error| panic!("{error}")).history
}

fn refutation(history: &History, level: PlLevel) -> Option<Refutation> {
    match check(history, level, &Budget::unlimited()) {
        Ok(report) => match report.verdict {
            PlVerdict::Holds(_) => None,
            PlVerdict::Refuted(why) => Some(why),
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
        let [name, levels, why, other] = fields[..] else {
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
            Some(Refutation::Findings(_)) => "findings".to_owned(),
        };
        assert_eq!(found, why, "{name}");
        let serial = serial_order(&history, &Budget::unlimited());
        let is_serial = matches!(serial, Ok(Serial::Order(_)));
        if other != "-" {
            assert_eq!(is_serial, other == "yes", "{name}: {serial:?}");
        }
        n_figures += 1;
    }
    assert_eq!(n_figures, 5);
}

#[test]
fn figures_are_told_in_words() {
    let told = |name: &str| {
        let history = figure(name);
        let why = refutation(&history, PlLevel::Pl3).expect("it is refuted");
        Teller::new(&history).refutation(&why).join("\n")
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
        assert!(report.is_ok_and(|report| report.disagreement.is_none()));
        let history = figure("figure-3.jsonl");
        let report = along(&history, &which, &budget).expect("every transaction has its time");
        let found = report.disagreement.expect("T3 does not fit");
        assert_eq!(
            Teller::new(&history).disagreement(&found),
            "T3 is number 3 of the order. T3 asked for rows with value > 0 and did not get row y, though T2 had set its value to 2."
        );
    }
}
