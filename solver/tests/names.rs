//! One name a thing (docs/ARCHITECTURE.md, glossary): no two public types of the workspace share a name, no two types of one crate do,
//! private ones too, and one file says which node an edge touches.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Names with the same meaning in several crates. An error belongs to its crate; the facade's verdict is the history's
/// with the history beside it.
const SAME_THING: [&str; 2] = ["Error", "Verdict"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the entry can be read").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if path.is_dir() && !name.starts_with('.') && name != "target" && name != "out" {
            sources(&path, found);
        } else if name.ends_with(".rs") {
            found.push(path);
        }
    }
}

fn texts() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for room in ["solver", "gpu", "encodings", "cli", "benches", "datasets"] {
        sources(&Path::new(ROOT).join(room), &mut found);
    }
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a source file can be read");
        (path, text)
    };
    found.into_iter().map(read).collect()
}

/// The type that a line declares; types of modules within a file, which are those of tests, are indented.
fn declared(line: &str) -> Option<&str> {
    let rest = ["struct ", "enum ", "trait "]
        .iter()
        .find_map(|start| line.strip_prefix(start))?;
    rest.split(|it: char| !it.is_alphanumeric()).next()
}

/// A line without the words that say who sees what it declares.
fn unveiled(line: &str) -> &str {
    match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ").map_or(line, |it| it.1),
        None => line.strip_prefix("pub ").unwrap_or(line),
    }
}

#[test]
fn no_two_public_types_share_a_name() {
    let texts = texts();
    let mut places: BTreeMap<&str, Vec<&Path>> = BTreeMap::new();
    for (path, text) in &texts {
        let public = text.lines().filter_map(|line| line.strip_prefix("pub "));
        for name in public.filter_map(declared) {
            places.entry(name).or_default().push(path);
        }
    }
    assert!(places.len() > 300, "the sources were not found");
    places.retain(|name, places| places.len() > 1 && !SAME_THING.contains(name));
    assert!(places.is_empty(), "one name, several types: {places:#?}");
}

/// The crate of a file.
fn package(path: &Path) -> &Path {
    let mut folders = path.ancestors().skip(1);
    let found = folders.find(|folder| folder.join("Cargo.toml").exists());
    found.expect("every source file is in a crate")
}

#[test]
fn no_two_types_of_one_crate_share_a_name() {
    let texts = texts();
    let mut places: BTreeMap<(&Path, &str), Vec<&Path>> = BTreeMap::new();
    for (path, text) in &texts {
        let of_tests = |it: &str| it == "tests" || it == "examples" || it.ends_with("tests.rs");
        let mut parts = path.components().map(|it| it.as_os_str().to_string_lossy());
        if parts.any(|it| of_tests(&it)) {
            continue;
        }
        for name in text.lines().map(unveiled).filter_map(declared) {
            places.entry((package(path), name)).or_default().push(path);
        }
    }
    assert!(places.len() > 1_000, "the sources were not found");
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "one name, several types: {places:#?}");
}

/// `certify` and the laboratory read the levels themselves, because they must not share code with the engines.
#[test]
fn one_file_says_at_which_moment_a_transaction_reads_and_installs() {
    let mut asking = Vec::new();
    for (path, text) in texts() {
        let path = path.strip_prefix(ROOT).expect("a path below the root");
        let independent = ["solver/certify", "solver/lab", "solver/tests"];
        if independent.iter().any(|it| path.starts_with(it)) {
            continue;
        }
        if ["reads_at_begin()", "installs_at_begin()"]
            .iter()
            .any(|it| text.contains(it))
        {
            asking.push(path.display().to_string());
        }
    }
    asking.sort();
    // The first file declares them.
    assert_eq!(
        asking,
        [
            "solver/history/src/level.rs",
            "solver/relate/src/relate/places.rs"
        ]
    );
}
