//! `kingsnake check` and `kingsnake explain`: from a file to a verdict, words and pictures.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kingsnake_datasets::{Parsed, Problem, ReadError};
use kingsnake_encodings::Options;
use kingsnake_encodings::proof::{Checked, Proving};
use kingsnake_gpu::Gpu;
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::check::{CheckStats, Decider, Engines, check_on};
use kingsnake_solver::decide::Backend;
use kingsnake_solver::level::Level;
use kingsnake_solver::linearizable::check_linearizable;
use kingsnake_solver::progress::{Event, Phase, Progress};
use kingsnake_solver::verdict::Verdict;

use super::{expect_writable, put, workload};
use crate::answer::Answer;
use crate::args::{CheckArgs, FileArgs};
use crate::input::{Loaded, load_within, thinned};
use crate::picture::{self, Scene};
use crate::plan::Plan;
use crate::processor::{Marks, Metered};
use crate::progress::Drawing;
use crate::telling::{tell, tell_linearizable};
use crate::voice::{Voice, say};
use crate::{certificate, interrupt, json, memory, page};

/// Checks, and tells the answer in the words that `words` finds.
pub fn run(
    args: &CheckArgs,
    voice: Voice,
    start: Instant,
    words: fn(&Answer, Voice) -> String,
) -> Result<u8> {
    if let Some(workload) = args.read.workload.filter(|it| it.has_rule()) {
        for path in files(&args.files) {
            expect_writable(path)?;
        }
        return workload::run(args, workload, voice, start);
    }
    let plan = Plan::new(args)?;
    for path in files(&args.files) {
        expect_writable(path)?;
    }
    plan.start_threads()?;
    let asked = interrupt::listen().context("cannot listen to signals")?;
    let budget = plan.budget(start).with_interrupt(asked);
    let mut marks = Marks::default();
    marks.begin(Phase::Parse);
    let mut progress = Drawing::new(start, voice.quiet);
    progress.event(Event::Phase(Phase::Parse));
    let loaded = match load_within(&args.history, &args.read, &budget) {
        Err(error) if is_no_transaction(&error) && args.read.workload.is_none() => {
            drop(progress);
            return match workload::recognised(args) {
                Some(workload) if workload.has_rule() => {
                    workload::run(args, workload, voice, start)
                }
                Some(workload) => {
                    let mut args = args.clone();
                    args.read.workload = Some(workload);
                    args.limits.threads = None; // They have been started.
                    run(&args, voice, start, words)
                }
                None => Err(error),
            };
        }
        loaded => loaded?,
    };
    let answer = match loaded {
        Loaded::Stopped(reason) => {
            drop(progress);
            stopped(plan, reason, start)
        }
        Loaded::Parsed(parsed) => {
            let parsed = thinned(*parsed, &plan);
            let proof = args.files.proof.as_deref();
            let watch = Watch { start, marks };
            answer(plan, parsed, proof, &budget, progress, voice, watch)?
        }
    };
    let status = answer.status();
    deliver(&answer, &args.files, voice, words)?;
    // The process ends here; giving a million transactions back one by one would only take time.
    std::mem::forget(answer);
    Ok(status)
}

/// Whether a file was refused because its operations are no transactions.
fn is_no_transaction(error: &anyhow::Error) -> bool {
    let problem = error.downcast_ref::<ReadError>().map(ReadError::problem);
    matches!(problem, Some(Problem::Unsupported(_)))
}

fn stopped(plan: Plan, reason: StopReason, start: Instant) -> Answer {
    Answer {
        plan,
        parsed: None,
        verdict: Verdict::Unknown(reason),
        decider: Decider::Nobody,
        stats: CheckStats::default(),
        telling: None,
        proof: None,
        phases: vec![(Phase::Parse.name(), start.elapsed())],
        processor: Vec::new(),
        time: start.elapsed(),
        peak: memory::peak(),
    }
}

/// When the check began, and what its phases have used.
struct Watch {
    start: Instant,
    marks: Marks,
}

