//! `kingsnake check --level auto`: which levels does the history satisfy?

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use kingsnake_datasets::Parsed;
use kingsnake_encodings::BackendOptions;
use kingsnake_gpu::Gpu;
use kingsnake_solver::auto::{Asked, auto, holds, levels, strongest};
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::certify::{Meaning, Traces};
use kingsnake_solver::check::{Decider, Engines, Report};
use kingsnake_solver::lattice::Names;
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::model::History;
use kingsnake_solver::progress::{Phase, Progress, ProgressEvent};
use kingsnake_solver::verdict::{Counterexample, Verdict};
use kingsnake_tell::name_by;
use serde_json::{Value, json};

use super::check::{expect_outputs, write_anomalies};
use crate::anomalies::{self, Expected, Found, KnownModels};
use crate::answer::base_name;
use crate::args::{CheckArgs, LevelArgs, OnOff};
use crate::assumptions::assumed;
use crate::directory::Head;
use crate::input::{load, thinned};
use crate::json::{SCHEMA, history_view, no_anomalies, reason_view};
use crate::limits::{self, is_stdio, within};
use crate::meaning::TracedHistory;
use crate::output::put;
use crate::page::survey as page;
use crate::plan::{Plan, clocked, quoted_path, start_threads};
use crate::progress::{CheckListener, Drawing};
use crate::refused::expect_sensible;
use crate::voice::{Voice, count, lasting, printable, say};
use crate::{memory, processor};

/// Time limit per level if `--timeout` sets none.
const PER_LEVEL: Duration = Duration::from_secs(60);

/// Checks every level and prints which hold.
pub fn run(args: &CheckArgs, voice: Voice, start: Instant) -> Result<u8> {
    expect_sensible(args, None)?;
    let files = &args.files;
    let survey = Survey::new(args)?;
    expect_outputs(args)?;
    start_threads(&args.limits)?;
    let bounds = &args.limits.bounds;
    let budget = limits::budget(bounds, start)?;
    let drawing = Drawing::new(start, voice.quiet);
    let work = {
        let (args, survey, budget) = (args.clone(), survey.clone(), budget.clone());
        let listener = drawing.listener();
        move || survey.conduct(&args, &budget, listener)
    };
    let surveyed = within(&budget, work);
    drop(drawing);
    let (survey, parsed, traces, warnings) = match surveyed {
        Ok(surveyed) => surveyed,
        Err(error) => match limits::stopped(&error) {
            Some(reason) => return stopped(&survey, reason, files.json.as_deref(), start),
            None => return Err(error),
        },
    };
    voice.warn_each(&warnings);
    let (file, report, files) = (files.json.clone(), files.report.clone(), files.clone());
    limits::tell(&budget, bounds, start, survey.status(), move || {
        if ![&file, &report, &files.edn]
            .iter()
            .any(|it| it.as_deref().is_some_and(is_stdio))
        {
            let words = survey.words(&parsed.history, voice, start.elapsed());
            say(&words).context("cannot write to stdout")?;
        }
        if let Some(path) = &file {
            let document = survey.document(Some(&parsed), None, start.elapsed());
            let mut text = serde_json::to_string_pretty(&document)?;
            text.push('\n');
            put(path, &text)?;
        }
        let strongest = match survey.strongest().as_slice() {
            [] => "no level is known to hold".to_owned(),
            names => format!("strongest: {}", names.join(", ")),
        };
        let head = Head {
            verdict: strongest,
            status: survey.status(),
            command: &survey.command(),
        };
        let traced = TracedHistory::resumed(&parsed.history, traces);
        write_anomalies(&traced, survey.found.as_ref(), &files, &head)?;
        if let Some(path) = &report {
            put(path, &survey.page(&parsed, &warnings, start.elapsed()))?;
        }
        limits::let_go(parsed);
        Ok(())
    })
}

