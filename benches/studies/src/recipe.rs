//! A study as its file says it: docs/ablation.md describes every field.
//!
//! Invariant: what can be wrong in the text alone is reported here with its line; what needs the command line's rules
//! (such as a switch that does not exist) is reported by [`design`](crate::design).

use std::collections::BTreeMap;
use std::fmt;

use crate::error::Result;
use serde::de::{Deserializer, Visitor};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::blame::Page;
use crate::claims::short;
use crate::figure::scale::time;

/// Words of a command line, in which `{name}` stands for a parameter.
pub type Words = Vec<Spanned<String>>;

/// The whole file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// One word.
    pub name: Spanned<String>,
    /// The report's heading.
    pub title: String,
    /// A paragraph below it.
    #[serde(default)]
    pub about: String,
    /// How often each check is run on each history, each time with another seed of the solver.
    #[serde(default = "one")]
    pub repeat: u32,
    /// How many histories are made of each recipe, each with another seed of the generator.
    #[serde(default = "one")]
    pub seeds: u32,
    /// Seconds that one check may take.
    #[serde(default = "five_minutes")]
    pub timeout: f64,
    /// The values of `{name}`.
    #[serde(default)]
    pub parameters: BTreeMap<String, Scalar>,
    /// What a paper has in place of these.
    pub paper: Option<Paper>,
    /// Switches of every check.
    #[serde(default)]
    pub check: Words,
    /// The histories.
    #[serde(rename = "workload", default)]
    pub workloads: Vec<StudyWorkload>,
    /// What is compared.
    #[serde(rename = "experiment", default)]
    pub experiments: Vec<Experiment>,
}

fn one() -> u32 {
    1
}

fn five_minutes() -> f64 {
    300.0
}

/// What `--paper-sizes` takes in place of the study's own limits and parameters. Axes have their own.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Seconds that one check may take.
    pub timeout: Option<f64>,
    /// The values of `{name}`.
    #[serde(default)]
    pub parameters: BTreeMap<Spanned<String>, Scalar>,
}

/// A kind of history.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyWorkload {
    /// As it is shown.
    pub name: Spanned<String>,
    /// The arguments of `kingsnake generate`, without the file and the seed.
    pub generate: Option<Words>,
    /// Or a file, seen from the study file.
    pub file: Option<Spanned<String>>,
    /// Or a history of the corpus.
    pub corpus: Option<Spanned<String>>,
    /// Switches of its checks.
    #[serde(default)]
    pub check: Words,
    /// The right verdict, where it is known.
    pub expect: Option<Expect>,
}

/// The right verdict.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq, Hash)]
#[serde(rename_all = "kebab-case")]
pub enum Expect {
    /// The level holds.
    Satisfied,
    /// It does not.
    Violated,
}

impl Expect {
    /// As a document says it.
    pub fn word(self) -> &'static str {
        match self {
            Expect::Satisfied => "satisfied",
            Expect::Violated => "violated",
        }
    }
}

/// Workloads times axes, and how the result is shown.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// One word: the name of its files.
    pub name: Spanned<String>,
    /// The figure's heading.
    pub title: String,
    /// A paragraph below it.
    #[serde(default)]
    pub about: String,
    /// Which workloads; all unless given.
    pub workloads: Option<Words>,
    /// How often each of its checks is run; as often as the study's unless given.
    pub repeat: Option<u32>,
    /// How many histories are made of each of its recipes; as many as the study's unless given.
    pub seeds: Option<u32>,
    /// Switches of its checks.
    #[serde(default)]
    pub check: Words,
    /// The axes.
    #[serde(rename = "axis", default)]
    pub axes: Vec<Axis>,
    /// What is not run.
    #[serde(rename = "skip", default)]
    pub skips: Vec<Skip>,
    /// How to draw it.
    pub figure: Option<Figure>,
    /// The tables.
    #[serde(default)]
    pub tables: Vec<StudyTable>,
    /// What a paper says about it.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
}

