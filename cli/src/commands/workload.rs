//! `kingsnake check --workload`: checks a Jepsen workload by its own rule; the result as text, JSON and page.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use kingsnake_datasets::{Format, open_log};
use kingsnake_history::operations::Operation;
use kingsnake_solver::budget::Budget;
use kingsnake_text::Frame;
use kingsnake_workloads::{
    JepsenWorkload, RuleOptions, RuleReport, RuleVerdict, bank, check, recognise,
};
use maud::{PreEscaped, html};
use serde_json::{Value, json};

use crate::answer::base_name;
use crate::args::{CheckArgs, FileArgs};
use crate::input::{load, options, stopped_or_wrong};
use crate::json::SCHEMA;
use crate::limits;
use crate::output::put;
use crate::picture::plot;
use crate::voice::{Voice, count, lasting, printable, say};

/// Further violations are counted, not listed.
const TOLD: usize = 10;

/// The workload of a log that is not a history of transactions, if its operations identify it.
pub fn recognised(args: &CheckArgs, budget: &Budget) -> Option<JepsenWorkload> {
    let (log, ..) = open_log(&args.history, &options(&args.read, budget)).ok()?;
    recognise(&log)
}

/// Checks a workload that has a rule.
pub fn run(args: &CheckArgs, workload: JepsenWorkload, voice: Voice, start: Instant) -> Result<u8> {
    let bounds = &args.limits.bounds;
    let budget = limits::budget(bounds, start)?;
    let work = {
        let (args, budget) = (args.clone(), budget.clone());
        move || judged(&args, workload, &budget)
    };
    let (log, report) = limits::within(&budget, work)?;
    let (path, files) = (args.history.clone(), args.files.clone());
    limits::tell(&budget, bounds, start, status(report.verdict), move || {
        let answer = RuleAnswer {
            workload,
            log: &log,
            report: &report,
            path: &path,
            time: start.elapsed(),
        };
        deliver(&answer, &files, voice)
    })
}

fn judged(
    args: &CheckArgs,
    workload: JepsenWorkload,
    budget: &Budget,
) -> Result<(Vec<Operation>, RuleReport)> {
    let log = log(args, workload, budget)?;
    let asked = RuleOptions {
        total: args.workload.total,
        allow_negative: args.workload.allow_negative,
        group_size: args.workload.group_size,
        linearizable: args.workload.linearizable,
    };
    let report = check(workload, &log, &asked, budget).context("the workload has no rule")??;
    Ok((log, report))
}

/// The operations of a log. A bank may also be a history of transactions in any format.
fn log(args: &CheckArgs, workload: JepsenWorkload, budget: &Budget) -> Result<Vec<Operation>> {
    if workload == JepsenWorkload::Bank {
        let is_jepsen = |it| matches!(it, Format::JepsenEdn | Format::JepsenJson);
        if !args.read.format.is_some_and(is_jepsen)
            && let Ok(parsed) = load(&args.history, &args.read, budget)
            && !is_jepsen(parsed.format)
        {
            return Ok(bank::log(&parsed.history));
        }
    }
    let opened = open_log(&args.history, &options(&args.read, budget));
    Ok(opened.map_err(stopped_or_wrong)?.0)
}

/// The exit status.
fn status(verdict: RuleVerdict) -> u8 {
    match verdict {
        RuleVerdict::Valid => 0,
        RuleVerdict::Invalid => 1,
        RuleVerdict::Unknown => 3,
    }
}

struct RuleAnswer<'a> {
    workload: JepsenWorkload,
    log: &'a [Operation],
    report: &'a RuleReport,
    path: &'a Path,
    time: Duration,
}

