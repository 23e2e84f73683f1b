//! The recorded order is an answer exactly if it explains the history, by the second replay and by the oracle.

use super::{Begins, Clock, expected, explains, order};
use crate::agreement::{Exhaustive, specs};
use crate::budget::Budget;
use crate::certify;
use crate::check::{CheckError, Decider, Techniques, check};
use crate::context::Context;
use crate::level::{Model, Spec};
use crate::model::History;
use crate::phases::{self, Check, Evidence, Stop};
use crate::progress::Silent;
use crate::verdict::{Certificate, Point, Verdict};
use kingsnake_lab::oracle;
use kingsnake_lab::random::{Rng, Wrong, sketch, small_predicates};

const SER: Spec = Spec {
    model: Model::Ser,
    session_order: true,
    real_time: None,
};

/// A small history with conditions and timestamps, and perhaps version orders.
fn drawn(seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let wrong = [Wrong::NOT, Wrong::OFTEN][usize::from(rng.chance(50))];
    let mut history = small_predicates(&mut rng, wrong);
    if rng.chance(60) {
        history.retain_versions(|_| false);
    }
    history
}

fn is_searched(spec: Spec) -> bool {
    matches!(spec.model, Model::Ser | Model::Si | Model::Pc)
}

/// Whether the second check takes an order.
fn is_certified(history: &History, spec: Spec, order: &[Point]) -> bool {
    let certificate = Certificate::from(order.to_vec());
    certify::order::replay(history, spec, &certificate).is_ok()
}

/// The recorded order, with two neighbours swapped now and then.
fn tried(history: &History, spec: Spec, rng: &mut Rng) -> Option<Vec<Point>> {
    let begins = if spec.has_begins(history) {
        [Begins::Recorded, Begins::AtCommit][rng.below(2)]
    } else {
        Begins::Whole
    };
    let mut order = order(history, Clock::Stamps, begins)?;
    for _ in 0..rng.below(4) {
        let at = rng.below(order.len());
        if let Some(&[one, other]) = order.get(at..at + 2)
            && history.session(one.txn) != history.session(other.txn)
        {
            order.swap(at, at + 1);
        }
    }
    Some(order)
}

/// How often a replay takes an order and the second check does not, the other way round, and both do.
fn compare(replay: impl Fn(&Check<'_>, &[Point]) -> bool) -> [usize; 3] {
    let techniques = &Techniques::default();
    let mut counts = [0; 3];
    for seed in 0..4_000 {
        let history = &drawn(seed);
        let mut rng = Rng::new(seed);
        for spec in specs(history, seed)
            .into_iter()
            .filter(|&it| is_searched(it))
        {
            let Some(order) = tried(history, spec, &mut rng) else {
                continue;
            };
            let check = Check {
                history,
                spec,
                techniques,
            };
            let (said, again) = (replay(&check, &order), is_certified(history, spec, &order));
            counts[0] += usize::from(said && !again);
            counts[1] += usize::from(!said && again);
            counts[2] += usize::from(said && again);
        }
    }
    println!("{counts:?} taken by the replay alone, by the second check alone, by both");
    counts
}

fn takes(check: &Check<'_>, order: &[Point]) -> bool {
    matches!(explains(check, order, &Budget::unlimited()), Ok(true))
}

#[test]
fn the_replay_takes_the_orders_that_the_second_check_takes() {
    let [alone, _, both] = compare(takes);
    assert_eq!(alone, 0);
    assert!(both > 2_000, "{both}");
}

#[test]
fn the_second_check_refuses_what_a_replay_that_leaves_something_out_takes() {
    let forgets_conditions = |check: &Check<'_>, order: &[Point]| {
        let mut history = check.history.clone();
        history.forget_predicates();
        let history = &history;
        takes(&Check { history, ..*check }, order)
    };
    let forgets_overlaps = |check: &Check<'_>, order: &[Point]| {
        let model = match check.spec.model {
            Model::Si => Model::Pc,
            model => model,
        };
        let spec = Spec {
            model,
            ..check.spec
        };
        takes(&Check { spec, ..*check }, order)
    };
    let forgets_version_orders = |check: &Check<'_>, order: &[Point]| {
        let mut history = check.history.clone();
        history.retain_versions(|_| false);
        let history = &history;
        takes(&Check { history, ..*check }, order)
    };
    assert!(compare(forgets_conditions)[0] > 50);
    assert!(compare(forgets_overlaps)[0] > 5);
    assert!(compare(forgets_version_orders)[0] > 5);
}

#[test]
fn a_recorded_order_that_does_not_explain_the_history_is_withheld() {
    let techniques = &Techniques::default();
    let mut n_withheld = 0;
    for seed in 0..300 {
        let (history, spec) = (&drawn(seed), SER);
        let Some(order) = order(history, Clock::Stamps, Begins::Whole) else {
            continue;
        };
        if is_certified(history, spec, &order) {
            continue;
        }
        let check = Check {
            history,
            spec,
            techniques,
        };
        let (budget, mut silent) = (Budget::unlimited(), Silent);
        let mut context = Context::new(&budget, &mut silent);
        let evidence = Evidence::Order(order.into());
        let certified = phases::certify(&check, Decider::Witness, evidence, &mut context);
        let is_withheld = matches!(certified, Err(Stop::Error(CheckError::Uncertified { .. })));
        assert!(is_withheld, "seed {seed}");
        n_withheld += 1;
    }
    assert!(n_withheld > 50, "{n_withheld}");
}

#[test]
fn a_recorded_order_that_explains_the_history_is_the_answer_without_a_search() {
    let techniques = &Techniques::default();
    let (mut n_taken, mut n_missed) = (0, 0);
    for seed in 0..2_000 {
        let history = &drawn(seed);
        for spec in specs(history, seed)
            .into_iter()
            .filter(|&it| is_searched(it))
        {
            let (budget, mut silent) = (Budget::unlimited(), Silent);
            let check_of = Check {
                history,
                spec,
                techniques,
            };
            let mut context = Context::new(&budget, &mut silent);
            let Ok(found) = expected(&check_of, &mut context) else {
                panic!("seed {seed}, {spec}: it stopped");
            };
            if found.is_none() {
                n_missed += 1;
                continue;
            }
            n_taken += 1;
            let told = sketch(history);
            assert!(oracle::holds(history, spec).expect("it is small"), "{told}");
            let backend = &mut Exhaustive::default();
            let report = check(history, spec, techniques, backend, &budget, &mut Silent);
            let report = report.expect("it is answered");
            assert!(matches!(report.verdict, Verdict::Satisfied(_)), "{told}");
            assert_eq!(report.decider, Decider::Witness);
            let mut phases = report.stats.phases.iter();
            assert!(phases.all(|it| it.0 != "resolve"), "{:?}", report.stats);
        }
    }
    println!("{n_taken} taken, {n_missed} missed");
    assert!(n_taken > 2_000 && n_missed > 1_000);
}

#[test]
fn histories_without_conditions_are_not_replayed() {
    let techniques = &Techniques::default();
    for seed in 0..50 {
        let mut history = drawn(seed);
        history.forget_predicates();
        let check = Check {
            history: &history,
            spec: SER,
            techniques,
        };
        let (budget, mut silent) = (Budget::unlimited(), Silent);
        let mut context = Context::new(&budget, &mut silent);
        assert!(matches!(expected(&check, &mut context), Ok(None)));
        assert!(context.finish().phases.is_empty());
    }
}
