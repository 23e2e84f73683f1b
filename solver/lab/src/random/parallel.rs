//! Small histories of several sites: each transaction sees some of those before it, all that these saw, its session, and every earlier writer of
//! its keys. So parallel snapshot isolation holds, and often nothing stronger does; some reads are then changed.

use kingsnake_history::model::{History, Status};
use kingsnake_history::rng::Rng;

use super::draft::{Draft, DraftOp, DraftTxn, INITIAL};

/// A history of 3 to 6 transactions over 2 or 3 keys; two in three have one or two reads changed.
pub fn small_parallel(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let (n_txns, n_keys) = (rng.between(3, 6), rng.between(2, 3));
    let n_sessions = rng.between(2, 6);
    let writes = rng.between(20, 50);
    let mut seen: Vec<Vec<bool>> = Vec::new();
    let mut txns: Vec<DraftTxn> = Vec::new();
    let written: Vec<Vec<bool>> = (0..n_txns)
        .map(|_| (0..n_keys).map(|_| rng.chance(writes)).collect())
        .collect();
    for txn in 0..n_txns {
        // Who writes nothing reads a lot.
        let reads = if written[txn].contains(&true) { 35 } else { 85 };
        let session = rng.below(n_sessions);
        let mut sees = vec![false; n_txns];
        for other in 0..txn {
            let shares = (0..n_keys).any(|key| written[txn][key] && written[other][key]);
            if shares || txns[other].session == session || rng.chance(30) {
                sees[other] = true;
                let theirs = seen[other].clone();
                sees.iter_mut().zip(theirs).for_each(|(own, it)| *own |= it);
            }
        }
        let mut ops = Vec::new();
        for key in (0..n_keys).filter(|_| rng.chance(reads)) {
            let mut visible = (0..txn).filter(|&it| sees[it] && written[it][key]);
            let value = visible.next_back().map_or(INITIAL, |it| it as i64 + 1);
            ops.push(DraftOp::Read(key, value));
        }
        let own = (0..n_keys).filter(|&key| written[txn][key]);
        ops.extend(own.map(|key| DraftOp::Write(key, txn as i64 + 1)));
        txns.push(DraftTxn {
            session,
            status: Status::Committed,
            begin: None,
            commit: None,
            ops,
        });
        seen.push(sees);
    }
    for _ in 0..seed % 3 {
        change_read(&mut rng, &mut txns, &written);
    }
    Draft {
        txns,
        ..Draft::default()
    }
    .build()
}

/// Lets a transaction read a key from another writer.
fn change_read(rng: &mut Rng, txns: &mut [DraftTxn], written: &[Vec<bool>]) {
    let txn = rng.below(txns.len());
    let n_ops = txns[txn].ops.len();
    if n_ops == 0 {
        return;
    }
    let at = rng.below(n_ops);
    if let DraftOp::Read(key, value) = &mut txns[txn].ops[at] {
        let others = (0..written.len()).filter(|&it| it != txn && written[it][*key]);
        let mut values: Vec<i64> = others.map(|it| it as i64 + 1).collect();
        values.push(INITIAL);
        *value = values[rng.below(values.len())];
    }
}
