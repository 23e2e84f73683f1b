//! Changes a history in one place, so that it may no longer be what the simulation made it.

use std::ops::RangeBounds;

use super::draft::{Draft, DraftOp, DraftRange, INITIAL};
use kingsnake_history::model::Status;
use kingsnake_history::rng::Rng;

/// Makes one random change. Values stay as unique as they were.
pub(super) fn mutate(draft: &mut Draft, rng: &mut Rng) {
    match rng.below(12) {
        0..=4 => change_read(draft, rng),
        5 => swap_in_session(draft, rng),
        6 => change_session(draft, rng),
        7 => flip_status(draft, rng),
        8 => swap_ops(draft, rng),
        9..=10 if !draft.version_orders.is_empty() => change_version_order(draft, rng),
        9..=11 => shift_times(draft, rng),
        _ => {}
    }
}

fn change_read(draft: &mut Draft, rng: &mut Rng) {
    let is_read = |op: &DraftOp| op.install().is_none();
    let places: Vec<(usize, usize)> = draft
        .txns
        .iter()
        .enumerate()
        .flat_map(|(txn, row)| {
            row.ops
                .iter()
                .enumerate()
                .filter(|(_, op)| is_read(op))
                .map(move |(op, _)| (txn, op))
        })
        .collect();
    let Some(&(txn, op)) = rng.pick(&places) else {
        return;
    };
    let key = match draft.txns[txn].ops[op] {
        DraftOp::Read(key, _) | DraftOp::ReadList(key, _) | DraftOp::ReadNothing(key) => key,
        DraftOp::Range(ref query) => {
            let inside: Vec<usize> = (0..3)
                .filter(|it| (query.low, query.high).contains(it))
                .collect();
            let Some(&key) = rng.pick(&inside) else {
                return;
            };
            key
        }
        _ => return,
    };
    let starts_empty = draft.starts_empty;
    let mut values = draft.values(key);
    let thin_air = values.iter().max().unwrap_or(&INITIAL) + 100;
    match &mut draft.txns[txn].ops[op] {
        DraftOp::Read(_, value) => {
            values.push(INITIAL);
            *value = if rng.chance(5) {
                thin_air
            } else {
                values[rng.below(values.len())]
            };
        }
        DraftOp::ReadList(_, items) => change_list(items, &values, thin_air, rng),
        DraftOp::Range(query) => {
            values.push(INITIAL);
            let value = values[rng.below(values.len())];
            change_rows(query, key, value, starts_empty);
        }
        _ => {}
    }
}

/// Makes a range query return another value of a key, or none.
fn change_rows(query: &mut DraftRange, key: usize, value: i64, starts_empty: bool) {
    query.rows.retain(|row| row.0 != key);
    let is_row = match value {
        ..0 => query.shows_deleted,
        INITIAL => !starts_empty,
        _ => true,
    };
    if is_row {
        query.rows.push((key, value));
    }
}

fn change_list(items: &mut Vec<i64>, values: &[i64], thin_air: i64, rng: &mut Rng) {
    match rng.below(6) {
        0 if !items.is_empty() => {
            items.remove(rng.below(items.len()));
        }
        1 if items.len() > 1 => {
            let (a, b) = (rng.below(items.len()), rng.below(items.len()));
            items.swap(a, b);
        }
        2 => items.clear(),
        3 if rng.chance(30) => items.push(thin_air),
        4 if rng.chance(30) => items.extend(items.last().copied()),
        0..=3 => {
            items.pop();
        }
        _ => items.extend(
            rng.pick(values)
                .filter(|value| !items.contains(value))
                .copied(),
        ),
    }
}

fn swap_in_session(draft: &mut Draft, rng: &mut Rng) {
    let a = rng.below(draft.txns.len());
    let session = draft.txns[a].session;
    if let Some(b) = (a + 1..draft.txns.len()).find(|&b| draft.txns[b].session == session) {
        draft.txns.swap(a, b);
    }
}

fn change_session(draft: &mut Draft, rng: &mut Rng) {
    let sessions: Vec<usize> = draft.txns.iter().map(|txn| txn.session).collect();
    let txn = rng.below(draft.txns.len());
    draft.txns[txn].session = sessions[rng.below(sessions.len())];
}

fn flip_status(draft: &mut Draft, rng: &mut Rng) {
    let txn = rng.below(draft.txns.len());
    let statuses = [Status::Committed, Status::Aborted, Status::Unknown];
    draft.txns[txn].status = statuses[rng.below(3)];
}

fn swap_ops(draft: &mut Draft, rng: &mut Rng) {
    let txn = rng.below(draft.txns.len());
    let ops = &mut draft.txns[txn].ops;
    let (a, b) = (rng.below(ops.len()), rng.below(ops.len()));
    ops.swap(a, b);
}

fn change_version_order(draft: &mut Draft, rng: &mut Rng) {
    let order = rng.below(draft.version_orders.len());
    let (key, values) = &draft.version_orders[order];
    let mut values = values.clone();
    let (a, b) = (rng.below(values.len()), rng.below(values.len()));
    if rng.chance(70) {
        values.swap(a, b);
    } else if let Some(value) = rng
        .pick(&draft.final_values(*key))
        .filter(|value| !values.contains(value))
    {
        values.insert(a, *value);
    }
    draft.version_orders[order].1 = values;
}

fn shift_times(draft: &mut Draft, rng: &mut Rng) {
    let txn = rng.below(draft.txns.len());
    let txn = &mut draft.txns[txn];
    let by = rng.between(0, 20) as i64 - 10;
    txn.begin = txn.begin.map(|begin| begin + by);
    txn.commit = txn
        .commit
        .map(|commit| commit + by + rng.between(0, 4) as i64);
}
