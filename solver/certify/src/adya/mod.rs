//! Checks refutations on a given certificate again: that findings, mismatches and the steps of a cycle exist.

mod reading;
mod walk;
mod window;

use kingsnake_history::adya::{
    AdyaStep, Dependency, DependencyReason, Difference, Mismatch, Phenomenon, PlLevel, Refutation,
};
use kingsnake_history::model::{History, KeyId, Op, Status, TxnId, ValueId};
use kingsnake_history::verdict::{Finding, LocalAnomaly};

use crate::Refusal;
use crate::graphs::is_cycle;
use reading::Reading;

pub(crate) use reading::count;
pub use walk::check_order;

/// Checks that a refutation holds.
pub fn check_refutation(
    history: &History,
    level: PlLevel,
    refutation: &Refutation,
) -> Result<(), Refusal> {
    refute(history, level, refutation).map_err(Refusal::Refutation)
}

fn refute(history: &History, level: PlLevel, refutation: &Refutation) -> Result<(), String> {
    if let Refutation::Findings(found) = refutation
        && let [first, ..] = &found[..]
        && first.anomaly == LocalAnomaly::DuplicateWrite
    {
        return found.iter().try_for_each(|it| duplicate(history, it));
    }
    let reading = Reading::new(history)?;
    match refutation {
        Refutation::Findings(found) if level.forbids_g1() && !found.is_empty() => {
            found.iter().try_for_each(|it| finding(&reading, it))
        }
        Refutation::Mismatches(found) if level.forbids_g1() && !found.is_empty() => {
            found.iter().try_for_each(|it| mismatch(&reading, it))
        }
        Refutation::Cycle(phenomenon, steps) => cycle(&reading, level, *phenomenon, steps),
        Refutation::Findings(_) | Refutation::Mismatches(_) | Refutation::Order { .. } => {
            Err("the level does not forbid it, or there is nothing".to_owned())
        }
    }
}

/// Two committed transactions, or one twice, gave a key the same value. That breaks every level.
fn duplicate(history: &History, found: &Finding) -> Result<(), String> {
    let written = |(txn, op): (TxnId, usize)| {
        let is_committed =
            txn.index() < history.n_txns() && history.status(txn) == Status::Committed;
        match history.ops(txn).get(op).filter(|_| is_committed) {
            Some(&(Op::Write { key, value } | Op::Append { key, value })) => Some((key, value)),
            _ => None,
        }
    };
    let one = (found.txn, found.op);
    let other = found.other.filter(|other| *other != one);
    let is_there = found.anomaly == LocalAnomaly::DuplicateWrite
        && written(one).is_some_and(|it| it.0 == found.key)
        && other.is_some_and(|other| written(other) == written(one));
    if is_there {
        Ok(())
    } else {
        Err("no two committed writes have one value".to_owned())
    }
}

fn finding(reading: &Reading<'_>, found: &Finding) -> Result<(), String> {
    let wrong = || Err(format!("{:?} is not there", found.anomaly));
    if found.anomaly == LocalAnomaly::AbortedVersion {
        let is_aborted = !reading.counts(found.txn);
        return if is_aborted { Ok(()) } else { wrong() };
    }
    let op = reading.history().ops(found.txn).get(found.op);
    let read = match op {
        Some(&Op::Read { key, value }) => reading.read(found.txn, found.op, key, value),
        Some(&Op::ReadList { key, list }) => {
            let list = reading.history().list(list);
            reading.read_list(found.txn, found.op, key, list)
        }
        Some(&Op::Range { range }) => {
            let untouched = reading.untouched(found.txn, found.op, range);
            untouched.map(|key| key.map(|_| 0))
        }
        _ => return wrong(),
    };
    match read {
        Err(_) if reading.counts(found.txn) => Ok(()),
        _ => wrong(),
    }
}

