//! `kingsnake check` and `kingsnake explain`: from what was typed to an answer and its outputs, whatever is asked.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result};
use kingsnake_datasets::{Format, InputProblem, Parsed, Pending, ReadError};
use kingsnake_encodings::proof::{Checked, Proving, instance_path};
use kingsnake_report::answer::Answer;
use kingsnake_report::meaning::TracedHistory;
use kingsnake_solver::auto::Asked;
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::check::{CheckError, Decider, Engines};
use kingsnake_solver::check_promise;
use kingsnake_solver::decide::Backend;
use kingsnake_solver::level::Level;
use kingsnake_solver::progress::{Phase, Progress, ProgressEvent};
use kingsnake_solver::verdict::Verdict;

use super::auto::LevelSurvey;
use super::workload::{self, RuleAnswer};
use crate::anomalies::{self, Expected};
use crate::answer::recorded::{is_searched_instead, other_order, read_expected};
use crate::answer::ruled_out::broken_models;
use crate::answer::{Reported, deliver, outputs, status_of};
use crate::args::CheckArgs;
use crate::assumptions::{self, assumed};
use crate::input::{self, load, source_of, thinned};
use crate::limits::{self, within};
use crate::output::{Output, expect_apart};
use crate::plan::{Plan, start_threads};
use crate::processor::{Marks, Metered};
use crate::progress::{CheckListener, Drawing};
use crate::refused::expect_sensible;
use crate::voice::Voice;
use crate::{directory, processor};

/// What is asked of a history, settled.
enum Inquiry {
    /// One level.
    Level(Box<Plan>, Expected),
    /// Every level.
    Auto(Box<LevelSurvey>),
    /// The rule of a workload.
    Rule(Box<RuleAnswer>),
}

impl Inquiry {
    fn new(args: &CheckArgs, start: Instant) -> Result<Inquiry> {
        if let Some(workload) = args.read.workload.filter(|it| it.has_rule()) {
            expect_sensible(args, None)?;
            let rule = RuleAnswer::new(args, workload, start)?;
            return Ok(Inquiry::Rule(Box::new(rule)));
        }
        if args.asks_auto() {
            expect_sensible(args, None)?;
            return Ok(Inquiry::Auto(Box::new(LevelSurvey::new(args, start)?)));
        }
        let plan = Plan::new(args)?;
        expect_sensible(args, Some(plan.level))?;
        let expected = Expected::parse(&args.all.expect, &args.all.anomalies)?;
        Ok(Inquiry::Level(Box::new(plan), expected))
    }

    /// Reads the history and asks; also returns what the user should know.
    fn answer(
        self,
        args: &CheckArgs,
        budget: &Budget,
        progress: CheckListener,
        start: Instant,
    ) -> Result<(Box<dyn Reported>, Vec<String>)> {
        match self {
            Inquiry::Level(plan, expected) => {
                let answered = answer(*plan, args, budget, progress, start);
                let (mut answer, warnings) = answered?;
                answer.expected = expected;
                Ok((Box::new(answer), warnings))
            }
            Inquiry::Auto(survey) => survey.conduct(args, budget, progress),
            Inquiry::Rule(rule) => Ok((Box::new(rule.judged(args, budget)?), Vec::new())),
        }
    }

    /// The answer where the limits ended before there was one.
    fn stopped(self, args: &CheckArgs, reason: StopReason, start: Instant) -> Box<dyn Reported> {
        match self {
            Inquiry::Level(plan, expected) => {
                let verdict = Verdict::Unknown(reason);
                let mut answer = settled(&plan, args, verdict, Decider::None, start);
                answer.source.path.clone_from(&plan.history);
                answer.expected = expected;
                answer.cost.phases = vec![(Phase::Parse.name(), start.elapsed())];
                Box::new(answer)
            }
            Inquiry::Auto(survey) => Box::new(survey.stopped(reason)),
            Inquiry::Rule(rule) => Box::new(rule.stopped(reason)),
        }
    }
}

