//! `kingsnake check` and `verify` at the weak levels: one sort decides, so there is nothing to plan.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use kingsnake_encodings::{BackendOptions, backend};
use kingsnake_solver::budget::StopReason;
use kingsnake_solver::lattice::Names;
use kingsnake_solver::level::{Model, Spec};
use kingsnake_solver::model::{History, KeyId, Status, TxnId};
use kingsnake_solver::progress::Phase;
use kingsnake_solver::verdict::{Certificate, Counterexample, Moment, Point};
use kingsnake_solver::weak::{WeakLevel, WeakSpec, WeakVerdict, check_timed, replay};
use kingsnake_tell::{
    Labels, causes, commit_story, condition_words, definition, impossible_result, missed_row_words,
};
use serde_json::{Value, json};

use super::check::{expect_outputs, write_anomalies};
use super::weak_evidence::{counterexample_json, evidence_json, missed_by, source_json};
use crate::anomalies::{self, Expected, Found};
use crate::answer::base_name;
use crate::args::{CheckArgs, LevelArg, LevelArgs, OnOff, VerifyArgs};
use crate::assumptions::assumed;
use crate::commit_certificate::{CommitClaim, write};
use crate::directory::Head;
use crate::input::load;
use crate::limits::{self, within};
use crate::meaning::TracedHistory;
use crate::ordered::{Ordered, ordered};
use crate::output::put;
use crate::plan::{quoted_path, start_threads};
use crate::telling::tell;
use crate::voice::{Voice, count, lasting, printable, say};
use crate::words::advice;
use crate::{memory, processor};

/// The level's ingredients; an error where a switch means nothing to it.
pub fn spec(level: WeakLevel, args: &LevelArgs) -> Result<WeakSpec> {
    if args.real_time == Some(OnOff::On) || args.clock_drift.is_some() || args.times.is_some() {
        bail!("--level {} does not look at the clock", level.name());
    }
    Ok(WeakSpec {
        level,
        session_order: args.session_order != Some(OnOff::Off),
    })
}

/// Whether what is asked for needs the graph of the other levels: pictures, anomalies of every class, a share of a version order.
pub fn needs_graph(args: &CheckArgs) -> bool {
    let (files, all) = (&args.files, &args.all);
    let pictures = [&files.dot, &files.svg, &files.report];
    pictures.iter().any(|it| it.is_some())
        || all.all
        || !all.expect.is_empty()
        || !all.anomalies.is_empty()
        || args.version_order_share.is_some()
}

