//! No input makes a reader panic: every format, side file and document is read from small valid files (`fuzz/TARGET-N`)
//! with bytes changed, removed, duplicated, moved between files, or replaced by words of the formats and extreme
//! numbers.
//!
//! In a build that counts edges (`make fuzz`), an input that reaches a new edge of the program is kept and mutated
//! further. In other builds it is one with an answer of a new shape: its words without names and numbers.
//! `KINGSNAKE_FUZZ` is the number of executions of each target; `KINGSNAKE_FUZZ_SECONDS` sets a duration instead.
//! `KINGSNAKE_FUZZ_KEEP` names a directory for a small set of inputs that reaches all edges reached.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use clap::Parser;
use kingsnake_collect::{Load, merge};
use kingsnake_datasets::{Format, Parsed, ReadOptions, locate, open, open_log, read_bytes};
use kingsnake_encodings::import::Gnf;
use kingsnake_encodings::proof::{ProofInstance, check};
use kingsnake_history::rng::Rng;
use kingsnake_studies::{Ablation, Caller, Mode, StudyEvent, StudyListener, StudyRequest, ablate};
use tempfile::TempDir;

use crate::args::{AssumeArgs, Command, Typed, only_check, project};
use crate::coverage::{self, Functions, Reached};
use crate::study_rules::CommandLine;
use crate::voice::Paint;
use crate::{assumptions, commands, hunt};

/// Longer inputs find nothing more and take longer.
const LONGEST: usize = 8_192;
/// Inputs kept per target.
const MOST_KEPT: usize = 400;

/// Reads bytes and returns the answer as text.
type Feed = fn(&Bench, &[u8]) -> Result<String, String>;

/// Directory for the files, and a history that documents refer to.
struct Bench {
    directory: TempDir,
    history: Parsed,
    /// The assumption in a file `assumed`, by the option that names it.
    assumed: Vec<(&'static str, AssumeArgs)>,
    /// Reads the settings of a project.
    command: RefCell<clap::Command>,
}

impl Bench {
    fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let directory = if memory.is_dir() {
            TempDir::new_in(memory)
        } else {
            TempDir::new()
        };
        let history = include_bytes!("fuzz/kingsnake-1");
        let directory = directory.expect("a directory");
        let path = directory.path().join("assumed").display().to_string();
        let assumed = ["--transaction-order", "--edges"].map(|option| {
            let typed = Typed::try_parse_from(["kingsnake", "check", "h", option, &path]);
            match typed.expect("an option").command {
                Command::Check(args) => (option, args.check.assume.clone()),
                _ => unreachable!("a check was typed"),
            }
        });
        Bench {
            assumed: assumed.into(),
            command: only_check().into(),
            directory,
            history: read_bytes(Format::Kingsnake, history, "h").expect("a history"),
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path
    }

