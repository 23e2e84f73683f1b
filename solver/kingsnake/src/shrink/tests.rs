//! Parts of random histories with every feature: parts of satisfied histories are satisfied, and shrunk histories are
//! violated in the same way and minimal.

use std::time::Duration;

use kingsnake_gpu::DeviceChoice;
use kingsnake_history::level::{Level, Spec};
use kingsnake_history::model::{History, TxnId};
use kingsnake_lab::oracle;
use kingsnake_lab::random::{COMBINED_LEVELS, Combined, Rng};

use super::{ShrinkAnswer, without};
use crate::{Checker, Verdict, read, verify};

fn spec(level: Level) -> Spec {
    level.spec(None).expect("every level has a default")
}

fn checker(level: Level) -> Checker {
    Checker::new()
        .level(level)
        .device(DeviceChoice::Cpu)
        .timeout(Duration::from_secs(10))
}

/// Random histories, each with a level that its clocks allow.
fn drawn(seeds: std::ops::Range<u64>) -> impl Iterator<Item = (u64, History, Level)> {
    seeds.filter_map(|seed| {
        let history = Combined::draw(seed).history().ok()?;
        let level = COMBINED_LEVELS[Rng::new(seed ^ 0x51ed).below(COMBINED_LEVELS.len())];
        let is_possible = history.has_times() || spec(level).real_time.is_none();
        is_possible.then_some((seed, history, level))
    })
}

/// The anomaly of a violated history, if it is one.
fn anomaly(history: &History, level: Level) -> Option<String> {
    match checker(level).check(history) {
        Ok(Verdict::Violated(violation)) => Some(violation.anomaly()),
        _ => None,
    }
}

fn text(history: &History) -> String {
    let mut text = Vec::new();
    kingsnake_datasets::kingsnake_bytes(history, &mut text).expect("memory can be written");
    String::from_utf8(text).expect("our format is text")
}

#[test]
fn a_part_of_a_satisfied_history_is_satisfied() {
    let mut n_parts = 0;
    for (seed, history, level) in drawn(0..6_000) {
        if oracle::holds(&history, spec(level)) != Some(true) {
            continue;
        }
        let mut rng = Rng::new(seed);
        let txns: Vec<TxnId> = history.txns().filter(|_| rng.chance(25)).collect();
        let pieces = history.pieces();
        let asked: Vec<bool> = pieces.iter().map(|_| rng.chance(20)).collect();
        let is_asked = |piece: &kingsnake_history::model::TxnPiece| {
            let at = pieces.iter().position(|it| it == piece);
            txns.contains(&piece.txn) || at.is_some_and(|at| asked[at])
        };
        let part = without(&history, is_asked, &txns).expect("a part can be read");
        if part.n_txns() == 0 || spec(level).real_time.is_some() && !part.has_times() {
            continue;
        }
        n_parts += 1;
        let holds = oracle::holds(&part, spec(level));
        let show = || format!("{level}, seed {seed}:\n{}\n{}", text(&history), text(&part));
        assert_ne!(holds, Some(false), "{}", show());
    }
    assert!(n_parts > 1_000, "{n_parts}");
}

#[test]
fn what_is_shrunk_shows_the_same_anomaly_and_no_transaction_can_go() {
    let mut n_shrunk = 0;
    for (seed, history, level) in drawn(10_000..11_500) {
        let Some(before) = anomaly(&history, level) else {
            continue;
        };
        let answer = checker(level).shrink(&history, &mut |_: &History, _: usize| {});
        let Ok(ShrinkAnswer::Shrunk(shrunk)) = answer else {
            panic!("{level}, seed {seed}: {answer:?}");
        };
        let small = shrunk.history;
        let show = || {
            format!(
                "{level}, seed {seed}:\n{}\n{}",
                text(&history),
                text(&small)
            )
        };
        assert_eq!(shrunk.stopped, None, "{}", show());
        assert!(small.n_txns() <= history.n_txns() && small.n_ops() <= history.n_ops());
        assert_ne!(oracle::holds(&small, spec(level)), Some(true), "{}", show());
        let mut again = checker(level);
        let Ok(Verdict::Violated(violation)) = again.check(&small) else {
            panic!("no violation: {}", show());
        };
        assert_eq!(violation.anomaly(), before, "{}", show());
        let claim = read(&small, violation.evidence().as_bytes()).expect("it was written so");
        assert_eq!(verify(&small, &claim), Ok(()), "{}", show());
        for txn in small.txns() {
            let part = without(&small, |piece| piece.txn == txn, &[txn]);
            let left = part.and_then(|it| anomaly(&it, level));
            assert_ne!(left, Some(before.clone()), "{txn:?} can go: {}", show());
        }
        n_shrunk += 1;
    }
    assert!(n_shrunk > 300, "{n_shrunk}");
}
