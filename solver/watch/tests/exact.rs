//! The watcher against the definition: random streams, compacted after every batch, with unknown ends, drift, sessions that appear
//! later, fences and late damage. 10⁶ streams with `KINGSNAKE_LONG=1` (`make long`).
#![allow(clippy::print_stderr)]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use kingsnake_context::budget::Budget;
use kingsnake_context::rng::Rng;
use kingsnake_encodings::Backtrack;
use kingsnake_lab::stream::{StreamLevel, StreamTxn};
use kingsnake_watch::{Arrival, Exact, Horizon, WatchState, Watcher};
use support::{FENCE, StreamCase, StreamTally, arrival, fenced, late, options, plain, sweep};

fn n_streams(few: usize, many: usize) -> usize {
    if std::env::var_os("KINGSNAKE_LONG").is_some() {
        many
    } else {
        few
    }
}

fn expect_exact(what: &str, level: StreamLevel, tally: StreamTally) {
    eprintln!("{what}, {level:?}: {tally:?}");
    assert_eq!(tally.mismatches, 0, "{what}, {level:?}");
    assert!(
        tally.yes > tally.no / 20 && tally.no > tally.yes / 40,
        "{what}: {tally:?}"
    );
    assert!(tally.dropped > 0, "{what}: nothing was dropped");
}

#[test]
fn streams_cut_at_random_have_the_verdict_of_the_whole() {
    for level in StreamLevel::ALL {
        let n_streams = n_streams(1500, 60_000);
        let tally = sweep(1, n_streams, level, &Exact, |rng| {
            plain(rng, level, 0, false)
        });
        expect_exact("plain", level, tally);
    }
}

#[test]
fn unknown_ends_are_decided_when_they_must_be() {
    for level in StreamLevel::ALL {
        for unknown in [15, 30, 50] {
            let n_streams = n_streams(600, 30_000);
            let tally = sweep(2, n_streams, level, &Exact, |rng| {
                plain(rng, level, unknown, false)
            });
            expect_exact("unknown ends", level, tally);
        }
    }
}

#[test]
fn what_was_kept_is_enough_for_late_damage() {
    for level in StreamLevel::ALL {
        for unknown in [0, 20] {
            let n_streams = n_streams(1000, 40_000);
            let tally = sweep(3, n_streams, level, &Exact, |rng| {
                late(rng, level, unknown, false)
            });
            expect_exact("late damage", level, tally);
        }
    }
}

/// A list orders writers that were dropped long before it is read.
#[test]
fn lists_have_the_verdict_of_the_whole() {
    for level in StreamLevel::ALL {
        for unknown in [0, 30] {
            let n_streams = n_streams(1000, 30_000);
            let tally = sweep(11, n_streams, level, &Exact, |rng| {
                plain(rng, level, unknown, true)
            });
            expect_exact("lists", level, tally);
            let tally = sweep(12, n_streams, level, &Exact, |rng| {
                late(rng, level, unknown, true)
            });
            expect_exact("lists, damaged late", level, tally);
        }
    }
}

/// All at once: unknown ends, drift, fences; and the order of what was dropped is replayed.
#[test]
fn the_order_of_what_was_dropped_explains_the_whole() {
    for level in StreamLevel::ALL {
        for (unknown, is_late, has_lists) in [
            (0, false, false),
            (0, true, false),
            (25, false, false),
            (25, true, false),
            (0, true, true),
            (25, false, true),
        ] {
            let n_streams = n_streams(600, 30_000);
            let tally = sweep(6, n_streams, level, &Exact, |rng| StreamCase {
                keeps_order: true,
                ..if is_late {
                    late(rng, level, unknown, has_lists)
                } else {
                    plain(rng, level, unknown, has_lists)
                }
            });
            expect_exact("orders", level, tally);
        }
        if !level.has_real_time {
            let tally = sweep(9, n_streams(600, 30_000), level, &Exact, |rng| StreamCase {
                keeps_order: true,
                ..fenced(rng, true)
            });
            expect_exact("orders behind fences", level, tally);
        }
    }
}

#[test]
fn sessions_may_appear_behind_a_fence() {
    for level in StreamLevel::ALL.into_iter().filter(|it| !it.has_real_time) {
        let n_streams = n_streams(1500, 40_000);
        let tally = sweep(4, n_streams, level, &Exact, |rng| fenced(rng, true));
        expect_exact("fences", level, tally);
    }
}

/// Two open ends tie a past transaction to a later one only together: T4 → T1 → T2 by a read and the session, T2 before T4 over the
/// barrier. A million random streams had one such case.
#[test]
fn open_ends_reach_later_arrivals_over_the_barrier() {
    let txn = |id: u32, session, reads: &[(u32, u32)], writes: &[u32], is_unknown| StreamTxn {
        id,
        session,
        begin: i64::from(id),
        commit: None,
        reads: reads.iter().copied().collect(),
        lists: BTreeMap::new(),
        writes: writes.iter().copied().collect(),
        is_unknown,
    };
    let txns = [
        txn(1, 2, &[(1, 4)], &[0], true),
        txn(2, 2, &[(0, 1), (2, 0)], &[0], true),
        txn(3, 0, &[(1, 0)], &[1, 2], false),
        txn(4, 0, &[(2, 3)], &[1], false),
        txn(5, 0, &[(0, 2)], &[], false),
    ];
    let level = StreamLevel::ALL[3];
    for cut in 0..16 {
        let mut watcher = Watcher::new(options(level, 0));
        let mut batch = Vec::new();
        for (at, txn) in txns.iter().enumerate() {
            batch.push(arrival(txn, false));
            if at < 4 && cut >> at & 1 == 0 {
                continue;
            }
            let mut live: Vec<u32> = txns[at + 1..].iter().map(|it| it.session).collect();
            live.dedup();
            let horizon = Horizon {
                live,
                ..Horizon::default()
            };
            let arrivals = std::mem::take(&mut batch);
            let budget = Budget::unlimited();
            let report = watcher.batch(arrivals, &horizon, &mut Backtrack, &budget);
            assert!(report.is_ok(), "{report:?}");
        }
        assert_eq!(watcher.state(), WatchState::Violated, "{cut:b}");
    }
}