fn mismatch(reading: &Reading<'_>, found: &Mismatch) -> Result<(), String> {
    let wrong = || "a predicate returned what it should".to_owned();
    let history = reading.history();
    let all = history.all_predicates();
    let (txn, predicate) = all.get(found.predicate as usize).ok_or_else(wrong)?;
    if *txn != found.txn || !reading.counts(*txn) {
        return Err(wrong());
    }
    let own = reading.own_writes(*txn, predicate.at as usize);
    let view = reading.view(*txn, predicate)?;
    let seen = |key: KeyId| match own.iter().find(|it| it.0 == key) {
        Some(it) => Some(it.1),
        None => reading.versions(key)[reading.visible(&view, key)].1,
    };
    let chosen = |key: KeyId| seen(key).filter(|&it| history.satisfies(predicate.query, it));
    let returned = |key: KeyId| reading.returned(*txn, predicate, key);
    let holds = match found.what {
        Difference::Missing(value) => {
            let key = history.value_key(value);
            chosen(key) == Some(value) && returned(key).is_none()
        }
        Difference::Extra(key, visible) => {
            let there = seen(key).filter(|&value| !history.is_absence(value));
            returned(key).is_some() && chosen(key).is_none() && there == visible
        }
        Difference::Other {
            returned: it,
            visible,
        } => {
            let key = history.value_key(it);
            it != visible && chosen(key) == Some(visible) && returned(key) == Some(Some(it))
        }
        Difference::Aggregate(expected) => {
            let table = history.queries()[predicate.query as usize].table;
            let keys = reading.table(table).iter();
            let all: Vec<(KeyId, ValueId)> =
                keys.filter_map(|&key| Some((key, chosen(key)?))).collect();
            reading.difference(*txn, predicate, &all)? == Some(expected)
        }
    };
    if holds { Ok(()) } else { Err(wrong()) }
}

fn cycle(
    reading: &Reading<'_>,
    level: PlLevel,
    phenomenon: Phenomenon,
    steps: &[AdyaStep],
) -> Result<(), String> {
    let (Some(first), Some(last)) = (steps.first(), steps.last()) else {
        return Err("a cycle without steps".to_owned());
    };
    for pair in steps.windows(2) {
        if pair[0].to != pair[1].from {
            return Err("the steps are not connected".to_owned());
        }
    }
    let mut kinds = Vec::new();
    for step in steps {
        match &step.because {
            Some(because) => {
                holds(reading, step, because)?;
                kinds.push(because.dependency);
            }
            None if reading.precedes(step.from, step.to)? => {}
            None => return Err("the times do not say so".to_owned()),
        }
    }
    let n_anti = kinds.iter().filter(|it| it.is_rw()).count();
    let n_pred = kinds.iter().filter(|&&it| it == Dependency::PredRw).count();
    let is_timed = steps.iter().any(|step| step.because.is_none());
    let is_named = match phenomenon {
        Phenomenon::G0 => kinds.iter().all(|&it| it == Dependency::Ww) && !is_timed,
        Phenomenon::G1c => n_anti == 0 && !is_timed && level.forbids_g1(),
        Phenomenon::GSingle => {
            let is_forbidden = match level {
                PlLevel::Pl2Plus | PlLevel::Pl3 => true,
                PlLevel::Pl299 => n_pred == 0,
                _ => false,
            };
            n_anti == 1 && !is_timed && is_forbidden
        }
        Phenomenon::G2Item => {
            let is_forbidden = matches!(level, PlLevel::Pl299 | PlLevel::Pl3);
            n_anti > 0 && n_pred == 0 && !is_timed && is_forbidden
        }
        Phenomenon::G2 => n_anti > 0 && !is_timed && level == PlLevel::Pl3,
        Phenomenon::GSib => n_anti == 1 && level == PlLevel::PlSi,
        // One dependency that contradicts the start order.
        Phenomenon::GSia => {
            return if steps.len() == 1
                && n_anti == 0
                && kinds.len() == 1
                && level == PlLevel::PlSi
                && !reading.precedes(first.from, first.to)?
            {
                Ok(())
            } else {
                Err("the dependency agrees with the start order".to_owned())
            };
        }
    };
    let is_cycle = is_cycle(steps.iter().map(|step| (step.from, step.to)));
    if last.to != first.from || !is_cycle || !is_named {
        return Err(format!("this is no {}", phenomenon.name()));
    }
    Ok(())
}