/// Reports that the history could not be read within the limits.
fn stopped(
    survey: &Survey,
    reason: &StopReason,
    file: Option<&Path>,
    start: Instant,
) -> Result<u8> {
    const UNKNOWN: u8 = 3;
    if !file.is_some_and(is_stdio) {
        say(&format!("strongest: nothing is known\n{reason}\n"))
            .context("cannot write to stdout")?;
    }
    if let Some(path) = file {
        let document = survey.document(None, Some(reason), start.elapsed());
        put(
            path,
            &format!("{}\n", serde_json::to_string_pretty(&document)?),
        )?;
    }
    Ok(UNKNOWN)
}

/// Every level and its outcome.
#[derive(Clone)]
struct Survey {
    /// What runs at each level; the level in it is replaced.
    plan: Plan,
    asked: Vec<Asked>,
    answers: Vec<Option<Report>>,
    /// For each answer the anomaly, the level whose answer implies it, or why it is unknown.
    whys: Vec<String>,
    /// The level options of the command line.
    switches: String,
    /// Every class of anomaly, unless the budget ended first.
    found: Option<Found>,
    /// The models that hold by the known version order.
    shown: Names,
    expected: Expected,
}

impl Survey {
    fn new(args: &CheckArgs) -> Result<Self> {
        let mut args = args.clone();
        let session_order = args.level.session_order.map(|it| it == OnOff::On);
        let mut switches = String::from(" --level auto");
        match session_order {
            None => {}
            Some(true) => switches.push_str(" --session-order on"),
            Some(false) => switches.push_str(" --session-order off"),
        }
        let mut asked = levels(session_order);
        if let Some(switch) = args.level.real_time {
            let on = switch == OnOff::On;
            asked.retain(|it| it.spec.real_time.is_some() == on);
            switches.push_str(if on {
                " --real-time on"
            } else {
                " --real-time off"
            });
        }
        for it in &mut asked {
            if it.spec.real_time.is_some() {
                it.spec = clocked(it.spec, &args.level)?;
            }
        }
        let clock = asked.iter().find_map(|it| it.spec.real_time);
        if let Some(clock) = clock {
            let drift = clock.drift as f64 / 1e6;
            let _ = write!(
                switches,
                " --clock-drift {drift} --times {}",
                clock.times.name()
            );
        }
        args.level = LevelArgs {
            isolation_map: None,
            level: None,
            session_order: None,
            real_time: None,
            clock_drift: None,
            times: None,
            failed_cas: None,
        };
        Ok(Survey {
            plan: Plan::at(Level::Ser, &args)?,
            asked,
            answers: Vec::new(),
            whys: Vec::new(),
            switches,
            found: None,
            shown: Names::new(),
            expected: Expected::parse(&args.all.expect, &args.all.anomalies)?,
        })
    }

    /// Reads the history and checks it; also returns notes for the user.
    fn conduct(
        mut self,
        args: &CheckArgs,
        budget: &Budget,
        mut progress: CheckListener,
    ) -> Result<(Survey, Parsed, Option<Traces>, Vec<String>)> {
        let plan = &self.plan;
        progress.event(ProgressEvent::Phase(Phase::Parse));
        let parsed = thinned(load(&args.history, &args.read, budget)?, plan);
        let parsed = assumed(parsed, &plan.assume)?;
        let options = BackendOptions {
            seed: plan.seed,
            propagator: plan.search,
            cooler: Some(plan.cooler()),
        };
        let mut backend = kingsnake_encodings::backend(&plan.backend, &options)?;
        kingsnake_gpu::expect(&plan.device)
            .map_err(|why| anyhow!("--device {}: {why}", plan.device))?;
        let mut device = Gpu::new(plan.device.clone());
        let mut engines = Engines {
            device: Some(&mut device),
            backend: &mut *backend,
        };
        self.answers = auto(
            &parsed.history,
            &self.asked,
            &plan.techniques,
            &mut engines,
            (budget, budget.remaining().is_none().then_some(PER_LEVEL)),
            &mut progress,
        )?;
        // An error at one level occurs at all.
        let mut reports = self.answers.iter().flatten();
        let trouble = reports.find_map(|it| it.stats.prune.device.warning.clone());
        let mut warnings: Vec<String> = parsed.warnings.clone();
        warnings.extend(trouble);
        let traced = TracedHistory::new(&parsed.history);
        let meaning = traced.meaning();
        let answers = self.asked.iter().zip(&self.answers);
        self.whys = answers
            .map(|(it, answer)| why(meaning, it.spec, answer.as_ref()))
            .collect();
        match anomalies::find(meaning, budget)? {
            Ok(mut found) => {
                let violated = self.rows().filter(|it| holds(it.1) == Some(false));
                found.violated = violated.map(|it| it.0.level).collect();
                self.found = Some(found);
            }
            Err(reason) => warnings.push(format!("not all anomalies were looked for: {reason}")),
        }
        self.shown = anomalies::shown(&parsed.history, budget);
        let traces = traced.into_traces();
        Ok((self, parsed, traces, warnings))
    }