/// Checks, and writes the answer to every output.
pub fn run(args: &CheckArgs, voice: Voice, start: Instant) -> Result<u8> {
    assumptions::expect_usable(args)?;
    let inquiry = Inquiry::new(args, start)?;
    expect_outputs(args)?;
    start_threads(&args.limits)?;
    let bounds = &args.limits.bounds;
    let budget = limits::budget(bounds, start)?;
    let drawing = Drawing::new(start, voice.quiet);
    let work = {
        let (args, budget) = (args.clone(), budget.clone());
        let listener = drawing.listener();
        move || inquiry.answer(&args, &budget, listener, start)
    };
    let answered = within(&budget, work);
    drop(drawing);
    let (mut answer, warnings) = match answered {
        Ok(answered) => answered,
        Err(error) => match (limits::stopped(&error), limits::certified()) {
            (_, Some(status)) => return limits::standing(status, Err(error)),
            (Some(reason), None) => {
                let stopped = Inquiry::new(args, start)?.stopped(args, reason.clone(), start);
                (stopped, Vec::new())
            }
            _ => match instead(args, &error, &budget) {
                Some(args) => return run(&args, voice, start),
                None => return Err(error),
            },
        },
    };
    voice.warn_each(&warnings);
    let (status, files, explains) = (answer.status(), args.files.clone(), args.explains);
    limits::tell(&budget, bounds, start, status, move || {
        answer.tell(&files, explains);
        deliver(&mut *answer, &files, voice, explains)?;
        limits::let_go(answer);
        Ok(())
    })
}

/// What to ask instead where the operations are no transactions, but those of a workload.
fn instead(args: &CheckArgs, error: &anyhow::Error, budget: &Budget) -> Option<CheckArgs> {
    if !is_no_transaction(error) || args.read.workload.is_some() || args.asks_auto() {
        return None;
    }
    let mut args = args.clone();
    args.read.workload = Some(workload::recognised(&args, budget)?);
    Some(args)
}

/// An answer of this plan, without a history yet.
fn settled(
    plan: &Plan,
    args: &CheckArgs,
    verdict: Verdict,
    decider: Decider,
    start: Instant,
) -> Answer<'static> {
    let asked = Asked {
        level: plan.level,
        spec: plan.spec,
    };
    let mut answer = Answer::new(asked, plan.promise.clone(), verdict, decider);
    answer.run = args.tells_run().then(|| plan.run());
    processor::settle(&mut answer.cost, start, args.tells_run());
    answer
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

/// The answer, and notes for the user.
fn answer(
    plan: Plan,
    args: &CheckArgs,
    budget: &Budget,
    mut progress: CheckListener,
    start: Instant,
) -> Result<(Answer<'static>, Vec<String>)> {
    let mut marks = Marks::new(args.files.json.is_some());
    marks.begin(Phase::Parse);
    progress.event(ProgressEvent::Phase(Phase::Parse));
    let parsed = load(&args.history, &args.read, budget)?;
    let mut parsed: Parsed = assumed(thinned(parsed, &plan), &plan.assume)?;
    if let Some(map) = &plan.isolation_map {
        map.apply(&mut parsed.history)?;
    }
    let read = start.elapsed();
    let mut warnings = parsed.warnings.clone();
    let mut plan = for_registers(plan, args, &parsed, &mut warnings);
    read_expected(&mut plan, &parsed.history)?;
    let (mut backend, mut device) = (plan.backend()?, plan.device()?);
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
    let mut answer = settled(&plan, args, report.verdict, report.decider, start);
    let (history, source) = source_of(parsed, &plan.history);
    answer.cost.spend(Phase::Parse.name(), read);
    for &(name, time) in &report.stats.phases {
        answer.cost.spend(name, time);
    }
    answer.cost.by_phase = marks.spent();
    answer.history = Some(Cow::Owned(history));
    (answer.source, answer.stats) = (source, report.stats);
    (answer.traces, answer.found) = (traces, found);
    (answer.other_order, answer.proof) = (other_order, proof);
    Ok((answer, warnings))
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