impl RuleAnswer<'_> {
    fn word(&self) -> &'static str {
        match self.report.verdict {
            RuleVerdict::Valid => "satisfied",
            RuleVerdict::Invalid => "violated",
            RuleVerdict::Unknown => "unknown",
        }
    }

    fn subject(&self) -> String {
        let n_ops = count(self.log.len(), "operation");
        format!(
            "workload {} ({}: {n_ops})",
            self.workload,
            base_name(self.path)
        )
    }

    fn words(&self, voice: Voice) -> String {
        let word = match self.report.verdict {
            RuleVerdict::Valid => voice.paint.good(self.word()),
            RuleVerdict::Invalid => voice.paint.bad(self.word()),
            RuleVerdict::Unknown => voice.paint.open(self.word()),
        };
        let mut out = format!("{word}: {}\n", printable(&self.subject()));
        if voice.quiet {
            return out;
        }
        let _ = writeln!(out, "rule: {}", self.report.rule);
        if !self.report.violations.is_empty() {
            out.push('\n');
        }
        for violation in self.report.violations.iter().take(TOLD) {
            let _ = writeln!(out, "  {}", printable(&violation.words));
        }
        let n_more = self.report.violations.len().saturating_sub(TOLD);
        if n_more > 0 {
            let _ = writeln!(
                out,
                "  and {} (--json lists them all)",
                count(n_more, "more violation")
            );
        }
        out.push('\n');
        for (name, value) in &self.report.facts {
            let _ = writeln!(out, "{name:<16} {}", printable(value));
        }
        let _ = writeln!(out, "{}", voice.paint.faint(&lasting(self.time)));
        out
    }

    fn json(&self) -> Value {
        let name = |&at: &usize| self.log[at].name;
        let violations: Vec<Value> = self
            .report
            .violations
            .iter()
            .map(|it| json!({"words": it.words, "operations": it.operations.iter().map(name).collect::<Vec<_>>()}))
            .collect();
        let facts: serde_json::Map<String, Value> = self
            .report
            .facts
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect();
        json!({
            "schema": SCHEMA,
            "kingsnake": env!("CARGO_PKG_VERSION"),
            "verdict": self.word(),
            "exit_status": status(self.report.verdict),
            "workload": self.workload.name(),
            "history": { "path": self.path.display().to_string(), "operations": self.log.len() },
            "rule": self.report.rule,
            "violations": violations,
            "facts": facts,
            "stats": { "seconds": self.time.as_secs_f64() },
        })
    }

    fn page(&self) -> String {
        let told = self.report.violations.iter().take(TOLD);
        let n_more = self.report.violations.len().saturating_sub(TOLD);
        let body = html! {
            header {
                p.verdict { (self.word()) }
                h1 { (self.subject()) }
                p.how { (self.report.rule) }
            }
            @if let Some(plot) = &self.report.plot {
                section {
                    h2 { (plot.title) }
                    div.scroller {
                        div.wide.drawing tabindex="0" role="region" aria-label=(plot.title) { (PreEscaped(plot::document(plot))) }
                    }
                }
            }
            @if !self.report.violations.is_empty() {
                section {
                    h2 { "What happened" }
                    ol.story { @for violation in told { li { (violation.words) } } }
                    @if n_more > 0 { p.soft { "And " (count(n_more, "more violation")) "; --json lists them all." } }
                }
            }
            section {
                h2 { "Counts" }
                table.plan { tbody { @for (name, value) in &self.report.facts {
                    tr { th scope="row" { (name) } td { (value) } }
                } } }
            }
        };
        let frame = Frame {
            title: &format!("{}: {}", self.word(), self.subject()),
            mood: self.word(),
            style: "",
            script: crate::page::SCRIPT,
        };
        kingsnake_text::page(frame, &body)
    }
}

fn deliver(answer: &RuleAnswer<'_>, files: &FileArgs, voice: Voice) -> Result<()> {
    if files.json.as_deref() != Some(Path::new("-")) {
        say(&answer.words(voice)).context("cannot write to stdout")?;
    }
    if let Some(path) = &files.json {
        let mut text = serde_json::to_string_pretty(&answer.json())?;
        text.push('\n');
        put(path, &text)?;
    }
    if let Some(path) = &files.report {
        put(path, &answer.page())?;
    }
    match (&files.svg, &answer.report.plot) {
        (Some(path), Some(plot)) => put(path, &plot::document(plot))?,
        (Some(path), None) => {
            voice.warn(&format!(
                "no picture for {}: there is nothing to plot",
                path.display()
            ));
        }
        (None, _) => {}
    }
    Ok(())
}
