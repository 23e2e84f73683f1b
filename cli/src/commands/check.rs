//! `kingsnake check` and `kingsnake explain`: from a file to a verdict, text and pictures.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use kingsnake_datasets::{Format, InputProblem, Parsed, Pending, ReadError};
use kingsnake_encodings::BackendOptions;
use kingsnake_encodings::proof::{Checked, Proving, instance_path};
use kingsnake_evidence::certificate;
use kingsnake_gpu::Gpu;
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::certify::Traces;
use kingsnake_solver::check::{CheckError, CheckStats, Decider, Engines};
use kingsnake_solver::check_promise;
use kingsnake_solver::decide::Backend;
use kingsnake_solver::level::Level;
use kingsnake_solver::progress::{Phase, Progress, ProgressEvent};
use kingsnake_solver::verdict::Verdict;
use kingsnake_tell::StoryLine;

use super::workload;
use crate::anomalies::{self, Expected, Found};
use crate::answer::ordered;
use crate::answer::recorded::{is_searched_instead, other_order, read_expected};
use crate::answer::ruled_out::broken_models;
use crate::answer::telling::tell;
use crate::answer::{Answer, status_of};
use crate::args::{CheckArgs, FileArgs};
use crate::assumptions::assumed;
use crate::input::{self, load, thinned};
use crate::limits::{self, is_stdio, within};
use crate::meaning::TracedHistory;
use crate::output::{Output, expect_apart, put};
use crate::picture::{self, Scene};
use crate::plan::{Plan, start_threads};
use crate::processor::{Marks, Metered};
use crate::progress::{CheckListener, Drawing};
use crate::refused::expect_sensible;
use crate::remarks::hints;
use crate::voice::{Voice, say};
use crate::{directory, edn, json, page};

/// The tightness of longer orders is not computed: that takes time quadratic in their length.
const MOST_POINTS: usize = 200_000;

/// Checks, and prints the answer in the form that `words` gives it.
pub fn run(
    args: &CheckArgs,
    voice: Voice,
    start: Instant,
    words: fn(&Answer, Voice) -> String,
) -> Result<u8> {
    if let Some(workload) = args.read.workload.filter(|it| it.has_rule()) {
        expect_sensible(args, None)?;
        expect_outputs(args)?;
        return workload::run(args, workload, voice, start);
    }
    let plan = Plan::new(args)?;
    expect_sensible(args, Some(plan.level))?;
    let expected = Expected::parse(&args.all.expect, &args.all.anomalies)?;
    expect_outputs(args)?;
    start_threads(&args.limits)?;
    let bounds = &args.limits.bounds;
    let budget = limits::budget(bounds, start)?;
    let drawing = Drawing::new(start, voice.quiet);
    let work = {
        let (args, plan, budget) = (args.clone(), plan.clone(), budget.clone());
        let listener = drawing.listener();
        move || answer(plan, &args, &budget, listener, start)
    };
    let answered = within(&budget, work);
    drop(drawing);
    let (mut answer, warnings) = match answered {
        Ok(answered) => answered,
        Err(error) => match (limits::stopped(&error), limits::certified()) {
            (_, Some(status)) => return limits::standing(status, Err(error)),
            (Some(reason), None) => (stopped(plan, reason.clone(), start), Vec::new()),
            _ if is_no_transaction(&error) && args.read.workload.is_none() => {
                return match workload::recognised(args, &budget) {
                    Some(workload) => {
                        let mut args = args.clone();
                        args.read.workload = Some(workload);
                        run(&args, voice, start, words)
                    }
                    None => Err(error),
                };
            }
            _ => return Err(error),
        },
    };
    voice.warn_each(&warnings);
    answer.expected = expected;
    let (status, files) = (answer.status(), args.files.clone());
    let explains = args.explains;
    limits::tell(&budget, bounds, start, status, move || {
        let mut answer = told(answer, explains || files.report.is_some());
        let traces = answer.traces.take();
        deliver(&answer, traces, &files, voice, words)?;
        for hint in &answer.hints {
            voice.hint(hint);
        }
        limits::let_go(answer);
        Ok(())
    })
}