    fn rows(&self) -> impl Iterator<Item = (&Asked, Option<&Report>)> {
        self.asked
            .iter()
            .zip(self.answers.iter().map(Option::as_ref))
    }

    /// 0 if every level that can be checked holds, 1 if one is violated, 3 if none is violated but some are unknown.
    fn status(&self) -> u8 {
        if !self.expected.is_empty() {
            return match &self.found {
                None => 3,
                Some(_) if !self.missed().is_empty() => 1,
                Some(found) => 3 * u8::from(!found.anomalies.is_complete),
            };
        }
        match self.verdict() {
            "satisfied" => 0,
            "violated" => 1,
            _ => 3,
        }
    }

    /// Whether every level that can be checked holds.
    fn verdict(&self) -> &'static str {
        let known = || self.answers.iter().flatten().map(|it| it.verdict.holds());
        if known().any(|it| it == Some(false)) {
            "violated"
        } else if !self.answers.is_empty() && known().all(|it| it == Some(true)) {
            "satisfied"
        } else {
            "unknown"
        }
    }

    /// The state of every model.
    fn models(&self) -> KnownModels {
        let decided = self.rows();
        let decided = decided.filter_map(|(it, answer)| Some((*it, holds(answer)?)));
        KnownModels::new(decided, self.found.as_ref(), &self.shown)
    }

    /// Expectations that do not hold.
    fn missed(&self) -> Vec<String> {
        let found = self.found.as_ref();
        found.map_or(Vec::new(), |found| {
            self.expected.missed(found, &self.models().ruled_out)
        })
    }

    /// A command line that repeats the run.
    fn command(&self) -> String {
        let history = quoted_path(&self.plan.history);
        format!(
            "kingsnake check {history}{}{}",
            self.switches,
            self.plan.options()
        )
    }

    fn strongest(&self) -> Vec<&'static str> {
        let levels = strongest(&self.asked, &self.answers);
        levels.iter().map(Asked::label).collect()
    }

    fn words(&self, history: &History, voice: Voice, time: Duration) -> String {
        let strongest = match self.strongest().as_slice() {
            [] if self.status() == 3 => voice.paint.open("nothing is known"),
            [] => voice.paint.bad("none holds"),
            names => voice.paint.good(&names.join(", ")),
        };
        let mut out = format!(
            "strongest: {strongest} ({}: {}, {})\n",
            printable(&base_name(&self.plan.history)),
            count(history.n_txns(), "transaction"),
            count(history.n_sessions(), "session")
        );
        if voice.quiet {
            return out;
        }
        out.push('\n');
        for ((it, answer), why) in self.rows().zip(&self.whys) {
            let word = format!("{:<10}", word(answer));
            let word = match holds(answer) {
                Some(true) => voice.paint.good(&word),
                Some(false) => voice.paint.bad(&word),
                None => voice.paint.open(&word),
            };
            let _ = writeln!(out, "  {:<23}  {word}  {}", it.label(), printable(why));
        }
        let n_checked = self.rows().filter(|row| {
            row.1
                .is_some_and(|it| !matches!(it.decider, Decider::Implied(_)))
        });
        let how = format!(
            "{} checked, the others follow · {}",
            count(n_checked.count(), "level"),
            lasting(time)
        );
        let _ = writeln!(out, "\n{}", self.models().words());
        if let Some(found) = &self.found {
            let mut rows = self.rows();
            let is_violated = rows.any(|(_, answer)| holds(answer) == Some(false));
            out.push_str(&found.words(voice, is_violated));
        }
        for line in self.missed() {
            let _ = writeln!(out, "{line}");
        }
        let _ = writeln!(out, "\n{}", voice.paint.faint(&how));
        out
    }

    fn page(&self, parsed: &Parsed, warnings: &[String], time: Duration) -> String {
        let history = &parsed.history;
        let rows = self.rows().zip(&self.whys);
        let rows = rows.map(|((it, answer), why)| page::LevelRow {
            level: it.label().to_owned(),
            words: it.spec.to_string(),
            holds: holds(answer),
            verdict: word(answer),
            why: why.clone(),
        });
        page::page(&page::Survey {
            history,
            subject: format!(
                "{}: {}, {}",
                base_name(&self.plan.history),
                count(history.n_txns(), "transaction"),
                count(history.n_sessions(), "session")
            ),
            strongest: self.strongest(),
            status: self.status(),
            rows: rows.collect(),
            models: self.models(),
            found: self.found.as_ref(),
            warnings,
            command: self.plan.short_command()
                + &self.switches.replace(" --clock-drift 0 --times bounds", ""),
            time: lasting(time),
        })
    }

    fn document(
        &self,
        parsed: Option<&Parsed>,
        reason: Option<&StopReason>,
        time: Duration,
    ) -> Value {
        let levels: Vec<Value> = self
            .rows()
            .zip(&self.whys)
            .map(|((it, answer), why)| {
                let implied_by = match answer.map(|it| it.decider) {
                    Some(Decider::Implied(by)) => Some(by.name()),
                    _ => None,
                };
                json!({
                    "name": it.level.name(),
                    "label": it.label(),
                    "session_order": it.spec.session_order,
                    "words": it.spec.to_string(),
                    "verdict": word(answer),
                    "why": why,
                    "implied_by": implied_by,
                    "decider": answer.map(|it| it.decider.name()),
                })
            })
            .collect();
        let mut document = json!({
            "schema": SCHEMA,
            "kingsnake": env!("CARGO_PKG_VERSION"),
            "verdict": self.verdict(),
            "exit_status": if reason.is_some() { 3 } else { self.status() },
            "strongest": self.strongest(),
            "levels": levels,
            "models": self.models().view(),
            "history": parsed.map(|it| history_view(it, &self.plan.history)),
            "reason": reason.map(reason_view),
            "stats": {
                "seconds": time.as_secs_f64(),
                "cpu_seconds": processor::seconds(),
                "peak_memory_bytes": memory::peak(),
            },
            "command": self.command(),
        });
        if let Some(fields) = document.as_object_mut() {
            fields.extend(match (&self.found, parsed) {
                (Some(found), Some(parsed)) => found.view(&parsed.history),
                _ => no_anomalies(),
            });
        }
        document
    }
}