/// Checks at a weak level and tells the answer.
pub fn run(args: &CheckArgs, level: WeakLevel, voice: Voice, start: Instant) -> Result<u8> {
    let spec = spec(level, &args.level)?;
    let files = &args.files;
    if files.proof.is_some() {
        bail!(
            "--proof is a solver's, and --level {} asks none; --certificate and --json are written",
            level.name()
        );
    }
    let expected = Expected::parse(&args.all.expect, &args.all.anomalies)?;
    expect_outputs(args)?;
    start_threads(&args.limits)?;
    let bounds = &args.limits.bounds;
    let budget = limits::budget(bounds, start)?;
    let work = {
        let (args, budget) = (args.clone(), budget.clone());
        move || {
            let reading = Instant::now();
            let parsed = load(&args.history, &args.read, &budget)?;
            let parsed = assumed(parsed, &args.assume)?;
            let mut backend = backend(
                &args.techniques.backend,
                &BackendOptions {
                    seed: args.techniques.seed,
                    ..BackendOptions::default()
                },
            )?;
            let mut phases = vec![(Phase::Parse.name(), reading.elapsed())];
            let (verdict, checked) =
                check_timed(&parsed.history, spec, Some(&mut *backend), &budget)?;
            phases.extend(checked.map(|(phase, time)| (phase.name(), time)));
            let found = if args.wants_anomalies() {
                let traced = TracedHistory::new(&parsed.history);
                let found = anomalies::find(traced.meaning(), &budget)?.ok();
                (found, traced.into_traces())
            } else {
                (None, None)
            };
            Ok((parsed, verdict, phases, found))
        }
    };
    let (parsed, verdict, phases, (found, traces)) = match within(&budget, work) {
        Ok((parsed, verdict, phases, found)) => (Some(parsed), verdict, phases, found),
        Err(error) => match limits::stopped(&error) {
            Some(reason) => {
                let verdict = WeakVerdict::Unknown(reason.clone());
                (None, verdict, Vec::new(), (None, None))
            }
            None => return Err(error),
        },
    };
    for warning in parsed.iter().flat_map(|parsed| &parsed.warnings) {
        voice.warn(warning);
    }
    let history = parsed.as_ref().map(|parsed| &parsed.history);
    let traced = history.map(|history| TracedHistory::resumed(history, traces));
    let answer = Weak {
        explains: args.explains,
        spec,
        history,
        traced: traced.as_ref(),
        verdict: &verdict,
        subject: subject(&args.history, history),
        phases,
        found: found.as_ref(),
        expected,
    };
    let is_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if !is_stdout(&files.json) && !is_stdout(&files.edn) {
        let mut words = answer.words(voice);
        if !voice.quiet {
            words.push_str(&format!(
                "{} · {}\n",
                answer.how(),
                lasting(start.elapsed())
            ));
            if args.explains
                && let Some(ordered) = answer.ordered()
            {
                words.push_str(&ordered.words(voice));
            }
        }
        if let Some(found) = &found {
            words.push_str(&format!("\n{}", found.words(voice, verdict.is_violated())));
            for line in answer.missed() {
                words.push_str(&format!("{line}\n"));
            }
        }
        say(&words).context("cannot write to stdout")?;
    }
    if let Some(traced) = &traced {
        let name = level.name();
        let head = Head {
            verdict: format!("{}: {}", answer.word(), spec),
            status: answer.status(),
            command: &format!(
                "kingsnake check {} --level {name}",
                quoted_path(&args.history)
            ),
        };
        write_anomalies(traced, found.as_ref(), files, &head)?;
    }
    if let Some(path) = &files.json {
        put(path, &format!("{:#}\n", answer.json(start)))?;
    }
    if let Some(path) = &files.certificate {
        match (&verdict, history) {
            (WeakVerdict::Satisfied(order, sources), Some(history)) => {
                put(path, &write(history, spec, order, sources))?;
            }
            _ => voice.warn(&format!(
                "no certificate for {}: not satisfied",
                path.display()
            )),
        }
    }
    let status = answer.status();
    std::mem::forget((parsed, verdict)); // The process ends here.
    Ok(status)
}

/// Replays a certificate of commits.
pub fn verify(
    args: &VerifyArgs,
    claim: &CommitClaim,
    history: &History,
    voice: Voice,
) -> Result<u8> {
    let spec = match args.level.level {
        None => WeakSpec {
            session_order: match args.level.session_order {
                None => claim.spec.session_order,
                Some(switch) => switch == OnOff::On,
            },
            ..claim.spec
        },
        Some(LevelArg::Weak(level)) => spec(level, &args.level)?,
        Some(_) => bail!("the certificate is an order of commits, which only weak levels take"),
    };
    let subject = subject(&args.history, Some(history));
    let (words, status) = match replay(history, spec, &claim.order, &claim.sources) {
        Ok(()) => (
            format!(
                "{}: {spec} ({subject})",
                voice.paint.good("certificate holds")
            ),
            0,
        ),
        Err(why) => {
            let verdict = voice.paint.bad("certificate does not hold");
            (
                format!(
                    "{verdict}: {spec} ({subject})\n{}",
                    printable(&why.to_string())
                ),
                1,
            )
        }
    };
    say(&format!("{words}\n")).context("cannot write to stdout")?;
    Ok(status)
}

fn subject(path: &Path, history: Option<&History>) -> String {
    let name = printable(&base_name(path));
    match history {
        None => name,
        Some(history) => format!(
            "{name}: {}, {}",
            count(history.n_txns(), "transaction"),
            count(history.n_sessions(), "session")
        ),
    }
}

