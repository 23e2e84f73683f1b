//! The steps of a script as they ran: as text, and in the summary.

use std::fmt::Write;

use kingsnake_collect::{Collected, StepTold};
use serde_json::{Value, json};

/// The file's name within a collection's directory.
pub const STEPS: &str = "steps.txt";
/// Steps of longer orders are only in their file.
const MOST_RUNS: usize = 1;

/// Whether the steps are few enough to show.
pub fn are_few(steps: &[StepTold]) -> bool {
    steps.iter().all(|step| step.run < MOST_RUNS)
}

/// One line per step: what was sent, and what was returned.
pub fn words(steps: &[StepTold]) -> String {
    let sent = |step: &StepTold| format!("{}: {}", step.session, step.text);
    let width = steps.iter().map(|it| sent(it).len()).max().unwrap_or(0);
    let mut out = String::new();
    let mut last = 0;
    for step in steps {
        if step.run != last {
            let _ = writeln!(out, "\nOrder {}:", step.run + 1);
            last = step.run;
        }
        let blocked = if step.blocked { "blocked, then " } else { "" };
        let _ = writeln!(out, "  {:<width$}  {blocked}{}", sent(step), step.said);
    }
    out
}

/// Steps that were expected to block and did not.
pub fn unexpected(steps: &[StepTold]) -> impl Iterator<Item = String> + '_ {
    let steps = steps.iter();
    let unexpected = steps.filter(|it| it.expected_to_block && !it.blocked);
    unexpected.map(|step| {
        format!(
            "line {}: `{}: {}` was expected to block, and did not: {}",
            step.line, step.session, step.text, step.said
        )
    })
}

/// The steps as JSON; null if there are none or too many.
pub fn json(collected: &Collected) -> Value {
    if collected.steps.is_empty() || !are_few(&collected.steps) {
        return Value::Null;
    }
    let told = |step: &StepTold| {
        json!({
            "line": step.line, "session": step.session, "step": step.text,
            "blocked": step.blocked, "result": step.said,
        })
    };
    collected.steps.iter().map(told).collect()
}
