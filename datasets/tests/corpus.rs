//! The corpus: every file is read, decided by the oracle at every level, and compared with its directory and the index.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use kingsnake_datasets::{Format, ReadOptions, open};
use kingsnake_lab::oracle;
use kingsnake_solver::level::{Model, RealTime, Spec};
use kingsnake_solver::model::History;

/// The levels as directories and as columns of the index; the directory of a file is the first that holds.
const LEVELS: [(&str, Spec); 7] = [
    ("strict-ser", spec(Model::Ser, true, Some(RealTime::STRICT))),
    ("strong-session-ser", spec(Model::Ser, true, None)),
    ("ser", spec(Model::Ser, false, None)),
    ("strong-si", spec(Model::Si, true, Some(RealTime::STRICT))),
    ("strong-session-si", spec(Model::Si, true, None)),
    ("gsi", spec(Model::Si, false, Some(RealTime::GENERALISED))),
    ("si", spec(Model::Si, false, None)),
];

const fn spec(model: Model, session_order: bool, real_time: Option<RealTime>) -> Spec {
    Spec {
        model,
        session_order,
        real_time,
    }
}

struct Row {
    file: String,
    answers: Vec<String>,
    story: String,
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn index() -> Vec<Row> {
    let text = fs::read_to_string(corpus().join("INDEX.tsv")).expect("there is an index");
    let mut rows = text
        .lines()
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let mut header = vec!["file"];
    header.extend(LEVELS.map(|level| level.0));
    header.push("story");
    assert_eq!(rows.next(), Some(header));
    rows.map(|fields| {
        assert_eq!(fields.len(), LEVELS.len() + 2, "{fields:?}");
        Row {
            file: fields[0].to_owned(),
            answers: fields[1..=LEVELS.len()]
                .iter()
                .map(|&it| it.to_owned())
                .collect(),
            story: fields[LEVELS.len() + 1].to_owned(),
        }
    })
    .collect()
}

fn read(file: &str) -> History {
    let parsed = open(&corpus().join(file), &ReadOptions::default());
    let parsed = parsed.unwrap_or_else(|error| panic!("{file}: {error}"));
    assert_eq!(parsed.format, Format::Kingsnake, "{file}");
    parsed.history
}

/// `yes`, `no`, or `-` where the level needs times that the history lacks.
fn answers(history: &History) -> Vec<String> {
    let answer = |(_, spec): (&str, Spec)| {
        if spec.real_time.is_some() && !history.has_times() {
            return "-";
        }
        match oracle::holds(history, spec) {
            Some(true) => "yes",
            Some(false) => "no",
            None => "too large",
        }
    };
    LEVELS
        .into_iter()
        .map(|level| answer(level).to_owned())
        .collect()
}

#[test]
fn the_oracle_agrees_with_the_index_and_the_directories() {
    let mut n_files = [0; LEVELS.len() + 1];
    for row in index() {
        let history = read(&row.file);
        assert!(history.n_txns() <= 7, "{}", row.file);
        let answers = answers(&history);
        assert_eq!(answers, row.answers, "{}", row.file);
        let strongest = answers.iter().position(|answer| answer == "yes");
        let directory = strongest.map_or("none", |level| LEVELS[level].0);
        assert_eq!(row.file.split('/').next(), Some(directory), "{}", row.file);
        n_files[strongest.unwrap_or(LEVELS.len())] += 1;
    }
    for (n, name) in n_files
        .iter()
        .zip(LEVELS.map(|level| level.0).iter().chain(&["none"]))
    {
        eprintln!("{name}: {n} files");
        assert!(*n > 0, "{name} is represented");
    }
}

#[test]
fn the_index_lists_every_file_once() {
    let rows = index();
    let listed: BTreeSet<String> = rows.iter().map(|row| row.file.clone()).collect();
    assert_eq!(listed.len(), rows.len());
    let mut found = BTreeSet::new();
    for directory in LEVELS.map(|level| level.0).iter().chain(&["none"]) {
        for entry in
            fs::read_dir(corpus().join(directory)).expect("there is a directory for every level")
        {
            let name = entry.expect("it can be listed").file_name();
            found.insert(format!("{directory}/{}", name.to_string_lossy()));
        }
    }
    assert_eq!(listed, found);
}

#[test]
fn every_file_opens_with_its_story() {
    for row in index() {
        let text = fs::read_to_string(corpus().join(&row.file)).expect("it can be read");
        let header = text.lines().next().unwrap_or_default();
        let about = format!("\"about\":\"{}\"", row.story);
        assert!(
            row.story.ends_with('.') && header.contains(&about),
            "{}",
            row.file
        );
    }
}

#[test]
fn the_index_keeps_the_lattice_and_tells_every_two_levels_apart() {
    let rows = index();
    let says = |row: &Row, level: usize, word: &str| row.answers[level] == word;
    let mut missing = Vec::new();
    for (a, (stronger, spec)) in LEVELS.into_iter().enumerate() {
        for (b, (weaker, other)) in LEVELS.into_iter().enumerate() {
            let mut apart = rows
                .iter()
                .filter(|row| says(row, a, "yes") && says(row, b, "no"));
            match (spec.implies(other), apart.next()) {
                (true, Some(row)) => panic!("{}: {stronger}, but not {weaker}", row.file),
                (false, None) => missing.push(format!("{stronger}, but not {weaker}")),
                _ => {}
            }
        }
    }
    assert!(missing.is_empty(), "no file has\n{}", missing.join("\n"));
}

/// What a history becomes when it is written in a format and read back; `None` where the format cannot say it all.
fn there_and_back(history: &History, format: Format) -> Option<History> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("history");
    match kingsnake_datasets::write(history, format, &path) {
        Ok(_) => {
            let parsed = open(&path, &ReadOptions::default());
            let parsed = parsed.expect("what was written can be read");
            assert_eq!(parsed.format, format);
            Some(parsed.history)
        }
        Err(kingsnake_datasets::WriteError::Inexpressible { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn jepsens_formats_keep_the_verdict_of_every_file() {
    for format in [Format::JepsenEdn, Format::JepsenJson] {
        let (mut n_same, mut refused) = (0, Vec::new());
        for row in index() {
            let Some(back) = there_and_back(&read(&row.file), format) else {
                refused.push(row.file);
                continue;
            };
            assert_eq!(answers(&back), row.answers, "{} in {format}", row.file);
            n_same += 1;
        }
        println!(
            "{format}: {n_same} files keep their verdicts, {} cannot be said in it: {}",
            refused.len(),
            refused.join(", ")
        );
        assert!(n_same > 60, "{format}: {n_same}");
    }
}
