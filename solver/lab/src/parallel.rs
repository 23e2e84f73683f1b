//! Parallel snapshot isolation by its axioms (Cerone and Gotsman): is there a visibility VIS inside a total order AR in which every
//! external read returns the last visible write (EXT), sessions are visible (SESSION), visibility is transitive (TRANSVIS), and of two
//! writers of a key one sees the other (NOCONFLICT)? All orders and all visibilities are tried.
//!
//! The same by its graph: are there version orders such that no cycle of so, wr, ww and at most one rw is left? All version orders are tried,
//! which reaches somewhat larger histories.

use kingsnake_history::model::{History, KeyId, TxnId};

use super::axioms::Abstract;
use super::oracle::weak::{effects, left, ways};

/// Whether parallel snapshot isolation holds; `None` for histories that the axioms do not speak of, or of more than four
/// transactions.
pub fn hold(history: &History, session_order: bool) -> Option<bool> {
    let of = Abstract::of(history, session_order)?;
    let txns: Vec<TxnId> = history.txns().collect();
    if txns.len() > 4 {
        return None;
    }
    Some(is_repeatable(&of) && some_order(&of, &mut Vec::new()))
}

/// The same by the graph; `None` for histories that the axioms do not speak of.
pub fn hold_by_graph(history: &History, session_order: bool) -> Option<bool> {
    let of = Abstract::of(history, session_order)?;
    let mut keys: Vec<KeyId> = of.writes.iter().flatten().copied().collect();
    keys.sort_unstable();
    keys.dedup();
    Some(is_repeatable(&of) && some_versions(&of, &keys, &mut Vec::new()))
}

/// All that a transaction read: keys, and who wrote what was read.
type Way = Vec<(KeyId, Option<usize>)>;

/// The most combinations of what transactions can have read that are tried.
const MAX_READS: usize = 3_000;

/// The same by the graph, whatever the reads can have been of and whatever took effect: repeated values, deleted rows, conditions and
/// aggregates. `None` for lists, version orders, and where there is too much to try.
pub fn hold_by_sources(history: &History, session_order: bool) -> Option<bool> {
    for txns in effects(history)? {
        let mut n_tried = 1;
        let mut all: Vec<Vec<Way>> = Vec::new();
        for &txn in &txns {
            let mut repeatable: Vec<Way> = Vec::new();
            for way in ways(history, &txns, txn)? {
                let place = |it: TxnId| txns.iter().position(|&other| other == it);
                let reads = way
                    .iter()
                    .map(|&(_, key, from)| (key, from.and_then(place)));
                let mut reads: Way = reads.collect();
                reads.sort_unstable();
                reads.dedup();
                if !reads.windows(2).any(|pair| pair[0].0 == pair[1].0)
                    && !repeatable.contains(&reads)
                {
                    repeatable.push(reads);
                }
            }
            n_tried *= repeatable.len();
            if n_tried > MAX_READS {
                return None;
            }
            all.push(repeatable);
        }
        let wrote = |txn: TxnId, key: KeyId| left(history, txn, key).is_some();
        let mut of = Abstract::without_reads(history, &txns, session_order, wrote);
        let mut keys: Vec<KeyId> = of.writes.iter().flatten().copied().collect();
        keys.sort_unstable();
        keys.dedup();
        if some_sources(&mut of, &all, &keys) {
            return Some(true);
        }
    }
    Some(false)
}

/// Tries everything that the transactions can have read.
fn some_sources(of: &mut Abstract, left: &[Vec<Way>], keys: &[KeyId]) -> bool {
    let Some((ways, rest)) = left.split_first() else {
        return some_versions(of, keys, &mut Vec::new());
    };
    let at = of.n_txns - left.len();
    ways.iter().any(|way| {
        of.reads[at].clone_from(way);
        some_sources(of, rest, keys)
    })
}

/// Whether nobody reads a key twice and differently.
fn is_repeatable(of: &Abstract) -> bool {
    let is_repeatable = |reads: &Vec<(KeyId, Option<usize>)>| {
        let other =
            |read: &(KeyId, Option<usize>)| reads.iter().any(|it| it.0 == read.0 && it.1 != read.1);
        !reads.iter().any(other)
    };
    of.reads.iter().all(is_repeatable)
}

