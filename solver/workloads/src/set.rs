//! `set`: elements are added, and the last read must show all that were acknowledged and nothing that was never attempted.

use kingsnake_history::operations::{Operation, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{JepsenWorkload, RuleReport, RuleVerdict, RuleViolation, Unfit};

/// Checks the last read.
pub(crate) fn check(log: &[Operation]) -> Result<RuleReport, Unfit> {
    let rule = "the last read shows every acknowledged element, and none that was not attempted";
    let mut adds: FxHashMap<&Value, usize> = FxHashMap::default();
    for (at, op) in log.iter().enumerate().filter(|(_, op)| op.f == "add") {
        let place = adds.entry(&op.input).or_insert(at);
        if op.is_ok() {
            *place = at;
        }
    }
    let is_read = |(_, op): &(usize, &Operation)| op.f == "read" && op.is_ok();
    let reads = log.iter().enumerate().filter(is_read);
    let Some((last, read)) = reads.max_by_key(|(_, op)| op.end_place()) else {
        let mut report = RuleReport::new(rule, Vec::new());
        report.verdict = RuleVerdict::Unknown;
        return Ok(report);
    };
    let Some(items) = read.output.items() else {
        let what = format!("{read} returned no set");
        return Err(Unfit::new(JepsenWorkload::Set, what));
    };
    let seen: FxHashSet<&Value> = items.iter().collect();
    let mut violations = Vec::new();
    let (mut n_acknowledged, mut n_recovered) = (0, 0);
    let mut all: Vec<(&Value, usize)> = adds.iter().map(|(&element, &at)| (element, at)).collect();
    all.sort_unstable_by_key(|&(_, at)| at);
    for (element, at) in all {
        n_acknowledged += usize::from(log[at].is_ok());
        n_recovered += usize::from(!log[at].is_ok() && seen.contains(element));
        if log[at].is_ok() && !seen.contains(element) {
            violations.push(RuleViolation {
                words: format!(
                    "element {element} is lost: {} was acknowledged, and the last read does not show it",
                    log[at]
                ),
                operations: vec![at, last],
            });
        }
    }
    let mut unexpected: Vec<&Value> = seen
        .iter()
        .copied()
        .filter(|it| !adds.contains_key(it))
        .collect();
    unexpected.sort_unstable();
    for element in unexpected {
        violations.push(RuleViolation {
            words: format!("element {element} was never added, and the last read shows it"),
            operations: vec![last],
        });
    }
    let mut report = RuleReport::new(rule, violations);
    report.facts = vec![
        ("attempted", adds.len().to_string()),
        ("acknowledged", n_acknowledged.to_string()),
        ("seen", seen.len().to_string()),
        ("recovered", n_recovered.to_string()),
    ];
    Ok(report)
}
