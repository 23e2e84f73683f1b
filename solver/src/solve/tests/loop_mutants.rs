//! Loops with a mistake: an obligation that is skipped, a lemma that is dropped. The oracle or the second check notices
//! every wrong answer.

use kingsnake_lab::oracle;
use kingsnake_lab::random::{Rng, Wrong, small_predicates, small_repeats_committed, small_rows};

use super::super::{AskedOrder, Ended, Found, Lemma, Obligation, is_obliged, obligations, run};
use crate::agreement::{Exhaustive, specs};
use crate::budget::Budget;
use crate::certify::order::replay;
use crate::check::{CheckStats, Techniques};
use crate::level::Spec;
use crate::model::History;
use crate::phases::{Check, Stop};
use crate::progress::Silent;
use crate::relate::construct;
use crate::resolve::{Resolved, Uncertain, resolve_for};
use crate::verdict::{Certificate, Point};

/// A mistake in what an order must meet.
type Damage = fn(&mut Vec<Box<dyn Obligation>>);
/// A mistake, its name, and the histories that show it.
type Named = (&'static str, fn(u64) -> History, Damage);

/// Drops every second lemma; where it was the only one, the order passes.
struct Dropping(Box<dyn Obligation>, usize);

impl Obligation for Dropping {
    fn check(&mut self, found: &Found<'_>) -> Result<Vec<Lemma>, Stop> {
        let mut lemmas = self.0.check(found)?;
        lemmas.retain(|_| {
            self.1 += 1;
            self.1.is_multiple_of(2)
        });
        Ok(lemmas)
    }
}

fn resolved(history: &History, spec: Spec) -> Option<Resolved> {
    let base = resolve_for(history, spec, &Budget::unlimited()).ok()?;
    let is_dead = |read: &Uncertain| read.candidates.is_empty();
    let is_broken = !base.broken(history, spec).is_empty();
    (!is_broken && !base.uncertain().iter().any(is_dead)).then_some(base)
}

/// Whether a damaged loop says something else than the oracle, or gives an order that the second check refuses.
fn is_caught(history: &History, spec: Spec, damage: Damage) -> bool {
    let techniques = &Techniques::default();
    let check = Check {
        history,
        spec,
        techniques,
    };
    let Some(base) = resolved(history, spec).filter(|it| is_obliged(&check, it)) else {
        return false;
    };
    let polygraph = construct(history, base.clone(), spec, techniques.shape());
    let mut damaged = obligations(&check, &base);
    damage(&mut damaged);
    let (backend, stats) = (&mut Exhaustive::default(), &mut CheckStats::default());
    let (budget, progress) = (&Budget::unlimited(), &mut Silent);
    let asked = AskedOrder {
        check: &check,
        base: &base,
        ranks: None,
        polygraph,
        obligations: damaged,
    };
    let ended = run(asked, backend, stats, budget, progress);
    let truth = oracle::holds(history, spec).expect("it is small");
    match ended {
        Ok(Ended::Order(_, order)) => {
            let order = order.into_iter().map(|(node, moment)| Point {
                txn: base.txn(node),
                moment,
            });
            let order: Certificate = order.collect::<Vec<Point>>().into();
            !truth || replay(history, spec, &order).is_err()
        }
        Ok(Ended::No(_)) => truth,
        Err(_) => true,
    }
}

fn predicates(seed: u64) -> History {
    let mut history = small_predicates(&mut Rng::new(seed), Wrong::NOT);
    history.retain_versions(|_| false);
    history
}

fn drawn(seed: u64) -> History {
    match seed % 3 {
        0 => small_repeats_committed(seed),
        1 => small_rows(seed),
        _ => predicates(seed),
    }
}

#[test]
fn a_loop_that_skips_an_obligation_or_drops_a_lemma_is_caught() {
    let all_right = (0..600).all(|seed| {
        let history = drawn(seed);
        let mut specs = specs(&history, seed).into_iter();
        !specs.any(|spec| is_caught(&history, spec, |_| ()))
    });
    assert!(all_right, "without a mistake");
    let damages: [Named; 5] = [
        ("reads are not explained", small_repeats_committed, |it| {
            it.remove(0);
        }),
        ("rows need not be absent", small_rows, |it| it.truncate(1)),
        ("aggregates need no result", predicates, |it| {
            it.pop().filter(|_| !it.is_empty());
        }),
        (
            "lemmas of reads are dropped",
            small_repeats_committed,
            drop_lemmas,
        ),
        ("lemmas of aggregates are dropped", predicates, drop_lemmas),
    ];
    for (name, drawn, damage) in damages {
        let caught = (0..20_000).find(|&seed| {
            let history = drawn(seed);
            let mut specs = specs(&history, seed).into_iter();
            specs.any(|spec| is_caught(&history, spec, damage))
        });
        println!("{name}: caught by history {caught:?}");
        assert!(caught.is_some(), "{name}");
    }
}

fn drop_lemmas(obligations: &mut Vec<Box<dyn Obligation>>) {
    let all = std::mem::take(obligations).into_iter();
    obligations.extend(all.map(|it| Box::new(Dropping(it, 0)) as Box<dyn Obligation>));
}
