//! Notes of a collector as words: the node, the isolation level, the database's own name; and the faults injected meanwhile.

use std::fmt::Write;

use crate::model::{History, Token, TxnId};

/// The note about a transaction, to follow its name; empty if there is none.
pub fn beside(history: &History, txn: TxnId) -> String {
    let mut words = String::new();
    let note = history.note(txn);
    let show = |token: Token| history.symbols().show(token);
    if note.node != Token::Nil {
        let _ = write!(words, " on {}", show(note.node));
    }
    if let Some(level) = history.isolation(txn) {
        let _ = write!(words, " at {}", show(level));
    }
    match (note.name, history.stamps(txn).xid) {
        (Token::Nil, None) => {}
        (Token::Nil, Some(xid)) => drop(write!(words, ", xid {xid}")),
        (name, _) => drop(write!(words, ", {} to the database", show(name))),
    }
    words
}

/// More events are only counted.
const MOST_EVENTS: usize = 50;

/// The faults from the first begin of these transactions to their last commit, in seconds since that begin; of those
/// that began earlier only lasting ones.
pub fn meanwhile(history: &History, txns: &[TxnId]) -> Vec<String> {
    let intervals = || txns.iter().map(|&txn| history.interval(txn));
    let begins = intervals().map(|it| it.begin).filter(|&it| it > i64::MIN);
    let Some(first) = begins.min() else {
        return Vec::new();
    };
    let ends = intervals().map(|it| it.commit).filter(|&it| it < i64::MAX);
    let last = ends.max().unwrap_or(i64::MAX);
    let events = history.events().iter();
    let inside = events.filter(|it| (first..=last).contains(&it.time));
    let n_more = inside.clone().count().saturating_sub(MOST_EVENTS);
    let told = inside.take(MOST_EVENTS);
    let mut told: Vec<String> = told
        .map(|event| {
            let seconds = (event.time - first) as f64 / 1e9;
            let what = history.symbols().show(event.what);
            format!("{what}, {seconds:.6} s after the first of them began")
        })
        .collect();
    if n_more > 0 {
        told.push(format!("and {n_more} more events"));
    }
    told
}
