//! Timestamps of the database, one pass against all pairs.
#![allow(clippy::print_stderr)]

use kingsnake_context::rng::Rng;
use kingsnake_watch::{StampViolation, Stamped, StampedWatcher};

fn wrote(txn: &Stamped, key: u32) -> bool {
    txn.writes.iter().any(|it| it.0 == key)
}

/// The writer of the newest version of a key at a start; 0 is the initial state.
fn newest(txns: &[Stamped], reader: &Stamped, key: u32) -> u128 {
    let visible = txns
        .iter()
        .filter(|it| it.id != reader.id && it.commit <= reader.start && wrote(it, key));
    visible
        .max_by_key(|it| it.commit)
        .map_or(0, |it| u128::from(it.id))
}

fn overlap(a: &Stamped, b: &Stamped) -> bool {
    let shares = a.writes.iter().any(|it| wrote(b, it.0));
    a.id != b.id && shares && a.commit > b.start && b.commit > a.start
}

fn holds(txns: &[Stamped]) -> bool {
    let reads = |txn: &Stamped| {
        txn.reads
            .iter()
            .all(|&(key, value)| newest(txns, txn, key) == value)
    };
    let overlaps = |a: &Stamped| txns.iter().any(|b| overlap(a, b));
    txns.iter().all(|it| reads(it) && !overlaps(it))
}

/// Transactions in an order of arrival that keeps each session's.
fn random(rng: &mut Rng) -> Vec<Stamped> {
    let n_sessions = rng.between(2, 4);
    let n_keys = rng.between(1, 3) as u32;
    let mut clocks: Vec<i64> = (0..n_sessions).map(|_| rng.below(20) as i64).collect();
    let mut sessions: Vec<Vec<usize>> = vec![Vec::new(); n_sessions];
    let mut txns: Vec<Stamped> = Vec::new();
    for id in 1..=rng.between(4, 9) as u64 {
        let session = rng.below(n_sessions);
        let start = clocks[session] + rng.below(10) as i64;
        // Stamps of commits are unique.
        let commit = (start + rng.below(20) as i64) * 16 + id as i64;
        clocks[session] = commit / 16 + 1;
        let writes = (0..n_keys).filter(|_| rng.chance(40));
        let writes = writes.map(|key| (key, u128::from(id))).collect();
        sessions[session].push(txns.len());
        txns.push(Stamped {
            start: start * 16,
            commit,
            id,
            reads: Vec::new(),
            writes,
        });
    }
    for at in 0..txns.len() {
        let other = (0..txns.len()).any(|it| overlap(&txns[at], &txns[it]));
        if other && rng.chance(90) {
            txns[at].writes.clear();
        }
    }
    for at in 0..txns.len() {
        let keys = (0..n_keys).filter(|_| rng.chance(50)).collect::<Vec<u32>>();
        txns[at].reads = keys
            .iter()
            .map(|&key| (key, newest(&txns, &txns[at], key)))
            .collect();
    }
    if rng.chance(50) {
        let (at, source) = (rng.below(txns.len()), rng.below(txns.len() + 1) as u128);
        if let Some(read) = txns[at].reads.first_mut() {
            read.1 = source;
        }
    }
    let mut order = Vec::new();
    while let Some(session) = rng.pick(
        &(0..n_sessions)
            .filter(|&it| !sessions[it].is_empty())
            .collect::<Vec<_>>(),
    ) {
        order.push(txns[sessions[*session].remove(0)].clone());
    }
    order
}

/// The verdict of one pass; `early` advances further than it may.
fn watched(order: &[Stamped], early: i64) -> bool {
    let mut watcher = StampedWatcher::new(vec![0]);
    for (at, txn) in order.iter().enumerate() {
        let rest = order[at + 1..].iter().map(|it| it.start).min();
        if watcher.arrive(txn.clone()).is_err() {
            return false;
        }
        if let Some(watermark) = rest
            && watcher.advance(watermark.saturating_add(early)).is_err()
        {
            return false;
        }
    }
    watcher.close().is_ok()
}

#[test]
fn one_pass_agrees_with_all_pairs() {
    let n_streams = if std::env::var_os("KINGSNAKE_LONG").is_some() {
        200_000
    } else {
        8000
    };
    let mut rng = Rng::new(5);
    let (mut yes, mut no, mut wrong) = (0, 0, 0);
    for _ in 0..n_streams {
        let order = random(&mut rng);
        let truth = holds(&order);
        *(if truth { &mut yes } else { &mut no }) += 1;
        assert_eq!(watched(&order, 0), truth, "{order:#?}");
        wrong += usize::from(watched(&order, 1000) != truth);
    }
    eprintln!("timestamps: {yes} yes, {no} no; without a watermark {wrong} would be wrong");
    assert!(yes > n_streams / 5 && no > n_streams / 5 && wrong > 0);
}

/// What a watcher that forgot everything at some moment claims.
fn claimed(order: &[Stamped], forget_at: usize) -> Option<StampViolation> {
    let mut watcher = StampedWatcher::new(vec![0]);
    for (at, txn) in order.iter().enumerate() {
        if at == forget_at {
            watcher.forget();
        }
        let rest = order[at + 1..].iter().map(|it| it.start).min();
        let judged = watcher
            .arrive(txn.clone())
            .and_then(|()| rest.map_or(Ok(()), |it| watcher.advance(it)));
        match judged {
            Ok(()) => {}
            // What is found before is of the whole.
            Err(_) if at < forget_at => watcher.forget(),
            Err(found) => return Some(found),
        }
    }
    watcher.close().err()
}

fn is_real(order: &[Stamped], claim: StampViolation) -> bool {
    let of = |id| order.iter().find(|it| it.id == id).expect("it arrived");
    match claim {
        StampViolation::Overlap { id, other, .. } => overlap(of(id), of(other)),
        StampViolation::Read { id, key, .. } => {
            let read = of(id).reads.iter().find(|it| it.0 == key);
            read.is_some_and(|it| newest(order, of(id), key) != it.1)
        }
    }
}

#[test]
fn after_forgetting_claims_are_real_and_both_kinds_are_found() {
    let mut rng = Rng::new(6);
    let (mut reads, mut overlaps) = (0, 0);
    for _ in 0..8000 {
        let order = random(&mut rng);
        let forget_at = rng.below(order.len());
        if let Some(claim) = claimed(&order, forget_at) {
            assert!(
                is_real(&order, claim),
                "{claim:?} after {forget_at}\n{order:#?}"
            );
            let is_read = matches!(claim, StampViolation::Read { .. });
            *(if is_read { &mut reads } else { &mut overlaps }) += 1;
        }
    }
    eprintln!("after forgetting: {reads} reads, {overlaps} overlaps");
    assert!(reads > 20 && overlaps > 20, "{reads} {overlaps}");
}