fn answer(
    plan: Plan,
    parsed: Parsed,
    proof: Option<&Path>,
    budget: &Budget,
    mut progress: Drawing,
    voice: Voice,
    watch: Watch,
) -> Result<Answer> {
    let Watch { start, mut marks } = watch;
    let mut phases = vec![(Phase::Parse.name(), start.elapsed())];
    let mut backend = kingsnake_encodings::backend(
        &plan.backend,
        &Options {
            seed: plan.seed,
            propagator: plan.search,
        },
    )?;
    let mut device = Gpu::new(plan.device.clone());
    let mut check = |backend: &mut dyn Backend| {
        let engines = Engines {
            device: Some(&mut device),
            backend,
        };
        check_on(
            &parsed.history,
            None,
            plan.spec,
            &plan.techniques,
            engines,
            budget,
            &mut Metered {
                marks: &mut marks,
                inner: &mut progress,
            },
        )
    };
    let is_linearizable = plan.level == Level::Linearizable;
    let (report, proof) = match proof {
        _ if is_linearizable => {
            if let Some(path) = proof {
                let why = "linearizability is decided without a back end";
                voice.warn(&format!("no proof for {}: {why}", path.display()));
            }
            let listener = &mut Metered {
                marks: &mut marks,
                inner: &mut progress,
            };
            let counts = plan.refusals_count;
            let report = check_linearizable(&parsed.history, plan.spec, counts, budget, listener)?;
            (report, None)
        }
        None => (check(&mut *backend)?, None),
        Some(path) => {
            let about = vec![format!(
                "kingsnake {}: {}",
                env!("CARGO_PKG_VERSION"),
                plan.command()
            )];
            let mut proving = Proving::new(backend, path.to_owned(), about, plan.seed);
            (check(&mut proving)?, proven(proving, path, voice))
        }
    };
    drop(progress);
    for warning in &parsed.warnings {
        voice.warn(warning);
    }
    if let Some(warning) = &report.stats.prune.device.warning {
        voice.warn(warning);
    }
    for &(name, time) in &report.stats.phases {
        spend(&mut phases, name, time);
    }
    let telling = match &report.verdict {
        Verdict::Violated(counterexample) => {
            let begun = Instant::now();
            marks.begin(Phase::Explain);
            let history = &parsed.history;
            let telling = if is_linearizable {
                tell_linearizable(history, plan.spec, &plan.promise(), counterexample)
            } else {
                tell(history, plan.spec, counterexample)
            };
            spend(&mut phases, Phase::Explain.name(), begun.elapsed());
            Some(telling)
        }
        _ => None,
    };
    Ok(Answer {
        plan,
        parsed: Some(parsed),
        verdict: report.verdict,
        decider: report.decider,
        stats: report.stats,
        telling,
        proof,
        phases,
        processor: marks.spent(),
        time: start.elapsed(),
        peak: memory::peak(),
    })
}

/// The proof that was written; where there is none, a warning says why.
fn proven(proving: Proving, path: &Path, voice: Voice) -> Option<(PathBuf, Checked)> {
    let why = match proving.written() {
        Some(Ok(checked)) => return Some((path.to_owned(), checked)),
        Some(Err(error)) => error.to_string(),
        None => "the back end refuted nothing".to_owned(),
    };
    voice.warn(&format!("no proof for {}: {why}", path.display()));
    None
}

/// Adds to a phase, which may come in several parts.
fn spend(phases: &mut Vec<(&'static str, Duration)>, name: &'static str, time: Duration) {
    match phases.iter_mut().find(|phase| phase.0 == name) {
        Some(phase) => phase.1 += time,
        None => phases.push((name, time)),
    }
}

fn files(args: &FileArgs) -> impl Iterator<Item = &Path> {
    let all = [
        &args.certificate,
        &args.proof,
        &args.json,
        &args.dot,
        &args.svg,
        &args.report,
    ];
    all.into_iter().flatten().map(AsRef::as_ref)
}

/// Says the verdict first, then writes the files, so that a full disk does not swallow an answer.
fn deliver(
    answer: &Answer,
    files: &FileArgs,
    voice: Voice,
    words: fn(&Answer, Voice) -> String,
) -> Result<()> {
    if files.json.as_deref() != Some(Path::new("-")) {
        say(&words(answer, voice)).context("cannot write to stdout")?;
    }
    if let Some(path) = &files.json {
        let mut text = serde_json::to_string_pretty(&json::document(answer))?;
        text.push('\n');
        put(path, &text)?;
    }
    if let Some(path) = &files.certificate {
        match (&answer.verdict, answer.history()) {
            (Verdict::Satisfied(order), Some(history)) => {
                let Plan { level, spec, .. } = answer.plan;
                let text = if level == Level::Linearizable {
                    let counts = answer.plan.refusals_count;
                    certificate::write_linearizable(history, spec, counts, order)
                } else {
                    certificate::write(history, spec, order)
                };
                put(path, &text)?;
            }
            _ => voice.warn(&format!(
                "no certificate for {}: not satisfied",
                path.display()
            )),
        }
    }
    let scene = scene(answer);
    let timeline = timeline(answer);
    let mut drawn = &files.svg;
    if let (Some(path), Some(picture)) = (drawn, &timeline) {
        put(path, picture)?;
        drawn = &None;
    }
    for (path, draw) in [
        (&files.dot, picture::dot::draw as fn(&Scene) -> String),
        (drawn, picture::svg::document),
    ] {
        match (path, &scene) {
            (Some(path), Some(scene)) => put(path, &draw(scene))?,
            (Some(path), None) => {
                voice.warn(&format!("no picture for {}: not violated", path.display()));
            }
            (None, _) => {}
        }
    }
    if let Some(path) = &files.report {
        put(
            path,
            &page::page(answer, scene.as_ref(), timeline.as_deref()),
        )?;
    }
    Ok(())
}

/// The operations over time, where linearizability was checked.
fn timeline(answer: &Answer) -> Option<String> {
    match (&answer.verdict, answer.history(), &answer.telling) {
        (Verdict::Violated(counterexample), Some(history), Some(telling))
            if answer.plan.level == Level::Linearizable =>
        {
            let (labels, txns) = (telling.labels(history), &telling.story.txns);
            let drawn = picture::timeline::document(history, &labels, txns, counterexample);
            Some(drawn)
        }
        _ => None,
    }
}

fn scene(answer: &Answer) -> Option<Scene> {
    match (&answer.verdict, answer.history(), &answer.telling) {
        (Verdict::Violated(counterexample), Some(history), Some(telling)) => Some(picture::scene(
            history,
            &telling.labels(history),
            counterexample,
        )),
        _ => None,
    }
}
