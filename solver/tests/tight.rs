//! The reported tightness of an order, against every order of small histories.

use kingsnake_certify::order;
use kingsnake_history::budget::Budget;
use kingsnake_history::level::{Level, Spec};
use kingsnake_history::model::{History, TxnId};
use kingsnake_history::progress::Silent;
use kingsnake_history::verdict::{Certificate, Moment, Point, Verdict};
use kingsnake_lab::random::small;
use kingsnake_solver::Context;
use kingsnake_solver::check::{Techniques, check};
use kingsnake_solver::phases::{Check, pose};
use kingsnake_solver::tight::{Tightness, tightness};

mod support {
    pub mod pessimist;
}
use support::pessimist::Pessimist;

fn judged(history: &History, spec: Spec) -> Option<(Tightness, Vec<TxnId>)> {
    let (budget, techniques) = (Budget::unlimited(), Techniques::default());
    let report = check(
        history,
        spec,
        &techniques,
        &mut Pessimist,
        &budget,
        &mut Silent,
    )
    .ok()?;
    let Verdict::Satisfied(certificate) = report.verdict else {
        return None;
    };
    let asked = Check {
        history,
        spec,
        techniques: &techniques,
    };
    let pruned = pose(&asked, &mut Context::new(&budget, &mut Silent)).ok()?;
    let tight = tightness(history, &pruned, &certificate, &budget).ok()??;
    let order = certificate.order.iter();
    let commits = order.filter(|point| point.moment != Moment::Begin);
    Some((tight, commits.map(|point| point.txn).collect()))
}

/// Every serial order of these transactions that explains the history.
fn serial_orders(history: &History, spec: Spec, txns: &[TxnId]) -> Vec<Vec<TxnId>> {
    fn extend(order: &mut Vec<TxnId>, rest: &[TxnId], found: &mut dyn FnMut(&[TxnId])) {
        if rest.is_empty() {
            return found(order);
        }
        for (at, &txn) in rest.iter().enumerate() {
            order.push(txn);
            let others: Vec<TxnId> = [&rest[..at], &rest[at + 1..]].concat();
            extend(order, &others, found);
            order.pop();
        }
    }
    let mut orders = Vec::new();
    extend(&mut Vec::new(), txns, &mut |order| {
        let whole = |&txn| Point {
            txn,
            moment: Moment::Whole,
        };
        let certificate = Certificate::from(order.iter().map(whole).collect::<Vec<_>>());
        if order::replay(history, spec, &certificate).is_ok() {
            orders.push(order.to_vec());
        }
    });
    orders
}

#[test]
fn forced_and_free_pairs_are_those_of_all_serial_orders() {
    let spec = Level::Ser.spec(None).expect("a level");
    let (mut n_exact, mut n_open, mut n_swaps) = (0, 0, 0);
    for seed in 0..3_000 {
        let history = small(seed);
        let Some((tight, order)) = judged(&history, spec) else {
            continue;
        };
        if order.len() > 6 {
            continue;
        }
        let orders = serial_orders(&history, spec, &order);
        assert!(!orders.is_empty(), "seed {seed}: the certificate replays");
        let before = |order: &[TxnId], a, b| {
            order.iter().position(|&it| it == a) < order.iter().position(|&it| it == b)
        };
        let (mut n_forced, mut n_free) = (0, 0);
        for (at, &a) in order.iter().enumerate() {
            for &b in &order[at + 1..] {
                let n_first = orders.iter().filter(|order| before(order, a, b)).count();
                if n_first == orders.len() || n_first == 0 {
                    n_forced += 1;
                } else {
                    n_free += 1;
                }
            }
        }
        assert!(
            tight.n_forced <= n_forced,
            "seed {seed}: {tight:?}, {n_forced} are"
        );
        assert!(
            tight.n_free <= n_free,
            "seed {seed}: {tight:?}, {n_free} are"
        );
        if tight.n_open == 0 {
            assert_eq!(
                (tight.n_forced, tight.n_free),
                (n_forced, n_free),
                "seed {seed}"
            );
            assert_eq!(tight.n_undecided(), 0, "seed {seed}");
            n_exact += 1;
        } else {
            n_open += 1;
        }
        for &(a, b) in &tight.swaps {
            let mut other = order.clone();
            let at = other.iter().position(|&it| it == a).expect("it is there");
            other.swap(at, at + 1);
            assert_eq!(other[at], b, "seed {seed}");
            assert!(
                orders.contains(&other),
                "seed {seed}: {a:?} and {b:?} change places"
            );
            n_swaps += 1;
        }
    }
    assert!(
        n_exact > 300 && n_open > 5 && n_swaps > 300,
        "{n_exact}, {n_open}, {n_swaps}"
    );
}

#[test]
fn other_levels_are_judged_too() {
    let levels = [Level::Si, Level::Pc, Level::StrictSer, Level::StrongSi];
    for spec in levels.map(|level| level.spec(None).expect("a level")) {
        let mut n_judged = 0;
        for seed in 0..400 {
            if let Some((tight, order)) = judged(&small(seed), spec) {
                let n = order.len() as u64;
                assert_eq!(tight.n_pairs, n * n.saturating_sub(1) / 2);
                assert!(tight.n_forced + tight.n_free <= tight.n_pairs);
                n_judged += 1;
            }
        }
        assert!(n_judged > 20, "{spec}: {n_judged}");
    }
}