/// Whether a dependency exists.
fn holds(reading: &Reading<'_>, step: &AdyaStep, because: &DependencyReason) -> Result<(), String> {
    let history = reading.history();
    let key = because.key;
    let versions = reading.versions(key);
    let at = |value: Option<ValueId>| match value {
        None => Some(0),
        Some(value) => (1..versions.len()).find(|&at| versions[at].1 == Some(value)),
    };
    let wrong = || format!("a step of {} is not there", because.dependency.name());
    let installed = at(Some(because.installed)).ok_or_else(wrong)?;
    let seen = at(because.seen).ok_or_else(wrong)?;
    let writer = |at: usize| versions[at].0;
    if !reading.counts(step.from) || !reading.counts(step.to) || step.from == step.to {
        return Err(wrong());
    }
    let is = match because.dependency {
        Dependency::Ww => {
            installed == seen + 1
                && writer(seen) == Some(step.from)
                && writer(installed) == Some(step.to)
        }
        Dependency::Wr => {
            writer(installed) == Some(step.from) && reads(reading, step.to, key, installed)?
        }
        Dependency::Rw => {
            installed == seen + 1
                && writer(installed) == Some(step.to)
                && reads(reading, step.from, key, seen)?
        }
        Dependency::PredWr | Dependency::PredRw => {
            let number = because.predicate.ok_or_else(wrong)? as usize;
            let (txn, predicate) = history.all_predicates().get(number).ok_or_else(wrong)?;
            let view = reading.view(*txn, predicate)?;
            let looked = reading.visible(&view, key);
            let table = history.queries()[predicate.query as usize].table;
            let is_own = reading.own_writes(*txn, predicate.at as usize);
            let is_own = is_own.iter().any(|it| it.0 == key);
            let is_change = reading.bears_on(predicate, key, installed)
                != reading.bears_on(predicate, key, installed - 1);
            let is_side = if because.dependency == Dependency::PredWr {
                *txn == step.to && writer(installed) == Some(step.from) && installed <= looked
            } else {
                *txn == step.from && writer(installed) == Some(step.to) && installed > looked
            };
            history.table_of(key) == Some(table) && !is_own && is_change && is_side
        }
    };
    if is { Ok(()) } else { Err(wrong()) }
}

/// Whether a transaction reads the version at a place, by itself or through an aggregate.
fn reads(reading: &Reading<'_>, txn: TxnId, key: KeyId, at: usize) -> Result<bool, String> {
    let history = reading.history();
    for (place, op) in history.ops(txn).iter().enumerate() {
        let seen = match *op {
            Op::Read { key: it, value } if it == key => reading.read(txn, place, key, value),
            Op::ReadList { key: it, list } if it == key => {
                reading.read_list(txn, place, key, history.list(list))
            }
            Op::Range { range } => {
                let untouched = reading.untouched(txn, place, range);
                untouched.map(|it| it.filter(|&it| it == key).map(|_| 0))
            }
            _ => continue,
        };
        if seen == Ok(Some(at)) {
            return Ok(true);
        }
    }
    for (_, predicate) in reading.predicates(txn) {
        let value = reading.versions(key)[at].1;
        let is_read = value.is_some_and(|value| reading.computes_with(predicate, value));
        let own = reading.own_writes(txn, predicate.at as usize);
        let table = history.queries()[predicate.query as usize].table;
        if is_read
            && own.iter().all(|it| it.0 != key)
            && history.table_of(key) == Some(table)
            && reading.visible(&reading.view(txn, predicate)?, key) == at
            && reading.matches(predicate.query, key, at)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
