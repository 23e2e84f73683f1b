//! The last step of building a history: intervals checked, transactions renumbered session by session.

use super::super::assumptions::Assumptions;
use super::super::build_error::BuildError;
use super::super::history::{History, Interval};
use super::super::ids::TxnId;
use super::super::names::Token;
use super::super::predicates::{RowTables, Stamps};
use super::Parts;

pub(super) fn check_intervals(parts: &Parts) -> Result<(), BuildError> {
    match parts.intervals.iter().position(|it| it.commit < it.begin) {
        None => Ok(()),
        Some(index) => Err(BuildError::BackwardInterval {
            txn: parts.symbols.show(parts.txns[index].name),
            begin: parts.intervals[index].begin,
            commit: parts.intervals[index].commit,
        }),
    }
}

/// A column of something that few histories say of their transactions: a row for each, if there is any.
fn whole<T: Clone>(mut column: Vec<T>, n_txns: usize, unknown: T) -> Option<Vec<T>> {
    if column.is_empty() {
        return None;
    }
    column.resize(n_txns, unknown);
    Some(column)
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
    let n_txns = parts.txns.len();
    let mut history = History {
        txns: parts.txns,
        ops: parts.ops,
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
        intervals: whole(parts.intervals, n_txns, Interval::UNKNOWN),
        isolation: whole(parts.isolation, n_txns, Token::Nil),
        models: Vec::new(),
        version_orders: parts.version_orders,
        symbols: parts.symbols,
        rows: parts.rows,
        notes: parts.notes,
        assumptions: Assumptions::default(),
    };
    if !history.rows.stamps.is_empty() {
        history.rows.stamps.resize(n_txns, Stamps::default());
    }
    if history.txns.is_sorted_by_key(|txn| txn.session) {
        return history;
    }
    let mut order: Vec<u32> = (0..n_txns as u32).collect();
    order.sort_by_key(|&index| history.txns[index as usize].session);
    let rows = order.iter().map(|&index| history.txns[index as usize]);
    history.txns = rows.collect();
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
