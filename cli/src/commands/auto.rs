//! `kingsnake check --level auto`: which levels does the history satisfy?

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::Result;
use kingsnake_evidence::LevelView;
use kingsnake_report::json::{Document, history_view, reason_view, stats};
use kingsnake_report::meaning::TracedHistory;
use kingsnake_report::{CommandRun, Cost, Source};
use kingsnake_solver::auto::{Asked, auto, holds, levels, strongest};
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::certify::{Meaning, Traces};
use kingsnake_solver::check::{CheckStats, Decider, Engines, Report};
use kingsnake_solver::lattice::Names;
use kingsnake_solver::level::{Level, Spec};
use kingsnake_solver::model::History;
use kingsnake_solver::progress::{Phase, Progress, ProgressEvent};
use kingsnake_solver::verdict::{Counterexample, Verdict};
use kingsnake_tell::name_by;
use serde_json::{Value, json};

use crate::anomalies::{self, Expected, FoundAnomalies, KnownModels};
use crate::answer::{Classes, Reported, base_name, subject};
use crate::args::{CheckArgs, LevelArgs, OnOff};
use crate::assumptions::assumed;
use crate::directory::Head;
use crate::input::{load, source_of, thinned};
use crate::page::levels as page;
use crate::plan::{Plan, clocked, quoted_path};
use crate::processor;
use crate::progress::CheckListener;
use crate::voice::{Voice, count, lasting, printable};

/// Time limit per level if `--timeout` sets none.
const PER_LEVEL: Duration = Duration::from_secs(60);

/// Every level and its outcome.
pub struct LevelSurvey {
    /// What runs at each level; the level in it is replaced.
    plan: Plan,
    asked: Vec<Asked>,
    answers: Vec<Option<Report>>,
    /// For each answer the anomaly, the level whose answer implies it, or why it is unknown.
    whys: Vec<String>,
    /// The level options of the command line.
    switches: String,
    /// Every class of anomaly, unless the budget ended first.
    found: Option<FoundAnomalies>,
    /// The models that hold by the known version order.
    shown: Names,
    expected: Expected,
    /// The history, once it has been read.
    history: Option<History>,
    source: Source,
    /// What was traced in the history.
    traces: Option<Traces>,
    /// What the user should know.
    warnings: Vec<String>,
    /// Why there is no answer at all.
    reason: Option<StopReason>,
    start: Instant,
    cost: Cost,
}

impl LevelSurvey {
    /// Settles what was typed.
    pub fn new(args: &CheckArgs, start: Instant) -> Result<Self> {
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
        Ok(LevelSurvey {
            plan: Plan::at(Level::Ser, &args)?,
            asked,
            answers: Vec::new(),
            whys: Vec::new(),
            switches,
            found: None,
            shown: Names::new(),
            expected: Expected::parse(&args.all.expect, &args.all.anomalies)?,
            history: None,
            source: Source::default(),
            traces: None,
            warnings: Vec::new(),
            reason: None,
            start,
            cost: Cost::default(),
        })
    }

    /// Reads the history and checks it; also returns notes for the user.
    pub fn conduct(
        mut self: Box<Self>,
        args: &CheckArgs,
        budget: &Budget,
        mut progress: CheckListener,
    ) -> Result<(Box<dyn Reported>, Vec<String>)> {
        let plan = &self.plan;
        progress.event(ProgressEvent::Phase(Phase::Parse));
        let parsed = thinned(load(&args.history, &args.read, budget)?, plan);
        let parsed = assumed(parsed, &plan.assume)?;
        let (history, source) = source_of(parsed, &plan.history);
        self.cost.spend(Phase::Parse.name(), self.start.elapsed());
        let (mut backend, mut device) = (plan.backend()?, plan.device()?);
        let mut engines = Engines {
            device: Some(&mut device),
            backend: &mut *backend,
        };
        self.answers = auto(
            &history,
            &self.asked,
            &plan.techniques,
            &mut engines,
            (budget, budget.remaining().is_none().then_some(PER_LEVEL)),
            &mut progress,
        )?;
        // An error at one level occurs at all.
        let mut reports = self.answers.iter().flatten();
        let trouble = reports.find_map(|it| it.stats.prune.device.warning.clone());
        let mut warnings: Vec<String> = source.warnings.clone();
        warnings.extend(trouble);
        for &(name, time) in reports_of(&self.answers).flat_map(|it| &it.stats.phases) {
            self.cost.spend(name, time);
        }
        let traced = TracedHistory::new(&history);
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
        self.shown = anomalies::shown(&history, budget);
        self.traces = traced.into_traces();
        (self.history, self.source) = (Some(history), source);
        self.warnings.clone_from(&warnings);
        processor::settle(&mut self.cost, self.start, true);
        Ok((self, warnings))
    }

    /// The same where the limits ended before there was an answer.
    pub fn stopped(mut self, reason: StopReason) -> Self {
        self.source.path.clone_from(&self.plan.history);
        self.reason = Some(reason);
        processor::settle(&mut self.cost, self.start, true);
        self
    }

    fn rows(&self) -> impl Iterator<Item = (&Asked, Option<&Report>)> {
        self.asked
            .iter()
            .zip(self.answers.iter().map(Option::as_ref))
    }