    fn history(&self) -> PathBuf {
        self.put("h.jsonl", include_bytes!("fuzz/kingsnake-1"))
    }
}

fn said<T, E: std::fmt::Display>(answer: Result<T, E>) -> Result<String, String> {
    match answer {
        Ok(_) => Ok(String::new()),
        Err(error) => Err(format!("{error:#}")),
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Reads one of the formats; the answer includes remarks and the positions of transactions.
fn format(bench: &Bench, format: Format, bytes: &[u8]) -> Result<String, String> {
    let parsed = read_bytes(format, bytes, "fuzz").map_err(|error| error.to_string())?;
    let told = crate::lint::lint(&parsed.history, parsed.format).join("\n");
    if format == Format::Kingsnake {
        let path = bench.put("l.jsonl", bytes);
        let wanted = [("1".to_owned(), "1".to_owned())];
        drop(locate(&path, format, &wanted, &ReadOptions::default()));
    }
    Ok(told)
}

struct Silent;

impl StudyListener for Silent {
    fn event(&mut self, _: StudyEvent<'_>) -> std::io::Result<()> {
        Ok(())
    }
}

/// Lists the cells of a study.
fn listed(bench: &Bench, study: &[u8], rows: &[u8]) -> Result<String, String> {
    bench.put("rows.jsonl", rows);
    let asked = Ablation {
        name: bench.put("study.toml", study),
        figures: None,
        paper_sizes: false,
        devices: Vec::new(),
        backends: Vec::new(),
        profiles: Vec::new(),
        request: StudyRequest {
            out: bench.directory.path().to_owned(),
            repeat: Some(1),
            seeds: Some(1),
            timeout: None,
            memory: None,
            measure: None,
            jobs: 1,
            set: Vec::new(),
            mode: Mode::List { json: true },
            restart: false,
            skip_after_timeout: false,
        },
    };
    let caller = Caller {
        rules: &CommandLine,
        listener: &mut Silent,
        stop: &AtomicBool::new(false),
        paint: Paint::new(false),
    };
    said(ablate(&asked, caller))
}

/// A study of one cell.
const SMALLEST: &[u8] = b"name = 's'\ntitle = 's'\ntimeout = 5\n[[workload]]\nname = 'w'\ngenerate = ['blindw-rw', '--txns', '9', '--keys', '9']\n[[experiment]]\nname = 'e'\ntitle = 'e'\n";

/// Merges a collection, given one of its files.
fn merged(bench: &Bench, name: &str, bytes: &[u8]) -> Result<String, String> {
    let all: [(&str, &[u8]); 3] = [
        ("session-0.journal", include_bytes!("fuzz/journal-1")),
        ("collection.json", include_bytes!("fuzz/collection-1")),
        ("events.jsonl", include_bytes!("fuzz/events-1")),
    ];
    for (other, whole) in all {
        bench.put(other, if other == name { bytes } else { whole });
    }
    said(merge(bench.directory.path()))
}

/// Reads a file of assumptions about the history.
fn assumed(bench: &Bench, option: &str, bytes: &[u8]) -> Result<String, String> {
    bench.put("assumed", bytes);
    let mut assumed = bench.assumed.iter();
    let (_, args) = assumed.find(|it| it.0 == option).expect("an option");
    let history = bench.history();
    let parsed = open(&history, &ReadOptions::default()).map_err(|it| it.to_string())?;
    said(assumptions::assumed(parsed, args))
}

const TARGETS: [(&str, Feed); 27] = [
    ("kingsnake", |bench, bytes| {
        format(bench, Format::Kingsnake, bytes)
    }),
    ("cobra", |bench, bytes| format(bench, Format::Cobra, bytes)),
    ("cobra-values", |bench, bytes| {
        format(bench, Format::CobraValues, bytes)
    }),
    ("dbcop", |bench, bytes| format(bench, Format::Dbcop, bytes)),
    ("text", |bench, bytes| format(bench, Format::Text, bytes)),
    ("awdit", |bench, bytes| format(bench, Format::Awdit, bytes)),
    ("viper", |bench, bytes| format(bench, Format::Viper, bytes)),
    ("jepsen-edn", |bench, bytes| {
        format(bench, Format::JepsenEdn, bytes)
    }),
    ("jepsen-json", |bench, bytes| {
        format(bench, Format::JepsenJson, bytes)
    }),
    ("list-append-text", |bench, bytes| {
        format(bench, Format::ListAppendText, bytes)
    }),
    ("recognised", |bench, bytes| {
        said(open(&bench.put("r", bytes), &ReadOptions::default()))
    }),
    ("log", |bench, bytes| {
        said(open_log(
            &bench.put("log.edn", bytes),
            &ReadOptions::default(),
        ))
    }),
    ("version-order", |bench, bytes| {
        let options = ReadOptions {
            version_order: Some(bench.put("order", bytes)),
            ..ReadOptions::default()
        };
        said(open(&bench.history(), &options))
    }),
    ("transaction-order", |bench, bytes| {
        assumed(bench, "--transaction-order", bytes)
    }),
    ("edges", |bench, bytes| assumed(bench, "--edges", bytes)),
    ("evidence", |bench, bytes| {
        said(kingsnake_evidence::read(&bench.history.history, bytes))
    }),
    ("gnf", |_, bytes| {
        said(Gnf::read(&text(bytes)).map(|it| it.n_variables()))
    }),
    ("proof-instance", |_, bytes| {
        let instance = ProofInstance::read(&text(bytes)).map_err(|it| it.to_string())?;
        said(check(&instance, "3 0 1 2 0\n"))
    }),
    ("proof", |_, bytes| {
        let instance = ProofInstance::read(include_str!("fuzz/proof-instance-1"));
        said(check(&instance.expect("an instance"), &text(bytes)))
    }),
    ("rows", |bench, bytes| {
        drop(listed(bench, SMALLEST, bytes));
        said(commands::diff::read(&bench.put("d.jsonl", bytes)))
    }),
    ("study", |bench, bytes| listed(bench, bytes, b"")),
    ("hunt", |bench, bytes| {
        let recipe = hunt::recipe::read(&bench.put("hunt.toml", bytes));
        let recipe = recipe.map_err(|it| format!("{it:#}"))?;
        said(hunt::cells::HuntCells::of(&recipe).map(|it| it.len()))
    }),
    ("script", |bench, bytes| {
        let path = bench.put("script.toml", bytes).display().to_string();
        said(Load::new(&path, None, None))
    }),
    ("journal", |bench, bytes| {
        merged(bench, "session-0.journal", bytes)
    }),
    ("collection", |bench, bytes| {
        merged(bench, "collection.json", bytes)
    }),
    ("events", |bench, bytes| {
        merged(bench, "events.jsonl", bytes)
    }),
    ("project", |bench, bytes| {
        said(project::read(&text(bytes), &mut bench.command.borrow_mut()))
    }),
];

/// The valid files of a target; those of all formats if the target recognises formats.
fn seeds(target: &str) -> Vec<Vec<u8>> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/src/fuzz");
    let mut seeds = Vec::new();
    for entry in fs::read_dir(directory).expect("the corpus") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy();
        let (of, _) = name.rsplit_once('-').expect("a target and a number");
        let is_of = match target {
            "recognised" => Format::ALL.iter().any(|it| it.to_string() == of),
            "log" => of == "jepsen-edn",
            target => of == target,
        };
        if is_of {
            seeds.push(fs::read(&path).expect("a file"));
        }
    }
    assert!(!seeds.is_empty(), "{target} has no valid file");
    seeds.sort();
    seeds
}

/// Words of the formats, and extreme numbers of the types.
const WORDS: [&str; 40] = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    ",",
    ":",
    "\"",
    "\\",
    "\n",
    " ",
    "=",
    "#",
    "-",
    "0",
    "-1",
    "1",
    "null",
    "nil",
    "true",
    "1e308",
    "0.5",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551616",
    "99999999999999999999999",
    "\"ops\":[",
    "[\"r\",1,1]",
    "{\"kingsnake\":1}\n",
    "-----\n",
    "=====\n",
    "p cnf 1 1\n",
    "[[database]]\n",
    "\u{e9}",
    "\u{0}",
    "\u{1b}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
];

