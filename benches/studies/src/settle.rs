//! Multiplies an experiment's workloads and axes out into points, and finds those that its figure and claims refer to.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use crate::error::{Result, bail};
use toml::Spanned;

use crate::blame::Page;
use crate::cell::Runs;
use crate::design::{
    AxisLabels, Drawn, HistoryOrigin, HistorySource, Label, SettledExperiment, StudyPoint,
    WORKLOAD, listed,
};
use crate::embedded;
use crate::recipe::{
    Axis, Expect, Experiment, Figure, FigureKind, Recipe, Skip, StudyWorkload, Words,
};
use crate::rules::Rules;
use crate::switches::{Filler, expect_check, expect_generate, plain};
use kingsnake_text::grouped;

/// Every point is a place in a figure or a table. A larger page is of no use.
const MOST_POINTS: u64 = 100_000;

/// Collects histories and points while experiments are settled.
pub struct Settler<'a> {
    pub(crate) page: Page<'a>,
    rules: &'a dyn Rules,
    base: &'a Path,
    pub(crate) recipe: &'a Recipe,
    pub(crate) parameters: &'a BTreeMap<String, String>,
    backends: Vec<String>,
    sources: Vec<HistorySource>,
    points: Vec<StudyPoint>,
    /// Where each of them stands.
    source_places: HashMap<HistoryOrigin, usize>,
    point_places: HashMap<(usize, Vec<String>, Option<Expect>), usize>,
    /// The names of sources, and the last number that was added to each.
    stems: HashMap<String, usize>,
}

/// The effect of one value of an axis.
#[derive(Clone)]
struct AxisValue {
    label: Label,
    set: Vec<(String, String)>,
    check: Words,
    /// Whether it is smaller than every value of the study.
    is_reduced: bool,
}

/// An axis's values where all are larger than what was given: each with the given size; along an axis of numbers that is one value.
fn reduced(all: &[AxisValue], given: &BTreeMap<&str, &str>) -> Vec<AxisValue> {
    let mut smaller: Vec<AxisValue> = all.iter().filter_map(|it| it.reduced(given)).collect();
    smaller.dedup_by(|a, b| a.label.number.is_some() && a.label.name == b.label.name);
    smaller
}

impl AxisValue {
    /// Whether it sets none of the parameters that were given, or sets them to the same, or to a smaller number.
    fn is_within(&self, given: &BTreeMap<&str, &str>) -> bool {
        self.set.iter().all(|(name, value)| {
            let Some(&most) = given.get(name.as_str()) else {
                return true;
            };
            let numbers = (value.parse::<f64>(), most.parse::<f64>());
            match numbers {
                (Ok(value), Ok(most)) if self.label.number.is_some() => value <= most,
                _ => value == most,
            }
        })
    }

    /// The same with the size that was given in place of a larger one.
    fn reduced(&self, given: &BTreeMap<&str, &str>) -> Option<AxisValue> {
        let mut value = self.clone();
        let mut set = value.set.iter_mut();
        let (size, &word) = set.find_map(|(name, size)| Some((size, given.get(name.as_str())?)))?;
        let (most, number): (u64, u64) = (size.parse().ok()?, word.parse().ok()?);
        *size = most.min(number).to_string();
        if value.label.number.is_some() {
            value.label = Label {
                name: grouped(number),
                number: Some(number as f64),
            };
        }
        value.is_reduced = true;
        Some(value)
    }
}

impl<'a> Settler<'a> {
    /// Nothing collected yet.
    pub fn new(
        recipe: &'a Recipe,
        page: Page<'a>,
        rules: &'a dyn Rules,
        base: &'a Path,
        parameters: &'a BTreeMap<String, String>,
        backends: Vec<String>,
    ) -> Self {
        Settler {
            page,
            rules,
            base,
            recipe,
            parameters,
            backends,
            sources: Vec::new(),
            points: Vec::new(),
            source_places: HashMap::new(),
            point_places: HashMap::new(),
            stems: HashMap::new(),
        }
    }

    /// What was collected.
    pub fn finish(self) -> (Vec<HistorySource>, Vec<StudyPoint>) {
        (self.sources, self.points)
    }

