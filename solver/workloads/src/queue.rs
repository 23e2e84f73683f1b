//! Queues without an order: `queue` asks where every dequeued element came from, `total-queue` also where it went.

use kingsnake_history::operations::{Operation, Value};
use rustc_hash::FxHashMap;

use crate::{RuleReport, RuleViolation};

/// The events of one element.
#[derive(Default)]
struct Element {
    attempts: Vec<usize>,
    n_acknowledged: usize,
    takes: Vec<usize>,
}

fn elements(log: &[Operation]) -> FxHashMap<&Value, Element> {
    let mut elements: FxHashMap<&Value, Element> = FxHashMap::default();
    for (at, op) in log.iter().enumerate() {
        match op.f.as_str() {
            "enqueue" if !op.is_failed() => {
                let element = elements.entry(&op.input).or_default();
                element.attempts.push(at);
                element.n_acknowledged += usize::from(op.is_ok());
            }
            "dequeue" if op.is_ok() && op.output != Value::Nil => {
                elements.entry(&op.output).or_default().takes.push(at);
            }
            "drain" if !op.is_failed() => {
                for item in op.output.items().unwrap_or(&[]) {
                    elements.entry(item).or_default().takes.push(at);
                }
            }
            _ => {}
        }
    }
    elements
}

/// `queue`: by the order of events, an element is dequeued no more often than enqueues of it had begun.
pub(crate) fn queue(log: &[Operation]) -> RuleReport {
    let mut violations = Vec::new();
    let mut facts = [0, 0];
    for (value, element) in elements(log) {
        facts[0] += element.attempts.len();
        facts[1] += element.takes.len();
        let mut takes = element.takes;
        takes.sort_by_key(|&at| log[at].end_place());
        for (n_before, &at) in takes.iter().enumerate() {
            let begun = |&&enqueue: &&usize| log[enqueue].invoked < log[at].end_place();
            let n_begun = element.attempts.iter().filter(begun).count();
            if n_begun <= n_before {
                violations.push(RuleViolation {
                    words: format!(
                        "{} took {value} for the {}. time, and it had been enqueued {n_begun} times",
                        log[at],
                        n_before + 1
                    ),
                    operations: element.attempts.iter().copied().chain([at]).collect(),
                });
            }
        }
    }
    violations.sort_by(|a, b| a.operations.last().cmp(&b.operations.last()));
    let mut report = RuleReport::new(
        "every element that is dequeued had been enqueued",
        violations,
    );
    report.facts = vec![
        ("enqueued", facts[0].to_string()),
        ("dequeued", facts[1].to_string()),
    ];
    report
}

/// `total-queue`: every acknowledged element is dequeued in the end, and nothing that was never attempted.
pub(crate) fn total_queue(log: &[Operation]) -> RuleReport {
    let mut violations = Vec::new();
    let (mut n_acknowledged, mut n_taken, mut n_twice) = (0, 0, 0);
    for (value, element) in elements(log) {
        n_acknowledged += element.n_acknowledged;
        n_taken += element.takes.len();
        if element.attempts.is_empty() {
            violations.push(RuleViolation {
                words: format!(
                    "{} took {value}, which was never enqueued",
                    log[element.takes[0]]
                ),
                operations: element.takes,
            });
            continue;
        }
        n_twice += element.takes.len().saturating_sub(element.attempts.len());
        let n_lost = element.n_acknowledged.saturating_sub(element.takes.len());
        if n_lost > 0 {
            violations.push(RuleViolation {
                words: format!(
                    "element {value} is lost: {} was acknowledged, and it was never dequeued",
                    log[element.attempts[0]]
                ),
                operations: element.attempts,
            });
        }
    }
    violations.sort_by(|a, b| a.operations.cmp(&b.operations));
    let rule = "every acknowledged element is dequeued, and none that was not attempted";
    let mut report = RuleReport::new(rule, violations);
    report.facts = vec![
        ("acknowledged", n_acknowledged.to_string()),
        ("dequeued", n_taken.to_string()),
        ("duplicated", n_twice.to_string()),
    ];
    report
}