/// A fence may stay when the one before it is dropped, and with it what it read. The chain goes on from there.
#[test]
fn a_fence_that_stays_longer_than_the_one_before_does_not_end_the_chain() {
    let level = StreamLevel::ALL[2];
    let fence = |id: u32, session, reads: u32, other: Option<u32>| StreamTxn {
        id,
        session,
        begin: i64::from(id),
        commit: None,
        reads: [(FENCE, reads)].into(),
        lists: BTreeMap::new(),
        writes: [FENCE].into_iter().chain(other).collect(),
        is_unknown: false,
    };
    // T2 and T3 write 0 in either order, and T3 is not past for a while.
    let mut txns = vec![
        fence(1, 0, 0, None),
        fence(2, 1, 1, Some(0)),
        fence(3, 3, 0, Some(0)),
    ];
    txns[2].reads.clear();
    txns[2].writes.remove(&FENCE);
    let sessions = [2, 3, 0, 1, 2].into_iter().chain((0..200).map(|it| it % 4));
    let mut last = 2;
    for (id, session) in (4..).zip(sessions) {
        txns.push(fence(id, session, last, None));
        last = id;
    }
    let mut watcher = Watcher::new(options(level, 0));
    let (mut stays, mut n_kept) = (false, 0);
    for txn in &txns {
        let horizon = Horizon {
            live: vec![0, 1, 2, 3],
            fence: Some(FENCE),
            ..Horizon::default()
        };
        let arrivals = [arrival(txn, false)];
        let report = watcher.batch(arrivals, &horizon, &mut Backtrack, &Budget::unlimited());
        let report = report.expect("it is judged");
        assert_eq!(report.state, WatchState::Fine, "T{}", txn.id);
        let kept: Vec<u64> = watcher.kept_ids().collect();
        stays |= kept.contains(&2) && !kept.contains(&1);
        n_kept = report.n_kept;
    }
    assert!(stays, "T1 was not dropped before T2");
    assert!(n_kept < 12, "{n_kept}");
}

/// Fences are not dropped in their order: the end of their chain is found all the same, and little is kept.
#[test]
fn behind_fences_what_is_kept_stays_small() {
    const SESSIONS: usize = 20;
    let (n_keys, n_txns) = (2000, 20_000);
    let mut rng = Rng::new(4);
    let mut state = vec![0; n_keys + 1];
    let mut watcher = Watcher::new(options(StreamLevel::ALL[2], 0));
    // When each session's transaction ends; its effect comes at any time before.
    let mut ends: Vec<(usize, Option<Arrival>)> = (0..SESSIONS).map(|it| (it, None)).collect();
    let (mut batch, mut n_batch, mut most) = (Vec::new(), 500, 0);
    for id in 1..=n_txns {
        let session = rng.below(SESSIONS);
        let is_fence = ends[session].0.is_multiple_of(5);
        let mut txn = Arrival {
            id,
            session: session as u32,
            begin: id as i64,
            commit: None,
            is_unknown: false,
            reads: Vec::new(),
            writes: Vec::new(),
            lists: Vec::new(),
            appends: Vec::new(),
        };
        let keys = (0..8)
            .map(|_| rng.below(n_keys))
            .collect::<BTreeSet<usize>>();
        for (at, key) in keys.into_iter().enumerate() {
            let key = if is_fence { n_keys } else { key };
            if at % 2 == 0 {
                txn.reads.push((key as u32, state[key]));
            }
            if at % 2 == 1 || is_fence {
                state[key] = u128::from(id);
                txn.writes.push((key as u32, state[key]));
            }
            if is_fence {
                break;
            }
        }
        ends[session].0 += 1;
        // It arrives when the session's next one has its effect.
        batch.extend(ends[session].1.replace(txn));
        if batch.len() < n_batch {
            continue;
        }
        n_batch = rng.between(20, 1500);
        batch.sort_by_key(|it: &Arrival| (it.session, it.id));
        let horizon = Horizon {
            live: (0..SESSIONS as u32).collect(),
            fence: Some(n_keys as u32),
            ..Horizon::default()
        };
        let arrivals = std::mem::take(&mut batch);
        let report = watcher.batch(arrivals, &horizon, &mut Backtrack, &Budget::unlimited());
        let report = report.expect("it is judged");
        assert_eq!(report.state, WatchState::Fine);
        most = most.max(report.n_kept);
    }
    assert!(most < 3000, "{most}");
}
