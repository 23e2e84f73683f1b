//! Uncertain reads against the brute-force oracle: repeated values, absent rows, conditions over rows.

use std::cell::Cell;

use super::super::fixed::pose_counted;
use super::super::reads::missed;
use super::super::results::Counted;
use super::{n_histories, points, with_first_order};
use crate::agreement::{Compared, Exhaustive, asked, by_oracle, engines, specs, unbroken};
use crate::budget::Budget;
use crate::certify::order::replay_without_aggregates;
use crate::check::Techniques;
use crate::context::Context;
use crate::decide::{Backend, Decision};
use crate::level::{Model, Spec};
use crate::model::History;
use crate::phases::{self, Check, Exit, pose};
use crate::progress::Silent;
use crate::resolve::{Uncertain, resolve, resolve_for};
use crate::verdict::{Counterexample, Point, Verdict};
use kingsnake_graph::Logic;
use kingsnake_lab::oracle;
use kingsnake_lab::random::{
    Rng, Wrong, sketch, small_predicates, small_repeats_committed, small_rows,
};

#[derive(Debug)]
#[allow(clippy::struct_field_names)] // All of them are numbers of something.
struct Tally {
    n_uncertain: usize,
    n_satisfied: usize,
    n_violated: usize,
    n_choices: usize,
}

/// The same where the recorded order, which explains many of these histories without a search, is mostly not tried.
pub(crate) fn searching(techniques: &Techniques, seed: u64) -> Techniques {
    Techniques {
        witness: techniques.witness && seed.is_multiple_of(4),
        ..techniques.clone()
    }
}

fn is_uncertain(history: &History) -> bool {
    let resolution = resolve(history, &Budget::unlimited());
    resolution.is_ok_and(|it| it.findings().is_empty() && !it.uncertain().is_empty())
}

fn agree(seeds: u64, draw: impl Fn(u64) -> History) -> Tally {
    let (engines, n_uncertain, mut n_choices) = (engines(), Cell::new(0), 0);
    let uncertain = |seed: u64| {
        let history = Some(draw(seed)).filter(is_uncertain)?;
        n_uncertain.set(n_uncertain.get() + 1);
        Some(history)
    };
    let [n_violated, n_satisfied] = Compared {
        seeds: 0..seeds,
        draw: &uncertain,
        specs: &specs,
        truth: &by_oracle,
        techniques: &|seed| vec![searching(&engines[seed as usize % engines.len()], seed)],
    }
    .agree(|report| {
        if let Verdict::Violated(Counterexample::Cyclic(proof)) = &report.verdict {
            n_choices += usize::from(proof.choices().next().is_some());
        }
    });
    let tally = Tally {
        n_uncertain: n_uncertain.get(),
        n_satisfied,
        n_violated,
        n_choices,
    };
    println!("{tally:?}");
    tally
}

fn predicates(seed: u64, with_orders: bool) -> History {
    let mut rng = Rng::new(seed);
    let wrong = if rng.chance(30) {
        Wrong::NOT
    } else {
        Wrong::OFTEN
    };
    let mut history = small_predicates(&mut rng, wrong);
    if !with_orders {
        history.retain_versions(|_| false);
    }
    history
}

#[test]
fn repeated_values_and_absent_rows_agree_with_the_oracle() {
    let tally = agree(n_histories(3_000), small_repeats_committed);
    assert!(tally.n_satisfied.min(tally.n_violated) > tally.n_uncertain / 2);
    assert!(tally.n_choices > tally.n_uncertain / 10);
}

#[test]
fn rows_that_several_deleted_agree_with_the_oracle() {
    let tally = agree(n_histories(2_000), |seed| {
        let history = small_rows(seed);
        // A transaction of unknown end that may have deleted a row is another matter.
        if is_uncertain(&history) {
            history
        } else {
            small_repeats_committed(seed)
        }
    });
    assert!(tally.n_satisfied.min(tally.n_violated) > tally.n_uncertain / 2);
}

#[test]
fn conditions_over_rows_agree_with_the_oracle() {
    for with_orders in [false, true] {
        let tally = agree(n_histories(4_000), |seed| predicates(seed, with_orders));
        assert!(tally.n_satisfied.min(tally.n_violated) > tally.n_uncertain / 5);
    }
}

/// What an aggregate counted is ruled out in a case in which two transactions would have read from each other.
#[test]
fn what_an_aggregate_counted_is_ruled_out_where_its_proof_stands() {
    let history = predicates(86_301, false);
    for spec in specs(&history, 86_301) {
        let report = asked(&history, spec, &Techniques::default());
        let says = report.map(|it| matches!(it.verdict, Verdict::Satisfied(_)));
        assert_eq!(says.ok(), oracle::holds(&history, spec), "{spec}");
    }
}

/// The logic without one of its guarded edges, or one of its clauses.
fn without(logic: &Logic, edge: Option<usize>, clause: Option<usize>) -> Logic {
    let mut less = Logic::default();
    for _ in 0..logic.n_variables() {
        less.variable();
    }
    for (at, guarded) in logic.guarded().enumerate() {
        if Some(at) != edge {
            less.guard(guarded.edge, guarded.guard);
        }
    }
    for (at, literals) in logic.clauses().enumerate() {
        if Some(at) != clause {
            less.clause(literals);
        }
    }
    less
}

