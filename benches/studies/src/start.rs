//! From a request to a running study.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kingsnake_text::Paint;
use toml::Spanned;

use crate::beside::{put_beside, put_profiles};
use crate::blame::Page;
use crate::conduct::{StudyOptions, conduct};
use crate::design::{Override, design};
use crate::embedded::{BUILT_IN, built_in};
use crate::error::{Context, Result, bail};
use crate::listener::StudyListener;
use crate::recipe::{Measure, Recipe, StudyWorkload, enlarge, read};
use crate::rules::Rules;
use crate::slurm::Slurm;

/// The parameters of a study.
#[derive(Clone, Debug)]
pub struct StudyRequest {
    /// Where everything goes.
    pub out: PathBuf,
    /// Runs of each check; the study's own number unless given.
    pub repeat: Option<u32>,
    /// Histories of each recipe; the study's own number unless given.
    pub seeds: Option<u32>,
    /// The time limit of a check; the study's own unless given.
    pub timeout: Option<Duration>,
    /// The memory limit of a check, in bytes; what is free unless given.
    pub memory: Option<u64>,
    /// The measure; the study's own by default.
    pub measure: Option<Measure>,
    /// Checks at a time.
    pub jobs: usize,
    /// Parameters that take another value.
    pub set: Vec<(String, String)>,
    /// What to do with the cells.
    pub mode: Mode,
    /// Delete the rows that are there first.
    pub restart: bool,
    /// Leave out the other runs of a check that ran out of time once.
    pub skip_after_timeout: bool,
}

/// What to do with a study's cells.
#[derive(Clone, Debug)]
pub enum Mode {
    /// Run those that have no row yet, here, and report on all.
    Local,
    /// Run them on a cluster, and report on all.
    Slurm(Slurm),
    /// Only list them: as command lines, or as JSON.
    List {
        /// Whether as JSON.
        json: bool,
    },
    /// Only make `study.json` and the histories.
    Prepare,
    /// Run these, by their short names, and write each row to a file of its own.
    Cells(Vec<String>),
}

impl StudyRequest {
    /// The words that ask for the same cells.
    fn words(&self) -> Vec<String> {
        let mut words = vec!["--out".to_owned(), self.out.display().to_string()];
        let mut add = |name: &str, value: Option<String>| {
            words.extend(value.map(|value| format!("{name}={value}")));
        };
        add("--repeat", self.repeat.map(|n| n.to_string()));
        add("--seeds", self.seeds.map(|n| n.to_string()));
        add(
            "--timeout",
            self.timeout.map(|it| it.as_secs_f64().to_string()),
        );
        add("--memory-limit", self.memory.map(|n| n.to_string()));
        for (name, value) in &self.set {
            add("--set", Some(format!("{name}={value}")));
        }
        words
    }
}

/// A study to run.
#[derive(Clone, Debug)]
pub struct Ablation {
    /// A built-in study or a file.
    pub name: PathBuf,
    /// The figures that are run and shown; all unless given.
    pub figures: Option<Vec<String>>,
    /// Whether the paper's sizes and limit are taken.
    pub paper_sizes: bool,
    /// The devices on which every check runs; those that the study names unless given.
    pub devices: Vec<String>,
    /// The same of back ends.
    pub backends: Vec<String>,
    /// The same of profiles of techniques.
    pub profiles: Vec<String>,
    /// How it runs.
    pub request: StudyRequest,
}

impl Ablation {
    /// The command line that asks for the same cells, without the program.
    fn words(&self) -> Vec<String> {
        let mut words = vec!["ablate".to_owned(), self.name.display().to_string()];
        if let Some(figures) = &self.figures {
            words.push(format!("--figure={}", figures.join(",")));
        }
        if self.paper_sizes {
            words.push("--paper-sizes".to_owned());
        }
        for (switch, given) in [
            ("--device", &self.devices),
            ("--backend", &self.backends),
            ("--profile", &self.profiles),
        ] {
            if !given.is_empty() {
                words.push(format!("{switch}={}", given.join(",")));
            }
        }
        words.extend(self.request.words());
        words
    }
}

/// The benchmark of back ends.
#[derive(Clone, Debug)]
pub struct Encodings {
    /// Histories in place of the built-in set.
    pub histories: Vec<PathBuf>,
    /// The back ends, the base of the ratios first; all unless given.
    pub backends: Option<Vec<String>>,
    /// How it runs.
    pub request: StudyRequest,
}

impl Encodings {
    /// The command line that asks for the same cells, without the program.
    fn words(&self) -> Vec<String> {
        let mut words = ["bench", "encodings"].map(str::to_owned).to_vec();
        if let Some(backends) = &self.backends {
            words.push(format!("--backends={}", backends.join(",")));
        }
        words.extend(self.request.words());
        words.extend(self.histories.iter().map(|it| it.display().to_string()));
        words
    }
}