    /// Settles one experiment, whose checks are run so often.
    ///
    /// An axis over a parameter that was given on the command line is shortened: to the numbers up to the given one, or to the
    /// values that equal it.
    pub fn experiment(
        &mut self,
        experiment: &Experiment,
        runs: Runs,
        given: &BTreeMap<&str, &str>,
    ) -> Result<SettledExperiment> {
        let workloads = self.workloads(experiment)?;
        let mut axes = vec![AxisLabels {
            name: WORKLOAD.to_owned(),
            values: workloads
                .iter()
                .map(|workload| Label {
                    name: workload.name.get_ref().clone(),
                    number: None,
                })
                .collect(),
        }];
        let mut choices: Vec<Vec<AxisValue>> = Vec::new();
        let mut is_shortened = false;
        for axis in &experiment.axes {
            if axes.iter().any(|other| other.name == *axis.name.get_ref()) {
                let words = "there is another axis of this name";
                return Err(self.page.blame(axis.name.span(), words));
            }
            let mut of = self.choices(axis)?;
            let n_all = of.len();
            let smaller = reduced(&of, given);
            of.retain(|choice| choice.is_within(given));
            if of.is_empty() {
                of = smaller;
            }
            if of.is_empty() {
                bail!(
                    "the axis {:?} of the experiment {} varies what was given ({}), and none of its values is left; choose other figures with --figure, or another value",
                    axis.name.get_ref(),
                    experiment.name.get_ref(),
                    listed(
                        given
                            .iter()
                            .map(|(name, value)| format!("{name}={value}"))
                            .collect::<Vec<_>>()
                            .iter()
                    )
                );
            }
            is_shortened |= of.len() < n_all || of.iter().any(|it| it.is_reduced);
            axes.push(AxisLabels {
                name: axis.name.get_ref().clone(),
                values: of.iter().map(|choice| choice.label.clone()).collect(),
            });
            choices.push(of);
        }
        let left_out = LeftOut::all(self, &experiment.skips, &axes, is_shortened)?;
        let sizes = choices.iter().map(|of| of.len() as u64);
        let n_points = sizes.fold(workloads.len() as u64, u64::saturating_mul);
        if n_points > MOST_POINTS {
            bail!(
                "the axes of the experiment {} multiply to {n_points} checks: a study shows at most {MOST_POINTS}",
                experiment.name.get_ref()
            );
        }
        let mut grid = Vec::new();
        for (which, workload) in workloads.into_iter().enumerate() {
            let mut at = vec![0; choices.len()];
            loop {
                let labels = std::iter::once(which).chain(at.iter().copied());
                let labels: Vec<&Label> = axes
                    .iter()
                    .zip(labels)
                    .map(|(axis, at)| &axis.values[at])
                    .collect();
                let runs = if left_out.iter().any(|it| it.covers(&labels)) {
                    Runs::default()
                } else {
                    runs
                };
                let chosen = choices.iter().zip(&at).map(|(of, &at)| &of[at]);
                grid.push(self.point(experiment, workload, chosen.collect(), runs)?);
                if !step(&mut at, &choices) {
                    break;
                }
            }
        }
        let mut shown = SettledExperiment {
            name: experiment.name.get_ref().clone(),
            title: experiment.title.clone(),
            about: experiment.about.clone(),
            axes,
            grid,
            figure: None,
            tables: experiment.tables.clone(),
            claims: Vec::new(),
            unstated: Vec::new(),
        };
        if let Some(figure) = &experiment.figure {
            shown.figure = Some(self.drawn(figure, &shown, experiment.name.span())?);
        }
        for claim in &experiment.claims {
            match self.stated(claim, experiment, &shown) {
                Ok(stated) => shown.claims.extend(stated),
                // It is about a value that was left out.
                Err(_) if is_shortened => shown.unstated.push(claim.says.clone()),
                Err(error) => return Err(error),
            }
        }
        Ok(shown)
    }