/// What the graph with its choices, damaged, says of a history; `None` where there is none.
fn says_damaged(
    history: &History,
    spec: Spec,
    damage: impl Fn(&Logic) -> Option<Logic>,
) -> Option<bool> {
    let techniques = &Techniques::default();
    let check = Check {
        history,
        spec,
        techniques,
    };
    let (budget, mut silent) = (Budget::unlimited(), Silent);
    let mut context = Context::new(&budget, &mut silent);
    let base = unbroken(history, spec, &budget)?;
    let mut posed = pose_counted(&check, &base, &Counted::default(), &budget).ok()?;
    let damaged = damage(&posed.problem().logic)?;
    posed.problem_mut().logic = damaged;
    match phases::prune(&check, posed, None, &mut context) {
        Ok(pruned) => {
            let mut backend = Exhaustive::default();
            let decided = backend.decide(pruned.question(), &budget, &mut Silent);
            let (decision, _) = decided.ok()?;
            Some(matches!(decision, Decision::Choices(_)))
        }
        Err(Exit::Refuted(_)) => Some(false),
        Err(Exit::Stop(_)) => None,
    }
}

#[test]
fn a_guarded_edge_that_is_dropped_and_a_clause_that_is_forgotten_are_caught() {
    type Damage = fn(&Logic) -> Option<Logic>;
    let damages: [(&str, Damage); 3] = [
        ("the first guarded edge is dropped", |logic| {
            (logic.guarded().len() > 0).then(|| without(logic, Some(0), None))
        }),
        ("the last guarded edge is dropped", |logic| {
            let last = logic.guarded().len().checked_sub(1)?;
            Some(without(logic, Some(last), None))
        }),
        ("a clause is forgotten", |logic| {
            (logic.clauses().len() > 0).then(|| without(logic, None, Some(0)))
        }),
    ];
    let is_wrong = |seed: u64, damage: Damage| {
        let history = small_repeats_committed(seed);
        is_uncertain(&history)
            && specs(&history, seed).into_iter().any(|spec| {
                let said = says_damaged(&history, spec, damage);
                said.is_some() && said != oracle::holds(&history, spec)
            })
    };
    let unharmed: Damage = |logic| Some(without(logic, None, None));
    assert!(!(0..1_000).any(|seed| is_wrong(seed, unharmed)));
    for (name, damage) in damages {
        let caught = (0..50_000).find(|&seed| is_wrong(seed, damage));
        println!("{name}: caught by history {caught:?}");
        assert!(caught.is_some(), "{name}");
    }
}

#[test]
fn the_question_that_is_posed_has_the_answer_of_the_oracle() {
    let (mut counts, mut n_asked) = ([0; 2], 0);
    for seed in 0..n_histories(3_000) {
        let history = small_repeats_committed(seed);
        if !is_uncertain(&history) {
            continue;
        }
        for spec in specs(&history, seed) {
            let truth = oracle::holds(&history, spec).expect("it is small");
            let techniques = Techniques {
                prune_rounds: (seed % 2 == 0).then_some(0),
                ..Techniques::default()
            };
            let check = Check {
                history: &history,
                spec,
                techniques: &techniques,
            };
            let (budget, mut silent) = (Budget::unlimited(), Silent);
            let said = match pose(&check, &mut Context::new(&budget, &mut silent)) {
                Ok(pruned) => {
                    n_asked += usize::from(!pruned.constraints.is_empty());
                    let mut backend = Exhaustive::default();
                    let decided = backend.decide(pruned.question(), &budget, &mut Silent);
                    let (decision, _) = decided.expect("it is small");
                    matches!(decision, Decision::Choices(_))
                }
                Err(Exit::Refuted(_)) => false,
                Err(Exit::Stop(_)) => continue,
            };
            assert_eq!(said, truth, "seed {seed}, {spec}\n{}", sketch(&history));
            counts[usize::from(truth)] += 1;
        }
    }
    println!("{counts:?}, {n_asked} asked");
    assert!(
        counts[0] > 100 && counts[1] > 100 && n_asked > 100,
        "{counts:?}, {n_asked} asked"
    );
}

/// An order that explains the certain reads of a history, and how many of the uncertain ones it misses.
fn order_of_certain_reads(check: &Check<'_>) -> Option<(Vec<Point>, usize)> {
    let base = resolve_for(check.history, check.spec, &Budget::unlimited()).ok()?;
    let is_dead = |read: &Uncertain| read.candidates.is_empty();
    let is_broken = !base.broken(check.history, check.spec).is_empty();
    if is_broken || !base.unreturned().is_empty() || base.uncertain().iter().any(is_dead) {
        return None;
    }
    with_first_order(check, &base, |found| {
        let n_missed = missed(&found).len();
        Some((points(&found), n_missed))
    })
}

#[test]
fn the_second_check_refuses_an_order_exactly_if_it_misses_a_read() {
    let techniques = &Techniques::default();
    let mut counts = [0; 2];
    for seed in 0..n_histories(3_000) {
        let history = match seed % 3 {
            0 => small_repeats_committed(seed),
            _ => predicates(seed, false),
        };
        let specs = specs(&history, seed).into_iter();
        for spec in specs.filter(|it| matches!(it.model, Model::Ser | Model::Si | Model::Pc)) {
            let check = Check {
                history: &history,
                spec,
                techniques,
            };
            let Some((order, n_missed)) = order_of_certain_reads(&check) else {
                continue;
            };
            let again = replay_without_aggregates(&history, spec, &order.into());
            let told = sketch(&history);
            assert_eq!(again.is_err(), n_missed > 0, "seed {seed}, {spec}\n{told}");
            counts[usize::from(n_missed > 0)] += 1;
        }
    }
    println!("{counts:?} explained, missed");
    assert!(counts.iter().all(|&n| n > 300), "{counts:?}");
}
