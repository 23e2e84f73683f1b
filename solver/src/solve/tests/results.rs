//! Aggregates against the brute-force oracle, and mistakes that the comparison and the checker catch.

use super::super::broken::broken;
use super::super::fixed::{everything, pose_counted};
use super::super::has_aggregates;
use super::super::results::Counted;
use super::n_histories;
use super::reads::searching;
use crate::agreement::{Compared, Exhaustive, asked, by_oracle, engines, specs, unbroken};
use crate::budget::Budget;
use crate::certify::counterexample::check_counterexample;
use crate::check::Techniques;
use crate::context::Context;
use crate::decide::{Backend, Decision};
use crate::level::Spec;
use crate::model::{History, Status, Token, TxnId};
use crate::phases::{self, Check, Exit};
use crate::progress::Silent;
use crate::verdict::{Counterexample, Proof, Verdict};
use kingsnake_lab::oracle;
use kingsnake_lab::random::{Rng, Wrong, small_predicates};

/// A small history with aggregates.
fn drawn(seed: u64) -> Option<History> {
    let mut rng = Rng::new(seed);
    let wrong = if rng.chance(40) {
        Wrong::NOT
    } else {
        Wrong::OFTEN
    };
    let mut history = small_predicates(&mut rng, wrong);
    if rng.chance(70) {
        history.retain_versions(|_| false);
    }
    has_aggregates(&history).then_some(history)
}

/// The same, where the end of a transaction is not known.
fn doubtful(seed: u64) -> Option<History> {
    let history = drawn(seed)?;
    let txn = TxnId((seed % history.n_txns() as u64) as u32);
    Some(history.with_status(txn, Status::Unknown))
}

/// Compares every level; how many are violated, satisfied, and violated because of an aggregate.
fn agree(n_seeds: u64, drawn: impl Fn(u64) -> Option<History>) -> [usize; 3] {
    let (engines, mut by_aggregate) = (engines(), 0);
    let [violated, satisfied] = Compared {
        seeds: 0..n_seeds,
        draw: &drawn,
        specs: &specs,
        truth: &by_oracle,
        techniques: &|seed| vec![searching(&engines[seed as usize % engines.len()], seed)],
    }
    .agree(|report| {
        let found = &report.verdict;
        by_aggregate += usize::from(matches!(found, Verdict::Violated(it) if is_of_aggregate(it)));
    });
    println!("{by_aggregate} because of an aggregate");
    [violated, satisfied, by_aggregate]
}

fn is_of_aggregate(counterexample: &Counterexample) -> bool {
    match counterexample {
        Counterexample::Cyclic(proof) => proof.aggregates().next().is_some(),
        Counterexample::EitherWay {
            lost, took_effect, ..
        } => is_of_aggregate(lost) || is_of_aggregate(took_effect),
        _ => false,
    }
}

#[test]
fn aggregates_agree_with_the_oracle() {
    let [violated, satisfied, by_aggregate] = agree(n_histories(8_000), drawn);
    assert!(satisfied > 1_000 && violated > 1_000 && by_aggregate > 300);
}

#[test]
fn aggregates_agree_with_the_oracle_where_an_end_is_unknown() {
    let [violated, satisfied, by_aggregate] = agree(n_histories(4_000), doubtful);
    assert!(satisfied > 500 && violated > 500 && by_aggregate > 50);
}

/// What the search says where the aggregates are damaged, if anything: that there is an order which certify accepts.
fn damaged(history: &History, spec: Spec, damage: impl Fn(&mut Counted)) -> Option<bool> {
    let techniques = &Techniques::default();
    let check = Check {
        history,
        spec,
        techniques,
    };
    let (budget, mut silent) = (Budget::unlimited(), Silent);
    let mut context = Context::new(&budget, &mut silent);
    let base = unbroken(history, spec, &budget)?;
    let (base, mut counted) = everything(&check, &base).ok()?;
    damage(&mut counted);
    let pruned = pose_counted(&check, &base, &counted, &budget)
        .and_then(|posed| phases::prune(&check, posed, None, &mut context));
    let pruned = match pruned {
        Ok(pruned) => pruned,
        Err(Exit::Refuted(_)) => return Some(false),
        Err(Exit::Stop(_)) => return None,
    };
    let backend = &mut Exhaustive::default();
    let decided = backend.decide(pruned.question(), &budget, &mut Silent);
    let Decision::Choices(sides) = decided.ok()?.0 else {
        return Some(false);
    };
    let order = pruned.order(&sides).ok()?.into_iter();
    let order = order.filter(|&node| pruned.problem.transaction(node).is_some());
    let order = order.map(|node| pruned.problem.places().point(node));
    Some(broken(history, spec, &base, order).is_empty())
}

/// A mistake in what is counted.
type Mistake = fn(&mut Counted);

#[test]
fn an_aggregate_that_is_forgotten_or_miscounted_is_caught() {
    let mistakes: [(&str, Mistake); 4] = [
        ("the last aggregate is forgotten", |counted| {
            counted.all.pop();
            let n_kept = counted.all.len();
            for rows in counted.of_read.values_mut() {
                rows.retain(|it| it.0 < n_kept);
            }
        }),
        ("the transaction's own rows are forgotten", |counted| {
            counted.all.iter_mut().for_each(|it| it.known.clear());
        }),
        ("versions that differ stand for each other", |counted| {
            counted.of_read.clear();
        }),
        ("what a version adds is forgotten", |counted| {
            for it in &mut counted.all {
                for read in &mut it.rows {
                    read.row.cells.iter_mut().for_each(|it| it.1 = Token::Nil);
                }
            }
        }),
    ];
    let right = (0..2_000).filter_map(drawn).all(|history| {
        let mut specs = specs(&history, 0).into_iter();
        specs.all(|spec| {
            let said = damaged(&history, spec, |_| ());
            said.is_none() || said == oracle::holds(&history, spec)
        })
    });
    assert!(right, "without a mistake");
    for (name, mistake) in mistakes {
        let caught = (0..20_000).find(|&seed| {
            let Some(history) = drawn(seed) else {
                return false;
            };
            specs(&history, 0).into_iter().any(|spec| {
                let said = damaged(&history, spec, mistake);
                said.is_some() && said != oracle::holds(&history, spec)
            })
        });
        println!("{name}: caught by history {caught:?}");
        assert!(caught.is_some(), "{name}");
    }
}

#[test]
fn a_version_that_is_not_ruled_out_is_noticed() {
    let (mut n_checked, mut n_needed) = (0, 0);
    for history in (0..6_000).filter_map(drawn) {
        for spec in specs(&history, 0) {
            let report = asked(&history, spec, &Techniques::default());
            let Verdict::Violated(Counterexample::Cyclic(Proof::Aggregate {
                reader,
                nth,
                ruled_out,
            })) = report.expect("it is decided").verdict
            else {
                continue;
            };
            n_checked += 1;
            for at in 0..ruled_out.len() {
                let mut fewer = ruled_out.clone();
                fewer.remove(at);
                let damaged = Counterexample::Cyclic(Proof::Aggregate {
                    reader,
                    nth,
                    ruled_out: fewer,
                });
                let budget = Budget::unlimited();
                let checked = check_counterexample(&history, spec, &damaged, &budget);
                n_needed += usize::from(checked.is_err());
            }
        }
    }
    println!("{n_checked} proofs, {n_needed} damaged ones refused");
    assert!(n_checked > 100 && n_needed > 30);
}