    fn workloads(&self, experiment: &Experiment) -> Result<Vec<&'a StudyWorkload>> {
        let Some(wanted) = &experiment.workloads else {
            return Ok(self.recipe.workloads.iter().collect());
        };
        wanted
            .iter()
            .map(|name| {
                let mut all = self.recipe.workloads.iter();
                all.find(|it| it.name.get_ref() == name.get_ref())
                    .ok_or_else(|| {
                        let all = self.recipe.workloads.iter().map(|it| it.name.get_ref());
                        let words = format!(
                            "there is no workload of this name; there is {}",
                            listed(all)
                        );
                        self.page.blame(name.span(), &words)
                    })
            })
            .collect()
    }

    fn choices(&self, axis: &Axis) -> Result<Vec<AxisValue>> {
        let sets = |value: &str| match &axis.parameter {
            Some(parameter) => vec![(parameter.get_ref().clone(), value.to_owned())],
            None => Vec::new(),
        };
        if let Some(parameter) = &axis.parameter {
            self.expect_parameter(parameter)?;
        } else if axis.values.is_some() || axis.backends {
            let words = "`values` and `backends` need a `parameter` that takes them";
            return Err(self.page.blame(axis.name.span(), words));
        }
        let mut all: Vec<AxisValue> = Vec::new();
        for value in axis.values.iter().flat_map(Spanned::get_ref) {
            let number = value
                .number
                .map(|it| if axis.percent { it * 100.0 } else { it });
            let name = match (axis.percent, number) {
                (true, Some(percent)) => format!("{} %", (percent * 10.0).round() / 10.0),
                (false, Some(whole)) if whole >= 1000.0 && whole.fract() == 0.0 => {
                    grouped(whole as u64)
                }
                _ => value.word.clone(),
            };
            all.push(AxisValue {
                label: Label { name, number },
                set: sets(&value.word),
                check: Vec::new(),
                is_reduced: false,
            });
        }
        for name in self.backends.iter().filter(|_| axis.backends) {
            all.push(AxisValue {
                label: Label {
                    name: name.clone(),
                    number: None,
                },
                set: sets(name),
                check: Vec::new(),
                is_reduced: false,
            });
        }
        for named in &axis.named {
            let mut set = Vec::new();
            for (parameter, value) in &named.set {
                self.expect_parameter(parameter)?;
                set.push((parameter.get_ref().clone(), value.word.clone()));
            }
            // A value that sets several parameters can still be a number, so that lines can be drawn along it.
            let name = named.name.get_ref().clone();
            let number = name.replace(',', "").parse().ok();
            all.push(AxisValue {
                label: Label { name, number },
                set,
                check: named.check.clone(),
                is_reduced: false,
            });
        }
        if all.is_empty() {
            let words = "this axis has no values: give `values`, `[[…value]]` or `backends = true`";
            return Err(self.page.blame(axis.name.span(), words));
        }
        Ok(all)
    }

    fn expect_parameter(&self, name: &Spanned<String>) -> Result<()> {
        if self.parameters.contains_key(name.get_ref()) {
            return Ok(());
        }
        let words = format!(
            "there is no parameter {:?} in [parameters]; there is {}",
            name.get_ref(),
            listed(self.parameters.keys())
        );
        Err(self.page.blame(name.span(), &words))
    }

    fn point(
        &mut self,
        experiment: &Experiment,
        workload: &StudyWorkload,
        chosen: Vec<&AxisValue>,
        runs: Runs,
    ) -> Result<usize> {
        let mut parameters = self.parameters.clone();
        for (name, value) in chosen.iter().flat_map(|choice| &choice.set) {
            parameters.insert(name.clone(), value.clone());
        }
        let filler = Filler {
            page: self.page,
            parameters: &parameters,
        };
        let source = self.source(workload, &filler)?;
        let mut check = filler.fill(&self.recipe.check)?;
        check.extend(filler.fill(&workload.check)?);
        check.extend(filler.fill(&experiment.check)?);
        for choice in chosen {
            check.extend(filler.fill(&choice.check)?);
        }
        let refused = expect_check(self.rules, &check, self.page, workload.name.span())?;
        let point = StudyPoint {
            source,
            check: plain(check),
            expect: workload.expect,
            refused,
            runs,
        };
        let question = (source, point.check.clone(), point.expect);
        let place = *self.point_places.entry(question).or_insert_with(|| {
            self.points.push(point);
            self.points.len() - 1
        });
        let asked = &mut self.points[place].runs;
        asked.seeds = asked.seeds.max(runs.seeds);
        asked.repeats = asked.repeats.max(runs.repeats);
        Ok(place)
    }

    fn source(&mut self, workload: &StudyWorkload, filler: &Filler<'_>) -> Result<usize> {
        let origin = match (&workload.generate, &workload.file, &workload.corpus) {
            (Some(words), None, None) => {
                let words = filler.fill(words)?;
                expect_generate(self.rules, &words, self.page, workload.name.span())?;
                HistoryOrigin::Generated(plain(words))
            }
            (None, Some(file), None) => {
                let path = self.base.join(file.get_ref());
                if !path.exists() {
                    let words = format!("there is no {}", path.display());
                    return Err(self.page.blame(file.span(), &words));
                }
                HistoryOrigin::File(path)
            }
            (None, None, Some(name)) => {
                let Some((name, text)) = embedded::corpus(name.get_ref()) else {
                    let words = format!(
                        "the executable carries {} of the corpus; for others use `file`",
                        embedded::corpus_names().join(", ")
                    );
                    return Err(self.page.blame(name.span(), &words));
                };
                HistoryOrigin::Corpus {
                    name: name.to_owned(),
                    text,
                }
            }
            _ => {
                let words = "a workload has exactly one of `generate`, `file` and `corpus`";
                return Err(self.page.blame(workload.name.span(), words));
            }
        };
        if let Some(&known) = self.source_places.get(&origin) {
            return Ok(known);
        }
        let stem = slug(workload.name.get_ref());
        let mut name = stem.clone();
        while self.stems.contains_key(&name) {
            let number = self.stems.entry(stem.clone()).or_insert(1);
            *number += 1;
            name = format!("{stem}-{number}");
        }
        self.stems.insert(name.clone(), 1);
        let place = self.sources.len();
        self.source_places.insert(origin.clone(), place);
        self.sources.push(HistorySource { name, origin });
        Ok(place)
    }

    pub(crate) fn axis(&self, name: &Spanned<String>, axes: &[AxisLabels]) -> Result<usize> {
        let place = axes.iter().position(|it| it.name == *name.get_ref());
        place.ok_or_else(|| {
            let all = listed(axes.iter().map(|axis| &axis.name));
            let words = format!("there is no axis of this name; there is {all}");
            self.page.blame(name.span(), &words)
        })
    }

    fn drawn(
        &self,
        figure: &Figure,
        shown: &SettledExperiment,
        shown_span: Range<usize>,
    ) -> Result<Drawn> {
        let axis = |name| self.axis(name, &shown.axes);
        let (x, series) = match (&figure.x, &figure.series, figure.kind) {
            (None, Some(series), FigureKind::Cactus) => (None, axis(series)?),
            (Some(x), _, FigureKind::Cactus) => {
                let words = "a cactus has no `x`: it counts instances";
                return Err(self.page.blame(x.span(), words));
            }
            // Its parts are its colours, or it has one colour.
            (Some(x), None, FigureKind::Phases | FigureKind::Detection | FigureKind::Making) => {
                (Some(axis(x)?), axis(x)?)
            }
            (_, Some(series), FigureKind::Phases | FigureKind::Detection | FigureKind::Making) => {
                let words = "a figure of phases, detection or making has no `series`: phases and making have parts as colours, detection has one colour";
                return Err(self.page.blame(series.span(), words));
            }
            (Some(x), Some(series), kind) => {
                let (at, series) = (axis(x)?, axis(series)?);
                if at == series {
                    let words = "`x` and `series` must be different axes";
                    return Err(self.page.blame(x.span(), words));
                }
                let numbers = shown.axes[at].values.iter().all(|it| it.number.is_some());
                if kind == FigureKind::Lines && !numbers {
                    let words = "lines need an axis of numbers";
                    return Err(self.page.blame(x.span(), words));
                }
                (Some(at), series)
            }
            (x, series, _) => {
                let words = "bars, lines and aborts need `x` and `series`, a cactus `series`, phases, detection and making `x`";
                let named = x.as_ref().or(series.as_ref());
                let span = named.map_or(shown_span, Spanned::span);
                return Err(self.page.blame(span, words));
            }
        };
        Ok(Drawn {
            figure: figure.clone(),
            x,
            series,
        })
    }
}