/// A changed input.
fn changed(kept: &[Vec<u8>], rng: &mut Rng) -> Vec<u8> {
    let mut below = |n: usize| (rng.number() % n.max(1) as u64) as usize;
    let mut bytes = kept[below(kept.len())].clone();
    for _ in 0..=below(4) {
        let n_bytes = bytes.len();
        let at = below(n_bytes + 1);
        let to = (at + 1 + below(40)).min(n_bytes);
        let at = at.min(to);
        match below(8) {
            0 if n_bytes > 0 => bytes[at.min(n_bytes - 1)] = below(256) as u8,
            1 if n_bytes > 0 => bytes[at.min(n_bytes - 1)] ^= 1 << below(8),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..to)),
            4 => {
                let piece = bytes[at..to].to_vec();
                bytes.splice(at..at, piece);
            }
            5 => {
                let other = &kept[below(kept.len())];
                let from = below(other.len() + 1);
                let piece = other[from..(from + below(200)).min(other.len())].to_vec();
                bytes.splice(at..to, piece);
            }
            // Replaces a number or a word.
            6 => {
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric();
                let end = bytes[at..].iter().position(|it| !is_word(it));
                let end = end.map_or(n_bytes, |it| at + it);
                bytes.splice(at..end, WORDS[below(WORDS.len())].bytes());
            }
            _ => drop(bytes.splice(at..at, WORDS[below(WORDS.len())].bytes())),
        }
    }
    bytes.truncate(LONGEST);
    bytes
}

/// An answer without names and numbers: its first plain words outside quotation marks.
fn shape(answer: &Result<String, String>) -> String {
    let (word, said) = match answer {
        Ok(said) => ("ok", said),
        Err(said) => ("error", said),
    };
    let parts = said.split(['`', '"', '\'', '\n']).step_by(2);
    let words = parts.flat_map(str::split_whitespace);
    let is_plain = |it: &&str| it.len() > 1 && it.bytes().all(|it| it.is_ascii_lowercase());
    let words: Vec<&str> = words.filter(is_plain).take(10).collect();
    format!("{word} {}", words.join(" "))
}

fn number(name: &str) -> Option<u64> {
    let typed = std::env::var(name).ok()?;
    Some(typed.parse().expect("a number"))
}

/// The functions that belong to a target, by words of their names.
fn own(target: &str) -> &'static [&'static str] {
    match target {
        "kingsnake" => &["kingsnake_datasets::formats::kingsnake"],
        "cobra" | "cobra-values" => &["kingsnake_datasets::formats::cobra"],
        "dbcop" => &["kingsnake_datasets::formats::dbcop"],
        "text" => &["kingsnake_datasets::formats::text"],
        "awdit" => &["kingsnake_datasets::formats::awdit"],
        "viper" => &["kingsnake_datasets::formats::viper"],
        "jepsen-edn" | "jepsen-json" | "log" => &["kingsnake_datasets::formats::jepsen"],
        "list-append-text" => &["kingsnake_datasets::formats::list_append"],
        "recognised" => &["kingsnake_datasets::recognise"],
        "version-order" => &["kingsnake_datasets::many", "kingsnake_datasets::split"],
        "transaction-order" | "edges" => &["kingsnake::assumptions"],
        "evidence" => &["kingsnake_evidence::claim", "kingsnake_evidence::names"],
        "gnf" => &["kingsnake_encodings::import"],
        "proof-instance" => &["kingsnake_encodings::proof::instance"],
        "proof" => &["kingsnake_encodings::proof::check"],
        "rows" => &["kingsnake_studies::row", "kingsnake::commands::diff"],
        "study" => &["kingsnake_studies::recipe", "kingsnake_studies::settle"],
        "hunt" => &["kingsnake::hunt::recipe", "kingsnake::hunt::cells"],
        "script" => &["kingsnake_collect::script"],
        "journal" => &["kingsnake_collect::journal", "kingsnake_collect::merge"],
        "collection" => &["kingsnake_collect::collection", "kingsnake_collect::meta"],
        "events" => &["kingsnake_collect::timeline"],
        "project" => &["kingsnake::args::project"],
        other => unreachable!("{other} is no target"),
    }
}