/// Tries every version order of the keys that are left.
fn some_versions(of: &Abstract, keys: &[KeyId], orders: &mut Vec<(KeyId, Vec<usize>)>) -> bool {
    let Some((&key, rest)) = keys.split_first() else {
        return has_no_bad_cycle(of, orders);
    };
    let writers: Vec<usize> = (0..of.n_txns)
        .filter(|&txn| of.writes[txn].contains(&key))
        .collect();
    some_permutation(&writers, &mut Vec::new(), &mut |order| {
        orders.push((key, order.to_vec()));
        let found = some_versions(of, rest, orders);
        orders.pop();
        found
    })
}

fn some_permutation(
    all: &[usize],
    chosen: &mut Vec<usize>,
    holds: &mut dyn FnMut(&[usize]) -> bool,
) -> bool {
    if chosen.len() == all.len() {
        return holds(chosen);
    }
    all.iter().any(|&next| {
        if chosen.contains(&next) {
            return false;
        }
        chosen.push(next);
        let found = some_permutation(all, chosen, holds);
        chosen.pop();
        found
    })
}

/// Whether (so ∪ wr ∪ ww)⁺ ; rw? is irreflexive.
fn has_no_bad_cycle(of: &Abstract, orders: &[(KeyId, Vec<usize>)]) -> bool {
    let n = of.n_txns;
    let mut before = vec![vec![false; n]; n];
    for &(earlier, later) in &of.session {
        before[earlier][later] = true;
    }
    for (reader, reads) in of.reads.iter().enumerate() {
        for writer in reads.iter().filter_map(|read| read.1) {
            before[writer][reader] = true;
        }
    }
    for (_, order) in orders {
        for (at, &later) in order.iter().enumerate() {
            order[..at]
                .iter()
                .for_each(|&earlier| before[earlier][later] = true);
        }
    }
    for via in 0..n {
        for from in 0..n {
            for to in 0..n {
                before[from][to] |= before[from][via] && before[via][to];
            }
        }
    }
    let overwrites = |key: KeyId, from: Option<usize>| {
        let order = orders.iter().find(|it| it.0 == key);
        let order = order.map_or(&[][..], |it| &it.1);
        let start = from.map_or(0, |from| {
            1 + order.iter().position(|&it| it == from).unwrap_or(0)
        });
        order[start..].to_vec()
    };
    (0..n).all(|reader| {
        let reads = &of.reads[reader];
        !before[reader][reader]
            && reads.iter().all(|&(key, from)| {
                let mut later = overwrites(key, from).into_iter();
                later.all(|it| it == reader || !before[it][reader])
            })
    })
}

fn some_order(of: &Abstract, order: &mut Vec<usize>) -> bool {
    if order.len() == of.n_txns {
        return some_visibility(of, order);
    }
    (0..of.n_txns).any(|next| {
        if order.contains(&next) {
            return false;
        }
        order.push(next);
        let found = some_order(of, order);
        order.pop();
        found
    })
}

/// Tries every set of pairs that the order allows.
fn some_visibility(of: &Abstract, order: &[usize]) -> bool {
    let n = of.n_txns;
    let pairs: Vec<(usize, usize)> = (0..n)
        .flat_map(|later| (0..later).map(move |earlier| (earlier, later)))
        .map(|(earlier, later)| (order[earlier], order[later]))
        .collect();
    (0..1_u32 << pairs.len()).any(|set| {
        let mut sees = vec![vec![false; n]; n];
        for (at, &(seen, by)) in pairs.iter().enumerate() {
            sees[by][seen] = set & (1 << at) != 0;
        }
        is_execution(of, order, &sees)
    })
}

fn is_execution(of: &Abstract, order: &[usize], sees: &[Vec<bool>]) -> bool {
    let n = of.n_txns;
    let place = |txn: usize| order.iter().position(|&it| it == txn);
    let sessions = of
        .session
        .iter()
        .all(|&(before, after)| sees[after][before]);
    let transitive =
        (0..n).all(|c| (0..n).all(|b| !sees[c][b] || (0..n).all(|a| !sees[b][a] || sees[c][a])));
    let writes = |txn: usize, key| of.writes[txn].contains(&key);
    let no_conflict = (0..n).all(|a| {
        (0..a).all(|b| {
            let shared = of.writes[a].iter().any(|&key| writes(b, key));
            !shared || sees[a][b] || sees[b][a]
        })
    });
    let reads = (0..n).all(|reader| {
        of.reads[reader].iter().all(|&(key, from)| {
            let visible = (0..n).filter(|&it| sees[reader][it] && writes(it, key));
            visible.max_by_key(|&it| place(it)) == from
        })
    });
    sessions && transitive && no_conflict && reads
}