    /// 0 if every level that can be checked holds, 1 if one is violated, 3 if none is violated but some are unknown.
    fn exit_status(&self) -> u8 {
        if self.reason.is_some() {
            return 3;
        }
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

    /// The levels in words, and what is known of the models.
    fn long_words(&self, voice: Voice) -> String {
        let mut out = String::from("\n");
        for ((it, answer), why) in self.rows().zip(&self.whys) {
            let word = format!("{:<10}", word(answer));
            let word = match holds(answer) {
                Some(true) => voice.paint.good(&word),
                Some(false) => voice.paint.bad(&word),
                None => voice.paint.open(&word),
            };
            let _ = writeln!(out, "  {:<23}  {word}  {}", it.label(), printable(why));
        }
        let _ = writeln!(out, "\n{}", self.models().words());
        if let Some(found) = &self.found {
            let mut rows = self.rows();
            let is_violated = rows.any(|(_, answer)| holds(answer) == Some(false));
            out.push_str(&found.words(voice.paint, is_violated));
        }
        for line in self.missed() {
            let _ = writeln!(out, "{line}");
        }
        let how = format!("{} · {}", self.how(), lasting(self.cost.time));
        let _ = writeln!(out, "\n{}", voice.paint.faint(&how));
        out
    }

    /// How the answers were found.
    fn how(&self) -> String {
        let n_checked = reports_of(&self.answers)
            .filter(|it| !matches!(it.decider, Decider::Implied(_)))
            .count();
        match &self.reason {
            Some(_) => "no answer was found".to_owned(),
            None => format!("{} checked, the others follow", count(n_checked, "level")),
        }
    }

    /// How to repeat it.
    fn run(&self) -> CommandRun {
        let mut rows = self.plan.rows();
        for (name, value) in &mut rows {
            match *name {
                "level" => self.switches.trim().clone_into(value),
                "session-order" | "real-time" | "clock-drift" | "times" => {
                    "by the level".clone_into(value);
                }
                _ => {}
            }
        }
        CommandRun {
            rows,
            command: self.command(),
            short_command: self.short_command(),
            history: quoted_path(&self.plan.history),
        }
    }

    fn short_command(&self) -> String {
        self.plan.short_command() + &self.switches.replace(" --clock-drift 0 --times bounds", "")
    }

    /// The levels, for the JSON document.
    fn views(&self) -> Vec<Value> {
        let view = |((it, answer), why): ((&Asked, Option<&Report>), &String)| {
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
        };
        self.rows().zip(&self.whys).map(view).collect()
    }
}

impl Reported for LevelSurvey {
    fn status(&self) -> u8 {
        self.exit_status()
    }

    fn words(&self, voice: Voice, _explains: bool) -> String {
        if let Some(reason) = &self.reason {
            return format!("strongest: nothing is known\n{reason}\n");
        }
        let strongest = match self.strongest().as_slice() {
            [] if self.exit_status() == 3 => voice.paint.open("nothing is known"),
            [] => voice.paint.bad("none holds"),
            names => voice.paint.good(&names.join(", ")),
        };
        let name = base_name(&self.source.path);
        let of = self.history.as_ref().map(|it| subject(&name, it));
        let mut out = format!("strongest: {strongest} ({})\n", of.unwrap_or(name));
        if !voice.quiet {
            out.push_str(&self.long_words(voice));
        }
        out
    }

    fn document(&self) -> Document {
        let words = "every level, from the weakest to the strongest".to_owned();
        let mut document = Document::new(
            (self.verdict(), self.exit_status()),
            LevelView::named("auto", words),
            self.how(),
            stats(&CheckStats::default(), &self.cost),
            Some(&self.run()),
        );
        document.strongest = Some(self.strongest());
        document.levels = Some(self.views());
        document.models = Some(self.models().view());
        document.reason = self.reason.as_ref().map(reason_view);
        if let Some(history) = &self.history {
            document.history = Some(history_view(history, &self.source));
            if let Some(found) = &self.found {
                document.all = found.view(history);
            }
        }
        document
    }

    fn page(&self) -> Option<String> {
        let rows = self.rows().zip(&self.whys);
        let rows = rows.map(|((it, answer), why)| page::LevelRow {
            level: it.label().to_owned(),
            words: it.spec.to_string(),
            holds: holds(answer),
            verdict: word(answer),
            why: why.clone(),
        });
        let history = self.history.as_ref()?;
        Some(page::page(&page::LatticePage {
            history,
            subject: subject(&base_name(&self.source.path), history),
            strongest: self.strongest(),
            status: self.exit_status(),
            rows: rows.collect(),
            models: self.models(),
            found: self.found.as_ref(),
            warnings: &self.warnings,
            command: self.short_command(),
            time: lasting(self.cost.time),
        }))
    }

    fn svg(&self) -> Option<String> {
        None
    }

    fn classes(&mut self) -> Option<Classes<'_>> {
        let verdict = match self.strongest().as_slice() {
            [] => "no level is known to hold".to_owned(),
            names => format!("strongest: {}", names.join(", ")),
        };
        let head = Head {
            verdict,
            status: self.exit_status(),
            command: self.command(),
        };
        let traces = self.traces.take();
        Some(Classes {
            traced: TracedHistory::resumed(self.history.as_ref()?, traces),
            found: self.found.as_ref(),
            head,
        })
    }
}

fn reports_of(answers: &[Option<Report>]) -> impl Iterator<Item = &Report> {
    answers.iter().flatten()
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
