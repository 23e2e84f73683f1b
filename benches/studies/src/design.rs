//! A study with everything settled: which histories, which checks, how often, and which of them each experiment shows.
//!
//! Invariant: two cells never run the same check of the same history with the same seed; experiments share points.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Context, Result, bail};

use crate::blame::Page;
use crate::cell::Runs;
use crate::recipe::{Expect, Figure, Recipe, StudyTable};
use crate::rules::Rules;
use crate::settle::Settler;

/// The axis that every experiment has.
pub const WORKLOAD: &str = "workload";

/// What the command line says in place of the file.
#[derive(Clone, Debug, Default)]
pub struct Override {
    /// Runs of each check.
    pub repeat: Option<u32>,
    /// Histories of each recipe.
    pub seeds: Option<u32>,
    /// The time limit of a check.
    pub timeout: Option<Duration>,
    /// The memory limit of a check, in bytes.
    pub memory: Option<u64>,
    /// Parameters.
    pub set: Vec<(String, String)>,
    /// The back ends of an axis over all of them.
    pub backends: Option<Vec<String>>,
    /// The experiments that are run and shown; all unless given.
    pub figures: Option<Vec<String>>,
}

/// A study, ready to run.
#[derive(Clone, Debug)]
pub struct Study {
    /// One word.
    pub name: String,
    /// A heading.
    pub title: String,
    /// A paragraph.
    pub about: String,
    /// The parameters, as settled.
    pub parameters: BTreeMap<String, String>,
    /// What one check may take.
    pub timeout: Duration,
    /// How large its process may become, in bytes.
    pub memory: Option<u64>,
    /// The histories.
    pub sources: Vec<HistorySource>,
    /// The checks.
    pub points: Vec<StudyPoint>,
    /// What is shown.
    pub experiments: Vec<SettledExperiment>,
}

/// A history, or several that differ in the seed.
#[derive(Clone, Debug, PartialEq)]
pub struct HistorySource {
    /// One word, unique in the study.
    pub name: String,
    /// Where it comes from.
    pub origin: HistoryOrigin,
}

/// Where a history comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum HistoryOrigin {
    /// `kingsnake generate` with these words, a file and a seed.
    Generated(Vec<String>),
    /// A file or directory that is there.
    File(PathBuf),
    /// A history of the corpus, which the executable carries.
    Corpus {
        /// Below the corpus's directory.
        name: String,
        /// Its text.
        text: &'static str,
    },
}

/// One check of one history.
#[derive(Clone, Debug)]
pub struct StudyPoint {
    /// Which history.
    pub source: usize,
    /// The switches.
    pub check: Vec<String>,
    /// The right verdict, where it is known.
    pub expect: Option<Expect>,
    /// Why the back end does not decide this level; then there is no cell.
    pub refused: Option<String>,
    /// How often it is run, as often as any experiment asks for.
    pub runs: Runs,
}

/// An experiment, its axes settled.
#[derive(Clone, Debug)]
pub struct SettledExperiment {
    /// One word.
    pub name: String,
    /// A heading.
    pub title: String,
    /// A paragraph.
    pub about: String,
    /// The workloads first, then the axes of the file.
    pub axes: Vec<AxisLabels>,
    /// The point of each combination, the last axis varying fastest.
    pub grid: Vec<usize>,
    /// How it is drawn.
    pub figure: Option<Drawn>,
    /// What is tabulated.
    pub tables: Vec<StudyTable>,
    /// What a paper says.
    pub claims: Vec<Stated>,
    /// What it says of values that were left out.
    pub unstated: Vec<String>,
}

impl SettledExperiment {
    /// Which of the paper's claims need more than was run, in a sentence.
    pub fn needs_more(&self) -> Option<String> {
        let n = kingsnake_text::count(self.unstated.len(), "claim");
        let all = self.unstated.join("; ");
        (!self.unstated.is_empty())
            .then(|| format!("{n} of the paper need values that were left out here: {all}"))
    }
}

impl SettledExperiment {
    /// The point at these values of the axes.
    pub fn point(&self, at: &[usize]) -> usize {
        let place = self
            .axes
            .iter()
            .zip(at)
            .fold(0, |place, (axis, &at)| place * axis.values.len() + at);
        self.grid[place]
    }
}

/// An axis and its values.
#[derive(Clone, Debug)]
pub struct AxisLabels {
    /// As it is shown.
    pub name: String,
    /// As they are shown, with their numbers if they have any.
    pub values: Vec<Label>,
}

/// A value of an axis.
#[derive(Clone, Debug)]
pub struct Label {
    /// As it is shown.
    pub name: String,
    /// Its number.
    pub number: Option<f64>,
}

/// How an experiment is drawn, its axes found.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// As the file says it.
    pub figure: Figure,
    /// The axis along the picture.
    pub x: Option<usize>,
    /// The axis told apart by colour.
    pub series: usize,
}

