//! Parallel snapshot isolation by its axioms (Cerone and Gotsman): is there a visibility VIS inside a total order AR in which every
//! external read returns the last visible write (EXT), sessions are visible (SESSION), visibility is transitive (TRANSVIS), and of two
//! writers of a key one sees the other (NOCONFLICT)? All orders and all visibilities are tried.

use kingsnake_history::model::{History, TxnId};

use super::axioms::Abstract;

/// Whether parallel snapshot isolation holds; `None` for histories that the axioms do not speak of, or of more than four
/// transactions.
pub fn hold(history: &History, session_order: bool) -> Option<bool> {
    let of = Abstract::of(history, session_order)?;
    let txns: Vec<TxnId> = history.txns().collect();
    if txns.len() > 4 {
        return None;
    }
    let is_repeatable = |reads: &Vec<(_, Option<usize>)>| {
        let other =
            |read: &(_, Option<usize>)| reads.iter().any(|it| it.0 == read.0 && it.1 != read.1);
        !reads.iter().any(other)
    };
    Some(of.reads.iter().all(is_repeatable) && some_order(&of, &mut Vec::new()))
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