/// What happened, in words.
struct Told {
    name: String,
    about: String,
    noticed: String,
    lines: Vec<String>,
    operations: Vec<String>,
    causes: &'static [&'static str],
}

/// A finished check.
struct Weak<'a> {
    /// Whether it is told at length.
    explains: bool,
    spec: WeakSpec,
    history: Option<&'a History>,
    traced: Option<&'a TracedHistory<'a>>,
    verdict: &'a WeakVerdict,
    subject: String,
    /// What took how long.
    phases: Vec<(&'static str, Duration)>,
    /// Every class of anomaly, where they were looked for.
    found: Option<&'a Found>,
    expected: Expected,
}

impl Weak<'_> {
    fn word(&self) -> &'static str {
        match self.verdict {
            WeakVerdict::Satisfied(..) => "satisfied",
            WeakVerdict::Unknown(_) => "unknown",
            _ => "violated",
        }
    }

    /// What was expected and is not so.
    fn missed(&self) -> Vec<String> {
        let found = self.found;
        found.map_or(Vec::new(), |found| {
            self.expected.missed(found, &Names::new())
        })
    }

    fn status(&self) -> u8 {
        if !self.expected.is_empty() {
            return match self.found {
                None => 3,
                Some(_) if !self.missed().is_empty() => 1,
                Some(found) => 3 * u8::from(!found.anomalies.is_complete),
            };
        }
        match self.verdict {
            WeakVerdict::Satisfied(..) => 0,
            WeakVerdict::Unknown(_) => 3,
            _ => 1,
        }
    }

    fn how(&self) -> &'static str {
        match self.verdict {
            WeakVerdict::Satisfied(_, sources) if !sources.is_empty() => {
                "some choice of what the uncertain reads were of leaves an order"
            }
            WeakVerdict::Satisfied(..) | WeakVerdict::Cycle(_) => "one topological sort decided",
            WeakVerdict::Aggregate { .. } => "no versions give an aggregate its result",
            WeakVerdict::Choice { .. } => {
                "no choice of what the uncertain reads were of leaves an order"
            }
            WeakVerdict::Local(_) => "some reads cannot have happened at this level",
            WeakVerdict::EitherWay { .. } => "each case was decided by itself",
            WeakVerdict::Unknown(_) => "nobody decided",
        }
    }

    fn words(&self, voice: Voice) -> String {
        let word = match self.verdict {
            WeakVerdict::Satisfied(..) => voice.paint.good(self.word()),
            WeakVerdict::Unknown(_) => voice.paint.open(self.word()),
            _ => voice.paint.bad(self.word()),
        };
        let mut words = format!("{word}: {} ({})\n", self.spec, self.subject);
        if voice.quiet {
            return words;
        }
        if let WeakVerdict::Unknown(reason) = self.verdict {
            words.push_str(&format!("{}\n", printable(&reason.to_string())));
        }
        let Some(told) = self.story() else {
            return words;
        };
        words.push_str(&format!("{}\n", voice.paint.strong(&printable(&told.name))));
        words.push_str(&format!("{}\n{}\n\n", told.about, printable(&told.noticed)));
        for line in told.lines {
            words.push_str(&format!("  {}\n", printable(&line)));
        }
        words.push_str("\nThe transactions:\n");
        for line in told.operations {
            words.push_str(&format!("  {}\n", printable(&line)));
        }
        if self.explains {
            words.push_str(&advice(&self.definition(), told.causes, voice));
        }
        words.push('\n');
        words
    }

    /// The level as the ingredients that all levels share.
    fn ingredients(&self) -> Spec {
        Spec {
            model: self.spec.level.into(),
            session_order: self.spec.session_order,
            real_time: None,
        }
    }

    /// What the level promises.
    fn definition(&self) -> String {
        definition(self.ingredients())
    }

    /// The order of commits and how tight it is, where the level is satisfied.
    fn ordered(&self) -> Option<Ordered> {
        let (WeakVerdict::Satisfied(order, _), Some(history)) = (self.verdict, self.history) else {
            return None;
        };
        let order = order.iter().map(|&txn| Point {
            txn,
            moment: Moment::Whole,
        });
        let certificate = Certificate::from(order.collect::<Vec<_>>());
        Some(ordered(history, self.ingredients(), &certificate))
    }

    /// What happened; `None` where nothing went wrong.
    fn story(&self) -> Option<Told> {
        self.story_of(self.traced?, self.verdict)
    }

    fn story_of(&self, traced: &TracedHistory<'_>, verdict: &WeakVerdict) -> Option<Told> {
        let history = traced.history();
        match verdict {
            WeakVerdict::EitherWay {
                txn,
                lost,
                took_effect,
            } => {
                let who = Labels::new(history, &[*txn]).txn(*txn);
                let of_end = |status, verdict| {
                    let history = history.with_status(*txn, status);
                    self.story_of(&TracedHistory::new(&history), verdict)
                };
                let mut told = of_end(Status::Aborted, lost)?;
                let took_effect = of_end(Status::Committed, took_effect)?;
                let indented =
                    |lines: Vec<String>| lines.into_iter().map(|line| format!("  {line}"));
                let mut lines = vec![format!("Suppose that {who} did not take effect:")];
                lines.extend(indented(told.lines));
                lines.push(format!("Suppose that {who} took effect:"));
                lines.extend(indented(took_effect.lines));
                told.lines = lines;
                told.operations.extend(took_effect.operations);
                told.operations.sort();
                told.operations.dedup();
                Some(told)
            }
            WeakVerdict::Choice {
                reader,
                op,
                key,
                cases,
            } => self.story_of_cases(traced, (*reader, *op, *key), cases),
            WeakVerdict::Aggregate { reader, nth } => {
                let asked = condition_words(traced.meaning(), *reader, *nth, None)?;
                let name = impossible_result();
                Some(Told {
                    name: name.short.to_owned(),
                    about: name.about.to_owned(),
                    noticed: format!("{asked}."),
                    lines: vec![format!(
                        "{asked}: nothing that it can have read gives that."
                    )],
                    operations: Vec::new(),
                    causes: causes(name.short),
                })
            }
            WeakVerdict::Cycle(steps) => {
                let story = commit_story(history, steps);
                Some(Told {
                    name: story.name.to_owned(),
                    about: story.about.to_owned(),
                    noticed: story.noticed,
                    lines: story.lines,
                    operations: story.operations,
                    causes: story.causes,
                })
            }
            WeakVerdict::Local(findings) => {
                // What a finding says does not depend on the level.
                let spec = Spec {
                    model: Model::Ser,
                    session_order: self.spec.session_order,
                    real_time: None,
                };
                let telling = tell(
                    traced.meaning(),
                    spec,
                    &Counterexample::Local(findings.clone()),
                );
                let story = telling.story;
                Some(Told {
                    name: telling.name.short.to_owned(),
                    about: story.about,
                    noticed: story.noticed,
                    lines: story.lines.into_iter().map(|line| line.text).collect(),
                    operations: story.operations,
                    causes: story.causes,
                })
            }
            WeakVerdict::Satisfied(..) | WeakVerdict::Unknown(_) => None,
        }
    }

    /// What happened, whichever version a read was of.
    fn story_of_cases(
        &self,
        traced: &TracedHistory<'_>,
        (reader, op, key): (TxnId, usize, KeyId),
        cases: &[(Option<TxnId>, WeakVerdict)],
    ) -> Option<Told> {
        let history = traced.history();
        let sources = cases.iter().filter_map(|case| case.0);
        let labels = Labels::new(history, &sources.chain([reader]).collect::<Vec<TxnId>>());
        let (who, what) = (labels.txn(reader), labels.key(key));
        let mut told: Option<Told> = None;
        let name = |source: Option<TxnId>| match source {
            None => "the initial state".to_owned(),
            Some(txn) => labels.txn(txn),
        };
        let nth = op.checked_sub(history.ops(reader).len());
        let asked = nth.and_then(|nth| condition_words(traced.meaning(), reader, nth, Some(key)));
        let though = |case: &WeakVerdict| {
            let missed = missed_by(case, reader, key).zip(nth);
            let set = missed.and_then(|(writer, nth)| {
                missed_row_words(traced.meaning(), (reader, nth), writer, key)
            });
            set.map_or(String::new(), |set| format!(", though {set}"))
        };
        let seen = asked.unwrap_or_else(|| format!("{who} read {what} in operation {op}"));
        let mut lines = vec![match cases {
            [] => format!("{seen}, which no version of it explains."),
            [(source, case)] => format!(
                "{seen}{}. It can only have read it from {}.",
                though(case),
                name(*source)
            ),
            _ => format!("{seen}, from one of {} sources.", cases.len()),
        }];
        for (source, case) in cases {
            let (source, though) = (name(*source), though(case));
            let case = self.story_of(traced, case)?;
            if cases.len() > 1 {
                lines.push(format!(
                    "Suppose that {who} read {what} from {source}{though}:"
                ));
            }
            let indent = if cases.len() > 1 { "  " } else { "" };
            lines.extend(case.lines.iter().map(|line| format!("{indent}{line}")));
            match &mut told {
                None => told = Some(case),
                Some(told) => told.operations.extend(case.operations),
            }
        }
        let mut told = told.unwrap_or_else(|| Told {
            name: "unexplained read".to_owned(),
            about: "A transaction read what nobody can have written.".to_owned(),
            noticed: format!("{who} read {what} as nobody can have written it."),
            lines: Vec::new(),
            operations: Vec::new(),
            causes: &[],
        });
        told.lines = lines;
        told.operations.sort();
        told.operations.dedup();
        Some(told)
    }

    fn json(&self, start: Instant) -> Value {
        let mut document = json!({
            "verdict": self.word(),
            "level": self.spec.level.name(),
            "session_order": self.spec.session_order,
            "decider": "weak",
            "schema": 1,
            "kingsnake": env!("CARGO_PKG_VERSION"),
            "exit_status": self.status(),
            "seconds": start.elapsed().as_secs_f64(),
            "stats": {
                "seconds": start.elapsed().as_secs_f64(),
                "cpu_seconds": processor::seconds(),
                "peak_memory_bytes": memory::peak(),
                "phases": self.phases.iter().map(|(name, time)| json!({
                    "name": name,
                    "seconds": time.as_secs_f64(),
                    "cpu_seconds": null,
                })).collect::<Vec<Value>>(),
            },
        });
        if let Some(history) = self.history {
            document["history"] = json!({
                "transactions": history.n_txns(),
                "sessions": history.n_sessions(),
                "operations": history.n_ops(),
            });
        }
        if let Some(told) = self.story() {
            document["anomaly"] = json!(told.name);
            document["noticed"] = json!(told.noticed);
            document["definition"] = json!(self.definition());
            document["causes"] = json!(told.causes);
            document["story"] = json!(told.lines);
            document["transactions"] = json!(told.operations);
        }
        if self.explains
            && let Some(tightness) = self.ordered().and_then(|it| it.view())
        {
            document["tightness"] = tightness;
        }
        if let Some(history) = self.history.filter(|_| self.verdict.is_violated()) {
            let evidence = evidence_json(history, self.verdict);
            match evidence.as_array() {
                Some(_) => document["cycle"] = evidence,
                None if !evidence.is_null() => document["cases"] = evidence,
                None => {}
            }
            document["counterexample"] = counterexample_json(history, self.verdict).into();
        }
        if let (WeakVerdict::Satisfied(_, sources), Some(history)) = (self.verdict, self.history)
            && !sources.is_empty()
        {
            document["sources"] = sources.iter().map(|it| source_json(history, it)).collect();
        }
        if let WeakVerdict::Unknown(reason) = self.verdict {
            let kind = match reason {
                StopReason::Time(_) => "time",
                StopReason::Memory { .. } | StopReason::Resident { .. } => "memory",
                _ => "other",
            };
            document["reason"] = json!({"kind": kind, "words": reason.to_string()});
            document["interrupted"] = json!(matches!(reason, StopReason::Interrupted));
        }
        if let (Some(found), Some(history), Some(fields)) =
            (self.found, self.history, document.as_object_mut())
        {
            fields.extend(found.view(history));
        }
        document
    }
}
