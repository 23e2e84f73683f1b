//! `adya-g2`: two transactions each look for the other's row and insert their own if it is not there, so one succeeds at most.

use kingsnake_history::operations::{Operation, Value};
use rustc_hash::FxHashMap;

use crate::{JepsenWorkload, RuleReport, RuleViolation, Unfit};

/// Checks every pair of inserts.
pub(crate) fn check(log: &[Operation]) -> Result<RuleReport, Unfit> {
    let mut by_key: FxHashMap<&Value, Vec<usize>> = FxHashMap::default();
    for (at, op) in log.iter().enumerate() {
        if op.f != "insert" || !op.is_ok() {
            continue;
        }
        let Some([key, _]) = op.input.items() else {
            let what = format!("{op} has no key and pair of ids");
            return Err(Unfit::new(JepsenWorkload::AdyaG2, what));
        };
        by_key.entry(key).or_default().push(at);
    }
    let n_keys = by_key.len();
    let mut violations: Vec<RuleViolation> = Vec::new();
    for (key, inserts) in by_key {
        if inserts.len() > 1 {
            violations.push(RuleViolation {
                words: format!(
                    "both inserts of pair {key} succeeded, though each excludes the other (G2): {}, and {}",
                    log[inserts[0]], log[inserts[1]]
                ),
                operations: inserts,
            });
        }
    }
    violations.sort_by(|a, b| a.operations.cmp(&b.operations));
    let mut report = RuleReport::new(
        "of two inserts that exclude each other, one succeeds at most",
        violations,
    );
    report.facts = vec![("pairs", n_keys.to_string())];
    Ok(report)
}
