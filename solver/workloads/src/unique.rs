//! `unique-ids`: no two operations are given the same id.

use kingsnake_history::operations::{Operation, Value};
use rustc_hash::FxHashMap;

use crate::{RuleReport, RuleViolation};

/// Checks all ids that were given.
pub(crate) fn check(log: &[Operation]) -> RuleReport {
    let mut first: FxHashMap<&Value, usize> = FxHashMap::default();
    let mut violations = Vec::new();
    let mut n_ids = 0;
    for (at, op) in log.iter().enumerate() {
        if op.f != "generate" || !op.is_ok() {
            continue;
        }
        n_ids += 1;
        if let Some(&before) = first.get(&op.output) {
            violations.push(RuleViolation {
                words: format!(
                    "id {} was given twice: {}, and {op}",
                    op.output, log[before]
                ),
                operations: vec![before, at],
            });
        } else {
            first.insert(&op.output, at);
        }
    }
    let mut report = RuleReport::new("no id is given twice", violations);
    let n_attempts = log.iter().filter(|op| op.f == "generate").count();
    report.facts = vec![
        ("attempted", n_attempts.to_string()),
        ("acknowledged", n_ids.to_string()),
    ];
    report
}