/// One thing that is varied.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Axis {
    /// As it is shown.
    pub name: Spanned<String>,
    /// The parameter that takes the values.
    pub parameter: Option<Spanned<String>>,
    /// The values.
    pub values: Option<Spanned<Vec<Scalar>>>,
    /// The values that a paper has in place of these.
    pub paper: Option<Vec<Scalar>>,
    /// Or values with names and switches of their own.
    #[serde(rename = "value", default)]
    pub named: Vec<Named>,
    /// Or every back end, as values of the parameter.
    #[serde(default)]
    pub backends: bool,
    /// Whether the values are percent of one: 0.9 is shown as 90.
    #[serde(default)]
    pub percent: bool,
}

/// A value with a name and switches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// As it is shown.
    pub name: Spanned<String>,
    /// Parameters that it sets.
    #[serde(default)]
    pub set: BTreeMap<Spanned<String>, Scalar>,
    /// Switches that it adds.
    #[serde(default)]
    pub check: Words,
}

/// Checks that are not run, because they would only run into their limit.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Skip {
    /// Those with these values of these axes,
    pub of: BTreeMap<Spanned<String>, Scalar>,
    /// and with greater values than these of these axes.
    pub above: BTreeMap<Spanned<String>, f64>,
}

/// How to draw an experiment. Axes that are neither `x` nor `series` give one picture per value.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Bars, lines, a cactus, phases, or what a workload finds and costs.
    pub kind: FigureKind,
    /// The axis that runs along the picture; for a cactus nothing.
    pub x: Option<Spanned<String>>,
    /// The axis that colours show; nothing for phases, detection and making.
    pub series: Option<Spanned<String>>,
    /// What is measured.
    #[serde(default)]
    pub measure: Measure,
    /// Below the picture; the axis's name unless given.
    pub x_label: Option<String>,
    /// Whether `x` is drawn to a logarithmic scale.
    #[serde(default)]
    pub x_log: bool,
}

/// The form of a picture.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Grouped bars.
    Bars,
    /// Lines with median and spread.
    Lines,
    /// How many instances each series answers within which time.
    Cactus,
    /// Bars of the phases' times, one on top of the other.
    Phases,
    /// Bars of the share of runs that found a violation, with its 95 % interval.
    Detection,
    /// Grouped bars of the share of attempts that aborted while the history was made.
    Aborts,
    /// Bars of the times of making the history and of checking it, one on top of the other.
    Making,
}

/// What is compared: a time, or a count that a busy machine does not change.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// The whole check, reading included, by the clock.
    #[default]
    Seconds,
    /// The whole check, in time of all processors together.
    Cpu,
    /// By the clock, with a second table in time of all processors.
    Both,
    /// The solver alone: building the instance and solving it.
    Solver,
    /// Constraints that pruning left open.
    Constraints,
    /// The solver's conflicts and decisions; zero where it was not asked.
    Work,
}

impl Measure {
    /// As a figure's axis says it.
    pub fn label(self) -> &'static str {
        match self {
            Measure::Seconds | Measure::Both => "time of the whole check",
            Measure::Cpu => "processor time of the whole check",
            Measure::Solver => "time to encode and solve",
            Measure::Constraints => "constraints left open by pruning",
            Measure::Work => "conflicts and decisions of the solver",
        }
    }

    /// Whether it is a number of things, not a time.
    pub fn is_count(self) -> bool {
        matches!(self, Measure::Constraints | Measure::Work)
    }

    /// A number of this measure, with its unit.
    pub fn number(self, number: f64) -> String {
        if self.is_count() {
            kingsnake_text::grouped(number as u64)
        } else {
            time(number)
        }
    }

    /// The same; or, of a run without an answer, that the limit was not enough.
    pub fn within(self, number: f64, limit: f64) -> String {
        if number.is_infinite() {
            format!("> {} s", short(limit))
        } else {
            self.number(number)
        }
    }
}

/// What can be tabulated.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum StudyTable {
    /// Medians, with ratios to the first value of the series.
    Medians,
    /// Time for encoding and for solving.
    Split,
    /// Variables, clauses, conflicts.
    Sizes,
    /// Constraints before and after each pruning round.
    Rounds,
    /// How many runs found a violation, with the 95 % interval of the share.
    Detection,
    /// How many transactions had committed when the counterexample was complete.
    Positions,
    /// The share of attempts that aborted while the history was made.
    Aborts,
    /// Time for making the history and for checking it.
    Making,
    /// Peak memory.
    Memory,
    /// Time by phase.
    Phases,
}