/// Refuses output files that cannot be written, or that are the same file as another output or the input.
pub fn expect_outputs(args: &CheckArgs) -> Result<()> {
    let instance = args.files.proof.as_deref().map(instance_path);
    let instance = instance.as_deref().map(|path| Output {
        option: "the instance of --proof",
        path,
    });
    let outputs: Vec<Output<'_>> = outputs(&args.files).chain(instance).collect();
    if let Some(path) = &args.files.directory {
        directory::expect_usable(path)?;
    }
    expect_apart(&input::files(&args.history, &args.read), &outputs)
}

/// Whether a file was refused because its operations are not transactions.
fn is_no_transaction(error: &anyhow::Error) -> bool {
    let problem = error.downcast_ref::<ReadError>().map(ReadError::problem);
    matches!(problem, Some(InputProblem::Unsupported(_)))
}

/// Jepsen's compare-and-set logs are checked for linearizability unless a level is given: their values repeat, and
/// clients of registers are promised linearizability.
fn for_registers(
    plan: Plan,
    args: &CheckArgs,
    parsed: &Parsed,
    warnings: &mut Vec<String>,
) -> Plan {
    let is_asked = args.level.level.is_some() || args.read.workload.is_some() || args.is_recorded();
    let is_log = matches!(parsed.format, Format::JepsenEdn | Format::JepsenJson);
    if is_asked || !is_log || parsed.history.all_compares().is_empty() {
        return plan;
    }
    // The options may apply to serializability only, such as --session-order.
    let Ok(registers) = Plan::at(Level::Linearizable, args) else {
        return plan;
    };
    if expect_sensible(args, Some(registers.level)).is_err() {
        return plan;
    }
    let words = "compare-and-sets of registers are checked for linearizability, as with --workload cas-register; --level gives another level";
    warnings.push(words.to_owned());
    registers
}

fn stopped(plan: Plan, reason: StopReason, start: Instant) -> Answer {
    Answer {
        plan,
        parsed: None,
        traces: None,
        verdict: Verdict::Unknown(reason),
        decider: Decider::None,
        stats: CheckStats::default(),
        telling: None,
        ordered: None,
        other_order: None,
        hints: Vec::new(),
        found: None,
        expected: Expected::default(),
        proof: None,
        phases: vec![(Phase::Parse.name(), start.elapsed())],
        costs: Vec::new(),
        time: start.elapsed(),
    }
}

