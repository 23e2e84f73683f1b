//! `counter`: a read is at least what had been acknowledged when it began, and at most what had been attempted when it ended;
//! on request also: the counter is linearizable.

use kingsnake_history::budget::Budget;
use kingsnake_history::operations::Operation;

use crate::counter_search::{steps, stuck};
use crate::{
    JepsenWorkload, Plot, RuleOptions, RuleReport, RuleVerdict, RuleViolation, Unfit, count,
    seconds,
};

/// What has been added so far; positive and negative amounts apart, because they bound from different sides.
#[derive(Clone, Copy, Default)]
struct Sums {
    acknowledged: [i64; 2],
    attempted: [i64; 2],
}

/// Checks every read against its bounds, and then on request whether there is one order of all operations.
pub(crate) fn check(
    log: &[Operation],
    options: &RuleOptions,
    budget: &Budget,
) -> Result<RuleReport, Unfit> {
    let mut report = bounds(log)?;
    if options.linearizable {
        report.rule = "there is one order of all additions and reads, each between its start and its end, in which every read returns the sum so far";
        if report.verdict == RuleVerdict::Valid {
            order(log, budget, &mut report);
        }
    }
    Ok(report)
}

fn order(log: &[Operation], budget: &Budget, report: &mut RuleReport) {
    let Some(steps) = steps(log) else {
        return;
    };
    match stuck(&steps, budget) {
        Ok(None) => {}
        Ok(Some(at)) => {
            report.verdict = RuleVerdict::Invalid;
            report.violations.push(RuleViolation {
                words: format!(
                    "{} has no place in any order: each read lies within its bounds, and no order of the additions until then gives every read its value",
                    log[at]
                ),
                operations: vec![at],
            });
        }
        Err(reason) => {
            report.verdict = RuleVerdict::Unknown;
            report.facts.push(("search", reason.to_string()));
        }
    }
}

fn bounds(log: &[Operation]) -> Result<RuleReport, Unfit> {
    let mut events: Vec<(usize, bool, usize)> = Vec::new();
    for (at, op) in log.iter().enumerate() {
        let is_known = op.f == "add" || op.f == "read" || op.f == "decrement";
        if !is_known || op.is_failed() {
            continue;
        }
        events.push((op.invoked, false, at));
        if let Some(completed) = op.completed.filter(|_| op.is_ok()) {
            events.push((completed, true, at));
        }
    }
    events.sort_unstable();
    let mut sums = Sums::default();
    let mut at_invocation = vec![Sums::default(); log.len()];
    let mut violations = Vec::new();
    let mut lines = [Vec::new(), Vec::new(), Vec::new()];
    let mut n_reads = 0;
    for (_, is_end, at) in events {
        let op = &log[at];
        if op.f != "read" {
            let Some(amount) = op.input.int().or(op.output.int()) else {
                let what = format!("{op} adds no whole number");
                return Err(Unfit::new(JepsenWorkload::Counter, what));
            };
            let amount = if op.f == "decrement" { -amount } else { amount };
            let side = usize::from(amount < 0);
            let place = if is_end {
                &mut sums.acknowledged
            } else {
                &mut sums.attempted
            };
            place[side] = place[side].saturating_add(amount);
            continue;
        }
        if !is_end {
            at_invocation[at] = sums;
            continue;
        }
        n_reads += 1;
        let began = at_invocation[at];
        let low = began.acknowledged[0].saturating_add(sums.attempted[1]);
        let high = sums.attempted[0].saturating_add(began.acknowledged[1]);
        let Some(found) = op.output.int() else {
            violations.push(RuleViolation {
                words: format!("{op} returned no number"),
                operations: vec![at],
            });
            continue;
        };
        for (line, amount) in lines.iter_mut().zip([found, low, high]) {
            line.push((seconds(op), amount as f64));
        }
        if found < low || found > high {
            violations.push(RuleViolation {
                words: format!(
                    "{op} read {found}, and the counter was between {low} (acknowledged when it began) and {high} (attempted when it ended)"
                ),
                operations: vec![at],
            });
        }
    }
    let mut report = RuleReport::new(
        "every read lies between the additions acknowledged when it began and those attempted when it ended",
        violations,
    );
    let n_adds = log.iter().filter(|op| op.f != "read" && op.is_ok()).count();
    report.facts = vec![
        ("reads", count(n_reads, "read")),
        ("additions", count(n_adds, "acknowledged addition")),
    ];
    let names = ["read", "least", "most"].map(str::to_owned);
    report.plot = (n_reads > 0).then(|| Plot {
        title: "counter".to_owned(),
        unit: "value".to_owned(),
        series: names.into_iter().zip(lines).collect(),
    });
    Ok(report)
}
