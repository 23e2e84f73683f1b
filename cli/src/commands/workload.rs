//! `kingsnake check --workload`: a Jepsen workload by its own rule.

use std::fmt::Write;
use std::time::Instant;

use anyhow::{Context, Result};
use kingsnake_datasets::{Format, open_log};
use kingsnake_evidence::LevelView;
use kingsnake_history::operations::Operation;
use kingsnake_report::json::{Document, log_view, reason_view, stats};
use kingsnake_report::{CommandRun, Cost};
use kingsnake_solver::budget::{Budget, StopReason};
use kingsnake_solver::check::CheckStats;
use kingsnake_solver::level::Level;
use kingsnake_text::Frame;
use kingsnake_workloads::{
    JepsenWorkload, RuleOptions, RuleReport, RuleVerdict, bank, check, recognise,
};
use maud::{PreEscaped, html};
use serde_json::{Value, json};

use crate::answer::{Reported, base_name};
use crate::args::CheckArgs;
use crate::input::{load, options, stopped_or_wrong};
use crate::plan::Plan;
use crate::voice::{Voice, count, lasting, printable};
use crate::{plot, processor};

/// Further violations are counted, not listed.
const TOLD: usize = 10;

/// The workload of a log that is not a history of transactions, if its operations identify it.
pub fn recognised(args: &CheckArgs, budget: &Budget) -> Option<JepsenWorkload> {
    let (log, ..) = open_log(&args.history, &options(&args.read, budget)).ok()?;
    recognise(&log)
}

/// The rule of a workload, and what it found.
pub struct RuleAnswer {
    workload: JepsenWorkload,
    asked: RuleOptions,
    plan: Plan,
    start: Instant,
    /// The log, once it has been read.
    log: Vec<Operation>,
    view: Option<(Format, u64)>,
    report: Option<RuleReport>,
    /// Why there is no report.
    reason: Option<StopReason>,
    cost: Cost,
}

impl RuleAnswer {
    /// Settles what was typed.
    pub fn new(args: &CheckArgs, workload: JepsenWorkload, start: Instant) -> Result<Self> {
        Ok(RuleAnswer {
            workload,
            asked: RuleOptions {
                total: args.workload.total,
                allow_negative: args.workload.allow_negative,
                group_size: args.workload.group_size,
                linearizable: args.workload.linearizable,
            },
            plan: Plan::at(Level::Ser, args)?,
            start,
            log: Vec::new(),
            view: None,
            report: None,
            reason: None,
            cost: Cost::default(),
        })
    }

    /// Reads the log and applies the rule.
    pub fn judged(mut self, args: &CheckArgs, budget: &Budget) -> Result<Self> {
        let (log, format, bytes) = log(args, self.workload, budget)?;
        let report = check(self.workload, &log, &self.asked, budget);
        self.report = Some(report.context("the workload has no rule")??);
        (self.log, self.view) = (log, Some((format, bytes)));
        processor::settle(&mut self.cost, self.start, true);
        Ok(self)
    }

    /// The same where the limits ended before there was an answer.
    pub fn stopped(mut self, reason: StopReason) -> Self {
        self.reason = Some(reason);
        processor::settle(&mut self.cost, self.start, true);
        self
    }

    fn verdict(&self) -> RuleVerdict {
        let report = self.report.as_ref();
        report.map_or(RuleVerdict::Unknown, |it| it.verdict)
    }

    fn word(&self) -> &'static str {
        match self.verdict() {
            RuleVerdict::Valid => "satisfied",
            RuleVerdict::Invalid => "violated",
            RuleVerdict::Unknown => "unknown",
        }
    }

    fn subject(&self) -> String {
        let name = base_name(&self.plan.history);
        match self.report {
            Some(_) => format!(
                "workload {} ({name}: {})",
                self.workload,
                count(self.log.len(), "operation")
            ),
            None => format!("workload {} ({name})", self.workload),
        }
    }

    /// How to repeat it.
    fn run(&self) -> CommandRun {
        let mut run = self.plan.run();
        let mut more = String::new();
        if let Some(total) = self.asked.total {
            let _ = write!(more, " --total {total}");
        }
        if let Some(size) = self.asked.group_size {
            let _ = write!(more, " --group-size {size}");
        }
        let switches = [
            (self.asked.allow_negative, " --allow-negative"),
            (self.asked.linearizable, " --linearizable"),
        ];
        more.extend(switches.iter().filter(|it| it.0).map(|it| it.1));
        run.command = format!(
            "kingsnake check {} --workload {}{more}",
            run.history, self.workload
        );
        run.short_command.clone_from(&run.command);
        for (name, value) in &mut run.rows {
            if *name == "level" {
                *value = format!("the rule of {}{more}", self.workload);
            }
        }
        run
    }

    fn history(&self) -> Option<Value> {
        let (format, bytes) = self.view?;
        let path = &self.plan.history;
        Some(log_view(path, format, bytes, self.log.len()))
    }
}

