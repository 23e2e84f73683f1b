//! Runs the binary, and finds or makes histories for it.

#![allow(dead_code)] // Each test file uses its part.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kingsnake_datasets::Format;
use kingsnake_lab::random::CaseSplit;
use tempfile::TempDir;

/// The binary with these arguments, nothing on its stdin.
pub fn kingsnake(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kingsnake"));
    command
        .args(args)
        .stdin(Stdio::null())
        .env_remove("NO_COLOR");
    command
}

/// What it answered.
pub struct Said {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the binary to its end.
pub fn run(args: &[&str]) -> Said {
    let Output {
        status,
        stdout,
        stderr,
    } = kingsnake(args).output().expect("the binary runs");
    Said {
        status: status.code().expect("the binary exits by itself"),
        stdout: String::from_utf8(stdout).expect("stdout is UTF-8"),
        stderr: String::from_utf8(stderr).expect("stderr is UTF-8"),
    }
}

/// Runs the binary and expects this exit status.
pub fn expect(status: i32, args: &[&str]) -> Said {
    let said = run(args);
    assert_eq!(
        said.status, status,
        "{args:?}\n{}{}",
        said.stdout, said.stderr
    );
    said
}

/// A history of the corpus.
pub fn corpus(name: &str) -> String {
    dataset(&format!("corpus/{name}"))
}

/// A file or directory of the datasets.
pub fn dataset(name: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../datasets")).join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path.to_str().expect("the path is UTF-8").to_owned()
}

/// Checks the histories of a dataset at a level: those of its directory `holds` satisfy it, those of `violated` do not, and each
/// has at least so many.
pub fn expect_verdicts(name: &str, level: &str, at_least: usize) {
    for (directory, status) in [("holds", 0), ("violated", 1)] {
        let directory = dataset(&format!("{name}/{directory}"));
        let mut n_files = 0;
        for entry in std::fs::read_dir(&directory).expect("it can be listed") {
            let path = entry.expect("it can be read").path();
            let path = path.to_str().expect("the path is UTF-8");
            expect(status, &["check", path, "--level", level]);
            n_files += 1;
        }
        assert!(n_files >= at_least, "{directory}");
    }
}

/// A directory that goes away by itself, and paths in it.
pub struct Scratch(TempDir);

impl Scratch {
    pub fn new() -> Self {
        Scratch(TempDir::new().expect("there is room for temporary files"))
    }

    pub fn path(&self, name: &str) -> String {
        let path: PathBuf = self.0.path().join(name);
        path.to_str().expect("the path is UTF-8").to_owned()
    }

    pub fn put(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, text).expect("the file can be written");
        path
    }

    pub fn get(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("the file was written")
    }
}

/// A study of two workloads, one of them broken, with and without session order; of each cell so many seeds.
pub fn study(name: &str, (timeout, seeds): (u32, u32), [txns, keys]: [&str; 2]) -> String {
    let generate = format!("\"blindw-rw\", \"--txns\", \"{txns}\", \"--keys\", \"{keys}\"");
    format!(
        r#"
name = "{name}"
title = "A study"
timeout = {timeout}
seeds = {seeds}
check = ["--session-order", "{{sessions}}"]

[parameters]
sessions = "on"

[[workload]]
name = "RW"
generate = [{generate}]
expect = "satisfied"

[[workload]]
name = "broken"
generate = [{generate}, "--fault", "lost-update"]
expect = "violated"

[[experiment]]
name = "switches"
title = "Session order"
tables = ["medians"]

[[experiment.axis]]
name = "session order"
parameter = "sessions"
values = ["on", "off"]
"#
    )
}

/// Every history of the corpus.
pub fn corpus_histories() -> Vec<String> {
    let index = std::fs::read_to_string(corpus("INDEX.tsv")).expect("the corpus has an index");
    let names = index.lines().skip(1);
    let names = names.filter_map(|line| line.split('\t').next());
    names.map(corpus).collect()
}

/// A history of reads and blind writes on a store that keeps its promise, unless the options say otherwise.
pub fn generate(scratch: &Scratch, name: &str, options: &[&str]) -> String {
    generate_workload(scratch, name, "king-cobra-rw", options)
}

/// A history of any workload.
pub fn generate_workload(
    scratch: &Scratch,
    name: &str,
    workload: &str,
    options: &[&str],
) -> String {
    let path = scratch.path(name);
    let mut args = vec!["generate", workload, "--out", path.as_str()];
    args.extend(options);
    expect(0, &args);
    path
}

/// A history that only a case split refutes, so that the back end is asked.
pub fn puzzle(scratch: &Scratch) -> String {
    let path = scratch.path("puzzle.jsonl");
    let history = CaseSplit::contradiction().history();
    kingsnake_datasets::write(&history, Format::Kingsnake, Path::new(&path)).expect("written");
    path
}

/// How often a command is killed: as `KINGSNAKE_KILLS` says, or this often.
pub fn n_kills(few: usize) -> usize {
    let typed = std::env::var("KINGSNAKE_KILLS").ok();
    typed.map_or(few, |it| it.parse().expect("a number"))
}

/// Numbers that look random; the seed is the process's, so that every run kills at other moments.
pub struct Dice(u64);

impl Dice {
    pub fn new() -> Self {
        Dice(u64::from(std::process::id()) | 1)
    }

    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}
