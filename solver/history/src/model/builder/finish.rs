//! The last step of building a history: intervals checked, transactions renumbered session by session.

use super::super::assumptions::Assumptions;
use super::super::build_error::BuildError;
use super::super::history::{History, TxnRow};
use super::super::ids::TxnId;
use super::super::predicates::{RowTables, Stamps};
use super::Parts;

pub(super) fn check_intervals(parts: &Parts) -> Result<(), BuildError> {
    if !parts.has_times {
        return Ok(());
    }
    match parts.intervals.iter().position(|it| it.commit < it.begin) {
        None => Ok(()),
        Some(index) => Err(BuildError::BackwardInterval {
            txn: parts.symbols.show(parts.txns[index].name),
            begin: parts.intervals[index].begin,
            commit: parts.intervals[index].commit,
        }),
    }
}

/// Renumbers the transactions so that each session is a range; keeps the order inside a session.
pub(super) fn by_session(parts: Parts) -> History {
    let n_sessions = parts.session_names.len();
    let mut session_start = vec![0_u32; n_sessions + 1];
    for txn in &parts.txns {
        session_start[txn.session.index() + 1] += 1;
    }
    for session in 0..n_sessions {
        session_start[session + 1] += session_start[session];
    }
    let sorted = parts.txns.is_sorted_by_key(|txn| txn.session);
    let mut history = History {
        txns: Vec::new(),
        ops: Vec::new(),
        session_names: parts.session_names,
        session_start,
        key_names: parts.key_names,
        value_names: parts.value_names,
        value_key: parts.value_key,
        value_initial: parts.value_initial,
        lists: parts.lists,
        list_items: parts.list_items,
        ranges: parts.ranges,
        range_rows: parts.range_rows,
        inserts: parts.inserts,
        compares: parts.compares,
        tombstones: parts.tombstones,
        initial_rows: parts.initial_rows,
        intervals: parts.has_times.then_some(parts.intervals),
        isolation: parts.has_isolation.then_some(parts.isolation),
        models: Vec::new(),
        version_orders: parts.version_orders,
        symbols: parts.symbols,
        rows: parts.rows,
        notes: parts.notes,
        assumptions: Assumptions::default(),
    };
    if !history.rows.stamps.is_empty() {
        let n_txns = parts.txns.len();
        history.rows.stamps.resize(n_txns, Stamps::default());
    }
    if sorted {
        history.txns = parts.txns;
        history.ops = parts.ops;
        return history;
    }
    let mut order: Vec<u32> = (0..parts.txns.len() as u32).collect();
    order.sort_by_key(|&index| parts.txns[index as usize].session);
    history.ops.reserve_exact(parts.ops.len());
    history.txns.reserve_exact(parts.txns.len());
    let inserts = std::mem::take(&mut history.inserts);
    for &index in &order {
        let index = index as usize;
        let start = if index == 0 {
            0
        } else {
            parts.txns[index - 1].ops_end
        };
        let end = parts.txns[index].ops_end;
        let place = |op: u32| inserts.partition_point(|&it| it < op);
        let moved = history.ops.len() as u32;
        for &insert in &inserts[place(start)..place(end)] {
            history.inserts.push(insert - start + moved);
        }
        history
            .ops
            .extend_from_slice(&parts.ops[start as usize..end as usize]);
        let ops_end = history.ops.len() as u32;
        history.txns.push(TxnRow {
            ops_end,
            ..parts.txns[index]
        });
    }
    let mut places = vec![0_u32; order.len()];
    for (place, &index) in order.iter().enumerate() {
        places[index as usize] = place as u32;
    }
    for compare in &mut history.compares {
        compare.txn = TxnId(places[compare.txn.index()]);
    }
    history.compares.sort_by_key(|compare| compare.txn);
    permute(&mut history.intervals, &order);
    permute(&mut history.isolation, &order);
    permute_rows(&mut history.rows, &order);
    history.notes.permute(&order);
    history
}

fn permute_rows(rows: &mut RowTables, order: &[u32]) {
    if !rows.stamps.is_empty() {
        let moved = order.iter().map(|&index| rows.stamps[index as usize]);
        rows.stamps = moved.collect();
    }
    if !rows.predicates.is_empty() {
        let mut place = vec![TxnId(0); order.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old as usize] = TxnId(new as u32);
        }
        for (txn, _) in &mut rows.predicates {
            *txn = place[txn.index()];
        }
        rows.predicates.sort_by_key(|it| it.0);
    }
}

fn permute<T: Copy>(column: &mut Option<Vec<T>>, order: &[u32]) {
    if let Some(rows) = column {
        *rows = order.iter().map(|&index| rows[index as usize]).collect();
    }
}