/// The operations of a log. A bank may also be a history of transactions in any format.
fn log(
    args: &CheckArgs,
    workload: JepsenWorkload,
    budget: &Budget,
) -> Result<(Vec<Operation>, Format, u64)> {
    if workload == JepsenWorkload::Bank {
        let is_jepsen = |it| matches!(it, Format::JepsenEdn | Format::JepsenJson);
        if !args.read.format.is_some_and(is_jepsen)
            && let Ok(parsed) = load(&args.history, &args.read, budget)
            && !is_jepsen(parsed.format)
        {
            return Ok((bank::log(&parsed.history), parsed.format, parsed.bytes));
        }
    }
    let opened = open_log(&args.history, &options(&args.read, budget));
    opened.map_err(stopped_or_wrong)
}

impl Reported for RuleAnswer {
    fn status(&self) -> u8 {
        match self.verdict() {
            RuleVerdict::Valid => 0,
            RuleVerdict::Invalid => 1,
            RuleVerdict::Unknown => 3,
        }
    }

    fn words(&self, voice: Voice, _explains: bool) -> String {
        let word = match self.verdict() {
            RuleVerdict::Valid => voice.paint.good(self.word()),
            RuleVerdict::Invalid => voice.paint.bad(self.word()),
            RuleVerdict::Unknown => voice.paint.open(self.word()),
        };
        let mut out = format!("{word}: {}\n", printable(&self.subject()));
        if voice.quiet {
            return out;
        }
        if let Some(reason) = &self.reason {
            let _ = writeln!(out, "{}", printable(&reason.to_string()));
        }
        let Some(report) = &self.report else {
            return out;
        };
        let _ = writeln!(out, "rule: {}", report.rule);
        if !report.violations.is_empty() {
            out.push('\n');
        }
        for violation in report.violations.iter().take(TOLD) {
            let _ = writeln!(out, "  {}", printable(&violation.words));
        }
        let n_more = report.violations.len().saturating_sub(TOLD);
        if n_more > 0 {
            let _ = writeln!(
                out,
                "  and {} (--json lists them all)",
                count(n_more, "more violation")
            );
        }
        out.push('\n');
        for (name, value) in &report.facts {
            let _ = writeln!(out, "{name:<16} {}", printable(value));
        }
        let _ = writeln!(out, "{}", voice.paint.faint(&lasting(self.cost.time)));
        out
    }

    fn document(&self) -> Document {
        let rule = self.report.as_ref().map(|it| it.rule.to_owned());
        let words = rule
            .clone()
            .unwrap_or_else(|| format!("the rule of {}", self.workload));
        let mut document = Document::new(
            (self.word(), self.status()),
            LevelView::named("workload", words),
            "the operations were checked by the rule of the workload".to_owned(),
            stats(&CheckStats::default(), &self.cost),
            Some(&self.run()),
        );
        document.workload = Some(self.workload.name());
        document.history = self.history();
        document.reason = self.reason.as_ref().map(reason_view);
        document.rule = rule;
        let Some(report) = &self.report else {
            return document;
        };
        let name = |&at: &usize| self.log[at].name;
        let violations = report.violations.iter().map(|it| {
            let operations: Vec<_> = it.operations.iter().map(name).collect();
            json!({"words": it.words, "operations": operations})
        });
        document.violations = Some(violations.collect());
        let facts = report.facts.iter();
        let facts = facts.map(|(name, value)| ((*name).to_owned(), json!(value)));
        document.facts = Some(facts.collect());
        document
    }

    fn page(&self) -> Option<String> {
        let report = self.report.as_ref()?;
        let told = report.violations.iter().take(TOLD);
        let n_more = report.violations.len().saturating_sub(TOLD);
        let body = html! {
            header {
                p.verdict { (self.word()) }
                h1 { (self.subject()) }
                p.how { (report.rule) }
            }
            @if let Some(plot) = &report.plot {
                section {
                    h2 { (plot.title) }
                    div.scroller {
                        div.wide.drawing tabindex="0" role="region" aria-label=(plot.title) { (PreEscaped(plot::document(plot))) }
                    }
                }
            }
            @if !report.violations.is_empty() {
                section {
                    h2 { "What happened" }
                    ol.story { @for violation in told { li { (violation.words) } } }
                    @if n_more > 0 { p.soft { "And " (count(n_more, "more violation")) "; --json lists them all." } }
                }
            }
            section {
                h2 { "Counts" }
                table.plan { tbody { @for (name, value) in &report.facts {
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
        Some(kingsnake_text::page(frame, &body))
    }

    fn svg(&self) -> Option<String> {
        let plot = self.report.as_ref()?.plot.as_ref();
        plot.map(plot::document)
    }
}
