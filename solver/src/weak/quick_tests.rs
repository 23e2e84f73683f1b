//! Orders without reasons against the edges with reasons, and the two ways of replaying an order against each other.

use kingsnake_certify::weak::replay_in_order;
use kingsnake_certify::weak_plain::Prepared;
use kingsnake_history::weak::WeakVerdict;
use kingsnake_lab::random::{Rng, small};
use kingsnake_relate::visible::quick::{self, Scanned};

use super::tests::{drawn, specs};
use super::{check, commits, cycle};
use crate::budget::Budget;
use crate::model::{History, TxnId};
use crate::resolve::resolve_reads;

/// Registers and lists, plain ones among them.
fn histories(n_seeds: u64) -> impl Iterator<Item = History> {
    (0..n_seeds).flat_map(|seed| [drawn(seed), small(seed)])
}

#[test]
fn an_order_is_found_from_pairs_exactly_where_the_edges_with_reasons_have_one() {
    let budget = Budget::unlimited();
    let all_looked_up = Scanned {
        reads: 0,
        writers: 0,
    };
    let mut counts = [0; 2];
    for history in histories(5_000) {
        let Ok(resolved) = resolve_reads(&history, &budget) else {
            continue;
        };
        if !resolved.reads().choices().is_empty() || !resolved.reads().gaps().is_empty() {
            continue;
        }
        for spec in specs().filter(|it| it.session_order || it.level.name() != "cc") {
            // At read atomic a second read of another version is a finding.
            let at_level = crate::level::Spec {
                model: spec.level.into(),
                session_order: spec.session_order,
                real_time: None,
            };
            if !resolved.broken(&history, at_level).is_empty() {
                continue;
            }
            let edges = commits(&history, &resolved, spec, &budget).expect("there is time");
            let has_order = cycle::order(resolved.n_txns(), &edges).is_ok();
            counts[usize::from(has_order)] += 1;
            for scanned in [Scanned::default(), all_looked_up] {
                let order = quick::order(
                    &resolved,
                    spec.level.into(),
                    spec.session_order,
                    Vec::new(),
                    scanned,
                    &budget,
                );
                let order = order.expect("there is time");
                assert_eq!(order.is_some(), has_order, "{spec}");
                let order = order.unwrap_or_default();
                let place = |node| order.iter().position(|&it| it == node);
                assert!(
                    !has_order || edges.iter().all(|it| place(it.from) < place(it.to)),
                    "{spec}"
                );
            }
        }
    }
    println!("without and with an order: {counts:?}");
    assert!(counts.iter().all(|&count| count > 2_000));
}

#[test]
fn plain_histories_are_replayed_as_all_others_are() {
    let (mut rng, mut counts) = (Rng::new(1), [0; 2]);
    for history in histories(4_000) {
        for spec in specs() {
            let Some(prepared) = Prepared::of(&history, spec) else {
                continue;
            };
            let Ok(WeakVerdict::Satisfied(mut order, sources)) =
                check(&history, spec, &Budget::unlimited())
            else {
                continue;
            };
            assert!(sources.is_empty());
            for damage in 0..4 {
                let held = prepared.replay(&order).is_ok();
                let truth = replay_in_order(&history, spec, &order, &[]).is_ok();
                assert_eq!(held, truth, "{spec}: {order:?}");
                counts[usize::from(held)] += 1;
                damaged(&mut order, damage, &mut rng);
            }
        }
    }
    println!("refused and accepted: {counts:?}");
    assert!(counts.iter().all(|&count| count > 2_000));
}

/// Exchanges, drops or repeats a transaction.
fn damaged(order: &mut Vec<TxnId>, how: usize, rng: &mut Rng) {
    if order.is_empty() {
        return;
    }
    let (one, other) = (rng.below(order.len()), rng.below(order.len()));
    match how {
        0 | 1 => order.swap(one, other),
        2 => order[one] = order[other],
        _ => drop(order.remove(one)),
    }
}