fn word(answer: Option<&Report>) -> &'static str {
    answer.map_or("no times", |it| it.verdict.word())
}

/// The anomaly, the level whose answer implies it, or why it is unknown.
fn why(meaning: &Meaning<'_>, spec: Spec, answer: Option<&Report>) -> String {
    let Some(Report {
        verdict, decider, ..
    }) = answer
    else {
        return "it looks at the clock, and the history has no times".to_owned();
    };
    let by = match (decider, verdict) {
        (Decider::Implied(by), Verdict::Violated(Counterexample::Cyclic(_))) => {
            format!("the cycle found at {by} breaks this level too")
        }
        (Decider::Implied(by), Verdict::Violated(Counterexample::Local(_))) => {
            format!("found at {by} already")
        }
        (Decider::Implied(by), _) => format!("implied by {by}"),
        _ => format!("checked: {}", decider.name()),
    };
    match verdict {
        Verdict::Violated(counterexample) => {
            let name = name_by(meaning, spec, counterexample);
            let adya = name.adya.map_or(String::new(), |it| format!(" ({it})"));
            format!("{}{adya}; {by}", name.short)
        }
        Verdict::Unknown(StopReason::Time(_)) => {
            "not decided in time; ask for this level alone, with a longer --timeout".to_owned()
        }
        Verdict::Unknown(reason) => reason.to_string(),
        Verdict::Satisfied(_) => by,
    }
}