/// The answer, and notes for the user.
fn answer(
    plan: Plan,
    args: &CheckArgs,
    budget: &Budget,
    mut progress: CheckListener,
    start: Instant,
) -> Result<(Answer, Vec<String>)> {
    let (mut device, cooler) = (Gpu::new(plan.device.clone()), plan.cooler());
    let mut marks = Marks::new(args.files.json.is_some());
    marks.begin(Phase::Parse);
    progress.event(ProgressEvent::Phase(Phase::Parse));
    let parsed = load(&args.history, &args.read, budget)?;
    let mut parsed: Parsed = assumed(thinned(parsed, &plan), &plan.assume)?;
    if let Some(map) = &plan.isolation_map {
        map.apply(&mut parsed.history)?;
    }
    let mut phases = vec![(Phase::Parse.name(), start.elapsed())];
    let mut warnings = parsed.warnings.clone();
    let mut plan = for_registers(plan, args, &parsed, &mut warnings);
    read_expected(&mut plan, &parsed.history)?;
    let mut backend = kingsnake_encodings::backend(
        &plan.backend,
        &BackendOptions {
            seed: plan.seed,
            propagator: plan.search,
            cooler: Some(cooler),
        },
    )?;
    kingsnake_gpu::expect(&plan.device)
        .map_err(|why| anyhow!("--device {}: {why}", plan.device))?;
    let mut check = |plan: &Plan, backend: &mut dyn Backend| {
        let engines = Engines {
            device: Some(&mut device),
            backend,
        };
        let listener = &mut Metered {
            marks: &mut marks,
            inner: &mut progress,
        };
        let (history, techniques) = (&parsed.history, &plan.techniques);
        check_promise(
            history,
            &plan.promise,
            techniques,
            engines,
            budget,
            listener,
        )
    };
    let (report, proof) = match &args.files.proof {
        None => match check(&plan, &mut *backend) {
            Err(CheckError::Recorded(why)) if is_searched_instead(&plan, &why) => {
                plan = plan.searching();
                warnings.push(format!(
                    "{why}; judged as {} instead, where an order of versions is searched",
                    plan.promise
                ));
                (check(&plan, &mut *backend)?, None)
            }
            report => (report?, None),
        },
        Some(path) => {
            let about = vec![format!(
                "kingsnake {}: {}",
                env!("CARGO_PKG_VERSION"),
                plan.command()
            )];
            let (pending, _) =
                Pending::new(path).with_context(|| format!("cannot write {}", path.display()))?;
            let proof = pending.path().to_owned();
            let instance = Pending::adopt(&instance_path(&proof), &instance_path(path))?;
            let mut proving = Proving::new(backend, proof, about, plan.seed);
            let report = check(&plan, &mut proving)?;
            let written = proven(proving, path, [pending, instance]);
            let written = written.map_err(|why| {
                warnings.push(format!("no proof for {}: {why}", path.display()));
            });
            (report, written.ok())
        }
    };
    if args.all.expect.is_empty() && args.all.anomalies.is_empty() {
        limits::certify(status_of(&report.verdict));
    }
    warnings.extend(report.stats.prune.device.warning.clone());
    let decide = report.stats.decide.as_ref();
    warnings.extend(decide.and_then(|it| it.device.warning.clone()));
    for &(name, time) in &report.stats.phases {
        spend(&mut phases, name, time);
    }
    let (mut found, mut traces) = (None, None);
    if args.wants_anomalies() {
        let traced = TracedHistory::new(&parsed.history);
        match anomalies::find(traced.meaning(), budget)? {
            Ok(all) => found = Some(all),
            Err(reason) => warnings.push(format!("not all anomalies were looked for: {reason}")),
        }
        if let (Some(found), Verdict::Violated(counterexample)) = (&mut found, &report.verdict) {
            found.name(traced.meaning(), plan.spec, counterexample);
        }
        traces = traced.into_traces();
    }
    if let Some(found) = &mut found {
        let broken = broken_models(&parsed.history, &plan, &report.verdict, args, budget)?;
        found.rule_out(&broken.models);
        found.violated = broken.levels;
    }
    let other_order = if report.verdict.is_violated() {
        other_order(&parsed.history, &plan, budget)?
    } else {
        None
    };
    let answer = Answer {
        plan,
        parsed: Some(parsed),
        traces,
        verdict: report.verdict,
        decider: report.decider,
        stats: report.stats,
        telling: None,
        ordered: None,
        other_order,
        hints: Vec::new(),
        found,
        expected: Expected::default(),
        proof,
        phases,
        costs: marks.spent(),
        time: start.elapsed(),
    };
    Ok((answer, warnings))
}

/// The answer as text. The verdict is final already; this does not count as checking time.
fn told(mut answer: Answer, orders: bool) -> Answer {
    if let (Verdict::Satisfied(certificate), Some(parsed)) = (&answer.verdict, &answer.parsed) {
        let n_points = certificate.order.len();
        if orders && n_points <= MOST_POINTS {
            let ordered = ordered::ordered(&parsed.history, &answer.plan.promise, certificate);
            answer.ordered = Some(ordered);
        }
    }
    if let (Verdict::Violated(counterexample), Some(parsed)) = (&answer.verdict, &answer.parsed) {
        let begun = Instant::now();
        let traced = TracedHistory::resumed(&parsed.history, answer.traces.take());
        let mut telling = tell(traced.meaning(), &answer.plan.promise, counterexample);
        telling
            .story
            .lines
            .extend(answer.other_order.map(|it| StoryLine {
                depth: 0,
                text: it.sentence().to_owned(),
            }));
        answer.telling = Some(telling);
        answer.traces = traced.into_traces();
        spend(&mut answer.phases, Phase::Explain.name(), begun.elapsed());
        answer.time += begun.elapsed();
    }
    if let Some(parsed) = &answer.parsed {
        let name = answer.telling.as_ref().map(|it| it.name);
        answer.hints = hints(parsed, &answer.verdict, name);
    }
    answer
}