/// One execution; a panic ends the test with its input.
fn execute(target: &str, feed: Feed, bench: &Bench, input: &[u8]) -> Result<String, String> {
    Reached::begin();
    let answer = catch_unwind(AssertUnwindSafe(|| feed(bench, input)));
    answer.unwrap_or_else(|_| panic!("{target} panics at {:?}", input.escape_ascii().to_string()))
}

/// Reads mutated inputs until the limit; returns what they reached.
fn fuzz(target: &str, feed: Feed, functions: Option<&Functions>) -> String {
    let bench = Bench::new();
    let mut kept = seeds(target);
    let mut shapes: BTreeSet<String> = BTreeSet::new();
    let mut reached = Reached::default();
    for seed in &kept {
        shapes.insert(shape(&execute(target, feed, &bench, seed)));
        reached.add();
    }
    let n_before = reached.n_edges();
    let limit = number("KINGSNAKE_FUZZ_SECONDS").map(Duration::from_secs);
    let most = number("KINGSNAKE_FUZZ").unwrap_or(if limit.is_some() { u64::MAX } else { 300 });
    let mut rng = Rng::new(number("KINGSNAKE_FUZZ_SEED").unwrap_or(1));
    let (begun, mut n_runs, mut slowest) = (Instant::now(), 0_u64, Duration::ZERO);
    while n_runs < most && limit.is_none_or(|it| begun.elapsed() < it) {
        let input = changed(&kept, &mut rng);
        let since = Instant::now();
        let answer = execute(target, feed, &bench, &input);
        slowest = slowest.max(since.elapsed());
        n_runs += 1;
        let (is_further, is_other) = (reached.add(), shapes.insert(shape(&answer)));
        let is_new = if coverage::is_counted() {
            is_further
        } else {
            is_other
        };
        if is_new && kept.len() < MOST_KEPT {
            kept.push(input);
        }
    }
    if let Some(directory) = std::env::var_os("KINGSNAKE_FUZZ_KEEP") {
        keep(target, feed, &bench, kept.clone(), directory.as_ref());
    }
    let mut told = format!(
        "{target}: {n_runs} executions in {:.1} s, {} shapes of answers, {} inputs kept, slowest {:.1} ms",
        begun.elapsed().as_secs_f64(),
        shapes.len(),
        kept.len(),
        slowest.as_secs_f64() * 1e3
    );
    if let Some(functions) = functions {
        let (n_own, n_all) = reached.within(functions, own(target));
        told += &format!(
            "; edges {n_before} by the corpus, {} in all, {n_own} of {n_all} of its own",
            reached.n_edges()
        );
    }
    told
}

/// Writes the inputs, shortest first, that reach an edge that those before them did not.
fn keep(target: &str, feed: Feed, bench: &Bench, mut inputs: Vec<Vec<u8>>, directory: &Path) {
    inputs.sort_by_key(Vec::len);
    let (mut reached, mut n_kept) = (Reached::default(), 0);
    for input in inputs {
        let n_before = reached.n_edges();
        drop(execute(target, feed, bench, &input));
        reached.add();
        if reached.n_edges() > n_before {
            n_kept += 1;
            let path = directory.join(format!("{target}-{n_kept}"));
            fs::write(path, input).expect("a file");
        }
    }
}

#[test]
#[allow(clippy::print_stdout)] // The result of a long run is recorded.
fn no_bytes_make_a_reader_panic() {
    let wanted = std::env::var("KINGSNAKE_FUZZ_TARGETS").ok();
    let functions = coverage::is_counted().then(|| Functions::read().expect("nm runs"));
    for (target, feed) in TARGETS {
        let is_wanted = |it: &String| it.split(',').any(|it| it == target);
        if wanted.as_ref().is_none_or(is_wanted) {
            println!("{}", fuzz(target, feed, functions.as_ref()));
        }
    }
}
