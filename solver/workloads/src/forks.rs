//! Workloads whose reads must agree on an order of writes: `long-fork`, `sequential`, `comments` and `causal-reverse`.

use kingsnake_history::operations::{Operation, Value};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::{JepsenWorkload, RuleOptions, RuleReport, RuleViolation, Unfit, count};

/// What a read of a group of keys saw, in the order of the keys.
type Seen = Vec<Option<Value>>;

/// `long-fork`: of two reads of one group, one must have seen everything that the other saw.
pub(crate) fn long_fork(log: &[Operation], options: &RuleOptions) -> Result<RuleReport, Unfit> {
    let mut groups: FxHashMap<Vec<Value>, Vec<(usize, Seen)>> = FxHashMap::default();
    for (at, op) in log.iter().enumerate().filter(|(_, op)| op.is_ok()) {
        let Some(mut reads) = reads_of(op) else {
            continue;
        };
        if let Some(size) = options.group_size.filter(|&size| size != reads.len()) {
            let what = format!(
                "{op} reads {}, and a group has {size}",
                count(reads.len(), "key")
            );
            return Err(Unfit::new(JepsenWorkload::LongFork, what));
        }
        reads.sort();
        let (keys, seen) = reads.into_iter().unzip();
        groups.entry(keys).or_default().push((at, seen));
    }
    let mut violations = Vec::new();
    let mut n_reads = 0;
    for (_, mut reads) in groups {
        n_reads += reads.len();
        let n_seen = |seen: &Seen| seen.iter().filter(|it| it.is_some()).count();
        reads.sort_by_key(|(at, seen)| (n_seen(seen), *at));
        // A chain by inclusion is one in which neighbours are.
        for pair in reads.windows(2) {
            let ((one, fewer), (other, more)) = (&pair[0], &pair[1]);
            let missed = fewer
                .iter()
                .zip(more)
                .any(|(one, other)| one.is_some() && other.is_none());
            let differ = fewer
                .iter()
                .zip(more)
                .any(|(one, other)| one.is_some() && other.is_some() && one != other);
            if missed || differ {
                let what = if missed {
                    "each saw a write that the other missed: a long fork"
                } else {
                    "they saw different values of one key, which is written once"
                };
                violations.push(RuleViolation {
                    words: format!("{} and {}: {what}", log[*one], log[*other]),
                    operations: vec![*one, *other],
                });
            }
        }
    }
    violations.sort_by(|a, b| a.operations.cmp(&b.operations));
    let rule = "of two reads of the same keys, one saw all that the other saw";
    let mut report = RuleReport::new(rule, violations);
    report.facts = vec![("reads", count(n_reads, "read"))];
    Ok(report)
}

/// The keys and values of a transaction that only reads; `None` if it is none.
fn reads_of(op: &Operation) -> Option<Vec<(Value, Option<Value>)>> {
    let steps = op.output.items()?;
    let read = |step: &Value| match step.items() {
        Some([Value::Text(name), key, value]) if name.trim_start_matches(':') == "r" => {
            let value = (*value != Value::Nil).then(|| value.clone());
            Some((key.clone(), value))
        }
        _ => None,
    };
    let reads: Vec<_> = steps.iter().map(read).collect::<Option<_>>()?;
    (!reads.is_empty()).then_some(reads)
}

/// `sequential`: subkeys are written from first to last and read from last to first, so after one that is there all are.
pub(crate) fn sequential(log: &[Operation]) -> Result<RuleReport, Unfit> {
    let mut violations = Vec::new();
    let mut n_reads = 0;
    for (at, op) in log.iter().enumerate() {
        if op.f != "read" || !op.is_ok() {
            continue;
        }
        let values = match op.output.items() {
            Some([_, Value::Seq(values)]) => values.as_slice(),
            Some(values) => values,
            None => {
                let what = format!("{op} returned no list of subkeys");
                return Err(Unfit::new(JepsenWorkload::Sequential, what));
            }
        };
        n_reads += 1;
        let first = values.iter().position(|it| *it != Value::Nil);
        let missing = first.filter(|&first| values[first..].contains(&Value::Nil));
        if let Some(first) = missing {
            violations.push(RuleViolation {
                words: format!(
                    "{op} saw {}, and then missed a subkey that was written before it",
                    values[first]
                ),
                operations: vec![at],
            });
        }
    }
    let rule = "a read that sees a later write also sees the earlier writes of the same process";
    let mut report = RuleReport::new(rule, violations);
    report.facts = vec![("reads", count(n_reads, "read"))];
    Ok(report)
}

/// A key of jepsen.independent, if there is one, and the value.
fn untuple(value: &Value, is_keyed: bool) -> (Option<&Value>, &Value) {
    match value.items() {
        Some([key, inner]) if is_keyed => (Some(key), inner),
        _ => (None, value),
    }
}

/// `comments`, `causal-reverse`: a read that sees a write sees all that had been acknowledged when that write began.
pub(crate) fn comments(workload: JepsenWorkload, log: &[Operation]) -> Result<RuleReport, Unfit> {
    let writes = || log.iter().enumerate().filter(|(_, op)| op.f == "write");
    let is_pair = |value: &Value| matches!(value, Value::Seq(items) if items.len() == 2);
    let is_keyed = writes().next().is_some() && writes().all(|(_, op)| is_pair(&op.input));
    let mut by_key: FxHashMap<Option<&Value>, Vec<usize>> = FxHashMap::default();
    for (at, op) in writes() {
        let (key, _) = untuple(&op.input, is_keyed);
        by_key.entry(key).or_default().push(at);
    }
    let mut violations = Vec::new();
    let mut n_reads = 0;
    for (at, op) in log.iter().enumerate() {
        if op.f != "read" || !op.is_ok() {
            continue;
        }
        let (key, seen) = untuple(&op.output, is_keyed);
        let Some(items) = seen.items() else {
            let what = format!("{op} returned no set of writes");
            return Err(Unfit::new(workload, what));
        };
        n_reads += 1;
        let seen: FxHashSet<&Value> = items.iter().collect();
        let writes = by_key.get(&key).map_or(&[][..], Vec::as_slice);
        let value = |at: usize| untuple(&log[at].input, is_keyed).1;
        let newest = writes
            .iter()
            .copied()
            .filter(|&at| seen.contains(value(at)));
        let Some(newest) = newest.max_by_key(|&at| log[at].invoked) else {
            continue;
        };
        for &missed in writes {
            let over = log[missed].is_ok() && log[missed].end_place() < log[newest].invoked;
            if over && !seen.contains(value(missed)) {
                violations.push(RuleViolation {
                    words: format!(
                        "read {} saw {}, and missed {}, which had been acknowledged before that one began ({}; {})",
                        op.name,
                        value(newest),
                        value(missed),
                        log[missed],
                        log[newest]
                    ),
                    operations: vec![missed, newest, at],
                });
            }
        }
    }
    let rule = "a read that sees a write also sees every write that was acknowledged before that write began";
    let mut report = RuleReport::new(rule, violations);
    report.facts = vec![
        ("reads", count(n_reads, "read")),
        ("writes", count(writes().count(), "write")),
    ];
    Ok(report)
}