/// Some combinations that are not run, their axes found.
struct LeftOut {
    of: Vec<(usize, String)>,
    above: Vec<(usize, f64)>,
}

impl LeftOut {
    fn all(
        settler: &Settler<'_>,
        skips: &[Skip],
        axes: &[AxisLabels],
        is_shortened: bool,
    ) -> Result<Vec<LeftOut>> {
        let mut all = Vec::new();
        for skip in skips {
            let mut left_out = LeftOut {
                of: Vec::new(),
                above: Vec::new(),
            };
            for (name, value) in &skip.of {
                let axis = settler.axis(name, axes)?;
                let values = &axes[axis].values;
                if !is_shortened && !values.iter().any(|label| label.name == value.word) {
                    let words = format!("this axis has no value {:?}", value.word);
                    return Err(settler.page.blame(name.span(), &words));
                }
                left_out.of.push((axis, value.word.clone()));
            }
            for (name, &limit) in &skip.above {
                left_out.above.push((settler.axis(name, axes)?, limit));
            }
            all.push(left_out);
        }
        Ok(all)
    }

    fn covers(&self, labels: &[&Label]) -> bool {
        let is_above =
            |&(axis, limit): &(usize, f64)| labels[axis].number.is_some_and(|it| it > limit);
        self.of
            .iter()
            .all(|(axis, name)| labels[*axis].name == *name)
            && self.above.iter().all(is_above)
    }
}

fn step(at: &mut [usize], choices: &[Vec<AxisValue>]) -> bool {
    for place in (0..at.len()).rev() {
        at[place] += 1;
        if at[place] < choices[place].len() {
            return true;
        }
        at[place] = 0;
    }
    false
}

/// A name as a file name has it.
pub fn slug(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_alphanumeric() {
            out.push(letter.to_ascii_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "history" } else { out }.to_owned()
}