/// What a paper says, and which cells say it here. Without `over` and `least`, a time.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The paper's words, in ours.
    pub says: String,
    /// The value of each axis; all must be given, but for `least`'s.
    pub of: BTreeMap<Spanned<String>, Scalar>,
    /// Divided by these: a ratio.
    pub over: Option<BTreeMap<Spanned<String>, Scalar>>,
    /// The least value of this axis from which on all are answered.
    pub least: Option<Spanned<String>>,
    /// With `over`: the ratio of the greatest values of this axis up to which all are answered.
    pub most: Option<Spanned<String>>,
    /// The paper's number: seconds, a ratio, or a value of the axis.
    pub paper: f64,
    /// Whether our longest run is compared, not the median.
    #[serde(default)]
    pub longest: bool,
    /// Whether the paper only says that it was more.
    #[serde(default)]
    pub more: bool,
    /// Whether the paper only says that it was at most this.
    #[serde(default)]
    pub at_most: bool,
    /// An axis for each value of which the claim is judged; neither `of` nor `over` name it then.
    pub each: Option<Spanned<String>>,
}

/// A number or a word, as it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar {
    /// As a command line takes it.
    pub word: String,
    /// Its value, if it is a number.
    pub number: Option<f64>,
}

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ScalarVisitor)
    }
}

struct ScalarVisitor;

impl Visitor<'_> for ScalarVisitor {
    type Value = Scalar;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a number or a string")
    }

    fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar {
            word: number.to_string(),
            number: Some(number as f64),
        })
    }

    fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar {
            word: number.to_string(),
            number: Some(number),
        })
    }

    fn visit_str<E>(self, word: &str) -> Result<Scalar, E> {
        Ok(Scalar {
            word: word.to_owned(),
            number: word.parse().ok(),
        })
    }
}

/// Reads a study file.
pub fn read(page: Page<'_>) -> Result<Recipe> {
    let recipe: Recipe = toml::from_str(page.text)
        .map_err(|error| page.blame(error.span().unwrap_or(0..0), error.message().trim()))?;
    for (name, what) in [(&recipe.name, "study")]
        .into_iter()
        .chain(recipe.experiments.iter().map(|it| (&it.name, "experiment")))
    {
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) {
            let words = format!(
                "the name of a {what} names files, so it has only letters, digits and hyphens"
            );
            return Err(page.blame(name.span(), &words));
        }
    }
    if let Some(experiment) = recipe.experiments.first() {
        if recipe.workloads.is_empty() {
            let words = "there is no [[workload]] to run this on";
            return Err(page.blame(experiment.name.span(), words));
        }
    } else {
        return Err(page.blame(recipe.name.span(), "there is no [[experiment]]"));
    }
    Ok(recipe)
}

/// Takes the paper's sizes in place of the study's own.
pub fn enlarge(recipe: &mut Recipe, page: Page<'_>) -> Result<()> {
    let axes = recipe.experiments.iter_mut().flat_map(|it| &mut it.axes);
    let mut is_larger = recipe.paper.is_some();
    for axis in axes {
        if let Some(paper) = axis.paper.take() {
            is_larger = true;
            let span = axis.values.as_ref().map_or(0..0, Spanned::span);
            axis.values = Some(Spanned::new(span, paper));
        }
    }
    if !is_larger {
        let words =
            "this study says nothing of a paper's sizes: no [paper], and no `paper` at an axis";
        return Err(page.blame(recipe.name.span(), words));
    }
    let Some(paper) = recipe.paper.clone() else {
        return Ok(());
    };
    recipe.timeout = paper.timeout.unwrap_or(recipe.timeout);
    for (name, value) in paper.parameters {
        let Some(own) = recipe.parameters.get_mut(name.get_ref()) else {
            let words = "there is no such parameter in [parameters]";
            return Err(page.blame(name.span(), words));
        };
        *own = value;
    }
    Ok(())
}
