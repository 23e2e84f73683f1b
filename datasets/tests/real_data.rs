//! The histories that come with the repository open, in the right format and with the counts that their README gives.

use std::path::Path;

use kingsnake_datasets::{Format, ReadOptions, open, read_bytes};
use kingsnake_solver::model::Status;

const REAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/real");

#[test]
fn every_row_of_the_readme_is_true() {
    let readme =
        std::fs::read_to_string(Path::new(REAL).join("README.md")).expect("the README is there");
    let mut n_read = 0;
    for line in readme
        .lines()
        .filter(|line| line.starts_with("| ") && line.contains('/'))
    {
        let fields: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let format: Format = match fields[1] {
            "Jepsen EDN" | "Jepsen EDN, JSON" => Format::JepsenEdn,
            name => name.parse().expect("a format"),
        };
        let path = fields[0].split(',').next().expect("a path");
        let parsed = open(&Path::new(REAL).join(path), &ReadOptions::default())
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(parsed.format, format, "{path}");
        let n_txns = fields[4].split(',').next().expect("a count");
        let history = &parsed.history;
        let is_own = |txn: &_| !history.txn_name(*txn).ends_with("(its failed writes)");
        let n_own = history.txns().filter(is_own).count();
        assert_eq!(n_own.to_string(), n_txns, "{path}");
        let overlaps = parsed
            .warnings
            .iter()
            .any(|warning| warning.contains("overlap"));
        if fields[3] != "–" && !overlaps {
            assert_eq!(parsed.history.n_sessions().to_string(), fields[3], "{path}");
        }
        n_read += 1;
    }
    assert_eq!(n_read, 22);
}

#[test]
fn the_example_of_the_specification_is_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/formats.md");
    let specification = std::fs::read_to_string(path).expect("the specification is there");
    let (_, rest) = specification.split_once("```json\n").expect("an example");
    let (example, _) = rest.split_once("```").expect("its end");
    let parsed = read_bytes(Format::Kingsnake, example.as_bytes(), "docs/formats.md")
        .unwrap_or_else(|error| panic!("{error}"));
    let history = &parsed.history;
    assert_eq!((history.n_txns(), history.n_sessions()), (3, 2));
    assert!(
        history
            .txns()
            .any(|txn| history.status(txn) == Status::Unknown)
    );
    assert_eq!(history.version_orders().len(), 1);
}

#[test]
fn the_error_of_the_specification_is_the_one_that_is_given() {
    let text = "r(0,1,1,1)\nr(0,1,1,1)\nr(0,x,1,1)\n";
    let error =
        read_bytes(Format::Text, text.as_bytes(), "galera.txt").expect_err("x is no number");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/formats.md");
    let specification = std::fs::read_to_string(path).expect("the specification is there");
    assert!(specification.contains(&error.to_string()), "{error}");
}