/// The proof and its instance under their file names, or why there is none.
fn proven(
    proving: Proving,
    path: &Path,
    files: [Pending; 2],
) -> Result<(PathBuf, Checked), String> {
    match proving.written() {
        Some(Ok(checked)) => {
            let named = files.into_iter().try_for_each(Pending::commit);
            named.map_err(|error| error.to_string())?;
            Ok((path.to_owned(), checked))
        }
        Some(Err(error)) => Err(error.to_string()),
        None => Err("the back end refuted nothing".to_owned()),
    }
}

/// Adds to the duration of a phase, which may run several times.
fn spend(phases: &mut Vec<(&'static str, Duration)>, name: &'static str, time: Duration) {
    match phases.iter_mut().find(|phase| phase.0 == name) {
        Some(phase) => phase.1 += time,
        None => phases.push((name, time)),
    }
}

fn outputs(args: &FileArgs) -> impl Iterator<Item = Output<'_>> {
    let all = [
        ("--certificate", &args.certificate),
        ("--proof", &args.proof),
        ("--json", &args.json),
        ("--edn", &args.edn),
        ("--dot", &args.dot),
        ("--svg", &args.svg),
        ("--report", &args.report),
    ];
    all.into_iter()
        .filter_map(|(option, path)| path.as_deref().map(|path| Output { option, path }))
}

/// Prints the verdict before it writes the files, so that a full disk does not lose an answer.
fn deliver(
    answer: &Answer,
    traces: Option<Traces>,
    files: &FileArgs,
    voice: Voice,
    words: fn(&Answer, Voice) -> String,
) -> Result<()> {
    // If a document goes to stdout, nothing else does.
    if !outputs(files).any(|it| is_stdio(it.path)) {
        say(&words(answer, voice)).context("cannot write to stdout")?;
        if let Some(found) = &answer.found {
            let is_violated = matches!(answer.verdict, Verdict::Violated(_));
            let mut text = format!("\n{}", found.words(voice, is_violated));
            for line in answer.missed() {
                text.push_str(&line);
                text.push('\n');
            }
            say(&text).context("cannot write to stdout")?;
        }
    }
    if let Some(path) = &files.json {
        let mut text = serde_json::to_string_pretty(&json::document(answer))?;
        text.push('\n');
        put(path, &text)?;
    }
    let wants_anomalies = files.edn.is_some() || files.directory.is_some();
    if let (Some(history), true) = (answer.history(), wants_anomalies) {
        let head = directory::Head {
            verdict: format!("{}: {}", answer.word(), answer.plan.promise),
            status: answer.status(),
            command: &answer.plan.short_command(),
        };
        let traced = TracedHistory::resumed(history, traces);
        write_anomalies(&traced, answer.found.as_ref(), files, &head)?;
    }
    if let Some(path) = &files.certificate {
        match (&answer.verdict, answer.history()) {
            (Verdict::Satisfied(order), Some(history)) => {
                let text = certificate(history, &answer.plan.promise, order);
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
        put(path, &page::page(answer, scene.as_ref()))?;
    }
    Ok(())
}

/// Writes Elle's map and the directory of anomalies, if requested.
pub fn write_anomalies(
    traced: &TracedHistory<'_>,
    found: Option<&Found>,
    files: &FileArgs,
    head: &directory::Head<'_>,
) -> Result<()> {
    if let Some(path) = &files.edn {
        put(path, &edn::document(traced, found, head.status))?;
    }
    if let (Some(path), Some(found)) = (&files.directory, found) {
        directory::write(path, traced.meaning(), found, head)?;
    }
    Ok(())
}

/// The operations over time, if linearizability was checked.
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
