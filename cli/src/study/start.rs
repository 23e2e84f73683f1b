//! From what was typed to a study that runs.

use std::path::Path;

use anyhow::{Context, Result, bail};
use toml::Spanned;

use super::blame::Page;
use super::conduct::{Options, conduct};
use super::design::{Override, design};
use super::embedded::{BUILT_IN, built_in};
use super::recipe::{Measure, Recipe, Workload, enlarge, read};
use crate::args::{AblateArgs, EncodingsArgs, MeasureArg, StudyArgs};
use crate::voice::Voice;

/// Runs a built-in study, or one from a file.
pub fn ablate(typed: &AblateArgs, more: Vec<(String, String)>, voice: Voice) -> Result<u8> {
    let (name, args) = (&typed.name, &typed.study);
    let mut over = overrides(args);
    over.set.extend(more);
    over.figures.clone_from(&typed.figure);
    let recipe = |page: Page<'_>| {
        let mut recipe = read(page)?;
        if typed.paper_sizes {
            enlarge(&mut recipe, page)?;
        }
        anyhow::Ok(recipe)
    };
    let word = name.display().to_string();
    if let Some((file, text)) = built_in(&word) {
        let page = Page { name: file, text };
        return start(&recipe(page)?, page, Path::new(""), &over, args, voice);
    }
    if !name.exists() {
        let names: Vec<&str> = BUILT_IN.iter().map(|(name, ..)| *name).collect();
        bail!(
            "there is neither a file nor a built-in study {word:?}; built in are {}",
            names.join(", ")
        );
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("cannot read {word}"))?;
    let page = Page {
        name: &word,
        text: &text,
    };
    let base = name.parent().unwrap_or(Path::new(""));
    start(&recipe(page)?, page, base, &over, args, voice)
}

/// Runs the benchmark of back ends, on its own set or on these histories.
pub fn encodings(args: &EncodingsArgs, voice: Voice) -> Result<u8> {
    let Some((file, text)) = built_in("encodings") else {
        bail!("internal error: the study of encodings is not built in");
    };
    let page = Page { name: file, text };
    let mut recipe = read(page)?;
    if !args.histories.is_empty() {
        recipe.workloads = args
            .histories
            .iter()
            .map(|path| workload(path))
            .collect::<Result<_>>()?;
    }
    let mut over = overrides(&args.study);
    over.backends.clone_from(&args.backends);
    start(&recipe, page, Path::new(""), &over, &args.study, voice)
}

/// A history that was named on the command line.
fn workload(path: &Path) -> Result<Workload> {
    if !path.exists() {
        bail!("there is no {}", path.display());
    }
    let unplaced = |word: String| Spanned::new(0..0, word);
    Ok(Workload {
        name: unplaced(crate::answer::base_name(path)),
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
    args: &StudyArgs,
    voice: Voice,
) -> Result<u8> {
    let mut study = design(recipe, page, base, over)?;
    if let Some(typed) = args.measure {
        let drawn = study.experiments.iter_mut();
        for drawn in drawn.filter_map(|experiment| experiment.figure.as_mut()) {
            drawn.figure.measure = match typed {
                MeasureArg::Seconds => Measure::Seconds,
                MeasureArg::Cpu => Measure::Cpu,
                MeasureArg::Solver => Measure::Solver,
            };
        }
    }
    let options = Options {
        directory: args.out.clone(),
        jobs: usize::from(args.jobs),
        list: args.list,
        restart: args.restart,
    };
    conduct(&study, &options, voice)
}

fn overrides(args: &StudyArgs) -> Override {
    Override {
        repeat: args.repeat,
        seeds: args.seeds,
        timeout: args.timeout,
        memory: args.memory,
        set: args.set.clone(),
        backends: None,
        figures: None,
    }
}
