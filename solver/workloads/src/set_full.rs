//! `set-full`: follows every element through all reads: once it is known it must stay, and how long that took.
//!
//! An element is *known* when its addition was acknowledged or a read showed it. It is *stable* if every read that began
//! after some read which showed it shows it too, *lost* if it was known before a read began that does not show it and none
//! later does, and else never read. The rules are Jepsen's.

use kingsnake_history::operations::{Operation, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{JepsenWorkload, Plot, RuleOptions, RuleReport, RuleVerdict, RuleViolation, Unfit};

/// The state of one element.
#[derive(Clone, Copy, Default)]
struct SetElement {
    add: Option<usize>,
    /// The operation by which it became known.
    known: Option<usize>,
    last_present: Option<usize>,
    last_absent: Option<usize>,
}

/// Checks every element.
pub(crate) fn check(log: &[Operation], options: &RuleOptions) -> Result<RuleReport, Unfit> {
    let mut elements: FxHashMap<&Value, SetElement> = FxHashMap::default();
    let mut reads: Vec<usize> = Vec::new();
    let mut duplicated: Vec<(usize, &Value)> = Vec::new();
    for (at, op) in log.iter().enumerate() {
        if op.f == "add" {
            let element = elements.entry(&op.input).or_default();
            element.add = element.add.or(Some(at));
            if op.is_ok() {
                earlier(log, &mut element.known, at);
            }
        } else if op.f == "read" && op.is_ok() {
            reads.push(at);
        }
    }
    for &at in &reads {
        let Some(items) = log[at].output.items() else {
            let what = format!("{} returned no set", log[at]);
            return Err(Unfit::new(JepsenWorkload::SetFull, what));
        };
        let mut seen: FxHashSet<&Value> = FxHashSet::default();
        for item in items {
            if !seen.insert(item) {
                duplicated.push((at, item));
            }
        }
        for (value, element) in &mut elements {
            let is_present = seen.contains(value);
            if is_present {
                earlier(log, &mut element.known, at);
            }
            let place = if is_present {
                &mut element.last_present
            } else {
                &mut element.last_absent
            };
            if place.is_none_or(|before| log[before].invoked < log[at].invoked) {
                *place = Some(at);
            }
        }
    }
    Ok(judge(log, elements, &duplicated, options))
}

/// Keeps of two operations the one that ended first.
fn earlier(log: &[Operation], best: &mut Option<usize>, at: usize) {
    if best.is_none_or(|before| log[at].end_place() < log[before].end_place()) {
        *best = Some(at);
    }
}

fn judge(
    log: &[Operation],
    elements: FxHashMap<&Value, SetElement>,
    duplicated: &[(usize, &Value)],
    options: &RuleOptions,
) -> RuleReport {
    let mut all: Vec<(&Value, SetElement)> = elements.into_iter().collect();
    all.sort_unstable_by_key(|(_, element)| element.add);
    let mut violations = Vec::new();
    let (mut stable, mut lost, mut stale) = (Vec::new(), Vec::new(), Vec::new());
    let (mut n_never, mut points) = (0, Vec::new());
    let time = |at: usize| log[at].end.unwrap_or(log[at].end_place() as i64);
    let begun = |at: Option<usize>| at.map_or(-1, |at| log[at].invoked as i64);
    for (value, element) in all {
        let known = element.known;
        let since = |turn: Option<usize>| {
            let turned = turn.map_or(0, |at| log[at].begin.unwrap_or(log[at].invoked as i64) + 1);
            known.map_or(0, |known| (turned - time(known)).max(0))
        };
        let is_stable = element.last_present.is_some()
            && begun(element.last_absent) < begun(element.last_present);
        let is_lost = known.is_some_and(|known| {
            element.last_absent.is_some_and(|absent| {
                begun(element.last_present) < begun(Some(absent))
                    && log[known].end_place() < log[absent].invoked
            })
        });
        if is_stable {
            let latency = since(element.last_absent);
            stable.push(latency);
            if let Some(known) = known {
                points.push((time(known) as f64 / 1e9, latency as f64 / 1e9));
            }
            if latency > 0 {
                stale.push((value, element, latency));
            }
        } else if is_lost {
            lost.push(since(element.last_present));
            let known = known.unwrap_or(0);
            let absent = element.last_absent.unwrap_or(0);
            let present = match element.last_present {
                Some(at) => format!("it was last seen by {}", short(&log[at])),
                None => "no read ever showed it".to_owned(),
            };
            violations.push(RuleViolation {
                words: format!(
                    "element {value} is lost: {} made it known, {present}, and {} does not show it",
                    short(&log[known]),
                    short(&log[absent])
                ),
                operations: element.add.into_iter().chain([absent]).collect(),
            });
        } else {
            n_never += 1;
        }
    }
    for &(at, value) in duplicated {
        violations.push(RuleViolation {
            words: format!("element {value} is twice in one read, {}", short(&log[at])),
            operations: vec![at],
        });
    }
    let n_stale = stale.len();
    if options.linearizable {
        for (value, element, latency) in stale {
            violations.push(RuleViolation {
                words: format!(
                    "element {value} is stale: a read that began {:.6} s after it was known does not show it",
                    latency as f64 / 1e9
                ),
                operations: element.add.into_iter().chain(element.last_absent).collect(),
            });
        }
    }
    let rule = "an element that is known stays";
    let mut report = RuleReport::new(rule, violations);
    if report.verdict == RuleVerdict::Valid && stable.is_empty() {
        report.verdict = RuleVerdict::Unknown;
    }
    report.facts = vec![
        ("stable", stable.len().to_string()),
        ("lost", lost.len().to_string()),
        ("stale", n_stale.to_string()),
        ("never read", n_never.to_string()),
        ("stable latency", quantiles(&mut stable)),
        ("lost latency", quantiles(&mut lost)),
    ];
    report.plot = (!points.is_empty()).then(|| Plot {
        title: "time until every read shows an element".to_owned(),
        unit: "seconds".to_owned(),
        series: vec![("stable latency".to_owned(), points)],
    });
    report
}

fn short(op: &Operation) -> String {
    format!("{} {}", op.f, op.name)
}

/// Least, median, 95 %, 99 % and greatest, in milliseconds.
fn quantiles(latencies: &mut [i64]) -> String {
    if latencies.is_empty() {
        return "none".to_owned();
    }
    latencies.sort_unstable();
    let at = |share: f64| {
        let place = (share * latencies.len() as f64) as usize;
        latencies[place.min(latencies.len() - 1)] as f64 / 1e6
    };
    let [least, half, most, nearly, all] = [0.0, 0.5, 0.95, 0.99, 1.0].map(at);
    format!("0: {least} ms, 0.5: {half} ms, 0.95: {most} ms, 0.99: {nearly} ms, 1: {all} ms")
}
