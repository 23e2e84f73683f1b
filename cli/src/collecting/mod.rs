//! What `collect` and `hunt` write beside the history: a summary for programs, a page with a timeline for people.

mod page;
pub mod steps;

use std::path::Path;
use std::time::Duration;

use clap::Parser;
use kingsnake_collect::Collected;
use serde_json::{Value, json};

use crate::args::{Command, Typed};
pub use page::page;

/// The summary's name within a collection's directory.
pub const SUMMARY: &str = "summary.json";
/// The page's name.
pub const PAGE: &str = "collection.html";
/// The name of the page about the check.
pub const REPORT: &str = "report.html";

/// Whether `check --report` writes a page at a level, by the name that was typed.
pub fn has_report(level: &str) -> bool {
    let line = ["kingsnake", "check", "h", "--level", level];
    match Typed::try_parse_from(line).map(|typed| typed.command) {
        Ok(Command::Check(args)) => args.check.level.level.is_some_and(|it| it.one().is_some()),
        _ => false,
    }
}

/// The summary.
pub fn summary(collected: &Collected, check: Option<(&str, u8, Duration)>) -> Value {
    let (meta, tally, merged) = (&collected.meta, &collected.tally, &collected.merged);
    json!({
        "schema": 1,
        "database": meta.database,
        "version": meta.version,
        "isolation": meta.isolation,
        "workload": meta.workload,
        "sessions": meta.sessions,
        "seed": meta.seed,
        "version_order": meta.version_order,
        "settings": meta.settings,
        "committed": tally.committed,
        "aborted": tally.aborted,
        "unknown": tally.unknown,
        "unknown_settled_committed": merged.settled_committed,
        "unknown_settled_aborted": merged.settled_aborted,
        "unknown_left": merged.unknown,
        "transactions": merged.n_txns,
        "operations": merged.n_ops,
        "keys_in_order": merged.n_ordered,
        "findings": merged.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "steps": steps::json(collected),
        "ended_early": collected.ended_early,
        "events": merged.timeline.events.len(),
        "collecting_seconds": collected.running.as_secs_f64(),
        "merging_seconds": collected.merging.as_secs_f64(),
        "check": check.map(|(level, status, time)| json!({
            "level": level, "exit_status": status, "seconds": time.as_secs_f64()
        })),
    })
}

/// Writes both.
pub fn write(
    directory: &Path,
    collected: &Collected,
    check: Option<(&str, u8, Duration)>,
) -> std::io::Result<()> {
    let summary = summary(collected, check);
    std::fs::write(directory.join(SUMMARY), format!("{summary:#}\n"))?;
    if !collected.steps.is_empty() {
        std::fs::write(directory.join(steps::STEPS), steps::words(&collected.steps))?;
    }
    std::fs::write(directory.join(PAGE), page(collected, check.map(|it| it.1)))
}