/// The caller of a study.
pub struct Caller<'a> {
    /// The command line's rules.
    pub rules: &'a dyn Rules,
    /// The listener to progress.
    pub listener: &'a mut dyn StudyListener,
    /// Raised when the study is to stop.
    pub stop: &'a AtomicBool,
    /// Whether the answer is in colours.
    pub paint: Paint,
}

/// Runs a built-in study, or one from a file.
pub fn ablate(asked: &Ablation, mut caller: Caller<'_>) -> Result<u8> {
    let (name, request) = (&asked.name, &asked.request);
    let mut over = overrides(request);
    over.figures.clone_from(&asked.figures);
    let recipe = |page: Page<'_>| -> Result<Recipe> {
        let mut recipe = read(page)?;
        if asked.paper_sizes {
            enlarge(&mut recipe, page)?;
        }
        put_profiles(&mut recipe, &asked.profiles);
        put_beside(&mut recipe, "--backend", &asked.backends);
        put_beside(&mut recipe, "--device", &asked.devices);
        Ok(recipe)
    };
    let word = name.display().to_string();
    if let Some((file, text)) = built_in(&word) {
        let page = Page { name: file, text };
        return start(
            &recipe(page)?,
            page,
            Path::new(""),
            &over,
            request,
            asked.words(),
            &mut caller,
        );
    }
    if !name.exists() {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, ..)| *name).collect();
        bail!(
            "there is neither a file nor a built-in study {word:?}; built in are {}",
            names.join(", ")
        );
    }
    let text = text_of(name).with_context(|| format!("cannot read {word}"))?;
    let page = Page {
        name: &word,
        text: &text,
    };
    let base = name.parent().unwrap_or(Path::new(""));
    start(
        &recipe(page)?,
        page,
        base,
        &over,
        request,
        asked.words(),
        &mut caller,
    )
}

/// A study is written by hand; a longer file is something else.
const LONGEST: u64 = 16 << 20;

fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    let mut file = File::open(path)?.take(LONGEST + 1);
    file.read_to_string(&mut text)?;
    if text.len() as u64 > LONGEST {
        let problem = format!("it holds more than {LONGEST} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

/// Runs the benchmark of back ends, on its own set or on these histories.
pub fn encodings(asked: &Encodings, mut caller: Caller<'_>) -> Result<u8> {
    let Some((file, text)) = built_in("encodings") else {
        bail!("internal error: the study of encodings is not built in");
    };
    let page = Page { name: file, text };
    let mut recipe = read(page)?;
    if !asked.histories.is_empty() {
        recipe.workloads = asked
            .histories
            .iter()
            .map(|path| workload(path))
            .collect::<Result<_>>()?;
    }
    let mut over = overrides(&asked.request);
    over.backends.clone_from(&asked.backends);
    start(
        &recipe,
        page,
        Path::new(""),
        &over,
        &asked.request,
        asked.words(),
        &mut caller,
    )
}

/// A history that was named on the command line.
fn workload(path: &Path) -> Result<StudyWorkload> {
    if !path.exists() {
        bail!("there is no {}", path.display());
    }
    let base_name = path.file_name().unwrap_or(path.as_os_str());
    let base_name = base_name.to_string_lossy().into_owned();
    let unplaced = |word: String| Spanned::new(0..0, word);
    Ok(StudyWorkload {
        name: unplaced(base_name),
        generate: None,
        file: Some(unplaced(path.display().to_string())),
        corpus: None,
        check: Vec::new(),
        expect: None,
    })
}

fn start(
    recipe: &Recipe,
    page: Page<'_>,
    base: &Path,
    over: &Override,
    request: &StudyRequest,
    words: Vec<String>,
    caller: &mut Caller<'_>,
) -> Result<u8> {
    let mut study = design(recipe, page, caller.rules, base, over)?;
    if let Some(measure) = request.measure {
        let drawn = study.experiments.iter_mut();
        for drawn in drawn.filter_map(|experiment| experiment.figure.as_mut()) {
            // A figure of counts has no other time to show.
            if measure.is_count() || !drawn.figure.measure.is_count() {
                drawn.figure.measure = measure;
            }
        }
    }
    let options = StudyOptions {
        directory: request.out.clone(),
        jobs: request.jobs,
        mode: request.mode.clone(),
        restart: request.restart,
        skip_after_timeout: request.skip_after_timeout,
        words,
    };
    conduct(&study, &options, caller)
}

fn overrides(request: &StudyRequest) -> Override {
    Override {
        repeat: request.repeat,
        seeds: request.seeds,
        timeout: request.timeout,
        memory: request.memory,
        set: request.set.clone(),
        backends: None,
        figures: None,
    }
}