/// A claim, its cells found.
#[derive(Clone, Debug)]
pub struct Stated {
    /// The paper's words, in ours.
    pub says: String,
    /// What is compared with the paper's number.
    pub of: Quantity,
    /// The paper's number.
    pub paper: f64,
    /// Whether the paper only says that it was more, or at most this.
    pub bound: Bound,
    /// How our sizes differ from the paper's, if they do.
    pub sizes: Option<String>,
    /// Whether our longest run is compared, not the median.
    pub longest: bool,
}

/// What a paper's number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// What was measured.
    Exact,
    /// It was more.
    More,
    /// It was at most this.
    AtMost,
}

impl Bound {
    /// Before the number.
    pub fn sign(self) -> &'static str {
        match self {
            Bound::Exact => "",
            Bound::More => "> ",
            Bound::AtMost => "≤ ",
        }
    }
}

/// What a claim is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Quantity {
    /// A point's time.
    Time(usize),
    /// One point's time over another's.
    Ratio(usize, usize),
    /// The least value of an axis from which on all points are answered.
    Least(Vec<(String, usize)>),
    /// The greatest value of an axis up to which all points are answered, over that of other points.
    Most(Vec<(String, usize)>, Vec<(String, usize)>),
}

/// Settles a study file that stands in `base`.
pub fn design(
    recipe: &Recipe,
    page: Page<'_>,
    rules: &dyn Rules,
    base: &Path,
    over: &Override,
) -> Result<Study> {
    let mut parameters: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in &recipe.parameters {
        parameters.insert(name.clone(), value.word.clone());
    }
    for (name, value) in &over.set {
        match parameters.get_mut(name) {
            Some(old) => old.clone_from(value),
            None => bail!(
                "the study {} has no parameter {name:?}; it has {}",
                recipe.name.get_ref(),
                listed(recipe.parameters.keys())
            ),
        }
    }
    let timeout = match over.timeout {
        Some(timeout) => timeout,
        None => Duration::try_from_secs_f64(recipe.timeout).context("the study's timeout")?,
    };
    let backends = over.backends.clone().unwrap_or_else(measured_backends);
    let mut settler = Settler::new(recipe, page, rules, base, &parameters, backends);
    let given: BTreeMap<&str, &str> = over
        .set
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let wanted = wanted(recipe, over)?;
    let mut experiments: Vec<SettledExperiment> = Vec::new();
    for (at, experiment) in recipe.experiments.iter().enumerate() {
        let before = &recipe.experiments[..at];
        let name = experiment.name.get_ref();
        if before.iter().any(|other| other.name.get_ref() == name) {
            let words = "there is another experiment of this name";
            return Err(page.blame(experiment.name.span(), words));
        }
        // What is not wanted is settled too, so that its rows, which may be there, are of the same study.
        let runs = if wanted[at] {
            Runs {
                seeds: over
                    .seeds
                    .or(experiment.seeds)
                    .unwrap_or(recipe.seeds)
                    .max(1),
                repeats: over
                    .repeat
                    .or(experiment.repeat)
                    .unwrap_or(recipe.repeat)
                    .max(1),
            }
        } else {
            Runs::default()
        };
        let given = if wanted[at] {
            given.clone()
        } else {
            BTreeMap::new()
        };
        let shown = settler.experiment(experiment, runs, &given)?;
        if wanted[at] {
            experiments.push(shown);
        }
    }
    let (sources, points) = settler.finish();
    Ok(Study {
        name: recipe.name.get_ref().clone(),
        title: recipe.title.clone(),
        about: recipe.about.clone(),
        parameters,
        timeout,
        memory: over.memory,
        sources,
        points,
        experiments,
    })
}

/// Which experiments were asked for: by name, or by the number of a figure and all that begins with it.
fn wanted(recipe: &Recipe, over: &Override) -> Result<Vec<bool>> {
    let names = || recipe.experiments.iter().map(|it| it.name.get_ref());
    let Some(figures) = &over.figures else {
        return Ok(vec![true; recipe.experiments.len()]);
    };
    let is_asked = |name: &str, figure: &str| {
        let of = |whole: &str| name == whole || name.starts_with(&format!("{whole}-"));
        of(figure) || of(&format!("figure-{figure}"))
    };
    for figure in figures {
        if !names().any(|name| is_asked(name, figure)) {
            bail!(
                "the study {} has no figure {figure:?}; it has {}",
                recipe.name.get_ref(),
                listed(names())
            );
        }
    }
    let is_wanted = |name: &String| figures.iter().any(|figure| is_asked(name, figure));
    Ok(names().map(is_wanted).collect())
}

/// Those that a benchmark compares: all but the ones that exist to test the others.
fn measured_backends() -> Vec<String> {
    let all = kingsnake_encodings::BACKENDS.iter();
    all.filter(|name| !name.starts_with("search/"))
        .map(|&name| name.to_owned())
        .collect()
}

/// Names in a sentence.
pub fn listed<'a>(all: impl Iterator<Item = &'a String>) -> String {
    let all: Vec<&str> = all.map(String::as_str).collect();
    match all.split_last() {
        None => "none".to_owned(),
        Some((last, [])) => (*last).to_owned(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}
